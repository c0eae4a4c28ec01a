//===- HipTest.cpp - a HIP host program on the simulated library ----------===//
//
// Written against AMD's HIP headers only; the same program runs on a GPU.
//
//===----------------------------------------------------------------------===//
#define __HIP_PLATFORM_AMD__
#define __HIP_DISABLE_CPP_FUNCTIONS__
#include "Compile.h"
#include <functional>
#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>
#include <map>
#include <numeric>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

// Headers before ROCm 5.5 do not have it.
extern "C" hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t, unsigned,
                                                       unsigned, unsigned,
                                                       unsigned, unsigned,
                                                       unsigned, unsigned,
                                                       hipStream_t, void **);

extern "C" int greta_hip_sim_set_chip(const char *chip);
extern "C" const char *greta_hip_sim_last_error(void);

#define OK(call) ASSERT_EQ(call, hipSuccess) << greta_hip_sim_last_error()

static const char source[] = R"(
kernel void saxpy(global float *y, global const float *x, float a, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < n) y[i] = a * x[i] + y[i];
})";

namespace {
class Hip : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    ASSERT_EQ(greta_hip_sim_set_chip(GetParam()), 0);
    OK(hipInit(0));
    static std::map<std::string, std::vector<uint8_t>> compiled;
    auto &code = compiled[GetParam()];
    if (code.empty())
      code = compileKernel(GetParam(), source);
    ASSERT_FALSE(code.empty());
    OK(hipModuleLoadData(&module, code.data()));
    OK(hipModuleGetFunction(&saxpy, module, "saxpy"));
    for (void **p : {&x, &y})
      OK(hipMalloc(p, n * 4));
    std::iota(hx.begin(), hx.end(), 0.f);
    hy.assign(n, 1.f);
    OK(hipMemcpy(x, hx.data(), n * 4, hipMemcpyHostToDevice));
    OK(hipMemcpy(y, hy.data(), n * 4, hipMemcpyHostToDevice));
  }
  void TearDown() override {
    OK(hipFree(x));
    OK(hipFree(y));
    OK(hipModuleUnload(module));
  }
  void expectY(float a, int times) {
    OK(hipMemcpy(hy.data(), y, n * 4, hipMemcpyDeviceToHost));
    for (int k = 0; k < n; ++k)
      ASSERT_EQ(hy[k], 1.f + float(times) * a * float(k)) << k;
  }
  static constexpr int n = 1000;
  std::vector<float> hx = std::vector<float>(n), hy;
  void *x = nullptr, *y = nullptr;
  hipModule_t module = nullptr;
  hipFunction_t saxpy = nullptr;
};
} // namespace

TEST_P(Hip, DeviceIsTheChip) {
  int count = 0, wave = 0;
  hipDeviceProp_t p;
  OK(hipGetDeviceCount(&count));
  EXPECT_EQ(count, 1);
  OK(hipGetDeviceProperties(&p, 0));
  EXPECT_STREQ(p.gcnArchName, GetParam());
  OK(hipDeviceGetAttribute(&wave, hipDeviceAttributeWarpSize, 0));
  EXPECT_EQ(wave, std::string(GetParam()).rfind("gfx9", 0) == 0 ? 64 : 32);
}

TEST_P(Hip, LaunchWithKernelParams) {
  float a = 2;
  int count = n;
  void *params[] = {&y, &x, &a, &count};
  OK(hipModuleLaunchKernel(saxpy, 16, 1, 1, 64, 1, 1, 0, nullptr, params,
                           nullptr));
  OK(hipDeviceSynchronize());
  expectY(2, 1);
}

TEST_P(Hip, CooperativeLaunch) {
  float a = 2;
  int count = n, can = 0;
  OK(hipDeviceGetAttribute(&can, hipDeviceAttributeCooperativeLaunch, 0));
  EXPECT_EQ(can, 1);
  void *params[] = {&y, &x, &a, &count};
  OK(hipModuleLaunchCooperativeKernel(saxpy, 16, 1, 1, 64, 1, 1, 0, nullptr,
                                      params));
  OK(hipDeviceSynchronize());
  expectY(2, 1);
  EXPECT_NE(hipModuleLaunchCooperativeKernel(saxpy, 16, 1, 1, 64, 1, 1, 0,
                                             nullptr, nullptr),
            hipSuccess);
  EXPECT_NE(hipModuleLaunchCooperativeKernel(nullptr, 16, 1, 1, 64, 1, 1, 0,
                                             nullptr, params),
            hipSuccess);
}

TEST_P(Hip, LaunchWithArgumentBuffer) {
  struct {
    void *y, *x;
    float a;
    int n;
  } args = {y, x, 3, n};
  size_t size = sizeof(args);
  void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &args,
                   HIP_LAUNCH_PARAM_BUFFER_SIZE, &size, HIP_LAUNCH_PARAM_END};
  OK(hipModuleLaunchKernel(saxpy, 16, 1, 1, 64, 1, 1, 0, nullptr, nullptr,
                           extra));
  expectY(3, 1);
}

TEST_P(Hip, GraphRunsOnlyWhenLaunched) {
  hipStream_t stream;
  hipGraph_t graph;
  hipGraphExec_t exec;
  float a = 1;
  int count = n;
  void *params[] = {&y, &x, &a, &count};
  OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  OK(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
  OK(hipModuleLaunchKernel(saxpy, 16, 1, 1, 64, 1, 1, 0, stream, params,
                           nullptr));
  OK(hipStreamEndCapture(stream, &graph));
  OK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  OK(hipGraphDestroy(graph));
  expectY(1, 0);
  for (int k = 0; k < 3; ++k)
    OK(hipGraphLaunch(exec, stream));
  OK(hipStreamSynchronize(stream));
  expectY(1, 3);
  OK(hipGraphExecDestroy(exec));
  OK(hipStreamDestroy(stream));
}

// ROCm's rules: what cannot be captured is refused and spoils the capture.
TEST_P(Hip, CaptureRefusesWhatItCannotRecord) {
  hipStream_t captured, other;
  hipEvent_t event;
  OK(hipStreamCreateWithFlags(&captured, hipStreamNonBlocking));
  OK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
  OK(hipEventCreate(&event));
  void *p = nullptr;
  const struct {
    const char *name;
    std::function<hipError_t()> call;
    hipError_t answer;
    bool relaxed; // also refused in relaxed mode
  } cases[] = {
      {"hipMalloc", [&] { return hipMalloc(&p, 4); },
       hipErrorStreamCaptureUnsupported, false},
      {"hipHostMalloc", [&] { return hipHostMalloc(&p, 4, 0); },
       hipErrorStreamCaptureUnsupported, false},
      {"hipFree", [&] { return hipFree(nullptr); },
       hipErrorStreamCaptureUnsupported, false},
      {"hipStreamSynchronize of another",
       [&] { return hipStreamSynchronize(other); },
       hipErrorStreamCaptureUnsupported, false},
      {"hipStreamSynchronize", [&] { return hipStreamSynchronize(captured); },
       hipErrorStreamCaptureUnsupported, true},
      {"hipDeviceSynchronize", [&] { return hipDeviceSynchronize(); },
       hipErrorStreamCaptureUnsupported, true},
      {"hipMallocAsync", [&] { return hipMallocAsync(&p, 4, captured); },
       hipErrorStreamCaptureUnsupported, true},
      {"hipMemcpy",
       [&] { return hipMemcpy(y, hx.data(), 4, hipMemcpyHostToDevice); },
       hipErrorStreamCaptureImplicit, true},
      {"hipMemset", [&] { return hipMemset(y, 0, 4); },
       hipErrorStreamCaptureImplicit, true},
      {"hipEventSynchronize",
       [&] {
         EXPECT_EQ(hipEventRecord(event, captured), hipSuccess);
         return hipEventSynchronize(event);
       },
       hipErrorCapturedEvent, true},
  };
  for (auto mode : {hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal,
                    hipStreamCaptureModeRelaxed})
    for (const auto &c : cases) {
      SCOPED_TRACE(std::string(c.name) + " in mode " + std::to_string(mode));
      bool refused = c.relaxed || mode != hipStreamCaptureModeRelaxed;
      hipGraph_t graph = nullptr;
      OK(hipStreamBeginCapture(captured, mode));
      EXPECT_EQ(c.call(), refused ? c.answer : hipSuccess);
      EXPECT_EQ(hipMemsetAsync(y, 0, 4, captured),
                refused ? hipErrorStreamCaptureInvalidated : hipSuccess);
      EXPECT_EQ(hipStreamEndCapture(captured, &graph),
                refused ? hipErrorStreamCaptureInvalidated : hipSuccess);
      EXPECT_EQ(graph == nullptr, refused);
      // The stream works as before.
      OK(hipStreamSynchronize(captured));
      if (!refused) {
        OK(hipGraphDestroy(graph));
        OK(hipFree(p));
      }
      p = nullptr;
    }
  OK(hipEventDestroy(event));
  OK(hipStreamDestroy(captured));
  OK(hipStreamDestroy(other));
}

// Another thread disturbs a capture in global mode, unless it says otherwise.
TEST_P(Hip, CaptureAndOtherThreads) {
  hipStream_t stream;
  OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  auto allocate = [](hipStreamCaptureMode mode) {
    hipError_t answer = hipSuccess;
    std::thread([&] {
      EXPECT_EQ(hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
      EXPECT_EQ(mode, hipStreamCaptureModeGlobal);
      void *p = nullptr;
      answer = hipMalloc(&p, 4);
      if (answer == hipSuccess)
        answer = hipFree(p);
    }).join();
    return answer;
  };
  const struct {
    hipStreamCaptureMode capture, thread;
    bool refused;
  } cases[] = {
      {hipStreamCaptureModeGlobal, hipStreamCaptureModeGlobal, true},
      {hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, false},
      {hipStreamCaptureModeThreadLocal, hipStreamCaptureModeGlobal, false},
      {hipStreamCaptureModeRelaxed, hipStreamCaptureModeGlobal, false},
  };
  for (const auto &c : cases) {
    hipGraph_t graph = nullptr;
    OK(hipStreamBeginCapture(stream, c.capture));
    EXPECT_EQ(allocate(c.thread),
              c.refused ? hipErrorStreamCaptureUnsupported : hipSuccess);
    EXPECT_EQ(hipStreamEndCapture(stream, &graph),
              c.refused ? hipErrorStreamCaptureInvalidated : hipSuccess);
    if (graph)
      OK(hipGraphDestroy(graph));
  }
  // A capture ends in its own thread.
  hipGraph_t graph = nullptr;
  OK(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
  std::thread([&] {
    EXPECT_EQ(hipStreamEndCapture(stream, &graph),
              hipErrorStreamCaptureWrongThread);
  }).join();
  OK(hipStreamEndCapture(stream, &graph));
  OK(hipGraphDestroy(graph));
  OK(hipStreamDestroy(stream));
}

TEST_P(Hip, EventsMeasureTime) {
  hipEvent_t start, stop;
  float ms = -1, a = 1;
  int count = n;
  void *params[] = {&y, &x, &a, &count};
  OK(hipEventCreate(&start));
  OK(hipEventCreate(&stop));
  OK(hipEventRecord(start, nullptr));
  OK(hipModuleLaunchKernel(saxpy, 16, 1, 1, 64, 1, 1, 0, nullptr, params,
                           nullptr));
  OK(hipEventRecord(stop, nullptr));
  OK(hipEventSynchronize(stop));
  OK(hipEventElapsedTime(&ms, start, stop));
  EXPECT_GT(ms, 0.f);
  OK(hipEventDestroy(start));
  OK(hipEventDestroy(stop));
}

TEST_P(Hip, OutOfBoundsIsALaunchFailure) {
  float a = 1;
  int count = n + 1;
  void *params[] = {&y, &x, &a, &count};
  EXPECT_EQ(hipModuleLaunchKernel(saxpy, 16, 1, 1, 64, 1, 1, 0, nullptr, params,
                                  nullptr),
            hipErrorLaunchFailure);
  std::string text = greta_hip_sim_last_error();
  EXPECT_NE(text.find("saxpy"), std::string::npos) << text;
  EXPECT_NE(text.find("out of bounds"), std::string::npos) << text;
  bool wave64 = std::string(GetParam()).rfind("gfx9", 0) == 0;
  EXPECT_NE(text.find(wave64 ? "wave 0, lane 40" : "wave 1, lane 8"),
            std::string::npos)
      << text;
  EXPECT_EQ(hipGetLastError(), hipErrorLaunchFailure);
  EXPECT_EQ(hipGetLastError(), hipSuccess);
}

TEST_P(Hip, MistakesAreErrors) {
  EXPECT_EQ(hipMemcpy(y, hx.data(), n * 4 + 1, hipMemcpyHostToDevice),
            hipErrorInvalidValue);
  EXPECT_EQ(hipFree(static_cast<char *>(y) + 4), hipErrorInvalidValue);
  hipFunction_t f;
  EXPECT_EQ(hipModuleGetFunction(&f, module, "nothing"), hipErrorNotFound);
  char junk[64] = "not a code object";
  hipModule_t m;
  EXPECT_EQ(hipModuleLoadData(&m, junk), hipErrorInvalidImage);
  void *p;
  EXPECT_EQ(hipMalloc(&p, size_t(1) << 45), hipErrorOutOfMemory);
  EXPECT_STREQ(hipGetErrorName(hipErrorOutOfMemory), "hipErrorOutOfMemory");
}

/// HIP is not told how long a module is. A file mapped to the end of a page
/// ends where reading on would end the process.
TEST_P(Hip, ShortModulesAreErrors) {
  std::vector<uint8_t> good = compileKernel(GetParam(), source);
  long page = sysconf(_SC_PAGESIZE);
  size_t room = (good.size() / size_t(page) + 1) * size_t(page);
  void *map = mmap(nullptr, room + size_t(page), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  uint8_t *end = static_cast<uint8_t *>(map) + room;
  ASSERT_EQ(mprotect(end, size_t(page), PROT_NONE), 0);
  auto expectError = [&](const std::vector<uint8_t> &bytes, const char *part) {
    std::copy(bytes.begin(), bytes.end(), end - bytes.size());
    hipModule_t m;
    EXPECT_EQ(hipModuleLoadData(&m, end - bytes.size()), hipErrorInvalidImage)
        << bytes.size();
    std::string text = greta_hip_sim_last_error();
    EXPECT_NE(text.find(part), std::string::npos) << bytes.size() << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  };
  for (size_t bytes : {size_t(1), size_t(5), size_t(63)})
    expectError({good.begin(), good.begin() + long(bytes)},
                "shorter than an ELF header");
  for (size_t bytes : {size_t(64), size_t(65), good.size() - 1})
    expectError({good.begin(), good.begin() + long(bytes)},
                "its ELF header asks for");
  std::vector<uint8_t> far(good.begin(), good.begin() + 64);
  std::fill_n(far.begin() + 0x28, 8, 0xff); // the section headers
  expectError(far, "its headers lie beyond 256 MiB");
  hipModule_t m;
  std::copy(good.begin(), good.end(), end - good.size());
  OK(hipModuleLoadData(&m, end - good.size()));
  OK(hipModuleUnload(m));
  munmap(map, room + size_t(page));
}

INSTANTIATE_TEST_SUITE_P(Chips, Hip,
                         testing::Values("gfx90a", "gfx942", "gfx950",
                                         "gfx1030", "gfx1100", "gfx1201"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

TEST(HipChip, UnknownChipIsRefused) {
  EXPECT_NE(greta_hip_sim_set_chip("gfx000"), 0);
  EXPECT_NE(std::string(greta_hip_sim_last_error()).find("gfx942"),
            std::string::npos);
}
