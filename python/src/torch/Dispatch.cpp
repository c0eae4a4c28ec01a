//===- Dispatch.cpp - calls that are launched again without Python --------===//
//
// In: calls of operators that the device does not have by itself. Out: the
// launches of the plan that a call of the same key left, or the way through
// greta/torch/_dispatch.py, which is at the key PrivateUse3. The first call of
// a key compiles, the second one is recorded.
//
//   add(x: f16 [2, 3], y: f16 [2, 3], alpha: 1) -> add_kernel(x, y, made)
//
//===----------------------------------------------------------------------===//

#include "Dispatch.h"

#include "CallPlan.h"

#include <ATen/Context.h>
#include <atomic>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <shared_mutex>
#include <torch/library.h>
#include <unordered_map>

using namespace greta::torch_device;
using c10::IValue;

namespace {

/// A key tells calls apart: by operator, by torch's settings that change it, by
/// types, sizes, strides and alignments of tensors, by which of them share
/// memory and how, and by all other arguments.
class CallKey {
public:
  explicit CallKey(const c10::OperatorHandle &op) {
    bytes.reserve(512);
    append(&op.schema());
    append(at::get_default_dtype_as_scalartype());
    append(at::globalContext().deterministicAlgorithms());
  }

  /// Returns false if an argument has no short key.
  bool add(const IValue &value) {
    if (value.isTensor() && value.toTensor().defined())
      return add(value.toTensor());
    if (value.isTensor() || value.isNone()) {
      append('o');
    } else if (value.isBool()) {
      append('b');
      append(value.toBool());
    } else if (value.isInt()) {
      append('i');
      append(value.toInt());
    } else if (value.isDouble()) {
      append('f');
      append(value.toDouble());
    } else if (value.isComplexDouble()) {
      append('c');
      append(value.toComplexDouble());
    } else if (value.isString()) {
      append('s');
      append(value.toStringRef().size());
      bytes += value.toStringRef();
    } else if (value.isDevice()) {
      append('d');
      append(value.toDevice());
    } else if (value.isList()) {
      c10::ArrayRef<IValue> list = value.toListRef();
      append('(');
      append(list.size());
      return std::all_of(list.begin(), list.end(),
                         [&](const IValue &one) { return add(one); });
    } else {
      return false;
    }
    return true;
  }

  std::string bytes;
  std::vector<at::Tensor> tensors; // the device's, in their order

private:
  template <typename T> void append(T value) {
    bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
  }

  bool add(const at::Tensor &tensor) {
    if (tensor.is_cpu() && tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      append('n');
      append(tensor.scalar_type());
      bytes.append(static_cast<const char *>(tensor.const_data_ptr()),
                   tensor.itemsize());
      return true;
    }
    if (tensor.device().type() != deviceType || tensor.is_neg() ||
        tensor.is_conj() || tensor.layout() != at::kStrided ||
        tensor.numel() == 0)
      return false;
    auto address = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
    // DLPack gives memory a second storage, which may begin elsewhere in it.
    const void *memory = tensor.storage().data();
    auto first = std::find_if(places.begin(), places.end(), [&](auto &place) {
      return place.first == memory || place.second == address;
    });
    append('t');
    append(tensor.scalar_type());
    append(tensor.device().index());
    append(int(first - places.begin()));
    append(first == places.end() ? address % 16 : address - first->second);
    append(tensor.dim());
    for (int64_t size : tensor.sizes())
      append(size);
    for (int64_t stride : tensor.strides())
      append(stride);
    places.push_back({memory, address});
    tensors.push_back(tensor);
    return true;
  }

  std::vector<std::pair<const void *, uintptr_t>> places;
};

/// One return of an operator: tensors among the results of its plan, or a
/// number, which does not depend on the values in tensors, as a recorded call
/// has not read them.
struct Return {
  enum class Kind { Tensor, List, Number } kind;
  size_t count;
  IValue number;
};

struct Planned {
  std::string name; // the operator's
  CallPlan plan;
  std::vector<Return> returns;
  mutable std::atomic<int64_t> runs{0};
};

class Plans {
public:
  std::shared_ptr<const Planned> find(const std::string &key) {
    std::shared_lock<std::shared_mutex> guard(lock);
    auto found = plans.find(key);
    return found == plans.end() ? nullptr : found->second;
  }

  /// Returns whether the key had a call before, none of which was recorded.
  bool isSecond(const std::string &key) {
    std::lock_guard<std::shared_mutex> guard(lock);
    if (calls.size() >= most)
      calls.clear();
    return ++calls[std::hash<std::string>()(key)] == 2;
  }

  void add(const std::string &key, std::shared_ptr<const Planned> planned) {
    decltype(plans) old; // freed without the lock, as tensors may take Python's
    std::lock_guard<std::shared_mutex> guard(lock);
    if (plans.size() >= most)
      old.swap(plans);
    std::swap(plans[key], planned);
  }

  void clear() {
    decltype(plans) old;
    std::lock_guard<std::shared_mutex> guard(lock);
    calls.clear();
    old.swap(plans);
  }

  std::map<std::string, std::pair<int64_t, int64_t>> counts() {
    std::shared_lock<std::shared_mutex> guard(lock);
    std::map<std::string, std::pair<int64_t, int64_t>> counted;
    for (const auto &[key, planned] : plans) {
      auto &[kinds, runs] = counted[planned->name];
      ++kinds;
      runs += planned->runs;
    }
    return counted;
  }

private:
  static constexpr size_t most = 1 << 15;
  std::shared_mutex lock;
  // Counts by the key's hash, so that numbers that change in each call, as a
  // learning rate, leave no long keys.
  std::unordered_map<size_t, int> calls;
  std::unordered_map<std::string, std::shared_ptr<const Planned>> plans;
};

Plans &allPlans = *new Plans; // Python ends before globals do

} // namespace

static constexpr c10::DispatchKeySet inPython(c10::DispatchKey::PrivateUse3);

/// Replaces the arguments on the stack by the results; returns false if there
/// is too little memory for all of the plan.
static bool runPlan(const Planned &planned, torch::jit::Stack *stack,
                    size_t arguments, const std::vector<at::Tensor> &tensors) {
  std::vector<at::Tensor> results;
  try {
    results = planned.plan.run(tensors);
  } catch (const c10::OutOfMemoryError &) {
    return false;
  }
  ++planned.runs;
  torch::jit::drop(*stack, arguments);
  auto next = results.begin();
  for (const Return &one : planned.returns) {
    if (one.kind == Return::Kind::List)
      stack->emplace_back(std::vector<at::Tensor>(next, next + one.count));
    else
      stack->push_back(one.kind == Return::Kind::Tensor ? IValue(*next)
                                                        : one.number);
    next += one.count;
  }
  return true;
}

/// Returns the plan of a call that has just ended; null if launches alone do
/// not repeat it.
static std::shared_ptr<Planned> planOf(const c10::OperatorHandle &op,
                                       const torch::jit::Stack &stack,
                                       const PlanRecorder &recorder) {
  auto planned = std::make_shared<Planned>();
  planned->name = toString(op.operator_name());
  std::vector<at::Tensor> results;
  for (const IValue &one :
       torch::jit::last(stack, op.schema().returns().size())) {
    if (one.isTensor()) {
      results.push_back(one.toTensor());
      planned->returns.push_back({Return::Kind::Tensor, 1, {}});
    } else if (one.isTensorList()) {
      std::vector<at::Tensor> list = one.toTensorVector();
      results.insert(results.end(), list.begin(), list.end());
      planned->returns.push_back({Return::Kind::List, list.size(), {}});
    } else if (one.isInt() || one.isDouble() || one.isBool()) {
      planned->returns.push_back({Return::Kind::Number, 0, one});
    } else {
      return nullptr;
    }
  }
  std::optional<CallPlan> plan = recorder.plan(results);
  if (!plan)
    return nullptr;
  planned->plan = std::move(*plan);
  return planned;
}

static void runOrRecord(const c10::OperatorHandle &op,
                        torch::jit::Stack *stack) {
  // The operators inside this one compute in its types, and no key tells
  // whether autocast is on.
  c10::impl::ExcludeDispatchKeyGuard noAutocast(c10::autocast_dispatch_keyset);
  size_t arguments = op.schema().arguments().size();
  CallKey key(op);
  auto given = torch::jit::last(*stack, arguments);
  bool isKnown = std::all_of(given.begin(), given.end(),
                             [&](const IValue &one) { return key.add(one); });
  if (!isKnown || key.tensors.empty())
    return op.redispatchBoxed(inPython, stack);
  if (auto planned = allPlans.find(key.bytes))
    if (runPlan(*planned, stack, arguments, key.tensors))
      return;
  if (!allPlans.isSecond(key.bytes))
    return op.redispatchBoxed(inPython, stack);
  PlanRecorder recorder(std::move(key.tensors));
  op.redispatchBoxed(inPython, stack);
  if (auto planned = planOf(op, *stack, recorder))
    allPlans.add(key.bytes, std::move(planned));
}

std::map<std::string, std::pair<int64_t, int64_t>>
greta::torch_device::callPlans() {
  return allPlans.counts();
}

void greta::torch_device::forgetCallPlans() { allPlans.clear(); }

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&runOrRecord>());
}

// These operators have kernels for every device, which go before fallbacks:
// they fail, or compose the operator of others, as a cast.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char *name :
       {"_to_copy", "convolution_overrideable",
        "convolution_backward_overrideable", "embedding", "native_group_norm",
        "native_layer_norm", "_fused_rms_norm",
        "_scaled_dot_product_fused_attention_overrideable",
        "_scaled_dot_product_fused_attention_overrideable_backward"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&runOrRecord>());
}
