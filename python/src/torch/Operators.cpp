//===- Operators.cpp - the operators that torch's device has by itself ----===//
//
// In: calls of aten's operators on tensors of a device rdna. Out: memory,
// views, copies and fills. All other operators come to the fallback of
// Dispatch.cpp, and from there to that of greta/torch/_dispatch.py, which
// compiles them, or redispatches them to the key PrivateUse2, whose fallback
// runs them on the CPU and counts.
//
//===----------------------------------------------------------------------===//

#include "CallPlan.h"
#include "Copies.h"
#include "Generator.h"
#include "Tensors.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/SDPBackend.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <atomic>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

using namespace greta::torch_device;
namespace torch_device = greta::torch_device;
using at::IntArrayRef;

//
// Memory and views
//

static constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);

/// Fills with NaN, or the largest integer, if
/// torch.use_deterministic_algorithms wants no memory that was not written.
static at::Tensor filledIfAsked(at::Tensor made) {
  const at::Context &context = at::globalContext();
  if (!context.deterministicAlgorithms() ||
      !context.deterministicFillUninitializedMemory())
    return made;
  // A graph records fills of a repeated word. Other fills are writes of the
  // host, which it does not record.
  c10::DeviceIndex index = made.device().index();
  bool isWord = made.itemsize() <= 4 && made.is_non_overlapping_and_dense();
  if (isWord || !torch_device::device(index).isCapturing(
                    torch_device::currentStream(index)))
    at::native::fill_empty_deterministic_(made);
  return made;
}

static at::Tensor empty(IntArrayRef size, std::optional<at::ScalarType> type,
                        std::optional<at::Layout>,
                        std::optional<c10::Device> place,
                        std::optional<bool> pin,
                        std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!c10::pinned_memory_or_default(pin),
              "only tensors of the CPU are pinned");
  c10::DeviceGuard guard(c10::device_or_default(place));
  return filledIfAsked(at::detail::empty_generic(
      size, storageAllocator(), keys, c10::dtype_or_default(type), format));
}

static at::Tensor emptyStrided(IntArrayRef size, IntArrayRef stride,
                               std::optional<at::ScalarType> type,
                               std::optional<at::Layout>,
                               std::optional<c10::Device> place,
                               std::optional<bool>) {
  c10::DeviceGuard guard(c10::device_or_default(place));
  return filledIfAsked(at::detail::empty_strided_generic(
      size, stride, storageAllocator(), keys, c10::dtype_or_default(type)));
}

/// Makes zeros of forward gradients, which have no memory.
static at::Tensor zeroTensor(IntArrayRef size,
                             std::optional<at::ScalarType> type,
                             std::optional<at::Layout>,
                             std::optional<c10::Device> place,
                             std::optional<bool>) {
  at::native::ZeroTensorAllocator nothing(c10::device_or_default(place));
  return at::detail::empty_generic(size, &nothing,
                                   keys.add(c10::DispatchKey::ZeroTensor),
                                   c10::dtype_or_default(type), std::nullopt);
}

static void growFor(c10::TensorImpl *of) {
  if (!of->numel())
    return;
  size_t bytes = at::detail::computeStorageNbytes(
      of->sizes(), of->strides(), of->dtype().itemsize(), of->storage_offset());
  if (bytes > of->storage().nbytes())
    resizeStorage(of->storage(), bytes);
}

static const at::Tensor &resize(const at::Tensor &self, IntArrayRef size,
                                std::optional<at::MemoryFormat> format) {
  if (self.sizes() == size &&
      (!format || *format == at::MemoryFormat::Preserve))
    return self; // and its strides
  PlanRecorder::didMore();
  c10::TensorImpl *of = self.unsafeGetTensorImpl();
  of->set_sizes_contiguous(size);
  if (format && *format != at::MemoryFormat::Preserve)
    of->empty_tensor_restride(*format);
  growFor(of);
  return self;
}

static at::Tensor &setStorage(at::Tensor &self, at::Storage source,
                              int64_t offset, IntArrayRef size,
                              IntArrayRef stride) {
  PlanRecorder::didMore();
  at::native::checkSetStorage(self, source, offset, size, stride, false);
  c10::TensorImpl *of = self.unsafeGetTensorImpl();
  of->set_storage_offset(offset);
  if (stride.empty() && !size.empty())
    of->set_sizes_contiguous(size);
  else
    of->set_sizes_and_strides(size, stride);
  growFor(of);
  return self;
}

static at::Tensor copyFrom(const at::Tensor &from, const at::Tensor &to,
                           bool mayReturn) {
  copyTensor(to, from, mayReturn);
  return to;
}

static at::Tensor copyFromAndResize(const at::Tensor &from,
                                    const at::Tensor &to) {
  to.resize_(from.sizes());
  copyTensor(to, from, false);
  return to;
}

static at::Scalar scalarOf(const at::Tensor &self) {
  at::Tensor host = at::empty({}, self.options().device(c10::kCPU));
  copyTensor(host, self.dim() ? self.reshape({}) : self, false);
  return at::native::_local_scalar_dense_cpu(host);
}

static at::Tensor &fillWith(at::Tensor &self, const at::Scalar &value) {
  c10::DeviceGuard guard(self.device());
  fillTensor(self, value);
  return self;
}

static at::Tensor &fillWithTensor(at::Tensor &self, const at::Tensor &value) {
  TORCH_CHECK(value.dim() == 0,
              "fill_ takes a number or a tensor of one "
              "element, which has no dims; this one has ",
              value.dim());
  copyTensor(self, value, false);
  return self;
}

static at::Tensor &zero(at::Tensor &self) { return fillWith(self, 0); }

/// Returns whether a parameter may become a tensor of the other device and stay
/// the same object, on which optimizers and tied weights rely.
static bool canTakePlaceOf(const at::Tensor &self, const at::Tensor &from) {
  auto isPlain = [](const at::Tensor &tensor) {
    return tensor.layout() == at::kStrided &&
           (tensor.is_cpu() || tensor.device().type() == deviceType);
  };
  return isPlain(self) && isPlain(from);
}

static void recordStream(at::Tensor &self, c10::Stream stream) {
  if (self.storage().nbytes())
    placeOf(self).block->usedBy(stream.id());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", emptyStrided);
  m.impl("_efficientzerotensor", zeroTensor);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("unfold", at::native::unfold);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("resize_", resize);
  m.impl("set_.source_Tensor", at::native::set_tensor_);
  m.impl("set_.source_Storage",
         [](at::Tensor &self, at::Storage source) -> at::Tensor & {
           return at::native::set_(self, source);
         });
  m.impl("set_.source_Storage_storage_offset", setStorage);
  m.impl("_copy_from", copyFrom);
  m.impl("_copy_from_and_resize", copyFromAndResize);
  m.impl("_local_scalar_dense", scalarOf);
  m.impl("fill_.Scalar", fillWith);
  m.impl("fill_.Tensor", fillWithTensor);
  m.impl("zero_", zero);
  m.impl("record_stream", recordStream);
  m.impl("_has_compatible_shallow_copy_type", canTakePlaceOf);
}

// The copy itself handles lazy conjugates and negations; torch's own fallback
// would copy to get rid of them.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

//
// The CPU
//

static std::mutex fallbackLock;
static std::map<std::string, int64_t> fallbackCounts;
static std::atomic<bool> isFallbackAllowed = true;

std::map<std::string, int64_t> torch_device::fallbacks(bool reset) {
  std::lock_guard<std::mutex> guard(fallbackLock);
  auto result = fallbackCounts;
  if (reset)
    fallbackCounts.clear();
  return result;
}

bool torch_device::allowFallback(bool allowed) {
  return isFallbackAllowed.exchange(allowed);
}

void torch_device::countFallback(const std::string &name) {
  PlanRecorder::didMore();
  TORCH_CHECK_NOT_IMPLEMENTED(
      isFallbackAllowed, name,
      " has no kernel for rdna and may not run on the CPU; "
      "torch.rdna.forbid_fallback(False) allows it");
  std::lock_guard<std::mutex> guard(fallbackLock);
  ++fallbackCounts[name];
}

/// Gives operators of the CPU, which take no generator of ours, one of the
/// CPU's with a seed from ours.
static void lendGenerators(const c10::OperatorHandle &op,
                           torch::jit::Stack *stack) {
  const auto &arguments = op.schema().arguments();
  auto given = torch::jit::last(*stack, arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto optional = arguments[i].type()->cast<c10::OptionalType>();
    if (!optional ||
        optional->getElementType()->kind() != c10::TypeKind::GeneratorType)
      continue;
    at::Generator generator =
        given[i].isNone() ? defaultGenerator(-1) : given[i].toGenerator();
    if (generator.device().type() != deviceType)
      continue;
    std::lock_guard<std::mutex> guard(generator.mutex());
    auto *ours =
        static_cast<PhiloxGenerator *>(generator.unsafeGetGeneratorImpl());
    uint64_t offset = ours->take(4);
    const_cast<c10::IValue &>(given[i]) =
        at::make_generator<at::CPUGeneratorImpl>(
            ours->current_seed() + offset / 4 * 0x9e3779b97f4a7c15);
  }
}

/// Returns the operator whose schema says that it writes batch norm's running
/// statistics, so that these are copied back.
static c10::OperatorHandle sayingWhatIsWritten(const c10::OperatorHandle &op,
                                               torch::jit::Stack *stack) {
  constexpr int mean = 3, arguments = 8;
  if (op.schema().name() != "aten::native_batch_norm" ||
      !torch::jit::peek(*stack, mean, arguments).isTensor())
    return op;
  return c10::Dispatcher::singleton().findSchemaOrThrow(
      "aten::_native_batch_norm_legit", "");
}

static void runOnCpu(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  countFallback(toString(op.operator_name()));
  lendGenerators(op, stack);
  at::native::cpu_fallback(sayingWhatIsWritten(op, stack), stack,
                           /*error_on_views=*/true);
}

TORCH_LIBRARY_IMPL(_, PrivateUse2, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&runOnCpu>());
}

//
// Attention
//

/// Returns whether there are as many keys and values as the queries need.
/// torch's own way repeats a batch of one, and says why the rest is wrong.
/// Extents may be symbols of a graph that is traced, and stay so.
static bool fitTogether(const at::Tensor &query, const at::Tensor &key,
                        const at::Tensor &value, bool sharesKeys) {
  if (query.sym_size(0) != key.sym_size(0) ||
      query.sym_size(0) != value.sym_size(0) ||
      query.sym_size(3) != key.sym_size(3) ||
      key.sym_size(1) != value.sym_size(1) ||
      key.sym_size(2) != value.sym_size(2))
    return false;
  c10::SymInt heads = key.sym_size(1);
  return query.sym_size(1) == heads || heads == 1 ||
         (sharesKeys && heads != 0 && query.sym_size(1) % heads == 0);
}

static std::atomic<bool> isQuadraticAllowed = false;

bool torch_device::allowQuadraticAttention(bool allowed) {
  return isQuadraticAllowed.exchange(allowed);
}

/// Chooses the kernel of greta/torch/_attention.py. The quadratic one of many
/// operators is refused unless it is allowed, and counts as a fallback.
static int64_t chooseAttention(const at::Tensor &query, const at::Tensor &key,
                               const at::Tensor &value,
                               const std::optional<at::Tensor> &bias,
                               double dropout, bool isCausal,
                               std::optional<double> scale, bool sharesKeys) {
  auto type = query.scalar_type();
  bool hasType =
      type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
  bool hasKernel =
      hasType && key.scalar_type() == type && value.scalar_type() == type &&
      dropout == 0 && query.dim() == 4 && key.dim() == 4 && value.dim() == 4 &&
      !query.is_nested() && fitTogether(query, key, value, sharesKeys) &&
      query.sym_size(-1) <= 256 && value.sym_size(-1) <= 256 &&
      !(bias && (bias->requires_grad() || bias->dim() > 4));
  if (hasKernel)
    return static_cast<int64_t>(at::SDPBackend::overrideable);
  TORCH_CHECK_NOT_IMPLEMENTED(
      isQuadraticAllowed,
      "scaled_dot_product_attention has no kernel for rdna with dropout, other "
      "types than float32, float16 and bfloat16, heads of more than 256 "
      "numbers, a gradient of the mask, or shapes that do not fit together, "
      "and torch's own takes memory for all queries times keys; "
      "torch.rdna.allow_quadratic_attention(True) allows it");
  countFallback("aten::_scaled_dot_product_attention_math");
  return static_cast<int64_t>(at::SDPBackend::math);
}

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &chooseAttention)
} // namespace at::native
