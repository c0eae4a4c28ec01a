// DeviceTest.cpp: the C API and the C++ header on the host and on every Vulkan
// device there is: launches, shapes, streams, events, graphs, errors. The
// validation layer is on where it is installed, so every test proves its
// silence.
#include "OnDevice.h"

#include <filesystem>

using namespace greta_test;

namespace {

const uint32_t Word = 7;

INSTANTIATE_TEST_SUITE_P(Devices, OnDevice,
                         testing::Values("host", "vulkan", "sim:gfx942", "hip"),
                         [](const auto &Info) { return nameOf(Info.param); });

TEST_P(OnDevice, Launches) {
  greta::Stream S = Runtime->stream();
  for (auto [M, N] : {std::pair<int64_t, int64_t>{1, 1},
                      {3, 100},
                      {0, 5},
                      {7, 1000},
                      {1, 64}})
    scale(S, M, N);
}

TEST_P(OnDevice, DescribesTheFunction) {
  greta::Function F = Runtime->load(*Package, "scale");
  EXPECT_EQ(F.variant(), Spec() == "host"     ? "host"
                         : Spec() == "vulkan" ? "vulkan-portable"
                                              : "gfx942");
  auto Args = F.arguments();
  ASSERT_EQ(Args.size(), 1u);
  EXPECT_EQ(Args[0].name, "x");
  EXPECT_EQ(Args[0].dtype, "f32");
  EXPECT_EQ(Args[0].access, "read");
  EXPECT_EQ(Args[0].shape, (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(F.results()[0].name, "y");
}

// More than the staging ring, at odd offsets, several times over.
TEST_P(OnDevice, MovesLargeBuffers) {
  greta::Stream S = Runtime->stream();
  size_t Size = (50u << 20) + 12;
  std::vector<uint32_t> In(Size / 4), Out(Size / 4);
  for (size_t I = 0; I < In.size(); ++I)
    In[I] = static_cast<uint32_t>(I * 2654435761u);
  greta::Buffer A = Runtime->allocate(Size), B = Runtime->allocate(Size);
  S.write(A, In.data(), Size);
  S.copy(B, A, Size);
  S.read(B, Out.data(), Size);
  EXPECT_EQ(In, Out);
  for (size_t Offset : {4u, 1000u, 4096u, 65540u}) {
    S.write(A, In.data(), 100, Offset);
    S.read(A, Out.data(), 100, Offset);
    EXPECT_TRUE(std::equal(In.begin(), In.begin() + 25, Out.begin()));
  }
  S.fill(B, Size, 0xabcd1234);
  S.read(B, Out.data(), Size);
  EXPECT_TRUE(std::all_of(Out.begin(), Out.end(),
                          [](uint32_t V) { return V == 0xabcd1234; }));
}

// Thousands of small writes and launches, without a wait between them.
TEST_P(OnDevice, KeepsOrderInAStream) {
  greta::Stream S = Runtime->stream();
  greta::Function F = Runtime->load(*Package, "scale");
  greta::Buffer A = Runtime->allocate(256), B = Runtime->allocate(256);
  std::vector<float> V(64, 0.0f);
  S.write(A, V.data(), 256);
  float Want = 0;
  for (int I = 0; I < 20; ++I) {
    F.launch(S, {{&A, {1, 64}}}, {{&B, {1, 64}}});
    F.launch(S, {{&B, {1, 64}}}, {{&A, {1, 64}}});
    Want = 2 * (2 * Want + 1) + 1;
    if (I % 5 == 4) {
      Want = static_cast<float>(I);
      std::fill(V.begin(), V.end(), Want);
      S.write(A, V.data(), 256);
    }
  }
  for (int I = 0; I < 3000; ++I)
    S.write(B, &I, 4, static_cast<size_t>(I % 64) * 4);
  S.read(A, V.data(), 256);
  EXPECT_EQ(V, std::vector<float>(64, Want));
  std::vector<int> W(64);
  S.read(B, W.data(), 256);
  for (int I = 0; I < 64; ++I)
    EXPECT_EQ(W[static_cast<size_t>(I)],
              2944 + I - (2944 + I >= 3000 ? 64 : 0));
}

TEST_P(OnDevice, EventsOrderStreamsAndMeasure) {
  greta::Stream S = Runtime->stream(), T = Runtime->stream();
  greta::Function F = Runtime->load(*Package, "scale");
  size_t N = 1 << 18;
  greta::Buffer A = Runtime->allocate(N * 4), B = Runtime->allocate(N * 4),
                C = Runtime->allocate(N * 4);
  std::vector<float> X = ramp(N), Y(N);
  greta::Event Start = Runtime->event(), End = Runtime->event();
  message([&] { Start.synchronize(); }, GRETA_ERROR_INVALID_ARGUMENT);
  S.write(A, X.data(), N * 4);
  S.record(Start);
  F.launch(S, {{&A, {1, int64_t(N)}}}, {{&B, {1, int64_t(N)}}});
  S.record(End);
  T.wait(End);
  F.launch(T, {{&B, {1, int64_t(N)}}}, {{&C, {1, int64_t(N)}}});
  T.read(C, Y.data(), N * 4);
  for (size_t I = 0; I < N; I += 777)
    ASSERT_EQ(Y[I], 2 * (2 * X[I] + 1) + 1);
  double Time = End.since(Start);
  EXPECT_GT(Time, 0.0);
  EXPECT_LT(Time, 60e6);
}

TEST_P(OnDevice, GraphsReplay) {
  greta::Stream S = Runtime->stream();
  greta::Graph G;
  greta::Buffer A = Runtime->allocate(256), B = Runtime->allocate(256);
  {
    // The function may go before the graph does.
    greta::Function F = Runtime->load(*Package, "scale");
    G = S.capture([&] {
      F.launch(S, {{&A, {1, 64}}}, {{&B, {1, 64}}});
      S.copy(A, B, 256);
    });
  }
  std::vector<float> V(64, 1.0f);
  S.write(A, V.data(), 256);
  for (int I = 0; I < 3; ++I)
    S.launch(G);
  S.read(A, V.data(), 256);
  EXPECT_EQ(V, std::vector<float>(64, 15.0f)); // 1 -> 3 -> 7 -> 15
  message([&] { S.capture([&] { S.write(A, V.data(), 4); }); },
          GRETA_ERROR_INVALID_ARGUMENT);
  message([&] { S.capture([&] { S.synchronize(); }); },
          GRETA_ERROR_INVALID_ARGUMENT);
  scale(S, 3, 5); // the stream works as before
}

TEST_P(OnDevice, TimesKernels) {
  greta::Stream S = Runtime->stream();
  greta::Function F = Runtime->load(*Package, "scale");
  greta::Buffer A = Runtime->allocate(1 << 16), B = Runtime->allocate(1 << 16);
  S.fill(A, 1 << 16, 0);
  S.profile(true);
  for (int I = 0; I < 3; ++I)
    F.launch(S, {{&A, {1, 1 << 14}}}, {{&B, {1, 1 << 14}}});
  auto Times = S.times();
  ASSERT_EQ(Times.size(), 3u);
  for (auto &[Kernel, Microseconds] : Times) {
    EXPECT_EQ(Kernel, "scale");
    EXPECT_GT(Microseconds, 0.0);
  }
  EXPECT_TRUE(S.times().empty());
  // The names are the function's, not the call's; where it is gone they last
  // until the next call.
  greta_kernel_time First, Second;
  size_t Count = 1;
  F.launch(S, {{&A, {1, 1 << 14}}}, {{&B, {1, 1 << 14}}});
  greta::check(greta_stream_times(S.get(), &First, &Count));
  Count = 1;
  {
    greta::Function Gone = Runtime->load(*Package, "scale");
    Gone.launch(S, {{&A, {1, 1 << 14}}}, {{&B, {1, 1 << 14}}});
  }
  greta::check(greta_stream_times(S.get(), &Second, &Count));
  EXPECT_STREQ(First.kernel, "scale");
  EXPECT_STREQ(Second.kernel, "scale");
}

TEST_P(OnDevice, RefusesWrongCalls) {
  greta::Stream S = Runtime->stream();
  greta::Function F = Runtime->load(*Package, "scale");
  greta::Buffer A = Runtime->allocate(256), Small = Runtime->allocate(252);
  using Tensors = std::vector<greta::Tensor>;
  const struct {
    Tensors Args, Results;
    const char *Says;
  } Cases[] = {
      {{}, {{&A, {1, 64}}}, "takes 1 arguments, 0 given"},
      {{{&A, {64}}}, {{&A, {1, 64}}}, "rank 1"},
      {{{&A, {-1, 64}}}, {{&A, {1, 64}}}, "negative"},
      {{{&A, {1, 64}}}, {}, "has 1 results, 0 given"},
      {{{&A, {1, 64}}}, {{&A, {64, 1}}}, "the function computes 1x64"},
      {{{&A, {1, 65}}}, {{&A, {1, 65}}}, "needs 260 bytes"},
      {{{&A, {1, 64}}}, {{&Small, {1, 64}}}, "its buffer has 252"},
      {{{&A, {1, 4}, 8}}, {{&A, {1, 4}}}, "multiple of 16"},
      {{{&A, {1, 64}, 16}}, {{&A, {1, 64}}}, "from offset 16"},
      {{{&A, {1, 32}}}, {{&A, {1, 32}, 16}}, "overlaps argument 0 'x'; pass"},
      {{{&A, {1, 32}}}, {{&A, {1, 32}}}, "overlaps argument 0 'x'; pass"},
      {{{&A, {INT64_MAX, 64}}}, {{&A, {1, 64}}}, ""},
      {{{&A, {int64_t(1) << 40, int64_t(1) << 40}}}, {{&A, {1, 64}}}, ""},
  };
  for (const auto &C : Cases) {
    std::string Text = message([&] { F.launch(S, C.Args, C.Results); },
                               GRETA_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(Text.find(C.Says), std::string::npos) << Text;
  }
  message([&] { S.write(A, &Word, 4, 256); }, GRETA_ERROR_INVALID_ARGUMENT);
  message([&] { S.write(A, &Word, 4, SIZE_MAX - 1); },
          GRETA_ERROR_INVALID_ARGUMENT);
  message([&] { S.write(A, nullptr, 4); }, GRETA_ERROR_INVALID_ARGUMENT);
  message([&] { S.fill(A, 3, 0); }, GRETA_ERROR_INVALID_ARGUMENT);
  message([&] { S.copy(A, A, 8); }, GRETA_ERROR_INVALID_ARGUMENT);
  message([&] { Runtime->load(*Package, "nothing"); }, GRETA_ERROR_NOT_FOUND);
  message([&] { Runtime->load(*Package, "scale", "nothing"); },
          GRETA_ERROR_NOT_FOUND);
}

// Who opens a device twice has the same one.
TEST_P(OnDevice, TwoOpensMix) {
  bool Numbered = Spec() == "hip" || Spec() == "vulkan";
  greta::Runtime Again(Spec() + (Numbered ? ":0" : ""));
  greta::Stream S = Again.stream();
  greta::Buffer A = Runtime->allocate(256), B = Again.allocate(256);
  S.fill(A, 256, 0x3f800000); // 1.0f
  Runtime->load(*Package, "scale").launch(S, {{&A, {1, 64}}}, {{&B, {1, 64}}});
  std::vector<float> V(64);
  Again.close();
  S.read(B, V.data(), 256);
  EXPECT_EQ(V, std::vector<float>(64, 3.0f));
}

TEST_P(OnDevice, OutOfMemoryIsAStatus) {
  for (size_t Size :
       {SIZE_MAX, SIZE_MAX - 20, size_t(1) << 62, size_t(1) << 50})
    message([&] { Runtime->allocate(Size); }, GRETA_ERROR_OUT_OF_MEMORY);
  greta::Stream S = Runtime->stream();
  scale(S, 3, 5);
}

TEST_P(OnDevice, ForcedVariantsSayWhyNot) {
  std::string Text =
      message([&] { Runtime->load(*Package, "scale", "vulkan-sg64"); },
              GRETA_ERROR_UNSUPPORTED);
  EXPECT_NE(
      Text.find(Spec() != "vulkan" ? "it is for vulkan" : "subgroup size 64"),
      std::string::npos)
      << Text;
}

// Makes the kernel of the function's variants for `Backend` one whose only
// workgroup waits for itself.
static void makeResident(nlohmann::json &M, const char *Backend) {
  for (nlohmann::json &V : M["functions"][0]["variants"])
    if (V["backend"] == Backend) {
      V["requires"]["resident"] = 1;
      V["kernels"][0]["resident"] = true;
    }
}

// Workgroups that wait for each other all run at a time, and phases of one
// launch have no barrier for memory that is two tensors.
TEST(Resident, LaunchesThatWouldWaitForEverAreRefused) {
  std::string Missing = missing("sim:gfx942");
  if (!Missing.empty())
    GTEST_SKIP() << Missing;
  nlohmann::json M = manifest();
  makeResident(M, "hip");
  greta::Package P = packageOf(package(M));
  greta::Runtime R("sim:gfx942");
  greta::Function F = R.load(P, "scale");
  greta::Stream S = R.stream();
  greta::Buffer A = R.allocate(1024), B = R.allocate(1024);
  S.fill(A, 1024, 0);
  F.launch(S, {{&A, {1, 64}}}, {{&B, {1, 64}}});
  EXPECT_NE(message([&] { F.launch(S, {{&A, {1, 65}}}, {{&B, {1, 65}}}); },
                    GRETA_ERROR_BAD_PACKAGE)
                .find("more workgroups than its variant says run at a time"),
            std::string::npos);
  std::string Why =
      message([&] { F.launch(S, {{&A, {1, 64}}}, {{&A, {1, 64}, 128}}); },
              GRETA_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(Why.find("result 0 'y' overlaps argument 0 'x'; pass"),
            std::string::npos)
      << Why;
  F.launch(S, {{&A, {1, 64}}}, {{&A, {1, 64}, 256}});
  S.synchronize();
}

TEST(Results, ThatLieAcrossEachOtherAreRefused) {
  std::string Missing = missing("sim:gfx942");
  if (!Missing.empty())
    GTEST_SKIP() << Missing;
  nlohmann::json M = manifest();
  nlohmann::json &Results = M["functions"][0]["results"];
  Results.push_back(Results[0]);
  Results[1]["name"] = "z";
  greta::Package P = packageOf(package(M));
  greta::Runtime R("sim:gfx942");
  greta::Function F = R.load(P, "scale");
  greta::Stream S = R.stream();
  greta::Buffer A = R.allocate(256), B = R.allocate(1024);
  S.fill(A, 256, 0);
  F.launch(S, {{&A, {1, 64}}}, {{&B, {1, 64}}, {&B, {1, 64}, 256}});
  for (size_t Offset : {0, 128}) {
    std::string Why = message(
        [&] {
          F.launch(S, {{&A, {1, 64}}}, {{&B, {1, 64}}, {&B, {1, 64}, Offset}});
        },
        GRETA_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(Why.find("result 1 'z' overlaps result 0 'y'; pass"),
              std::string::npos)
        << Why;
  }
  S.synchronize();
}

// Returns how many outcomes of trials are cached, and removes them.
static size_t takeOutcomes() {
  std::vector<std::filesystem::path> Found;
  for (const auto &Entry : std::filesystem::directory_iterator(
           std::string(getenv("XDG_CACHE_HOME")) + "/greta"))
    if (Entry.path().filename().string().rfind("resident-", 0) == 0)
      Found.push_back(Entry.path());
  for (const std::filesystem::path &Path : Found)
    std::filesystem::remove(Path);
  return Found.size();
}

// On Vulkan a kernel is taken if it counts its workgroups in a trial. This one
// writes 1.0f there.
TEST(Resident, KernelsThatFailTheirTrialAreNotTaken) {
  nlohmann::json M = manifest();
  M["functions"][0]["variants"][0]["requires"].erase("subgroup_size");
  nlohmann::json Plain = M["functions"][0]["variants"][1];
  makeResident(M, "vulkan");
  M["functions"][0]["variants"][1] = Plain;
  nlohmann::json &Kernel = M["functions"][0]["variants"][0]["kernels"][0];
  auto WhyNot = [&] {
    greta::Package P = packageOf(package(M));
    greta::Runtime R("vulkan");
    greta::Function F = R.load(P, "scale");
    EXPECT_EQ(F.variant(), "vulkan-portable");
    return message([&] { R.load(P, "scale", "vulkan-sg64"); },
                   GRETA_ERROR_UNSUPPORTED);
  };
  const char *HasNone = "kernel 'scale' has no trial";
  EXPECT_NE(WhyNot().find(HasNone), std::string::npos);
  Kernel["args"][2]["value"] = 0;
  Kernel["trial"] = 2; // its grid is not a constant
  EXPECT_NE(WhyNot().find(HasNone), std::string::npos);
  Kernel["grid"] = {1, 1, 1};
  for (int Time = 0; Time < 2; ++Time) // the second from the cache
    EXPECT_NE(WhyNot().find("not all of the 1 workgroups of kernel 'scale', "
                            "which wait for each other, ran at a time"),
              std::string::npos);
  EXPECT_EQ(takeOutcomes(), 1u);
  {
    // A device remembers what the cache forgets.
    greta::Package P = packageOf(package(M));
    greta::Runtime R("vulkan");
    R.load(P, "scale");
    EXPECT_EQ(takeOutcomes(), 1u);
    EXPECT_EQ(R.load(P, "scale").variant(), "vulkan-portable");
    EXPECT_EQ(takeOutcomes(), 0u);
  }
  setenv("GRETA_HEALTH", "resident", 1);
  std::string Denied = WhyNot();
  setenv("GRETA_HEALTH", "off", 1);
  std::string Believed = WhyNot();
  unsetenv("GRETA_HEALTH");
  setenv("GRETA_PROFILE", "ultrasafe", 1);
  std::string Trusted = WhyNot();
  unsetenv("GRETA_PROFILE");
  EXPECT_NE(Trusted.find("nobody promises or tries whether"),
            std::string::npos);
  EXPECT_NE(Denied.find("and GRETA_HEALTH names it"), std::string::npos);
  EXPECT_NE(Believed.find("nobody promises or tries whether"),
            std::string::npos);
}

class OnGpu : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, OnGpu,
                         testing::Values("vulkan", "sim:gfx942", "hip"),
                         [](const auto &Info) { return nameOf(Info.param); });

TEST_P(OnGpu, TemporariesBetweenKernels) {
  greta::Stream S = Runtime->stream();
  greta::Function F = Runtime->load(*Package, "twice_scaled");
  for (int64_t N : {100, 5000, 64}) {
    std::vector<float> X = ramp(static_cast<size_t>(N)), Y(X.size());
    greta::Buffer A = Runtime->allocate(X.size() * 4),
                  B = Runtime->allocate(X.size() * 4);
    S.write(A, X.data(), X.size() * 4);
    greta::Graph G =
        S.capture([&] { F.launch(S, {{&A, {1, N}}}, {{&B, {1, N}}}); });
    F.launch(S, {{&A, {1, N}}}, {{&B, {1, N}}});
    S.read(B, Y.data(), Y.size() * 4);
    for (size_t I = 0; I < X.size(); ++I)
      ASSERT_EQ(Y[I], 4 * X[I] + 3);
    S.fill(B, X.size() * 4, 0);
    S.launch(G);
    S.read(B, Y.data(), Y.size() * 4);
    for (size_t I = 0; I < X.size(); ++I)
      ASSERT_EQ(Y[I], 4 * X[I] + 3);
  }
}

// A result that is tied to an argument changes it, or a copy of it.
TEST_P(OnGpu, WritesInPlace) {
  greta::Stream S = Runtime->stream();
  greta::Function F = Runtime->load(*Package, "in_place");
  EXPECT_TRUE(F.arguments()[1].isScalar);
  EXPECT_EQ(F.results()[0].tied, 0);
  std::vector<float> X = ramp(100), Y(X.size());
  greta::Buffer A = Runtime->allocate(1024), B = Runtime->allocate(1024);
  greta::Tensor N = greta::Tensor::scalar(int32_t(100));
  S.write(A, X.data(), 400);
  EXPECT_EQ(F.resultShape(0, {{nullptr, {100}}, N}).second, 400u);
  greta::Graph G =
      S.capture([&] { F.launch(S, {{&A, {100}}, N}, {{&B, {100}}}); });
  for (unsigned Launch : {0, 1}) {
    if (Launch)
      S.launch(G);
    else
      F.launch(S, {{&A, {100}}, N}, {{&B, {100}}});
    S.read(B, Y.data(), 400);
    for (size_t I = 0; I < X.size(); ++I)
      ASSERT_EQ(Y[I], 2 * X[I] + 1) << I;
    S.read(A, Y.data(), 400);
    ASSERT_EQ(Y, X);
    S.fill(B, 400, 0);
  }
  F.launch(S, {{&A, {100}}, N}, {{&A, {100}}});
  S.read(A, Y.data(), 400);
  for (size_t I = 0; I < X.size(); ++I)
    ASSERT_EQ(Y[I], 2 * X[I] + 1) << I;
}

// Arguments that are memory may overlap, and begin at their offset.
TEST_P(OnGpu, OverlapsInPlace) {
  nlohmann::json M = manifest();
  M["functions"][3]["in_place"] = true;
  M["functions"][3]["args"][0]["align"] = 4;
  M["functions"][3]["args"][0]["max_bytes"] = 400;
  greta::Package Own = packageOf(package(M));
  greta::Stream S = Runtime->stream();
  greta::Function F = Runtime->load(Own, "in_place");
  std::vector<float> X = ramp(101), Y(X.size());
  greta::Buffer A = Runtime->allocate(1024);
  greta::Tensor N = greta::Tensor::scalar(int32_t(100));
  S.write(A, X.data(), 404);
  F.launch(S, {{&A, {100}, 4}, N}, {{&A, {100}, 4}});
  S.read(A, Y.data(), 404);
  ASSERT_EQ(Y[0], X[0]);
  for (size_t I = 1; I < X.size(); ++I)
    ASSERT_EQ(Y[I], 2 * X[I] + 1) << I;
  EXPECT_NE(message([&] { F.launch(S, {{&A, {100}, 2}, N}, {{&A, {100}, 2}}); },
                    GRETA_ERROR_INVALID_ARGUMENT)
                .find("offset 2 is not a multiple of 4"),
            std::string::npos);
  greta::Tensor More = greta::Tensor::scalar(int32_t(101));
  EXPECT_NE(message([&] { F.launch(S, {{&A, {101}}, More}, {{&A, {101}}}); },
                    GRETA_ERROR_INVALID_ARGUMENT)
                .find("has 404 bytes; its kernels reach at most 400"),
            std::string::npos);
}

TEST_P(OnGpu, RefusesWrongScalars) {
  greta::Stream S = Runtime->stream();
  greta::Function F = Runtime->load(*Package, "in_place");
  greta::Buffer A = Runtime->allocate(1024), B = Runtime->allocate(1024);
  greta::Tensor N = greta::Tensor::scalar(int32_t(64));
  using Tensors = std::vector<greta::Tensor>;
  const struct {
    Tensors Args, Results;
    const char *Says;
  } Cases[] = {
      {{{&A, {64}}, {&A, {}}}, {{&B, {64}}}, "'n' is a scalar; it has a value"},
      {{N, N}, {{&B, {64}}}, "argument 0 is a tensor; it has no value"},
      {{{&A, {65}}, N}, {{&B, {65}}}, "dim 0 is 65, the function needs 64"},
      {{{&A, {64}}, greta::Tensor::scalar(int32_t(-1))},
       {{&B, {64}}},
       "negative value -1"},
      {{{&A, {64}}, N}, {{&A, {64}, 16}}, "overlaps argument 0 'x'"},
  };
  for (const auto &C : Cases) {
    std::string Text = message([&] { F.launch(S, C.Args, C.Results); },
                               GRETA_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(Text.find(C.Says), std::string::npos) << Text;
  }
}

// Memory that the caller allocates and frees meanwhile is no part of the graph.
TEST_P(OnGpu, AllocatesWhileAGraphIsRecorded) {
  greta::Stream S = Runtime->stream(), Other = Runtime->stream();
  greta::Function F = Runtime->load(*Package, "twice_scaled");
  greta::Buffer A = Runtime->allocate(256), B;
  std::vector<float> V(64, 1.0f);
  S.write(A, V.data(), 256);
  greta::Graph G = S.capture([&] {
    B = Runtime->allocate(256);
    F.launch(S, {{&A, {1, 64}}}, {{&B, {1, 64}}});
    Runtime->allocate(1024);
    scale(Other, 3, 5);
    S.copy(A, B, 256);
  });
  S.launch(G);
  S.launch(G);
  S.read(A, V.data(), 256);
  EXPECT_EQ(V, std::vector<float>(64, 31.0f)); // 1 -> 7 -> 31
}

TEST(Devices, UnknownNames) {
  for (const char *Spec : {"cuda", "vulkan:", "vulkan:x", "vulkan:-1",
                           "vulkan:99999", "hip:1x", "sim:", "host:0"})
    message([&] { greta::Runtime R(Spec); }, GRETA_ERROR_INVALID_ARGUMENT);
  message([&] { greta::Runtime R("vulkan:9999"); }, GRETA_ERROR_NOT_FOUND);
}

TEST(Devices, TwoDevicesDoNotMix) {
  if (!missing("vulkan").empty())
    GTEST_SKIP() << missing("vulkan");
  greta::Runtime Host("host"), Vulkan("vulkan");
  greta::Buffer A = Host.allocate(64);
  greta::Stream S = Vulkan.stream();
  message([&] { S.fill(A, 64, 0); }, GRETA_ERROR_INVALID_ARGUMENT);
  greta::Package P = packageOf(package());
  greta::Function F = Vulkan.load(P, "scale");
  message([&] { F.launch(S, {{&A, {1, 16}}}, {{&A, {1, 16}}}); },
          GRETA_ERROR_INVALID_ARGUMENT);
}

} // namespace
