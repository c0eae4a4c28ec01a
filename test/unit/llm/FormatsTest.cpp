// FormatsTest.cpp: numbers of packed formats at the end of f16's range. Their
// files' scales are rounded, so 65504 may be 65532 there.
#include "model/Formats.h"

#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using greta::WeightFormat;
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

struct Held {
  double scale, minimum;
  std::vector<double> numbers;
};

/// A row of one block as devices have it, in float64: whole numbers times the
/// scales, and the minima, of its groups.
std::vector<Held> heldGroups(Format format, const std::vector<uint8_t> &row) {
  const FormatInfo &info = infoOf(format);
  const WeightFormat &as = *packedFormat(format);
  std::vector<std::vector<uint8_t>> parts;
  PackedRow to;
  for (const PackedPart &part : packedParts(format, info.block, info.group))
    parts.emplace_back(part.rowBytes);
  for (std::vector<uint8_t> &part : parts)
    to.push_back(part.data());
  EXPECT_TRUE(packRow(format, row.data(), info.block, to));
  auto half = [](const std::vector<uint8_t> &part, size_t i) {
    uint16_t bits;
    memcpy(&bits, &part[2 * i], 2);
    return static_cast<double>(fromF16(bits));
  };
  auto bitsAt = [](const std::vector<uint8_t> &part, int64_t word, int shift,
                   int bits) {
    uint32_t value;
    memcpy(&value, &part[static_cast<size_t>(word) * 4], 4);
    return value >> shift & ((1u << bits) - 1);
  };
  std::vector<Held> groups;
  bool hasMinima = as.zeros == WeightFormat::Zeros::Minima;
  for (int64_t i = 0; i < info.block; ++i) {
    auto group = static_cast<size_t>(i / info.group);
    if (group == groups.size())
      groups.push_back({half(parts[as.highBits ? 2 : 1], group),
                        hasMinima ? half(parts.back(), group) : 0,
                        {}});
    int64_t per = 32 / as.bits;
    uint32_t number =
        bitsAt(parts[0], i / per,
               as.placeOf(static_cast<int>(i % per), as.bits), as.bits);
    if (as.highBits) {
      per = 32 / as.highBits;
      number |= bitsAt(parts[1], i / per,
                       as.placeOf(static_cast<int>(i % per), as.highBits),
                       as.highBits)
                << as.bits;
    }
    groups.back().numbers.push_back(
        as.codes ? fromF16(as.codes[number])
                 : (as.isSigned ? static_cast<int8_t>(number)
                                : static_cast<int>(number)) -
                       as.zero);
  }
  return groups;
}

/// Random blocks whose scales and minima grow beyond f16: against their numbers
/// in float64, which expandRow has in f32.
TEST(Formats, GroupsBeyondF16) {
  constexpr double largest = 65504;
  std::mt19937 random(5);
  for (Format format :
       {Format::Q4_0, Format::Q4_1, Format::Q5_0, Format::Q5_1, Format::Q8_0,
        Format::Q2_K, Format::Q3_K, Format::Q4_K, Format::Q5_K, Format::Q6_K,
        Format::IQ4_NL, Format::IQ4_XS}) {
    const FormatInfo &info = infoOf(format);
    int inRange = 0, alittle = 0;
    for (int turn = 0; turn < 4000; ++turn) {
      std::vector<uint8_t> row(info.bytes);
      for (uint8_t &byte : row)
        byte = static_cast<uint8_t>(random());
      // Halves are finite: no format has more than two, at either end.
      auto halve = [&](size_t at, float value) {
        uint16_t bits = toF16(random() % 2 ? value : -value);
        memcpy(&row[at], &bits, 2);
      };
      float scale = std::exp2(static_cast<float>(turn % 400) / 400 * 16);
      auto near = [&] { return scale * (1 + 1e-3f * float(random() % 64)); };
      bool isAtEnd = format == Format::Q2_K || format == Format::Q3_K ||
                     format == Format::Q6_K;
      size_t at = isAtEnd ? info.bytes - (format == Format::Q2_K ? 4 : 2) : 0;
      halve(at, std::min(near(), 65504.0f));
      if (packedFormat(format)->zeros == WeightFormat::Zeros::Minima)
        halve(at + 2, std::min(near() * 4, 65504.0f));
      std::vector<float> wanted(static_cast<size_t>(info.block));
      expandRow(format, row.data(), info.block, wanted.data());
      size_t i = 0;
      for (const Held &group : heldGroups(format, row)) {
        double beyond = 0, size = 0;
        for (size_t j = i; j < i + group.numbers.size(); ++j) {
          size = std::max(size, std::abs(double(wanted[j])));
          beyond = std::max(beyond, std::abs(double(wanted[j])) - largest);
        }
        double span = std::abs(group.minimum) + size;
        for (double number : group.numbers) {
          double held = number * group.scale + group.minimum;
          ASSERT_LE(std::abs(held), largest) << info.name;
          double wants = std::clamp(double(wanted[i++]), -largest, largest);
          // Scales and minima are rounded to 11 bits each.
          if (span < largest)
            EXPECT_NEAR(held, wants, span * 0x1p-9) << info.name;
          else if (beyond > 0 && beyond < 8000 && span < 2 * largest)
            EXPECT_NEAR(held, wants, beyond + span * 0x1p-9) << info.name;
        }
        inRange += span < largest;
        alittle += beyond > 0 && beyond < 8000;
      }
    }
    EXPECT_GT(inRange, 100) << info.name;
    EXPECT_GT(alittle, 10) << info.name;
  }
}

/// A scale that no number uses is no infinity either, which would make NaNs.
TEST(Formats, ZerosStayZeros) {
  std::vector<uint8_t> row(infoOf(Format::Q6_K).bytes);
  std::fill(row.begin() + 128, row.begin() + 192, 0xaa); // 32, which is zero
  std::fill(row.begin() + 192, row.begin() + 208, 127);
  uint16_t bits = toF16(65504);
  memcpy(&row[208], &bits, 2);
  for (const Held &group : heldGroups(Format::Q6_K, row))
    for (double number : group.numbers)
      EXPECT_EQ(number * group.scale, 0);
}

TEST(Formats, Mxfp4BeyondF16) {
  auto packs = [](int exponent, uint8_t numbers) {
    std::array<uint8_t, 17> row;
    row.fill(numbers);
    row[0] = static_cast<uint8_t>(exponent);
    std::array<uint8_t, 16> words;
    std::array<uint8_t, 1> scale;
    return packRow(Format::MXFP4, row.data(), 32, {words.data(), scale.data()});
  };
  EXPECT_TRUE(packs(140, 0x77));  // 6 times 2^13
  EXPECT_FALSE(packs(141, 0x17)); // 6 times 2^14
  EXPECT_TRUE(packs(142, 0x3b));  // 1.5 times 2^15
  EXPECT_FALSE(packs(143, 0x11)); // f16 has no 2^16
  EXPECT_TRUE(packs(254, 0x08));  // zeros
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
