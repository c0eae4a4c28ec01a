//===- MatrixInstructions.cpp - from the target table to attributes -------===//
//
// In: rows of the target table and element types. Out: the instructions that
// multiply such operands, and each as a #greta_tile.matrix. greta-configure
// asks for GEMMs, greta-tile-set-target for the dots of block programs.
//
//===----------------------------------------------------------------------===//

#include "greta/Tile/MatrixInstructions.h"
#include "Layouts/DotLayouts.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace greta;

static tile::LayoutAttr
toAttr(MLIRContext *context, const FragmentLayout &fragment, bool transposed) {
  SmallVector<int32_t> flat[2];
  ArrayRef<FragmentBasis> sources[2] = {fragment.reg, fragment.lane};
  for (auto [to, from] : llvm::zip(flat, sources))
    for (FragmentBasis basis : from)
      to.append(transposed
                    ? std::initializer_list<int32_t>{basis.column, basis.row}
                    : std::initializer_list<int32_t>{basis.row, basis.column});
  return tile::LayoutAttr::get(context, flat[0], flat[1], {}, {1, 1});
}

static StringRef dtypeOf(Type element) {
  return llvm::TypeSwitch<Type, StringRef>(element)
      .Case([](Float16Type) { return "f16"; })
      .Case([](BFloat16Type) { return "bf16"; })
      .Case([](Float32Type) { return "f32"; })
      .Case([](Float8E4M3FNType) { return "f8e4m3fn"; })
      .Case([](Float8E5M2Type) { return "f8e5m2"; })
      .Case([](Float8E4M3FNUZType) { return "f8e4m3fnuz"; })
      .Case([](Float8E5M2FNUZType) { return "f8e5m2fnuz"; })
      .Default([](Type type) { return type.isInteger(8) ? "i8" : ""; });
}

SmallVector<const MatrixInstruction *>
greta::instructionsFor(Type aType, Type bType,
                       ArrayRef<MatrixInstruction> available,
                       const TargetRow &row, bool inRegisters) {
  StringRef a = dtypeOf(aType), b = dtypeOf(bType);
  SmallVector<const MatrixInstruction *> found;
  for (const MatrixInstruction &instruction : available)
    if (instruction.a == a && instruction.b == b &&
        instruction.acc == (a == "i8" ? "i32" : "f32") &&
        instruction.blocks == 1 && (inRegisters || !instruction.isSwapped) &&
        (row.isVulkan() || instruction.accLayout.isKnown()))
      found.push_back(&instruction);
  return found;
}

/// Returns any layout of a rows x columns tile: neighbours in a lane first,
/// then lanes side by side.
static tile::LayoutAttr someLayout(MLIRContext *context, int64_t rows,
                                   int64_t columns, int64_t lanes) {
  SmallVector<int32_t> flat[2];
  int64_t inLane = rows * columns / lanes, at = 1;
  for (unsigned where : {0u, 1u})
    for (int64_t n = where ? lanes : inLane; n > 1; n /= 2, at *= 2) {
      bool alongColumns = at < columns;
      flat[where].append({int32_t(alongColumns ? 0 : at / columns),
                          int32_t(alongColumns ? at : 0)});
    }
  return tile::LayoutAttr::get(context, flat[0], flat[1], {}, {1, 1});
}

/// Returns the instruction whose first operand has the type of `mi`'s second.
static const MatrixInstruction &withSwappedTypes(const MatrixInstruction &mi,
                                                 const TargetRow &row) {
  auto found = llvm::find_if(row.matrix, [&](const MatrixInstruction &other) {
    return other.a == mi.b && other.b == mi.a && other.acc == mi.acc &&
           other.m == mi.n && other.n == mi.m && other.k == mi.k &&
           other.blocks == mi.blocks;
  });
  assert(found != row.matrix.end() && "the table has both orders");
  return *found;
}

tile::MatrixAttr greta::matrixAttr(MLIRContext *context,
                                   const MatrixInstruction &mi,
                                   const TargetRow &row, bool opaque) {
  int64_t wave = row.waveSize;
  auto name = StringAttr::get(context, mi.name);
  if (opaque || !mi.accLayout.isKnown())
    return tile::MatrixAttr::get(context, name, /*swapped=*/false,
                                 /*opaque=*/true, /*elements=*/false,
                                 someLayout(context, mi.m, mi.k, wave),
                                 someLayout(context, mi.k, mi.n, wave),
                                 someLayout(context, mi.m, mi.n, wave));
  // Neighbours in a lane's registers should be neighbours in a row; then the
  // layouts are transposed here, and in the table where that says `isSwapped`.
  // Drivers that load matrices whole have the others' results as they are.
  bool byElement = row.loadsElements(mi);
  bool transposed = !mi.accLayout.reg.empty() &&
                    mi.accLayout.reg.front().row != 0 &&
                    (mi.name != "coopmat" || byElement);
  if (transposed && mi.a != mi.b)
    name = StringAttr::get(context, withSwappedTypes(mi, row).name);
  const FragmentLayout &left = transposed ? mi.bLayout : mi.aLayout;
  const FragmentLayout &right = transposed ? mi.aLayout : mi.bLayout;
  return tile::MatrixAttr::get(context, name, transposed || mi.isSwapped,
                               /*opaque=*/false, byElement,
                               toAttr(context, left, transposed),
                               toAttr(context, right, transposed),
                               toAttr(context, mi.accLayout, transposed));
}

const MatrixInstruction *greta::instructionFor(tile::DotOp dot, unsigned waves,
                                               const TargetRow &row,
                                               bool inRegisters) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  auto b = cast<RankedTensorType>(dot.getB().getType());
  auto acc = cast<RankedTensorType>(dot.getResult().getType());
  ArrayRef<int64_t> shape = acc.getShape();
  int64_t m = shape[shape.size() - 2], n = shape.back(),
          k = a.getShape().back();
  int64_t batch = acc.getNumElements() / (m * n);
  const MatrixInstruction *best = nullptr;
  std::tuple<uint64_t, uint64_t, uint64_t> bestWorth;
  for (const MatrixInstruction *mi :
       instructionsFor(a.getElementType(), b.getElementType(), row.matrix, row,
                       // Only the transposed instruction has 8 rows.
                       inRegisters && m < 16)) {
    bool isSum =
        acc.getElementType().isF32() ? mi->acc == "f32" : mi->acc == "i32";
    // Operands come out of registers, so it must be known who has what.
    if (!isSum || !mi->accLayout.isKnown() || m % mi->m || n % mi->n ||
        k % mi->k)
      continue;
    // In a chain a wave has rows of its own.
    uint64_t tiles = batch * (m / mi->m) * (isChained(dot) ? 1 : n / mi->n);
    uint64_t work = uint64_t(mi->m) * mi->n * mi->k;
    uint64_t rate = mi->cycles ? work / mi->cycles : 0;
    std::tuple<uint64_t, uint64_t, uint64_t> worth = {
        std::min<uint64_t>(waves, tiles), rate, work};
    if (worth > bestWorth) {
      best = mi;
      bestWorth = worth;
    }
  }
  return best;
}
