// CommNcclTest.cpp: communicators by NCCL, which is FakeNccl.cpp, and by the
// kernel of small sums.
#include "Backend.h"
#include "CommTest.h"
#include "comm/SmallReduce.h"

#include <atomic>
#include <chrono>
#include <dlfcn.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

using namespace greta_test;

namespace {

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
  const Group::Place At{Group::newId(), {}, {}};
  std::unique_ptr<Group> Other;
  std::thread Joins(
      [&] { Other = std::make_unique<Group>(At, 1, 2, enough, 1); });
  Group Own(At, 0, 2, enough, 1);
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
  enum { Right, WrongSums, NoStart, EndsAtStart, LateEnds }; // FakeNccl.cpp
  uint8_t Uuid[16];
};

// Each collective, of one element and of many, of two types.
void everyCollectiveIsRight(Rank &Own) {
  uint32_t Seed = 0;
  for (uint32_t What = Reduce; What < Last; ++What)
    for (size_t Count : {1, 1001})
      for (const char *Type : {"f32", "i32"}) {
        ++Seed;
        EXPECT_TRUE(isRight(Own, static_cast<Which>(What), Count, Type,
                            Seed % 2, Seed % 2, Seed, Seed % 3 == 0))
            << What << " " << Count << " " << Type;
      }
}

// Two sums between fills of two buffers of 4,096 bytes.
void sumsTakeTheirPlace(Rank &Own, greta::Buffer &A, greta::Buffer &B) {
  Own.S.fill(A, 4096, 3);
  Own.C.allReduce(Own.S, B, A, 1024, "i32");
  Own.C.allReduce(Own.S, B, B, 1024, "i32");
  Own.S.fill(A, 4096, 1);
  std::vector<int32_t> Got(1024);
  Own.S.read(B, Got.data(), 4096);
  EXPECT_EQ(Got, std::vector<int32_t>(1024, 12));
}

TEST_F(CommNccl, TakesVulkanMemory) {
  ranks("vulkan", 2, [](Rank &Own) {
    EXPECT_NE(Own.C.info().find("\"way\": \"nccl\""), std::string::npos)
        << Own.C.info();
    everyCollectiveIsRight(Own);
    // Shared memory is taken as it is.
    greta::Buffer A = Own.R.allocateShared(GRETA_FD_OPAQUE, 4096),
                  B = Own.R.allocateShared(GRETA_FD_OPAQUE, 4096);
    sumsTakeTheirPlace(Own, A, B);
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

// A graph of sums alone has nothing in which the stream would wait for the sums
// before it.
TEST_F(CommNccl, GraphsOfSumsFollowEachOther) {
  ranks("vulkan", 2, [](Rank &Own) {
    greta::Buffer A = Own.R.allocateShared(GRETA_FD_OPAQUE, 4096);
    greta::Graph G = Own.S.capture([&] {
      for (int I = 0; I < 2; ++I)
        Own.C.allReduce(Own.S, A, A, 1024, "i32");
    });
    Own.S.fill(A, 4096, 1);
    for (int I = 0; I < 3; ++I)
      Own.S.launch(G);
    std::vector<int32_t> Got(1024);
    Own.S.read(A, Got.data(), 4096);
    EXPECT_EQ(Got, std::vector<int32_t>(1024, 64));
    Own.S.fill(A, 4096, 3);
    Own.S.launch(G);
    Own.S.read(A, Got.data(), 4096);
    EXPECT_EQ(Got, std::vector<int32_t>(1024, 12));
  });
  EXPECT_EQ(Calls("ncclAllReduce"), 2 * (1 + 8));
}

// Functions that sum have their temporaries in memory that NCCL takes as it is,
// also behind those that do not.
TEST_F(CommNccl, SumsInTheTemporariesOfFunctions) {
  greta::Package P = packageOf(package(sumManifest()));
  ranks("vulkan", 2, [&](Rank &Own) {
    greta::Function Plain = Own.R.load(P, "twice_scaled"),
                    F = Own.R.load(P, "summed");
    F.setComm(Own.C);
    constexpr int64_t most = 20000;
    greta::Buffer A = Own.R.allocate(most * 4), B = Own.R.allocate(most * 4);
    std::vector<float> X(most, 1), Y(most);
    Own.S.write(A, X.data(), most * 4);
    for (int64_t Count : {1000, 20000, 50}) {
      Plain.launch(Own.S, {{&A, {1, most}}}, {{&B, {1, most}}});
      for (int I = 0; I < 2; ++I)
        F.launch(Own.S, {{&A, {1, Count}}}, {{&B, {1, Count}}});
      Own.S.read(B, Y.data(), most * 4);
      for (int64_t I = 0; I < most; ++I)
        ASSERT_EQ(Y[static_cast<size_t>(I)], I < Count ? 13 : 7) << I;
    }
  });
  // NCCL was called by the test when the communicator was made, and by each
  // launch. Each rank imported the test's four copies and the temporaries,
  // which grew twice.
  EXPECT_EQ(Calls("ncclAllReduce"), 2 * (1 + 6));
  EXPECT_EQ(Calls("cuImportExternalMemory"), 2 * (4 + 2));
}

// Each part of a sum is a call of NCCL's, which waits for its own product.
TEST_F(CommNccl, SumsInParts) {
  for (bool InPlace : {false, true}) {
    greta::Package P = packageOf(package(sumManifest(
        InPlace,
        {{"of", "m"}, {"rows", 100}, {"before", true}, {"behind", true}})));
    int Before = Calls("ncclAllReduce");
    ranks("vulkan", 2, [&](Rank &Own) {
      greta::Function F = Own.R.load(P, "summed");
      F.setComm(Own.C);
      for (int64_t Rows : {60, 1030}) {
        auto Count = static_cast<size_t>(Rows * 20);
        greta::Buffer A = Own.R.allocate(Count * 4),
                      B = Own.R.allocate(Count * 4);
        std::vector<float> X(Count), Y(Count);
        for (size_t I = 0; I < Count; ++I)
          X[I] = static_cast<float>(valueOf(Own.Number, I, 1));
        Own.S.write(A, X.data(), Count * 4);
        for (int I = 0; I < 2; ++I)
          F.launch(Own.S, {{&A, {Rows, 20}}}, {{&B, {Rows, 20}}});
        Own.S.read(B, Y.data(), Count * 4);
        for (size_t I = 0; I < Count; ++I)
          ASSERT_EQ(
              Y[I],
              4 * static_cast<float>(valueOf(0, I, 1) + valueOf(1, I, 1)) + 5)
              << I;
      }
    });
    // Each rank calls it for its self-test, and in two launches with one part
    // and with ten.
    EXPECT_EQ(Calls("ncclAllReduce") - Before, 2 * (1 + 2 * (1 + 10)));
  }
}

// NCCL itself would wait, or sum what does not belong together.
TEST_F(CommNccl, RanksWhoseSumsHaveOtherPartsAreTold) {
  auto Begin = std::chrono::steady_clock::now();
  std::atomic<bool> Told{false};
  ranks("vulkan", 2, [&](Rank &Own) {
    nlohmann::json Parts;
    if (Own.Number == 1)
      Parts = {{"of", "m"}, {"rows", 100}, {"before", true}, {"behind", true}};
    greta::Package P = packageOf(package(sumManifest(false, Parts)));
    greta::Function F = Own.R.load(P, "summed");
    F.setComm(Own.C);
    constexpr int64_t rows = 1030;
    greta::Buffer A = Own.R.allocate(rows * 20 * 4),
                  B = Own.R.allocate(rows * 20 * 4);
    auto Launch = [&] {
      F.launch(Own.S, {{&A, {rows, 20}}}, {{&B, {rows, 20}}});
      Own.S.synchronize();
    };
    std::string Why;
    try {
      Launch();
      // One sum may have met the first of ten.
      while (Own.Number == 0 && !Told)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      Launch();
    } catch (const greta::Error &E) {
      Why = E.what();
    }
    Told = true;
    EXPECT_NE(Why.find("differ in the collective"), std::string::npos) << Why;
  });
  EXPECT_LT(std::chrono::steady_clock::now() - Begin,
            std::chrono::milliseconds(enough / 3));
}

TEST_F(CommNccl, EveryReduction) {
  ranks("vulkan", 2, [](Rank &Own) {
    for (const char *Type : {"f32", "f64", "i8", "u8", "i32", "i64"})
      for (greta_comm_reduction Op = GRETA_COMM_SUM; Op <= GRETA_COMM_AVERAGE;
           ++Op) {
        EXPECT_TRUE(isRight(Own, Reduce, 1001, Type, Op, 0, Op)) << Type << Op;
        EXPECT_TRUE(isRight(Own, Scatter, 1001, Type, Op, 0, Op)) << Type << Op;
      }
  });
  EXPECT_EQ(Calls("ncclAllReduce"), 2 * (1 + 30));
}

TEST_F(CommNccl, IsLeftOutWhereItComputesWrong) {
  Enable(Uuid, WrongSums);
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

// The other waits in NCCL, and would for ever.
TEST_F(CommNccl, IsLeftOutWhereOneRankCannotBegin) {
  Enable(Uuid, NoStart);
  auto Begin = std::chrono::steady_clock::now();
  ranks("vulkan", 2, [](Rank &Own) {
    auto Info = nlohmann::json::parse(Own.C.info());
    EXPECT_EQ(Info["way"], "host");
    EXPECT_NE(
        std::string(Info["left_out"]["nccl"]).find("rank 1: ncclCommInitRank"),
        std::string::npos)
        << Info;
    EXPECT_TRUE(isRight(Own, Reduce, 1001, "f32", false, 0, 1));
  });
  EXPECT_LT(std::chrono::steady_clock::now() - Begin,
            std::chrono::milliseconds(enough / 3));
}

// The process of the next test runs this.
TEST_F(CommNccl, DISABLED_ProcessThatEndsAtStart) {
  Enable(Uuid, EndsAtStart);
  greta_comm_options O{};
  O.path = getenv("GRETA_TEST_COMM_PATH");
  O.rank = 1;
  O.size = 2;
  Rank Own("vulkan", O);
}

TEST_F(CommNccl, AProcessThatEndsInsideIsTold) {
  std::string Path = temporaryFolder() + "/ends-inside";
  pid_t Child = startTest("CommNccl.DISABLED_ProcessThatEndsAtStart",
                          "GRETA_TEST_COMM_PATH=" + Path);
  greta_comm_options O{};
  O.path = Path.c_str();
  O.size = 2;
  O.timeout_milliseconds = enough;
  greta::Runtime R("vulkan");
  auto Begin = std::chrono::steady_clock::now();
  std::string Why = refusal([&] { R.comm(O); }, GRETA_ERROR_PEER_LOST);
  EXPECT_NE(Why.find("rank 1 is gone"), std::string::npos) << Why;
  EXPECT_LT(std::chrono::steady_clock::now() - Begin,
            std::chrono::milliseconds(enough / 3));
  int Status = 0;
  ASSERT_EQ(waitpid(Child, &Status, 0), Child);
  EXPECT_TRUE(WIFSIGNALED(Status));
}

// Rank 0 closes while the other is still in the last collective.
TEST_F(CommNccl, ARankThatClosesWaitsForTheOthers) {
  Enable(Uuid, LateEnds);
  ranks("vulkan", 2, [](Rank &Own) {
    EXPECT_TRUE(isRight(Own, Reduce, 1001, "f32", false, 0, 1));
    EXPECT_TRUE(isRight(Own, Ring, 1001, "f32", false, 0, 1));
  });
  EXPECT_EQ(Calls("ncclCommAbort"), 2);
  EXPECT_EQ(Calls("ncclCommAbort of a rank that others need"), 0);
}

TEST_F(CommNccl, ARankThatDoesNotComeEndsIt) {
  greta_comm_options Usual{};
  Usual.timeout_milliseconds = 2000; // both meet on a busy machine
  Usual.ways = GRETA_COMM_NCCL;
  std::atomic<bool> Late{false};
  ranks(
      "vulkan", 2,
      [&](Rank &Own) {
        greta::Buffer A = Own.R.allocateShared(GRETA_FD_OPAQUE, 64);
        if (Own.Number == 1) {
          while (!Late)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          return;
        }
        EXPECT_NE(refusal(
                      [&] {
                        Own.C.allReduce(Own.S, A, A, 16, "f32");
                        Own.S.synchronize();
                      },
                      GRETA_ERROR_PEER_LOST)
                      .find("has waited 2000 ms"),
                  std::string::npos);
        Late = true;
      },
      Usual);
}

// RCCL and HIP, by both fakes: memory is taken as it is, and collectives are
// operations of a stream.
class CommRccl : public testing::Test {
protected:
  void SetUp() override {
    void *Nccl = dlopen(GRETA_TEST_FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(Nccl, nullptr) << dlerror();
    void *Hip = dlopen(GRETA_TEST_FAKE_HIP, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(Hip, nullptr) << dlerror();
    auto Find = [](void *Library, const char *Name, auto &To) {
      To = reinterpret_cast<std::decay_t<decltype(To)>>(dlsym(Library, Name));
    };
    Find(Nccl, "fake_nccl_enable", Enable);
    Find(Nccl, "fake_nccl_calls", Calls);
    Find(Nccl, "fake_nccl_take_hip", Take);
    Find(Hip, "fake_hip_faults", Faults);
    Before = Faults();
    Take(dlsym(Hip, "fake_hip_call"), dlsym(Hip, "fake_hip_current"));
  }
  void TearDown() override {
    EXPECT_EQ(Faults(), Before);
    Enable(nullptr, Right);
    Take(nullptr, nullptr);
  }
  void (*Enable)(const uint8_t *, int) = nullptr;
  int (*Calls)(const char *) = nullptr;
  void (*Take)(void *, void *) = nullptr;
  int (*Faults)() = nullptr;
  int Before = 0;
  enum { Right, WrongSums }; // FakeNccl.cpp
  uint8_t Uuid[16] = {};
};

TEST_F(CommRccl, TakesHipMemory) {
  Enable(Uuid, Right);
  ranks("hip:", 2, [](Rank &Own) {
    EXPECT_NE(Own.C.info().find("\"way\": \"nccl\""), std::string::npos)
        << Own.C.info();
    everyCollectiveIsRight(Own);
    // Between operations of the stream nobody waits.
    greta::Buffer A = Own.R.allocate(4096), B = Own.R.allocate(4096);
    sumsTakeTheirPlace(Own, A, B);
  });
  EXPECT_EQ(Calls("ncclCommInitRank"), 2);
  EXPECT_EQ(Calls("ncclAllReduce"), 2 * (1 + 4 + 2));
  EXPECT_EQ(Calls("ncclAllGather"), 2 * (1 + 4));
  EXPECT_EQ(Calls("ncclReduceScatter"), 2 * 4);
  EXPECT_EQ(Calls("ncclBroadcast"), 2 * 4);
  EXPECT_EQ(Calls("ncclCommAbort"), 2);
  EXPECT_EQ(Calls("cuImportExternalMemory"), 0);
}

TEST_F(CommRccl, IsNotForSimulators) {
  try {
    greta::Runtime R("sim:gfx942");
  } catch (const greta::Error &E) {
    GTEST_SKIP() << E.what();
  }
  Enable(Uuid, Right);
  ranks("sim:gfx942", 2, [](Rank &Own) {
    auto Info = nlohmann::json::parse(Own.C.info());
    EXPECT_EQ(Info["way"], "host");
    EXPECT_NE(std::string(Info["left_out"]["nccl"])
                  .find("RCCL does not reach sim:gfx942"),
              std::string::npos)
        << Info;
  });
  EXPECT_EQ(Calls("ncclCommInitRank"), 0);
}

TEST_F(CommRccl, IsLeftOutWhereItComputesWrong) {
  Enable(Uuid, WrongSums);
  greta_set_log_callback([](greta_log_level, const char *, void *) {}, nullptr);
  ranks("hip:", 2, [](Rank &Own) {
    EXPECT_NE(Own.C.info().find("\"way\": \"host\""), std::string::npos)
        << Own.C.info();
    EXPECT_TRUE(isRight(Own, Reduce, 1001, "f32", false, 0, 1));
  });
  greta_set_log_callback(nullptr, nullptr);
}

} // namespace
