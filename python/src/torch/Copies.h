//===- Copies.h - copies and fills of torch's tensors ---------------------===//
#ifndef GRETA_PYTHON_TORCH_COPIES_H
#define GRETA_PYTHON_TORCH_COPIES_H

#include <ATen/core/Tensor.h>

namespace greta::torch_device {

/// Copies between tensors of any devices, types and strides, of which at least
/// one is on a device rdna. With `mayReturn` a copy to pinned memory is not
/// waited for.
void copyTensor(const at::Tensor &to, const at::Tensor &from, bool mayReturn);

void fillTensor(const at::Tensor &to, const at::Scalar &value);

} // namespace greta::torch_device

#endif
