//===- Copies.cpp - copies and fills of torch's tensors -------------------===//
//
// In: two tensors, of the host or of devices rdna, with any strides and types.
// Out: the copy, queued on the stream in use. Bytes that lie alike are copied
// by the runtime; else a kernel copies with strides and conversion
// (greta/torch/_copy.py), after the tensor's dims are collapsed:
//
//   sizes 2 3 4, strides 12 4 1 to strides 12 4 1: one dim of 24 elements
//
// Types without a kernel are copied on the host, and counted.
//
//===----------------------------------------------------------------------===//

#include "Copies.h"
#include "CallPlan.h"
#include "Tensors.h"

#include <ATen/Functions.h>
#include <c10/core/DeviceGuard.h>

using greta::check;
using greta::Stream;
namespace torch_device = greta::torch_device;
using namespace greta::torch_device;

static FindCopyKernel copyKernels = nullptr;

void torch_device::setFindCopyKernel(FindCopyKernel find) {
  copyKernels = find;
}

static bool isOnDevice(const at::Tensor &tensor) {
  return tensor.device().type() == deviceType;
}

static bool isDense(const at::Tensor &tensor) {
  return tensor.is_non_overlapping_and_dense();
}

//
// By a kernel
//

namespace {
struct Dim {
  int64_t size, to, from;
};
constexpr int mostDims = 6;
} // namespace

/// Returns the dims of a copy, largest stride of `to` first, neighbours joined.
static std::vector<Dim> collapsed(const at::Tensor &to,
                                  const at::Tensor &from) {
  std::vector<Dim> dims;
  for (int64_t d = 0; d < to.dim(); ++d)
    if (to.size(d) != 1)
      dims.push_back({to.size(d), to.stride(d), from.stride(d)});
  std::stable_sort(dims.begin(), dims.end(), [](const Dim &a, const Dim &b) {
    return std::make_pair(a.to, a.from) > std::make_pair(b.to, b.from);
  });
  std::vector<Dim> joined;
  for (const Dim &dim : dims) {
    Dim *last = joined.empty() ? nullptr : &joined.back();
    if (last && last->to == dim.to * dim.size &&
        last->from == dim.from * dim.size)
      *last = {last->size * dim.size, dim.to, dim.from};
    else
      joined.push_back(dim);
  }
  if (joined.empty())
    joined.push_back({1, 1, 1});
  return joined;
}

/// Copies by a kernel; returns whether there is one.
static bool copyByKernel(const at::Tensor &to, const at::Tensor &from,
                         bool negates) {
  if (!copyKernels)
    return false;
  std::vector<Dim> dims = collapsed(to, from);
  if (dims.size() > mostDims)
    return false;
  int64_t farthest = to.numel();
  int64_t ends[2] = {0, 0};
  for (const Dim &dim : dims) {
    ends[0] += (dim.size - 1) * dim.to;
    ends[1] += (dim.size - 1) * dim.from;
  }
  farthest = std::max({farthest, ends[0], ends[1]});
  Kernel *kernel = copyKernels(to.scalar_type(), from.scalar_type(),
                               static_cast<int>(dims.size()),
                               farthest >= INT32_MAX / 2, negates);
  if (!kernel)
    return false;
  constexpr int64_t elementsPerProgram = 1024;
  c10::DeviceIndex index = to.device().index();
  Launch launch(*kernel, index, currentStream(index));
  launch.add(to);
  launch.add(from);
  launch.add(to.numel());
  for (const Dim &dim : dims)
    for (int64_t number : {dim.size, dim.to, dim.from})
      launch.add(number);
  launch.run((to.numel() + elementsPerProgram - 1) / elementsPerProgram, 1, 1);
  return true;
}

/// Returns an integer type of this size, as which a copy may see any type.
static std::optional<c10::ScalarType> integerOf(size_t bytes) {
  switch (bytes) {
  case 1:
    return c10::kChar;
  case 2:
    return c10::kShort;
  case 4:
    return c10::kInt;
  case 8:
    return c10::kLong;
  }
  return std::nullopt;
}

namespace {
/// The changes that a copy makes to elements.
struct Changes {
  bool negates, conjugates;
};
} // namespace

/// Copies complex numbers and types that no kernel computes with as other
/// types; returns whether there is a kernel.
static bool copyStrided(const at::Tensor &to, const at::Tensor &from,
                        Changes changes) {
  if (to.is_complex() && from.is_complex()) {
    at::Tensor parts = at::view_as_real(to), source = at::view_as_real(from);
    if (!changes.conjugates)
      return copyStrided(parts, source, changes);
    return copyStrided(parts.select(-1, 0), source.select(-1, 0),
                       {changes.negates, false}) &&
           copyStrided(parts.select(-1, 1), source.select(-1, 1),
                       {!changes.negates, false});
  }
  if (to.is_complex()) {
    at::Tensor parts = at::view_as_real(to);
    fillTensor(parts.select(-1, 1), 0);
    return copyStrided(parts.select(-1, 0), from, {changes.negates, false});
  }
  if (from.is_complex())
    return copyStrided(to, at::view_as_real(from).select(-1, 0),
                       {changes.negates, false});
  if (to.scalar_type() == from.scalar_type() &&
      to.scalar_type() != c10::kBool && !changes.negates) {
    auto type = integerOf(to.itemsize());
    return type && copyByKernel(to.view(*type), from.view(*type), false);
  }
  return copyByKernel(to, from, changes.negates);
}

//
// By the runtime
//

static void copyBytes(const at::Tensor &to, const at::Tensor &from) {
  size_t bytes = to.numel() * to.itemsize();
  Place target = placeOf(to), source = placeOf(from);
  c10::DeviceIndex there = from.device().index(), here = to.device().index();
  if (target.block == source.block && target.offset == source.offset)
    return;
  PlanRecorder::didMore();
  if (there != here) {
    source.block->usedBy(currentStream(there));
    target.block->usedBy(currentStream(here));
    Queue &reading = currentQueue(there), &writing = currentQueue(here);
    std::scoped_lock both(reading.lock, writing.lock);
    check(greta_buffer_copy_peer(
        writing.stream.get(), target.block->buffer.get(), target.offset,
        reading.stream.get(), source.block->buffer.get(), source.offset,
        bytes));
    return;
  }
  for (Block *block : {target.block, source.block})
    block->usedBy(currentStream(here));
  currentQueue(here).run([&](Stream &stream) {
    check(greta_buffer_copy(stream.get(), target.block->buffer.get(),
                            target.offset, source.block->buffer.get(),
                            source.offset, bytes));
  });
}

static void writeBytes(const at::Tensor &to, const at::Tensor &from,
                       size_t bytes) {
  PlanRecorder::didMore();
  Place target = placeOf(to);
  target.block->usedBy(currentStream(to.device().index()));
  currentQueue(to.device().index()).run([&](Stream &stream) {
    stream.write(target.block->buffer, from.const_data_ptr(), bytes,
                 target.offset);
  });
}

static void readBytes(const at::Tensor &to, const at::Tensor &from,
                      size_t bytes, bool mayReturn) {
  PlanRecorder::didMore();
  Place source = placeOf(from);
  source.block->usedBy(currentStream(from.device().index()));
  auto pinned = mayReturn ? pinnedOf(to.const_data_ptr()) : nullptr;
  auto *begin = static_cast<char *>(to.mutable_data_ptr());
  currentQueue(from.device().index()).run([&](Stream &stream) {
    if (pinned)
      check(greta_buffer_copy(stream.get(), pinned->buffer.get(),
                              begin - pinned->begin, source.block->buffer.get(),
                              source.offset, bytes));
    else
      stream.read(source.block->buffer, begin, bytes, source.offset);
  });
}

static at::Tensor emptyLike(const at::Tensor &layout, c10::ScalarType type,
                            c10::Device place) {
  auto options = at::TensorOptions().dtype(type).device(place);
  return isDense(layout)
             ? at::empty_strided(layout.sizes(), layout.strides(), options)
             : at::empty(layout.sizes(), options);
}

static bool liesAlike(const at::Tensor &a, const at::Tensor &b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && isDense(a) &&
         a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

static void setBits(const at::Tensor &to, const at::Tensor &like) {
  to._set_conj(like.is_conj());
  to._set_neg(like.is_neg());
}

/// Returns the tensor without lazy conjugate and negation, left to the caller.
static at::Tensor withoutBits(const at::Tensor &tensor) {
  if (!tensor.is_conj() && !tensor.is_neg())
    return tensor;
  at::Tensor raw = at::alias(tensor);
  raw._set_conj(false);
  raw._set_neg(false);
  return raw;
}

/// Copies the elements from a tensor's first to its last to the host's memory.
static at::Tensor download(const at::Tensor &from) {
  at::Tensor raw = withoutBits(from), host;
  if (isDense(raw)) {
    host = emptyLike(raw, raw.scalar_type(), c10::kCPU);
  } else {
    int64_t span = 1;
    for (int64_t d = 0; d < raw.dim(); ++d)
      span += (raw.size(d) - 1) * raw.stride(d);
    host = at::empty({span}, raw.options().device(c10::kCPU));
  }
  readBytes(host, raw, host.nbytes(), /*mayReturn=*/false);
  if (!isDense(raw))
    host = host.as_strided(raw.sizes(), raw.strides());
  setBits(host, from);
  return host;
}

static void copyOnHost(const at::Tensor &to, const at::Tensor &from) {
  countFallback("aten::copy_");
  at::Tensor source = download(from), result = download(to);
  result.copy_(source);
  writeBytes(to, result, result.storage().nbytes());
}

static void copyOnDevices(const at::Tensor &to, const at::Tensor &from) {
  if (liesAlike(to, from))
    return copyBytes(to, from);
  if (to.device() != from.device()) {
    // Elements with equal strides go to the other device as bytes.
    at::Tensor packed = from;
    if (!isDense(from)) {
      packed = at::empty(from.sizes(), from.options());
      setBits(packed, from);
      copyOnDevices(packed, from);
    }
    at::Tensor there = emptyLike(packed, from.scalar_type(), to.device());
    setBits(there, packed);
    copyBytes(there, packed);
    return copyOnDevices(to, there);
  }
  c10::DeviceGuard guard(to.device());
  if (!copyStrided(
          withoutBits(to), withoutBits(from),
          {to.is_neg() != from.is_neg(), to.is_conj() != from.is_conj()}))
    copyOnHost(to, from);
}

void torch_device::copyTensor(const at::Tensor &to, const at::Tensor &source,
                              bool mayReturn) {
  if (!to.numel())
    return;
  at::Tensor from =
      source.sizes() == to.sizes() ? source : source.expand(to.sizes());
  if (isOnDevice(from) && isOnDevice(to))
    return copyOnDevices(to, from);
  if (isOnDevice(to)) {
    c10::DeviceGuard guard(to.device());
    at::Tensor host = from;
    if (!liesAlike(to, from)) {
      // The host converts, so that the fewest bytes are copied.
      host = emptyLike(to, to.scalar_type(), c10::kCPU);
      setBits(host, to);
      host.copy_(from);
    }
    if (isDense(to))
      return writeBytes(to, host, host.nbytes());
    at::Tensor there = at::empty(to.sizes(), to.options());
    setBits(there, to);
    writeBytes(there, host, host.nbytes());
    return copyOnDevices(to, there);
  }
  c10::DeviceGuard guard(from.device());
  if (liesAlike(to, from))
    return readBytes(to, from, to.nbytes(), mayReturn);
  at::Tensor packed = from;
  if (!isDense(from) && copyKernels) {
    // A packed tensor is smaller than the span that the view lies in.
    packed = at::empty(from.sizes(), from.options());
    setBits(packed, from);
    copyOnDevices(packed, from);
  }
  to.copy_(download(packed));
}

//
// Fills
//

void torch_device::fillTensor(const at::Tensor &to, const at::Scalar &value) {
  if (!to.numel())
    return;
  at::Tensor one = at::empty({}, to.options().device(c10::kCPU));
  one.fill_(value);
  const auto *bytes = static_cast<const uint8_t *>(one.const_data_ptr());
  size_t size = to.itemsize();
  Place place = placeOf(to);
  size_t length = to.numel() * size;
  // This repeats one word.
  uint8_t word[4];
  for (size_t i = 0; i < 4; ++i)
    word[i] = bytes[i % size];
  bool isOneWord = true;
  for (size_t i = 0; i < size; ++i)
    isOneWord &= bytes[i] == word[i % 4];
  // Bytes behind the storage's end may be written, too.
  if (length % 4 != 0 &&
      to.storage_offset() * size + length == to.storage().nbytes())
    length = (length + 3) / 4 * 4;
  if (isOneWord && isDense(to) && place.offset % 4 == 0 && length % 4 == 0) {
    PlanRecorder::didMore();
    c10::DeviceIndex index = to.device().index();
    place.block->usedBy(currentStream(index));
    uint32_t repeated;
    std::memcpy(&repeated, word, 4);
    return currentQueue(index).run([&](Stream &stream) {
      stream.fill(place.block->buffer, length, repeated, place.offset);
    });
  }
  copyTensor(to, one, /*mayReturn=*/false);
}
