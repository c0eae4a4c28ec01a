// FormatsTest.cpp: numbers of packed formats at the end of f16's range. Their
// files' scales are rounded, so 65504 may be 65532 there.
#include "model/Formats.h"

#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace greta::llm;

namespace {

// The scale that a block of Q8_0 of this scale and one number has on devices.
float heldScale(float scale, int8_t number) {
  std::array<uint8_t, 34> row = {};
  uint16_t bits = toF16(scale);
  memcpy(row.data(), &bits, 2);
  row[5] = static_cast<uint8_t>(number);
  std::array<uint8_t, 32> words = {};
  std::array<uint8_t, 2> scales = {};
  EXPECT_TRUE(
      packRow(Format::Q8_0, row.data(), 32, {words.data(), scales.data()}));
  memcpy(&bits, scales.data(), 2);
  return fromF16(bits);
}

TEST(Formats, PackedNumbersAreNoInfinities) {
  // 65504 / 127, rounded; the next smaller one.
  EXPECT_EQ(heldScale(516, 127), 515.5f);
  EXPECT_EQ(heldScale(-516, 127), -515.5f);
  EXPECT_EQ(heldScale(65504, -128), 511.75f);
  // A scale whose numbers are in range stays.
  EXPECT_EQ(heldScale(516, 126), 516);
  EXPECT_EQ(heldScale(515.5, 127), 515.5f);
  EXPECT_EQ(heldScale(65504, 1), 65504);
  EXPECT_EQ(heldScale(65504, 0), 65504);
  EXPECT_TRUE(
      std::isinf(heldScale(std::numeric_limits<float>::infinity(), 127)));
}

TEST(Formats, ExpandedNumbersAreNoInfinities) {
  std::array<float, 5> numbers = {65532, -65532, 65504,
                                  std::numeric_limits<float>::infinity(), 1};
  limitToF16(numbers.data(), numbers.size());
  EXPECT_EQ(numbers,
            (std::array<float, 5>{65504, -65504, 65504,
                                  std::numeric_limits<float>::infinity(), 1}));
}

} // namespace
