// Weights.h: a model's weights on a device. In: weights as they lie in a model
// file, and what each is to become (Graph.h). Out: buffers by name, with the
// shapes and types that functions ask for.
#ifndef GRETA_LLM_WEIGHTS_H
#define GRETA_LLM_WEIGHTS_H

#include "engine/Graph.h"

#include <functional>
#include <greta_runtime.hpp>

namespace greta::llm {

// A tensor in a buffer of its own, or in one that several share.
struct DeviceTensor {
  std::shared_ptr<Buffer> buffer;
  std::vector<int64_t> shape;
  std::string dtype;
};

// A device's part of a model that is divided by layers: those from `first` to
// `end`, with the embedding before the first and the output behind the last.
struct Stage {
  int64_t first = 0, end = 0;
  bool isFirst = true, isLast = true;
};

class Weights {
public:
  // `progress` is called with the share that is done.
  Weights(const Model &model, const Stage &stage, Element element,
          Runtime &runtime, Stream &stream,
          const std::function<void(double)> &progress);

  // `blk.3.attn_q`, `blk.3.attn_q_scales`, `output_norm`; null if unknown.
  const DeviceTensor *find(const std::string &name) const;
  size_t bytes() const { return bytes_; }

private:
  void add(const std::string &name, const Stored &stored, Element element);
  void addPacked(const std::string &name, const Stored &stored, int64_t group);
  const Buffer &make(const std::string &name, std::vector<int64_t> shape,
                     const std::string &dtype, size_t bytes);

  Runtime &runtime;
  Stream &stream;
  std::map<std::string, DeviceTensor> tensors;
  size_t bytes_ = 0;
};

} // namespace greta::llm
#endif
