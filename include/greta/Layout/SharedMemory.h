//===- SharedMemory.h - placing a block in shared memory --------*- C++ -*-===//
//
// The place of each element of a block on its way through shared memory from
// one layout to another: rows with a stride, swizzled or padded so that neither
// side's accesses fight for banks, and the exact cost of those accesses.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LAYOUT_SHAREDMEMORY_H
#define GRETA_LAYOUT_SHAREDMEMORY_H

#include "greta/Layout/Layout.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace greta {

/// A block in shared memory. One dimension runs along the rows; the row number
/// is row-major over the others. An element's place is
///   row * rowStride + (column ^ row / rowsPerPhase % phases * vector)
/// in elements. `vector`, `rowsPerPhase` and `phases` are powers of two, and
/// vector * phases divides the row's length, so that a row stays itself.
struct SharedPlacement {
  Index shape;
  unsigned rowDim = 0; ///< the dimension along the rows
  unsigned elementBytes = 1;
  int64_t rowStride = 1;
  int64_t vector = 1, rowsPerPhase = 1, phases = 1;

  /// The number of the element's row, without its column.
  int64_t rowOf(llvm::ArrayRef<int64_t> index) const;
  int64_t numRows() const;
  /// From a row to the next one along a dimension, in rows.
  int64_t rowsBetween(unsigned dim) const;
  /// Whether the phase of a row is that of each part of its index, in any
  /// dimension and of any bits, xored.
  bool isSwizzleOfParts() const;
  /// The element's first byte.
  int64_t offset(llvm::ArrayRef<int64_t> index) const;
  int64_t sizeInBytes() const;
  /// How many elements, in consecutive registers, a thread of `layout` moves
  /// with one access: at most 16 bytes, consecutive and aligned in memory too.
  unsigned accessWidth(const Layout &layout) const;
};

/// The cycles of all waves' accesses. A wave's access is served in groups of
/// neighbouring lanes, of at most `banks` words of 4 bytes each; a group takes
/// as many cycles as there are different words in one bank.
struct BankCost {
  int64_t groups = 0; ///< cycles if there were no conflicts
  int64_t cycles = 0;
  int64_t conflicts() const { return cycles - groups; }
};

/// Loads are done by every thread, stores only by the holders without free
/// bits.
enum class SharedAccess { Load, Store };
BankCost countBankCycles(const SharedPlacement &placement, const Layout &layout,
                         SharedAccess access, unsigned banks = 32);

/// The placement with the fewest cycles for storing from `src` and loading into
/// `dst`, and among those the smallest. Judged by the first wave and at most
/// its first 16 accesses each way. A swizzle moves up to `together` accesses as
/// one. Fails if the block does not fit in `maxBytes`. `allowed`, if given,
/// says which placements may be taken. Swizzles are those of parts.
llvm::FailureOr<SharedPlacement> chooseSharedPlacement(
    const Layout &src, const Layout &dst, unsigned elementBytes,
    int64_t maxBytes, std::string &error, unsigned banks = 32,
    unsigned together = 1,
    llvm::function_ref<bool(const SharedPlacement &)> allowed = nullptr);

/// Returns the layout in which threads, one after another, have elements that
/// lie one after another in shared memory, `perThread` each. A wave's lanes
/// then fill neighbouring places, and the swizzle decides which elements each
/// lane loads. There is none if rows are padded or no power of two, if the
/// swizzle separates a thread's elements or has a longer period than all
/// threads fill at a time, or if what they fill at a time does not divide each
/// dimension of the rows.
std::optional<Layout> fillingLayout(const SharedPlacement &placement,
                                    unsigned perThread, unsigned lanes,
                                    unsigned waves);

} // namespace greta

#endif // GRETA_LAYOUT_SHAREDMEMORY_H
