//===- CallPlan.cpp - what a call launches, to be launched again ----------===//
//
// In: launches and allocations of a thread. Out: a plan of them, in which
// memory is the call's own tensors or what the call made:
//
//   tensors x, w; made m of 64 bytes (a result)
//   turn(w) -> made n of 32 bytes; convolve(x, n) -> m
//
//===----------------------------------------------------------------------===//

#include "CallPlan.h"
#include "Profiler.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/DeviceGuard.h>
#include <unordered_map>

using namespace greta;
using namespace greta::torch_device;

thread_local PlanRecorder *PlanRecorder::current = nullptr;

void torch_device::enqueue(Kernel &kernel, Device &device, int64_t stream,
                           const std::vector<Passed> &arguments,
                           const std::vector<Passed> &results) {
  PlanRecorder::launched(kernel, device, arguments, results);
  auto listed = [&](const std::vector<Passed> &passed) {
    std::vector<greta_tensor> list;
    list.reserve(passed.size());
    for (const Passed &one : passed) {
      if (one.block)
        one.block->usedBy(stream);
      list.push_back(one.tensor);
    }
    return list;
  };
  std::vector<greta_tensor> in = listed(arguments), out = listed(results);
  const Kernel::Loaded &loaded = kernel.on(device);
  bool isTimed = isProfiled(device, stream);
  device.queue(stream).run([&](Stream &on) {
    std::optional<LaunchTimer> timer;
    if (isTimed)
      timer.emplace(kernel.function(), device, stream, on);
    check(greta_function_launch(loaded.function.get(), on.get(), in.data(),
                                in.size(), out.data(), out.size()));
    if (timer)
      timer->finish();
  });
}

static bool (*keepKernel)(Kernel &) = nullptr;

void torch_device::setKeepKernel(bool (*keep)(Kernel &)) { keepKernel = keep; }

//
// Recording
//

/// The number of the first memory that a call makes, while it is recorded. Its
/// constants come before it in the plan and are not all known yet.
constexpr size_t firstMade = size_t(1) << 32;

PlanRecorder::PlanRecorder(std::vector<at::Tensor> given)
    : before(current), tensors(std::move(given)) {
  std::unordered_map<Block *, const void *> storages;
  for (const at::Tensor &tensor : tensors) {
    places.push_back(placeOf(tensor));
    // The key of a call does not tell how far apart tensors of two storages lie
    // in one block.
    const void *storage = tensor.storage().data();
    isWhole &= storages.emplace(places.back().block, storage).first->second ==
                   storage &&
               tensor.device() == tensors[0].device();
  }
  isWhole &= !tensors.empty();
  current = this;
}

std::optional<size_t> PlanRecorder::madeOf(const Block *block) const {
  for (size_t i = blocks.size(); block && i-- > 0;)
    if (blocks[i] == block->number)
      return firstMade + i;
  return std::nullopt;
}

std::optional<CallPlan::Argument>
PlanRecorder::argumentOf(const Passed &passed) const {
  CallPlan::Argument argument;
  if (passed.tensor.shape)
    argument.shape.assign(passed.tensor.shape,
                          passed.tensor.shape + passed.tensor.rank);
  argument.elementBytes = passed.elementBytes;
  if (passed.tensor.value)
    argument.number = *static_cast<const int64_t *>(passed.tensor.value);
  if (passed.tensor.value || !passed.block)
    return argument;
  argument.offset = passed.tensor.offset;
  auto isIn = [&](const Place &place) { return place.block == passed.block; };
  auto given = std::find_if(places.begin(), places.end(), isIn);
  auto constant = std::find_if(
      taken.constants.begin(), taken.constants.end(),
      [&](const at::Tensor &tensor) { return isIn(placeOf(tensor)); });
  if (given != places.end()) {
    argument.memory = given - places.begin();
    argument.offset -= given->offset;
  } else if (constant != taken.constants.end()) {
    argument.memory = tensors.size() + (constant - taken.constants.begin());
    argument.offset -= placeOf(*constant).offset;
  } else {
    argument.memory = madeOf(passed.block);
    if (!argument.memory)
      return std::nullopt;
  }
  return argument;
}

bool PlanRecorder::take(const std::vector<Passed> &passed,
                        std::vector<CallPlan::Argument> &to) const {
  for (const Passed &one : passed) {
    auto argument = argumentOf(one);
    if (!argument)
      return false;
    to.push_back(std::move(*argument));
  }
  return true;
}

void PlanRecorder::made(Block *block, size_t bytes) {
  for (PlanRecorder *one = current; one; one = one->before) {
    one->isWhole =
        one->isWhole && block->device == one->tensors[0].device().index();
    one->blocks.push_back(block->number);
    one->taken.made.push_back(bytes);
  }
}

void PlanRecorder::launched(Kernel &kernel, const Device &device,
                            const std::vector<Passed> &arguments,
                            const std::vector<Passed> &results) {
  for (PlanRecorder *one = current; one; one = one->before) {
    if (!one->isWhole)
      continue;
    CallPlan::Step step{&kernel, {}, {}};
    one->isWhole = device.index == one->tensors[0].device().index() &&
                   one->take(arguments, step.arguments) &&
                   one->take(results, step.results);
    one->taken.steps.push_back(std::move(step));
  }
}

void PlanRecorder::didMore() {
  for (PlanRecorder *one = current; one; one = one->before)
    one->isWhole = false;
}

void PlanRecorder::reads(const at::Tensor &constant) {
  for (PlanRecorder *one = current; one; one = one->before)
    one->taken.constants.push_back(constant);
}

std::optional<CallPlan>
PlanRecorder::plan(const std::vector<at::Tensor> &results) const {
  if (!isWhole || taken.steps.empty() || !keepKernel)
    return std::nullopt;
  CallPlan plan = taken;
  for (const at::Tensor &one : results) {
    CallPlan::Result result;
    if (one.defined()) {
      auto given =
          std::find_if(tensors.begin(), tensors.end(),
                       [&](auto &tensor) { return tensor.is_same(one); });
      if (given != tensors.end()) {
        result.given = given - tensors.begin();
      } else {
        result.made = madeOf(blockOf(one.storage().data_ptr()));
        if (!result.made || one.is_neg() || one.is_conj())
          return std::nullopt;
        result.type = one.scalar_type();
        result.sizes = one.sizes().vec();
        result.strides = one.strides().vec();
        result.offset = one.storage_offset();
      }
    }
    plan.results.push_back(std::move(result));
  }
  plan.shareMemory(tensors.size());
  for (const CallPlan::Step &step : plan.steps)
    if (!keepKernel(*step.kernel))
      return std::nullopt;
  return plan;
}

void CallPlan::shareMemory(size_t given) {
  constexpr size_t end = -1;
  struct Use {
    size_t first = end, last = 0;
  };
  std::vector<Use> uses(made.size());
  auto forAll = [&](auto &&visit) {
    for (size_t i = 0; i < steps.size(); ++i)
      for (auto *list : {&steps[i].arguments, &steps[i].results})
        for (Argument &one : *list)
          if (one.memory && *one.memory >= firstMade)
            visit(i, *one.memory);
  };
  forAll([&](size_t step, size_t &memory) {
    Use &use = uses[memory - firstMade];
    use.first = std::min(use.first, step);
    use.last = std::max(use.last, step);
  });
  for (const Result &result : results)
    if (result.made)
      uses[*result.made - firstMade] = {0, end};

  // These list the memory in the order of first uses.
  std::vector<size_t> order, place(made.size()), bytes, last;
  for (size_t i = 0; i < made.size(); ++i)
    if (uses[i].first != end)
      order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return uses[a].first < uses[b].first;
  });
  for (size_t one : order) {
    size_t best = bytes.size();
    for (size_t i = 0; i < bytes.size(); ++i)
      if (last[i] < uses[one].first && uses[one].last != end &&
          bytes[i] >= made[one] &&
          (best == bytes.size() || bytes[i] < bytes[best]))
        best = i;
    if (best == bytes.size()) {
      bytes.push_back(made[one]);
      last.push_back(0);
    }
    place[one] = best;
    last[best] = uses[one].last;
  }
  size_t begin = given + constants.size();
  forAll([&](size_t, size_t &memory) {
    memory = begin + place[memory - firstMade];
  });
  for (Result &result : results)
    if (result.made)
      result.made = place[*result.made - firstMade];
  made = std::move(bytes);
}

//
// Launching again
//

std::vector<at::Tensor>
CallPlan::run(const std::vector<at::Tensor> &tensors) const {
  c10::DeviceIndex index = tensors[0].device().index();
  c10::DeviceGuard guard(tensors[0].device());
  Device &device = torch_device::device(index);
  int64_t stream = currentStream(index);
  std::vector<Place> places;
  places.reserve(tensors.size() + constants.size() + made.size());
  for (const std::vector<at::Tensor> *list : {&tensors, &constants})
    for (const at::Tensor &tensor : *list)
      places.push_back(placeOf(tensor));
  for (const at::Tensor &constant : constants)
    PlanRecorder::reads(constant);
  std::vector<c10::Storage> storages;
  storages.reserve(made.size());
  for (size_t bytes : made) {
    storages.emplace_back(c10::Storage::use_byte_size_t(), bytes,
                          storageAllocator(), /*resizable=*/true);
    places.push_back({blockOf(storages.back().data_ptr()), 0});
  }

  std::vector<Passed> passed[2];
  std::vector<int64_t> rooms;
  auto pass = [&](const std::vector<Argument> &from, std::vector<Passed> &to) {
    to.clear();
    for (const Argument &one : from) {
      Passed &passed = to.emplace_back();
      passed.elementBytes = one.elementBytes;
      if (one.number) {
        passed.tensor = {nullptr, 0, nullptr, 0, &*one.number};
        continue;
      }
      passed.tensor = {nullptr, 0, one.shape.data(), uint32_t(one.shape.size()),
                       nullptr};
      if (!one.memory) {
        passed.tensor.buffer = device.placeholder();
        continue;
      }
      const Place &place = places[*one.memory];
      passed.block = place.block;
      passed.tensor.buffer = place.block->buffer.get();
      passed.tensor.offset = place.offset + one.offset;
      if (one.elementBytes) {
        rooms.push_back((place.block->size() - passed.tensor.offset) /
                        one.elementBytes);
        passed.tensor.shape = &rooms.back();
      }
    }
  };
  for (const Step &step : steps) {
    rooms.clear();
    rooms.reserve(step.arguments.size() + step.results.size());
    pass(step.arguments, passed[0]);
    pass(step.results, passed[1]);
    enqueue(*step.kernel, device, stream, passed[0], passed[1]);
  }

  std::vector<at::Tensor> out;
  for (const Result &result : results) {
    if (!result.made) {
      out.push_back(result.given ? tensors[*result.given] : at::Tensor());
      continue;
    }
    at::Tensor tensor = at::detail::make_tensor<at::TensorImpl>(
        c10::Storage(storages[*result.made]),
        c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
        c10::scalarTypeToTypeMeta(result.type));
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(
        result.sizes, result.strides, result.offset);
    out.push_back(std::move(tensor));
  }
  return out;
}
