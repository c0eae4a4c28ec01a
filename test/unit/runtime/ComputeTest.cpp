// ComputeTest.cpp: functions by name and shape.
#include "TestPackage.h"
#include "greta_runtime.hpp"

#include <gtest/gtest.h>
#include <regex>

using namespace greta_test;

namespace {

TEST(Compute, CallsByName) {
  greta::Runtime R("host");
  greta::Package P = packageOf(package());
  greta::Compute C(R, P);
  greta::Stream S = R.stream();
  greta::Buffer A = R.allocate(64), B = R.allocate(64);
  S.fill(A, 64, 0x40000000); // 2.0f
  C.call(S, "scale", {{&A, {1, 16}}}, {{&B, {1, 16}}});
  std::vector<float> Y(16);
  S.read(B, Y.data(), 64);
  EXPECT_EQ(Y, std::vector<float>(16, 5.0f));
  try {
    C.gemm(S, {&A, {1, 16}}, {&A, {1, 16}}, {&B, {1, 16}});
    ADD_FAILURE() << "nothing was wrong";
  } catch (const greta::Error &E) {
    EXPECT_EQ(E.status(), GRETA_ERROR_NOT_FOUND);
  }
}

// Takes the one with these shapes of two whose names begin so.
TEST(Compute, FindsByShape) {
  nlohmann::json M = manifest();
  std::string Scale = M["functions"][0].dump();
  M["functions"] = nlohmann::json::array();
  for (const char *Rows : {"8", "16"}) { // in place of the symbol m
    auto F = nlohmann::json::parse(
        std::regex_replace(Scale, std::regex("\"m\""), Rows));
    F["symbols"].erase(0);
    F["name"] = std::string("scale_") + Rows;
    M["functions"].push_back(F);
  }
  greta::Package P = packageOf(package(M));
  auto Found = [&](const char *Name, const std::vector<int64_t> &Shape) {
    greta::Tensor T(nullptr, Shape);
    greta_tensor Raw = T.raw();
    const char *Function = nullptr;
    return greta_package_find(P.get(), Name, &Raw, 1, &Function) == GRETA_OK
               ? std::string(Function)
               : greta_last_error();
  };
  EXPECT_EQ(Found("scale", {16, 5}), "scale_16");
  EXPECT_EQ(Found("scale", {8, 5}), "scale_8");
  EXPECT_EQ(Found("scale_8", {16, 5}), "scale_8"); // its launch says the rest
  for (std::vector<int64_t> Shape : {std::vector<int64_t>{4, 5}, {8}})
    EXPECT_EQ(Found("scale", Shape),
              "the package has no function 'scale', and none whose name begins "
              "with it for these shapes");
}

} // namespace
