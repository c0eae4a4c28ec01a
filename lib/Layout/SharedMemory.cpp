//===- SharedMemory.cpp - swizzles, padding and bank conflicts ------------===//
#include "greta/Layout/SharedMemory.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <climits>

using namespace greta;
using llvm::ArrayRef;

static constexpr int64_t wordBytes = 4, maxAccessBytes = 16;

int64_t SharedPlacement::rowOf(ArrayRef<int64_t> index) const {
  int64_t row = 0;
  for (unsigned dim = 0; dim != shape.size(); ++dim)
    if (dim != rowDim)
      row = row * shape[dim] + index[dim];
  return row;
}

int64_t SharedPlacement::rowsBetween(unsigned dim) const {
  int64_t rows = 1;
  for (unsigned inner = dim + 1; inner < shape.size(); ++inner)
    if (inner != rowDim)
      rows *= shape[inner];
  return rows;
}

int64_t SharedPlacement::numRows() const {
  int64_t rows = 1;
  for (unsigned dim = 0; dim != shape.size(); ++dim)
    if (dim != rowDim)
      rows *= shape[dim];
  return rows;
}

bool SharedPlacement::isSwizzleOfParts() const {
  for (unsigned dim = 0; dim != shape.size(); ++dim) {
    int64_t rows = rowsBetween(dim);
    if (dim != rowDim && !llvm::isPowerOf2_64(rows) &&
        rows % (rowsPerPhase * phases))
      return phases == 1;
  }
  return true;
}

int64_t SharedPlacement::offset(ArrayRef<int64_t> index) const {
  int64_t row = rowOf(index);
  int64_t column = index[rowDim] ^ (row / rowsPerPhase % phases * vector);
  return (row * rowStride + column) * elementBytes;
}

int64_t SharedPlacement::sizeInBytes() const {
  // The last row needs no padding.
  return ((numRows() - 1) * rowStride + shape[rowDim]) * elementBytes;
}

unsigned SharedPlacement::accessWidth(const Layout &layout) const {
  int64_t width = layout.contiguity(rowDim);
  width = std::min(width, std::max<int64_t>(maxAccessBytes / elementBytes, 1));
  width = std::min(width, rowStride & -rowStride);
  if (phases != 1)
    width = std::min(width, vector);
  return unsigned(width);
}

/// Cycles for the accesses of one group of lanes, given their first bytes.
static int64_t groupCycles(ArrayRef<int64_t> starts, int64_t bytes,
                           unsigned banks) {
  llvm::SmallVector<int64_t, 64> words;
  for (int64_t start : starts)
    for (int64_t word = start / wordBytes;
         word <= (start + bytes - 1) / wordBytes; ++word)
      words.push_back(word);
  // Lanes that want the same word get it together.
  llvm::sort(words);
  words.erase(llvm::unique(words), words.end());
  llvm::SmallVector<int64_t, 64> perBank(banks, 0);
  for (int64_t word : words)
    ++perBank[word % banks];
  return *llvm::max_element(perBank);
}

/// Counts for the first `maxWaves` waves and `maxAccesses` accesses of each.
static BankCost countCycles(const SharedPlacement &placement,
                            const Layout &layout, SharedAccess access,
                            unsigned banks, unsigned maxWaves,
                            unsigned maxAccesses) {
  uint32_t copyRegs = 0, copyLanes = 0, copyWaves = 0;
  if (access == SharedAccess::Store) {
    copyRegs = layout.freeRegisterBits();
    copyLanes = layout.freeLaneBits();
    copyWaves = layout.freeWaveBits();
  }
  unsigned width = placement.accessWidth(layout);
  int64_t bytes = int64_t(width) * placement.elementBytes;
  int64_t groupLanes =
      std::max<int64_t>(banks * wordBytes / std::max(bytes, wordBytes), 1);
  BankCost cost;
  llvm::SmallVector<int64_t, 64> starts;
  for (unsigned wave = 0; wave != std::min(maxWaves, layout.numWaves());
       ++wave) {
    if (wave & copyWaves)
      continue;
    unsigned accesses = 0;
    for (unsigned reg = 0; reg != layout.numRegisters(); reg += width) {
      if (reg % layout.tileRegisters() & copyRegs)
        continue;
      if (accesses++ == maxAccesses)
        break;
      for (unsigned first = 0; first < layout.numLanes(); first += groupLanes) {
        starts.clear();
        unsigned end = std::min<int64_t>(first + groupLanes, layout.numLanes());
        for (unsigned lane = first; lane != end; ++lane)
          if (!(lane & copyLanes))
            starts.push_back(placement.offset(layout.index(reg, lane, wave)));
        if (starts.empty())
          continue;
        ++cost.groups;
        cost.cycles += groupCycles(starts, bytes, banks);
      }
    }
  }
  return cost;
}

BankCost greta::countBankCycles(const SharedPlacement &placement,
                                const Layout &layout, SharedAccess access,
                                unsigned banks) {
  return countCycles(placement, layout, access, banks, UINT_MAX, UINT_MAX);
}

/// The placements worth trying, the plain one of each row dimension first.
static llvm::SmallVector<SharedPlacement>
candidates(const Layout &src, const Layout &dst, unsigned elementBytes,
           unsigned banks, unsigned together) {
  llvm::SmallVector<SharedPlacement> all;
  Index shape = src.shape();
  for (unsigned rowDim = src.rank(); rowDim-- != 0;) {
    SharedPlacement plain;
    plain.shape = shape;
    plain.rowDim = rowDim;
    plain.elementBytes = elementBytes;
    plain.rowStride = shape[rowDim];
    all.push_back(plain);

    // A swizzle or a padding moves whole accesses of the wider side, so that
    // both keep their widths.
    int64_t vector = std::max(plain.accessWidth(src), plain.accessWidth(dst));
    int64_t rowBytes = shape[rowDim] * elementBytes;
    int64_t bankBytes = banks * wordBytes;
    for (int64_t moved = vector; moved <= vector * together; moved *= 2)
      for (int64_t phases = 2; shape[rowDim] % (moved * phases) == 0 &&
                               moved * phases * elementBytes <= bankBytes;
           phases *= 2)
        // Rows that share the banks' width may share a phase.
        for (int64_t rows = 1; rows == 1 || rows * rowBytes <= bankBytes;
             rows *= 2) {
          SharedPlacement swizzled = plain;
          swizzled.vector = moved;
          swizzled.phases = phases;
          swizzled.rowsPerPhase = rows;
          if (swizzled.isSwizzleOfParts())
            all.push_back(swizzled);
        }
    for (int64_t pad : {vector, 2 * vector, wordBytes / elementBytes}) {
      SharedPlacement padded = plain;
      padded.rowStride += pad;
      if (pad > 0)
        all.push_back(padded);
    }
  }
  return all;
}

llvm::FailureOr<SharedPlacement> greta::chooseSharedPlacement(
    const Layout &src, const Layout &dst, unsigned elementBytes,
    int64_t maxBytes, std::string &error, unsigned banks, unsigned together,
    llvm::function_ref<bool(const SharedPlacement &)> allowed) {
  struct Choice {
    SharedPlacement placement;
    int64_t cycles, bytes;
  };
  std::optional<Choice> best;
  int64_t smallest = INT64_MAX;
  for (const SharedPlacement &placement :
       candidates(src, dst, elementBytes, banks, together)) {
    if (allowed && !allowed(placement))
      continue;
    int64_t bytes = placement.sizeInBytes();
    smallest = std::min(smallest, bytes);
    if (bytes > maxBytes)
      continue;
    // Per element, because a side that moves narrower needs more accesses, and
    // each takes some cycles of its own.
    auto judge = [&](const Layout &layout, SharedAccess access) {
      constexpr unsigned accesses = 16;
      BankCost cost = countCycles(placement, layout, access, banks,
                                  /*maxWaves=*/1, accesses);
      unsigned width = placement.accessWidth(layout);
      int64_t all = llvm::divideCeil(layout.numRegisters(), width);
      int64_t judged = std::min<int64_t>(all, accesses);
      constexpr int64_t issue = 2;
      return cost.cycles * all / judged + issue * all;
    };
    int64_t cycles =
        judge(src, SharedAccess::Store) + judge(dst, SharedAccess::Load);
    if (!best || std::make_pair(cycles, bytes) <
                     std::make_pair(best->cycles, best->bytes))
      best = Choice{placement, cycles, bytes};
  }
  if (!best && smallest == INT64_MAX) {
    error = "no swizzle of the block suits those who fill it; use a block "
            "whose rows are a power of two";
    return llvm::failure();
  }
  if (!best) {
    error = "changing the layout through shared memory needs " +
            std::to_string(smallest) + " bytes of it, the limit is " +
            std::to_string(maxBytes) + "; use a smaller block";
    return llvm::failure();
  }
  return best->placement;
}

std::optional<Layout> greta::fillingLayout(const SharedPlacement &placement,
                                           unsigned perThread, unsigned lanes,
                                           unsigned waves) {
  unsigned column = placement.rowDim, rank = placement.shape.size();
  int64_t length = placement.shape[column];
  int64_t turn = int64_t(perThread) * lanes * waves;
  int64_t period =
      placement.phases == 1 ? 1 : placement.phases * placement.rowsPerPhase;
  if (placement.rowStride != length || !llvm::isPowerOf2_64(length) ||
      (period > 1 && placement.vector % perThread) || turn % (length * period))
    return std::nullopt;
  // All threads at a time fill one dimension of rows, then the next one.
  Basis rep(rank, 1);
  int64_t left = turn / length;
  for (unsigned dim = rank; dim-- != 0;) {
    int64_t extent = dim == column ? 1 : placement.shape[dim];
    int64_t taken = std::min(left, extent);
    if (extent % taken || left % taken)
      return std::nullopt;
    rep[dim] = int32_t(extent / taken);
    left /= taken;
  }
  if (left != 1)
    return std::nullopt;
  // Rows and columns are bits of the place, and so are the phases.
  auto basesFrom = [&](int64_t begin, int64_t end) {
    Bases bases;
    for (int64_t place = begin; place < end; place *= 2) {
      Basis basis(rank, 0);
      int64_t at = place / length;
      for (unsigned dim = 0; dim != rank; ++dim)
        if (dim != column)
          basis[dim] =
              int32_t(at / placement.rowsBetween(dim) % placement.shape[dim]);
      basis[column] = int32_t(at ? at / placement.rowsPerPhase %
                                       placement.phases * placement.vector
                                 : place);
      bases.push_back(basis);
    }
    return bases;
  };
  int64_t wave = int64_t(perThread) * lanes;
  return Layout(basesFrom(1, perThread), basesFrom(perThread, wave),
                basesFrom(wave, turn), rep);
}
