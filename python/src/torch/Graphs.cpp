//===- Graphs.cpp - torch.accelerator.Graph -------------------------------===//
//
// In: what a stream is asked for between two calls. Out: a graph of the
// runtime, which a stream replays. Tensors that are made meanwhile lie in
// memory of the graph's own, since each replay writes there again.
//
//===----------------------------------------------------------------------===//

#include "Devices.h"

#include <ATen/core/GraphImplInterface.h>
#include <c10/util/Exception.h>

using namespace greta;
using namespace greta::torch_device;

namespace {

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
    currentQueue(index).run([&](Stream &on) { on.launch(graph); });
  }

  void reset() override {
    TORCH_CHECK(!isCapturing, "this graph is being recorded");
    graph = Graph(nullptr);
    memory.reset();
  }

  at::MempoolId_t pool() const override { return {0, memory ? memory->id : 0}; }
  void enable_debug_mode() override {}
  void debug_dump(const std::string &) override {
    TORCH_CHECK(false, "graphs of rdna have no dump");
  }

private:
  /// Null where the runtime could not record what it was asked for.
  greta_graph *endCapture() {
    isCapturing = false;
    device(index).endCapture(stream);
    greta_graph *handle = nullptr;
    device(index).queue(stream).run(
        [&](Stream &on) { greta_graph_end(on.get(), &handle); });
    return handle;
  }

  Graph graph{nullptr};
  std::shared_ptr<GraphMemory> memory;
  c10::DeviceIndex index = 0;
  int64_t stream = 0;
  bool isCapturing = false;
};

} // namespace

void torch_device::registerGraphs(const std::string &name) {
  at::GraphImplRegistry()->Register(
      name,
      [](at::GraphImplArgs given) -> std::unique_ptr<at::GraphImplInterface> {
        return std::make_unique<RecordedGraph>(given);
      });
}
