// DLPack.cpp: tensors of other libraries as buffers, and buffers as tensors for
// them, without a copy. In: a DLManagedTensor, or a buffer with a type and a
// shape. Out: the other of both; whoever has it keeps the memory.
#include "DLPack.h"
#include "Api.h"
#include "DType.h"

#include <algorithm>

using namespace greta::rt;

namespace {

// DLPack's type codes: integers with and without a sign, floats, bfloat16,
// bool, and since 1.1 8-bit floats.
struct Type {
  const char *Name;
  uint8_t Code, Bits;
};
constexpr Type types[] = {
    {"i1", 6, 8},          {"i8", 0, 8},         {"i16", 0, 16},
    {"i32", 0, 32},        {"i64", 0, 64},       {"u8", 1, 8},
    {"u16", 1, 16},        {"u32", 1, 32},       {"u64", 1, 64},
    {"f16", 2, 16},        {"f32", 2, 32},       {"f64", 2, 64},
    {"bf16", 4, 16},       {"f8e4m3fn", 10, 8},  {"f8e5m2", 12, 8},
    {"f8e4m3fnuz", 11, 8}, {"f8e5m2fnuz", 13, 8}};

// Keeps the objects of a buffer's tensor until somebody deletes it.
struct Exported {
  DLManagedTensor Tensor{};
  std::shared_ptr<greta::rt::Device> Device;
  MemoryRef Memory;
  std::vector<int64_t> Shape;

  static void destroy(DLManagedTensor *Self) {
    delete static_cast<Exported *>(Self->manager_ctx);
  }
};

// Wraps another library's tensor as memory, until the last work that uses it.
struct Imported {
  ~Imported() {
    Inner.reset();
    if (Tensor && Tensor->deleter)
      Tensor->deleter(Tensor);
  }
  MemoryRef Inner;
  DLManagedTensor *Tensor = nullptr;
};

size_t bytesOf(const DLTensor &T) {
  if (T.ndim < 0 || (T.ndim && !T.shape))
    fail(GRETA_ERROR_INVALID_ARGUMENT, "the tensor has no shape");
  for (int32_t D = 0; D < T.ndim; ++D)
    if (T.shape[D] < 0)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "the tensor's dim ", D, " is ",
           T.shape[D]);
  int64_t Stride = 1;
  for (int32_t D = T.ndim; T.strides && D-- > 0; Stride *= T.shape[D])
    if (T.shape[D] > 1 && T.strides[D] != Stride)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "the tensor's dim ", D,
           " has a stride of ", T.strides[D],
           "; buffers are row-major, where it is ", Stride);
  return tensorBytes(unsigned(T.dtype.bits) * T.dtype.lanes, T.shape,
                     static_cast<size_t>(T.ndim));
}

// Returns the memory under a tensor, and where the tensor begins in it.
MemoryRef memoryOf(const std::shared_ptr<Device> &D,
                   const DLManagedTensor &From, size_t Bytes, size_t &Offset) {
  const DLTensor &T = From.dl_tensor;
  if (From.deleter == &Exported::destroy) {
    auto &Own = *static_cast<Exported *>(From.manager_ctx);
    if (Own.Device == D) {
      Offset = T.byte_offset;
      return Own.Memory;
    }
  }
  auto [Type, Index] = D->dlpackDevice();
  switch (T.device.device_type) {
  case kDLCPU:
  case kDLCUDAHost:
  case kDLROCMHost: {
    // The size is a multiple of the device's unit.
    size_t Unit = D->pointerUnit();
    char *Data = static_cast<char *>(T.data) + T.byte_offset;
    Offset = reinterpret_cast<uintptr_t>(Data) % Unit;
    return D->importPointer(Data - Offset,
                            (Offset + Bytes + Unit - 1) / Unit * Unit);
  }
  case kDLROCM:
  case kDLVulkan:
    if (T.device.device_type != Type || T.device.device_id != Index)
      break;
    Offset = T.byte_offset;
    return Type == kDLROCM ? D->adoptHip(T.data, Offset + Bytes)
                           : D->adoptVulkan(reinterpret_cast<uint64_t>(T.data),
                                            Offset + Bytes);
  }
  fail(GRETA_ERROR_INVALID_ARGUMENT, "the tensor lies on DLPack's device ",
       static_cast<int>(T.device.device_type), ":", T.device.device_id, "; ",
       D->Spec, " is ", Type, ":", Index);
}

} // namespace

extern "C" {

greta_status greta_buffer_import_dlpack(greta_device *D,
                                        struct DLManagedTensor *From,
                                        greta_buffer **Out, size_t *Offset) {
  return guarded([&] {
    need(Out, "buffer") = nullptr;
    const std::shared_ptr<Device> &Impl = need(D, "device").Impl;
    size_t Bytes = bytesOf(need(From, "tensor").dl_tensor);
    auto Whole = std::make_shared<Imported>();
    Whole->Inner = memoryOf(Impl, *From, Bytes, need(Offset, "offset"));
    auto Buffer = std::make_unique<greta_buffer>(greta_buffer{
        Impl, MemoryRef(Whole, Whole->Inner.get()), *Offset + Bytes});
    Whole->Tensor = From;
    *Out = Buffer.release();
  });
}

greta_status greta_buffer_export_dlpack(const greta_buffer *B, size_t Offset,
                                        const char *DType, const int64_t *Shape,
                                        uint32_t Rank,
                                        struct DLManagedTensor **Out) {
  return guarded([&] {
    need(Out, "tensor") = nullptr;
    if (Rank)
      need(Shape, "shape");
    std::string Name = &need(DType, "dtype");
    const Type *Which =
        std::find_if(std::begin(types), std::end(types),
                     [&](const Type &T) { return T.Name == Name; });
    if (Which == std::end(types))
      fail(GRETA_ERROR_UNSUPPORTED, "DLPack has no type '", Name, "'");
    size_t Bytes = tensorBytes(Which->Bits, Shape, Rank);
    if (Offset > need(B, "buffer").Size || Bytes > B->Size - Offset)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "a tensor of ", Bytes,
           " bytes at offset ", Offset, " leaves the buffer of ", B->Size,
           " bytes");
    auto Made = std::make_unique<Exported>();
    Made->Device = B->Device;
    Made->Memory = B->Impl;
    Made->Shape.assign(Shape, Shape + Rank);
    Made->Tensor.manager_ctx = Made.get();
    Made->Tensor.deleter = &Exported::destroy;
    DLTensor &T = Made->Tensor.dl_tensor;
    auto [Type, Index] = B->Device->dlpackDevice();
    T.device = {static_cast<DLDeviceType>(Type), Index};
    T.data = B->Impl->handle();
    // Readers of the host's tensors can read mapped memory.
    if (void *Mapped = B->Impl->Mapped) {
      T.device = {kDLCPU, 0};
      T.data = Mapped;
    }
    T.ndim = static_cast<int32_t>(Rank);
    T.dtype = {Which->Code, Which->Bits, 1};
    T.shape = Made->Shape.data();
    T.byte_offset = Offset;
    *Out = &Made.release()->Tensor;
  });
}

} // extern "C"
