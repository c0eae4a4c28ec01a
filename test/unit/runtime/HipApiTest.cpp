// HipApiTest.cpp: the runtime's own declarations of HIP (hip/HipApi.h) against
// AMD's header: the same values, and functions of the same types, which is
// checked by compiling.
#include "hip/HipLibrary.h"

// Before AMD's header, which makes macros of the names.
static constexpr unsigned nonBlocking = greta::rt::hip::hipStreamNonBlocking,
                          disableTiming = greta::rt::hip::hipEventDisableTiming;

#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#define __HIP_DISABLE_CPP_FUNCTIONS__
#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>
#include <type_traits>

namespace ours = greta::rt::hip;

// AMD's type for one of ours.
template <typename T> struct Amd {
  using Type = T;
};
template <typename T> struct Amd<T *> {
  using Type = typename Amd<T>::Type *;
};
#define SAME_TYPE(Ours, Theirs)                                                \
  template <> struct Amd<Ours> {                                               \
    using Type = Theirs;                                                       \
  };
SAME_TYPE(ours::hipError_t, ::hipError_t)
SAME_TYPE(ours::hipMemcpyKind, ::hipMemcpyKind)
SAME_TYPE(ours::hipStreamCaptureMode, ::hipStreamCaptureMode)
#define SAME_HANDLE(Name)                                                      \
  SAME_TYPE(std::remove_pointer_t<ours::Name>, std::remove_pointer_t<::Name>)
SAME_HANDLE(hipEvent_t)
SAME_HANDLE(hipFunction_t)
SAME_HANDLE(hipGraphExec_t)
SAME_HANDLE(hipGraphNode_t)
SAME_HANDLE(hipGraph_t)
SAME_HANDLE(hipModule_t)
SAME_HANDLE(hipStream_t)
SAME_HANDLE(hipStreamCallback_t)
SAME_TYPE(ours::hipUUID, ::hipUUID)

template <typename Result, typename... Parameters>
using AmdFunction =
    typename Amd<Result>::Type (*)(typename Amd<Parameters>::Type...);

// If a type differs, the initialisation of that name is an error; the overload
// with these parameters is taken.
namespace greta::rt::hip {
#define X(Result, Name, ...)                                                   \
  [[maybe_unused]] static constexpr AmdFunction<Result, __VA_ARGS__>           \
      amd_##Name = &::Name;
GRETA_HIP_FUNCTIONS(X)
GRETA_HIP_OPTIONAL_FUNCTIONS(X)
#undef X
} // namespace greta::rt::hip

TEST(HipApi, HasTheValuesOfAmdsHeader) {
#define EXPECT_SAME(Name) EXPECT_EQ(int(ours::Name), int(::Name))
  EXPECT_SAME(hipSuccess);
  EXPECT_SAME(hipErrorOutOfMemory);
  EXPECT_SAME(hipErrorECCNotCorrectable);
  EXPECT_SAME(hipErrorNotReady);
  EXPECT_SAME(hipErrorIllegalAddress);
  EXPECT_SAME(hipErrorLaunchTimeOut);
  EXPECT_SAME(hipErrorContextIsDestroyed);
  EXPECT_SAME(hipErrorAssert);
  EXPECT_SAME(hipErrorLaunchFailure);
  EXPECT_SAME(hipMemcpyHostToDevice);
  EXPECT_SAME(hipMemcpyDeviceToHost);
  EXPECT_SAME(hipMemcpyDeviceToDevice);
  EXPECT_SAME(hipStreamCaptureModeThreadLocal);
#undef EXPECT_SAME
  EXPECT_EQ(nonBlocking, hipStreamNonBlocking);
  EXPECT_EQ(disableTiming, hipEventDisableTiming);
  EXPECT_EQ(ours::launchBufferPointer, HIP_LAUNCH_PARAM_BUFFER_POINTER);
  EXPECT_EQ(ours::launchBufferSize, HIP_LAUNCH_PARAM_BUFFER_SIZE);
  EXPECT_EQ(ours::launchEnd, HIP_LAUNCH_PARAM_END);
}
