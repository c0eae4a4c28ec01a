// PipelinesTest.cpp: kernels whose modules differ in names alone share a
// pipeline.
#include "vulkan/Pipelines.h"
#include "AnyVulkan.h"
#include "Error.h"
#include "TestPackage.h"
#include "vulkan/Device.h"

#include <algorithm>
#include <atomic>
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
  std::vector<uint32_t> Changed = wordsOf(Other);
  auto Lanes = std::find(Changed.begin() + 5, Changed.end(), 64u);
  ASSERT_NE(Lanes, Changed.end());
  *Lanes = 32;
  EXPECT_NE(Key, withoutNames(Changed));
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

TEST_F(Pipelines, OfALostDeviceAreNotShared) {
  PipelineRef First = load("scale");
  C->IsLost = true;
  EXPECT_THROW(load("other"), greta::rt::Error);
  C->IsLost = false;
  EXPECT_EQ(First, load("other"));
}

// A thread that cannot make one leaves nothing behind for the next.
TEST_F(Pipelines, AreMadeAgainWhereTheFirstFailed) {
  PipelineTable Table;
  PipelineRef Good = load("scale");
  EXPECT_THROW(Table.get({1},
                         []() -> PipelineRef {
                           throw greta::rt::Error(GRETA_ERROR_INTERNAL, "no");
                         }),
               greta::rt::Error);
  EXPECT_EQ(Table.get({1}, [&] { return Good; }), Good);
}

// Threads load and drop kernels of several keys, so that entries go meanwhile.
TEST_F(Pipelines, ComeAndGoInManyThreads) {
  PipelineTable Table;
  std::atomic<int> Wrong{0};
  const PipelineRef Known[] = {load("scale"), load("scale", true)};
  std::vector<std::thread> Threads;
  for (uint32_t T = 0; T < 4; ++T)
    Threads.emplace_back([&, T] {
      for (uint32_t I = 0; I < 500; ++I) {
        uint32_t Key = (I * 7 + T) % 20;
        VulkanPipeline *Its = Known[Key % std::size(Known)].get();
        // As if it was this one, but it goes when nobody holds it.
        auto Make = [&] { return PipelineRef(std::make_shared<int>(), Its); };
        Wrong += Table.get({Key}, Make).get() != Its;
      }
    });
  for (std::thread &One : Threads)
    One.join();
  EXPECT_EQ(Wrong, 0);
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
