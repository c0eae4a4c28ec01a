//===- ArithmeticTest.cpp - f16, bf16 and what must be exact --------------===//

#include "Harness.h"
#include <cmath>
#include <limits>

using namespace greta::test;

namespace {

class Arithmetic : public HsacoTest {
protected:
  /// Runs `body`, which makes %r of type `to` of %a and %b of type `from`, on
  /// every pair of inputs; pads to whole workgroups.
  Bytes apply(const std::string &from, const std::string &to,
              const std::string &body, Bytes a, Bytes b, unsigned inBytes,
              unsigned outBytes) {
    size_t n = a.size() / inBytes, padded = (n + 63) / 64 * 64;
    a.resize(padded * inBytes);
    b.resize(padded * inBytes);
    Bytes r(padded * outBytes);
    std::string text = R"(
greta_tile.func @apply(%x: !greta_tile.ptr<FROM>, %y: !greta_tile.ptr<FROM>, %z: !greta_tile.ptr<TO>)
    attributes {wave_size = {{wave}} : i32, waves = {{waves64}} : i32} {
  %group = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %size = arith.constant {{wave}} : i32
  %c64 = arith.constant 64 : i32
  %first = arith.muli %wave, %size : i32
  %thread = arith.addi %first, %lane : i32
  %start = arith.muli %group, %c64 : i32
  %at = arith.addi %start, %thread : i32
  %a = greta_tile.ptr_load %x[%at] align IN : !greta_tile.ptr<FROM> -> FROM
  %b = greta_tile.ptr_load %y[%at] align IN : !greta_tile.ptr<FROM> -> FROM
BODY
  greta_tile.ptr_store %r, %z[%at] align OUT : TO -> !greta_tile.ptr<TO>
  greta_tile.return
})";
    text = replaced(text, "FROM", from);
    text = replaced(text, "IN", std::to_string(inBytes));
    text = replaced(text, "OUT", std::to_string(outBytes));
    text = replaced(text, "TO", to);
    text = replaced(text, "BODY", body);
    run(text, {&a, &b, &r}, {}, padded / 64);
    r.resize(n * outBytes);
    return r;
  }
};

GRETA_ON_ALL_CHIPS(Arithmetic);

/// Every narrow bit pattern that matters: all exponents with a few mantissas,
/// both signs, denormals, infinities, a NaN.
std::vector<uint16_t> narrowValues(unsigned mantissaBits) {
  std::vector<uint16_t> values;
  uint16_t mantissaMask = (1 << mantissaBits) - 1;
  for (uint32_t top = 0; top < 0x10000; top += 1 << mantissaBits)
    for (uint32_t mantissa : {0u, 1u, 0x55u, 0x2aau, 0xffffu}) {
      uint16_t bits = top | (mantissa & mantissaMask);
      bool special = (~bits & (0x7fff & ~mantissaMask)) == 0;
      if (!special || (bits & mantissaMask) == 0)
        values.push_back(bits);
    }
  return values;
}

struct Narrow {
  const char *type;
  unsigned mantissaBits;
  uint16_t (*round)(float);
  float (*extend)(uint16_t);
};
const Narrow narrows[] = {{"f16", 10, toHalf, fromHalf},
                          {"bf16", 7, toBFloat, fromBFloat}};

TEST_P(Arithmetic, NarrowArithmeticRoundsOncePerOperation) {
  for (const Narrow &narrow : narrows) {
    std::vector<uint16_t> values = narrowValues(narrow.mantissaBits), a, b;
    for (size_t i = 0; i < values.size(); ++i)
      for (size_t j :
           {i, (i * 7 + 3) % values.size(), (i * 31) % values.size()}) {
        a.push_back(values[i]);
        b.push_back(values[j]);
      }
    struct {
      const char *op;
      float (*compute)(float, float);
    } ops[] = {{"addf", [](float x, float y) { return x + y; }},
               {"subf", [](float x, float y) { return x - y; }},
               {"mulf", [](float x, float y) { return x * y; }}};
    for (auto [op, compute] : ops) {
      SCOPED_TRACE(std::string(narrow.type) + " " + op);
      std::string body = std::string("  %t = arith.") + op +
                         " %a, %b : " + narrow.type + "\n  %r = arith." + op +
                         " %t, %a : " + narrow.type;
      std::vector<uint16_t> got = fromBytes<uint16_t>(
          apply(narrow.type, narrow.type, body, toBytes(a), toBytes(b), 2, 2));
      ASSERT_EQ(got.size(), a.size());
      for (size_t i = 0; i < a.size(); ++i) {
        float x = narrow.extend(a[i]), y = narrow.extend(b[i]);
        float t = narrow.extend(narrow.round(compute(x, y)));
        uint16_t expected = narrow.round(compute(t, x));
        if (std::isnan(narrow.extend(expected)))
          EXPECT_TRUE(std::isnan(narrow.extend(got[i]))) << x << " " << y;
        else
          EXPECT_EQ(got[i], expected) << x << " " << y;
      }
    }
  }
}

TEST_P(Arithmetic, ConversionsRoundToNearestEven) {
  std::vector<float> values = {0.0f,
                               -0.0f,
                               1.0f,
                               65504.0f,
                               65520.0f,
                               1e-8f,
                               3e38f,
                               1e-40f,
                               -1e-45f,
                               std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()};
  // Ties, and one to either side of them, in the bits either type drops.
  for (uint32_t exponent = 0; exponent < 255; exponent += 5)
    for (uint32_t low : {0x0fffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu, 0x8000u,
                         0x8001u, 0x18000u, 0x7fffffu}) {
      uint32_t bits = exponent << 23 | low;
      float value;
      std::memcpy(&value, &bits, 4);
      values.push_back(value);
      values.push_back(-value);
    }
  for (const Narrow &narrow : narrows) {
    SCOPED_TRACE(narrow.type);
    std::vector<uint16_t> got = fromBytes<uint16_t>(
        apply("f32", narrow.type,
              std::string("  %r = arith.truncf %a : f32 to ") + narrow.type,
              toBytes(values), toBytes(values), 4, 2));
    std::vector<uint16_t> all(65536);
    for (unsigned i = 0; i < 65536; ++i)
      all[i] = i;
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i]))
        EXPECT_TRUE(std::isnan(narrow.extend(got[i])));
      else
        EXPECT_EQ(got[i], narrow.round(values[i])) << values[i];
    }
    std::vector<float> wide = fromBytes<float>(
        apply(narrow.type, "f32",
              std::string("  %r = arith.extf %a : ") + narrow.type + " to f32",
              toBytes(all), toBytes(all), 2, 4));
    for (unsigned i = 0; i < 65536; ++i) {
      float expected = narrow.extend(i);
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(wide[i]));
      else
        EXPECT_EQ(wide[i], expected) << i;
    }
  }
}

TEST_P(Arithmetic, MaximumKeepsNaN) {
  float nan = std::numeric_limits<float>::quiet_NaN();
  float inf = std::numeric_limits<float>::infinity();
  std::vector<float> a = {1, nan, 2, -0.0f, 0.0f, -inf, 3},
                     b = {2, 1, nan, 0.0f, -0.0f, -1, 3};
  std::vector<float> maximum = {2, nan, nan, 0.0f, 0.0f, -1, 3},
                     minimum = {1, nan, nan, -0.0f, -0.0f, -inf, 3};
  auto check = [&](const char *op, const std::vector<float> &expected) {
    SCOPED_TRACE(op);
    std::vector<float> got = fromBytes<float>(
        apply("f32", "f32", std::string("  %r = arith.") + op + " %a, %b : f32",
              toBytes(a), toBytes(b), 4, 4));
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(std::isnan(got[i]), std::isnan(expected[i])) << i;
      if (!std::isnan(expected[i])) {
        EXPECT_EQ(got[i], expected[i]) << i;
        EXPECT_EQ(std::signbit(got[i]), std::signbit(expected[i])) << i;
      }
    }
  };
  check("maximumf", maximum);
  check("minimumf", minimum);
}

TEST_P(Arithmetic, Integers) {
  std::vector<int32_t> a, b;
  for (int32_t x : {0, 1, -1, 7, -7, 100000, -2147483647, 2147483647})
    for (int32_t y : {1, -1, 3, -5, 1000, 2147483647}) {
      a.push_back(x);
      b.push_back(y);
    }
  struct {
    const char *op;
    int32_t (*compute)(int32_t, int32_t);
  } ops[] = {
      {"addi",
       [](int32_t x, int32_t y) { return int32_t(uint32_t(x) + uint32_t(y)); }},
      {"muli",
       [](int32_t x, int32_t y) { return int32_t(uint32_t(x) * uint32_t(y)); }},
      {"divsi", [](int32_t x, int32_t y) { return x / y; }},
      {"remsi", [](int32_t x, int32_t y) { return x % y; }},
      {"divui",
       [](int32_t x, int32_t y) { return int32_t(uint32_t(x) / uint32_t(y)); }},
      {"maxsi", [](int32_t x, int32_t y) { return x > y ? x : y; }}};
  for (auto [op, compute] : ops) {
    SCOPED_TRACE(op);
    std::vector<int32_t> got = fromBytes<int32_t>(
        apply("i32", "i32", std::string("  %r = arith.") + op + " %a, %b : i32",
              toBytes(a), toBytes(b), 4, 4));
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_EQ(got[i], compute(a[i], b[i])) << a[i] << " " << b[i];
  }
}

} // namespace
