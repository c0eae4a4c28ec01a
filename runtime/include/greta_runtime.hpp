// greta_runtime.hpp: C++17 over greta_runtime.h. Handles close themselves;
// failures are greta::Error.
//
// Level 0 is Runtime, Buffer, Stream, Event, Graph, Package, Function: the C
// API with owners. Level 1 is Compute: gemm, attention and norm by name, for
// programs that do not care which variant runs.
#ifndef GRETA_RUNTIME_HPP
#define GRETA_RUNTIME_HPP

#include "greta_runtime.h"

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace greta {

class Error : public std::runtime_error {
public:
  Error(greta_status status, const char *text)
      : std::runtime_error(text), status_(status) {}
  greta_status status() const { return status_; }

private:
  greta_status status_;
};

inline void check(greta_status status) {
  if (status != GRETA_OK)
    throw Error(status, greta_last_error());
}

namespace detail {
template <auto Destroy> struct Deleter {
  template <typename T> void operator()(T *handle) const { Destroy(handle); }
};
template <typename T, auto Destroy>
using Handle = std::unique_ptr<T, Deleter<Destroy>>;

// Returns a zeroed struct that says its own size.
template <typename T> T sized() {
  T value{};
  value.struct_size = sizeof(T);
  return value;
}

// Calls a C function that returns a string to be freed.
template <typename Call> std::string text(Call call) {
  char *string = nullptr;
  check(call(&string));
  std::unique_ptr<char, Deleter<greta_string_free>> owner(string);
  return owner.get();
}
} // namespace detail

class Buffer {
public:
  Buffer() = default;
  explicit Buffer(greta_buffer *handle) : handle_(handle) {}
  greta_buffer *get() const { return handle_.get(); }
  size_t size() const { return greta_buffer_size(get()); }
  uint64_t address() const { return greta_buffer_address(get()); }
  // Returns the host's address of a mapped or imported buffer; else null.
  void *pointer() const { return greta_buffer_pointer(get()); }
  // Describes a shared buffer with a descriptor that the caller closes.
  greta_shared_memory exportFd() const {
    auto memory = detail::sized<greta_shared_memory>();
    check(greta_buffer_export_fd(get(), &memory));
    return memory;
  }
  // Returns a tensor of DLPack, which the caller deletes or hands on.
  DLManagedTensor *exportDLPack(const std::string &dtype,
                                const std::vector<int64_t> &shape,
                                size_t offset = 0) const {
    DLManagedTensor *tensor = nullptr;
    check(greta_buffer_export_dlpack(get(), offset, dtype.c_str(), shape.data(),
                                     static_cast<uint32_t>(shape.size()),
                                     &tensor));
    return tensor;
  }
  explicit operator bool() const { return handle_ != nullptr; }

private:
  detail::Handle<greta_buffer, greta_buffer_destroy> handle_;
};

class Event {
public:
  explicit Event(greta_event *handle) : handle_(handle) {}
  greta_event *get() const { return handle_.get(); }
  void synchronize() { check(greta_event_synchronize(get())); }
  // Waits at most so many microseconds; returns whether it has happened.
  bool wait(uint64_t microseconds) {
    int happened = 0;
    check(greta_event_wait(get(), microseconds, &happened));
    return happened != 0;
  }
  // Returns microseconds on the device since `start`.
  double since(const Event &start) const {
    double microseconds = 0;
    check(greta_event_elapsed(start.get(), get(), &microseconds));
    return microseconds;
  }

private:
  detail::Handle<greta_event, greta_event_destroy> handle_;
};

class Graph {
public:
  Graph() = default;
  explicit Graph(greta_graph *handle) : handle_(handle) {}
  greta_graph *get() const { return handle_.get(); }

private:
  detail::Handle<greta_graph, greta_graph_destroy> handle_;
};

class Stream {
public:
  explicit Stream(greta_stream *handle) : handle_(handle) {}
  greta_stream *get() const { return handle_.get(); }
  void write(const Buffer &to, const void *data, size_t bytes,
             size_t offset = 0) {
    check(greta_buffer_write(get(), to.get(), offset, data, bytes));
  }
  void read(const Buffer &from, void *data, size_t bytes, size_t offset = 0) {
    check(greta_buffer_read(get(), from.get(), offset, data, bytes));
  }
  void copy(const Buffer &to, const Buffer &from, size_t bytes,
            size_t toOffset = 0, size_t fromOffset = 0) {
    check(greta_buffer_copy(get(), to.get(), toOffset, from.get(), fromOffset,
                            bytes));
  }
  // Copies from another device, or from another stream of this one.
  void copyPeer(const Buffer &to, Stream &fromStream, const Buffer &from,
                size_t bytes) {
    check(greta_buffer_copy_peer(get(), to.get(), 0, fromStream.get(),
                                 from.get(), 0, bytes));
  }
  void fill(const Buffer &to, size_t bytes, uint32_t word, size_t offset = 0) {
    check(greta_buffer_fill(get(), to.get(), offset, bytes, word));
  }
  void record(Event &event) { check(greta_event_record(event.get(), get())); }
  void wait(Event &event) {
    check(greta_stream_wait_event(get(), event.get()));
  }
  void flush() { check(greta_stream_flush(get())); }
  // Starts nothing before the next flush or wait, and then all at once.
  void hold() { check(greta_stream_hold(get())); }
  void synchronize() { check(greta_stream_synchronize(get())); }
  // Returns whether all that was queued is done, without waiting.
  bool isDone() {
    int done = 0;
    check(greta_stream_query(get(), &done));
    return done != 0;
  }
  // Calls `body` when what was queued before is done, and what is queued behind
  // it waits for that.
  template <typename Body> void callHost(Body body) {
    auto owned = std::make_unique<Body>(std::move(body));
    check(greta_stream_call_host(
        get(),
        [](void *data) {
          (*std::unique_ptr<Body>(static_cast<Body *>(data)))();
        },
        owned.get()));
    owned.release();
  }
  // Records the calls that `body` queues on this stream instead of running
  // them.
  template <typename Body> Graph capture(Body body) {
    check(greta_graph_begin(get()));
    greta_graph *graph = nullptr;
    try {
      body();
    } catch (...) {
      if (greta_graph_end(get(), &graph) == GRETA_OK)
        greta_graph_destroy(graph);
      throw;
    }
    check(greta_graph_end(get(), &graph));
    return Graph(graph);
  }
  void launch(const Graph &graph) {
    check(greta_graph_launch(graph.get(), get()));
  }
  // Makes graphs by itself of calls that repeat between two waits.
  void autoGraph(bool on) { check(greta_stream_set_auto_graph(get(), on)); }
  uint64_t replayed() const { return greta_stream_replayed(get()); }
  void profile(bool on) { check(greta_stream_set_profiling(get(), on)); }
  // Returns (kernel, microseconds) of each launch since profiling was turned on
  // or this was last called.
  std::vector<std::pair<std::string, double>> times() {
    size_t count = 0;
    check(greta_stream_times(get(), nullptr, &count));
    std::vector<greta_kernel_time> raw(count +
                                       1); // a null pointer would only count
    check(greta_stream_times(get(), raw.data(), &count));
    std::vector<std::pair<std::string, double>> result;
    for (size_t i = 0; i < count; ++i)
      result.emplace_back(raw[i].kernel, raw[i].microseconds);
    return result;
  }

private:
  detail::Handle<greta_stream, greta_stream_destroy> handle_;
};

// One rank of a communicator. Buffers begin at their first byte.
class Comm {
public:
  explicit Comm(greta_comm *handle) : handle_(handle) {}
  static greta_comm_id uniqueId() {
    greta_comm_id id;
    check(greta_comm_unique_id(&id));
    return id;
  }
  // For a rank that does not come; `options` needs no size of its own.
  static void decline(greta_comm_options options, const std::string &reason) {
    options.struct_size = sizeof(options);
    check(greta_comm_decline(&options, reason.c_str()));
  }
  greta_comm *get() const { return handle_.get(); }
  void allReduce(Stream &stream, const Buffer &to, const Buffer &from,
                 size_t count, const char *dtype,
                 greta_comm_reduction reduction = GRETA_COMM_SUM) {
    check(greta_comm_all_reduce(get(), stream.get(), to.get(), 0, from.get(), 0,
                                count, dtype, reduction));
  }
  void reduceScatter(Stream &stream, const Buffer &to, const Buffer &from,
                     size_t count, const char *dtype,
                     greta_comm_reduction reduction = GRETA_COMM_SUM) {
    check(greta_comm_reduce_scatter(get(), stream.get(), to.get(), 0,
                                    from.get(), 0, count, dtype, reduction));
  }
  void allGather(Stream &stream, const Buffer &to, const Buffer &from,
                 size_t bytes) {
    check(greta_comm_all_gather(get(), stream.get(), to.get(), 0, from.get(), 0,
                                bytes));
  }
  void broadcast(Stream &stream, const Buffer &to, const Buffer &from,
                 size_t bytes, uint32_t root) {
    check(greta_comm_broadcast(get(), stream.get(), to.get(), 0, from.get(), 0,
                               bytes, root));
  }
  void allToAll(Stream &stream, const Buffer &to, const Buffer &from,
                size_t bytes) {
    check(greta_comm_all_to_all(get(), stream.get(), to.get(), 0, from.get(), 0,
                                bytes));
  }
  void send(Stream &stream, const Buffer &from, size_t bytes, uint32_t peer) {
    check(greta_comm_send(get(), stream.get(), from.get(), 0, bytes, peer));
  }
  void receive(Stream &stream, const Buffer &to, size_t bytes, uint32_t peer) {
    check(greta_comm_receive(get(), stream.get(), to.get(), 0, bytes, peer));
  }
  void exchange(Stream &stream,
                const std::vector<greta_comm_transfer> &transfers) {
    check(greta_comm_exchange(get(), stream.get(), transfers.data(),
                              transfers.size()));
  }
  void abort() { check(greta_comm_abort(get())); }
  void fail(const std::string &reason) {
    check(greta_comm_fail(get(), reason.c_str()));
  }
  std::string info() const {
    return detail::text([&](char **s) { return greta_comm_info(get(), s); });
  }

private:
  detail::Handle<greta_comm, greta_comm_destroy> handle_;
};

class Package {
public:
  explicit Package(const std::string &path) {
    greta_package *handle = nullptr;
    check(greta_package_open(path.c_str(), &handle));
    handle_.reset(handle);
  }
  Package(const void *data, size_t bytes) {
    greta_package *handle = nullptr;
    check(greta_package_from_memory(data, bytes, &handle));
    handle_.reset(handle);
  }
  // Opens the package of common functions, which lies beside the library.
  static Package shipped() {
    greta_package *handle = nullptr;
    check(greta_package_open_shipped(&handle));
    return Package(handle);
  }
  greta_package *get() const { return handle_.get(); }
  std::string manifest() const { return greta_package_manifest(get()); }
  std::vector<std::string> functions() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < greta_package_function_count(get()); ++i)
      names.push_back(greta_package_function_name(get(), i));
    return names;
  }

private:
  explicit Package(greta_package *handle) : handle_(handle) {}
  detail::Handle<greta_package, greta_package_destroy> handle_;
};

// Holds a tensor in a buffer, or the value of a scalar argument.
struct Tensor {
  Tensor() = default;
  Tensor(const Buffer *buffer, std::vector<int64_t> shape, size_t offset = 0)
      : buffer(buffer), shape(std::move(shape)), offset(offset) {}
  static Tensor scalar(int32_t value) { return holding(value); }
  static Tensor scalar(int64_t value) { return holding(value); }
  static Tensor scalar(float value) { return holding(value); }
  // Holds a value of any other type by its bits, in the lowest ones.
  static Tensor scalarBits(uint64_t bits) { return holding(bits); }
  greta_tensor raw() const {
    if (isScalar)
      return {nullptr, 0, nullptr, 0, value.data()};
    return {buffer ? buffer->get() : nullptr, offset, shape.data(),
            static_cast<uint32_t>(shape.size()), nullptr};
  }

  const Buffer *buffer = nullptr;
  std::vector<int64_t> shape;
  size_t offset = 0;
  bool isScalar = false;
  std::array<char, 8> value = {};

private:
  template <typename T> static Tensor holding(T value) {
    Tensor tensor;
    tensor.isScalar = true;
    std::memcpy(tensor.value.data(), &value, sizeof(value));
    return tensor;
  }
};

struct TensorInfo {
  std::string name, dtype, access;
  std::vector<int64_t> shape; // -1: dynamic
  bool isScalar;
  int tied; // the argument that a result begins as, or -1
};

class Function {
public:
  explicit Function(greta_function *handle) : handle_(handle) {}
  greta_function *get() const { return handle_.get(); }
  std::string variant() const { return greta_function_variant(get()); }
  std::vector<TensorInfo> arguments() const {
    return describe(greta_function_argument_count(get()),
                    greta_function_argument);
  }
  std::vector<TensorInfo> results() const {
    return describe(greta_function_result_count(get()), greta_function_result);
  }
  // Returns shape and bytes of a result; the arguments need no buffers.
  std::pair<std::vector<int64_t>, size_t>
  resultShape(size_t index, const std::vector<Tensor> &arguments) const {
    std::vector<greta_tensor> raw = rawTensors(arguments);
    auto info = detail::sized<greta_tensor_info>();
    check(greta_function_result(get(), index, &info));
    std::vector<int64_t> shape(info.rank);
    size_t bytes = 0;
    check(greta_function_result_shape(get(), raw.data(), raw.size(), index,
                                      shape.data(), &bytes));
    return {std::move(shape), bytes};
  }
  // Sets the ranks that a function with greta.all_reduce sums over.
  void setComm(const Comm &comm) {
    check(greta_function_set_comm(get(), comm.get()));
  }
  bool sums() const { return greta_function_sums(get()); }
  void launch(Stream &stream, const std::vector<Tensor> &arguments,
              const std::vector<Tensor> &results) const {
    std::vector<greta_tensor> a = rawTensors(arguments),
                              r = rawTensors(results);
    check(greta_function_launch(get(), stream.get(), a.data(), a.size(),
                                r.data(), r.size()));
  }
  std::string statistics() const {
    return detail::text(
        [&](char **s) { return greta_function_statistics(get(), s); });
  }

private:
  template <typename Query>
  std::vector<TensorInfo> describe(size_t count, Query query) const {
    std::vector<TensorInfo> all;
    for (size_t i = 0; i < count; ++i) {
      auto info = detail::sized<greta_tensor_info>();
      check(query(get(), i, &info));
      all.push_back({info.name,
                     info.dtype,
                     info.access,
                     {info.shape, info.shape + info.rank},
                     info.is_scalar != 0,
                     info.tied});
    }
    return all;
  }
  static std::vector<greta_tensor>
  rawTensors(const std::vector<Tensor> &tensors) {
    std::vector<greta_tensor> raw;
    for (const Tensor &t : tensors)
      raw.push_back(t.raw());
    return raw;
  }
  detail::Handle<greta_function, greta_function_destroy> handle_;
};

// An opened device.
class Runtime {
public:
  explicit Runtime(const std::string &device = "") {
    greta_device *handle = nullptr;
    check(greta_device_open(device.c_str(), &handle));
    handle_.reset(handle);
  }
  explicit Runtime(const greta_vulkan_device &own) {
    greta_device *handle = nullptr;
    check(greta_device_adopt_vulkan(&own, &handle));
    handle_.reset(handle);
  }
  static std::string devices() { return detail::text(greta_device_list); }
  greta_device *get() const { return handle_.get(); }
  std::string info() const {
    return detail::text([&](char **s) { return greta_device_info(get(), s); });
  }
  std::string checkHealth() const {
    return detail::text([&](char **s) { return greta_device_check(get(), s); });
  }
  greta_memory memory() const {
    auto memory = detail::sized<greta_memory>();
    check(greta_device_memory(get(), &memory));
    return memory;
  }
  void trim() const { check(greta_device_trim(get())); }
  // Closes the device now and throws what the validation layer complained of.
  void close() { check(greta_device_close(handle_.release())); }
  Buffer allocate(size_t bytes) const {
    greta_buffer *handle = nullptr;
    check(greta_buffer_create(get(), bytes, &handle));
    return Buffer(handle);
  }
  Buffer allocateMapped(size_t bytes) const {
    greta_buffer *handle = nullptr;
    check(greta_buffer_create_mapped(get(), bytes, &handle));
    return Buffer(handle);
  }
  Buffer allocateShared(greta_fd_kind kind, size_t bytes) const {
    greta_buffer *handle = nullptr;
    check(greta_buffer_create_shared(get(), kind, bytes, &handle));
    return Buffer(handle);
  }
  Buffer import(void *pointer, size_t bytes) const {
    greta_buffer *handle = nullptr;
    check(greta_buffer_import_pointer(get(), pointer, bytes, &handle));
    return Buffer(handle);
  }
  // Takes a tensor of DLPack; returns the buffer and where it begins there.
  std::pair<Buffer, size_t> importDLPack(DLManagedTensor *tensor) const {
    greta_buffer *handle = nullptr;
    size_t offset = 0;
    check(greta_buffer_import_dlpack(get(), tensor, &handle, &offset));
    return {Buffer(handle), offset};
  }
  // Imports the memory and takes over the descriptor.
  Buffer importFd(const greta_shared_memory &memory) const {
    greta_buffer *handle = nullptr;
    check(greta_buffer_import_fd(get(), &memory, &handle));
    return Buffer(handle);
  }
  Stream stream() const {
    greta_stream *handle = nullptr;
    check(greta_stream_create(get(), &handle));
    return Stream(handle);
  }
  Event event() const {
    greta_event *handle = nullptr;
    check(greta_event_create(get(), &handle));
    return Event(handle);
  }
  // Makes one rank; all ranks have to. `options` needs no size of its own.
  Comm comm(greta_comm_options options) const {
    options.struct_size = sizeof(options);
    greta_comm *handle = nullptr;
    check(greta_comm_create(get(), &options, &handle));
    return Comm(handle);
  }
  Function load(const Package &package, const std::string &name,
                const std::string &variant = "", uint32_t flags = 0) const {
    greta_function *handle = nullptr;
    check(greta_function_load(get(), package.get(), name.c_str(),
                              variant.empty() ? nullptr : variant.c_str(),
                              flags, &handle));
    return Function(handle);
  }
  std::string variants(const Package &package, const std::string &name) const {
    return detail::text([&](char **s) {
      return greta_function_variants(get(), package.get(), name.c_str(), s);
    });
  }

private:
  struct Close {
    void operator()(greta_device *device) const { greta_device_close(device); }
  };
  std::unique_ptr<greta_device, Close> handle_;
};

// Runs operations by name and shape, from a package made ahead or the one that
// is shipped with the runtime. Each is one function of the package, loaded at
// first use: the one of the name, or else the first of the names that go on
// with '_' whose arguments have these shapes ("rms_norm", [8, 4096] and [4096]:
// rms_norm_f16_4096).
class Compute {
public:
  Compute(const Runtime &runtime, const Package &package)
      : runtime_(runtime), package_(package) {}
  explicit Compute(const Runtime &runtime)
      : runtime_(runtime), shipped_(new Package(Package::shipped())),
        package_(*shipped_) {}

  // Computes c = a x b.
  void gemm(Stream &stream, const Tensor &a, const Tensor &b, const Tensor &c,
            const std::string &function = "matmul") {
    call(stream, function, {a, b}, {c});
  }
  void attention(Stream &stream, const Tensor &q, const Tensor &k,
                 const Tensor &v, const Tensor &out,
                 const std::string &function = "attention") {
    call(stream, function, {q, k, v}, {out});
  }
  void norm(Stream &stream, const Tensor &x, const Tensor &weight,
            const Tensor &out, const std::string &function = "rms_norm") {
    call(stream, function, {x, weight}, {out});
  }
  void call(Stream &stream, const std::string &function,
            const std::vector<Tensor> &arguments,
            const std::vector<Tensor> &results) {
    find(function, arguments).launch(stream, arguments, results);
  }
  // Returns the function that `call` launches.
  const Function &find(const std::string &function,
                       const std::vector<Tensor> &arguments) {
    std::vector<greta_tensor> raw;
    for (const Tensor &argument : arguments)
      raw.push_back(argument.raw());
    const char *name = nullptr;
    check(greta_package_find(package_.get(), function.c_str(), raw.data(),
                             raw.size(), &name));
    auto it = loaded_.find(name);
    if (it == loaded_.end())
      it = loaded_.emplace(name, runtime_.load(package_, name)).first;
    return it->second;
  }

private:
  const Runtime &runtime_;
  std::unique_ptr<const Package> shipped_; // null if package_ is another
  const Package &package_;
  std::map<std::string, Function> loaded_;
};

} // namespace greta
#endif
