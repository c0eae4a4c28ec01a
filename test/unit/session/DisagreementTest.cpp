// DisagreementTest.cpp: which results greta-run --check and greta-tune take for
// right.
#include "Options.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace greta_run;

namespace {

HostTensor make(std::vector<float> Values, int64_t Columns) {
  HostTensor T{"f32",
               {static_cast<int64_t>(Values.size()) / Columns, Columns},
               std::vector<uint8_t>(Values.size() * 4)};
  std::memcpy(T.Bytes.data(), Values.data(), T.Bytes.size());
  return T;
}

std::string why(std::vector<float> Got, std::vector<float> Want) {
  return disagreement({make(std::move(Got), 2)}, {make(std::move(Want), 2)});
}

TEST(Disagreement, WhatIsWithinTheLimitsIsRight) {
  EXPECT_EQ(why({1, 2, 3, 4}, {1, 2, 3, 4}), "");
  EXPECT_EQ(why({1, 2.00001f, 3, 4}, {1, 2, 3, 4}), "");
  EXPECT_EQ(why({NAN, 2}, {NAN, 2}), "");
}

TEST(Disagreement, OneElementIsEnough) {
  EXPECT_NE(why({1, 2.001f, 3, 4}, {1, 2, 3, 4}), "");
  // A small row counts like a large one.
  EXPECT_NE(why({1e-6f, 2e-6f, 3000, 4000}, {1e-6f, 3e-6f, 3000, 4000}), "");
  // What a kernel did not write is poisoned with NaN.
  EXPECT_NE(why({1, NAN, 3, 4}, {1, 2, 3, 4}), "");
  EXPECT_NE(why({1, 2, 3, 4}, {1, INFINITY, 3, 4}), "");
}

TEST(Disagreement, SaysWhichResult) {
  HostTensor Right = make({1, 2}, 2), Wrong = make({1, 3}, 2);
  std::string Why = disagreement({Right, Wrong}, {Right, Right});
  EXPECT_EQ(Why.find("wrong result r1: the worst row is off by"), 0u) << Why;
}

TEST(Disagreement, AnotherNumberShapeOrType) {
  HostTensor T = make({1, 2}, 2), Column = make({1, 2}, 1), Ints = T;
  Ints.DType = "i32";
  EXPECT_EQ(disagreement({T, T}, {T}), "there are 2 results, not 1");
  EXPECT_EQ(disagreement({Column}, {T}),
            "result r0 is 2x1 of f32, not 1x2 of f32");
  EXPECT_EQ(disagreement({Ints}, {T}),
            "result r0 is 1x2 of i32, not 1x2 of f32");
}

} // namespace
