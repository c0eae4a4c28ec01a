// PipelinesTest.cpp: kernels whose modules differ in names alone share a
// pipeline.
#include "vulkan/Pipelines.h"
#include "AnyVulkan.h"
#include "TestPackage.h"
#include "vulkan/Device.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

using namespace greta::rt;
using namespace greta::rt::vulkan;
using namespace greta_test;

namespace {

KernelDecl declOf(const std::string &Entry) {
  KernelDecl K;
  K.File = "objects/scale.spv";
  K.Entry = Entry;
  K.Block = {64, 1, 1};
  K.Args.resize(3);
  K.Args[2].Which = KernelArg::I32;
  return K;
}

// The module with `To` in place of each `From`, which has as many letters.
Bytes renamed(Bytes Module, const std::string &From, const std::string &To) {
  auto At = Module.begin();
  while ((At = std::search(At, Module.end(), From.begin(), From.end())) !=
         Module.end())
    At = std::copy(To.begin(), To.end(), At);
  return Module;
}

std::vector<uint32_t> wordsOf(const Bytes &Module) {
  std::vector<uint32_t> Words(Module.size() / 4);
  memcpy(Words.data(), Module.data(), Module.size());
  return Words;
}

TEST(PipelineKey, HasNoNames) {
  Bytes Module = fixture("scale.spv");
  Bytes Other = renamed(Module, "scale", "other");
  ASSERT_NE(Module, Other);
  std::vector<uint32_t> Key = withoutNames(wordsOf(Module));
  EXPECT_EQ(Key, withoutNames(wordsOf(Other)));
  EXPECT_LT(Key.size(), Module.size() / 4);
  Other.back() ^= 1;
  EXPECT_NE(Key, withoutNames(wordsOf(Other)));
}

class Pipelines : public AnyVulkan {
protected:
  PipelineRef load(const std::string &Entry, bool CaptureStatistics = false) {
    Variant V;
    V.Requires.Features = {"bufferDeviceAddress"};
    Bytes Module = renamed(fixture("scale.spv"), "scale", Entry);
    KernelRef Loaded = VulkanDevice(C, 0).loadKernel(V, declOf(Entry), Module,
                                                     CaptureStatistics);
    return static_cast<VulkanKernel &>(*Loaded).Pipeline;
  }
};

TEST_F(Pipelines, AreSharedAsLongAsOneIsHeld) {
  PipelineRef First = load("scale");
  EXPECT_EQ(First, load("other"));
  EXPECT_NE(First, load("other", /*CaptureStatistics=*/true));
  std::weak_ptr<VulkanPipeline> Old = First;
  First.reset();
  EXPECT_TRUE(Old.expired());
  EXPECT_TRUE(load("other"));
}

TEST_F(Pipelines, ThreadsThatAskAtATimeGetOne) {
  std::vector<PipelineRef> Found(8);
  std::vector<std::thread> Threads;
  for (PipelineRef &One : Found)
    Threads.emplace_back([&] { One = load("scale"); });
  for (std::thread &One : Threads)
    One.join();
  for (const PipelineRef &One : Found)
    EXPECT_EQ(One, Found[0]);
}

} // namespace
