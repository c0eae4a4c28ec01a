// ArgumentBufferTest.cpp: kernels whose arguments are more than the device has
// push constants for. The device is told that it has 16 bytes of them; `scale`
// takes 20.
#include "vulkan/ArgumentBuffer.h"
#include "AnyVulkan.h"
#include "TestPackage.h"
#include "vulkan/ModuleCheck.h"
#include "vulkan/StreamState.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>

using namespace greta::rt;
using namespace greta::rt::vulkan;
using namespace greta_test;

namespace {

KernelDecl scaleDecl(size_t Args) {
  KernelDecl K;
  K.File = "objects/scale.spv";
  K.Entry = "scale";
  K.Block = {64, 1, 1};
  K.Args.resize(Args);
  if (Args == 3)
    K.Args[2].Which = KernelArg::I32;
  return K;
}

Requirements needs() {
  Requirements R;
  R.Features = {"bufferDeviceAddress"};
  return R;
}

// The module that comes out is one of a single argument, and the driver's, too.
TEST(ArgumentBuffer, WritesAModuleOfOneAddress) {
  std::vector<uint32_t> From =
      checkModule(fixture("scale.spv"), scaleDecl(3), needs());
  std::vector<uint32_t> To = argumentsFromBuffer(From);
  Bytes Object(To.size() * 4);
  memcpy(Object.data(), To.data(), Object.size());
  EXPECT_EQ(checkModule(Object, scaleDecl(1), needs()), To);
  std::string Path = temporaryFolder() + "/from_buffer.spv";
  std::ofstream(Path, std::ios::binary)
      .write(reinterpret_cast<const char *>(Object.data()),
             static_cast<std::streamsize>(Object.size()));
  std::string Command = GRETA_TEST_SPIRV_VAL " --target-env vulkan1.2 " + Path;
  if (*GRETA_TEST_SPIRV_VAL) {
    EXPECT_EQ(system(Command.c_str()), 0);
  }
}

// A module that reads no argument has nothing to change.
TEST(ArgumentBuffer, LeavesAModuleWithoutArguments) {
  std::vector<uint32_t> Empty = {0x07230203, 0x10500, 0, 9, 0};
  EXPECT_EQ(argumentsFromBuffer(Empty), Empty);
}

class FromBuffer : public AnyVulkan {
protected:
  void SetUp() override {
    AnyVulkan::SetUp();
    if (!C)
      return; // skipped
    C->Physical.Props.limits.maxPushConstantsSize = 16;
    Kernel = std::make_shared<VulkanKernel>(
        std::make_shared<VulkanPipeline>(
            C, 0, scaleDecl(3),
            checkModule(fixture("scale.spv"), scaleDecl(3), needs()), false),
        /*IsResident=*/false);
    S = createStream(C);
    In = memory(elements * 4);
    std::vector<float> X(elements);
    std::iota(X.begin(), X.end(), 0.0f);
    S->write(In, 0, X.data(), elements * 4);
  }
  // Out[To .. To + 64] = 2 * In[From .. From + 64] + 1
  void launch(size_t From, const MemoryRef &Out, size_t To) {
    struct {
      uint64_t X, Y;
      int32_t N;
    } Block{In->Address + From * 4, Out->Address + To * 4, 64};
    Use Uses[] = {{&In, From * 4, From * 4 + 256, false},
                  {&Out, To * 4, To * 4 + 256, true}};
    Launch L{&Kernel,
             {1, 1, 1},
             {reinterpret_cast<const uint8_t *>(&Block), 20},
             {Uses, 2},
             {}};
    S->launch(L);
  }
  void expectScaled(const MemoryRef &Out, size_t Launches) {
    std::vector<float> Y(Launches * 64);
    S->read(Out, 0, Y.data(), Y.size() * 4);
    for (size_t I = 0; I < Y.size(); ++I)
      ASSERT_EQ(Y[I], 2 * static_cast<float>(source(I / 64) + I % 64) + 1) << I;
  }
  static size_t source(size_t Launch) { return Launch * 37 % (elements - 64); }

  static constexpr size_t elements = 4096;
  KernelRef Kernel;
  std::unique_ptr<Stream> S;
  MemoryRef In;
};

// Nobody waits, so each of them has arguments of its own.
TEST_F(FromBuffer, ManyLaunchesInFlight) {
  constexpr size_t launches = 20000;
  MemoryRef Out = memory(launches * 256);
  for (size_t I = 0; I < launches; ++I)
    launch(source(I), Out, I * 64);
  expectScaled(Out, launches);
}

// The ring that holds arguments begins again while the first ones are in use.
TEST_F(FromBuffer, TheRingWrapsAround) {
  constexpr size_t launches = 64, bytes = 4u << 20;
  std::vector<char> Data(bytes);
  MemoryRef Out = memory(launches * 256), Large = memory(bytes);
  for (size_t I = 0; I < launches; ++I) {
    launch(source(I), Out, I * 64);
    S->write(Large, 0, Data.data(), bytes - (I % 3) * 64);
  }
  expectScaled(Out, launches);
}

// A graph keeps its arguments, in as many pieces of memory as they take, as
// long as it is launched, also by another one.
TEST_F(FromBuffer, InGraphs) {
  constexpr size_t launches = 5000;
  MemoryRef Out = memory(launches * 256);
  std::shared_ptr<Graph> Inner, Outer;
  S->beginCapture();
  for (size_t I = 0; I < launches / 2; ++I)
    launch(source(I), Out, I * 64);
  Inner = S->endCapture();
  S->beginCapture();
  Inner->launch(*S);
  for (size_t I = launches / 2; I < launches; ++I)
    launch(source(I), Out, I * 64);
  Outer = S->endCapture();
  Inner = nullptr;
  for (int Turn = 0; Turn < 3; ++Turn) {
    S->fill(Out, 0, Out->Size, 0);
    Outer->launch(*S);
    launch(source(0), Out, 0);
    if (Turn == 2)
      Outer = nullptr; // what it holds is in use
    expectScaled(Out, launches);
  }
}

} // namespace
