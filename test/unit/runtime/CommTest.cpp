// CommTest.cpp: communicators whose ranks are threads of the test, and one
// whose last rank is a process that ends; greta_comm_* against sums and copies
// of the test's own. FakeNccl.cpp is NCCL.
#include "Backend.h"
#include "EveryDevice.h"
#include "TestPackage.h"
#include "comm/SmallReduce.h"
#include "greta_runtime.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <dlfcn.h>
#include <nlohmann/json.hpp>
#include <random>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>

using namespace greta_test;

extern char **environ;

namespace {

constexpr uint64_t enough = 60000; // milliseconds, for the slowest sanitizer

// A rank on its device.
struct Rank {
  Rank(const std::string &Spec, greta_comm_options O)
      : R(Spec), S(R.stream()), C(R.comm(O)), Number(O.rank), Size(O.size) {}
  greta::Runtime R;
  greta::Stream S;
  greta::Comm C;
  uint32_t Number, Size;
};

greta_comm_options options(uint32_t Number, uint32_t Size,
                           const greta_comm_id &Id) {
  greta_comm_options O{};
  O.id = &Id;
  O.rank = Number;
  O.size = Size;
  O.timeout_milliseconds = enough;
  O.staging_bytes = 1; // the least, for many steps
  return O;
}

// Runs Body(rank) in a thread for each rank.
template <typename Body>
void ranks(const std::string &Spec, uint32_t Size, Body B,
           greta_comm_options Usual = {}) {
  greta_comm_id Id = greta::Comm::uniqueId();
  std::vector<std::thread> Threads;
  for (uint32_t N = 0; N < Size; ++N)
    Threads.emplace_back([&, N] {
      try {
        greta_comm_options O = options(N, Size, Id);
        O.ways = Usual.ways;
        if (Usual.timeout_milliseconds)
          O.timeout_milliseconds = Usual.timeout_milliseconds;
        Rank Own(Spec, O);
        B(Own);
      } catch (const std::exception &E) {
        ADD_FAILURE() << "rank " << N << ": " << E.what();
      }
    });
  for (std::thread &T : Threads)
    T.join();
}

// Elements are small integers, so that sums are exact in every type.
int valueOf(uint32_t Rank, size_t I, uint32_t Seed) {
  return static_cast<int>((I * 7 + Rank * 5 + Seed * 3) % 17) - 8;
}

size_t sizeOf(const std::string &Type) {
  return Type == "f32" || Type == "i32" ? 4 : 2;
}

void put(std::vector<char> &To, size_t I, const std::string &Type, int Value) {
  auto Number = static_cast<float>(Value);
  auto Half = static_cast<_Float16>(Number);
  if (Type == "f32")
    memcpy(&To[I * 4], &Number, 4);
  else if (Type == "i32")
    memcpy(&To[I * 4], &Value, 4);
  else if (Type == "f16")
    memcpy(&To[I * 2], &Half, 2);
  else // the upper half of a float
    memcpy(&To[I * 2], reinterpret_cast<char *>(&Number) + 2, 2);
}

std::vector<char> filled(uint32_t Rank, size_t Begin, size_t Count,
                         const std::string &Type, uint32_t Seed) {
  std::vector<char> All(Count * sizeOf(Type));
  for (size_t I = 0; I < Count; ++I)
    put(All, I, Type, valueOf(Rank, Begin + I, Seed));
  return All;
}

std::vector<char> reduced(uint32_t Ranks, size_t Begin, size_t Count,
                          const std::string &Type, uint32_t Seed, bool Max) {
  std::vector<char> All(Count * sizeOf(Type));
  for (size_t I = 0; I < Count; ++I) {
    int Value = valueOf(0, Begin + I, Seed);
    for (uint32_t R = 1; R < Ranks; ++R) {
      int Next = valueOf(R, Begin + I, Seed);
      Value = Max ? std::max(Value, Next) : Value + Next;
    }
    put(All, I, Type, Value);
  }
  return All;
}

enum Which : uint32_t { Reduce, Scatter, Gather, Cast, All, Ring, Last };

// One collective on buffers of its own, or in place; true if it is right.
bool isRight(Rank &Own, Which What, size_t Count, const std::string &Type,
             bool Max, uint32_t Root, uint32_t Seed, bool InPlace = false) {
  uint32_t Me = Own.Number, N = Own.Size;
  size_t E = sizeOf(Type), Part = Count * E;
  size_t Gives = Count * (What == Scatter || What == All ? N : 1);
  size_t Gets = Count * (What == Gather || What == All ? N : 1);
  bool Shares = InPlace && What != All && What != Ring;
  greta::Buffer From = Own.R.allocate(std::max(Gives, Gets) * E), Other;
  if (!Shares)
    Other = Own.R.allocate(Gets * E);
  greta::Buffer &To = Shares ? From : Other;
  // Where each begins: the smaller one is this rank's part of the larger.
  size_t FromAt = Shares && What == Gather ? Me * Part : 0;
  size_t ToAt = Shares && What == Scatter ? Me * Part : 0;
  std::vector<char> Data = filled(Me, 0, Gives, Type, Seed);
  Own.S.write(From, Data.data(), Data.size(), FromAt);
  greta_comm *C = Own.C.get();
  greta_stream *S = Own.S.get();
  uint32_t Next = (Me + 1) % N, Before = (Me + N - 1) % N;
  std::vector<char> Want;
  switch (What) {
  case Reduce:
    greta::check(greta_comm_all_reduce(C, S, To.get(), 0, From.get(), 0, Count,
                                       Type.c_str(), Max));
    Want = reduced(N, 0, Count, Type, Seed, Max);
    break;
  case Scatter:
    greta::check(greta_comm_reduce_scatter(C, S, To.get(), ToAt, From.get(), 0,
                                           Count, Type.c_str(), Max));
    Want = reduced(N, Me * Count, Count, Type, Seed, Max);
    break;
  case Gather:
    greta::check(
        greta_comm_all_gather(C, S, To.get(), 0, From.get(), FromAt, Part));
    for (uint32_t R = 0; R < N; ++R) {
      std::vector<char> Its = filled(R, 0, Count, Type, Seed);
      Want.insert(Want.end(), Its.begin(), Its.end());
    }
    break;
  case Cast:
    greta::check(greta_comm_broadcast(
        C, S, To.get(), 0, Me == Root ? From.get() : nullptr, 0, Part, Root));
    Want = filled(Root, 0, Count, Type, Seed);
    break;
  case All:
    Own.C.allToAll(Own.S, To, From, Part);
    for (uint32_t R = 0; R < N; ++R) {
      std::vector<char> Its = filled(R, Me * Count, Count, Type, Seed);
      Want.insert(Want.end(), Its.begin(), Its.end());
    }
    break;
  default:
    Own.C.exchange(Own.S, {{From.get(), 0, Part, Next, 0},
                           {To.get(), 0, Part, Before, 1}});
    Want = filled(Before, 0, Count, Type, Seed);
  }
  std::vector<char> Got(Gets * E);
  if (!Got.empty())
    Own.S.read(To, Got.data(), Got.size(), ToAt);
  return Got == Want;
}

class EveryComm : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    try {
      greta::Runtime R(GetParam());
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
          for (size_t Count : {0, 1, 1001, 100003})
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

TEST_P(EveryComm, SequencesThatRanksDrawAlike) {
  ranks(GetParam(), 4, [](Rank &Own) {
    std::mt19937 Draw(5);
    for (uint32_t I = 0; I < 150; ++I) {
      auto What = static_cast<Which>(Draw() % Last);
      size_t Count = Draw() % (1u << Draw() % 14);
      bool Max = Draw() % 2, InPlace = Draw() % 2;
      uint32_t Root = Draw() % Own.Size;
      ASSERT_TRUE(isRight(Own, What, Count, "f32", Max, Root, I, InPlace));
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

INSTANTIATE_TEST_SUITE_P(Devices, EveryComm,
                         testing::Values("host", "vulkan", "sim:gfx942"),
                         deviceName);

TEST(Comm, DevicesOfAnyKindTogether) {
  const char *Specs[] = {"host", "vulkan", "sim:gfx942"};
  for (const char *Spec : Specs)
    try {
      greta::Runtime R(Spec);
    } catch (const greta::Error &E) {
      GTEST_SKIP() << E.what();
    }
  std::string Path = temporaryFolder() + "/together";
  std::vector<std::thread> Threads;
  for (uint32_t N = 0; N < 3; ++N)
    Threads.emplace_back([&, N] {
      greta_comm_options O{};
      O.path = Path.c_str();
      O.rank = N;
      O.size = 3;
      Rank Own(Specs[N], O);
      EXPECT_TRUE(isRight(Own, Reduce, 1200007, "f16", false, 0, 1));
      EXPECT_TRUE(isRight(Own, Ring, 1200007, "f16", false, 0, 1));
      EXPECT_NE(Own.C.info().find("\"way\": \"host\""), std::string::npos);
    });
  for (std::thread &T : Threads)
    T.join();
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

std::string refusal(const std::function<void()> &F,
                    greta_status Status = GRETA_ERROR_INVALID_ARGUMENT) {
  try {
    F();
  } catch (const greta::Error &E) {
    EXPECT_EQ(E.status(), Status) << E.what();
    return E.what();
  }
  return "none";
}

#define EXPECT_REFUSED(Text, ...)                                              \
  EXPECT_NE(refusal([&] { __VA_ARGS__; }).find(Text), std::string::npos)

TEST(Comm, RefusesWhatIsNoCollective) {
  ranks("host", 2, [](Rank &Own) {
    greta::Buffer A = Own.R.allocate(64), B = Own.R.allocate(64);
    greta_comm *C = Own.C.get();
    greta_stream *S = Own.S.get();
    EXPECT_REFUSED("leaves the buffer",
                   Own.C.allReduce(Own.S, A, B, 17, "f32"));
    EXPECT_REFUSED("not of f64", Own.C.allReduce(Own.S, A, B, 1, "f64"));
    EXPECT_REFUSED("unknown reduction",
                   Own.C.allReduce(Own.S, A, B, 1, "f32", 7));
    EXPECT_REFUSED("leaves the buffer", Own.C.allGather(Own.S, A, B, 33));
    EXPECT_REFUSED("overlaps", Own.C.allToAll(Own.S, A, A, 8));
    EXPECT_REFUSED("overlaps", greta::check(greta_comm_all_reduce(
                                   C, S, A.get(), 0, A.get(), 4, 4, "f32", 0)));
    EXPECT_REFUSED("multiples of the element",
                   greta::check(greta_comm_all_reduce(C, S, A.get(), 0, B.get(),
                                                      2, 4, "f32", 0)));
    EXPECT_REFUSED("is none of 2 ranks", Own.C.broadcast(Own.S, A, B, 4, 2));
    EXPECT_REFUSED("is none of 2 ranks", Own.C.send(Own.S, A, 4, 2));
    EXPECT_REFUSED("times", Own.C.allReduce(Own.S, A, B, SIZE_MAX, "f32"));
    Own.S.capture([&] {
      EXPECT_REFUSED("a graph cannot record all_reduce",
                     Own.C.allReduce(Own.S, A, B, 1, "f32"));
    });
    Own.C.allReduce(Own.S, A, B, 16, "f32"); // it works still
    Own.S.synchronize();
  });
  greta::Runtime R("host");
  greta_comm_id Id = greta::Comm::uniqueId();
  greta_comm_options O = options(1, 1, Id);
  EXPECT_REFUSED("rank 1 of 1", R.comm(O));
  O = options(0, 1, Id);
  O.path = "/tmp/x";
  EXPECT_REFUSED("an id or", R.comm(O));
  O = options(1, 2, Id);
  O.timeout_milliseconds = 50;
  EXPECT_NE(refusal([&] { R.comm(O); }, GRETA_ERROR_PEER_LOST)
                .find("has waited 50 ms for rank 0"),
            std::string::npos);
  O = options(0, 2, Id);
  O.timeout_milliseconds = 50;
  EXPECT_NE(refusal([&] { R.comm(O); }, GRETA_ERROR_PEER_LOST)
                .find("for rank 1 in a meeting"),
            std::string::npos);
}

// A rank that does not come is an error on both, and so is all that follows.
TEST(Comm, TimeOutsEndItOnEveryRank) {
  greta_comm_options Usual{};
  Usual.timeout_milliseconds = 300;
  std::atomic<bool> Late{false};
  ranks(
      "host", 2,
      [&](Rank &Own) {
        greta::Buffer A = Own.R.allocate(64);
        auto Sum = [&] {
          Own.C.allReduce(Own.S, A, A, 16, "f32");
          Own.S.synchronize();
        };
        if (Own.Number == 1)
          while (!Late)
            std::this_thread::yield();
        std::string First = refusal(Sum, GRETA_ERROR_PEER_LOST);
        Late = true;
        EXPECT_NE(First.find("has waited 300 ms for rank 1 in all_reduce"),
                  std::string::npos)
            << First;
        EXPECT_NE(refusal(Sum, GRETA_ERROR_PEER_LOST), "none");
        Own.S.fill(A, 64, 0); // the stream goes on
        Own.S.synchronize();
      },
      Usual);
}

TEST(Comm, RanksThatDifferAreTold) {
  ranks("host", 2, [](Rank &Own) {
    greta::Buffer A = Own.R.allocate(64);
    std::string Why;
    try {
      Own.C.allReduce(Own.S, A, A, 8 + Own.Number, "f32");
      Own.S.synchronize();
    } catch (const greta::Error &E) {
      Why = E.what();
    }
    EXPECT_NE(Why.find("differ in the collective"), std::string::npos) << Why;
  });
}

TEST(Comm, AbortEndsItOnEveryRank) {
  ranks("host", 2, [](Rank &Own) {
    greta::Buffer A = Own.R.allocate(64);
    if (Own.Number == 1)
      return Own.C.abort();
    EXPECT_NE(refusal(
                  [&] {
                    Own.C.allReduce(Own.S, A, A, 16, "f32");
                    Own.S.synchronize();
                  },
                  GRETA_ERROR_PEER_LOST)
                  .find("rank 1"),
              std::string::npos);
  });
}

TEST(Comm, TransfersOfTwoSizesAreTold) {
  ranks("host", 2, [](Rank &Own) {
    greta::Buffer A = Own.R.allocate(64);
    std::string Why;
    try {
      if (Own.Number == 0)
        Own.C.send(Own.S, A, 8, 1);
      else
        Own.C.receive(Own.S, A, 16, 0);
      Own.S.synchronize();
    } catch (const greta::Error &E) {
      Why = E.what();
    }
    // A send of one step may have ended before.
    EXPECT_TRUE(Own.Number == 0 ||
                Why.find("sends 8 bytes, rank 1 receives 16") !=
                    std::string::npos)
        << Why;
  });
}

// One id, twice: the second communicator has memory of its own while the first
// one's is still there.
TEST(Comm, AnIdIsUsedAgain) {
  greta_comm_id Id = greta::Comm::uniqueId();
  std::vector<std::thread> Threads;
  for (uint32_t N = 0; N < 2; ++N)
    Threads.emplace_back([&, N] {
      Rank First("host", options(N, 2, Id));
      EXPECT_TRUE(isRight(First, Reduce, 1001, "f32", false, 0, 1));
      Rank Second("host", options(N, 2, Id));
      EXPECT_TRUE(isRight(Second, Reduce, 1001, "f32", false, 0, 2));
      EXPECT_TRUE(isRight(First, Gather, 1001, "f32", false, 0, 3));
    });
  for (std::thread &T : Threads)
    T.join();
}

TEST(Comm, StagingHasALimit) {
  greta::Runtime R("host");
  greta_comm_id Id = greta::Comm::uniqueId();
  greta_comm_options O = options(0, 1, Id);
  for (uint64_t Bytes : {uint64_t(1) << 31, UINT64_MAX}) {
    O.staging_bytes = Bytes;
    EXPECT_REFUSED("the most is", R.comm(O));
  }
}

// A rank that comes and goes before the communicator is made.
TEST(Comm, ARankThatGoesDuringCreationIsTold) {
  greta::Runtime R("host");
  greta_comm_id Id = greta::Comm::uniqueId();
  std::thread Other([&] {
    greta::rt::comm::Group::Id Name;
    memcpy(Name.data(), Id.bytes, Name.size());
    greta::rt::comm::Group(Name, "", 1, 2, enough, 0);
  });
  std::string Why =
      refusal([&] { R.comm(options(0, 2, Id)); }, GRETA_ERROR_PEER_LOST);
  Other.join();
  EXPECT_NE(Why.find("rank 1 is gone"), std::string::npos) << Why;
}

// What the process of the next test does: one collective, and its end in the
// middle of the second.
TEST(Comm, DISABLED_ProcessThatEnds) {
  greta_comm_options O{};
  O.path = getenv("GRETA_TEST_COMM_PATH");
  O.rank = 2;
  O.size = 3;
  O.staging_bytes = 1;
  Rank Own("host", O);
  greta::Buffer A = Own.R.allocate(64 << 20);
  Own.C.allReduce(Own.S, A, A, 16, "f32");
  Own.S.synchronize();
  Own.C.allReduce(Own.S, A, A, 16 << 20, "f32");
  kill(getpid(), SIGKILL);
}

TEST(Comm, AProcessThatEndsIsAnErrorOnEveryRank) {
  std::string Path = temporaryFolder() + "/ends";
  std::string Variable = "GRETA_TEST_COMM_PATH=" + Path;
  std::vector<char *> Environment = {Variable.data()};
  for (char **E = environ; *E; ++E)
    Environment.push_back(*E);
  Environment.push_back(nullptr);
  const char *Arguments[] = {"greta-runtime-test",
                             "--gtest_filter=Comm.DISABLED_ProcessThatEnds",
                             "--gtest_also_run_disabled_tests", nullptr};
  pid_t Child = 0;
  ASSERT_EQ(posix_spawn(&Child, "/proc/self/exe", nullptr, nullptr,
                        const_cast<char **>(Arguments), Environment.data()),
            0);
  std::vector<std::thread> Threads;
  for (uint32_t N = 0; N < 2; ++N)
    Threads.emplace_back([&, N] {
      greta_comm_options O{};
      O.path = Path.c_str();
      O.rank = N;
      O.size = 3;
      O.staging_bytes = 1;
      Rank Own("host", O);
      greta::Buffer A = Own.R.allocate(64 << 20);
      Own.C.allReduce(Own.S, A, A, 16, "f32");
      Own.S.synchronize();
      auto Begin = std::chrono::steady_clock::now();
      std::string Why = refusal(
          [&] {
            Own.C.allReduce(Own.S, A, A, 16 << 20, "f32");
            Own.S.synchronize();
          },
          GRETA_ERROR_PEER_LOST);
      EXPECT_NE(Why.find("rank 2 is gone"), std::string::npos) << Why;
      EXPECT_LT(std::chrono::steady_clock::now() - Begin,
                std::chrono::seconds(30));
    });
  for (std::thread &T : Threads)
    T.join();
  int Status = 0;
  ASSERT_EQ(waitpid(Child, &Status, 0), Child);
  EXPECT_TRUE(WIFSIGNALED(Status));
}

// The kernel of small sums. The test is the other rank: it puts its words into
// that one's box before the kernel looks.
TEST(CommKernel, MeetsAnotherRankInTheHostsMemory) {
  using namespace greta::rt;
  using namespace greta::rt::comm;
  std::shared_ptr<Device> D;
  try {
    D = openDevice("vulkan");
  } catch (const Error &E) {
    GTEST_SKIP() << E.what();
  }
  Group::Id Id = Group::newId();
  std::unique_ptr<Group> Other;
  std::thread Joins(
      [&] { Other = std::make_unique<Group>(Id, "", 1, 2, enough, 1); });
  Group Own(Id, "", 0, 2, enough, 1);
  Joins.join();
  SmallReduce Kernel(D, Own);
  auto *Boxes = reinterpret_cast<uint64_t *>(Own.data() + Own.boxesAt() +
                                             Group::wordBytes);
  std::unique_ptr<greta::rt::Stream> S = D->createStream();
  uint64_t Round = 0;
  auto Comes = [&](const std::vector<char> &Words) { // in the next round
    ++Round;
    for (size_t I = 0; I < Words.size() / 4; ++I) {
      uint32_t Word;
      memcpy(&Word, &Words[I * 4], 4);
      Boxes[(2 + Round % 2) * Group::boxWords + I] = Word | Round << 32;
    }
  };
  const std::pair<const char *, Element> types[] = {{"f32", Element::F32},
                                                    {"f16", Element::F16},
                                                    {"bf16", Element::BF16},
                                                    {"i32", Element::I32}};
  for (const auto &[Type, E] : types)
    for (bool Max : {false, true})
      for (size_t Offset : {0, 6}) { // one that no word has
        size_t Count = 5002, Bytes = Count * bytesOf(E);
        Collective C;
        C.What = Kind::AllReduce;
        C.Type = E;
        C.Op = Max ? Reduction::Max : Reduction::Sum;
        C.Count = Count;
        C.From = C.To = D->allocate(Bytes + Offset);
        C.FromOffset = C.ToOffset = Offset;
        ASSERT_TRUE(SmallReduce::takes(C));
        std::vector<char> Mine = filled(0, 0, Count, Type, 3), Got(Bytes);
        S->write(C.From, Offset, Mine.data(), Bytes);
        Comes(filled(1, 0, Count, Type, 3));
        Kernel.queue(*S, C, 1000);
        S->read(C.To, Offset, Got.data(), Bytes);
        EXPECT_EQ(Got, reduced(2, 0, Count, Type, 3, Max)) << Type << Max;
      }
  // Twice in a graph, which is replayed: 1 + 2 + 3 and so on, rounded to halves
  // once in each round.
  Collective C;
  C.What = Kind::AllReduce;
  C.Type = Element::F16;
  C.Count = 2;
  C.From = C.To = D->allocate(4);
  S->beginCapture();
  S->Capturing = true;
  Kernel.queue(*S, C, 1000);
  S->Capturing = false;
  std::shared_ptr<greta::rt::Graph> G = S->endCapture();
  float Want[2] = {2049, -0.1f};
  _Float16 Values[2] = {static_cast<_Float16>(Want[0]),
                        static_cast<_Float16>(Want[1])};
  Want[0] = static_cast<float>(Values[0]);
  Want[1] = static_cast<float>(Values[1]);
  S->write(C.From, 0, Values, 4);
  for (int I = 0; I < 5; ++I) {
    _Float16 Next[2] = {static_cast<_Float16>(0.3f * static_cast<float>(I)),
                        static_cast<_Float16>(6.1e-5f)};
    std::vector<char> Words(4);
    memcpy(Words.data(), Next, 4);
    Comes(Words);
    G->launch(*S);
    S->read(C.To, 0, Values, 4);
    for (int J = 0; J < 2; ++J) {
      Want[J] = static_cast<float>(
          static_cast<_Float16>(Want[J] + static_cast<float>(Next[J])));
      EXPECT_EQ(static_cast<float>(Values[J]), Want[J]) << I << J;
    }
  }
  EXPECT_FALSE(Own.hasKernelEnded());
  // Nobody comes: it ends, and says so.
  Kernel.queue(*S, C, 1000);
  S->synchronize();
  EXPECT_TRUE(Own.hasKernelEnded());
}

// NCCL and CUDA, by FakeNccl.cpp on lavapipe's memory.
class CommNccl : public testing::Test {
protected:
  void SetUp() override {
    void *Handle = dlopen(GRETA_TEST_FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(Handle, nullptr) << dlerror();
    Enable =
        reinterpret_cast<decltype(Enable)>(dlsym(Handle, "fake_nccl_enable"));
    Calls = reinterpret_cast<decltype(Calls)>(dlsym(Handle, "fake_nccl_calls"));
    try {
      greta::Runtime R("vulkan");
      auto Info = nlohmann::json::parse(R.info());
      if (std::string(Info["name"]).find("llvmpipe") == std::string::npos)
        GTEST_SKIP() << "the fake maps lavapipe's memory only";
      R.allocateShared(GRETA_FD_OPAQUE, 64);
      std::string Text = Info["uuid"];
      for (size_t I = 0; I < 16; ++I)
        Uuid[I] = static_cast<uint8_t>(
            std::stoul(Text.substr(2 * I, 2), nullptr, 16));
    } catch (const greta::Error &E) {
      GTEST_SKIP() << E.what();
    }
    Enable(Uuid, 0);
  }
  void TearDown() override {
    if (Enable)
      Enable(nullptr, 0);
  }
  void (*Enable)(const uint8_t *, int) = nullptr;
  int (*Calls)(const char *) = nullptr;
  uint8_t Uuid[16];
};

TEST_F(CommNccl, TakesVulkanMemory) {
  ranks("vulkan", 2, [](Rank &Own) {
    EXPECT_NE(Own.C.info().find("\"way\": \"nccl\""), std::string::npos)
        << Own.C.info();
    uint32_t Seed = 0;
    for (uint32_t What = Reduce; What < Last; ++What)
      for (size_t Count : {1, 1001})
        for (const char *Type : {"f32", "i32"}) {
          ++Seed;
          EXPECT_TRUE(isRight(Own, static_cast<Which>(What), Count, Type,
                              Seed % 2, Seed % 2, Seed, Seed % 3 == 0))
              << What << " " << Count << " " << Type;
        }
    // Shared memory is taken as it is.
    greta::Buffer A = Own.R.allocateShared(GRETA_FD_OPAQUE, 4096),
                  B = Own.R.allocateShared(GRETA_FD_OPAQUE, 4096);
    Own.S.fill(A, 4096, 3);
    Own.C.allReduce(Own.S, B, A, 1024, "i32");
    Own.C.allReduce(Own.S, B, B, 1024, "i32");
    Own.S.fill(A, 4096, 1);
    std::vector<int32_t> Got(1024);
    Own.S.read(B, Got.data(), 4096);
    EXPECT_EQ(Got, std::vector<int32_t>(1024, 12));
  });
  // Two ranks; the test at creation and the calls above.
  EXPECT_EQ(Calls("ncclCommInitRank"), 2);
  EXPECT_EQ(Calls("ncclAllReduce"), 2 * (1 + 4 + 2));
  EXPECT_EQ(Calls("ncclAllGather"), 2 * (1 + 4));
  EXPECT_EQ(Calls("ncclReduceScatter"), 2 * 4);
  EXPECT_EQ(Calls("ncclBroadcast"), 2 * 4);
  EXPECT_EQ(Calls("ncclSend"), 2 * (4 * 2 + 4));
  EXPECT_EQ(Calls("ncclRecv"), 2 * (4 * 2 + 4));
  EXPECT_EQ(Calls("ncclCommAbort"), 2);
  EXPECT_EQ(Calls("cuImportExternalMemory"), Calls("cuDestroyExternalMemory"));
}

TEST_F(CommNccl, IsLeftOutWhereItComputesWrong) {
  Enable(Uuid, 1);
  greta_set_log_callback([](greta_log_level, const char *, void *) {}, nullptr);
  ranks("vulkan", 2, [](Rank &Own) {
    auto Info = nlohmann::json::parse(Own.C.info());
    EXPECT_EQ(Info["way"], "host");
    EXPECT_NE(std::string(Info["left_out"]["nccl"]).find("all_reduce is wrong"),
              std::string::npos)
        << Info;
    EXPECT_TRUE(isRight(Own, Reduce, 1001, "f32", false, 0, 1));
  });
  greta_set_log_callback(nullptr, nullptr);
}

TEST_F(CommNccl, ARankThatDoesNotComeEndsIt) {
  greta_comm_options Usual{};
  Usual.timeout_milliseconds = 500;
  Usual.ways = GRETA_COMM_NCCL;
  std::atomic<bool> Late{false};
  ranks(
      "vulkan", 2,
      [&](Rank &Own) {
        greta::Buffer A = Own.R.allocateShared(GRETA_FD_OPAQUE, 64);
        if (Own.Number == 1) {
          while (!Late)
            std::this_thread::yield();
          return;
        }
        EXPECT_NE(refusal(
                      [&] {
                        Own.C.allReduce(Own.S, A, A, 16, "f32");
                        Own.S.synchronize();
                      },
                      GRETA_ERROR_PEER_LOST)
                      .find("has waited 500 ms"),
                  std::string::npos);
        Late = true;
      },
      Usual);
}

} // namespace
