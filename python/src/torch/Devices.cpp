//===- Devices.cpp - memory, streams and counters of torch's devices ------===//
//
// In: requests for memory and streams by torch's device index. Out: buffers
// and streams of the runtime (Devices.h).
//
//===----------------------------------------------------------------------===//

#include "Devices.h"

#include <atomic>
#include <c10/util/Exception.h>
#include <pthread.h>
#include <sstream>

using namespace greta;
using namespace greta::torch_device;
using c10::CachingAllocator::StatType;

namespace {

/// Counts how often this process and its ancestors were forked.
std::atomic<int> forks = 0;

std::vector<std::unique_ptr<torch_device::Device>> &allDevices() {
  // Never destroyed: tensors may outlive the module's other globals.
  static auto *all = new std::vector<std::unique_ptr<torch_device::Device>>;
  return *all;
}
OpenDevice &openDevice = *new OpenDevice; // never destroyed, either
thread_local c10::DeviceIndex inUse = 0;
thread_local std::vector<int64_t> streamsInUse;

/// Rounds up to eighths of a power of two, so that memory of nearly this size
/// is found again and at most an eighth is lost.
size_t roundedSize(size_t bytes) {
  constexpr size_t smallest = 512;
  if (bytes <= smallest)
    return smallest;
  size_t step = smallest;
  while (step * 16 <= bytes)
    step *= 2;
  return (bytes + step - 1) / step * step;
}

void count(c10::CachingAllocator::StatArray &stat, int64_t amount) {
  auto &all = stat[static_cast<size_t>(StatType::AGGREGATE)];
  if (amount >= 0)
    all.increase(amount);
  else
    all.decrease(-amount);
}

std::string inWords(double bytes) {
  std::ostringstream text;
  text.precision(2);
  text << std::fixed;
  if (bytes >= 1 << 30)
    text << bytes / (1 << 30) << " GiB";
  else
    text << bytes / (1 << 20) << " MiB";
  return text.str();
}

} // namespace

//
// Devices
//

void torch_device::configure(const std::vector<std::string> &specs,
                             OpenDevice open) {
  openDevice = std::move(open);
  pthread_atfork(nullptr, nullptr, [] { ++forks; });
  for (const std::string &spec : specs)
    allDevices().push_back(std::make_unique<torch_device::Device>(
        spec, static_cast<c10::DeviceIndex>(allDevices().size())));
}

c10::DeviceIndex torch_device::deviceCount() noexcept {
  return static_cast<c10::DeviceIndex>(allDevices().size());
}

torch_device::Device &torch_device::device(c10::DeviceIndex index) {
  if (index < 0)
    index = inUse;
  TORCH_CHECK(index < deviceCount(), "there is no device rdna:", int(index),
              "; there are ", int(deviceCount()));
  return *allDevices()[index];
}

c10::DeviceIndex torch_device::currentDevice() noexcept { return inUse; }

void torch_device::setCurrentDevice(c10::DeviceIndex index) {
  TORCH_CHECK(index >= 0 && index < deviceCount(),
              "there is no device rdna:", int(index), "; there are ",
              int(deviceCount()));
  inUse = index;
}

int64_t torch_device::currentStream(c10::DeviceIndex index) noexcept {
  size_t i = index < 0 ? inUse : index;
  return i < streamsInUse.size() ? streamsInUse[i] : 0;
}

int64_t torch_device::exchangeStream(c10::DeviceIndex index,
                                     int64_t stream) noexcept {
  size_t i = index < 0 ? inUse : index;
  if (i >= streamsInUse.size())
    streamsInUse.resize(i + 1);
  return std::exchange(streamsInUse[i], stream);
}

const Runtime &torch_device::Device::runtime() {
  {
    std::lock_guard<std::mutex> guard(lock);
    TORCH_CHECK(!opened || forksBefore == forks, "rdna:", int(index),
                " is of the process that this one was forked from; use the "
                "start method 'spawn' for processes that use the device");
    if (opened)
      return *opened;
  }
  auto made = openDevice(spec);
  std::lock_guard<std::mutex> guard(lock);
  if (!opened) {
    forksBefore = forks;
    opened = std::move(made);
    for (int64_t stream : {int64_t(0), ownStream})
      queues.insert(queues.begin() + stream,
                    std::make_unique<Queue>(opened->stream()));
  }
  return *opened;
}

Queue &torch_device::Device::queue(int64_t stream) {
  runtime();
  std::lock_guard<std::mutex> guard(lock);
  TORCH_CHECK(stream >= 0 && size_t(stream) < queues.size(),
              "rdna:", int(index), " has no stream ", stream);
  return *queues[stream];
}

int64_t torch_device::Device::makeStream() {
  // Streams come from a pool and are given again, as on torch's other devices.
  constexpr size_t most = 32;
  {
    std::lock_guard<std::mutex> guard(lock);
    if (pool.size() >= most)
      return pool[nextOfPool++ % most];
  }
  int64_t stream = reserveStream();
  std::lock_guard<std::mutex> guard(lock);
  pool.push_back(stream);
  return stream;
}

int64_t torch_device::Device::reserveStream() {
  const Runtime &opened = runtime();
  std::lock_guard<std::mutex> guard(lock);
  if (!released.empty()) {
    int64_t stream = released.back();
    released.pop_back();
    return stream;
  }
  queues.push_back(std::make_unique<Queue>(opened.stream()));
  return static_cast<int64_t>(queues.size()) - 1;
}

void torch_device::Device::releaseStream(int64_t stream) {
  std::lock_guard<std::mutex> guard(lock);
  released.push_back(stream);
}

size_t torch_device::Device::streamCount() {
  std::lock_guard<std::mutex> guard(lock);
  return queues.size();
}

void torch_device::Device::synchronize() {
  std::string failures;
  greta_status status = GRETA_OK;
  for (size_t i = 0, count = streamCount(); i < count; ++i)
    try {
      queue(i).run([](Stream &stream) { stream.synchronize(); });
    } catch (const Error &error) {
      status = status == GRETA_OK ? error.status() : status;
      failures += (failures.empty() ? "" : "; ") + std::string(error.what());
    }
  if (status != GRETA_OK)
    throw Error(status, failures.c_str());
}

//
// Memory
//

std::shared_ptr<GraphMemory> torch_device::Device::beginCapture(int64_t stream,
                                                                uint64_t id) {
  static std::atomic<uint64_t> newest = 0;
  std::lock_guard<std::mutex> guard(lock);
  auto known = graphs.find(id);
  auto memory = known == graphs.end() ? nullptr : known->second.lock();
  if (!memory) {
    memory = std::make_shared<GraphMemory>(GraphMemory{++newest, {}});
    graphs[memory->id] = memory;
  }
  return captures[stream] = memory;
}

void torch_device::Device::endCapture(int64_t stream) {
  std::lock_guard<std::mutex> guard(lock);
  captures.erase(stream);
}

bool torch_device::Device::isCapturing(int64_t stream) {
  std::lock_guard<std::mutex> guard(lock);
  return captures.count(stream);
}

Buffer torch_device::Device::take(size_t bytes, int64_t stream,
                                  size_t requested, GraphMemory *graph) {
  if (graph) {
    std::lock_guard<std::mutex> guard(lock);
    std::vector<Buffer> &left = graph->left[bytes];
    if (!left.empty()) {
      Buffer buffer = std::move(left.back());
      left.pop_back();
      return buffer;
    }
  } else {
    std::lock_guard<std::mutex> guard(lock);
    auto bin = bins.find({stream, bytes});
    if (bin != bins.end()) {
      Buffer buffer = std::move(bin->second.back());
      bin->second.pop_back();
      if (bin->second.empty())
        bins.erase(bin);
      return buffer;
    }
  }
  // The first refusal frees unused memory, and the second one is final.
  for (int attempt = 0;; ++attempt) {
    greta_buffer *handle = nullptr;
    greta_status status = greta_buffer_create(runtime().get(), bytes, &handle);
    if (status == GRETA_OK) {
      ++counters.num_device_alloc;
      return Buffer(handle);
    }
    std::string message = greta_last_error();
    // A size beyond any memory of the device is refused as an argument.
    if (status != GRETA_ERROR_OUT_OF_MEMORY && bytes < size_t(1) << 30)
      throw Error(status, message.c_str());
    if (attempt == 0) {
      ++counters.num_alloc_retries;
      emptyCache();
      continue;
    }
    ++counters.num_ooms;
    TORCH_CHECK_WITH(OutOfMemoryError, false, "rdna:", int(index), " (", spec,
                     ") is out of memory: a tensor of ", inWords(requested),
                     " was asked for. ", memorySummary(),
                     " The runtime says: ", message);
  }
}

Block *torch_device::Device::allocate(size_t bytes, int64_t stream) {
  size_t rounded = roundedSize(bytes);
  TORCH_CHECK_WITH(OutOfMemoryError, rounded >= bytes, "rdna:", int(index),
                   ": a tensor of ", bytes, " bytes was asked for");
  queue(stream);
  std::shared_ptr<GraphMemory> graph;
  {
    std::lock_guard<std::mutex> guard(lock);
    auto capture = captures.find(stream);
    if (capture != captures.end())
      graph = capture->second;
  }
  Buffer buffer = take(rounded, stream, bytes, graph.get());
  uint64_t address = buffer.address();
  return enter({std::move(buffer), address, bytes, index, stream,
                /*isShared=*/false, std::move(graph)});
}

Block *torch_device::Device::adopt(Buffer buffer) {
  uint64_t address = buffer.address(), bytes = buffer.size();
  return enter({std::move(buffer), address, bytes, index, currentStream(index),
                /*isShared=*/true, nullptr});
}

void Block::usedByOther(int64_t user) {
  isShared = true;
  if (!filled || filled->wait(0))
    return;
  // The user cannot know of this work, and so cannot wait for it.
  torch_device::Device &of = torch_device::device(device);
  if (of.isCapturing(user))
    filled->synchronize();
  else
    of.queue(user).run([&](Stream &on) { on.wait(*filled); });
}

void torch_device::Device::await(int64_t stream, uint64_t others) {
  if (isCapturing(stream))
    return;
  for (int64_t one = 0, end = streamCount(); one < end; ++one) {
    if (one == stream || !(others & StreamSet::bitOf(one)) || isCapturing(one))
      continue;
    Event done = runtime().event();
    queue(one).run([&](Stream &on) { on.record(done); });
    queue(stream).run([&](Stream &on) { on.wait(done); });
  }
}

Block *torch_device::Device::enter(Block block) {
  size_t bytes = block.requested;
  auto made = std::make_unique<Block>(std::move(block));
  Block *result = made.get();
  static std::atomic<uint64_t> newest = 0;
  result->number = ++newest;
  std::lock_guard<std::mutex> guard(lock);
  blocks.emplace(result->address, std::move(made));
  count(counters.allocation, 1);
  count(counters.active, 1);
  count(counters.allocated_bytes, result->size());
  count(counters.active_bytes, result->size());
  count(counters.requested_bytes, bytes);
  return result;
}

void torch_device::Device::release(Block *block) {
  std::unique_ptr<Block> owner;
  std::lock_guard<std::mutex> guard(lock);
  auto [found, end] = blocks.equal_range(block->address);
  while (found != end && found->second.get() != block)
    ++found;
  owner = std::move(found->second);
  blocks.erase(found);
  count(counters.allocation, -1);
  count(counters.active, -1);
  count(counters.allocated_bytes, -int64_t(owner->size()));
  count(counters.active_bytes, -int64_t(owner->size()));
  count(counters.requested_bytes, -int64_t(owner->requested));
  if (owner->isShared)
    return; // a graph that uses it keeps it
  if (owner->graph)
    return owner->graph->left[owner->size()].push_back(
        std::move(owner->buffer));
  bins[{owner->stream, owner->size()}].push_back(std::move(owner->buffer));
}

void torch_device::Device::clearBins() {
  std::map<Bin, std::vector<Buffer>> old;
  std::lock_guard<std::mutex> guard(lock);
  old.swap(bins);
  for (const auto &bin : old)
    counters.num_device_free += bin.second.size();
}

void torch_device::Device::emptyCache() {
  clearBins();
  synchronize(); // unfinished work keeps memory
  runtime().trim();
}

Block *torch_device::Device::blockOf(uint64_t address) {
  std::lock_guard<std::mutex> guard(lock);
  auto next = blocks.upper_bound(address);
  if (next == blocks.begin())
    return nullptr;
  Block *block = std::prev(next)->second.get();
  return address <= block->address + block->size() ? block : nullptr;
}

greta_buffer *torch_device::Device::placeholder() {
  const Runtime &opened = runtime();
  std::lock_guard<std::mutex> guard(lock);
  if (!none)
    none = opened.allocate(16);
  return none.get();
}

std::string torch_device::Device::memorySummary() {
  greta_memory now = memory();
  std::ostringstream text;
  std::lock_guard<std::mutex> guard(lock);
  uint64_t cached = 0, tensors = 0;
  for (const auto &bin : bins)
    cached += bin.first.second * bin.second.size();
  std::map<size_t, size_t> sizes;
  for (const auto &one : blocks) {
    tensors += one.second->size();
    ++sizes[one.second->size()];
  }
  text << blocks.size() << " tensors hold " << inWords(tensors) << ", "
       << inWords(cached) << " are kept for reuse, " << inWords(now.reserved)
       << " are reserved from the driver (" << inWords(unusedOf(now))
       << " of it in no use, the largest piece " << inWords(now.largest_free)
       << "), which has " << inWords(now.total);
  if (now.free)
    text << " and could still give " << inWords(now.free);
  text << ".";
  size_t shown = 0;
  for (auto it = sizes.rbegin(); it != sizes.rend() && shown < 5; ++it, ++shown)
    text << (shown ? ", " : " The largest: ") << it->second << " x "
         << inWords(it->first);
  if (shown)
    text << ".";
  return text.str();
}

std::vector<Piece> torch_device::Device::pieces() {
  std::vector<Piece> all;
  std::lock_guard<std::mutex> guard(lock);
  auto addLeft = [&](const std::vector<Buffer> &buffers, int64_t stream,
                     uint64_t graph) {
    for (const Buffer &one : buffers)
      all.push_back({one.address(), one.size(), 0, stream, graph, false});
  };
  for (const auto &[address, block] : blocks)
    all.push_back({address, block->size(), block->requested, block->stream,
                   block->graph ? block->graph->id : 0, true});
  for (const auto &[bin, buffers] : bins)
    addLeft(buffers, bin.first, 0);
  for (const auto &[id, memory] : graphs)
    if (auto graph = memory.lock())
      for (const auto &[size, buffers] : graph->left)
        addLeft(buffers, -1, id);
  return all;
}

c10::CachingDeviceAllocator::DeviceStats torch_device::Device::stats() {
  greta_memory now = memory();
  std::lock_guard<std::mutex> guard(lock);
  auto result = counters;
  auto &reserved =
      result.reserved_bytes[static_cast<size_t>(StatType::AGGREGATE)];
  reserved.current = now.reserved;
  reserved.peak = std::max<int64_t>(reserved.peak, now.reserved);
  counters.reserved_bytes = result.reserved_bytes;
  return result;
}

void torch_device::Device::resetStats(bool peaks) {
  std::lock_guard<std::mutex> guard(lock);
  for (auto *stat : {&counters.allocation, &counters.active,
                     &counters.allocated_bytes, &counters.active_bytes,
                     &counters.requested_bytes, &counters.reserved_bytes}) {
    auto &all = (*stat)[static_cast<size_t>(StatType::AGGREGATE)];
    if (peaks)
      all.reset_peak();
    else
      all.reset_accumulated();
  }
  if (!peaks)
    counters.num_alloc_retries = counters.num_ooms = 0;
}

//
// Pinned memory
//

static std::mutex pinnedLock;
static auto &pinnedMemory =
    *new std::map<const char *, std::shared_ptr<Pinned>>; // never destroyed

void *torch_device::allocatePinned(size_t bytes) {
  if (!bytes)
    return nullptr;
  auto memory = std::make_shared<Pinned>();
  memory->buffer = device(-1).runtime().allocateMapped(bytes);
  memory->begin = static_cast<char *>(memory->buffer.pointer());
  std::lock_guard<std::mutex> guard(pinnedLock);
  char *begin = memory->begin;
  pinnedMemory[begin] = std::move(memory);
  return begin;
}

void torch_device::releasePinned(void *pointer) {
  std::shared_ptr<Pinned> owner;
  std::lock_guard<std::mutex> guard(pinnedLock);
  auto found = pinnedMemory.find(static_cast<char *>(pointer));
  if (found == pinnedMemory.end())
    return;
  owner = std::move(found->second);
  pinnedMemory.erase(found);
}

std::shared_ptr<Pinned> torch_device::pinnedOf(const void *pointer) {
  auto address = static_cast<const char *>(pointer);
  std::lock_guard<std::mutex> guard(pinnedLock);
  auto next = pinnedMemory.upper_bound(address);
  if (next == pinnedMemory.begin())
    return nullptr;
  const std::shared_ptr<Pinned> &found = std::prev(next)->second;
  return address < found->begin + found->buffer.size() ? found : nullptr;
}
