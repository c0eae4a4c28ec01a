// SoakTest.cpp: a short soak of every device; SoakMain.cpp is the long one.
#include "Soak.h"
#include "TestPackage.h"

#include <gtest/gtest.h>

using namespace greta_test;

namespace {
class Soak : public testing::TestWithParam<const char *> {};
} // namespace

INSTANTIATE_TEST_SUITE_P(Devices, Soak,
                         testing::Values("host", "vulkan", "sim:gfx942", "hip"),
                         [](const auto &Info) {
                           std::string Name = Info.param;
                           return Name.substr(0, Name.find(':'));
                         });

TEST_P(Soak, MixedLaunchesAreRight) {
  std::unique_ptr<greta::Runtime> R;
  try {
    R = std::make_unique<greta::Runtime>(GetParam());
  } catch (const greta::Error &E) {
    GTEST_SKIP() << E.what();
  }
  Bytes Data = package();
  SoakReport Report;
  EXPECT_NO_THROW(Report =
                      soak(*R, greta::Package(Data.data(), Data.size()), {}));
  EXPECT_GE(Report.Launches, 2000u);
  EXPECT_GT(Report.Replays, 50u);
  EXPECT_GT(Report.Compared, 20u);
  EXPECT_EQ(R->memory().in_use, 0u);
  R->close();
}
