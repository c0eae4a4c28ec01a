//===- Communicator.h - a rank of the module _runtime -----------*- C++ -*-===//
//
// In: a device's session. Out: collectives, and launches of functions that sum
// over ranks, in the stream in use there.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_PYTHON_COMMUNICATOR_H
#define GRETA_PYTHON_COMMUNICATOR_H

#include "Session.h"

#include <cstring>
#include <optional>
#include <set>

namespace greta::python {

/// The ranks of this process. No two are on one device: they would share its
/// stream, and the first one's collective would wait for the second one's.
class Ranks {
public:
  Ranks(std::shared_ptr<Session> session, std::string of)
      : key(session.get(), std::move(of)) {
    std::lock_guard<std::mutex> guard(lock);
    if (!all.insert(key).second)
      throw Error(
          GRETA_ERROR_INVALID_ARGUMENT,
          "this process has a rank on this device already; ranks of one "
          "process have a device each");
  }
  ~Ranks() {
    std::lock_guard<std::mutex> guard(lock);
    all.erase(key);
  }
  Ranks(const Ranks &) = delete;

private:
  using Key = std::pair<const void *, std::string>;
  static inline std::mutex lock;
  static inline std::set<Key> all;
  const Key key;
};

class Communicator {
public:
  Communicator(Device &device, uint32_t rank, uint32_t size,
               std::optional<nb::bytes> id, const std::string &path,
               const std::string &address, uint64_t milliseconds,
               uint64_t stagingBytes, uint32_t ways)
      : session(device.session()),
        own(session,
            id ? std::string(id->c_str(), id->size()) : path + address) {
    greta_comm_id name{};
    if (id && id->size() != sizeof(name.bytes))
      throw nb::value_error("an id has 16 bytes, of unique_id()");
    if (id)
      memcpy(name.bytes, id->data(), sizeof(name.bytes));
    greta_comm_options options{};
    options.id = id ? &name : nullptr;
    options.path = path.empty() ? nullptr : path.c_str();
    options.address = address.empty() ? nullptr : address.c_str();
    options.rank = rank;
    options.size = size;
    options.timeout_milliseconds = milliseconds;
    options.staging_bytes = stagingBytes;
    options.ways = ways;
    nb::gil_scoped_release release;
    comm.emplace(session->runtime.comm(options));
  }
  ~Communicator() { close(); }

  /// Waits for what was queued.
  void close() {
    nb::gil_scoped_release release;
    std::lock_guard<std::mutex> guard(lock);
    comm.reset();
  }
  std::string info() { return open().info(); }
  void abort() { open().abort(); }

  /// Runs `call` with the communicator and the stream in use.
  template <typename Call> void run(Call call) {
    session->queue->run([&](greta::Stream &stream) {
      std::lock_guard<std::mutex> guard(lock);
      check(call(open().get(), stream.get()));
    });
  }

  const std::shared_ptr<Session> session; // outlives the communicator

private:
  greta::Comm &open() {
    if (!comm)
      throw Error(GRETA_ERROR_INVALID_ARGUMENT, "the communicator is closed");
    return *comm;
  }
  Ranks own;
  std::optional<greta::Comm> comm;
  std::mutex lock;
};

} // namespace greta::python

#endif
