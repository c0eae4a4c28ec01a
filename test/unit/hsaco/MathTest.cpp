//===- MathTest.cpp - functions against the C library in double -----------===//
//
// The simulator's v_exp_f32, v_rcp_f32 ... are rounded correctly; hardware's
// may be off by one more ulp.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include <cmath>
#include <limits>

using namespace greta::test;

namespace {

class Math : public HsacoTest {
protected:
  std::vector<float> apply(const std::string &body, const std::vector<float> &a,
                           const std::vector<float> &b) {
    std::string text = R"(
greta_tile.func @apply(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>)
    attributes {wave_size = {{wave}} : i32, waves = 1 : i32} {
  %group = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %size = arith.constant {{wave}} : i32
  %start = arith.muli %group, %size : i32
  %at = arith.addi %start, %lane : i32
  %a = greta_tile.ptr_load %x[%at] align 4 : !greta_tile.ptr<f32> -> f32
  %b = greta_tile.ptr_load %y[%at] align 4 : !greta_tile.ptr<f32> -> f32
)" + body + R"(
  greta_tile.ptr_store %r, %z[%at] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
})";
    Bytes x = toBytes(a), y = toBytes(b), z(x.size());
    run(text, {&x, &y, &z}, {}, a.size() / wave());
    return fromBytes<float>(z);
  }

  /// The largest error, in units in the last place of the result, of `body`
  /// (which makes %r of %a and %b) on 4096 inputs each.
  double worst(const std::string &body, double (*exact)(double, double),
               double lowA, double highA, double lowB = 1, double highB = 1,
               double atLeast = 0) {
    std::vector<float> a(4096), b(4096);
    uint32_t seed = 1;
    auto uniform = [&](double low, double high) {
      seed = seed * 1664525u + 1013904223u;
      return static_cast<float>(low + (high - low) * (seed >> 8) / 16777216.0);
    };
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = uniform(lowA, highA);
      b[i] = uniform(lowB, highB);
    }
    std::vector<float> got = apply(body, a, b);
    double worstUlps = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      double expected = exact(a[i], b[i]);
      float rounded =
          static_cast<float>(std::max(std::fabs(expected), atLeast));
      double ulp = std::nextafter(rounded, HUGE_VALF) - rounded;
      double error = std::fabs(got[i] - expected) / ulp;
      if (!(error <= worstUlps)) // also for a NaN
        worstUlps = error;
    }
    return worstUlps;
  }

  static std::string call(const std::string &op) {
    return "  %r = " + op + " %a : f32";
  }
};

GRETA_ON_ALL_CHIPS(Math);

TEST_P(Math, InstructionsAreWithinAnUlpOrTwo) {
  EXPECT_LE(worst(
                call("math.exp"), [](double x, double) { return std::exp(x); },
                -87, 88),
            1.5);
  EXPECT_LE(worst(
                call("math.exp2"),
                [](double x, double) { return std::exp2(x); }, -125, 127),
            1.5);
  EXPECT_LE(worst(
                call("math.log"), [](double x, double) { return std::log(x); },
                1e-3, 1e6),
            2);
  EXPECT_LE(worst(
                call("math.log2"),
                [](double x, double) { return std::log2(x); }, 2, 1e6),
            1.5);
  EXPECT_LE(worst(
                call("math.sqrt"),
                [](double x, double) { return std::sqrt(x); }, 0, 1e6),
            1.5);
  EXPECT_LE(worst(
                call("math.rsqrt"),
                [](double x, double) { return 1 / std::sqrt(x); }, 1e-6, 1e6),
            1.5);
  EXPECT_LE(worst(
                "  %r = arith.divf %a, %b : f32",
                [](double x, double y) { return x / y; }, -1e6, 1e6, 1e-3, 1e6),
            2);
}

/// The bare instruction: good where the result is of the size of 1 or less.
TEST_P(Math, FastExpIsGoodForSoftmax) {
  std::string body = "  %r = math.exp %a fastmath<afn> : f32";
  auto exact = [](double x, double) { return std::exp(x); };
  EXPECT_LE(worst(body, exact, -100, 0, 1, 1, /*atLeast=*/0.5), 1);
  EXPECT_LE(worst(body, exact, -1, 1), 2);
}

/// Ours for sin, cos and pow (sin and cos by what they are off in units of
/// 2^-23, far out too), MLIR's for the others; its atan is good to 5e-6.
TEST_P(Math, Polynomials) {
  EXPECT_LE(worst(
                call("math.tanh"),
                [](double x, double) { return std::tanh(x); }, -10, 10),
            6);
  EXPECT_LE(worst(
                call("math.erf"), [](double x, double) { return std::erf(x); },
                -5, 5),
            6);
  for (double range : {1.0, 30.0, 1e5}) {
    EXPECT_LE(worst(
                  call("math.sin"),
                  [](double x, double) { return std::sin(x); }, -range, range,
                  1, 1, /*atLeast=*/1),
              1);
    EXPECT_LE(worst(
                  call("math.cos"),
                  [](double x, double) { return std::cos(x); }, -range, range,
                  1, 1, /*atLeast=*/1),
              1);
  }
  EXPECT_LE(worst(
                call("math.log1p"),
                [](double x, double) { return std::log1p(x); }, -0.5, 10),
            6);
  EXPECT_LE(worst(
                call("math.expm1"),
                [](double x, double) { return std::expm1(x); }, -2, 5),
            8);
  EXPECT_LE(worst(
                call("math.atan"),
                [](double x, double) { return std::atan(x); }, -5, 5),
            48);
  EXPECT_LE(worst(
                "  %r = math.powf %a, %b : f32",
                [](double x, double y) { return std::pow(x, y); }, 0.01, 10, -3,
                3),
            16);
}

TEST_P(Math, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  struct Case {
    std::string body;
    float a, b, expected;
  };
  std::vector<Case> cases = {
      {call("math.exp"), -inf, 0, 0},
      {call("math.exp"), inf, 0, inf},
      {call("math.exp"), 1000, 0, inf},
      {call("math.exp"), -100, 0, 3.783506e-44f}, // a denormal
      {call("math.exp"), nan, 0, nan},
      {"  %r = math.exp %a fastmath<afn> : f32", -inf, 0, 0},
      {"  %r = math.exp %a fastmath<afn> : f32", nan, 0, nan},
      {call("math.sqrt"), 1e-40f, 0, 9.99999e-21f},
      {call("math.sqrt"), -1, 0, nan},
      {call("math.sqrt"), inf, 0, inf},
      {call("math.rsqrt"), 0, 0, inf},
      {call("math.rsqrt"), inf, 0, 0},
      {call("math.rsqrt"), 1e-40f, 0, 1.0000028e20f},
      {call("math.log"), 0, 0, -inf},
      {call("math.log"), -1, 0, nan},
      {call("math.sin"), 0, 0, 0},
      {call("math.sin"), inf, 0, nan},
      {call("math.cos"), 0, 0, 1},
      {call("math.cos"), nan, 0, nan},
      {call("math.tanh"), 30, 0, 1},
      {call("math.tanh"), -inf, 0, -1},
      {call("math.tanh"), nan, 0, nan},
      {"  %r = arith.divf %a, %b : f32", 1, 0, inf},
      {"  %r = arith.divf %a, %b : f32", -1, inf, -0.0f},
      {"  %r = arith.divf %a, %b : f32", 0, 0, nan},
      {"  %r = arith.divf %a, %b : f32", 3e38f, 1.5e38f, 2},
      {"  %r = arith.divf %a, %b : f32", 1e-40f, 1e-40f, 1},
      {"  %r = math.powf %a, %b : f32", -2, 3, -8},
      {"  %r = math.powf %a, %b : f32", -2, 2, 4},
      {"  %r = math.powf %a, %b : f32", -2, 0.5f, nan},
      {"  %r = math.powf %a, %b : f32", 0, 0, 1},
      {"  %r = math.powf %a, %b : f32", 0, 2, 0},
      {"  %r = math.powf %a, %b : f32", 0, -1, inf},
      {"  %r = math.powf %a, %b : f32", 1, nan, 1},
      {"  %r = math.powf %a, %b : f32", inf, -2, 0}};
  for (const Case &c : cases) {
    SCOPED_TRACE(c.body + " of " + std::to_string(c.a) + ", " +
                 std::to_string(c.b));
    float got = apply(c.body, std::vector<float>(wave(), c.a),
                      std::vector<float>(wave(), c.b))[0];
    if (std::isnan(c.expected)) {
      EXPECT_TRUE(std::isnan(got)) << got;
    } else {
      EXPECT_EQ(std::signbit(got), std::signbit(c.expected));
      if (std::isinf(c.expected) || c.expected == 0)
        EXPECT_EQ(got, c.expected);
      else
        EXPECT_NEAR(got, c.expected, std::fabs(c.expected) * 2e-6);
    }
  }
}

} // namespace
