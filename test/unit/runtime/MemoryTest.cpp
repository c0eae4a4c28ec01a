// MemoryTest.cpp: parts of a block, against a table of bytes; what devices say
// about their memory.
#include "EveryDevice.h"
#include "Ranges.h"
#include "TestPackage.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace greta_test;
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

class DeviceMemory : public EveryDevice {};

INSTANTIATE_TEST_SUITE_P(Devices, DeviceMemory, everyDevice(), deviceName);

// The bytes in use are known at any time; a buffer's memory is free for others
// when the work that uses it has ended, and does not go back to the driver each
// time.
TEST_P(DeviceMemory, CountsMemory) {
  R->trim();
  greta_memory Before = R->memory();
  greta::Stream S = R->stream();
  {
    greta::Buffer A = R->allocate(1 << 20), B = R->allocate(1000);
    greta_memory With = R->memory();
    EXPECT_EQ(With.in_use - Before.in_use, (1u << 20) + 1000);
    EXPECT_GE(With.peak, With.in_use);
    EXPECT_GE(With.reserved, With.in_use);
    S.fill(A, 1 << 20, 7);
  }
  S.synchronize();
  greta_memory After = R->memory();
  EXPECT_EQ(After.in_use, Before.in_use);
  EXPECT_GE(After.peak, Before.in_use + (1u << 20) + 1000);
  for (int I = 0; I < 100; ++I) {
    greta::Buffer A = R->allocate(1 << 16);
    EXPECT_LE(R->memory().reserved,
              std::max(After.reserved, After.in_use + (1 << 16)));
  }
  R->trim();
  EXPECT_EQ(R->memory().reserved, Before.reserved);
  EXPECT_EQ(greta_device_memory(R->get(), nullptr),
            GRETA_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(greta_device_trim(nullptr), GRETA_ERROR_INVALID_ARGUMENT);
}

// Buffers are parts of a block; a large one has a block of its own, which goes
// when it does.
TEST_P(DeviceMemory, BuffersShareBlocks) {
  if (std::string(GetParam()) != "vulkan")
    GTEST_SKIP() << "no such form: this driver divides blocks itself";
  R->trim();
  uint64_t Before = R->memory().reserved;
  std::vector<greta::Buffer> Many;
  for (int I = 0; I < 5000; ++I) // more than drivers allow allocations
    Many.push_back(R->allocate(64));
  greta_memory With = R->memory();
  EXPECT_EQ(With.reserved - Before, 64u << 20);
  EXPECT_GT(With.largest_free, 32u << 20);
  EXPECT_GT(With.total, 0u);
  {
    greta::Buffer Large = R->allocate(80 << 20);
    EXPECT_GE(R->memory().reserved - With.reserved, 80u << 20);
  }
  EXPECT_EQ(R->memory().reserved, With.reserved);
  {
    greta::Stream S = R->stream();
    for (size_t I = 0; I < Many.size(); I += 100)
      S.fill(Many[I], 64, static_cast<uint32_t>(I));
    for (size_t I = 0; I < Many.size(); I += 100) {
      uint32_t Words[16];
      S.read(Many[I], Words, 64);
      EXPECT_EQ(std::vector<uint32_t>(Words, Words + 16),
                std::vector<uint32_t>(16, static_cast<uint32_t>(I)));
    }
  }
  Many.clear();
  EXPECT_EQ(R->memory().reserved, With.reserved); // a spare one
  R->trim();
  EXPECT_EQ(R->memory().reserved, Before);
}
