//===- DLPack.h - memory of torch's device for other libraries ------------===//
#ifndef GRETA_PYTHON_TORCH_DLPACK_H
#define GRETA_PYTHON_TORCH_DLPACK_H

#include <ATen/core/Tensor.h>

struct DLManagedTensor;

namespace greta::torch_device {

/// Exports a contiguous tensor on a device rdna when the work before is done.
DLManagedTensor *exportTensor(const at::Tensor &tensor);

/// Imports the memory as a tensor of this device. Throws if the device does not
/// reach it; then `from` stays the caller's.
at::Tensor importTensor(DLManagedTensor *from, c10::DeviceIndex index);

} // namespace greta::torch_device

#endif
