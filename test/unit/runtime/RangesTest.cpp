// RangesTest.cpp: parts of a block, against a table of bytes.
#include "Ranges.h"

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <vector>

using greta::rt::Ranges;

TEST(Ranges, TakesTheSmallestPartThatIsEnough) {
  Ranges R(100);
  EXPECT_EQ(R.take(40, 1), 0u);
  EXPECT_EQ(R.take(10, 1), 40u);
  EXPECT_EQ(R.take(20, 1), 50u);
  R.give(0);
  EXPECT_EQ(R.take(30, 1), 70u); // exactly, though 40 lie free before
  EXPECT_EQ(R.take(41, 1), std::nullopt);
  EXPECT_EQ(R.largestFree(), 40u);
  R.give(50);
  R.give(40);
  EXPECT_EQ(R.largestFree(), 70u); // neighbours are one
  EXPECT_FALSE(R.empty());
  R.give(70);
  EXPECT_TRUE(R.empty());
  EXPECT_EQ(R.take(100, 64), 0u);
  EXPECT_EQ(R.take(0, 1), std::nullopt); // takes a byte, and there is none
}

TEST(Ranges, AgreesWithATableOfBytes) {
  std::mt19937 Random(7);
  constexpr uint64_t Size = 4096;
  Ranges R(Size);
  std::vector<bool> Used(Size);
  std::map<uint64_t, uint64_t> Mine;
  auto largestGap = [&] {
    uint64_t Best = 0, Gap = 0;
    for (bool U : Used)
      Best = std::max(Best, Gap = U ? 0 : Gap + 1);
    return Best;
  };
  unsigned Refused = 0;
  for (int I = 0; I < 20000; ++I) {
    ASSERT_EQ(R.largestFree(), largestGap());
    if (Mine.size() > 40 || (!Mine.empty() && Random() % 2)) {
      auto It = std::next(Mine.begin(), Random() % Mine.size());
      std::fill_n(Used.begin() + long(It->first), It->second, false);
      R.give(It->first);
      Mine.erase(It);
      continue;
    }
    uint64_t Bytes = 1 + Random() % 300, Alignment = 1u << Random() % 8;
    auto Offset = R.take(Bytes, Alignment);
    if (!Offset) {
      ++Refused;
      ASSERT_LT(largestGap(), Bytes + Alignment - 1);
      continue;
    }
    ASSERT_EQ(*Offset % Alignment, 0u);
    ASSERT_LE(*Offset + Bytes, Size);
    for (uint64_t B = *Offset; B < *Offset + Bytes; ++B)
      ASSERT_FALSE(Used[B]);
    std::fill_n(Used.begin() + long(*Offset), Bytes, true);
    Mine[*Offset] = Bytes;
  }
  EXPECT_GT(Refused, 0u);
}
