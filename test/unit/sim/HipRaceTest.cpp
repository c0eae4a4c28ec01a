//===- HipRaceTest.cpp - races between streams of the HIP library ---------===//
#define __HIP_PLATFORM_AMD__
#define __HIP_DISABLE_CPP_FUNCTIONS__
#include "Compile.h"
#include <functional>
#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>
#include <sys/mman.h>

struct greta_hip_sim_argument {
  uint64_t address, bytes, element_bytes;
  const char *name;
};
extern "C" int greta_hip_sim_set_chip(const char *chip);
extern "C" int greta_hip_sim_set_checks(const char *text);
extern "C" void greta_hip_sim_set_arguments(const greta_hip_sim_argument *,
                                            size_t);
extern "C" const char *greta_hip_sim_last_error(void);

#define OK(call) ASSERT_EQ(call, hipSuccess) << greta_hip_sim_last_error()

static const char kernels[] = R"(
#define ID (__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x())
kernel void scale(global float *y, global const float *x) { y[ID] = 2 * x[ID] + 1; }
kernel void count(global float *y, global const float *x) { __hip_atomic_fetch_add((global int *)y + ID / 64, 1, __ATOMIC_RELAXED, 4); }
kernel void odd(global char *y, global const char *x) { y[2 * ID + 1] = 3; }
kernel void even(global char *y, global const char *x) { y[2 * ID] = 4; }
)";

namespace {

using Work = std::function<hipError_t(hipStream_t)>;

class HipRaces : public testing::Test {
protected:
  static constexpr size_t bytes = 1024; // 256 floats
  void SetUp() override {
    ASSERT_EQ(greta_hip_sim_set_chip("gfx942"), 0);
    ASSERT_EQ(greta_hip_sim_set_checks("all,programs"), 0);
    static const std::vector<uint8_t> code = compileKernel("gfx942", kernels);
    OK(hipModuleLoadData(&module, code.data()));
    for (hipStream_t *s : {&a, &b, &c})
      OK(hipStreamCreateWithFlags(s, hipStreamNonBlocking));
    OK(hipEventCreate(&event));
    for (char **p : {&x, &y, &z}) {
      OK(hipMalloc(reinterpret_cast<void **>(p), bytes));
      OK(hipMemset(*p, 1, bytes));
    }
    OK(hipDeviceSynchronize());
  }
  void TearDown() override {
    for (char *p : {x, y, z})
      OK(hipFree(p));
    for (hipStream_t s : {a, b, c})
      OK(hipStreamDestroy(s));
    OK(hipEventDestroy(event));
    OK(hipModuleUnload(module));
    ASSERT_EQ(greta_hip_sim_set_checks("all"), 0);
  }

  Work launch(const char *name, char *to, char *from) {
    return [=](hipStream_t s) {
      hipFunction_t function;
      if (hipError_t e = hipModuleGetFunction(&function, module, name))
        return e;
      const greta_hip_sim_argument tensors[] = {
          {reinterpret_cast<uint64_t>(to), bytes, 4, "out"},
          {reinterpret_cast<uint64_t>(from), bytes, 4, "in"}};
      greta_hip_sim_set_arguments(tensors, 2);
      const void *params[] = {&to, &from};
      return hipModuleLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, s,
                                   const_cast<void **>(params), nullptr);
    };
  }
  static Work copy(char *to, const char *from, size_t size = bytes) {
    return [=](hipStream_t s) {
      return hipMemcpyAsync(to, from, size, hipMemcpyDeviceToDevice, s);
    };
  }
  static Work fill(char *to, int value, size_t size = bytes) {
    return [=](hipStream_t s) { return hipMemsetAsync(to, value, size, s); };
  }
  /// The work as a graph that was recorded in another stream.
  Work graph(Work work) {
    return [=](hipStream_t s) {
      hipGraph_t graph;
      hipGraphExec_t exec;
      EXPECT_EQ(hipStreamBeginCapture(c, hipStreamCaptureModeThreadLocal),
                hipSuccess);
      EXPECT_EQ(work(c), hipSuccess);
      EXPECT_EQ(hipStreamEndCapture(c, &graph), hipSuccess);
      EXPECT_EQ(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0),
                hipSuccess);
      hipError_t e = hipGraphLaunch(exec, s);
      EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);
      EXPECT_EQ(hipGraphExecDestroy(exec), hipSuccess);
      return e;
    };
  }
  /// The text of the second one's race; "" if it has none.
  static std::string told(const Work &first, hipStream_t on,
                          const std::function<void()> &between,
                          const Work &second, hipStream_t other) {
    EXPECT_EQ(first(on), hipSuccess) << greta_hip_sim_last_error();
    between();
    hipError_t e = second(other);
    std::string text = e ? greta_hip_sim_last_error() : "";
    EXPECT_EQ(e, text.empty() ? hipSuccess : hipErrorLaunchFailure);
    EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
    return text;
  }
  std::string unordered(const Work &first, const Work &second) {
    return told(first, a, [] {}, second, b);
  }
  std::string ordered(const Work &first, const Work &second) {
    return told(
        first, a,
        [&] {
          EXPECT_EQ(hipEventRecord(event, a), hipSuccess);
          EXPECT_EQ(hipStreamWaitEvent(b, event, 0), hipSuccess);
        },
        second, b);
  }

  hipModule_t module = nullptr;
  hipStream_t a = nullptr, b = nullptr, c = nullptr;
  hipEvent_t event = nullptr;
  char *x = nullptr, *y = nullptr, *z = nullptr;
};

TEST_F(HipRaces, SayWhatTheTwoDo) {
  Work scale = launch("scale", y, x), read = copy(z, y + 256, 512);
  EXPECT_EQ(unordered(scale, read),
            "race: a copy reads bytes 256 to 767 of an allocation of 1024 "
            "bytes, and 'scale' on another stream writes them (its 'out'); no "
            "event orders the two");
  EXPECT_EQ(unordered(read, scale),
            "race: 'scale' writes bytes 256 to 767 of an allocation of 1024 "
            "bytes (its 'out'), and a copy on another stream reads them; no "
            "event orders the two");
  EXPECT_EQ(unordered(launch("count", x, z), scale),
            "race: 'scale' reads bytes 0 to 15 of an allocation of 1024 bytes "
            "(its 'in'), and 'count' on another stream changes them (its "
            "'out'); no event orders the two");
}

TEST_F(HipRaces, AreBetweenAnyTwoOperations) {
  const struct {
    Work one, other;
    bool race;
  } cases[] = {
      {launch("scale", y, x), copy(z, y), true},
      {launch("scale", y, x), copy(x, z), true},
      {launch("scale", y, x), copy(y, z), true},
      {launch("scale", y, x), launch("scale", z, y), true},
      {launch("scale", y, x), launch("scale", y, z), true},
      {launch("scale", y, x), launch("count", y, z), true},
      {launch("scale", y, x), fill(x, 5), true},
      {copy(y, x), fill(y, 5), true},
      {copy(y, x), fill(x + 1023, 5, 1), true},
      {copy(y, x), copy(z, y), true},
      {fill(x, 5), fill(x, 5), true},
      {graph(launch("scale", y, x)), copy(z, y), true},
      {graph(launch("scale", y, x)), graph(copy(x, z)), true},
      // Both read, use other bytes, or do so by atomics.
      {launch("scale", y, x), launch("scale", z, x), false},
      {launch("scale", y, x), fill(z, 5), false},
      {launch("count", y, x), launch("count", y, x), false},
      {launch("count", y, x), fill(y + 16, 5, 1008), false},
      {launch("odd", y, x), launch("even", y, x), false},
      {copy(y, x), copy(z, x), false},
      {copy(y, x, 512), fill(y + 512, 5, 512), false},
      {graph(launch("scale", y, x)), graph(copy(z, x)), false},
  };
  for (const auto &c : cases) {
    SCOPED_TRACE(&c - cases);
    EXPECT_EQ(unordered(c.one, c.other).empty(), !c.race);
    EXPECT_EQ(unordered(c.other, c.one).empty(), !c.race);
    EXPECT_EQ(ordered(c.one, c.other), "");
    EXPECT_EQ(ordered(c.other, c.one), "");
  }
}

TEST_F(HipRaces, AreNoneWhereSomethingOrders) {
  Work first = launch("scale", y, x), second = copy(z, y);
  hipEvent_t next;
  OK(hipEventCreate(&next));
  auto record = [&](hipEvent_t e, hipStream_t s) {
    EXPECT_EQ(hipEventRecord(e, s), hipSuccess);
  };
  auto wait = [&](hipStream_t s, hipEvent_t e) {
    EXPECT_EQ(hipStreamWaitEvent(s, e, 0), hipSuccess);
  };
  auto isTold = [&](const std::function<void()> &between) {
    return !told(first, a, between, second, b).empty();
  };
  EXPECT_FALSE(isTold([&] { // by way of a third stream
    record(event, a), wait(c, event), record(next, c), wait(b, next);
  }));
  EXPECT_FALSE(isTold([&] { EXPECT_EQ(hipStreamSynchronize(a), hipSuccess); }));
  EXPECT_FALSE(isTold([&] { EXPECT_EQ(hipDeviceSynchronize(), hipSuccess); }));
  EXPECT_FALSE(isTold([&] {
    record(event, a);
    EXPECT_EQ(hipEventSynchronize(event), hipSuccess);
  }));
  EXPECT_FALSE(isTold([&] {
    auto nothing = [](hipStream_t, hipError_t, void *) {};
    EXPECT_EQ(hipStreamAddCallback(a, nothing, nullptr, 0), hipSuccess);
  }));
  auto isDone = [&](auto query, auto what) {
    int times = 0;
    while (query(what) == hipErrorNotReady)
      ++times;
    EXPECT_GT(times, 0);
    EXPECT_LT(times, 100);
  };
  EXPECT_FALSE(isTold([&] { isDone(hipStreamQuery, a); }));
  EXPECT_FALSE(isTold([&] {
    record(event, a);
    isDone(hipEventQuery, event);
  }));
  EXPECT_FALSE(isTold([&] { // pageable memory
    char byte;
    EXPECT_EQ(hipMemcpyAsync(&byte, x, 1, hipMemcpyDeviceToHost, a),
              hipSuccess);
  }));
  EXPECT_FALSE(told(first, a, [] {}, second, a).size()) << "one stream";

  EXPECT_TRUE(isTold([&] { // no answer
    EXPECT_EQ(hipStreamQuery(a), hipErrorNotReady);
  }));
  EXPECT_TRUE(isTold([&] { // the wrong way round
    record(event, b), wait(a, event);
  }));
  EXPECT_TRUE(isTold([&] { // another stream's
    record(event, a), wait(c, event);
    EXPECT_EQ(hipStreamSynchronize(b), hipSuccess);
  }));
  record(event, a); // too early
  EXPECT_TRUE(isTold([&] { wait(b, event); }));
  OK(hipEventDestroy(next));
}

// The null stream is in order with blocking streams, and only with these.
TEST_F(HipRaces, KnowTheNullStream) {
  hipStream_t blocking;
  OK(hipStreamCreate(&blocking));
  Work first = launch("scale", y, x), second = copy(z, y);
  auto nothing = [] {};
  EXPECT_EQ(told(first, blocking, nothing, second, nullptr), "");
  EXPECT_EQ(told(first, nullptr, nothing, second, blocking), "");
  EXPECT_NE(told(first, a, nothing, second, nullptr), "");
  EXPECT_NE(told(first, nullptr, nothing, second, a), "");
  EXPECT_NE(told(first, a, nothing, second, blocking), "");
  // A copy that waits for itself and for what is before it.
  auto waits = [&] {
    char byte;
    EXPECT_EQ(hipMemcpy(&byte, x, 1, hipMemcpyDeviceToHost), hipSuccess);
  };
  EXPECT_EQ(told(first, blocking, waits, second, a), "");
  EXPECT_NE(told(first, b, waits, second, a), "");
  OK(hipStreamDestroy(blocking));
}

// Operations of a graph have the order of the stream that launches it.
TEST_F(HipRaces, AreFoundInGraphs) {
  Work both = [&](hipStream_t s) {
    hipError_t e = launch("scale", y, x)(s);
    return e ? e : launch("scale", z, y)(s);
  };
  EXPECT_EQ(unordered(graph(both), fill(x, 2)).substr(0, 19),
            "race: a fill writes");
  EXPECT_NE(unordered(graph(both), fill(y, 2)), "");
  EXPECT_NE(unordered(fill(y, 2), graph(both)), "");
  EXPECT_NE(unordered(graph(both), graph(both)), "");
  EXPECT_EQ(ordered(graph(both), graph(both)), "");
  EXPECT_EQ(told(graph(both), a, [] {}, graph(both), a), "");
  // An event that a graph records.
  Work recording = [&](hipStream_t s) {
    hipError_t e = launch("scale", y, x)(s);
    return e ? e : hipEventRecord(event, s);
  };
  auto wait = [&] { EXPECT_EQ(hipStreamWaitEvent(b, event, 0), hipSuccess); };
  EXPECT_EQ(told(graph(recording), a, wait, copy(z, y), b), "");
}

// The same addresses are other memory.
TEST_F(HipRaces, AreNoneOfMemoryThatWasFreed) {
  void *host = mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(host, MAP_FAILED);
  OK(hipHostRegister(host, 4096, 0));
  Work use = fill(static_cast<char *>(host), 1);
  EXPECT_NE(unordered(use, use), "");
  auto again = [&] {
    EXPECT_EQ(hipHostUnregister(host), hipSuccess);
    EXPECT_EQ(hipHostRegister(host, 4096, 0), hipSuccess);
  };
  EXPECT_EQ(told(use, a, again, use, b), "");
  OK(hipHostUnregister(host));
  munmap(host, 4096);
  for (hipStream_t s : {a, b}) {
    void *p = nullptr;
    OK(hipMallocAsync(&p, bytes, s));
    OK(fill(static_cast<char *>(p), 1)(s));
    OK(hipFreeAsync(p, s));
  }
}

// A stream that nobody waits for loses its oldest operations.
TEST_F(HipRaces, AreOfTheLatestOperations) {
  for (int k = 0; k < 2000; ++k)
    OK(fill(k < 10 ? y : z, 1, 4)(a));
  OK(fill(y, 1, 4)(b));
  EXPECT_NE(unordered(fill(x, 1), fill(z, 1, 4)), "");
}

TEST_F(HipRaces, AreNotLookedForWithoutTheCheck) {
  ASSERT_EQ(greta_hip_sim_set_checks("all"), 0);
  EXPECT_EQ(unordered(launch("scale", y, x), copy(z, y)), "");
  OK(launch("scale", y, x)(a));
  OK(hipStreamQuery(a));
}

} // namespace
