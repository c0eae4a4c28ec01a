//===- SharedMemoryTest.cpp - placements, followed through a memory -------===//
#include "greta/Layout/SharedMemory.h"
#include "RandomLayout.h"
#include "gtest/gtest.h"
#include <map>
#include <set>

using namespace greta;
using namespace greta::test;

static Layout layoutOf(llvm::StringRef text) {
  std::string error;
  return *Layout::parse(text, error);
}

static Layout blocked(llvm::ArrayRef<int64_t> shape,
                      llvm::ArrayRef<int64_t> perThread,
                      llvm::ArrayRef<int64_t> lanes,
                      llvm::ArrayRef<int64_t> waves,
                      llvm::ArrayRef<unsigned> order) {
  std::string error;
  auto layout = Layout::blocked(shape, perThread, lanes, waves, order, error);
  EXPECT_TRUE(succeeded(layout)) << error;
  return *layout;
}

/// Stores from src by its owners and loads into dst, access by access.
static void checkTrip(const SharedPlacement &placement, const Layout &src,
                      const Layout &dst) {
  int64_t bytes = placement.elementBytes;
  std::map<int64_t, Index> memory;
  auto access = [&](const Layout &layout, bool store) {
    unsigned width = placement.accessWidth(layout);
    ASSERT_EQ(layout.numRegisters() % width, 0u);
    forEachHolder(layout, [&](unsigned reg, unsigned lane, unsigned wave) {
      bool copy = (reg % layout.tileRegisters() & layout.freeRegisterBits()) ||
                  (lane & layout.freeLaneBits()) ||
                  (wave & layout.freeWaveBits());
      if (store && copy)
        return;
      // The address is computed for the access's first register only.
      int64_t start =
          placement.offset(layout.index(reg / width * width, lane, wave));
      ASSERT_EQ(start % (width * bytes), 0);
      int64_t place = start + reg % width * bytes;
      ASSERT_TRUE(place >= 0 && place + bytes <= placement.sizeInBytes());
      Index index = layout.index(reg, lane, wave);
      if (store)
        ASSERT_TRUE(memory.insert({place, index}).second);
      else
        ASSERT_EQ(memory.at(place), index);
    });
  };
  access(src, true);
  access(dst, false);
}

TEST(SharedMemory, EveryElementSurvivesTheTrip) {
  Random random(30);
  unsigned swizzled = 0, padded = 0;
  auto check = [&](const Layout &src, const Layout &dst, unsigned bytes) {
    SCOPED_TRACE(src.str() + " -> " + dst.str());
    std::string error;
    auto placement = chooseSharedPlacement(src, dst, bytes, 1 << 16, error);
    ASSERT_TRUE(succeeded(placement)) << error;
    swizzled += placement->phases > 1;
    padded += placement->rowStride != src.shape()[placement->rowDim];
    checkTrip(*placement, src, dst);
  };
  for (const Index &shape : testShapes())
    for (bool mixed : {false, true})
      for (unsigned round = 0; round != 8; ++round) {
        RandomOptions options{mixed, round % 2 == 1};
        unsigned bytes = 1u << round % 3;
        check(randomLayout(random, shape, 3, 1, options),
              randomLayout(random, shape, 3, 1, options), bytes);
      }
  for (int64_t rows : {32, 64, 96})
    for (int64_t columns : {32, 64, 160})
      for (unsigned bytes : {1, 2, 4})
        check(blocked({rows, columns}, {1, 4}, {4, 8}, {1, 1}, {1, 0}),
              blocked({rows, columns}, {4, 1}, {8, 4}, {1, 1}, {0, 1}), bytes);
  EXPECT_GT(swizzled, 5u);
  EXPECT_GT(padded, 5u);
}

TEST(SharedMemory, CountsTheWordsOfABank) {
  // 32 lanes down a column of f32: gcd(stride, 32) of them share a bank.
  Layout column = blocked({32, 1}, {1, 1}, {32, 1}, {1, 1}, {0, 1});
  for (int64_t stride : {1, 2, 3, 4, 8, 12, 32, 33, 48, 160, 208}) {
    SharedPlacement placement;
    placement.shape = {32, 1};
    placement.rowDim = 1;
    placement.elementBytes = 4;
    placement.rowStride = stride;
    int64_t same = std::min<int64_t>(stride & -stride, 32);
    BankCost cost = countBankCycles(placement, column, SharedAccess::Load);
    EXPECT_EQ(cost.groups, 1);
    EXPECT_EQ(cost.cycles, same) << stride;
  }
  // Lanes of one word share it, and only one copy is stored.
  Layout copies =
      layoutOf("{reg = [], lane = [[0],[0],[1],[0],[2]], wave = [[0]], "
               "rep = [1]}");
  SharedPlacement small;
  small.shape = {4};
  small.elementBytes = 1;
  small.rowStride = 4;
  EXPECT_EQ(countBankCycles(small, copies, SharedAccess::Load).cycles, 2);
  EXPECT_EQ(countBankCycles(small, copies, SharedAccess::Store).cycles, 1);
  // A group of lanes that are all copies takes no time to store.
  Layout halves =
      layoutOf("{reg = [], lane = [[1],[2],[4],[8],[16],[0]], wave = "
               "[], rep = [1]}");
  SharedPlacement line;
  line.shape = {32};
  line.elementBytes = 4;
  line.rowStride = 32;
  EXPECT_EQ(countBankCycles(line, halves, SharedAccess::Load).groups, 2);
  EXPECT_EQ(countBankCycles(line, halves, SharedAccess::Store).groups, 1);
  // 16 bytes a lane: 8 lanes fill the banks, so 32 lanes take 4 groups.
  Layout wide = blocked({1, 128}, {1, 4}, {1, 32}, {1, 1}, {1, 0});
  SharedPlacement row;
  row.shape = {1, 128};
  row.rowDim = 1;
  row.elementBytes = 4;
  row.rowStride = 128;
  BankCost cost = countBankCycles(row, wide, SharedAccess::Load);
  EXPECT_EQ(cost.groups, 4);
  EXPECT_EQ(cost.conflicts(), 0);
}

TEST(SharedMemory, AccessWidth) {
  Layout layout = blocked({4, 64}, {1, 32}, {4, 2}, {1, 1}, {1, 0});
  SharedPlacement placement;
  placement.shape = {4, 64};
  placement.rowDim = 1;
  placement.elementBytes = 2;
  placement.rowStride = 64;
  EXPECT_EQ(placement.accessWidth(layout), 8u); // 16 bytes
  placement.rowStride = 66;
  EXPECT_EQ(placement.accessWidth(layout), 2u); // alignment of the second row
  placement.rowStride = 64;
  placement.phases = 4;
  placement.vector = 4;
  EXPECT_EQ(placement.accessWidth(layout),
            4u); // what the swizzle keeps together
  checkTrip(placement, layout, layout);
}

TEST(SharedMemory, TransposeWithoutConflicts) {
  auto check = [](const Layout &columns, int64_t plainCycles, int64_t phases) {
    SCOPED_TRACE(columns.str());
    Layout rows = blocked({32, 32}, {1, 1}, {1, 32}, {1, 1}, {1, 0});
    SharedPlacement plain;
    plain.shape = {32, 32};
    plain.rowDim = 1;
    plain.elementBytes = 4;
    plain.rowStride = 32;
    EXPECT_EQ(countBankCycles(plain, columns, SharedAccess::Load).cycles,
              plainCycles);
    std::string error;
    SharedPlacement chosen =
        *chooseSharedPlacement(rows, columns, 4, 4096, error);
    EXPECT_EQ(chosen.phases, phases);
    EXPECT_EQ(chosen.sizeInBytes(), 4096);
    for (auto [layout, access] : {std::pair(rows, SharedAccess::Store),
                                  std::pair(columns, SharedAccess::Load)})
      EXPECT_EQ(countBankCycles(chosen, layout, access).conflicts(), 0);
  };
  // A lane has a row of 4-byte elements: one at a time, all 32 lanes want the
  // same bank; four at a time, all 8 lanes of a group want the same four. In
  // the first case the other side is stored four at a time, down the columns.
  check(layoutOf("{reg = [[0,16],[0,8],[0,4],[0,2],[0,1]], lane = "
                 "[[1,0],[2,0],[4,0],[8,0],[16,0]], wave = [], rep = [1,1]}"),
        32 * 32, 8);
  check(blocked({32, 32}, {1, 32}, {32, 1}, {1, 1}, {0, 1}), 8 * 4 * 8, 8);
}

TEST(SharedMemory, NeverWorseThanThePlainRows) {
  for (Index shape : {Index{64, 64}, {160, 32}, {32, 208}, {96, 96}})
    for (unsigned bytes : {2, 4})
      for (unsigned round = 0; round != 3; ++round) {
        Layout src =
            blocked(shape, {1, int64_t(2) << round}, {16, 2}, {1, 1}, {1, 0});
        Layout dst = blocked(shape, {4, 1}, {4, 8}, {1, 1}, {0, 1});
        SharedPlacement plain;
        plain.shape = shape;
        plain.rowDim = 1;
        plain.elementBytes = bytes;
        plain.rowStride = shape[1];
        std::string error;
        SharedPlacement chosen =
            *chooseSharedPlacement(src, dst, bytes, 1 << 16, error);
        auto cycles = [&](const SharedPlacement &placement) {
          return countBankCycles(placement, src, SharedAccess::Store).cycles +
                 countBankCycles(placement, dst, SharedAccess::Load).cycles;
        };
        EXPECT_LE(cycles(chosen), cycles(plain)) << src.str();
      }
}

TEST(SharedMemory, TooLarge) {
  Layout layout = blocked({64, 64}, {1, 1}, {1, 32}, {1, 1}, {1, 0});
  std::string error;
  EXPECT_TRUE(failed(chooseSharedPlacement(layout, layout, 4, 16383, error)));
  EXPECT_EQ(error,
            "changing the layout through shared memory needs 16384 bytes "
            "of it, the limit is 16383; use a smaller block");
}

TEST(SharedMemory, ThreadsFillPlacesInOrder) {
  unsigned filled = 0;
  auto check = [&](const SharedPlacement &placement, unsigned perThread,
                   unsigned waves) {
    std::optional<Layout> layout =
        fillingLayout(placement, perThread, 64, waves);
    if (!layout)
      return;
    ++filled;
    ASSERT_EQ(layout->verify(), std::nullopt);
    ASSERT_EQ(layout->shape(), placement.shape);
    // A register and its neighbours of all threads are one run.
    forEachHolder(*layout, [&](unsigned reg, unsigned lane, unsigned wave) {
      int64_t turn = int64_t(reg / perThread) * perThread * 64 * waves;
      int64_t place = turn + (wave * 64 + lane) * perThread + reg % perThread;
      ASSERT_EQ(placement.offset(layout->index(reg, lane, wave)), 2 * place);
    });
  };
  for (int64_t length : {16, 64, 128})
    for (int64_t rows : {16, 64, 96, 256})
      for (unsigned rowDim : {0u, 1u})
        for (int64_t phases : {1, 2, 8})
          for (int64_t rowsPerPhase : {1, 2}) {
            SharedPlacement placement;
            placement.shape = {rows, rows};
            placement.shape[rowDim] = length;
            placement.rowDim = rowDim;
            placement.elementBytes = 2;
            placement.rowStride = length;
            placement.vector = phases > 1 ? 8 : 1;
            placement.phases = phases;
            placement.rowsPerPhase = rowsPerPhase;
            if (placement.vector * phases > length)
              continue;
            for (unsigned waves : {1u, 4u, 8u})
              for (unsigned perThread : {2u, 8u})
                check(placement, perThread, waves);
          }
  EXPECT_GT(filled, 100u);
}

TEST(SharedMemory, ThreadsFillBatchesInOrder) {
  unsigned filled = 0;
  for (int64_t rows : {4, 32, 96})
    for (unsigned rowDim : {1u, 2u})
      for (int64_t phases : {1, 8}) {
        SharedPlacement placement;
        placement.shape = {4, rows, rows};
        placement.shape[rowDim] = 64;
        placement.rowDim = rowDim;
        placement.elementBytes = 2;
        placement.rowStride = 64;
        placement.vector = 8;
        placement.phases = phases;
        std::optional<Layout> layout = fillingLayout(placement, 8, 64, 2);
        if (!layout)
          continue;
        ++filled;
        ASSERT_EQ(layout->verify(), std::nullopt);
        ASSERT_EQ(layout->shape(), placement.shape);
        // A turn's threads have one run of places, wherever the turn is.
        forEachHolder(*layout, [&](unsigned reg, unsigned lane, unsigned wave) {
          int64_t first = placement.offset(layout->index(reg / 8 * 8, 0, 0));
          int64_t place = (wave * 64 + lane) * 8 + reg % 8;
          ASSERT_EQ(placement.offset(layout->index(reg, lane, wave)),
                    first + 2 * place);
        });
      }
  EXPECT_EQ(filled, 12u);
}

TEST(SharedMemory, SwizzlesOfParts) {
  SharedPlacement placement;
  placement.shape = {4, 96, 64};
  placement.rowDim = 2;
  placement.vector = 8;
  placement.phases = 8;
  EXPECT_EQ(placement.numRows(), 384);
  EXPECT_EQ(placement.rowsBetween(0), 96);
  EXPECT_EQ(placement.rowsBetween(1), 1);
  EXPECT_EQ(placement.rowOf({3, 5, 7}), 293);
  EXPECT_TRUE(placement.isSwizzleOfParts());
  placement.shape = {4, 4, 64}; // a phase is of both
  EXPECT_TRUE(placement.isSwizzleOfParts());
  placement.shape = {4, 12, 64}; // 12 + 12 carries into a phase's bits
  EXPECT_FALSE(placement.isSwizzleOfParts());
  placement.phases = 1;
  EXPECT_TRUE(placement.isSwizzleOfParts());
}

TEST(SharedMemory, WhatCannotBeFilledInOrder) {
  SharedPlacement placement;
  placement.shape = {64, 64};
  placement.rowDim = 1;
  placement.elementBytes = 2;
  placement.rowStride = 64;
  EXPECT_TRUE(fillingLayout(placement, 8, 64, 1));
  SharedPlacement padded = placement;
  padded.rowStride = 72;
  EXPECT_FALSE(fillingLayout(padded, 8, 64, 1));
  SharedPlacement narrow = placement; // takes a thread's eight apart
  narrow.vector = 4;
  narrow.phases = 2;
  EXPECT_FALSE(fillingLayout(narrow, 8, 64, 1));
  SharedPlacement longer = placement; // than a turn of 8 rows
  longer.vector = 8;
  longer.phases = 8;
  longer.rowsPerPhase = 2;
  EXPECT_FALSE(fillingLayout(longer, 8, 64, 1));
  EXPECT_TRUE(fillingLayout(longer, 8, 64, 2));
  SharedPlacement part = placement;
  part.shape = {12, 64};
  EXPECT_FALSE(fillingLayout(part, 8, 64, 1));
}
