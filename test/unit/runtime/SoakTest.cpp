// SoakTest.cpp: a short soak of every device; SoakMain.cpp is the long one.
#include "Soak.h"
#include "EveryDevice.h"
#include "TestPackage.h"

#include <gtest/gtest.h>

using namespace greta_test;

class Soak : public EveryDevice {};

INSTANTIATE_TEST_SUITE_P(Devices, Soak, everyDevice(), deviceName);

TEST_P(Soak, MixedLaunchesAreRight) {
  SoakReport Report;
  EXPECT_NO_THROW(Report = soak(*R, packageOf(package()), {}));
  EXPECT_GE(Report.Launches, 2000u);
  EXPECT_GT(Report.Replays, 50u);
  EXPECT_GT(Report.Compared, 20u);
  EXPECT_EQ(R->memory().in_use, 0u);
}
