//===- RandomLayout.h - layouts for property tests --------------*- C++ -*-===//
//
// Random layouts of a given shape and thread count, from plain ones (every bit
// moves along one dimension) to mixed ones with copies, and loops over them.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TEST_UNIT_LAYOUT_RANDOMLAYOUT_H
#define GRETA_TEST_UNIT_LAYOUT_RANDOMLAYOUT_H

#include "greta/Layout/Layout.h"
#include <algorithm>
#include <random>
#include <vector>

namespace greta::test {

using Random = std::mt19937;

inline unsigned below(Random &random, unsigned limit) {
  return random() % limit;
}

struct RandomOptions {
  bool mixed = false;  ///< bases move along several dimensions
  bool copies = false; ///< registers, lanes or waves that depend on others
};

/// A layout of `shape` on 2^laneBits lanes in 2^waveBits waves. Lanes and waves
/// that the shape does not fill have zero bases, or dependent ones with
/// `copies`.
inline Layout randomLayout(Random &random, llvm::ArrayRef<int64_t> shape,
                           unsigned laneBits, unsigned waveBits,
                           RandomOptions options) {
  unsigned rank = shape.size();
  Basis rep;
  Bases bases;
  for (unsigned dim = 0; dim != rank; ++dim) {
    // Some of the shape's powers of two become the tile.
    int64_t tile = shape[dim] & -shape[dim];
    while (tile > 1 && below(random, 4) == 0)
      tile /= 2;
    rep.push_back(int32_t(shape[dim] / tile));
    for (int32_t entry = 1; entry < tile; entry *= 2) {
      bases.push_back(Basis(rank, 0));
      bases.back()[dim] = entry;
    }
  }
  std::shuffle(bases.begin(), bases.end(), random);
  auto addTo = [](Basis &to, const Basis &from) {
    for (unsigned dim = 0; dim != to.size(); ++dim)
      to[dim] ^= from[dim];
  };
  // Adding one basis to another keeps them independent.
  if (options.mixed)
    for (unsigned count = bases.size() < 2 ? 0 : below(random, 4); count;
         --count) {
      unsigned to = below(random, bases.size());
      unsigned from = below(random, bases.size());
      if (to != from)
        addTo(bases[to], bases[from]);
    }
  auto copy = [&] {
    Basis basis(rank, 0);
    if (options.copies && below(random, 2))
      for (const Basis &part : bases)
        if (below(random, 3) == 0)
          addTo(basis, part);
    return basis;
  };
  Bases reg, lane, wave;
  for (const Basis &basis : bases) {
    unsigned place = below(random, 3);
    if (place == 0 && lane.size() < laneBits)
      lane.push_back(basis);
    else if (place == 1 && wave.size() < waveBits)
      wave.push_back(basis);
    else
      reg.push_back(basis);
  }
  auto fill = [&](Bases &group, unsigned bits) {
    while (group.size() < bits)
      group.insert(group.begin() + below(random, group.size() + 1), copy());
  };
  fill(lane, laneBits);
  fill(wave, waveBits);
  if (options.copies && below(random, 4) == 0)
    fill(reg, reg.size() + 1);
  return Layout(reg, lane, wave, rep);
}

inline llvm::SmallVector<Index> testShapes() {
  return {{1},      {5},     {96},     {64},       {1, 32}, {3, 1},    {4, 160},
          {2, 208}, {16, 8}, {16, 16}, {2, 3, 16}, {6, 96}, {1, 1, 8}, {32, 5}};
}

/// Calls `check` for every register, lane and wave of a layout.
inline void
forEachHolder(const Layout &layout,
              llvm::function_ref<void(unsigned, unsigned, unsigned)> check) {
  for (unsigned wave = 0; wave != layout.numWaves(); ++wave)
    for (unsigned lane = 0; lane != layout.numLanes(); ++lane)
      for (unsigned reg = 0; reg != layout.numRegisters(); ++reg)
        check(reg, lane, wave);
}

/// Calls `check` for random layouts of all test shapes and options.
inline void
forEachLayout(unsigned seed, unsigned repeat,
              llvm::function_ref<void(const Layout &, Random &)> check) {
  Random random(seed);
  for (const Index &shape : testShapes())
    for (bool mixed : {false, true})
      for (bool copies : {false, true})
        for (unsigned round = 0; round != repeat; ++round) {
          unsigned laneBits = below(random, 5), waveBits = below(random, 3);
          check(
              randomLayout(random, shape, laneBits, waveBits, {mixed, copies}),
              random);
        }
}

/// The row-major number of an index.
inline int64_t rowMajor(llvm::ArrayRef<int64_t> shape,
                        llvm::ArrayRef<int64_t> index) {
  int64_t number = 0;
  for (unsigned dim = 0; dim != shape.size(); ++dim)
    number = number * shape[dim] + index[dim];
  return number;
}

/// The row-major numbers of the elements that all holders of a layout hold,
/// with the index taken as 0 in dimensions where `shape` is 1.
class Elements {
public:
  Elements(const Layout &layout, llvm::ArrayRef<int64_t> shape)
      : regs(layout.numRegisters()), lanes(layout.numLanes()),
        waves(layout.numWaves()) {
    forEachHolder(layout, [&](unsigned reg, unsigned lane, unsigned wave) {
      Index index = layout.index(reg, lane, wave);
      for (unsigned dim = 0; dim != layout.rank(); ++dim)
        if (shape[dim] == 1)
          index[dim] = 0;
      numbers.push_back(rowMajor(shape, index));
    });
  }
  int64_t operator()(unsigned reg, unsigned lane, unsigned wave) const {
    return numbers[(size_t(wave) * lanes + lane) * regs + reg];
  }
  const unsigned regs, lanes, waves;

private:
  std::vector<int64_t> numbers; ///< in forEachHolder's order
};

} // namespace greta::test

#endif // GRETA_TEST_UNIT_LAYOUT_RANDOMLAYOUT_H
