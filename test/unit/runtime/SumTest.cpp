// SumTest.cpp: functions that sum over ranks between two kernels.
#include "CommTest.h"
#include "Error.h"
#include "Package.h"

#include <chrono>
#include <future>

using namespace greta_test;
using nlohmann::json;

namespace {

std::vector<float> rankValues(uint32_t Rank, size_t Count) {
  std::vector<float> X(Count);
  for (size_t I = 0; I < Count; ++I)
    X[I] = static_cast<float>(valueOf(Rank, I, 1));
  return X;
}

float sumOf(uint32_t Ranks, size_t I) {
  float All = 0;
  for (uint32_t R = 0; R < Ranks; ++R)
    All += static_cast<float>(valueOf(R, I, 1));
  return All;
}

class Sums : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    try {
      greta::Runtime R(GetParam());
    } catch (const greta::Error &E) {
      GTEST_SKIP() << E.what();
    }
  }
};

// A rank's function on its own memory.
struct Use {
  Use(Rank &Own, const greta::Package &P, const char *Name)
      : Own(Own), F(Own.R.load(P, Name)) {
    F.setComm(Own.C);
  }
  void launch(int64_t Count) {
    size_t Bytes = static_cast<size_t>(Count) * 4;
    if (!A.get() || Size < Bytes) {
      A = Own.R.allocate(Bytes);
      B = Own.R.allocate(Bytes);
      Size = Bytes;
    }
    std::vector<float> X = rankValues(Own.Number, static_cast<size_t>(Count));
    Own.S.write(A, X.data(), Bytes);
    F.launch(Own.S, {{&A, {1, Count}}}, {{&B, {1, Count}}});
  }
  std::vector<float> read(int64_t Count) {
    std::vector<float> Y(static_cast<size_t>(Count));
    Own.S.read(B, Y.data(), Y.size() * 4);
    return Y;
  }
  Rank &Own;
  greta::Function F;
  greta::Buffer A, B;
  size_t Size = 0;
};

TEST_P(Sums, StandBetweenKernels) {
  for (bool InPlace : {false, true}) {
    greta::Package P = packageOf(package(sumManifest(InPlace)));
    for (uint32_t Size : {1u, 2u, 4u})
      ranks(GetParam(), Size, [&](Rank &Own) {
        Use Of(Own, P, "summed"), Alone(Own, P, "sum");
        EXPECT_TRUE(Of.F.sums());
        // The stream's temporaries grow in between, and two calls follow each
        // other without a wait.
        for (int64_t Count : {1, 1001, 7, 20003}) {
          Of.launch(Count);
          Alone.launch(Count);
          std::vector<float> Y = Of.read(Count), Z = Alone.read(Count);
          for (size_t I = 0; I < Y.size(); ++I) {
            float Sum = sumOf(Own.Size, I);
            ASSERT_EQ(Y[I], 2 * (2 * Sum + static_cast<float>(Own.Size)) + 1);
            ASSERT_EQ(Z[I], Sum);
          }
        }
      });
  }
}

TEST_P(Sums, AreRefusedWithoutACommunicator) {
  greta::Package P = packageOf(package(sumManifest()));
  ranks(GetParam(), 2, [&](Rank &Own) {
    greta::Function F = Own.R.load(P, "summed"), Other = Own.R.load(P, "scale");
    EXPECT_FALSE(Other.sums());
    Other.setComm(Own.C); // which it does not need
    greta::Buffer A = Own.R.allocate(64), B = Own.R.allocate(64);
    Own.S.fill(A, 64, 0);
    auto Launch = [&] { F.launch(Own.S, {{&A, {1, 16}}}, {{&B, {1, 16}}}); };
    EXPECT_REFUSED("function 'summed' sums over ranks; give it a communicator "
                   "with greta_function_set_comm",
                   Launch());
    F.setComm(Own.C);
    Launch();
    greta::check(greta_function_set_comm(F.get(), nullptr));
    EXPECT_REFUSED("give it a communicator", Launch());
  });
}

// A graph is one before each sum and one behind it.
TEST_P(Sums, AreRecorded) {
  greta::Package P = packageOf(package(sumManifest()));
  ranks(GetParam(), 2, [&](Rank &Own) {
    constexpr int64_t count = 500;
    Use Of(Own, P, "summed"), Alone(Own, P, "sum");
    Of.launch(count);
    std::vector<float> Want = Of.read(count);
    greta::Buffer Copy = Own.R.allocate(count * 4);
    greta::Graph Inner = Own.S.capture([&] {
      Of.F.launch(Own.S, {{&Of.A, {1, count}}}, {{&Of.B, {1, count}}});
      Own.S.copy(Copy, Of.B, count * 4);
    });
    // Two sums that follow each other, in a graph that has the other one.
    greta::Graph G = Own.S.capture([&] {
      Own.S.launch(Inner);
      Alone.F.launch(Own.S, {{&Of.A, {1, count}}}, {{&Of.B, {1, count}}});
      Own.C.allReduce(Own.S, Of.B, Of.B, count, "f32");
    });
    std::vector<float> Zero(count), First(count), Second(count);
    for (int I = 0; I < 3; ++I) {
      for (greta::Buffer *B : {&Copy, &Of.B})
        Own.S.write(*B, Zero.data(), count * 4);
      Own.S.launch(G);
      Own.S.launch(Inner); // on its own
      Own.S.launch(G);
      Own.S.read(Copy, First.data(), count * 4);
      Own.S.read(Of.B, Second.data(), count * 4);
      EXPECT_EQ(First, Want);
      for (size_t J = 0; J < Second.size(); ++J)
        ASSERT_EQ(Second[J], 2 * sumOf(2, J));
    }
  });
}

// Over one rank a graph records it: there is nothing to wait for.
TEST_P(Sums, OfOneRankAreRecorded) {
  greta::Package P = packageOf(package(sumManifest()));
  ranks(GetParam(), 1, [&](Rank &Own) {
    Use Of(Own, P, "summed");
    Of.launch(100);
    std::vector<float> Want = Of.read(100), Zero(100);
    greta::Graph G = Own.S.capture(
        [&] { Of.F.launch(Own.S, {{&Of.A, {1, 100}}}, {{&Of.B, {1, 100}}}); });
    Own.S.write(Of.B, Zero.data(), 400);
    Own.S.launch(G);
    EXPECT_EQ(Of.read(100), Want);
  });
}

// Sequences that repeat are not taken for graphs, and kernels are timed.
TEST_P(Sums, InStreamsThatRepeatAndProfile) {
  greta::Package P = packageOf(package(sumManifest()));
  ranks(GetParam(), 2, [&](Rank &Own) {
    Use Of(Own, P, "summed");
    greta::check(greta_stream_set_auto_graph(Own.S.get(), 1));
    for (int I = 0; I < 4; ++I) {
      Of.launch(50);
      EXPECT_EQ(Of.read(50)[3], 2 * (2 * sumOf(2, 3) + 2) + 1);
    }
    EXPECT_EQ(greta_stream_replayed(Own.S.get()), 0u);
    greta::check(greta_stream_set_auto_graph(Own.S.get(), 0));
    greta::check(greta_stream_set_profiling(Own.S.get(), 1));
    Of.launch(50);
    EXPECT_EQ(Of.read(50)[3], 2 * (2 * sumOf(2, 3) + 2) + 1);
    size_t Count = 0;
    greta::check(greta_stream_times(Own.S.get(), nullptr, &Count));
    EXPECT_EQ(Count, 2u);
  });
}

// Calls that were held back are queued by the call that sums, which keeps its
// own arguments.
TEST_P(Sums, BehindCallsThatAreHeldBack) {
  greta::Package P = packageOf(package(sumManifest()));
  ranks(GetParam(), 2, [&](Rank &Own) {
    Use Of(Own, P, "summed");
    greta::Function Scale = Own.R.load(P, "twice_scaled");
    Of.launch(50);
    constexpr int64_t more = 3000;
    greta::Buffer From = Own.R.allocate(more * 4),
                  To = Own.R.allocate(more * 4), Results[4];
    for (greta::Buffer &One : Results)
      One = Own.R.allocate(50 * 4);
    Own.S.fill(From, more * 4, 0);
    greta::check(greta_stream_set_auto_graph(Own.S.get(), 1));
    for (greta::Buffer &One : Results) {
      Scale.launch(Own.S, {{&From, {1, more}}}, {{&To, {1, more}}});
      Of.F.launch(Own.S, {{&Of.A, {1, 50}}}, {{&One, {1, 50}}});
      Own.S.synchronize();
    }
    for (greta::Buffer &One : Results) {
      std::vector<float> Y(50);
      Own.S.read(One, Y.data(), Y.size() * 4);
      EXPECT_EQ(Y[3], 2 * (2 * sumOf(2, 3) + 2) + 1);
    }
  });
}

TEST_P(Sums, ALostRankIsAnError) {
  greta::Package P = packageOf(package(sumManifest()));
  // A rank that ends it also ends what the others are still reading.
  std::promise<void> HasRead;
  ranks(GetParam(), 2, [&](Rank &Own) {
    Use Of(Own, P, "summed");
    Of.launch(50);
    Of.read(50);
    if (Own.Number == 1) {
      HasRead.get_future().wait_for(std::chrono::milliseconds(enough));
      return Own.C.abort();
    }
    HasRead.set_value();
    EXPECT_NE(refusal(
                  [&] {
                    for (;;) {
                      Of.launch(50);
                      Of.read(50);
                    }
                  },
                  GRETA_ERROR_PEER_LOST)
                  .find("rank 1 ended it"),
              std::string::npos);
  });
}

json partsOf(int64_t Rows, bool Before = true, bool Behind = true) {
  return {{"of", "m"}, {"rows", Rows}, {"before", Before}, {"behind", Behind}};
}

// Checks the result of `summed` for rows of five numbers on one of several
// ranks.
void checkRows(Rank &Own, greta::Function &F, int64_t Rows) {
  auto Count = static_cast<size_t>(Rows * 5);
  greta::Buffer A = Own.R.allocate(Count * 4), B = Own.R.allocate(Count * 4);
  std::vector<float> X = rankValues(Own.Number, Count), Y(Count);
  Own.S.write(A, X.data(), Count * 4);
  Own.S.write(B, Y.data(), Count * 4);
  F.launch(Own.S, {{&A, {Rows, 5}}}, {{&B, {Rows, 5}}});
  Own.S.read(B, Y.data(), Count * 4);
  for (size_t I = 0; I < Count; ++I)
    ASSERT_EQ(Y[I], 2 * (2 * sumOf(Own.Size, I) + Own.Size) + 1)
        << "element " << I << " of " << Rows << " rows";
}

TEST_P(Sums, AreMadeInParts) {
  const struct {
    bool InPlace, Before, Behind;
  } Cases[] = {{false, true, true},
               {true, true, true},
               {true, false, false},
               {false, true, false},
               {true, false, true}};
  for (const auto &C : Cases) {
    greta::Package P = packageOf(
        package(sumManifest(C.InPlace, partsOf(3, C.Before, C.Behind))));
    for (uint32_t Size : {1u, 3u})
      ranks(GetParam(), Size, [&](Rank &Own) {
        greta::Function F = Own.R.load(P, "summed");
        F.setComm(Own.C);
        // Fewer than a part, a last part that is short or long, and more parts
        // than there may be.
        for (int64_t Rows : {1, 4, 5, 100})
          checkRows(Own, F, Rows);
      });
  }
}

// Two and a half parts are two and one of the half; a quarter joins the last.
TEST_P(Sums, HaveALaunchForEachPart) {
  greta::Package P = packageOf(package(sumManifest(true, partsOf(4))));
  ranks(GetParam(), 2, [&](Rank &Own) {
    greta::Function F = Own.R.load(P, "summed");
    F.setComm(Own.C);
    greta::check(greta_stream_set_profiling(Own.S.get(), 1));
    for (auto [Rows, Parts] : {std::pair(3, 1), std::pair(10, 3),
                               std::pair(9, 2), std::pair(129, 16)}) {
      checkRows(Own, F, Rows);
      size_t Count = 0;
      greta::check(greta_stream_times(Own.S.get(), nullptr, &Count));
      EXPECT_EQ(Count, 2u * Parts) << Rows;
      std::vector<greta_kernel_time> Times(Count);
      greta::check(greta_stream_times(Own.S.get(), Times.data(), &Count));
    }
  });
}

// A rank computes all its parts though the other one has not come to the first
// sum; alone and recorded.
TEST_P(Sums, OfPartsDoNotHoldUpTheNext) {
  // Its first half alone: the sum of the result.
  json M = sumManifest(true, partsOf(3, true, false));
  M["functions"][4]["name"] = "parts";
  for (json &V : M["functions"][4]["variants"]) {
    V["kernels"].erase(1);
    V["kernels"][0]["args"][1] = {{"kind", "result"}, {"index", 0}};
    V["temps"] = json::array();
    for (const char *Place : {"from", "to"})
      V["sums"][0][Place] = {{"kind", "result"}, {"index", 0}};
  }
  greta::Package P = packageOf(package(M));
  for (bool IsRecorded : {false, true}) {
    std::atomic<bool> IsQueued{false};
    ranks(GetParam(), 2, [&](Rank &Own) {
      greta::Function F = Own.R.load(P, "parts");
      F.setComm(Own.C);
      constexpr int64_t rows = 20;
      constexpr size_t count = rows * 5;
      greta::Buffer A = Own.R.allocate(count * 4),
                    B = Own.R.allocate(count * 4);
      std::vector<float> X = rankValues(Own.Number, count), Y(count);
      Own.S.write(A, X.data(), count * 4);
      auto Launch = [&] {
        F.launch(Own.S, {{&A, {rows, 5}}}, {{&B, {rows, 5}}});
      };
      greta::Graph G;
      if (IsRecorded)
        G = Own.S.capture(Launch);
      while (Own.Number == 1 && !IsQueued)
        std::this_thread::yield();
      if (IsRecorded)
        Own.S.launch(G);
      else
        Launch();
      IsQueued = true;
      Own.S.read(B, Y.data(), count * 4);
      for (size_t I = 0; I < count; ++I)
        ASSERT_EQ(Y[I], 2 * sumOf(2, I) + 2);
    });
  }
}

// Parts of a graph, several launches of it, and a graph in a graph.
TEST_P(Sums, OfPartsAreRecorded) {
  greta::Package P = packageOf(package(sumManifest(false, partsOf(3))));
  ranks(GetParam(), 2, [&](Rank &Own) {
    greta::Function F = Own.R.load(P, "summed");
    F.setComm(Own.C);
    constexpr int64_t rows = 23;
    constexpr size_t count = rows * 5;
    greta::Buffer A = Own.R.allocate(count * 4), B = Own.R.allocate(count * 4),
                  Copy = Own.R.allocate(count * 4);
    std::vector<float> X = rankValues(Own.Number, count), Y(count), Zero(count);
    Own.S.write(A, X.data(), count * 4);
    auto Launch = [&] {
      F.launch(Own.S, {{&A, {rows, 5}}}, {{&B, {rows, 5}}});
    };
    greta::Graph Inner = Own.S.capture(Launch);
    greta::Graph G = Own.S.capture([&] {
      Own.S.launch(Inner);
      Own.S.copy(Copy, B, count * 4);
      Launch();
      Own.C.allReduce(Own.S, B, B, count, "f32");
    });
    for (int I = 0; I < 3; ++I) {
      for (greta::Buffer *One : {&Copy, &B})
        Own.S.write(*One, Zero.data(), count * 4);
      Own.S.launch(G);
      Own.S.read(Copy, Y.data(), count * 4);
      for (size_t J = 0; J < count; ++J)
        ASSERT_EQ(Y[J], 4 * sumOf(2, J) + 5);
      Own.S.read(B, Y.data(), count * 4);
      for (size_t J = 0; J < count; ++J)
        ASSERT_EQ(Y[J], 2 * (4 * sumOf(2, J) + 5));
    }
  });
}

TEST_P(Sums, OfPartsThatLoseARankAreErrors) {
  greta::Package P = packageOf(package(sumManifest(true, partsOf(3))));
  std::promise<void> HasRead; // as above
  ranks(GetParam(), 2, [&](Rank &Own) {
    greta::Function F = Own.R.load(P, "summed");
    F.setComm(Own.C);
    checkRows(Own, F, 20);
    if (Own.Number == 1) {
      HasRead.get_future().wait_for(std::chrono::milliseconds(enough));
      return Own.C.abort();
    }
    HasRead.set_value();
    EXPECT_NE(refusal(
                  [&] {
                    for (;;)
                      checkRows(Own, F, 20);
                  },
                  GRETA_ERROR_PEER_LOST)
                  .find("rank 1 ended it"),
              std::string::npos);
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, Sums, testing::Values("vulkan", "sim:gfx942"),
                         deviceName);

TEST(SumManifest, IsChecked) {
  EXPECT_EQ(complaintOf(package(sumManifest())), "");
  const struct {
    const char *Where, *Value, *Says;
  } Cases[] = {
      {"/sums", "7", "sums: not a list"},
      {"/sums", "[]", "if and only if"},
      {"/requires/communicator", "false", "if and only if"},
      {"/requires/communicator", "1", "neither true nor false"},
      {"/sums/0/after", "3", "not an integer from 0 to 2"},
      {"/sums/0/after", "-1", "not an integer from 0 to 2"},
      {"/sums/0/from", "7", "from: not an object"},
      {"/sums/0/from/index", "2", "there are 2 of kind 'temp'"},
      {"/sums/0/from", R"({"kind": "i32", "value": 1})", "not a tensor"},
      {"/sums/0/from", R"({"kind": "i64", "value": "m"})", "not a tensor"},
      {"/sums/0/to", R"({"kind": "arg", "index": 0})",
       "an argument is not written"},
      {"/temps/0/dtype", "\"f16\"", "differ in their dtypes"},
      {"/temps/0/dtype", "\"i32\"", "sums are of f32, f16 or bf16, not of i32"},
      {"/temps/0/zeroed", "true", "the temporary is to hold zeros"},
  };
  for (const auto &C : Cases) {
    json M = sumManifest();
    json &V = M["functions"][4]["variants"][0];
    json Damaged = V;
    Damaged[json::json_pointer(C.Where)] = json::parse(C.Value);
    V = Damaged;
    std::string Got = complaintOf(package(M));
    EXPECT_NE(Got.find(C.Says), std::string::npos)
        << C.Where << " = " << C.Value << ": " << Got;
  }
  // Sums are in their order, and the host has none.
  json M = sumManifest();
  json &V = M["functions"][4]["variants"][0];
  V["sums"].push_back(V["sums"][0]);
  V["sums"][1]["after"] = 0;
  EXPECT_NE(complaintOf(package(M)).find("not an integer from 1 to 2"),
            std::string::npos);
  json Moved = sumManifest();
  Moved["functions"][0]["variants"][2]["sums"] = {
      {{"after", 0},
       {"from", {{"kind", "arg"}, {"index", 0}}},
       {"to", {{"kind", "result"}, {"index", 0}}}}};
  EXPECT_NE(complaintOf(package(Moved)).find("if and only if"),
            std::string::npos);
}

TEST(SumManifest, HasPartsThatAreChecked) {
  EXPECT_EQ(complaintOf(package(sumManifest(true, partsOf(3)))), "");
  const struct {
    const char *Where, *Value, *Says;
  } Cases[] = {
      {"/sums/0/parts", "7", "not an object"},
      {"/sums/0/parts/rows", "0", "not an integer from 1 to 16777216"},
      {"/sums/0/parts/of", "7", "kernels are launched in parts of a symbol"},
      {"/sums/0/parts/of", "\"k\"", "'k'"},
      {"/sums/0/parts/before", "1", "neither true nor false"},
      {"/sums/0/after", "0", "there is no kernel beside the sum"},
      {"/sums/0/after", "2", "there is no kernel beside the sum"},
      {"/kernels/0/by_rows", "[]", "kernel 0 cannot be launched in parts"},
      {"/kernels/1/by_rows", "[2]", "argument 2 is no tensor"},
      {"/kernels/1/by_rows", "[3]", "argument 3 is no tensor"},
  };
  for (const auto &C : Cases) {
    json M = sumManifest(true, partsOf(3));
    json &V = M["functions"][4]["variants"][0];
    json Damaged = V;
    Damaged[json::json_pointer(C.Where)] = json::parse(C.Value);
    V = Damaged;
    std::string Got = complaintOf(package(M));
    EXPECT_NE(Got.find(C.Says), std::string::npos)
        << C.Where << " = " << C.Value << ": " << Got;
  }
  // A kernel belongs to one sum, in front of it or behind it.
  for (size_t After : {1, 2}) {
    json M = sumManifest(true, partsOf(3));
    json &V = M["functions"][4]["variants"][0];
    V["sums"].push_back(V["sums"][0]);
    V["sums"][1]["after"] = After;
    V["sums"][1]["parts"]["behind"] = false;
    EXPECT_NE(complaintOf(package(M))
                  .find(After == 1 ? "another sum stands behind the same kernel"
                                   : "it belongs to another"),
              std::string::npos)
        << complaintOf(package(M));
  }
}

// Why a rank's launch of `summed` on two rows of eight is refused.
std::string whyNoLaunch(Rank &Own, const greta::Package &P) {
  greta::Function F = Own.R.load(P, "summed");
  F.setComm(Own.C);
  greta::Buffer A = Own.R.allocate(64), B = Own.R.allocate(64);
  return refusal([&] { F.launch(Own.S, {{&A, {2, 8}}}, {{&B, {2, 8}}}); },
                 GRETA_ERROR_BAD_PACKAGE);
}

// A package that a launch finds out: parts of rows that tensors do not have.
TEST_P(Sums, OfRowsThatAreNoneAreRefused) {
  json M = sumManifest(true, partsOf(3, false, false));
  for (json &V : M["functions"][4]["variants"])
    V["sums"][0]["parts"]["of"] = {"+", "m", 1};
  greta::Package P = packageOf(package(M));
  ranks(GetParam(), 2, [&](Rank &Own) {
    EXPECT_NE(whyNoLaunch(Own, P).find("sums 64 bytes in 3 rows"),
              std::string::npos);
  });
}

// A package that a launch finds out: tensors of two sizes.
TEST_P(Sums, OfTwoSizesAreRefused) {
  json M = sumManifest();
  for (json &V : M["functions"][4]["variants"])
    V["temps"][1]["shape"] = {"n"};
  greta::Package P = packageOf(package(M));
  ranks(GetParam(), 2, [&](Rank &Own) {
    EXPECT_NE(whyNoLaunch(Own, P).find("sums tensors of 64 bytes into 32"),
              std::string::npos);
    // Arguments that overlap the result, in part or exactly.
    greta::Function Sum = Own.R.load(P, "sum");
    Sum.setComm(Own.C);
    greta::Buffer All = Own.R.allocate(64);
    for (size_t Offset : {0, 16})
      EXPECT_REFUSED(
          "'y' overlaps argument 0 'x'; pass other memory",
          Sum.launch(Own.S, {{&All, {1, 8}}}, {{&All, {1, 8}, Offset}}));
  });
}

} // namespace
