//===- Copies.h - copies and fills of torch's tensors ---------------------===//
#ifndef GRETA_PYTHON_TORCH_COPIES_H
#define GRETA_PYTHON_TORCH_COPIES_H

#include <ATen/core/Tensor.h>

namespace greta::torch_device {

/// Copies between tensors of any devices, types and strides, of which at least
/// one is on a device rdna. With `mayReturn` it does not wait for a copy to
/// pinned memory.
void copyTensor(const at::Tensor &to, const at::Tensor &from, bool mayReturn);

void fillTensor(const at::Tensor &to, const at::Scalar &value);

} // namespace greta::torch_device

#endif
