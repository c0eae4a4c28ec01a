//===- Conversion.h - moving block tensors between layouts ------*- C++ -*-===//
//
// How values get from one layout into another, into a broadcast, or through a
// reduction: plans that code generation follows without any algebra of its own.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LAYOUT_CONVERSION_H
#define GRETA_LAYOUT_CONVERSION_H

#include "greta/Layout/Layout.h"

namespace greta {

/// How a value of layout `src` becomes one of layout `dst`, cheapest kind
/// first.
struct Conversion {
  enum class Kind {
    Identity,  ///< register r is register r
    Registers, ///< moves[r].registers[0], in the same lane
    Select,    ///< same lane, but which register depends on the thread
    Shuffle,   ///< from another lane of the same wave
    Shared     ///< between waves: through shared memory; nothing below is set
  };
  Kind kind = Kind::Shared;

  /// A bit: the parity of (lane & laneMask) plus that of (wave & waveMask), of
  /// the destination's lane and wave.
  struct Selector {
    uint32_t laneMask = 0, waveMask = 0;
  };
  /// Selects one of a move's registers: bit i of the position is selector i.
  /// Empty unless the source register depends on the thread.
  llvm::SmallVector<Selector, 2> selectors;

  struct Move {
    /// 2^selectors.size() registers of the source.
    llvm::SmallVector<unsigned, 2> registers;
    /// XORed to the source lane that lane and wave decide.
    uint32_t laneXor = 0;
  };
  /// One per register of the destination.
  llvm::SmallVector<Move, 8> moves;

  /// Kind::Shuffle: the source lane is moves[r].laneXor XOR laneFromLane[i]
  /// over the set bits i of the destination lane XOR laneFromWave[i] over those
  /// of the wave.
  llvm::SmallVector<uint32_t, 6> laneFromLane, laneFromWave;

  /// Source lane = destination lane XOR moves[r].laneXor.
  bool isXorShuffle() const;
  /// Kind::Shuffle: the bit of the lane, as a mask, that does not matter to the
  /// source lane, which is else the destination's XOR moves[r].laneXor: the
  /// lanes that differ in it exchange what they have and then choose. 0 where
  /// it is otherwise.
  uint32_t exchangedLane() const;
  /// How many shuffles the moves take, one per register if there are no
  /// selectors; registers that need none are not counted.
  unsigned numShuffles() const;

  /// The source of destination register `reg` of a thread; not for
  /// Kind::Shared.
  Holder source(unsigned reg, unsigned lane, unsigned wave) const;
};

/// Fails if shapes, lanes or waves differ.
llvm::FailureOr<Conversion> convert(const Layout &src, const Layout &dst,
                                    std::string &error);

/// How a value of layout `src` broadcasts to `dst`: where src has size 1, the
/// index of dst counts as 0. Fails if a dimension of src is neither 1 nor
/// dst's.
llvm::FailureOr<Conversion> broadcast(const Layout &src, const Layout &dst,
                                      std::string &error);

/// For each register of dst the register of src that holds its element's value
/// in the same lane and wave, if the broadcast needs no more than that.
std::optional<llvm::SmallVector<unsigned>> relabel(const Layout &src,
                                                   const Layout &dst);

/// How to reduce along a dimension.
struct Reduction {
  /// The result's layout, layout.collapse(dim): every thread gets the result.
  Layout result;
  /// For each register of the result the registers that a thread combines
  /// first, copies left out.
  llvm::SmallVector<llvm::SmallVector<unsigned>> registers;
  /// Then combine with the lane lane ^ (1 << b) for every bit b of `lanes`, and
  /// across waves for every bit of `waves`.
  uint32_t lanes = 0, waves = 0;
};

llvm::FailureOr<Reduction> reduce(const Layout &layout, unsigned dim,
                                  std::string &error);

} // namespace greta

#endif // GRETA_LAYOUT_CONVERSION_H
