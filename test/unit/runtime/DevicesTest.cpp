// DevicesTest.cpp: what the runtime says without a device: the list of them,
// and calls with null handles.
#include "greta_runtime.hpp"

#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

namespace {

TEST(Devices, ListSaysWhatIsMissing) {
  auto All = nlohmann::json::parse(greta::Runtime::devices());
  std::map<std::string, bool> Kinds;
  for (const auto &D : All) {
    std::string Spec = D["spec"];
    Kinds[Spec.substr(0, Spec.find(':'))] = true;
    if (!D["available"].get<bool>()) {
      EXPECT_FALSE(D["reason"].get<std::string>().empty()) << Spec;
    }
  }
  EXPECT_EQ(Kinds.size(), 4u);
}

TEST(Devices, HandlesMayBeNull) {
  EXPECT_EQ(greta_buffer_create(nullptr, 4, nullptr),
            GRETA_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(greta_function_launch(nullptr, nullptr, nullptr, 0, nullptr, 0),
            GRETA_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(greta_package_open(nullptr, nullptr), GRETA_ERROR_INVALID_ARGUMENT);
  EXPECT_STRNE(greta_last_error(), "");
  greta_buffer_destroy(nullptr);
  greta_stream_destroy(nullptr);
  greta_event_destroy(nullptr);
  greta_graph_destroy(nullptr);
  greta_package_destroy(nullptr);
  greta_function_destroy(nullptr);
  EXPECT_EQ(greta_device_close(nullptr), GRETA_OK);
}

} // namespace
