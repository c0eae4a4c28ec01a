//===- Tensors.h - tensors of torch as memory of the runtime --------------===//
//
// In: tensors on a device rdna. Out: their buffers and offsets, and launches
// of kernels that were compiled for them.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_PYTHON_TORCH_TENSORS_H
#define GRETA_PYTHON_TORCH_TENSORS_H

#include "Devices.h"

#include <ATen/core/Tensor.h>

namespace greta::torch_device {

/// Returns the block of memory that was allocated here; null for other memory.
Block *blockOf(const c10::DataPtr &data);

/// Makes a storage's memory of the block.
c10::DataPtr dataOf(Block *block);

/// The place of a tensor's first element.
struct Place {
  Block *block;
  size_t offset;
};
/// Returns the place; throws if the tensor has no memory of a device rdna.
Place placeOf(const at::TensorBase &tensor);

/// A function of a package, for any device that it is launched on.
class Kernel {
public:
  Kernel(const void *package, size_t bytes, const std::string &name)
      : package(package, bytes), name(name) {}

  struct Loaded {
    explicit Loaded(Function function)
        : function(std::move(function)), arguments(this->function.arguments()),
          results(this->function.results()) {}
    Function function;
    std::vector<TensorInfo> arguments, results;
  };
  const Loaded &on(Device &device);
  const Package &of() const { return package; }
  const std::string &function() const { return name; }

private:
  Package package;
  std::string name;
  std::mutex lock;
  std::vector<std::unique_ptr<Loaded>> loaded; // by the device's index
};

/// An argument or a result of a launch.
struct Passed {
  /// Its shape and value live until the launch is queued.
  greta_tensor tensor;
  Block *block = nullptr; // the tensor lies in this block
  /// If not 0, the shape is one number: how many elements of so many bytes
  /// there are from the tensor's first to the block's end.
  size_t elementBytes = 0;
};

/// The arguments of one launch of a kernel of Triton: pointers and numbers in
/// their order, then the grid.
class Launch {
public:
  Launch(Kernel &kernel, c10::DeviceIndex index, int64_t stream);

  size_t room() const { return loaded.arguments.size(); }
  size_t taken() const { return count; }
  const std::string &type() const { return loaded.arguments.at(count).dtype; }
  void add(const at::TensorBase &tensor);
  /// Adds the bits of a number of the argument's type.
  void add(int64_t bits);
  /// Adds a pointer to no memory; the kernel does not follow it.
  void addNull() { add(int64_t(0)); }
  void run(int64_t x, int64_t y, int64_t z);

private:
  Device &device;
  Kernel &kernel;
  const Kernel::Loaded &loaded;
  int64_t stream;
  size_t count = 0;
  std::vector<Passed> arguments;
  std::vector<int64_t> numbers;
};

/// A tensor's memory from its first element for a function of greta's dialect:
/// rows of this shape, from a multiple of 16 bytes.
struct Operand {
  const at::Tensor &tensor;
  at::IntArrayRef shape;
};

/// Launches a function of greta's dialect in a stream. No result lies where an
/// argument does.
void launch(Kernel &kernel, c10::DeviceIndex index, int64_t stream,
            const std::vector<Operand> &arguments,
            const std::vector<Operand> &results);

/// Finds the kernel that copies between these types with this many dimensions;
/// null where there is none. Python sets it.
using FindCopyKernel = Kernel *(*)(c10::ScalarType to, c10::ScalarType from,
                                   int rank, bool isFar, bool negates);
void setFindCopyKernel(FindCopyKernel find);

/// Returns operators that ran on the CPU, with how often.
std::map<std::string, int64_t> fallbacks(bool reset);
/// Sets whether operators may run on the CPU; returns the old setting.
bool allowFallback(bool allowed);
/// Sets the same for attention without a kernel, which torch computes in
/// quadratic memory; false at first.
bool allowQuadraticAttention(bool allowed);
/// Counts an operator that runs on the CPU; throws if that is forbidden.
void countFallback(const std::string &name);

} // namespace greta::torch_device

#endif
