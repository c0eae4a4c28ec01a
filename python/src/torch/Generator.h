//===- Generator.h - random numbers and storages of torch's devices -------===//
//
// In: a seed. Out: Philox's counters, which kernels turn into numbers: a
// generator is a seed and how many numbers were taken.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_PYTHON_TORCH_GENERATOR_H
#define GRETA_PYTHON_TORCH_GENERATOR_H

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

namespace greta::torch_device {

class PhiloxGenerator final : public c10::GeneratorImpl {
public:
  explicit PhiloxGenerator(c10::DeviceIndex index);

  void set_current_seed(uint64_t to) override;
  uint64_t current_seed() const override { return seedInUse; }
  uint64_t seed() override;
  void set_offset(uint64_t to) override { offset = to; }
  uint64_t get_offset() const override { return offset; }
  /// Takes so many numbers; returns the offset of the first.
  uint64_t take(uint64_t numbers);
  /// Returns how far the offset advances for so many numbers.
  static uint64_t stepOf(uint64_t numbers) { return (numbers + 3) / 4 * 4; }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  void set_state(const c10::TensorImpl &state) override;
  PhiloxGenerator *clone_impl() const override;

private:
  uint64_t seedInUse = c10::default_rng_seed_val, offset = 0;
};

const at::Generator &defaultGenerator(c10::DeviceIndex index);

/// A graph's random numbers. A replay writes the generator's seed and offset to
/// `state`, two numbers of 64 bits, and takes as many numbers as were recorded.
struct RecordedNumbers {
  at::Tensor state;
  uint64_t first; // offset of the first number behind the state's
};
/// Returns the numbers of the graph that is recorded from the stream in use;
/// none if none is recorded.
std::optional<RecordedNumbers> recordNumbers(const at::Generator &generator,
                                             c10::DeviceIndex index,
                                             uint64_t count);

c10::Allocator *storageAllocator();
/// Gives a storage memory of another size that begins with its old bytes.
void resizeStorage(const c10::Storage &storage, size_t bytes);

} // namespace greta::torch_device

#endif
