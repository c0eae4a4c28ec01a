//===- Lending.h - memory of a graph that its replays' results have -------===//
//
// In: the tensors that a recorded call made. Out: for each replay tensors over
// the same memory with storages of their own. Those that somebody still has
// before the next replay, which writes there, get memory of their own.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_PYTHON_TORCH_LENDING_H
#define GRETA_PYTHON_TORCH_LENDING_H

#include <ATen/core/Tensor.h>
#include <vector>

namespace greta::torch_device {

class Lending {
public:
  explicit Lending(std::vector<at::Tensor> tensors)
      : tensors(std::move(tensors)) {}

  /// Tensors over the memory of all of them; those that share a storage do so
  /// here, too.
  std::vector<at::Tensor> lend();
  /// Gives those that were lent last and are in use, views of them included,
  /// memory of their own with what is in them, in the stream in use.
  void moveAway();
  /// Gives a tensor whose memory was lent memory of its own now, in the stream
  /// in use: for those who will read it where no replay can know of them.
  static void moveAway(const at::TensorBase &tensor);
  /// Whether a tensor's memory was lent.
  static bool isLent(const at::TensorBase &tensor);

private:
  std::vector<at::Tensor> tensors;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> lent;
};

} // namespace greta::torch_device

#endif
