//===- Session.h - devices, arrays and functions of the module _runtime ---===//
//
// In: the runtime's C API, through greta_runtime.hpp. Out: what Runtime.cpp and
// Launcher.cpp bind for Python.
//
// A Device is a name. Its Session is the opened device, with everything that
// Python does not see: the functions loaded there and memory for arrays of the
// host. A device that is closed drops its session, so that another simulated
// chip can be opened; functions are loaded again when they are called again.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_PYTHON_SESSION_H
#define GRETA_PYTHON_SESSION_H

#include "greta_runtime.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <unistd.h>
#include <unordered_map>

namespace greta::python {

namespace nb = nanobind;

/// A stream that threads use one at a time.
struct Queue {
  explicit Queue(greta::Stream stream) : stream(std::move(stream)) {}

  /// Runs `work` on the stream, without Python's lock.
  template <typename Work> void run(Work work) {
    nb::gil_scoped_release release;
    std::lock_guard<std::mutex> guard(lock);
    work(stream);
  }

  greta::Stream stream;
  std::mutex lock;
};

/// Returns the bits of a number for a scalar argument of `type`; an integer's
/// are the lowest ones.
int64_t scalarBits(const std::string &type, nb::handle value);

/// A package's function, loaded on one device.
struct Loaded {
  explicit Loaded(greta::Function function)
      : function(std::move(function)), arguments(this->function.arguments()),
        results(this->function.results()) {}

  greta::Function function;
  std::vector<TensorInfo> arguments, results;
  /// A launch with a communicator holds this.
  mutable std::mutex communicator;
};

struct Session {
  explicit Session(const std::string &spec);

  /// Returns memory of at least `bytes`, from returned memory if any fits.
  Buffer takeMemory(size_t bytes);
  void giveBack(Buffer buffer);

  /// Returns memory for an array, which `holds` knows while it lives.
  std::shared_ptr<Buffer> allocate(size_t bytes);
  /// Returns whether an address is in the memory of an array.
  bool holds(uint64_t address);

  /// GRETA_CHECK checks launches, if the device is simulated.
  const bool isChecked;
  const pid_t process = getpid(); // a forked process may not use this
  greta::Runtime runtime;
  std::shared_ptr<Queue> queue; // the stream in use
  std::unordered_map<const void *, std::unique_ptr<Loaded>> functions;

private:
  std::vector<Buffer> spare;
  std::map<uint64_t, uint64_t> arrays; // begins and ends of arrays
  std::mutex arraysLock;
};

class Device {
public:
  explicit Device(std::string spec) : spec(std::move(spec)) {}

  const std::shared_ptr<Session> &session() {
    if (!opened)
      opened = std::make_shared<Session>(spec);
    return opened;
  }
  bool isOpen() const { return opened != nullptr; }
  void close();

  const std::string spec;

private:
  std::shared_ptr<Session> opened;
};

/// A contiguous array on a device.
struct Array {
  /// Makes an array of the manifest's type `type`.
  Array(std::shared_ptr<Device> device, std::vector<int64_t> shape,
        nb::object dtype, std::string type, size_t itemSize);
  /// Takes another library's memory, which DLPack's tensor gives away.
  Array(std::shared_ptr<Device> device, DLManagedTensor *from,
        std::vector<int64_t> shape, nb::object dtype, std::string type,
        size_t itemSize);
  /// Gives the same memory another shape, from `offset` on.
  Array(const Array &of, std::vector<int64_t> shape, size_t offset);

  size_t bytes() const { return count() * itemSize; }
  int64_t count() const;
  uint64_t address() const { return buffer->address() + offset; }
  greta_tensor tensor() const {
    return {buffer->get(), offset, shape.data(),
            static_cast<uint32_t>(shape.size()), nullptr};
  }

  std::shared_ptr<Device> device;
  std::shared_ptr<Session> session; // outlives the buffer
  std::shared_ptr<Buffer> buffer;
  size_t offset = 0;
  std::vector<int64_t> shape;
  nb::object dtype; // NumPy's
  std::string type; // the manifest's
  size_t itemSize;
};

/// A function of a package, for any device that it is called on.
class PackageFunction {
public:
  PackageFunction(std::shared_ptr<greta::Package> package, std::string name)
      : package(std::move(package)), name(std::move(name)) {}
  ~PackageFunction();

  /// Returns the function as it is loaded on `session`.
  const Loaded &on(const std::shared_ptr<Session> &session);

  const std::shared_ptr<greta::Package> package;
  const std::string name;
  std::vector<size_t> addresses; // arguments with addresses that kernels follow

private:
  std::vector<std::weak_ptr<Session>> sessions;
  // An address may be another session's later, and a number is not unique: the
  // module of torch's device makes sessions, too, with counters of its own.
  std::weak_ptr<Session> lastOn;
  const Loaded *last = nullptr;
};

/// Binds the launcher of Triton's kernels.
void bindLauncher(nb::module_ &m);

/// Binds ranks of communicators.
void bindCommunicators(nb::module_ &m);

} // namespace greta::python

#endif
