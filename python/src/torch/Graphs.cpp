//===- Graphs.cpp - torch.accelerator.Graph, and memory that it lends -----===//
//
// In: what a stream is asked for between two calls. Out: a graph of the
// runtime, which a stream replays. Tensors that are made meanwhile lie in
// memory of the graph's own, since each replay writes there again. Kernels that
// draw random numbers read where the generator is from such memory, which a
// replay writes before it begins, so that it draws what the calls would have.
//
//===----------------------------------------------------------------------===//

#include "Devices.h"
#include "Generator.h"
#include "Lending.h"
#include "Tensors.h"

#include <ATen/Functions.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>
#include <map>

using namespace greta;
using namespace greta::torch_device;

/// Ends a lent storage, which used another one's memory.
static void giveBack(void *context) {
  delete static_cast<c10::Storage *>(context);
}

static c10::Storage lendStorage(const c10::Storage &of) {
  c10::DataPtr data(of.data_ptr().get(), new c10::Storage(of), &giveBack,
                    of.device());
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), of.nbytes(), std::move(data),
      /*allocator=*/nullptr, /*resizable=*/false));
}

Lending::Lending(std::vector<at::Tensor> given) : tensors(std::move(given)) {
  takeUsers(); // the recording's own
}

uint64_t Lending::takeUsers() {
  uint64_t users = 0;
  for (const at::Tensor &tensor : tensors)
    if (tensor.storage().nbytes())
      users |= placeOf(tensor).block->users.take();
  return users;
}

void Lending::prepareReplay(const std::vector<at::Tensor> &read) {
  c10::DeviceIndex index = currentDevice();
  int64_t stream = currentStream(index);
  device(index).await(stream, takeUsers() | lastReplay);
  lastReplay = StreamSet::bitOf(stream);
  moveAway();
  for (const at::Tensor &tensor : read)
    if (tensor.storage().nbytes())
      placeOf(tensor).block->usedBy(stream);
}

std::vector<at::Tensor> Lending::lend() {
  std::map<c10::StorageImpl *, c10::Storage> storages;
  std::vector<at::Tensor> made;
  lent.clear();
  for (const at::Tensor &tensor : tensors) {
    c10::Storage &storage = storages[tensor.storage().unsafeGetStorageImpl()];
    if (!storage)
      storage = lendStorage(tensor.storage());
    at::Tensor one = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(storage), tensor.key_set(), tensor.dtype());
    c10::TensorImpl *impl = one.unsafeGetTensorImpl();
    impl->set_storage_offset(tensor.storage_offset());
    impl->set_sizes_and_strides(tensor.sizes(), tensor.strides());
    lent.emplace_back(storage.getWeakStorageImpl());
    made.push_back(std::move(one));
  }
  return made;
}

static void moveStorage(c10::StorageImpl &storage) {
  if (storage.data_ptr().get_deleter() != &giveBack)
    return;
  c10::DeviceGuard guard(storage.device());
  c10::DataPtr own = storageAllocator()->allocate(storage.nbytes());
  if (storage.nbytes()) {
    storageAllocator()->copy_data(own.get(), storage.data(), storage.nbytes());
    Device &on = torch_device::device(storage.device().index());
    auto filled = std::make_shared<Event>(on.runtime().event());
    currentQueue(on.index).run([&](Stream &stream) { stream.record(*filled); });
    torch_device::blockOf(own)->filled = std::move(filled);
  }
  storage.set_data_ptr_noswap(std::move(own));
}

void Lending::moveAway() {
  for (auto &weak : lent)
    if (c10::intrusive_ptr<c10::StorageImpl> storage = weak.lock())
      moveStorage(*storage);
  lent.clear();
}

void Lending::moveAway(const at::TensorBase &tensor) {
  moveStorage(*tensor.storage().unsafeGetStorageImpl());
}

bool Lending::isLent(const at::TensorBase &tensor) {
  return tensor.storage().data_ptr().get_deleter() == &giveBack;
}

// torch 2.11 has no torch.accelerator.Graph, so nothing is recorded there.
#if __has_include(<ATen/core/GraphImplInterface.h>)
#include <ATen/core/GraphImplInterface.h>

namespace {

class RecordedGraph;

/// Maps device and stream to the graph that is being recorded.
using Recordings =
    std::map<std::pair<c10::DeviceIndex, int64_t>, RecordedGraph *>;
std::mutex recordingsLock;
Recordings &recordings = *new Recordings; // graphs may outlive globals

class RecordedGraph final : public at::GraphImplInterface {
public:
  explicit RecordedGraph(const at::GraphImplArgs &) {}
  ~RecordedGraph() override {
    if (isCapturing)
      endCapture();
  }

  void capture_begin(at::MempoolId_t of, at::GraphCaptureMode) override {
    TORCH_CHECK(!graph.get() && !isCapturing,
                "this graph is recorded; reset() makes it a new one");
    index = currentDevice();
    stream = currentStream(index);
    device(index).queue(stream).run(
        [](Stream &on) { check(greta_graph_begin(on.get())); });
    isCapturing = true;
    memory = device(index).beginCapture(stream, of.second);
    std::lock_guard<std::mutex> guard(recordingsLock);
    recordings[{index, stream}] = this;
  }

  void capture_end() override {
    TORCH_CHECK(isCapturing, "this graph is not being recorded");
    greta_graph *handle = endCapture();
    TORCH_CHECK(handle, "the graph was not recorded: ", greta_last_error());
    graph = Graph(handle);
  }

  void instantiate() override {
    TORCH_CHECK(graph.get(), "this graph is not recorded");
  }

  void replay() override {
    instantiate();
    std::vector<std::array<uint64_t, 2>> states;
    for (Drawn &one : drawn) {
      std::lock_guard<std::mutex> guard(one.generator.mutex());
      auto *from = static_cast<PhiloxGenerator *>(
          one.generator.unsafeGetGeneratorImpl());
      states.push_back({from->current_seed(), from->take(one.count)});
    }
    int64_t on = currentStream(index);
    for (Drawn &one : drawn)
      placeOf(one.state).block->usedBy(on);
    device(index).queue(on).run([&](Stream &replaying) {
      for (size_t i = 0; i < drawn.size(); ++i) {
        Place place = placeOf(drawn[i].state);
        replaying.write(place.block->buffer, states[i].data(),
                        sizeof(states[i]), place.offset);
      }
      replaying.launch(graph);
    });
  }

  RecordedNumbers record(const at::Generator &generator, uint64_t count) {
    auto known =
        std::find_if(drawn.begin(), drawn.end(), [&](const Drawn &one) {
          return one.generator == generator;
        });
    if (known == drawn.end()) {
      auto place = at::TensorOptions().dtype(at::kLong).device(
          c10::Device(deviceType, index));
      drawn.push_back({generator, at::empty({2}, place)});
      known = std::prev(drawn.end());
    }
    RecordedNumbers numbers{known->state, known->count};
    known->count += PhiloxGenerator::stepOf(count);
    return numbers;
  }

  void reset() override {
    TORCH_CHECK(!isCapturing, "this graph is being recorded");
    graph = Graph(nullptr);
    drawn.clear();
    memory.reset();
  }

  at::MempoolId_t pool() const override { return {0, memory ? memory->id : 0}; }
  void enable_debug_mode() override {}
  void debug_dump(const std::string &) override {
    TORCH_CHECK(false, "graphs of rdna have no dump");
  }

private:
  /// Returns null if the runtime could not record the work.
  greta_graph *endCapture() {
    isCapturing = false;
    device(index).endCapture(stream);
    {
      std::lock_guard<std::mutex> guard(recordingsLock);
      recordings.erase({index, stream});
    }
    greta_graph *handle = nullptr;
    device(index).queue(stream).run(
        [&](Stream &on) { greta_graph_end(on.get(), &handle); });
    return handle;
  }

  /// The numbers that a replay draws from one generator.
  struct Drawn {
    at::Generator generator;
    at::Tensor state;
    uint64_t count = 0;
  };

  Graph graph{nullptr};
  std::vector<Drawn> drawn;
  std::shared_ptr<GraphMemory> memory;
  c10::DeviceIndex index = 0;
  int64_t stream = 0;
  bool isCapturing = false;
};

} // namespace

std::optional<RecordedNumbers>
torch_device::recordNumbers(const at::Generator &generator,
                            c10::DeviceIndex index, uint64_t count) {
  RecordedGraph *graph = nullptr;
  {
    std::lock_guard<std::mutex> guard(recordingsLock);
    auto found = recordings.find({index, currentStream(index)});
    if (found == recordings.end())
      return std::nullopt;
    graph = found->second;
  }
  return graph->record(generator, count);
}

void torch_device::registerGraphs(const std::string &name) {
  at::GraphImplRegistry()->Register(
      name,
      [](at::GraphImplArgs given) -> std::unique_ptr<at::GraphImplInterface> {
        return std::make_unique<RecordedGraph>(given);
      });
}

#else

std::optional<greta::torch_device::RecordedNumbers>
greta::torch_device::recordNumbers(const at::Generator &, c10::DeviceIndex,
                                   uint64_t) {
  return std::nullopt;
}

void greta::torch_device::registerGraphs(const std::string &) {}

#endif
