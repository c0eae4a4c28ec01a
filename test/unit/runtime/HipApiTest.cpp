// HipApiTest.cpp: the runtime's own declarations of HIP (hip/HipApi.h) against
// AMD's header: the same values, and functions that are called the same way.
#include "hip/HipLibrary.h"

// Before AMD's header, which makes a macro of the name.
static constexpr unsigned nonBlocking = greta::rt::hip::hipStreamNonBlocking;

#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#define __HIP_DISABLE_CPP_FUNCTIONS__ // overloads have no one address
#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>
#include <type_traits>

namespace ours = greta::rt::hip;

// Pointers of the same depth; anything else of the same size, in the same kind
// of register.
template <typename T, typename U> static constexpr bool passesAlike() {
  if constexpr (std::is_pointer_v<T> && std::is_pointer_v<U>)
    return std::is_pointer_v<std::remove_pointer_t<T>> ==
           std::is_pointer_v<std::remove_pointer_t<U>>;
  else
    return sizeof(T) == sizeof(U) &&
           std::is_pointer_v<T> == std::is_pointer_v<U> &&
           std::is_floating_point_v<T> == std::is_floating_point_v<U>;
}

template <typename Result, typename... Parameters, typename OtherResult,
          typename... OtherParameters>
static constexpr bool calledAlike(Result (*)(Parameters...),
                                  OtherResult (*)(OtherParameters...)) {
  if constexpr (sizeof...(Parameters) == sizeof...(OtherParameters))
    return passesAlike<Result, OtherResult>() &&
           (passesAlike<Parameters, OtherParameters>() && ...);
  else
    return false;
}

TEST(HipApi, IsCalledAsAmdsHeaderSays) {
  using ours::hipError_t, ours::hipEvent_t, ours::hipFunction_t,
      ours::hipGraph_t, ours::hipGraphExec_t, ours::hipGraphNode_t,
      ours::hipMemcpyKind, ours::hipModule_t, ours::hipStream_t,
      ours::hipStreamCaptureMode;
#define X(Result, Name, ...)                                                   \
  EXPECT_TRUE(                                                                 \
      calledAlike(static_cast<Result (*)(__VA_ARGS__)>(nullptr), &::Name))     \
      << #Name;
  GRETA_HIP_FUNCTIONS(X)
#undef X
}

TEST(HipApi, HasTheValuesOfAmdsHeader) {
#define EXPECT_SAME(Name) EXPECT_EQ(int(ours::Name), int(::Name))
  EXPECT_SAME(hipSuccess);
  EXPECT_SAME(hipErrorOutOfMemory);
  EXPECT_SAME(hipMemcpyHostToDevice);
  EXPECT_SAME(hipMemcpyDeviceToHost);
  EXPECT_SAME(hipMemcpyDeviceToDevice);
  EXPECT_SAME(hipStreamCaptureModeThreadLocal);
#undef EXPECT_SAME
  EXPECT_EQ(nonBlocking, hipStreamNonBlocking);
  EXPECT_EQ(ours::launchBufferPointer, HIP_LAUNCH_PARAM_BUFFER_POINTER);
  EXPECT_EQ(ours::launchBufferSize, HIP_LAUNCH_PARAM_BUFFER_SIZE);
  EXPECT_EQ(ours::launchEnd, HIP_LAUNCH_PARAM_END);
}
