// LaunchTest.cpp: what a launch costs the host: no allocation once a stream has
// seen one like it; and where the temporaries of functions lie.
#include "EveryDevice.h"
#include "TestPackage.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <new>

using namespace greta_test;

// Sanitizers have an operator new of their own, which stays in use there.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GRETA_SANITIZED
#endif
#endif

#ifndef GRETA_SANITIZED
// GCC 16 inlines these operators and then takes free() for the wrong partner of
// new, in every file of this unity source.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

// Counts this thread's alone: drivers have their own.
static thread_local size_t Allocations = 0;

void *operator new(size_t Bytes) {
  ++Allocations;
  if (void *P = malloc(Bytes ? Bytes : 1))
    return P;
  throw std::bad_alloc();
}
void operator delete(void *P) noexcept { free(P); }
void operator delete(void *P, size_t) noexcept { free(P); }
#endif

namespace {

class Launches : public EveryDevice {};

INSTANTIATE_TEST_SUITE_P(Devices, Launches, everyDevice(), deviceName);

#ifndef GRETA_SANITIZED
// The counter of this file is the one in use.
TEST(Allocations, AreCounted) {
  size_t Before = Allocations;
  auto P = std::make_unique<int>(1);
  EXPECT_EQ(Allocations, Before + *P);
}

TEST_P(Launches, AllocateNothing) {
  if (std::string Name = GetParam(); Name != "host" && Name != "vulkan")
    GTEST_SKIP() << "no such form: this driver allocates in a launch";
  if (getenv("GRETA_VULKAN_VALIDATE"))
    GTEST_SKIP() << "no such form: the validation layer allocates";
  greta::Package P = packageOf(package());
  greta::Stream S = R->stream();
  bool IsHost = std::string(GetParam()) == "host";
  greta::Function F = R->load(P, "scale"),
                  G = R->load(P, IsHost ? "scale" : "twice_scaled");
  greta::Buffer A = R->allocate(4096), B = R->allocate(4096);
  S.fill(A, 4096, 0);
  int64_t Shape[] = {1, 64};
  auto Tensor = [&](const greta::Buffer &Of, size_t Offset) {
    return greta_tensor{Of.get(), Offset, Shape, 2, nullptr};
  };
  auto Turn = [&] {
    for (size_t I = 0; I < 300; ++I) {
      greta_tensor In = Tensor(I % 2 ? A : B, I % 8 * 256),
                   Out = Tensor(I % 2 ? B : A, I % 8 * 256);
      const greta::Function &Which = I % 3 ? F : G;
      greta::check(
          greta_function_launch(Which.get(), S.get(), &In, 1, &Out, 1));
    }
    S.synchronize();
  };
  // Lists grow until they are as long as they have to be, which is longer the
  // further a busy machine lets the device fall behind. Then turns in a row
  // allocate nothing.
  constexpr int Wanted = 4;
  int Quiet = 0;
  for (int I = 0; I < 40 && Quiet < Wanted; ++I) {
    size_t Before = Allocations;
    Turn();
    Quiet = I >= 4 && Allocations == Before ? Quiet + 1 : 0;
  }
  EXPECT_EQ(Quiet, Wanted);
}
#endif

// scale four times, y = 16 x + 15, with a temporary between each two.
Bytes fourTimes() {
  nlohmann::json M = manifest(), F;
  for (const nlohmann::json &G : M["functions"])
    if (G["name"] == "twice_scaled")
      F = G;
  for (nlohmann::json &V : F["variants"]) {
    nlohmann::json First = V["kernels"][0], Last = V["kernels"][1];
    nlohmann::json Middle = First, Next = First;
    Middle["args"][0] = First["args"][1];
    Middle["args"][1]["index"] = 1;
    Middle["args"][1]["kind"] = "temp";
    Next["args"][0] = Middle["args"][1];
    Next["args"][1] = {{"kind", "temp"}, {"index", 2}};
    Last["args"][0] = Next["args"][1];
    V["kernels"] = {First, Middle, Next, Last};
    V["temps"] = {V["temps"][0], V["temps"][0], V["temps"][0]};
  }
  F["name"] = "four_times";
  M["functions"].push_back(F);
  return package(M);
}

// The first and the third temporary are never needed at the same time, and the
// functions of a stream share their bytes.
TEST_P(Launches, ShareTemporaries) {
  if (std::string(GetParam()) == "host")
    GTEST_SKIP() << "no such form: the host's variants have one kernel";
  greta::Package P = packageOf(fourTimes());
  greta::Stream S = R->stream();
  greta::Function Four = R->load(P, "four_times"),
                  Two = R->load(P, "twice_scaled");
  constexpr int64_t count = 1024;
  greta::Buffer A = R->allocate(count * 4), B = R->allocate(count * 4);
  std::vector<float> X(count), Y(count);
  for (size_t I = 0; I < X.size(); ++I)
    X[I] = static_cast<float>(I);
  S.write(A, X.data(), count * 4);
  uint64_t Before = R->memory().in_use;
  for (int Times : {4, 2, 4}) {
    (Times == 4 ? Four : Two).launch(S, {{&A, {1, count}}}, {{&B, {1, count}}});
    S.read(B, Y.data(), count * 4);
    float Factor = Times == 4 ? 16 : 4;
    for (size_t I = 0; I < X.size(); ++I)
      ASSERT_EQ(Y[I], Factor * X[I] + Factor - 1);
    EXPECT_EQ(R->memory().in_use - Before, 2 * count * 4);
  }
  // A graph has its own.
  greta::Graph G = S.capture(
      [&] { Four.launch(S, {{&A, {1, count}}}, {{&B, {1, count}}}); });
  EXPECT_EQ(R->memory().in_use - Before, 4 * count * 4);
  S.launch(G);
  S.read(B, Y.data(), count * 4);
  EXPECT_EQ(Y[7], 16.0f * 7 + 15);
}

// scale once, y = 2 x + 1, or twice where m is 2 to 5. No device runs what is
// there for 4 and 5 first.
Bytes scaledByRange(const std::string &Entry = "") {
  nlohmann::json M = manifest(), F, Twice;
  for (const nlohmann::json &G : M["functions"]) {
    if (G["name"] == "scale")
      F = G;
    if (G["name"] == "twice_scaled")
      Twice = G;
  }
  F["name"] = "by_range";
  for (nlohmann::json &V : F["variants"]) {
    if (V["backend"] == "host")
      continue;
    nlohmann::json Range, Never = {{"when", {{"m", 4, 5}}},
                                   {"requires", V["requires"]},
                                   {"kernels", V["kernels"]}};
    Never["requires"]["telepathy"] = true;
    for (const nlohmann::json &T : Twice["variants"])
      if (T["id"] == V["id"])
        Range = {{"when", {{"m", 2, 3}, {{"+", "m", "n"}, 0, 1000}}},
                 {"requires", T["requires"]},
                 {"temps", T["temps"]},
                 {"kernels", T["kernels"]}};
    if (!Entry.empty())
      Range["kernels"][0]["entry"] = Entry;
    nlohmann::json Wider = Range;
    Wider["when"] = {{"m", 3, 5}};
    V["ranges"] = {Never, Range, Wider};
  }
  M["functions"].push_back(F);
  return package(M);
}

TEST_P(Launches, TakeTheRangeOfTheirSymbols) {
  if (std::string(GetParam()) == "host")
    GTEST_SKIP() << "no such form: the host's variants have no ranges";
  greta::Package P = packageOf(scaledByRange());
  greta::Stream S = R->stream();
  greta::Function Eager = R->load(P, "by_range"),
                  Lazy = R->load(P, "by_range", "", GRETA_LOAD_LAZILY);
  constexpr int64_t most = 8 * 2000;
  greta::Buffer A = R->allocate(most * 4), B = R->allocate(most * 4);
  std::vector<float> X(most, 3), Y(most);
  S.write(A, X.data(), most * 4);
  const greta::Function *F = &Eager;
  auto Run = [&](int64_t Rows, int64_t Columns, bool IsGraph) {
    auto Launch = [&] {
      F->launch(S, {{&A, {Rows, Columns}}}, {{&B, {Rows, Columns}}});
    };
    std::vector<float> Nothing(most, -1);
    S.write(B, Nothing.data(), most * 4);
    if (IsGraph)
      S.launch(S.capture(Launch));
    else
      Launch();
    S.read(B, Y.data(), most * 4);
    return Y[static_cast<size_t>(Rows * Columns) - 1];
  };
  for (const greta::Function *Each : {&Eager, &Lazy})
    for (bool IsGraph : {false, true}) {
      F = Each;
      EXPECT_EQ(Run(1, 64, IsGraph), 7);
      EXPECT_EQ(Run(2, 64, IsGraph), 15);
      EXPECT_EQ(Run(3, 64, IsGraph), 15);
      EXPECT_EQ(Run(4, 64, IsGraph), 15);
      EXPECT_EQ(Run(5, 64, IsGraph), 15);
      EXPECT_EQ(Run(6, 64, IsGraph), 7);
      // Both conditions of the one, and the one of the other.
      EXPECT_EQ(Run(2, 999, IsGraph), 7);
      EXPECT_EQ(Run(3, 999, IsGraph), 15);
    }
}

// A range's kernel has no code: what is loaded lazily runs elsewhere, and says
// so each time that a launch meets the range.
TEST_P(Launches, LoadKernelsOfRangesLazily) {
  if (std::string(GetParam()) == "host")
    GTEST_SKIP() << "no such form: the host's variants have no ranges";
  greta::Package P = packageOf(scaledByRange(/*Entry=*/"absent"));
  EXPECT_THROW(R->load(P, "by_range"), greta::Error);
  greta::Function F = R->load(P, "by_range", "", GRETA_LOAD_LAZILY);
  greta::Stream S = R->stream();
  greta::Buffer A = R->allocate(256), B = R->allocate(256);
  S.fill(A, 256, 0);
  auto Launch = [&](int64_t Rows) {
    F.launch(S, {{&A, {Rows, 8}}}, {{&B, {Rows, 8}}});
    S.synchronize();
  };
  Launch(1);
  EXPECT_THROW(Launch(3), greta::Error);
  EXPECT_THROW(Launch(3), greta::Error);
  Launch(6);
}

// Reads what it finds in a temporary that holds zeros, leaves other numbers
// there, and then writes to nowhere, which the simulator reports and survives.
Bytes failing() {
  nlohmann::json M = manifest(), F;
  for (const nlohmann::json &G : M["functions"])
    if (G["name"] == "twice_scaled")
      F = G;
  for (nlohmann::json &V : F["variants"]) {
    V["temps"][0]["zeroed"] = true;
    nlohmann::json Fill = V["kernels"][0], Read = V["kernels"][1], Fail = Fill;
    for (nlohmann::json &A : Fail["args"])
      if (A["kind"] == "temp")
        A = {{"kind", "i64"}, {"value", 0}};
    V["kernels"] = {Read, Fill, Fail};
  }
  F["name"] = "failing";
  M["functions"].push_back(F);
  return package(M);
}

TEST(FailedLaunches, LeaveZeros) {
  greta::Package P = packageOf(failing());
  greta::Runtime R("sim:gfx942");
  greta::Stream S = R.stream();
  greta::Function F = R.load(P, "failing");
  constexpr int64_t count = 256;
  greta::Buffer A = R.allocate(count * 4), B = R.allocate(count * 4);
  std::vector<float> X(count, 5.0f), Y(count);
  S.write(A, X.data(), count * 4);
  auto Launch = [&] { F.launch(S, {{&A, {1, count}}}, {{&B, {1, count}}}); };
  auto ExpectZerosIn = [&](auto &&Run, const char *What) {
    for (int Time = 0; Time < 3; ++Time) {
      EXPECT_THROW(Run(), greta::Error) << What;
      std::fill(Y.begin(), Y.end(), 0.0f);
      S.read(B, Y.data(), count * 4);
      for (float Found : Y)
        ASSERT_EQ(Found, 1.0f) << What << ", time " << Time;
    }
  };
  ExpectZerosIn(Launch, "launch");
  greta::Graph G = S.capture(Launch);
  ExpectZerosIn([&] { S.launch(G); }, "graph");
  greta::Graph Outer = S.capture([&] { S.launch(G); });
  ExpectZerosIn([&] { S.launch(Outer); }, "graph in a graph");
  ExpectZerosIn([&] { S.launch(G); }, "the inner graph alone");
}

} // namespace
