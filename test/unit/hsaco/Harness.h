//===- Harness.h - compile a lane-level kernel and run it -------*- C++ -*-===//
//
// Kernels are written as MLIR with {{wave}} in place of the chip's wave size;
// they are compiled by emitHsaco and run by the simulator with all its checks
// (bounds, uninitialised values, races, missing waits, hazards) on.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TEST_HSACO_HARNESS_H
#define GRETA_TEST_HSACO_HARNESS_H

#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace greta::test {

using Bytes = std::vector<uint8_t>;

template <typename T> Bytes toBytes(const std::vector<T> &values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename T> std::vector<T> fromBytes(const Bytes &bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// One test per chip that stands for a kind of code: CDNA 2, 3 and 4, RDNA 3
/// and 4.
class HsacoTest : public testing::TestWithParam<const char *> {
protected:
  unsigned wave() const;

  /// Compiles `kernel` and runs it with the buffers, which it changes, and the
  /// integers as arguments. A failure is the test's.
  void run(std::string kernel, std::vector<Bytes *> buffers,
           std::vector<int32_t> scalars = {}, unsigned groups = 1);
};

/// `text` with every `from` replaced.
std::string replaced(std::string text, const std::string &from,
                     const std::string &to);

uint16_t toHalf(float value);
float fromHalf(uint16_t bits);
uint16_t toBFloat(float value);
float fromBFloat(uint16_t bits);

} // namespace greta::test

#define GRETA_ON_ALL_CHIPS(Suite)                                              \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      Chips, Suite,                                                            \
      testing::Values("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"),     \
      [](const auto &info) -> std::string { return info.param; })

#endif
