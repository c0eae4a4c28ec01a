//===- CallPlan.h - what a call launches, to be launched again ------------===//
//
// In: a call of an operator, while its thread launches kernels and makes
// tensors. Out: the same launches for other tensors that lie as the call's do.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_PYTHON_TORCH_CALLPLAN_H
#define GRETA_PYTHON_TORCH_CALLPLAN_H

#include "Tensors.h"

#include <optional>

namespace greta::torch_device {

/// Queues a launch, which the recorders of this thread take down.
void enqueue(Kernel &kernel, Device &device, int64_t stream,
             const std::vector<Passed> &arguments,
             const std::vector<Passed> &results);

/// The launches of a call.
class CallPlan {
public:
  /// A result of the call: one of its tensors, a new one, or neither.
  struct Result {
    std::optional<size_t> given, made;
    c10::ScalarType type = c10::ScalarType::Undefined;
    std::vector<int64_t> sizes, strides;
  };

  /// Launches for tensors that lie as those of the recorded call, and returns
  /// the results, undefined where they are not new. All memory is taken before
  /// anything is launched.
  std::vector<at::Tensor> run(const std::vector<at::Tensor> &tensors) const;

  std::vector<Result> results;

private:
  friend class PlanRecorder;

  struct Argument {
    std::optional<size_t> memory; // of the call's tensors, then what it made
    int64_t offset = 0;           // from the tensor's first element
    std::vector<int64_t> shape;
    size_t elementBytes = 0;
    std::optional<int64_t> number;
  };
  struct Step {
    Kernel *kernel;
    std::vector<Argument> arguments, results;
  };

  std::vector<size_t> made; // bytes of the memory that the call made
  std::vector<Step> steps;
};

/// Records what its thread does while it lives.
class PlanRecorder {
public:
  explicit PlanRecorder(std::vector<at::Tensor> tensors);
  ~PlanRecorder() { current = before; }
  PlanRecorder(const PlanRecorder &) = delete;

  /// None where the launches alone do not repeat the call.
  std::optional<CallPlan>
  plan(const std::vector<std::optional<at::Tensor>> &results) const;
  std::vector<Kernel *> kernels() const;

  static void made(Block *block, size_t bytes);
  static void launched(Kernel &kernel, const Device &device,
                       const std::vector<Passed> &arguments,
                       const std::vector<Passed> &results);
  /// The thread has done what a plan does not repeat.
  static void didMore();

private:
  std::optional<size_t> memoryOf(const Block *block) const;
  bool take(const std::vector<Passed> &passed,
            std::vector<CallPlan::Argument> &to);

  static thread_local PlanRecorder *current;
  PlanRecorder *before;
  std::vector<at::Tensor> tensors;
  std::vector<Place> places;
  std::vector<Block *> blocks; // of the tensors, then of what was made
  CallPlan taken;
  bool isWhole = true;
};

} // namespace greta::torch_device

#endif
