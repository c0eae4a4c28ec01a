// PartTimesTest.cpp: a server's passes over parts of prompts, whose times are
// tables: milliseconds for 32, 64, 128 .. tokens.
#include "server/PartTimes.h"

#include <gtest/gtest.h>
#include <vector>

using greta::llm::PartTimes;

namespace {

double timeOf(const std::vector<double> &table, size_t tokens) {
  size_t i = 0;
  while (i + 1 < table.size() && (size_t(32) << i) < tokens)
    ++i;
  return table[i] * 1e-3;
}

// The tokens of a pass when the times are known.
size_t settled(const std::vector<double> &table, double milliseconds) {
  PartTimes times;
  size_t part = 0;
  for (int i = 0; i < 50; ++i) {
    part = times.most(milliseconds * 1e-3);
    times.add(part, timeOf(table, part));
  }
  return part;
}

TEST(PartTimes, TakesWhatFits) {
  // An H200, Llama 3 8B in Q4_0, with kernels for few rows and without.
  std::vector<double> ranges = {10.6, 12, 15.3, 31, 40, 70, 130},
                      one = {23.9, 24.1, 24.8, 31.5, 41, 72, 132};
  EXPECT_EQ(settled(ranges, 20), 128u);
  EXPECT_EQ(settled(ranges, 11), 32u);
  EXPECT_EQ(settled(ranges, 35), 256u);
  // The shortest one takes too long, and others hardly longer.
  EXPECT_EQ(settled(one, 20), 128u);
  EXPECT_EQ(settled(one, 40), 256u);
  // Each token takes its time.
  EXPECT_EQ(settled({80, 160, 320, 640}, 20), 32u);
  EXPECT_EQ(settled({80, 160, 320, 640}, 200), 64u);
}

TEST(PartTimes, ASlowPassIsForgotten) {
  for (size_t slow : {32, 64, 128}) {
    PartTimes times;
    for (int i = 0; i < 900; ++i) {
      size_t part = times.most(20e-3);
      times.add(part, timeOf({10.6, 12, 15.3, 31}, part));
      if (i == 10)
        times.add(slow, 2);
    }
    EXPECT_EQ(times.most(20e-3), 128u) << slow;
  }
}

TEST(PartTimes, LengthsBetweenThoseThatAreKnown) {
  PartTimes times;
  EXPECT_DOUBLE_EQ(times.of(64), 64e-4);
  EXPECT_DOUBLE_EQ(times.perToken(), 1e-4);
  times.add(20, 10e-3);
  times.add(256, 20e-3);
  EXPECT_DOUBLE_EQ(times.of(1), 10e-3);
  EXPECT_DOUBLE_EQ(times.of(33), 15e-3);
  EXPECT_DOUBLE_EQ(times.of(128), 20e-3); // no more than twice as many take
  EXPECT_DOUBLE_EQ(times.of(512), 30e-3);
  EXPECT_DOUBLE_EQ(times.perToken(), 20e-3 / 256);
  EXPECT_GT(times.most(10), 4096u);
}

} // namespace
