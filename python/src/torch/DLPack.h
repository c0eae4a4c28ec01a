//===- DLPack.h - memory of torch's device for other libraries ------------===//
#ifndef GRETA_PYTHON_TORCH_DLPACK_H
#define GRETA_PYTHON_TORCH_DLPACK_H

#include <ATen/core/Tensor.h>

struct DLManagedTensor;

namespace greta::torch_device {

/// A contiguous tensor on a device rdna as DLPack's, when the work before is
/// done.
DLManagedTensor *exportTensor(const at::Tensor &tensor);

/// The same memory as a tensor of this device. Throws where the device does not
/// reach it; `from` stays the caller's then.
at::Tensor importTensor(DLManagedTensor *from, c10::DeviceIndex index);

} // namespace greta::torch_device

#endif
