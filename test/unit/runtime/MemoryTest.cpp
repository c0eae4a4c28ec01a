// MemoryTest.cpp: parts of a block, against a table of bytes; what devices say
// about their memory.
#include "Ranges.h"
#include "TestPackage.h"
#include "greta_runtime.hpp"

#include <gtest/gtest.h>
#include <map>
#include <random>

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

namespace {
class DeviceMemory : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    try {
      Runtime = std::make_unique<greta::Runtime>(GetParam());
    } catch (const greta::Error &E) {
      GTEST_SKIP() << E.what();
    }
  }
  // The validation layer has nothing to say.
  void TearDown() override {
    if (Runtime)
      Runtime->close();
  }
  std::unique_ptr<greta::Runtime> Runtime;
};
} // namespace

INSTANTIATE_TEST_SUITE_P(Devices, DeviceMemory,
                         testing::Values("host", "vulkan", "sim:gfx942", "hip"),
                         [](const auto &Info) {
                           std::string Name = Info.param;
                           return Name.substr(0, Name.find(':'));
                         });

// What is in use is known at any time; a buffer's memory is free for others
// when the work that uses it has ended, and does not go back to the driver each
// time.
TEST_P(DeviceMemory, CountsMemory) {
  Runtime->trim();
  greta_memory Before = Runtime->memory();
  greta::Stream S = Runtime->stream();
  {
    greta::Buffer A = Runtime->allocate(1 << 20), B = Runtime->allocate(1000);
    greta_memory With = Runtime->memory();
    EXPECT_EQ(With.in_use - Before.in_use, (1u << 20) + 1000);
    EXPECT_GE(With.peak, With.in_use);
    EXPECT_GE(With.reserved, With.in_use);
    S.fill(A, 1 << 20, 7);
  }
  S.synchronize();
  greta_memory After = Runtime->memory();
  EXPECT_EQ(After.in_use, Before.in_use);
  EXPECT_GE(After.peak, Before.in_use + (1u << 20) + 1000);
  for (int I = 0; I < 100; ++I) {
    greta::Buffer A = Runtime->allocate(1 << 16);
    EXPECT_LE(Runtime->memory().reserved,
              std::max(After.reserved, After.in_use + (1 << 16)));
  }
  Runtime->trim();
  EXPECT_EQ(Runtime->memory().reserved, Before.reserved);
  EXPECT_EQ(greta_device_memory(Runtime->get(), nullptr),
            GRETA_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(greta_device_trim(nullptr), GRETA_ERROR_INVALID_ARGUMENT);
}

// Buffers are parts of a block; a large one has a block of its own, which goes
// when it does.
TEST_P(DeviceMemory, BuffersShareBlocks) {
  if (std::string(GetParam()) != "vulkan")
    return; // the others' drivers do that
  Runtime->trim();
  uint64_t Before = Runtime->memory().reserved;
  std::vector<greta::Buffer> Many;
  for (int I = 0; I < 5000; ++I) // more than drivers allow allocations
    Many.push_back(Runtime->allocate(64));
  greta_memory With = Runtime->memory();
  EXPECT_EQ(With.reserved - Before, 64u << 20);
  EXPECT_GT(With.largest_free, 32u << 20);
  EXPECT_GT(With.total, 0u);
  {
    greta::Buffer Large = Runtime->allocate(80 << 20);
    EXPECT_GE(Runtime->memory().reserved - With.reserved, 80u << 20);
  }
  EXPECT_EQ(Runtime->memory().reserved, With.reserved);
  {
    greta::Stream S = Runtime->stream();
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
  EXPECT_EQ(Runtime->memory().reserved, With.reserved); // a spare one
  Runtime->trim();
  EXPECT_EQ(Runtime->memory().reserved, Before);
}
