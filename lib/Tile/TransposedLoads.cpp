//===- TransposedLoads.cpp - the target table's, on layouts ---------------===//
//
// In: a layout that a block is to have, and the dimension along which it lies
// in memory. Out: the layout in which a transposed load reads it there. Bits of
// the lane and of the register change places as the table says:
//
//   ds_read_b64_tr_b16, along the columns
//     wanted  {reg = [[1,0],[2,0]], lane = [[0,1],[0,2],[0,4],[0,8],..], ..}
//     loaded  {reg = [[0,1],[0,2]], lane = [[0,4],[0,8],[1,0],[2,0],..], ..}
//
//===----------------------------------------------------------------------===//

#include "greta/Tile/TransposedLoads.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace greta;

static bool isOf(const TransposedLoad &load, bool isShared,
                 unsigned elementBytes) {
  return load.isShared == isShared && load.elementBytes == elementBytes;
}

unsigned greta::transposedWidth(const TargetRow &row, bool isShared,
                                unsigned elementBytes) {
  for (const TransposedLoad &load : row.transposedLoads)
    if (isOf(load, isShared, elementBytes))
      return load.registers;
  return 0;
}

std::optional<Layout> greta::beforeTransposedLoad(const TargetRow &row,
                                                  bool isShared,
                                                  unsigned elementBytes,
                                                  const Layout &layout,
                                                  unsigned dim) {
  for (const TransposedLoad &load : row.transposedLoads) {
    size_t bits = llvm::Log2_32(load.registers);
    if (!isOf(load, isShared, elementBytes) || layout.reg().size() < bits ||
        layout.lane().size() < load.lanes.size())
      continue;
    Bases reg = layout.reg(), lane = layout.lane();
    llvm::copy(llvm::ArrayRef(layout.lane()).take_front(bits), reg.begin());
    for (auto [to, from] : llvm::zip(lane, load.lanes))
      to = (from.isRegister ? layout.reg() : layout.lane())[from.number];
    Layout loaded(reg, lane, layout.wave(), layout.rep());
    if (loaded.contiguity(dim) >= load.registers)
      return loaded;
  }
  return std::nullopt;
}
