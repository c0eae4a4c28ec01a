// DisagreementTest.cpp: which results greta-run --check and greta-tune take for
// right.
#include "Options.h"

#include <algorithm>
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
}

TEST(Disagreement, NaNIsNaNAndInfinityIsThatOfItsSign) {
  EXPECT_EQ(why({NAN, 2}, {NAN, 2}), "");
  EXPECT_EQ(why({NAN, NAN}, {-NAN, NAN}), "");
  EXPECT_EQ(why({INFINITY, -INFINITY}, {INFINITY, -INFINITY}), "");
  EXPECT_NE(why({INFINITY, 2}, {-INFINITY, 2}), "");
  EXPECT_NE(why({NAN, 2}, {INFINITY, 2}), "");
  // By elements, too, and of every small float, whichever its NaN is.
  for (const char *Type :
       {"f16", "bf16", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz"}) {
    HostTensor T{
        Type, {2}, parseInput(std::string("2x") + Type + ":value:nan").Make()};
    HostTensor Zero{Type, {2}, std::vector<uint8_t>(T.Bytes.size())};
    EXPECT_EQ(disagreement({T}, {T}), "") << Type;
    EXPECT_NE(disagreement({T}, {Zero}), "") << Type;
    EXPECT_EQ(compare(T, T, 0, 0).Outside, 0) << Type;
  }
}

TEST(Disagreement, FewColumnsCountAsOneRow) {
  // The second row cancels to next to nothing, so relative to it every
  // rounding is large.
  std::vector<float> Want(2 * FewColumns, 1.0f), Got = Want;
  std::fill(Want.begin() + FewColumns, Want.end(), 1e-8f);
  std::fill(Got.begin() + FewColumns, Got.end(), 2e-8f);
  auto Wrong = [&](int64_t Columns) {
    return disagreement({make(Got, Columns)}, {make(Want, Columns)});
  };
  EXPECT_EQ(Wrong(4), "");
  EXPECT_NE(Wrong(FewColumns), "");
  // An error of the size of the whole is still one.
  Got.back() = 1.0f;
  EXPECT_NE(Wrong(4), "");
}

TEST(Disagreement, OneElementIsEnough) {
  EXPECT_NE(why({1, 2.001f, 3, 4}, {1, 2, 3, 4}), "");
  // Elements that a kernel did not write are poisoned with NaN.
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
