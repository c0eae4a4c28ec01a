// Main.cpp: runs the runtime's tests with a cache of their own and, where it is
// installed, the Vulkan validation layer.
#include "TestPackage.h"
#include "vulkan/Instance.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

// Drivers keep memory of their own until the process ends.
extern "C" const char *__lsan_default_suppressions() {
  return "leak:libvulkan\nleak:libLLVM\nleak:libamdhip64\nleak:libhsa-"
         "runtime64\nleak:libVkLayer\n";
}

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  // A cache of their own, but scripts/vulkan-drivers keeps its drivers.
  const char *Xdg = getenv("XDG_CACHE_HOME"), *Home = getenv("HOME");
  std::string Cache =
      Xdg && *Xdg ? Xdg : std::string(Home ? Home : "") + "/.cache";
  setenv("GRETA_CACHE", (Cache + "/greta").c_str(), 0);
  setenv("XDG_CACHE_HOME", greta_test::temporaryFolder().c_str(), 1);
  const char *Layer =
      "/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json";
  if (std::filesystem::exists(Layer) || getenv("VK_LAYER_PATH"))
    setenv("GRETA_VULKAN_VALIDATE", "1", 0);
  // The tests hold the runtime themselves, so nothing lies beside it.
  const char *Simulator = GRETA_TEST_LIBRARIES "/libgreta_hip_sim.so";
  if (std::filesystem::exists(Simulator))
    setenv("GRETA_HIP_SIM", Simulator, 0);
  // Also for races between streams and between ranks.
  setenv("GRETA_CHECK", "1", 1);
  setenv("GRETA_HIP_LIBRARY", GRETA_TEST_FAKE_HIP, 1);
  setenv("GRETA_NCCL_LIBRARY", GRETA_TEST_FAKE_NCCL, 1);
  setenv("GRETA_CUDA_LIBRARY", GRETA_TEST_FAKE_NCCL, 1);
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  // The leak checker can only tell whose leak it is while the driver is loaded;
  // an instance that is never closed keeps it.
  static auto *Kept = new std::shared_ptr<void>();
  try {
    *Kept = greta::rt::vulkan::Instance::get();
  } catch (const greta::rt::Error &) {
  }
#endif
#endif
  return RUN_ALL_TESTS();
}
