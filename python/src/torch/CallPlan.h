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

/// Keeps a kernel as long as the process lives; returns false if that fails.
/// Python, which has the kernels, sets the function.
void setKeepKernel(bool (*keep)(Kernel &));

/// The launches of a call.
class CallPlan {
public:
  /// Launches for tensors that lie as those of the recorded call, and returns
  /// results as the call did. All memory is taken before anything is launched.
  std::vector<at::Tensor> run(const std::vector<at::Tensor> &tensors) const;

private:
  friend class PlanRecorder;

  /// A result of the call: one of its tensors, a new one, or none.
  struct Result {
    std::optional<size_t> given, made;
    c10::ScalarType type = c10::ScalarType::Undefined;
    std::vector<int64_t> sizes, strides;
    int64_t offset = 0; // elements
  };
  struct Argument {
    /// Counts the call's tensors, then the plan's constants, then what it
    /// makes.
    std::optional<size_t> memory;
    int64_t offset = 0; // bytes from the tensor's first element
    std::vector<int64_t> shape;
    size_t elementBytes = 0;
    std::optional<int64_t> number;
  };
  struct Step {
    Kernel *kernel;
    std::vector<Argument> arguments, results;
  };

  /// Lets memory that is used at different times share its bytes.
  void shareMemory(size_t given);

  std::vector<at::Tensor> constants;
  std::vector<size_t> made; // bytes of each memory that the call makes
  std::vector<Step> steps;
  std::vector<Result> results;
};

/// Records the launches and allocations of its thread while it lives.
class PlanRecorder {
public:
  explicit PlanRecorder(std::vector<at::Tensor> tensors);
  ~PlanRecorder() { current = before; }
  PlanRecorder(const PlanRecorder &) = delete;

  /// Returns none if the launches alone do not repeat the call. Results may be
  /// undefined.
  std::optional<CallPlan> plan(const std::vector<at::Tensor> &results) const;

  static void made(Block *block, size_t bytes);
  static void launched(Kernel &kernel, const Device &device,
                       const std::vector<Passed> &arguments,
                       const std::vector<Passed> &results);
  /// Notes that the thread did something that a plan does not repeat.
  static void didMore();
  /// Lets launches read this tensor, which stays as it is and is complete for
  /// all streams.
  static void reads(const at::Tensor &constant);
  static bool isRecording() { return current; }

  /// While it lives, no recorder of its thread records anything.
  class Pause {
  public:
    Pause() : paused(std::exchange(current, nullptr)) {}
    ~Pause() { current = paused; }
    Pause(const Pause &) = delete;

  private:
    PlanRecorder *paused;
  };

private:
  std::optional<CallPlan::Argument> argumentOf(const Passed &passed) const;
  bool take(const std::vector<Passed> &passed,
            std::vector<CallPlan::Argument> &to) const;
  std::optional<size_t> madeOf(const Block *block) const;

  static thread_local PlanRecorder *current;
  PlanRecorder *before;
  std::vector<at::Tensor> tensors;
  std::vector<Place> places;
  std::vector<uint64_t> blocks; // numbers of blocks that were made
  CallPlan taken;               // arguments count made memory from `firstMade`
  bool isWhole = true;
};

} // namespace greta::torch_device

#endif
