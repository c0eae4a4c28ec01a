// VulkanDeviceTest.cpp: what the Vulkan backend does with a package: subgroup
// sizes, the family, what it refuses, and its cache of pipelines.
#include "OnDevice.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace greta_test;

namespace {

class VulkanDevice : public OnDevice {
protected:
  /// Loads the package with one value of a variant's manifest replaced.
  void expectRefused(const char *Where, const char *Value, greta_status Status,
                     const char *Says) {
    nlohmann::json M = manifest();
    M[nlohmann::json::json_pointer(std::string("/functions/0/variants/1") +
                                   Where)] = nlohmann::json::parse(Value);
    greta::Package P = packageOf(package(M));
    std::string Text = message([&] { Runtime->load(P, "scale"); }, Status);
    EXPECT_NE(Text.find(Says), std::string::npos) << Text;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, VulkanDevice, testing::Values("vulkan"));

// Exactly the subgroup sizes of the device run, and a kernel sees the size it
// was pinned to.
TEST_P(VulkanDevice, PinsSubgroupSizes) {
  nlohmann::json Info = nlohmann::json::parse(Runtime->info());
  unsigned Min = Info["subgroup_size"]["min"],
           Max = Info["subgroup_size"]["max"],
           Default = Info["subgroup_size"]["default"];
  greta::Stream S = Runtime->stream();
  greta::Buffer A = Runtime->allocate(1024), B = Runtime->allocate(1024);
  for (const auto &V :
       nlohmann::json::parse(Runtime->variants(*Package, "subgroup"))) {
    std::string Id = V["id"];
    unsigned Size = static_cast<unsigned>(std::stoul(Id.substr(2)));
    EXPECT_EQ(V["runnable"].get<bool>(), Size >= Min && Size <= Max)
        << Id << ": " << V["reason"];
    if (!V["runnable"].get<bool>())
      continue;
    greta::Function F = Runtime->load(*Package, "subgroup", Id);
    F.launch(S, {{&A, {1, 256}}}, {{&B, {1, 256}}});
    std::vector<float> Y(256);
    S.read(B, Y.data(), 1024);
    EXPECT_EQ(Y, std::vector<float>(256, static_cast<float>(Size)));
  }
  EXPECT_EQ(Runtime->load(*Package, "subgroup").variant(),
            "sg" + std::to_string(Default));
}

// The family comes before the subgroup size, and both before the order.
TEST_P(VulkanDevice, PrefersItsFamily) {
  auto Chosen =
      [&](std::vector<std::pair<const char *, const char *>> Variants) {
        nlohmann::json M = manifest();
        nlohmann::json One = M["functions"][0]["variants"][1];
        M["functions"][0]["variants"] = nlohmann::json::array();
        for (auto [Id, Target] : Variants) {
          One["id"] = Id;
          One["target"] = Target;
          M["functions"][0]["variants"].push_back(One);
        }
        return Runtime->load(packageOf(package(M)), "scale").variant();
      };
  std::string Name = nlohmann::json::parse(Runtime->info())["name"];
  if (Name.find("llvmpipe") == std::string::npos)
    GTEST_SKIP() << Name;
  EXPECT_EQ(Chosen({{"a", "vulkan:nvidia"}, {"b", "vulkan:portable"}}), "a");
  EXPECT_EQ(Chosen({{"a", "vulkan:nvidia"}, {"b", "vulkan:lavapipe"}}), "b");
  EXPECT_EQ(Chosen({{"a", "vulkan:lavapipe"}, {"b", "vulkan:lavapipe"}}), "a");
}

TEST_P(VulkanDevice, RefusesWhatItCannotRun) {
  const struct {
    const char *Where, *Value, *Says;
  } Cases[] = {
      {"/requires/features", "[\"shaderTelepathy\"]",
       "unknown feature shaderTelepathy"},
      {"/requires/telepathy", "1", "unknown requirement 'telepathy'"},
      {"/requires/shared_bytes", "1000000", "shared memory"},
      {"/kernels/0/lds_bytes", "1000000", "shared memory"},
      {"/requires/coopmat",
       R"([{"m": 3, "n": 3, "k": 3, "a": "f16", "b": "f16", "c": "f32", "result": "f32"}])",
       "cooperative matri"},
      {"/requires/subgroup_ops", "[\"basic\"]", "without a subgroup size"},
  };
  for (const auto &C : Cases)
    expectRefused(C.Where, C.Value, GRETA_ERROR_UNSUPPORTED, C.Says);
}

// The module is looked at before a driver sees it.
TEST_P(VulkanDevice, RefusesModulesThatDoNotFit) {
  const struct {
    const char *Where, *Value, *Says;
  } Cases[] = {
      {"/kernels/0/entry", "\"other\"", "no compute entry point 'other'"},
      {"/kernels/0/block", "[32, 1, 1]", "LocalSize is 64x1x1"},
      {"/kernels/0/file", "\"objects/host_scale.so\"", "not a SPIR-V module"},
  };
  for (const auto &C : Cases)
    expectRefused(C.Where, C.Value, GRETA_ERROR_BAD_PACKAGE, C.Says);
}

TEST_P(VulkanDevice, WritesAPipelineCache) {
  Runtime->load(*Package, "scale");
  Runtime->close();
  Runtime.reset();
  size_t Found = 0;
  for (const auto &Entry : std::filesystem::directory_iterator(
           std::string(getenv("XDG_CACHE_HOME")) + "/greta")) {
    if (Entry.path().filename().string().find("vulkan-pipelines") != 0)
      continue;
    ++Found;
    // A damaged cache is a miss.
    std::ofstream(Entry.path(), std::ios::binary | std::ios::app) << "damage";
  }
  EXPECT_GT(Found, 0u);
  Runtime = std::make_unique<greta::Runtime>("vulkan");
  greta::Stream S = Runtime->stream();
  scale(S, 3, 5);
}

} // namespace
