//===- DLPack.cpp - memory of torch's device for other libraries ----------===//
//
// In: tensors on a device rdna, and capsules of DLPack. Out: the same memory as
// a capsule, and as a tensor, without a copy. Between tensors of torch this is
// torch's own business, which calls these devices kDLExtDev; here they have the
// names that the runtime gives them: the host's where it reaches the memory,
// else ROCm's or Vulkan's.
//
//===----------------------------------------------------------------------===//

#include "DLPack.h"
#include "Lending.h"
#include "Tensors.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/dlpack.h>
#include <c10/core/DeviceGuard.h>

using namespace greta;
using namespace greta::torch_device;

namespace {
struct Type {
  c10::ScalarType torch;
  const char *package;
  uint8_t code, bits;
};
constexpr Type types[] = {{c10::kFloat, "f32", kDLFloat, 32},
                          {c10::kHalf, "f16", kDLFloat, 16},
                          {c10::kDouble, "f64", kDLFloat, 64},
                          {c10::kBFloat16, "bf16", kDLBfloat, 16},
                          {c10::kChar, "i8", kDLInt, 8},
                          {c10::kShort, "i16", kDLInt, 16},
                          {c10::kInt, "i32", kDLInt, 32},
                          {c10::kLong, "i64", kDLInt, 64},
                          {c10::kByte, "u8", kDLUInt, 8},
                          {c10::kBool, "i1", kDLBool, 8}};
} // namespace

DLManagedTensor *torch_device::exportTensor(const at::Tensor &tensor) {
  const auto *type =
      std::find_if(std::begin(types), std::end(types), [&](const Type &one) {
        return one.torch == tensor.scalar_type();
      });
  TORCH_CHECK_TYPE(type != std::end(types),
                   "DLPack's tensors of GRETA are not of ",
                   tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.is_contiguous() && !tensor.is_conj() &&
                        !tensor.is_neg(),
                    "only contiguous tensors of rdna are given to other "
                    "libraries; contiguous() makes one");
  c10::DeviceIndex index = tensor.device().index();
  if (!tensor.numel())
    return device(index).runtime().allocate(16).exportDLPack(
        type->package, tensor.sizes().vec());
  Lending::moveAway(tensor);
  Place place = placeOf(tensor);
  place.block->isShared = true; // so the next tensor does not get it
  device(index).synchronize();
  return place.block->buffer.exportDLPack(type->package, tensor.sizes().vec(),
                                          place.offset);
}

at::Tensor torch_device::importTensor(DLManagedTensor *from,
                                      c10::DeviceIndex index) {
  const DLTensor &given = from->dl_tensor;
  const auto *type =
      std::find_if(std::begin(types), std::end(types), [&](const Type &one) {
        return one.code == given.dtype.code && one.bits == given.dtype.bits &&
               given.dtype.lanes == 1;
      });
  TORCH_CHECK_TYPE(
      type != std::end(types), "no tensor of rdna has DLPack's type ",
      int(given.dtype.code), " of ", int(given.dtype.bits), " bits");
  at::IntArrayRef shape(given.shape, given.ndim);
  c10::Device place(deviceType, index);
  c10::DeviceGuard guard(place);
  auto options = at::TensorOptions().dtype(type->torch).device(place);
  auto [buffer, offset] = device(index).runtime().importDLPack(from);
  at::Tensor empty = at::empty({0}, options);
  Block *block = device(index).adopt(std::move(buffer));
  size_t bytes = block->size();
  empty.storage().set_data_ptr_noswap(dataOf(block));
  empty.storage().unsafeGetStorageImpl()->set_nbytes(bytes);
  size_t item = empty.itemsize();
  TORCH_CHECK_VALUE(offset % item == 0,
                    "the tensor begins between two elements of its memory");
  return empty.set_(empty.storage(), offset / item, shape);
}
