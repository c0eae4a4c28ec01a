//===- ConfigureProduct.cpp - tiles of matrix products --------------------===//
//
// Chooses the instruction, the block and the schedule of a product. With matrix
// instructions every tile that fits is judged by a small model of the time:
//
//   rounds = workgroups / compute units, rounded up
//   step   = matrix cycles + a part of the shared memory's + barriers
//   time   = rounds * (steps along K * step + prologue and epilogue)
//
// How much of the rest shows depends on the schedule.
//
// With one stage, fitted to measurements on the H200 (docs/benchmarks; cycles
// a step of 64: 128x128 2030, 128x160 2235, 128x192 2355, 160x160 2410): six
// tenths of the matrix instructions' time, three of shared memory's, 1180, and
// 4 % for each side of the product that the block does not divide. The order of
// blocks is worth up to 10 %: groupOf.
//
// With two stages, from the simulator's issue model at 4096x4096x4096 with all
// waves of a compute unit (docs/benchmarks/amd_loops.py), by the share of time
// that gfx942's matrix units are busy in 256x256x32 with eight waves:
//   slices read ahead, 16 bytes a lane (32x32x8)      0.98: 0.05
//   slices read ahead, 8 bytes a lane (16x16x16)      0.76: 0.35
//   whole blocks, 16 bytes a lane                     0.86: 0.35
// of the shared memory's time, all that is over half of the matrix units' (its
// queue is shared), and what memory answers too late for a short step (gfx950:
// 256x256x32 0.76, 256x256x64 0.93). That is for two waves a SIMD; one shows
// four times as much (gfx90a, 112x128x64 with four waves: 0.76), four a
// quarter. WMMA goes through the vector unit, where reads take slots of their
// own. What the last round leaves empty counts for three quarters: units drift
// apart.
//
//===----------------------------------------------------------------------===//

#include "Configure.h"
#include "mlir/IR/Builders.h"
#include <cmath>

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

SmallVector<std::pair<unsigned, bool>> greta::waveBits(int64_t tileM,
                                                       int64_t tileN, int64_t m,
                                                       int64_t n,
                                                       int64_t waves) {
  SmallVector<std::pair<unsigned, bool>> bits;
  int64_t left[2] = {powerPart(m / tileM), powerPart(n / tileN)};
  int64_t extent[2] = {m, n};
  for (; waves > 1; waves /= 2) {
    unsigned dim = extent[0] >= extent[1] ? 0 : 1;
    if (left[dim] == 1)
      dim = 1 - dim;
    bits.push_back({dim, left[dim] > 1});
    left[dim] = std::max<int64_t>(1, left[dim] / 2);
    extent[dim] /= 2;
  }
  return bits;
}

namespace {

/// A product as the choice sees it.
struct Problem {
  int64_t m, n, k; // guesses where dynamic
  int64_t bytes;   // of an element of A and B
};

struct Tile {
  const MatrixInstruction *instruction = nullptr;
  int64_t m = 0, n = 0, k = 0, waves = 0;
  int64_t stages = 1, slice = 0, group = 8;
  bool opaque = false; // takes the layouts for unknown
};

/// Judges tiles of one problem on one target.
class TileModel {
public:
  TileModel(const Problem &problem, const Limits &limits)
      : problem(problem), limits(limits), row(limits.row) {}
  /// Why the tile cannot be; none: it can.
  /// A tile that somebody asks for may use the registers that choices spare.
  std::optional<std::string> whyNot(const Tile &tile, bool asked = false) const;
  /// Cycles of the whole product.
  double cycles(const Tile &tile) const;

private:
  /// Extents of one wave's part.
  std::pair<int64_t, int64_t> waveTile(const Tile &tile) const;
  int64_t ldsBytes(const Tile &tile) const;
  double wavesPerSimd(const Tile &tile) const;
  int64_t registers(const Tile &tile) const;

  const Problem &problem;
  const Limits &limits;
  const TargetRow &row;
};

} // namespace

std::pair<int64_t, int64_t> TileModel::waveTile(const Tile &tile) const {
  int64_t part[2] = {tile.m, tile.n};
  for (auto [dim, moved] : waveBits(tile.instruction->m, tile.instruction->n,
                                    tile.m, tile.n, tile.waves))
    if (moved)
      part[dim] /= 2;
  return {part[0], part[1]};
}

int64_t TileModel::ldsBytes(const Tile &tile) const {
  // Rows for cooperative matrices are padded by 16 bytes.
  int64_t row = tile.k * problem.bytes + (tile.stages == 1 ? 16 : 0);
  return tile.stages * (tile.m + tile.n) * row;
}

/// 32-bit registers of a lane: accumulators, the operands that are read ahead,
/// the blocks on their way from memory, and what addresses take.
int64_t TileModel::registers(const Tile &tile) const {
  const MatrixInstruction &mi = *tile.instruction;
  auto [m, n] = waveTile(tile);
  int64_t lanes = limits.wave;
  auto fragment = [&](int64_t extent, unsigned tileExtent,
                      const FragmentLayout &layout) {
    int64_t elements = layout.isKnown() ? int64_t(1) << layout.reg.size()
                                        : tileExtent * mi.k / lanes;
    int64_t registers = elements * problem.bytes / 4;
    // Of a whole block only what the next products need is read ahead, 16
    // bytes a lane.
    int64_t depth =
        tile.slice < tile.k
            ? tile.slice / mi.k
            : std::min<int64_t>(tile.slice / mi.k,
                                std::max<int64_t>(1, 4 / registers));
    return extent / tileExtent * depth * registers;
  };
  int64_t left = fragment(m, mi.m, mi.aLayout);
  int64_t right = fragment(n, mi.n, mi.bLayout);
  // One slice is read while another is multiplied; of whole blocks the longer
  // side waits for one tile after another of the shorter one.
  int64_t operands = tile.stages == 2 && tile.slice < tile.k
                         ? 2 * (left + right)
                         : std::max(left, right) + 16;
  // Operands that two lanes hold alike take twice the registers, and LLVM keeps
  // both sides (gfx1100: 255 in 256x128x32, 16 spilled in 128x128x32 by four).
  if (mi.aLayout.isKnown() &&
      (int64_t(1) << mi.aLayout.reg.size()) * lanes > mi.m * mi.k)
    operands = std::max(operands, left + right + 16);
  int64_t threads = tile.waves * lanes;
  auto block = [&](int64_t extent) {
    return llvm::divideCeil(extent * tile.k * problem.bytes, 16 * threads) * 4;
  };
  return m * n / lanes + operands + block(tile.m) + block(tile.n) + 24;
}

std::optional<std::string> TileModel::whyNot(const Tile &tile,
                                             bool asked) const {
  const MatrixInstruction &mi = *tile.instruction;
  if (tile.m % mi.m || tile.n % mi.n || tile.k % mi.k || tile.slice % mi.k ||
      tile.slice <= 0 || tile.k % tile.slice)
    return "its tile is not made of the instruction's " + std::to_string(mi.m) +
           "x" + std::to_string(mi.n) + "x" + std::to_string(mi.k);
  for (auto [dim, moved] : waveBits(mi.m, mi.n, tile.m, tile.n, tile.waves))
    if (!moved)
      return std::to_string(tile.waves) +
             " waves do not divide its tile evenly";
  if (tile.waves * limits.wave > limits.maxBlock)
    return "its waves are more than a workgroup takes";
  int64_t lds = ldsBytes(tile);
  if (lds > limits.ldsBytes)
    return "it needs " + std::to_string(lds) +
           " bytes of shared memory, the target has " +
           std::to_string(limits.ldsBytes);
  if (row.vgprs.perWave) {
    int64_t perSimd =
        llvm::divideCeil(tile.waves, std::max(1u, row.simdsPerUnit));
    int64_t most = row.vgprs.perWave;
    if (row.vgprs.perSimd)
      most = std::min<int64_t>(most, row.vgprs.perSimd / perSimd);
    // Spilled accumulators cost more than anything; drivers' compilers need
    // some room of their own.
    if (row.isVulkan() && !asked)
      most -= 48;
    // So does LLVM where lanes hold operands twice (RDNA3): at 240 of 256 by
    // this model it spilled 180, at 200 none.
    if (!row.isVulkan() && !asked &&
        (limits.wave << mi.aLayout.reg.size()) > mi.m * mi.k)
      most -= 32;
    int64_t needed = registers(tile);
    if (needed > most)
      return "it needs about " + std::to_string(needed) +
             " registers a lane, the target has " + std::to_string(most);
  }
  return std::nullopt;
}

double TileModel::wavesPerSimd(const Tile &tile) const {
  double simds = std::max(1u, row.simdsPerUnit);
  double workgroups =
      std::max<int64_t>(1, row.ldsBytesPerUnit / ldsBytes(tile));
  double waves = workgroups * tile.waves / simds;
  if (row.vgprs.perSimd)
    waves = std::min<double>(waves, row.vgprs.perSimd / registers(tile));
  return std::max(waves, tile.waves / simds);
}

double TileModel::cycles(const Tile &tile) const {
  const MatrixInstruction &mi = *tile.instruction;
  auto [m, n] = waveTile(tile);
  double simds = std::min<int64_t>(tile.waves, std::max(1u, row.simdsPerUnit));
  double each = mi.cycles ? mi.cycles : mi.m * mi.n * mi.k / 128.0;
  double matrix =
      double(tile.m / mi.m) * (tile.n / mi.n) * (tile.k / mi.k) * each / simds;
  // 128 bytes a cycle from shared memory; half of that from the caches.
  double stored = double(tile.m + tile.n) * tile.k * problem.bytes;
  double reads = tile.waves * double(m + n) * tile.k * problem.bytes;
  // A lane that has less than 16 neighbours at a time reads more often; one
  // that shares its operand with another reads it twice.
  bool wide = true;
  if (tile.stages == 2) {
    int64_t inLane = int64_t(1) << mi.aLayout.reg.size();
    int64_t width =
        std::min<int64_t>(16, inLane * problem.bytes * (tile.slice / mi.k));
    wide = width == 16;
    reads *= 16.0 / width * inLane * limits.wave / (mi.m * mi.k);
  }
  // CDNA 4 doubled the size and the width of its shared memory.
  double shared = (reads + stored) / (row.ldsBytesPerUnit > 65536 ? 256 : 128);
  double memory = stored / 64;
  double tiles = double(llvm::divideCeil(problem.m, tile.m)) *
                 llvm::divideCeil(problem.n, tile.n);
  double share = tiles / row.computeUnits, rounds = std::ceil(share), step;
  if (tile.stages == 1) {
    step = 0.6 * matrix + 0.3 * shared + 1180;
  } else {
    bool ahead = tile.slice < tile.k && wide;
    double exposed = (ahead ? 0.05 : 0.35) * shared + 30 +
                     std::max(0.0, shared - matrix / 2) * ahead +
                     std::max(0.0, 850 - matrix / 2);
    // Where matrix instructions are issued like any others, so are reads, of 64
    // bytes a cycle into the registers, and some forty instructions a step.
    if (limits.wave == 32)
      matrix += (8 * reads / (16 * limits.wave) + 40 * tile.waves) / simds;
    double waves = wavesPerSimd(tile) / 2;
    step = std::max(matrix, shared) + exposed / (waves * waves);
    rounds = std::max(1.0, (rounds + share) / 2);
  }
  // Rows that end inside a block have an address each.
  for (bool partial : {problem.m % tile.m != 0, problem.n % tile.n != 0})
    step *= partial ? 1.04 : 1;
  step = std::max(step, memory);
  double ends = 1500 + double(tile.m) * tile.n / 64;
  return rounds * (double(llvm::divideCeil(problem.k, tile.k)) * step + ends);
}

static StringRef dtypeOf(Type element) {
  return element.isF16()        ? "f16"
         : element.isBF16()     ? "bf16"
         : element.isF32()      ? "f32"
         : element.isInteger(8) ? "i8"
                                : "";
}

/// Instructions for the operands with the widest sums. Without known layouts
/// only drivers can load operands.
static SmallVector<const MatrixInstruction *>
instructionsFor(MatmulOp matmul, const Limits &limits) {
  StringRef dtype = dtypeOf(matmul.getA().getType().getElementType());
  SmallVector<const MatrixInstruction *> found;
  for (const MatrixInstruction &instruction : limits.matrix)
    if (instruction.a == dtype && instruction.b == dtype &&
        instruction.acc == (dtype == "i8" ? "i32" : "f32") &&
        instruction.blocks == 1 &&
        (limits.row.isVulkan() || instruction.accLayout.isKnown()))
      found.push_back(&instruction);
  return found;
}

/// What `greta.config` says about a product, in place of what was chosen.
static LogicalResult override(Tile &tile, MatmulOp matmul,
                              ArrayRef<const MatrixInstruction *> available) {
  Attribute attribute = matmul->getAttr("greta.config");
  if (!attribute)
    return success();
  auto isNumber = [](Attribute entry) {
    auto integer = dyn_cast<IntegerAttr>(entry);
    return integer && integer.getValue().isSignedIntN(32);
  };
  auto isKnown = [&](NamedAttribute entry) {
    if (llvm::is_contained({"tile", "instruction"}, entry.getName())) {
      auto array = dyn_cast<ArrayAttr>(entry.getValue());
      return array && llvm::all_of(array, isNumber);
    }
    if (entry.getName() == "opaque")
      return isa<UnitAttr>(entry.getValue());
    return llvm::is_contained({"waves", "stages", "slice", "group"},
                              entry.getName()) &&
           isNumber(entry.getValue());
  };
  auto config = dyn_cast<DictionaryAttr>(attribute);
  if (!config || !llvm::all_of(config, isKnown))
    return matmul.emitOpError(
        "has a 'greta.config' that is not a dictionary of 'tile' and "
        "'instruction', arrays of integers, 'waves', 'stages', 'slice' and "
        "'group', integers below 2^31, and 'opaque'");
  auto number = [&](StringRef name, int64_t &value) {
    if (auto integer = config.getAs<IntegerAttr>(name))
      value = integer.getValue().getSExtValue();
  };
  auto triple = [&](StringRef name) {
    SmallVector<int64_t> values;
    if (auto array = config.getAs<ArrayAttr>(name))
      for (Attribute entry : array)
        values.push_back(cast<IntegerAttr>(entry).getValue().getSExtValue());
    return values;
  };
  if (config.contains("tile")) {
    SmallVector<int64_t> sizes = triple("tile");
    if (sizes.size() != 3 ||
        llvm::any_of(sizes, [](int64_t n) { return n < 1 || n > 1024; }))
      return matmul.emitOpError("has a 'greta.config' whose 'tile' is not "
                                "three extents from 1 to 1024");
    tile.m = sizes[0];
    tile.n = sizes[1];
    tile.k = sizes[2];
    tile.slice = tile.stages == 1 ? tile.instruction->k : tile.k;
  }
  if (config.contains("instruction")) {
    SmallVector<int64_t> sizes = triple("instruction");
    auto found = llvm::find_if(available, [&](const MatrixInstruction *mi) {
      return sizes == SmallVector<int64_t>{mi->m, mi->n, mi->k};
    });
    if (found == available.end())
      return matmul.emitOpError("has a 'greta.config' whose 'instruction' the "
                                "target does not have for these operands");
    tile.instruction = *found;
  }
  tile.opaque = config.contains("opaque");
  if (tile.opaque && tile.instruction->name != "coopmat")
    return matmul.emitOpError("has a 'greta.config' with 'opaque', which "
                              "cooperative matrices may be");
  number("waves", tile.waves);
  number("stages", tile.stages);
  number("slice", tile.slice);
  number("group", tile.group);
  if (!llvm::isPowerOf2_64(std::max<int64_t>(tile.waves, 0)) ||
      tile.stages < 1 || tile.stages > 2 || tile.group < 1)
    return matmul.emitOpError("has a 'greta.config' whose waves are no power "
                              "of two, stages not 1 or 2, or group not "
                              "positive");
  return success();
}

/// Rows of blocks that are done before the next column. Where one L2 serves
/// all compute units, the blocks in flight should be as square as they can be,
/// and the groups alike; chiplets have small ones of their own.
static int64_t groupOf(const Problem &problem, const Tile &tile,
                       const TargetRow &row) {
  if (!row.isVulkan())
    return 8;
  int64_t square = std::max(
      1.0, std::round(std::sqrt(double(row.computeUnits) * tile.n / tile.m)));
  int64_t rows = llvm::divideCeil(problem.m, tile.m);
  return llvm::divideCeil(rows, llvm::divideCeil(rows, square));
}

/// The best tile with a matrix instruction; none where there is no instruction.
static FailureOr<std::optional<Tile>>
chooseTile(MatmulOp matmul, const Problem &problem, const Limits &limits) {
  SmallVector<const MatrixInstruction *> available =
      instructionsFor(matmul, limits);
  TileModel model(problem, limits);
  std::optional<Tile> best;
  double bestCycles = HUGE_VAL;
  static constexpr int64_t extents[] = {8,   16,  32,  48,  64,  80,  96,
                                        112, 128, 160, 192, 208, 224, 256};
  auto enough = [](int64_t extent, int64_t size, int64_t unit) {
    return extent <= int64_t(llvm::alignTo(size, unit));
  };
  for (const MatrixInstruction *mi : available)
    for (int64_t waves = 1; waves <= 8; waves *= 2)
      for (int64_t m : extents)
        for (int64_t n : extents)
          for (int64_t k = mi->k; k <= 128; k *= 2) {
            if (!enough(m, problem.m, mi->m) || !enough(n, problem.n, mi->n) ||
                (k > mi->k && k / 2 >= problem.k))
              continue;
            // Without a register file the device is a CPU, whose driver takes
            // products apart: 19 s for 32x32x32, 2 s for 16x16x16.
            if (!limits.wide && (m > 16 || n > 16 || k > 16 || waves > 4))
              continue;
            Tile tile{mi, m, n, k, waves};
            tile.group = groupOf(problem, tile, limits.row);
            tile.stages = limits.row.isVulkan() ? 1 : 2;
            for (int64_t slice = mi->k; slice <= k; slice *= 2) {
              if (tile.stages == 1 && slice > mi->k)
                break;
              tile.slice = slice;
              if (model.whyNot(tile))
                continue;
              double cycles = model.cycles(tile);
              if (cycles < bestCycles * 0.999) {
                bestCycles = cycles;
                best = tile;
              }
            }
          }
  if (!best)
    return best;
  Tile chosen = *best;
  if (failed(override(chosen, matmul, available)))
    return failure();
  if (std::optional<std::string> why = model.whyNot(chosen, /*asked=*/true))
    return matmul.emitOpError("has a 'greta.config' that does not fit: ")
           << *why;
  return std::optional<Tile>(chosen);
}

/// Blocks for multiply-adds: sixteen accumulators a lane.
static FailureOr<Choice> chooseMultiplyAdds(MatmulOp matmul,
                                            const Problem &problem,
                                            const Limits &limits) {
  int64_t largest = limits.wide ? 64 : 32;
  auto extent = [&](int64_t size) {
    return std::clamp<int64_t>(llvm::PowerOf2Ceil(size), 16, largest);
  };
  Choice choice;
  choice.space.rows = {extent(problem.m)};
  choice.space.columns = extent(problem.n);
  choice.space.depth =
      std::clamp<int64_t>(llvm::PowerOf2Ceil(problem.k), 1, 16);
  int64_t size = choice.space.rows[0] * choice.space.columns;
  choice.block = std::clamp<int64_t>(size / 16, limits.wave, limits.shareBlock);
  int64_t bytes = problem.bytes * choice.space.depth *
                  (choice.space.rows[0] + choice.space.columns);
  if (bytes > limits.ldsBytes)
    return matmul.emitOpError("needs ")
           << bytes << " bytes of shared memory for its smallest block, the "
           << "target has " << limits.ldsBytes << "; take another target";
  return choice;
}

/// Some layout of a rows x columns tile: neighbours in a lane first, then lanes
/// side by side.
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

static tile::MatrixAttr matrixOf(MLIRContext *context, const Tile &tile,
                                 int64_t wave) {
  const MatrixInstruction &mi = *tile.instruction;
  auto name = StringAttr::get(context, mi.name);
  if (tile.opaque || !mi.accLayout.isKnown())
    return tile::MatrixAttr::get(context, name, /*swapped=*/false,
                                 /*opaque=*/true,
                                 someLayout(context, mi.m, mi.k, wave),
                                 someLayout(context, mi.k, mi.n, wave),
                                 someLayout(context, mi.m, mi.n, wave));
  // Neighbours in a lane's registers should be neighbours in a row. A fragment
  // has its place among the operands in its type.
  bool swapped = !mi.accLayout.reg.empty() &&
                 mi.accLayout.reg.front().row != 0 && mi.name != "coopmat";
  const FragmentLayout &left = swapped ? mi.bLayout : mi.aLayout;
  const FragmentLayout &right = swapped ? mi.aLayout : mi.bLayout;
  return tile::MatrixAttr::get(
      context, name, swapped, /*opaque=*/false, toAttr(context, left, swapped),
      toAttr(context, right, swapped), toAttr(context, mi.accLayout, swapped));
}

FailureOr<Choice> greta::chooseProduct(const Space &space, const Limits &limits,
                                       MLIRContext *context) {
  MatmulOp matmul = space.matmul;
  RankedTensorType a = matmul.getA().getType();
  int64_t k = a.getDimSize(matmul.getTransposeA() ? 0 : 1);
  // The loop over K looks two blocks ahead in i32.
  constexpr int64_t maxDepth = INT32_MAX / 2;
  if (!ShapedType::isDynamic(k) && k > maxDepth)
    return matmul.emitOpError("has K = ")
           << k << "; it may have up to " << maxDepth << ": split the product";
  // A dynamic M is a prompt's length.
  constexpr int64_t guess = 2048;
  auto sizeOf = [&](AffineExpr extent) {
    return std::max<int64_t>(1, constantOf(extent).value_or(guess));
  };
  Problem problem{sizeOf(space.shape[0]), sizeOf(space.shape[1]),
                  ShapedType::isDynamic(k) ? guess : std::max<int64_t>(k, 1),
                  std::max(1u, a.getElementTypeBitWidth() / 8)};
  FailureOr<std::optional<Tile>> tile = chooseTile(matmul, problem, limits);
  if (failed(tile))
    return failure();
  if (!*tile)
    return chooseMultiplyAdds(matmul, problem, limits);
  Choice choice;
  choice.block = (*tile)->waves * limits.wave;
  choice.space.rows = {(*tile)->m};
  choice.space.columns = (*tile)->n;
  choice.space.depth = (*tile)->k;
  choice.space.group = (*tile)->group;
  choice.space.chiplets = limits.row.xcds;
  choice.space.pipeline =
      tile::PipelineAttr::get(context, (*tile)->stages, (*tile)->slice);
  choice.space.matrix = matrixOf(context, **tile, limits.wave);
  return choice;
}
