//===- Layout.h - who holds which element of a block tensor -----*- C++ -*-===//
//
// A layout maps (register, lane, wave) to an index of a block tensor. Inside
// one tile, whose extents are powers of two, the map is linear over GF(2):
// every bit of the register, lane and wave number has a basis, an index vector,
// and the index is the XOR of the bases of the set bits. The tile is repeated
// any integer number of times per dimension; the repetitions are more registers
// of the same lane:
//
//   register = repetition * tileRegisters + tile register
//
// with repetitions numbered row-major (last dimension fastest). A zero basis,
// or one that depends on others, means that elements have several copies.
//
// Example, 32 lanes of 4 elements in a row, 5 repetitions along the columns:
//   {reg = [[0,1],[0,2]], lane = [[0,4],[0,8],[0,16],[1,0],[2,0]], wave = [],
//    rep = [1,5]}                            shape 4x160, 20 registers a lane
//
// This library is plain C++: the IR's attribute wraps it.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LAYOUT_LAYOUT_H
#define GRETA_LAYOUT_LAYOUT_H

#include "greta/Layout/LinearMap.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace greta {

/// An index vector, one entry per dimension.
using Index = llvm::SmallVector<int64_t, 4>;
using Basis = llvm::SmallVector<int32_t, 4>;
using Bases = llvm::SmallVector<Basis, 8>;

/// A (register, lane, wave) triple.
struct Holder {
  unsigned reg = 0, lane = 0, wave = 0;
  bool operator==(const Holder &o) const {
    return reg == o.reg && lane == o.lane && wave == o.wave;
  }
};

/// One bit of the lane or wave number and what it adds (XOR) to the index.
struct ThreadBit {
  bool isWave;
  unsigned bit;
  Basis basis;
};

class Layout {
public:
  Layout() = default;
  /// The rank is rep.size(). Anything may be passed; ask verify() before using
  /// any other member than the accessors and print.
  Layout(Bases reg, Bases lane, Bases wave, llvm::ArrayRef<int32_t> rep);

  /// From bases that follow each other in flat lists, as the IR's attribute
  /// stores them. A list's tail that is no whole basis fails verify().
  static Layout fromFlat(llvm::ArrayRef<int32_t> reg,
                         llvm::ArrayRef<int32_t> lane,
                         llvm::ArrayRef<int32_t> wave,
                         llvm::ArrayRef<int32_t> rep);
  static llvm::SmallVector<int32_t> flatten(const Bases &bases);

  /// The error in the layout, or none: ragged or negative bases, a
  /// repetition below 1, a tile that the bases do not cover, absurd sizes.
  std::optional<std::string> verify() const;

  /// Each thread holds `perThread` consecutive elements per dimension, lanes
  /// and then waves lie side by side; `order` lists the dimensions, fastest
  /// first. All three counts are powers of two. A shape larger than the
  /// threads' extent must be a multiple of it, and they repeat; in a smaller
  /// one they wrap: the tile is the largest power of two that divides the
  /// shape, and the lanes and waves beyond it hold copies.
  static llvm::FailureOr<Layout> blocked(llvm::ArrayRef<int64_t> shape,
                                         llvm::ArrayRef<int64_t> perThread,
                                         llvm::ArrayRef<int64_t> lanesPerDim,
                                         llvm::ArrayRef<int64_t> wavesPerDim,
                                         llvm::ArrayRef<unsigned> order,
                                         std::string &error);

  //===--- Text -----------------------------------------------------------===//

  /// `{reg = [[0, 1], [0, 2]], lane = [[0, 4]], wave = [], rep = [1, 2]}`.
  void print(llvm::raw_ostream &os) const;
  std::string str() const;
  /// Reads what print writes, with any white space; the result is verified.
  static llvm::FailureOr<Layout> parse(llvm::StringRef text,
                                       std::string &error);

  //===--- Sizes ----------------------------------------------------------===//

  unsigned rank() const { return rep_.size(); }
  const Bases &reg() const { return reg_; }
  const Bases &lane() const { return lane_; }
  const Bases &wave() const { return wave_; }
  llvm::ArrayRef<int32_t> rep() const { return rep_; }
  /// Extents of one tile: the powers of two that the bases span.
  llvm::ArrayRef<int64_t> tile() const { return tile_; }
  Index shape() const;
  unsigned tileRegisters() const { return 1u << reg_.size(); }
  unsigned numRepetitions() const;
  int64_t numElements() const;
  unsigned numRegisters() const { return tileRegisters() * numRepetitions(); }
  unsigned numLanes() const { return 1u << lane_.size(); }
  unsigned numWaves() const { return 1u << wave_.size(); }

  //===--- From holder to index -------------------------------------------===//

  Index index(unsigned reg, unsigned lane, unsigned wave) const;
  /// The part of the index that lane and wave decide: index(0, lane, wave).
  Index threadIndex(unsigned lane, unsigned wave) const {
    return index(0, lane, wave);
  }
  /// The same as a list for code generation: lane bits, then wave bits, zero
  /// bases left out. threadIndex is the XOR of the bases of the set bits.
  llvm::SmallVector<ThreadBit, 8> threadBits() const;
  /// The part that the register decides: with `t` the thread's index along d,
  ///   index[d] = (t ^ registerTileIndex(reg)[d]) + registerBase(reg)[d],
  /// and where registersAdd(d), simply t + registerIndex(reg)[d].
  Index registerTileIndex(unsigned reg) const;
  /// The start of the register's repetition, a multiple of the tile.
  Index registerBase(unsigned reg) const;
  Index registerIndex(unsigned reg) const { return index(reg, 0, 0); }
  /// Whether along `dim` registers and threads move different bits, so that
  /// their parts of the index may be added.
  bool registersAdd(unsigned dim) const;
  bool registersAdd() const;

  //===--- From index to holder -------------------------------------------===//

  /// The canonical holder of an element, the one whose free bits (below) are
  /// all zero: a right inverse of index().
  Holder owner(llvm::ArrayRef<int64_t> index) const;
  /// The same as a map of the packed tile index (dim 0 in the lowest bits) to
  /// the packed holder (register, then lane, then wave bits).
  LinearMap inverse() const;
  /// The packed holder bits to the packed tile index.
  LinearMap tileMap() const;

  //===--- Queries --------------------------------------------------------===//

  /// The largest power of two n such that every group of n registers that
  /// starts at a multiple of n holds, in every thread, n consecutive elements
  /// along `dim`, the first at a multiple of n: how wide a vector access may
  /// be.
  unsigned contiguity(unsigned dim) const;

  /// Bits that only make copies: with all free bits zero, every element has
  /// exactly one holder. A store is done where
  /// (lane & freeLaneBits) == 0 and (wave & freeWaveBits) == 0, for registers
  /// with (reg % tileRegisters & freeRegisterBits) == 0.
  uint32_t freeRegisterBits() const;
  /// Returns the first register with the elements of `reg`.
  unsigned firstCopy(unsigned reg) const {
    return reg - (reg % tileRegisters() & freeRegisterBits());
  }
  uint32_t freeLaneBits() const;
  uint32_t freeWaveBits() const;

  /// The lane and wave bits that a reduction along a dimension has to cross.
  struct BitsAlong {
    uint32_t lanes = 0, waves = 0;
  };
  /// Fails when a bit moves along `dim` and another dimension at once, or when
  /// crossing the bits would meet elements twice or miss some.
  llvm::FailureOr<BitsAlong> bitsAlong(unsigned dim, std::string &error) const;

  /// Who holds a bit of the index: a bit of the register, the lane or the wave.
  struct BitHolder {
    enum { Register, Lane, Wave } group;
    unsigned bit;
  };
  /// The holder of each bit of the index inside the tile along a dimension, the
  /// lowest first. Fails when a bit has several, or one holder has several
  /// bits.
  llvm::FailureOr<llvm::SmallVector<BitHolder>>
  bitHolders(unsigned dim, std::string &error) const;

  /// Whether both are the same map, also if one writes as repetition what the
  /// other writes as register basis.
  bool sameMap(const Layout &other) const;

  bool operator==(const Layout &o) const {
    return reg_ == o.reg_ && lane_ == o.lane_ && wave_ == o.wave_ &&
           rep_ == o.rep_;
  }
  bool operator!=(const Layout &o) const { return !(*this == o); }
  friend llvm::hash_code hash_value(const Layout &layout);

  //===--- New layouts ----------------------------------------------------===//

  /// The layout of blocks of which `factor` neighbours along `dim` are one
  /// element: entries of bases are divided, and bits that step within an
  /// element become zero, those of registers go. `factor` is a power of two
  /// that divides the tile's extent.
  Layout coarsen(unsigned dim, int64_t factor) const;

  /// The same elements in every lane, the registers of a tile in an order that
  /// has those along `dim` first, ascending.
  Layout registersAlong(unsigned dim) const;

  /// The layout with dimension `dim` of size 1. Its bases' entries become zero;
  /// a register bit stays if its basis is not in the span of the register bits
  /// that stayed before it, in their order. `registerMap`, if given, gets the
  /// new register of each old one.
  Layout collapse(unsigned dim,
                  llvm::SmallVectorImpl<unsigned> *registerMap = nullptr) const;

  /// The same map with repetitions turned into register bits, so that the tile
  /// has the extents `tile`; each must be the present extent times a power of
  /// two that divides the repetition. Registers are renumbered; `registerMap`,
  /// if given, gets the old register of each new one.
  Layout withTile(llvm::ArrayRef<int64_t> tile,
                  llvm::SmallVectorImpl<unsigned> *registerMap = nullptr) const;

  /// Dimension d of the result is dimension order[d] of this one. Registers
  /// keep their elements' order only in the tile; `registerMap`, if given, gets
  /// the old register of each new one.
  Layout
  permuteDims(llvm::ArrayRef<unsigned> order,
              llvm::SmallVectorImpl<unsigned> *registerMap = nullptr) const;

  /// The layout of the same elements, in row-major order, under another shape
  /// of as many: dimensions are split, merged, dropped and inserted. None where
  /// a repetition that is no power of two would come to lie inside a tile.
  /// `registerMap`, if given, gets the old register of each new one.
  std::optional<Layout>
  reshape(llvm::ArrayRef<int64_t> shape,
          llvm::SmallVectorImpl<unsigned> *registerMap = nullptr) const;

  /// The layout of two blocks of this one as one block: a new last dimension of
  /// extent 2 tells them apart, register r of block i is register 2 r + i.
  Layout join() const;

  /// Arranges copies of the tile layout `inner` (no repetitions) as `outer`
  /// says: inner's bits are the low ones, outer's bases count inner tiles.
  static Layout product(const Layout &inner, const Layout &outer);
  /// The outer with product(inner, outer) == *this, if there is one.
  std::optional<Layout> quotient(const Layout &inner) const;

private:
  uint64_t pack(llvm::ArrayRef<int32_t> basis) const;

  Bases reg_, lane_, wave_;
  Basis rep_;
  Index tile_; ///< derived from the bases
};

} // namespace greta

#endif // GRETA_LAYOUT_LAYOUT_H
