// CommTest.cpp: collectives of every type and size on every device, and their
// place in a stream.
#include "CommTest.h"

#include <cmath>
#include <optional>
#include <random>
#include <unistd.h>

using namespace greta_test;

namespace {

class EveryComm : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    std::string Where = GetParam();
    try {
      greta::Runtime R(Where.substr(0, Where.find('@')));
    } catch (const greta::Error &E) {
      GTEST_SKIP() << E.what();
    }
  }
};

TEST_P(EveryComm, CollectivesOfEveryType) {
  for (uint32_t Size : {2u, 3u})
    ranks(GetParam(), Size, [](Rank &Own) {
      uint32_t Seed = 0;
      for (uint32_t What = Reduce; What < Last; ++What)
        for (const char *Type : {"f32", "f16", "bf16", "i32"})
          for (size_t Count :
               {0, 1, 1001, strcmp(Type, "f32") ? 20003 : 100003})
            for (bool Max : {false, true}) {
              if (Max && (What > Scatter || Count == 1001))
                continue;
              ++Seed;
              EXPECT_TRUE(isRight(Own, static_cast<Which>(What), Count, Type,
                                  Max, Seed % Own.Size, Seed, Seed % 2))
                  << What << " " << Type << " " << Count << " " << Max;
            }
    });
}

TEST_P(EveryComm, EveryReductionOfEveryType) {
  for (uint32_t Size : {2u, 3u})
    ranks(GetParam(), Size, [](Rank &Own) {
      uint32_t Seed = 0;
      for (Which What : {Reduce, Scatter})
        for (const char *Type : everyType)
          for (greta_comm_reduction Op = GRETA_COMM_SUM;
               Op <= GRETA_COMM_AVERAGE; ++Op)
            for (size_t Count : {1, 20003}) {
              ++Seed;
              EXPECT_TRUE(
                  isRight(Own, What, Count, Type, Op, 0, Seed, Seed % 2))
                  << What << " " << Type << " " << Count << " " << Op;
            }
    });
}

// A launch of a function that sums between two kernels, 2 x + 1 each.
bool sumIsRight(Rank &Own, greta::Function &F, size_t Count, uint32_t Seed) {
  auto N = static_cast<int64_t>(Count);
  greta::Buffer A = Own.R.allocate(Count * 4), B = Own.R.allocate(Count * 4);
  std::vector<char> X = filled(Own.Number, 0, Count, "f32", Seed);
  Own.S.write(A, X.data(), X.size());
  F.launch(Own.S, {{&A, {1, N}}}, {{&B, {1, N}}});
  std::vector<float> Got(Count);
  Own.S.read(B, Got.data(), Count * 4);
  for (size_t I = 0; I < Count; ++I) {
    int Sum = 0;
    for (uint32_t R = 0; R < Own.Size; ++R)
      Sum += 2 * valueOf(R, I, Seed) + 1;
    if (Got[I] != static_cast<float>(2 * Sum + 1))
      return false;
  }
  return true;
}

// GRETA_TEST_WHOLE=1: 10,000 collectives with 3 ranks, too.
TEST_P(EveryComm, SequencesThatRanksDrawAlike) {
  const bool Whole = getenv("GRETA_TEST_WHOLE");
  const bool Sums = strncmp(GetParam(), "host", 4); // no functions of the host
  greta::Package P = packageOf(package(sumManifest()));
  for (uint32_t Size = Whole ? 3 : 4; Size <= 4; ++Size)
    ranks(GetParam(), Size, [&](Rank &Own) {
      std::optional<greta::Function> F;
      if (Sums)
        F.emplace(Own.R.load(P, "summed")).setComm(Own.C);
      std::mt19937 Draw(5);
      for (uint32_t I = 0; I < (Whole ? 10000 : 150); ++I) {
        auto What = static_cast<Which>(Draw() % (Last + Sums));
        size_t Count = Draw() % (1u << Draw() % 14);
        bool Max = Draw() % 2, InPlace = Draw() % 2;
        uint32_t Root = Draw() % Own.Size;
        ASSERT_TRUE(What == Last ? sumIsRight(Own, *F, Count + 1, I)
                                 : isRight(Own, What, Count, "f32", Max, Root,
                                           I, InPlace))
            << I;
      }
    });
}

TEST_P(EveryComm, TakesItsPlaceInTheStream) {
  ranks(GetParam(), 2, [](Rank &Own) {
    constexpr size_t count = 50000;
    greta::Buffer A = Own.R.allocate(count * 4), B = Own.R.allocate(count * 4),
                  Copy = Own.R.allocate(count * 4);
    greta::Graph Fill = Own.S.capture([&] { Own.S.fill(A, count * 4, 5); });
    Own.S.fill(A, count * 4, 1);
    Own.C.allReduce(Own.S, B, A, count, "i32"); // 2
    Own.C.allReduce(Own.S, B, B, count, "i32"); // 4
    Own.C.allReduce(Own.S, A, B, count, "i32"); // 8
    Own.S.copy(Copy, A, count * 4);
    Own.S.launch(Fill);
    Own.C.allReduce(Own.S, B, A, count, "i32"); // 10
    greta::Event E = Own.R.event();
    Own.S.record(E);
    E.synchronize();
    std::vector<int32_t> First(count), Second(count), Third(count);
    Own.S.read(Copy, First.data(), count * 4);
    Own.S.read(A, Second.data(), count * 4);
    Own.S.read(B, Third.data(), count * 4);
    EXPECT_EQ(First, std::vector<int32_t>(count, 8));
    EXPECT_EQ(Second, std::vector<int32_t>(count, 5));
    EXPECT_EQ(Third, std::vector<int32_t>(count, 10));
  });
}

// 64 MB in the larger one of a collective's buffers. Words repeat after a prime
// number of them, so that a step in another's place is seen, and are compared
// by memcmp, which the sanitizers look at once.
class LargeComm : public EveryComm {};

TEST_P(LargeComm, Collectives) {
  constexpr size_t all = 16 << 20, half = all / 2, period = 65521;
  greta_comm_options Usual{};
  Usual.staging_bytes = 4 << 20;
  std::vector<int32_t> Of[3]; // of each rank, and their sums, two periods each
  for (size_t R = 0; R < 3; ++R)
    for (size_t I = 0; I < 2 * period; ++I)
      Of[R].push_back(static_cast<int32_t>(I % period * (R + 1) * 7));
  struct Piece {
    size_t Of, Begin, Count;
  };
  auto Body = [&](Rank &Own) {
    greta::Buffer From = Own.R.allocate(all * 4), To = Own.R.allocate(all * 4);
    std::vector<int32_t> Words(all);
    // Calls F(words, words of the piece, how many) until it says no.
    auto Each = [&](const std::vector<Piece> &Pieces, auto F) {
      int32_t *At = Words.data();
      for (const Piece &P : Pieces)
        for (size_t I = 0; I < P.Count; I += period) {
          size_t N = std::min(period, P.Count - I);
          if (!F(At, &Of[P.Of][(P.Begin + I) % period], N))
            return false;
          At += N;
        }
      return true;
    };
    auto IsRight = [&](const std::vector<Piece> &Pieces) {
      size_t Count = 0;
      for (const Piece &P : Pieces)
        Count += P.Count;
      Own.S.read(To, Words.data(), Count * 4);
      return Each(Pieces, [](int32_t *Got, const int32_t *Want, size_t N) {
        return !memcmp(Got, Want, N * 4);
      });
    };
    const uint32_t Me = Own.Number, Peer = 1 - Me;
    Each({{Me, 0, all}}, [](int32_t *To, const int32_t *From, size_t N) {
      memcpy(To, From, N * 4);
      return true;
    });
    Own.S.write(From, Words.data(), all * 4);
    greta_comm *C = Own.C.get();
    greta_stream *S = Own.S.get();
    greta::check(greta_comm_all_reduce(C, S, To.get(), 0, From.get(), 0, all,
                                       "i32", GRETA_COMM_SUM));
    EXPECT_TRUE(IsRight({{2, 0, all}}));
    greta::check(greta_comm_reduce_scatter(C, S, To.get(), 0, From.get(), 0,
                                           half, "i32", GRETA_COMM_SUM));
    EXPECT_TRUE(IsRight({{2, Me * half, half}}));
    greta::check(
        greta_comm_all_gather(C, S, To.get(), 0, From.get(), 0, half * 4));
    EXPECT_TRUE(IsRight({{0, 0, half}, {1, 0, half}}));
    greta::check(greta_comm_broadcast(
        C, S, To.get(), 0, Me == 1 ? From.get() : nullptr, 0, all * 4, 1));
    EXPECT_TRUE(IsRight({{1, 0, all}}));
    Own.C.allToAll(Own.S, To, From, half * 4);
    EXPECT_TRUE(IsRight({{0, Me * half, half}, {1, Me * half, half}}));
    Own.C.exchange(Own.S, {{From.get(), 0, all * 4, Peer, 0},
                           {To.get(), 0, all * 4, Peer, 1}});
    EXPECT_TRUE(IsRight({{Peer, 0, all}}));
  };
  ranks(GetParam(), 2, Body, Usual);
}

INSTANTIATE_TEST_SUITE_P(Devices, EveryComm,
                         testing::Values("host", "vulkan", "sim:gfx942",
                                         "host@hosts", "vulkan@hosts"),
                         ranksName);

INSTANTIATE_TEST_SUITE_P(Devices, LargeComm,
                         testing::Values("host", "vulkan", "sim:gfx942"),
                         ranksName);

TEST(Comm, DevicesOfAnyKindTogether) {
  const char *Specs[] = {"host", "vulkan", "sim:gfx942"};
  for (const char *Spec : Specs)
    try {
      greta::Runtime R(Spec);
    } catch (const greta::Error &E) {
      GTEST_SKIP() << E.what();
    }
  std::string Path = temporaryFolder() + "/together";
  together(3, [&](uint32_t N) {
    greta_comm_options O{};
    O.path = Path.c_str();
    O.rank = N;
    O.size = 3;
    Rank Own(Specs[N], O);
    EXPECT_TRUE(isRight(Own, Reduce, 1200007, "f16", false, 0, 1));
    EXPECT_TRUE(isRight(Own, Ring, 1200007, "f16", false, 0, 1));
    EXPECT_NE(Own.C.info().find("\"way\": \"host\""), std::string::npos);
  });
  EXPECT_NE(access(Path.c_str(), F_OK), 0); // removed
}

// Halves: 2048 + 1 is not one, 2048 + 1 + 1 is; NaN in a sum stays.
TEST(Comm, SumsAreRoundedOnce) {
  ranks("host", 3, [](Rank &Own) {
    _Float16 Values[2] = {static_cast<_Float16>(Own.Number ? 1 : 2048),
                          static_cast<_Float16>(Own.Number ? 1 : NAN)};
    greta::Buffer A = Own.R.allocate(4);
    Own.S.write(A, Values, 4);
    Own.C.allReduce(Own.S, A, A, 2, "f16");
    Own.S.read(A, Values, 4);
    EXPECT_EQ(static_cast<float>(Values[0]), 2050);
    EXPECT_TRUE(std::isnan(static_cast<float>(Values[1])));
  });
}

TEST(Comm, SendsKeepTheirOrder) {
  ranks("host", 2, [](Rank &Own) {
    constexpr size_t count = 70000;
    greta::Buffer A = Own.R.allocate(count * 4), B = Own.R.allocate(count * 4);
    uint32_t Peer = 1 - Own.Number;
    if (Own.Number == 0) {
      Own.S.fill(A, count * 4, 1);
      Own.C.send(Own.S, A, count * 4, Peer);
      Own.S.fill(A, count * 4, 2);
      Own.C.send(Own.S, A, count * 4, Peer);
    } else {
      Own.C.receive(Own.S, A, count * 4, Peer);
      Own.C.receive(Own.S, B, count * 4, Peer);
      std::vector<int32_t> Got(count);
      Own.S.read(A, Got.data(), count * 4);
      EXPECT_EQ(Got, std::vector<int32_t>(count, 1));
      Own.S.read(B, Got.data(), count * 4);
      EXPECT_EQ(Got, std::vector<int32_t>(count, 2));
    }
    // Two of each at once, with both and with itself.
    uint32_t Words[4] = {Own.Number * 10 + 3, Own.Number * 10 + 4, 0, 0};
    Own.S.write(A, Words, 16);
    auto *Buffer = A.get();
    Own.C.exchange(Own.S, {{Buffer, 0, 4, Peer, 0},
                           {Buffer, 4, 4, Peer, 0},
                           {Buffer, 8, 4, Peer, 1},
                           {Buffer, 12, 4, Peer, 1}});
    Own.C.exchange(
        Own.S, {{Buffer, 8, 4, Own.Number, 0}, {Buffer, 0, 4, Own.Number, 1}});
    Own.S.read(A, Words, 16);
    EXPECT_EQ(Words[2], Peer * 10 + 3);
    EXPECT_EQ(Words[3], Peer * 10 + 4);
    EXPECT_EQ(Words[0], Words[2]);
  });
}

} // namespace
