// AnyVulkan.h: the fixture of tests of the Vulkan backend's inside: the first
// device that the runtime takes, open as C, whose functions and limits a test
// may replace. Without one the test is skipped, and C is null.
#ifndef GRETA_TEST_RUNTIME_ANYVULKAN_H
#define GRETA_TEST_RUNTIME_ANYVULKAN_H

#include "Error.h"
#include "vulkan/StreamState.h"

#include <gtest/gtest.h>
#include <memory>

namespace greta_test {

class AnyVulkan : public testing::Test {
protected:
  void SetUp() override {
    try {
      Inst = greta::rt::vulkan::Instance::get();
      for (auto &P : physicalDevices(*Inst))
        if (P.Refused.empty() && !C)
          C = std::make_shared<greta::rt::vulkan::Core>(Inst, P);
    } catch (const greta::rt::Error &E) {
      GTEST_SKIP() << E.what();
    }
    if (!C)
      GTEST_SKIP() << "no Vulkan device";
  }
  greta::rt::MemoryRef memory(size_t Bytes) {
    return std::make_shared<greta::rt::vulkan::VulkanMemory>(C, Bytes, false);
  }
  std::shared_ptr<greta::rt::vulkan::Instance> Inst;
  greta::rt::vulkan::CoreRef C;
};

} // namespace greta_test
#endif
