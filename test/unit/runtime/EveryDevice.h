// EveryDevice.h: the fixture of tests that every device of the runtime takes.
// In: its name, as greta::Runtime takes it. Out: the device open as R, and
// closed at the end, when the validation layer, if it is on, has nothing to
// say. A device that is not there skips the test.
#ifndef GRETA_TEST_RUNTIME_EVERYDEVICE_H
#define GRETA_TEST_RUNTIME_EVERYDEVICE_H

#include "greta_runtime.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <string>

namespace greta_test {

class EveryDevice : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    try {
      R = std::make_unique<greta::Runtime>(GetParam());
    } catch (const greta::Error &E) {
      GTEST_SKIP() << E.what();
    }
  }
  void TearDown() override {
    if (R)
      R->close();
  }
  std::unique_ptr<greta::Runtime> R;
};

inline auto everyDevice() {
  return testing::Values("host", "vulkan", "sim:gfx942", "hip");
}

// A device's name in the name of a test: "sim" for sim:gfx942.
inline std::string deviceName(const testing::TestParamInfo<const char *> &I) {
  std::string Spec = I.param;
  return Spec.substr(0, Spec.find(':'));
}

} // namespace greta_test
#endif
