// OnDevice.h: the fixture of tests of the C API and the C++ header on a device.
// In: its name. Out: the device open as Runtime, and the package of
// TestPackage.h. A device that is not there skips the test.
#ifndef GRETA_TEST_RUNTIME_ONDEVICE_H
#define GRETA_TEST_RUNTIME_ONDEVICE_H

#include "TestPackage.h"
#include "greta_runtime.hpp"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>

namespace greta_test {

// Why the device cannot be opened; "" when it can.
inline std::string missing(const std::string &Spec) {
  greta_device *D = nullptr;
  bool Open = greta_device_open(Spec.c_str(), &D) == GRETA_OK;
  std::string Why = Open ? "" : greta_last_error();
  greta_device_close(D);
  return Why;
}

inline std::string message(const std::function<void()> &F,
                           greta_status Status) {
  try {
    F();
  } catch (const greta::Error &E) {
    EXPECT_EQ(E.status(), Status) << E.what();
    return E.what();
  }
  ADD_FAILURE() << "nothing was wrong";
  return "";
}

// A device's name in the name of a test.
inline std::string nameOf(const std::string &Spec) {
  return Spec.substr(0, Spec.find(':'));
}

inline std::vector<float> ramp(size_t N) {
  std::vector<float> V(N);
  std::iota(V.begin(), V.end(), -3.0f);
  return V;
}

class OnDevice : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    std::string Why = missing(GetParam());
    if (!Why.empty())
      GTEST_SKIP() << Why;
    Runtime = std::make_unique<greta::Runtime>(GetParam());
    Bytes Data = package();
    Package = std::make_unique<greta::Package>(Data.data(), Data.size());
  }
  // Messages of the validation layer at the end count, too.
  void TearDown() override {
    if (Runtime) {
      EXPECT_NO_THROW(Runtime->close());
    }
  }
  static std::string Spec() { return GetParam(); }
  // scale(x) for an m x n ramp.
  void scale(greta::Stream &S, int64_t M, int64_t N) {
    greta::Function F = Runtime->load(*Package, "scale");
    std::vector<float> X = ramp(static_cast<size_t>(M * N)), Y(X.size(), NAN);
    greta::Buffer XB = Runtime->allocate(X.size() * 4),
                  YB = Runtime->allocate(X.size() * 4);
    S.write(XB, X.data(), X.size() * 4);
    greta::Tensor XT{&XB, {M, N}}, YT{&YB, {M, N}};
    auto [Shape, Size] = F.resultShape(0, {XT});
    EXPECT_EQ(Shape, (std::vector<int64_t>{M, N}));
    EXPECT_EQ(Size, X.size() * 4);
    F.launch(S, {XT}, {YT});
    S.read(YB, Y.data(), Y.size() * 4);
    for (size_t I = 0; I < X.size(); ++I)
      ASSERT_EQ(Y[I], 2 * X[I] + 1) << I;
  }
  std::unique_ptr<greta::Runtime> Runtime;
  std::unique_ptr<greta::Package> Package;
};

} // namespace greta_test
#endif
