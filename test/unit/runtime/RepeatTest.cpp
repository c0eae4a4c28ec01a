// RepeatTest.cpp: automatic graphs: what repeats is replayed, and nothing a
// program can see is different from what it is without them.
#include "EveryDevice.h"
#include "TestPackage.h"

#include <gtest/gtest.h>
#include <random>

using namespace greta_test;

namespace {

constexpr int64_t count = 64;

class Repeat : public EveryDevice {
protected:
  void SetUp() override {
    EveryDevice::SetUp();
    if (R)
      F = std::make_unique<greta::Function>(R->load(P, "scale"));
  }
  void TearDown() override {
    F.reset();
    EveryDevice::TearDown();
  }
  void scale(greta::Stream &S, const greta::Buffer &In,
             const greta::Buffer &Out) {
    F->launch(S, {{&In, {1, count}}}, {{&Out, {1, count}}});
  }
  // The first float of a buffer.
  static float first(greta::Stream &S, const greta::Buffer &B) {
    float Value = 0;
    S.read(B, &Value, 4);
    return Value;
  }
  greta::Buffer buffer() { return R->allocate(count * 4); }
  Bytes Data = package();
  greta::Package P{Data.data(), Data.size()};
  std::unique_ptr<greta::Function> F;
};

INSTANTIATE_TEST_SUITE_P(Devices, Repeat, everyDevice(), deviceName);

TEST_P(Repeat, ReplaysWhatIsTheSame) {
  greta::Stream S = R->stream();
  S.autoGraph(true);
  greta::Buffer A = buffer(), B = buffer(), C = buffer();
  for (int I = 0; I < 6; ++I) {
    std::vector<float> X(count, static_cast<float>(I));
    S.write(A, X.data(), count * 4);
    scale(S, A, B);
    scale(S, B, C);
    S.copy(A, C, count * 4);
    S.fill(B, 4, 0);
    EXPECT_EQ(first(S, A), 4.0f * static_cast<float>(I) + 3);
    EXPECT_EQ(S.replayed(), I < 2 ? 0u : 4u * static_cast<unsigned>(I - 1));
  }
  S.autoGraph(false);
  EXPECT_EQ(S.replayed(), 0u);
  scale(S, A, B);
  EXPECT_EQ(first(S, B), 2.0f * 23 + 1);
}

// Several sequences that begin alike, one the beginning of another.
TEST_P(Repeat, KnowsSequencesApart) {
  greta::Stream S = R->stream();
  S.autoGraph(true);
  greta::Buffer A = buffer(), B = buffer(), C = buffer();
  for (int I = 0; I < 20; ++I) {
    S.fill(A, count * 4, 0); // 0.0f
    scale(S, A, B);          // 1
    if (I % 4 == 1)
      scale(S, B, A); // 3
    if (I % 4 == 2)
      scale(S, B, C); // 3
    S.synchronize();
    EXPECT_EQ(first(S, B), 1.0f);
    EXPECT_EQ(first(S, A), I % 4 == 1 ? 3.0f : 0.0f);
    if (I % 4 == 2) {
      EXPECT_EQ(first(S, C), 3.0f);
    }
  }
  EXPECT_GT(S.replayed(), 20u);
}

// Buffers that come and go are no repetition, though they may lie where others
// lay, and nothing keeps them.
TEST_P(Repeat, KeepsNothingThatIsOnlyLearnt) {
  greta::Stream S = R->stream();
  S.autoGraph(true);
  greta::Buffer B = buffer();
  S.synchronize();
  uint64_t Before = R->memory().in_use;
  for (int I = 0; I < 30; ++I) {
    {
      greta::Buffer A = buffer();
      std::vector<float> X(count, static_cast<float>(I));
      S.write(A, X.data(), count * 4);
      scale(S, A, B);
      EXPECT_EQ(first(S, B), 2.0f * static_cast<float>(I) + 1);
    }
    S.synchronize();
    EXPECT_LE(R->memory().in_use - Before, count * 4u);
  }
}

// Sequences over a small alphabet, on one stream with automatic graphs and on
// one without: the same bytes.
TEST_P(Repeat, AgreesWithCallsOneByOne) {
  std::mt19937 Random(3);
  struct Side {
    greta::Stream S;
    std::vector<greta::Buffer> Buffers;
  };
  auto Make = [&] {
    Side New{R->stream(), {}};
    for (uint32_t I = 0; I < 3; ++I) {
      New.Buffers.push_back(buffer());
      New.S.fill(New.Buffers.back(), count * 4, I);
    }
    return New;
  };
  Side Sides[] = {Make(), Make()};
  Sides[0].S.autoGraph(true);
  auto Call = [&](Side &On, unsigned Which) {
    auto &[S, B] = On;
    if (Which < 3)
      scale(S, B[Which], B[(Which + 1) % 3]);
    else if (Which < 6)
      S.copy(B[Which % 3], B[(Which + 2) % 3], count * 2);
    else
      S.fill(B[Which % 3], 64, Which);
  };
  std::vector<std::vector<unsigned>> Sequences;
  for (int I = 0; I < 5; ++I) {
    Sequences.emplace_back();
    for (size_t N = 1 + Random() % 6; N; --N)
      Sequences.back().push_back(Random() % 9);
  }
  for (int Turn = 0; Turn < 300; ++Turn) {
    std::vector<unsigned> Calls = Sequences[Random() % Sequences.size()];
    if (Random() % 4 == 0) // cut short, or with another call behind
      Calls.resize(Random() % (Calls.size() + 2), Random() % 9);
    bool Flush = Random() % 3 == 0;
    std::vector<uint32_t> Got[2];
    for (int I = 0; I < 2; ++I) {
      for (unsigned Which : Calls)
        Call(Sides[I], Which);
      if (Flush) {
        Sides[I].S.flush();
        continue;
      }
      for (const greta::Buffer &B : Sides[I].Buffers) {
        std::vector<uint32_t> Words(count);
        Sides[I].S.read(B, Words.data(), count * 4);
        Got[I].insert(Got[I].end(), Words.begin(), Words.end());
      }
    }
    ASSERT_EQ(Got[0], Got[1]) << "turn " << Turn;
  }
  EXPECT_GT(Sides[0].S.replayed(), 300u);
}

} // namespace
