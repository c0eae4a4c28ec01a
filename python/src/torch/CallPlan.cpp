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

#include "Generator.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/DeviceGuard.h>

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
      if (one.block && one.block->stream != stream)
        one.block->isShared = true;
      list.push_back(one.tensor);
    }
    return list;
  };
  std::vector<greta_tensor> in = listed(arguments), out = listed(results);
  const Kernel::Loaded &loaded = kernel.on(device);
  device.queue(stream).run([&](Stream &on) {
    check(greta_function_launch(loaded.function.get(), on.get(), in.data(),
                                in.size(), out.data(), out.size()));
  });
}

//
// PlanRecorder
//

PlanRecorder::PlanRecorder(std::vector<at::Tensor> given)
    : before(current), tensors(std::move(given)) {
  for (const at::Tensor &tensor : tensors) {
    places.push_back(placeOf(tensor));
    blocks.push_back(places.back().block);
    // The key of a call does not tell how far tensors of two storages lie
    // apart in one block.
    for (size_t i = 0; i + 1 < places.size(); ++i)
      isWhole &= places[i].block != places.back().block ||
                 tensors[i].storage().data() == tensor.storage().data();
    isWhole &= tensor.device() == tensors[0].device();
  }
  isWhole &= !tensors.empty();
  current = this;
}

std::optional<size_t> PlanRecorder::memoryOf(const Block *block) const {
  // Memory that was made later may have the block of memory that is gone.
  for (size_t i = blocks.size(); i-- > tensors.size();)
    if (blocks[i] == block)
      return i;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (blocks[i] == block)
      return i;
  return std::nullopt;
}

bool PlanRecorder::take(const std::vector<Passed> &passed,
                        std::vector<CallPlan::Argument> &to) {
  for (const Passed &one : passed) {
    CallPlan::Argument argument;
    if (one.tensor.shape)
      argument.shape.assign(one.tensor.shape,
                            one.tensor.shape + one.tensor.rank);
    argument.elementBytes = one.elementBytes;
    if (one.tensor.value) {
      argument.number = *static_cast<const int64_t *>(one.tensor.value);
    } else if (one.block) {
      argument.memory = memoryOf(one.block);
      if (!argument.memory)
        return false;
      argument.offset = one.tensor.offset;
      if (*argument.memory < tensors.size())
        argument.offset -= places[*argument.memory].offset;
    }
    to.push_back(std::move(argument));
  }
  return true;
}

void PlanRecorder::made(Block *block, size_t bytes) {
  for (PlanRecorder *one = current; one; one = one->before) {
    one->isWhole =
        one->isWhole && block->device == one->tensors[0].device().index();
    one->blocks.push_back(block);
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

std::vector<Kernel *> PlanRecorder::kernels() const {
  std::vector<Kernel *> list;
  for (const CallPlan::Step &step : taken.steps)
    list.push_back(step.kernel);
  return list;
}

std::optional<CallPlan> PlanRecorder::plan(
    const std::vector<std::optional<at::Tensor>> &results) const {
  if (!isWhole)
    return std::nullopt;
  CallPlan plan = taken;
  for (const std::optional<at::Tensor> &one : results) {
    CallPlan::Result result;
    if (one) {
      auto given =
          std::find_if(tensors.begin(), tensors.end(),
                       [&](auto &tensor) { return tensor.is_same(*one); });
      auto memory = memoryOf(blockOf(one->storage().data_ptr()));
      if (given != tensors.end()) {
        result.given = given - tensors.begin();
      } else {
        bool isUsed =
            std::any_of(plan.results.begin(), plan.results.end(),
                        [&](auto &other) { return other.made == memory; });
        if (!memory || *memory < tensors.size() || isUsed ||
            one->storage_offset() || one->is_neg() || one->is_conj())
          return std::nullopt;
        result.made = memory;
        result.type = one->scalar_type();
        result.sizes = one->sizes().vec();
        result.strides = one->strides().vec();
      }
    }
    plan.results.push_back(std::move(result));
  }
  return plan;
}

//
// Repeating
//

std::vector<at::Tensor>
CallPlan::run(const std::vector<at::Tensor> &tensors) const {
  c10::DeviceIndex index = tensors[0].device().index();
  c10::DeviceGuard guard(tensors[0].device());
  Device &device = torch_device::device(index);
  int64_t stream = currentStream(index);
  std::vector<Place> places;
  places.reserve(tensors.size() + made.size());
  for (const at::Tensor &tensor : tensors)
    places.push_back(placeOf(tensor));
  std::vector<c10::DataPtr> kept;
  kept.reserve(made.size());
  for (size_t bytes : made) {
    kept.push_back(storageAllocator()->allocate(bytes));
    places.push_back({blockOf(kept.back()), 0});
  }

  std::vector<Passed> arguments, results;
  std::vector<int64_t> rooms;
  auto pass = [&](const std::vector<Argument> &from, std::vector<Passed> &to) {
    to.clear();
    for (const Argument &one : from) {
      Passed passed{
          {nullptr, 0, one.shape.data(), uint32_t(one.shape.size()), nullptr},
          nullptr,
          one.elementBytes};
      if (one.number) {
        passed.tensor = {nullptr, 0, nullptr, 0, &*one.number};
      } else if (one.memory) {
        const Place &place = places[*one.memory];
        passed.block = place.block;
        passed.tensor.buffer = place.block->buffer.get();
        passed.tensor.offset = place.offset + one.offset;
        if (one.elementBytes) {
          rooms.push_back((place.block->size() - passed.tensor.offset) /
                          one.elementBytes);
          passed.tensor.shape = &rooms.back();
        }
      } else {
        passed.tensor.buffer = device.placeholder();
      }
      to.push_back(passed);
    }
  };
  for (const Step &step : steps) {
    rooms.clear();
    rooms.reserve(step.arguments.size() + step.results.size());
    pass(step.arguments, arguments);
    pass(step.results, results);
    enqueue(*step.kernel, device, stream, arguments, results);
  }

  std::vector<at::Tensor> out;
  for (const Result &result : this->results) {
    if (!result.made) {
      out.emplace_back();
      continue;
    }
    size_t memory = *result.made - tensors.size();
    c10::Storage storage(c10::Storage::use_byte_size_t(), made[memory],
                         std::move(kept[memory]), storageAllocator(),
                         /*resizable=*/true);
    at::Tensor tensor = at::detail::make_tensor<at::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
        c10::scalarTypeToTypeMeta(result.type));
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(result.sizes,
                                                        result.strides);
    out.push_back(std::move(tensor));
  }
  return out;
}
