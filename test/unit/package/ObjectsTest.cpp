//===- ObjectsTest.cpp - the runtime takes what the compiler writes -------===//
//
// The runtime shows a driver only objects that it has checked, and its checks
// know only what the compiler writes. Here every object of some packages is
// checked, for every family of Vulkan devices and for AMD chips of each kind,
// also those that no machine here has.
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "Package.h"
#include "hip/CodeObject.h"
#include "vulkan/ModuleCheck.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

using namespace greta::rt;

namespace {

class Objects : public testing::TestWithParam<const char *> {};

INSTANTIATE_TEST_SUITE_P(
    Sources, Objects,
    testing::Values("examples/matmul.mlir", "examples/residual_rms_norm.mlir",
                    "examples/rope_qk.mlir",
                    "test/lit/pipeline/skinny-gemms.mlir",
                    "test/lit/pipeline/transposed-bytes.mlir"),
    [](const auto &info) {
      return std::filesystem::path(info.param).stem().string().substr(0, 6);
    });

TEST_P(Objects, AreTaken) {
  std::string path =
      testing::TempDir() + "/objects-" + std::to_string(getpid()) + ".greta";
  std::string command = std::string(GRETA_TEST_TRANSLATE) +
                        " --greta-to-package "
                        "--targets=vulkan,gfx90a,gfx942,gfx950,gfx1030,gfx1100,"
                        "gfx1201 " GRETA_TEST_SOURCE "/" +
                        GetParam() + " -o " + path;
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  std::shared_ptr<const Package> package = openPackage(path);
  std::filesystem::remove(path);
  size_t modules = 0, codeObjects = 0;
  for (const FunctionDecl &function : package->Functions)
    for (const Variant &variant : function.Variants)
      for (const KernelDecl &kernel : variant.Kernels) {
        const std::vector<uint8_t> &object = package->Objects.at(kernel.File);
        bool isModule = variant.Backend == "vulkan";
        ++(isModule ? modules : codeObjects);
        try {
          if (isModule)
            vulkan::checkModule(object, kernel, variant.Requires);
          else
            hip::checkCodeObject(object, kernel, variant.Requires.Arch);
        } catch (const Error &error) {
          ADD_FAILURE() << variant.Id << ": " << error.what();
        }
      }
  EXPECT_GE(modules, 3u);
  EXPECT_GE(codeObjects, 6u);
}

} // namespace
