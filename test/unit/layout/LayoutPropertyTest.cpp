//===- LayoutPropertyTest.cpp - what holds for every layout ---------------===//
#include "RandomLayout.h"
#include "greta/Layout/Conversion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "gtest/gtest.h"
#include <set>

using namespace greta;
using namespace greta::test;

/// Failures name the layout.
#define TRACE(layout) SCOPED_TRACE((layout).str())

TEST(LayoutProperty, TextRoundTrip) {
  forEachLayout(1, 8, [](const Layout &layout, Random &) {
    TRACE(layout);
    ASSERT_EQ(layout.verify(), std::nullopt);
    std::string error;
    llvm::FailureOr<Layout> parsed = Layout::parse(layout.str(), error);
    ASSERT_TRUE(succeeded(parsed)) << error;
    EXPECT_EQ(parsed->str(), layout.str());
    EXPECT_TRUE(*parsed == layout);
    EXPECT_EQ(hash_value(*parsed), hash_value(layout));
  });
}

TEST(LayoutProperty, VerifyWantsTheWholeTile) {
  unsigned holes = 0;
  forEachLayout(2, 8, [&](const Layout &layout, Random &random) {
    TRACE(layout);
    // Without copies every basis is needed: dropping one either shrinks the
    // tile or leaves a hole.
    if (layout.freeRegisterBits() || layout.freeLaneBits() ||
        layout.freeWaveBits() || layout.reg().empty())
      return;
    Bases reg = layout.reg();
    reg.erase(reg.begin() + below(random, reg.size()));
    Layout less(reg, layout.lane(), layout.wave(), layout.rep());
    std::optional<std::string> problem = less.verify();
    ASSERT_EQ(problem.has_value(), less.tile() == layout.tile());
    holes += problem.has_value();
  });
  EXPECT_GT(holes, 10u);
}

TEST(LayoutProperty, OwnerIsRightInverse) {
  forEachLayout(3, 4, [](const Layout &layout, Random &) {
    TRACE(layout);
    uint32_t freeRegs = layout.freeRegisterBits();
    uint32_t freeLanes = layout.freeLaneBits();
    uint32_t freeWaves = layout.freeWaveBits();
    std::set<int64_t> all;
    int64_t elements = 1;
    for (int64_t extent : layout.shape())
      elements *= extent;
    forEachHolder(layout, [&](unsigned reg, unsigned lane, unsigned wave) {
      Index index = layout.index(reg, lane, wave);
      for (unsigned dim = 0; dim != layout.rank(); ++dim)
        ASSERT_TRUE(index[dim] >= 0 && index[dim] < layout.shape()[dim]);
      bool isOwner = (reg % layout.tileRegisters() & freeRegs) == 0 &&
                     (lane & freeLanes) == 0 && (wave & freeWaves) == 0;
      if (!isOwner)
        return;
      ASSERT_TRUE(all.insert(rowMajor(layout.shape(), index)).second)
          << "two owners of an element";
      ASSERT_EQ(layout.owner(index), (Holder{reg, lane, wave}));
    });
    ASSERT_EQ(int64_t(all.size()), elements);

    LinearMap inverse = layout.inverse();
    EXPECT_TRUE(layout.tileMap().compose(inverse) ==
                LinearMap::identity(inverse.numInputBits()));
  });
}

/// The index of the element with a row-major number.
static Index indexOf(llvm::ArrayRef<int64_t> shape, int64_t number) {
  Index index(shape.size());
  for (unsigned dim = shape.size(); dim-- != 0; number /= shape[dim])
    index[dim] = number % shape[dim];
  return index;
}

/// A random shape of `elements` elements: their prime factors in some order,
/// cut into dimensions, some of extent 1.
static Index randomShape(Random &random, int64_t elements) {
  Index factors;
  for (int64_t prime = 2; elements != 1; ++prime)
    for (; elements % prime == 0; elements /= prime)
      factors.push_back(prime);
  std::shuffle(factors.begin(), factors.end(), random);
  Index shape{1};
  for (int64_t factor : factors) {
    while (below(random, 3) == 0)
      shape.push_back(1);
    shape.back() *= factor;
  }
  return shape;
}

TEST(LayoutProperty, Reshape) {
  unsigned done = 0, refused = 0;
  forEachLayout(5, 4, [&](const Layout &layout, Random &random) {
    TRACE(layout);
    int64_t elements = 1;
    for (int64_t extent : layout.shape())
      elements *= extent;
    bool anyReshape = llvm::all_of(
        layout.rep(), [](int32_t count) { return llvm::isPowerOf2_32(count); });
    for (unsigned i = 0; i != 8; ++i) {
      Index shape = randomShape(random, elements);
      llvm::SmallVector<unsigned> map;
      std::optional<Layout> result = layout.reshape(shape, &map);
      if (!result) {
        ASSERT_FALSE(anyReshape);
        ++refused;
        continue;
      }
      ++done;
      ASSERT_EQ(result->verify(), std::nullopt);
      ASSERT_EQ(result->shape(), shape);
      ASSERT_EQ(map.size(), layout.numRegisters());
      forEachHolder(layout, [&](unsigned reg, unsigned lane, unsigned wave) {
        Index old = layout.index(map[reg], lane, wave);
        ASSERT_EQ(result->index(reg, lane, wave),
                  indexOf(shape, rowMajor(layout.shape(), old)));
      });
      std::optional<Layout> back = result->reshape(layout.shape());
      ASSERT_TRUE(back.has_value());
      EXPECT_TRUE(back->sameMap(layout));
    }
  });
  EXPECT_GT(done, 100u);
  EXPECT_GT(refused, 20u);
}

/// Along one dimension whatever divides, or is divided by, the tile.
TEST(LayoutProperty, ReshapeSplitsDimensions) {
  forEachLayout(5, 4, [&](const Layout &layout, Random &) {
    TRACE(layout);
    for (unsigned dim = 0; dim != layout.rank(); ++dim) {
      int64_t size = layout.shape()[dim], tile = layout.tile()[dim];
      for (int64_t inner = 1; inner <= size; ++inner) {
        if (size % inner || (inner % tile && tile % inner))
          continue;
        Index shape = layout.shape();
        shape[dim] /= inner;
        shape.insert(shape.begin() + dim + 1, inner);
        EXPECT_TRUE(layout.reshape(shape).has_value()) << inner;
      }
    }
  });
}

TEST(LayoutProperty, IndexSplitsForCodeGeneration) {
  forEachLayout(4, 4, [](const Layout &layout, Random &) {
    TRACE(layout);
    auto bits = layout.threadBits();
    forEachHolder(layout, [&](unsigned reg, unsigned lane, unsigned wave) {
      Index index = layout.index(reg, lane, wave);
      Index thread(layout.rank(), 0);
      for (const ThreadBit &bit : bits)
        if ((bit.isWave ? wave : lane) >> bit.bit & 1)
          for (unsigned dim = 0; dim != layout.rank(); ++dim)
            thread[dim] ^= bit.basis[dim];
      ASSERT_EQ(thread, layout.threadIndex(lane, wave));
      for (unsigned dim = 0; dim != layout.rank(); ++dim) {
        ASSERT_EQ(index[dim],
                  (thread[dim] ^ layout.registerTileIndex(reg)[dim]) +
                      layout.registerBase(reg)[dim]);
        if (layout.registersAdd(dim))
          ASSERT_EQ(index[dim], thread[dim] + layout.registerIndex(reg)[dim]);
      }
    });
  });
}

/// contiguity() by its definition.
static unsigned contiguityByDefinition(const Layout &layout, unsigned dim) {
  for (unsigned count = 1u << 20; count > 1; count /= 2) {
    bool holds = layout.numRegisters() % count == 0;
    for (unsigned wave = 0; holds && wave != layout.numWaves(); ++wave)
      for (unsigned lane = 0; holds && lane != layout.numLanes(); ++lane)
        for (unsigned reg = 0; holds && reg != layout.numRegisters(); ++reg) {
          Index first = layout.index(reg / count * count, lane, wave);
          holds = first[dim] % count == 0;
          first[dim] += reg % count;
          holds &= layout.index(reg, lane, wave) == first;
        }
    if (holds)
      return count;
  }
  return 1;
}

TEST(LayoutProperty, Contiguity) {
  unsigned wide = 0;
  auto check = [&](const Layout &layout) {
    TRACE(layout);
    for (unsigned dim = 0; dim != layout.rank(); ++dim) {
      unsigned count = contiguityByDefinition(layout, dim);
      ASSERT_EQ(layout.contiguity(dim), count);
      wide += count > 2;
    }
  };
  forEachLayout(5, 6, [&](const Layout &layout, Random &) { check(layout); });
  std::string error;
  for (Index shape : {Index{8, 160}, {8, 96}, {2, 208}, {1, 24}, {5, 12}})
    for (int64_t vector : {1, 2, 4, 8})
      for (unsigned fast : {0, 1}) {
        for (Index lanes : {Index{1, 2}, {1, 1}, {2, 4}}) {
          Index perThread = {1, 1};
          perThread[fast] = vector;
          auto layout = Layout::blocked(shape, perThread, lanes, {1, 1},
                                        {fast, 1 - fast}, error);
          if (succeeded(layout))
            check(*layout);
        }
      }
  EXPECT_GT(wide, 20u);
}

TEST(LayoutProperty, Collapse) {
  forEachLayout(6, 4, [](const Layout &layout, Random &) {
    TRACE(layout);
    for (unsigned dim = 0; dim != layout.rank(); ++dim) {
      llvm::SmallVector<unsigned> map;
      Layout flat = layout.collapse(dim, &map);
      ASSERT_EQ(flat.verify(), std::nullopt);
      ASSERT_EQ(flat.freeRegisterBits(), 0u);
      Index shape = layout.shape();
      shape[dim] = 1;
      ASSERT_EQ(flat.shape(), shape);
      ASSERT_EQ(map.size(), layout.numRegisters());
      ASSERT_EQ(std::set<unsigned>(map.begin(), map.end()).size(),
                flat.numRegisters());
      forEachHolder(layout, [&](unsigned reg, unsigned lane, unsigned wave) {
        Index index = layout.index(reg, lane, wave);
        index[dim] = 0;
        ASSERT_EQ(flat.index(map[reg], lane, wave), index);
      });
    }
  });
}

TEST(LayoutProperty, JoinAddsTheLowestRegisterBit) {
  forEachLayout(2, 4, [](const Layout &layout, Random &) {
    TRACE(layout);
    Layout both = layout.join();
    ASSERT_EQ(both.verify(), std::nullopt);
    ASSERT_EQ(both.numElements(), 2 * layout.numElements());
    ASSERT_EQ(both.numRegisters(), 2 * layout.numRegisters());
    forEachHolder(layout, [&](unsigned reg, unsigned lane, unsigned wave) {
      for (unsigned which : {0, 1}) {
        Index index = layout.index(reg, lane, wave);
        index.push_back(which);
        ASSERT_EQ(both.index(2 * reg + which, lane, wave), index);
      }
    });
  });
}

TEST(LayoutProperty, BitHoldersMakeTheIndex) {
  unsigned found = 0, none = 0;
  forEachLayout(4, 4, [&](const Layout &layout, Random &) {
    TRACE(layout);
    for (unsigned dim = 0; dim != layout.rank(); ++dim) {
      std::string error;
      auto holders = layout.bitHolders(dim, error);
      if (failed(holders)) {
        ASSERT_NE(error, "");
        ++none;
        continue;
      }
      ++found;
      ASSERT_EQ(int64_t(1) << holders->size(), layout.tile()[dim]);
      forEachHolder(layout, [&](unsigned reg, unsigned lane, unsigned wave) {
        int64_t index = 0;
        for (auto [place, holder] : llvm::enumerate(*holders)) {
          using Holder = Layout::BitHolder;
          unsigned id = holder.group == Holder::Register ? reg
                        : holder.group == Holder::Lane   ? lane
                                                         : wave;
          index |= int64_t(id >> holder.bit & 1) << place;
        }
        ASSERT_EQ(layout.index(reg, lane, wave)[dim] % layout.tile()[dim],
                  index);
      });
    }
  });
  EXPECT_GT(found, 100u);
  EXPECT_GT(none, 10u);
}

TEST(LayoutProperty, CoarsenDividesTheIndex) {
  using Held = std::set<std::vector<int64_t>>; // lane, wave, index
  unsigned coarser = 0;
  forEachLayout(8, 4, [&](const Layout &layout, Random &) {
    TRACE(layout);
    for (unsigned dim = 0; dim != layout.rank(); ++dim)
      for (int64_t factor = 2; layout.tile()[dim] % factor == 0; factor *= 2) {
        Layout coarse = layout.coarsen(dim, factor);
        ASSERT_EQ(coarse.verify(), std::nullopt);
        Index shape = layout.shape();
        shape[dim] /= factor;
        ASSERT_EQ(coarse.shape(), shape);
        ASSERT_LE(coarse.numRegisters(), layout.numRegisters());
        coarser += coarse.numRegisters() < layout.numRegisters();
        auto held = [](const Layout &of, unsigned along, int64_t divisor) {
          Held all;
          forEachHolder(of, [&](unsigned reg, unsigned lane, unsigned wave) {
            Index index = of.index(reg, lane, wave);
            index[along] /= divisor;
            std::vector<int64_t> entry = {lane, wave};
            entry.insert(entry.end(), index.begin(), index.end());
            all.insert(entry);
          });
          return all;
        };
        ASSERT_EQ(held(coarse, dim, 1), held(layout, dim, factor));
      }
  });
  EXPECT_GT(coarser, 20u);
}

TEST(LayoutProperty, WithTileAndPermuteKeepTheMap) {
  forEachLayout(7, 4, [](const Layout &layout, Random &random) {
    TRACE(layout);
    Index tile;
    for (unsigned dim = 0; dim != layout.rank(); ++dim) {
      int64_t rep = layout.rep()[dim], factor = rep & -rep;
      tile.push_back(layout.tile()[dim] * (below(random, 2) ? factor : 1));
    }
    llvm::SmallVector<unsigned> map;
    Layout tiled = layout.withTile(tile, &map);
    ASSERT_EQ(tiled.verify(), std::nullopt);
    ASSERT_EQ(tiled.tile(), llvm::ArrayRef<int64_t>(tile));
    ASSERT_EQ(tiled.numRegisters(), layout.numRegisters());
    bool sameNumbers = true;
    forEachHolder(tiled, [&](unsigned reg, unsigned lane, unsigned wave) {
      sameNumbers &= map[reg] == reg;
      ASSERT_EQ(tiled.index(reg, lane, wave),
                layout.index(map[reg], lane, wave));
    });
    if (sameNumbers)
      EXPECT_TRUE(tiled.sameMap(layout) && layout.sameMap(tiled));

    llvm::SmallVector<unsigned> order;
    for (unsigned dim = 0; dim != layout.rank(); ++dim)
      order.push_back(dim);
    std::shuffle(order.begin(), order.end(), random);
    Layout permuted = layout.permuteDims(order, &map);
    ASSERT_EQ(permuted.verify(), std::nullopt);
    forEachHolder(permuted, [&](unsigned reg, unsigned lane, unsigned wave) {
      Index index;
      for (unsigned dim : order)
        index.push_back(layout.index(map[reg], lane, wave)[dim]);
      ASSERT_EQ(permuted.index(reg, lane, wave), index);
    });
  });
}

TEST(LayoutProperty, ProductAndQuotient) {
  Random random(8);
  for (Index innerShape : {Index{16, 16}, {8, 4}, {1, 2}, {1, 1}})
    for (Index outerShape : {Index{3, 5}, {2, 13}, {2, 4}, {1, 1}})
      for (unsigned round = 0; round != 12; ++round) {
        RandomOptions options{round % 2 == 1, round % 4 > 1};
        Layout inner = randomLayout(random, innerShape, 3, 0, options);
        if (inner.numRepetitions() != 1)
          inner = inner.withTile(innerShape);
        Layout outer = randomLayout(random, outerShape, 1, 2, options);
        Layout both = Layout::product(inner, outer);
        TRACE(both);
        ASSERT_EQ(both.verify(), std::nullopt);
        ASSERT_EQ(both.quotient(inner), outer);
        unsigned innerRegs = inner.numRegisters();
        unsigned innerLanes = inner.numLanes();
        forEachHolder(both, [&](unsigned reg, unsigned lane, unsigned wave) {
          Index in = inner.index(reg % innerRegs, lane % innerLanes, 0);
          Index out = outer.index(reg / innerRegs, lane / innerLanes, wave);
          for (unsigned dim = 0; dim != 2; ++dim)
            in[dim] += out[dim] * innerShape[dim];
          ASSERT_EQ(both.index(reg, lane, wave), in);
        });
      }
}

TEST(LayoutProperty, QuotientRefuses) {
  std::string error;
  auto parse = [&](const char *text) { return *Layout::parse(text, error); };
  Layout layout =
      parse("{reg = [[0,1],[0,2]], lane = [[1,0],[0,4]], wave = [], "
            "rep = [1,3]}");
  EXPECT_TRUE(layout.quotient(
      parse("{reg = [[0,1]], lane = [[1,0]], wave = [], rep = [1,1]}")));
  // Other bits, too many bits, repetitions, another rank.
  for (const char *inner :
       {"{reg = [[1,0]], lane = [], wave = [], rep = [1,1]}",
        "{reg = [[0,1]], lane = [[1,0]], wave = [[0,2]], rep = [1,1]}",
        "{reg = [[0,1]], lane = [], wave = [], rep = [1,3]}",
        "{reg = [[0,1]], lane = [[0,2]], wave = [], rep = [1,1]}",
        "{reg = [[1]], lane = [], wave = [], rep = [1]}"})
    EXPECT_FALSE(layout.quotient(parse(inner)).has_value()) << inner;
  // An outer basis that moves inside the inner tile too.
  Layout crooked =
      parse("{reg = [[0,1],[0,5]], lane = [[0,2]], wave = [], rep = [1,1]}");
  EXPECT_FALSE(crooked.quotient(
      parse("{reg = [[0,1]], lane = [[0,2]], wave = [], rep = [1,1]}")));
}

TEST(LayoutProperty, WithTileKeepsNumbersWhenAllIsAbsorbed) {
  std::string error;
  Layout layout = *Layout::parse(
      "{reg = [[1,0]], lane = [[0,1]], wave = [], rep = [2,4]}", error);
  Layout tiled = layout.withTile({4, 8});
  EXPECT_EQ(tiled.str(), "{reg = [[1, 0], [0, 2], [0, 4], [2, 0]], lane = [[0, "
                         "1]], wave = [], rep = [1, 1]}");
  EXPECT_TRUE(tiled.sameMap(layout));
}

TEST(LayoutProperty, BlockedCoversTheShapeInOrder) {
  Random random(9);
  std::string error;
  unsigned made = 0, refused = 0;
  for (int64_t columns : {1, 2, 3, 5, 8, 96, 160, 208, 256})
    for (int64_t rows : {1, 3, 4, 16})
      for (unsigned round = 0; round != 12; ++round) {
        auto power = [&](unsigned limit) {
          return int64_t(1) << below(random, limit);
        };
        Index shape = {rows, columns};
        Index perThread = {power(2), power(4)};
        Index lanes = {power(3), power(4)}, waves = {power(2), power(2)};
        bool fits = true;
        for (unsigned dim : {0, 1}) {
          int64_t cover = perThread[dim] * lanes[dim] * waves[dim];
          fits &= shape[dim] <= cover || shape[dim] % cover == 0;
        }
        auto layout =
            Layout::blocked(shape, perThread, lanes, waves, {1, 0}, error);
        ASSERT_EQ(succeeded(layout), fits) << error;
        ++(fits ? made : refused);
        if (!fits)
          continue;
        TRACE(*layout);
        ASSERT_EQ(layout->shape(), shape);
        ASSERT_EQ(int64_t(layout->numLanes()), lanes[0] * lanes[1]);
        ASSERT_EQ(int64_t(layout->numWaves()), waves[0] * waves[1]);
        ASSERT_EQ(layout->freeRegisterBits(), 0u);
        // The vector a thread was asked to hold, unless the tile is narrower.
        int64_t vector = std::min(perThread[1], columns & -columns);
        ASSERT_GE(layout->contiguity(1), vector);
        for (unsigned lane = 0; lane != layout->numLanes(); ++lane) {
          Index wanted = {lane / lanes[1] * perThread[0] % layout->tile()[0],
                          lane % lanes[1] * perThread[1] % layout->tile()[1]};
          ASSERT_EQ(layout->threadIndex(lane, 0), wanted);
        }
      }
  EXPECT_GT(made, 100u);
  EXPECT_GT(refused, 20u);
}
