// ShardsTest.cpp: how many layers devices of unequal memory have: all layers
// together, each at least one, and none more than its memory says by a layer.
#include "model/Shards.h"

#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace greta::llm;

namespace {

using Layers = std::vector<int64_t>;

TEST(Shards, LayersAreAsMemoryIs) {
  EXPECT_EQ(layersByMemory(32, {24e9, 8e9}), (Layers{24, 8}));
  EXPECT_EQ(layersByMemory(32, {8e9, 16e9, 8e9}), (Layers{8, 16, 8}));
  // One does not say how much it has.
  EXPECT_EQ(layersByMemory(33, {24e9, 0, 8e9}), (Layers{11, 11, 11}));
  // Nobody has none.
  EXPECT_EQ(layersByMemory(4, {1, 80e9, 1}), (Layers{1, 2, 1}));
  EXPECT_EQ(layersByMemory(3, {80e9, 1, 1}), (Layers{1, 1, 1}));
}

TEST(Shards, AllLayersAreSomebodys) {
  std::mt19937 random(7);
  for (int turn = 0; turn < 2000; ++turn) {
    size_t count = 1 + random() % 8;
    auto layers = static_cast<int64_t>(count + random() % 90);
    std::vector<double> free;
    for (size_t i = 0; i < count; ++i)
      free.push_back(1 + random() % 100);
    double all = std::accumulate(free.begin(), free.end(), 0.0);
    Layers shares = layersByMemory(layers, free);
    ASSERT_EQ(shares.size(), count);
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), int64_t(0)),
              layers);
    for (size_t i = 0; i < count; ++i) {
      double fair = free[i] / all * static_cast<double>(layers);
      EXPECT_GE(shares[i], 1);
      // Others that would have none push it by one each.
      EXPECT_LE(static_cast<double>(shares[i]), std::max(fair + 1, 1.0));
      EXPECT_GE(static_cast<double>(shares[i]),
                fair - static_cast<double>(count));
    }
  }
}

} // namespace
