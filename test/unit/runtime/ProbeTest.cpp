// ProbeTest.cpp: the modules that read cooperative-matrix layouts are valid
// SPIR-V for every matrix type, also those that no driver here has (bf16).
// Testing's spirv-val knows the extensions; without it the test is skipped.
#include "TestPackage.h"
#include "vulkan/ProbeModule.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

using namespace greta::rt::vulkan;

namespace {

const std::string Drivers = GRETA_TEST_SOURCE "/scripts/vulkan-drivers";

TEST(ProbeModule, IsValidForEveryMatrix) {
  if (std::system((Drivers + " status 2>/dev/null | grep -q lavapipe").c_str()))
    GTEST_SKIP() << "scripts/vulkan-drivers has no spirv-val";
  for (const char *DType : {"f16", "f32", "bf16", "i8", "u8", "i32", "u32"})
    for (const char *Use : {"a", "b", "acc"}) {
      ASSERT_TRUE(canProbe(DType));
      std::vector<uint32_t> Words =
          probeModule({Use, DType, 16, 8}, /*Lanes=*/32, /*Stride=*/128);
      std::string Path =
          greta_test::temporaryFolder() + "/" + DType + Use + ".spv";
      std::ofstream(Path, std::ios::binary)
          .write(reinterpret_cast<const char *>(Words.data()),
                 static_cast<std::streamsize>(Words.size() * 4));
      std::string Command = Drivers +
                            " tool spirv-val --target-env vulkan1.3 " + Path +
                            " > " + Path + ".log 2>&1";
      int Status = std::system(Command.c_str());
      std::ifstream Log(Path + ".log");
      EXPECT_EQ(Status, 0) << Use << " " << DType << ": "
                           << std::string(std::istreambuf_iterator<char>(Log),
                                          {});
    }
}

TEST(ProbeModule, KnowsItsTypes) {
  for (const char *DType : {"f64", "i4", "f8e4m3fn", ""})
    EXPECT_FALSE(canProbe(DType));
}

} // namespace
