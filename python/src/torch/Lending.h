//===- Lending.h - memory of a graph that its replays' results have -------===//
//
// In: the tensors that a recorded call made. Out: for each replay tensors over
// the same memory with storages of their own. Tensors that somebody still has
// before the next replay, which writes there, get memory of their own, and
// streams that read them there before are waited for.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_PYTHON_TORCH_LENDING_H
#define GRETA_PYTHON_TORCH_LENDING_H

#include <ATen/core/Tensor.h>
#include <vector>

namespace greta::torch_device {

class Lending {
public:
  explicit Lending(std::vector<at::Tensor> tensors);

  /// Prepares a replay in the stream in use, which reads tensors of other
  /// graphs in place. The stream waits for the last replay and for other
  /// streams' work with its results, and results that are still in use get
  /// memory of their own.
  void prepareReplay(const std::vector<at::Tensor> &read);

  /// Returns tensors over the memory of all; those that share a storage do so
  /// here, too.
  std::vector<at::Tensor> lend();
  /// Gives a tensor with lent memory its own memory now, in the stream in use,
  /// if it will be read where no replay can know of it.
  static void moveAway(const at::TensorBase &tensor);
  /// Returns whether a tensor's memory was lent.
  static bool isLent(const at::TensorBase &tensor);

private:
  /// Returns and forgets the streams that used the memory, as bits.
  uint64_t takeUsers();
  /// Gives the last lent tensors that are in use, views of them included,
  /// memory of their own with the same elements, in the stream in use.
  void moveAway();

  std::vector<at::Tensor> tensors;
  uint64_t lastReplay = 0; // its stream's bit
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> lent;
};

} // namespace greta::torch_device

#endif
