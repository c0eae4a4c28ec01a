//===- Backend.cpp - allocators, guard, generator and hooks for torch -----===//
//
// In: torch's calls for the device type PrivateUse1. Out: memory, streams,
// events and random numbers of the devices in Devices.h.
//
//===----------------------------------------------------------------------===//

#include "CallPlan.h"
#include "Devices.h"
#include "Generator.h"
#include "Profiler.h"
#include "Tensors.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <atomic>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <random>
#include <thread>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/profiler/stubs/base.h>

using namespace greta;
using namespace greta::torch_device;
using c10::DeviceIndex;

//
// Memory
//

namespace {

class Allocator final : public c10::DeviceAllocator {
public:
  c10::DataPtr allocate(size_t bytes) override {
    DeviceIndex index = currentDevice();
    c10::Device place(deviceType, index);
    if (!bytes)
      return {nullptr, nullptr, &release, place};
    Block *block = device(index).allocate(bytes, currentStream(index));
    PlanRecorder::made(block, bytes);
    return dataOf(block);
  }

  bool initialized() override { return deviceCount() > 0; }
  void emptyCache(c10::MempoolId_t) override {
    for (DeviceIndex i = 0; i < deviceCount(); ++i)
      device(i).emptyCache();
  }
  void recordStream(const c10::DataPtr &data, c10::Stream stream) override {
    Block *block = torch_device::blockOf(data);
    if (!block && data.get()) // a graph lent the memory
      block = device(data.device().index())
                  .blockOf(reinterpret_cast<uint64_t>(data.get()));
    if (block)
      block->usedBy(stream.id());
  }
  c10::CachingDeviceAllocator::DeviceStats
  getDeviceStats(DeviceIndex index) override {
    return device(index).stats();
  }
  void resetAccumulatedStats(DeviceIndex index) override {
    device(index).resetStats(/*peaks=*/false);
  }
  void resetPeakStats(DeviceIndex index) override {
    device(index).resetStats(/*peaks=*/true);
  }
  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex index) override {
    greta_memory now = device(index).memory();
    // Some drivers do not say what is left.
    return {now.free ? now.free : now.total - now.reserved, now.total};
  }
  void copy_data(void *to, const void *from, size_t bytes) const override {
    DeviceIndex index = currentDevice();
    Block *target = device(index).blockOf(reinterpret_cast<uint64_t>(to));
    Block *source = device(index).blockOf(reinterpret_cast<uint64_t>(from));
    TORCH_CHECK(target && source, "copies of storages are between tensors of "
                                  "one device rdna, the one in use");
    for (Block *block : {target, source})
      block->usedBy(currentStream(index));
    currentQueue(index).run([&](Stream &stream) {
      check(greta_buffer_copy(
          stream.get(), target->buffer.get(),
          reinterpret_cast<uint64_t>(to) - target->address,
          source->buffer.get(),
          reinterpret_cast<uint64_t>(from) - source->address, bytes));
    });
  }

  static void release(void *context) {
    if (auto *block = static_cast<Block *>(context))
      device(block->device).release(block);
  }
};

class PinnedAllocator final : public at::HostAllocator {
public:
  c10::DataPtr allocate(size_t bytes) override {
    void *memory = allocatePinned(bytes);
    return {memory, memory, &releasePinned, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &releasePinned; }
  void copy_data(void *to, const void *from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
  // The runtime keeps memory that unfinished work uses.
  bool record_event(void *, void *, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

Allocator allocator;
PinnedAllocator pinnedAllocator;

//
// Streams and events
//

struct TimedEvent {
  Event event;
  DeviceIndex device;
};

class Guard final : public c10::impl::DeviceGuardImplInterface {
public:
  c10::DeviceType type() const override { return deviceType; }
  c10::Device exchangeDevice(c10::Device to) const override {
    c10::Device before = getDevice();
    setDevice(to);
    return before;
  }
  c10::Device getDevice() const override {
    return {deviceType, currentDevice()};
  }
  void setDevice(c10::Device to) const override {
    if (to.index() >= 0)
      setCurrentDevice(to.index());
  }
  void uncheckedSetDevice(c10::Device to) const noexcept override {
    if (to.index() >= 0 && to.index() < torch_device::deviceCount())
      setCurrentDevice(to.index());
  }
  DeviceIndex deviceCount() const noexcept override {
    return torch_device::deviceCount();
  }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    return {};
  }

  c10::Stream getStream(c10::Device of) const noexcept override {
    return make(of, currentStream(of.index()));
  }
  c10::Stream getDefaultStream(c10::Device of) const override {
    return make(of, 0);
  }
  c10::Stream getNewStream(c10::Device of, int) const override {
    return make(of, device(of.index()).makeStream());
  }
  c10::Stream getStreamFromGlobalPool(c10::Device of, bool) const override {
    return make(of, device(of.index()).makeStream());
  }
  c10::Stream exchangeStream(c10::Stream to) const noexcept override {
    return make(to.device(),
                torch_device::exchangeStream(to.device_index(), to.id()));
  }
  void *getStreamNativeHandle(const c10::Stream of) const override {
    return queueOf(of).stream.get();
  }
  bool queryStream(const c10::Stream &of) const override {
    return queueOf(of).run([](Stream &stream) { return stream.isDone(); });
  }
  void synchronizeStream(const c10::Stream &of) const override {
    queueOf(of).run([](Stream &stream) { stream.synchronize(); });
  }
  void synchronizeDevice(const DeviceIndex index) const override {
    device(index).synchronize();
  }

  void record(void **event, const c10::Stream &on, const DeviceIndex,
              const c10::EventFlag) const override {
    auto &made = *reinterpret_cast<TimedEvent **>(event);
    if (!made)
      made = new TimedEvent{device(on.device_index()).runtime().event(),
                            on.device_index()};
    queueOf(on).run([&](Stream &stream) { stream.record(made->event); });
  }
  void destroyEvent(void *event, const DeviceIndex) const noexcept override {
    delete static_cast<TimedEvent *>(event);
  }
  void block(void *event, const c10::Stream &on) const override {
    auto *awaited = static_cast<TimedEvent *>(event);
    if (!awaited)
      return;
    if (awaited->device != on.device_index())
      awaited->event.synchronize(); // devices cannot wait for others' events
    else
      queueOf(on).run([&](Stream &stream) { stream.wait(awaited->event); });
  }
  bool queryEvent(void *event) const override {
    auto *asked = static_cast<TimedEvent *>(event);
    return !asked || asked->event.wait(0);
  }
  void synchronizeEvent(void *event) const override {
    if (auto *awaited = static_cast<TimedEvent *>(event))
      awaited->event.synchronize();
  }
  double elapsedTime(void *from, void *to, const DeviceIndex) const override {
    TORCH_CHECK(from && to, "both events have to be recorded");
    return static_cast<TimedEvent *>(to)->event.since(
               static_cast<TimedEvent *>(from)->event) /
           1000;
  }
  void recordDataPtrOnStream(const c10::DataPtr &data,
                             const c10::Stream &stream) const override {
    allocator.recordStream(data, stream);
  }

private:
  static c10::Stream make(c10::Device of, int64_t id) {
    DeviceIndex index = of.index() < 0 ? currentDevice() : of.index();
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(deviceType, index), id);
  }
  static Queue &queueOf(const c10::Stream &of) {
    return device(of.device_index()).queue(of.id());
  }
};

} // namespace

c10::Allocator *torch_device::storageAllocator() { return &allocator; }

Block *torch_device::blockOf(const c10::DataPtr &data) {
  return data.get_deleter() == &Allocator::release
             ? static_cast<Block *>(data.get_context())
             : nullptr;
}

c10::DataPtr torch_device::dataOf(Block *block) {
  return {reinterpret_cast<void *>(block->address), block, &Allocator::release,
          c10::Device(deviceType, block->device)};
}

//
// Random numbers
//

PhiloxGenerator::PhiloxGenerator(DeviceIndex index)
    : c10::GeneratorImpl(
          c10::Device(deviceType, index < 0 ? currentDevice() : index),
          c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

void PhiloxGenerator::set_current_seed(uint64_t to) {
  seedInUse = to;
  offset = 0;
}

uint64_t PhiloxGenerator::seed() {
  std::random_device source;
  set_current_seed((uint64_t(source()) << 32 | source()) &
                   0x1fffffffffffff); // the largest integer of a double
  return seedInUse;
}

uint64_t PhiloxGenerator::take(uint64_t numbers) {
  uint64_t first = offset;
  offset += stepOf(numbers);
  return first;
}

c10::intrusive_ptr<c10::TensorImpl> PhiloxGenerator::get_state() const {
  auto state = at::detail::empty_cpu({16}, c10::kByte, std::nullopt,
                                     std::nullopt, std::nullopt, std::nullopt);
  auto *words = static_cast<uint64_t *>(
      state.storage().mutable_data()); // aligned to 64 bytes
  words[0] = seedInUse;
  words[1] = offset;
  return state.getIntrusivePtr();
}

void PhiloxGenerator::set_state(const c10::TensorImpl &state) {
  TORCH_CHECK(state.numel() == 16 && state.dtype() == c10::kByte &&
                  state.device().is_cpu() && state.is_contiguous(),
              "the state of a generator of rdna is 16 bytes on the CPU");
  const auto *bytes = static_cast<const char *>(state.data());
  std::memcpy(&seedInUse, bytes, 8);
  std::memcpy(&offset, bytes + 8, 8);
}

PhiloxGenerator *PhiloxGenerator::clone_impl() const {
  auto *copy = new PhiloxGenerator(device().index());
  copy->seedInUse = seedInUse;
  copy->offset = offset;
  return copy;
}

//
// Hooks
//

namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return torch_device::deviceCount() > 0; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override {
    return torch_device::deviceCount();
  }
  void setCurrentDevice(DeviceIndex index) const override {
    torch_device::setCurrentDevice(index);
  }
  DeviceIndex getCurrentDevice() const override { return currentDevice(); }
  DeviceIndex exchangeDevice(DeviceIndex index) const override {
    DeviceIndex before = currentDevice();
    torch_device::setCurrentDevice(index);
    return before;
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override {
    return index < 0 ? currentDevice() : exchangeDevice(index);
  }
  c10::Allocator *getPinnedMemoryAllocator() const override {
    return &pinnedAllocator;
  }
  bool isPinnedPtr(const void *pointer) const override {
    return pinnedOf(pointer) != nullptr;
  }
  c10::Device getDeviceFromPtr(void *pointer) const override {
    for (DeviceIndex i = 0; i < torch_device::deviceCount(); ++i)
      if (device(i).blockOf(reinterpret_cast<uint64_t>(pointer)))
        return {deviceType, i};
    TORCH_CHECK(false, pointer, " is no memory of a device rdna");
  }
  const at::Generator &getDefaultGenerator(DeviceIndex index) const override {
    return torch_device::defaultGenerator(index);
  }
  at::Generator getNewGenerator(DeviceIndex index) const override {
    return at::make_generator<PhiloxGenerator>(index);
  }
  void resizePrivateUse1Bytes(const c10::Storage &storage,
                              size_t bytes) const override {
    resizeStorage(storage, bytes);
  }
};

} // namespace

const at::Generator &torch_device::defaultGenerator(DeviceIndex index) {
  static auto *all = [] {
    auto *made = new std::vector<at::Generator>;
    for (DeviceIndex i = 0; i < torch_device::deviceCount(); ++i) {
      made->push_back(at::make_generator<PhiloxGenerator>(i));
      made->back().seed();
    }
    return made;
  }();
  return all->at(index < 0 ? currentDevice() : index);
}

void torch_device::resizeStorage(const c10::Storage &storage, size_t bytes) {
  PlanRecorder::didMore();
  c10::DeviceGuard guard(storage.device());
  c10::DataPtr grown = allocator.allocate(bytes);
  if (size_t kept = std::min(bytes, storage.nbytes()))
    allocator.copy_data(grown.mutable_get(), storage.data(), kept);
  c10::StorageImpl *of = storage.unsafeGetStorageImpl();
  of->set_data_ptr_noswap(std::move(grown));
  of->set_nbytes(bytes);
}

//
// Profiles
//

namespace {

/// torch.profiler marks the begin and the end of each operator in the stream,
/// and asks for the time between them.
class ProfilerEvents final : public torch::profiler::impl::ProfilerStubs {
public:
  void record(DeviceIndex *on, std::shared_ptr<void> *event,
              int64_t *hostTime) const override {
    DeviceIndex index = currentDevice();
    auto made = std::make_shared<TimedEvent>(
        TimedEvent{device(index).runtime().event(), index});
    currentQueue(index).run(
        [&](Stream &stream) { stream.record(made->event); });
    if (on)
      *on = index;
    if (hostTime)
      *hostTime = c10::getTime();
    *event = std::move(made);
  }
  float elapsed(const std::shared_ptr<void> *from,
                const std::shared_ptr<void> *to) const override {
    auto *begin = static_cast<TimedEvent *>(from->get());
    auto *end = static_cast<TimedEvent *>(to->get());
    end->event.synchronize();
    return static_cast<float>(end->event.since(begin->event)); // microseconds
  }
  void mark(const char *) const override {}
  void rangePush(const char *) const override {}
  void rangePop() const override {}
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)> work) const override {
    for (DeviceIndex i = 0; i < torch_device::deviceCount(); ++i)
      work(i);
  }
  void synchronize() const override {
    for (DeviceIndex i = 0; i < torch_device::deviceCount(); ++i)
      device(i).synchronize();
  }
};

} // namespace

void torch_device::registerBackend() {
  c10::SetAllocator(deviceType, &allocator);
  at::setHostAllocator(deviceType, &pinnedAllocator);
  static Guard guard;
  c10::impl::DeviceGuardImplRegistrar registrar(deviceType, &guard);
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  static ProfilerEvents events;
  torch::profiler::impl::registerPrivateUse1Methods(&events);
  registerProfiler();
}

//
// Autograd
//

namespace {

using torch::autograd::Engine;
using torch::autograd::ReadyQueue;

/// Gives access to protected members of torch's engine.
struct EngineState : Engine {
  static bool hasStarted(Engine &engine) {
    return (engine.*&EngineState::thread_pool_shared_) != nullptr;
  }
  static std::vector<std::shared_ptr<ReadyQueue>> &queues(Engine &engine) {
    return engine.*&EngineState::device_ready_queues_;
  }
};

} // namespace

void torch_device::joinAutograd() {
  Engine &engine = Engine::get_default_engine();
  // A start that comes later sees the devices.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!EngineState::hasStarted(engine))
    return;
  engine.initialize_device_threads_pool(); // waits for a start in progress
  auto &queues = EngineState::queues(engine);
  size_t known = queues.size(), all = torch_device::deviceCount();
  if (known >= all)
    return;
  // The engine reads the list without a lock, for devices of other types, so
  // the list that it found before the swap is never freed.
  auto grown = queues;
  while (grown.size() < all)
    grown.push_back(std::make_shared<ReadyQueue>());
  for (size_t i = known; i < all; ++i)
    std::thread([&engine, i, queue = grown[i]] {
      engine.thread_init(static_cast<int>(i), queue,
                         /*should_increment=*/true);
    }).detach();
  grown.swap(queues);
  new std::vector<std::shared_ptr<ReadyQueue>>(std::move(grown)); // never freed
}
