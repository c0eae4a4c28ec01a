//===- Conversion.cpp - plans for moving values between layouts -----------===//
//
// With S the source's map, D the destination's and M = (destination holder ->
// source holder), a plan is a linear M with S(M(x)) = D(x). Repetitions of both
// sides are first brought to the same tile, after which a repetition moves to
// itself. Choosing M bit by bit decides the kind: a bit of the destination's
// lane that stays the same lane needs no shuffle, a bit of the wave that is the
// same wave needs no shared memory.
//
//===----------------------------------------------------------------------===//
#include "greta/Layout/Conversion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/bit.h"
#include <set>

using namespace greta;
using llvm::ArrayRef;

bool Conversion::isXorShuffle() const {
  if (kind != Kind::Shuffle)
    return false;
  for (auto [bit, lane] : llvm::enumerate(laneFromLane))
    if (lane != 1u << bit)
      return false;
  return llvm::all_of(laneFromWave, [](uint32_t lane) { return lane == 0; });
}

uint32_t Conversion::exchangedLane() const {
  uint32_t exchanged = 0;
  if (kind != Kind::Shuffle)
    return 0;
  for (auto [bit, lane] : llvm::enumerate(laneFromLane)) {
    if (lane == 1u << bit)
      continue;
    if (lane || exchanged)
      return 0;
    exchanged = 1u << bit;
  }
  bool byWave =
      llvm::any_of(laneFromWave, [](uint32_t lane) { return lane != 0; });
  return byWave ? 0 : exchanged;
}

unsigned Conversion::numShuffles() const {
  if (kind != Kind::Shuffle)
    return 0;
  if (uint32_t exchanged = exchangedLane()) {
    std::set<std::pair<unsigned, uint32_t>> shuffles;
    for (const Move &move : moves)
      for (unsigned reg : move.registers)
        for (uint32_t mask : {move.laneXor, move.laneXor ^ exchanged})
          if (mask)
            shuffles.insert({reg, mask});
    return shuffles.size();
  }
  bool isXor = isXorShuffle();
  unsigned count = 0;
  for (const Move &move : moves)
    if (!isXor || move.laneXor != 0)
      count += move.registers.size();
  return count;
}

Holder Conversion::source(unsigned reg, unsigned lane, unsigned wave) const {
  const Move &move = moves[reg];
  unsigned choice = 0;
  for (auto [place, selector] : llvm::enumerate(selectors)) {
    int set = llvm::popcount(lane & selector.laneMask) +
              llvm::popcount(wave & selector.waveMask);
    choice |= (set & 1) << place;
  }
  uint32_t from = lane;
  if (kind == Kind::Shuffle) {
    from = move.laneXor;
    for (auto [bit, image] : llvm::enumerate(laneFromLane))
      if (lane >> bit & 1)
        from ^= image;
    for (auto [bit, image] : llvm::enumerate(laneFromWave))
      if (wave >> bit & 1)
        from ^= image;
  }
  return {move.registers[choice], from, wave};
}

namespace {
/// Maps a bit of the destination's holder to the bits it adds to the source's
/// holder.
struct Image {
  uint32_t reg = 0, lane = 0;
};
/// M, without the wave, which always stays the same.
struct Plan {
  llvm::SmallVector<Image, 8> reg, lane, wave;
};
} // namespace

/// The part of a layout's tile map that belongs to one group of bits.
static ArrayRef<uint64_t> images(ArrayRef<uint64_t> all, const Layout &layout,
                                 unsigned group) {
  size_t reg = layout.reg().size(), lane = layout.lane().size();
  if (group == 0)
    return all.take_front(reg);
  if (group == 1)
    return all.slice(reg, lane);
  return all.drop_front(reg + lane);
}

static llvm::SmallVector<uint64_t, 16> allImages(const Layout &layout) {
  LinearMap map = layout.tileMap();
  llvm::SmallVector<uint64_t, 16> all;
  for (unsigned bit = 0; bit != map.numInputBits(); ++bit)
    all.push_back(map.image(bit));
  return all;
}

/// Finds M, or none if some element comes from another wave. `shuffle` is false
/// if the lane must stay the same too.
static std::optional<Plan> findPlan(const Layout &src, const Layout &dst,
                                    bool shuffle) {
  auto from = allImages(src), to = allImages(dst);
  ArrayRef<uint64_t> srcReg = images(from, src, 0);
  ArrayRef<uint64_t> srcLane = images(from, src, 1);
  ArrayRef<uint64_t> srcWave = images(from, src, 2);
  unsigned numRegs = srcReg.size(), numLanes = srcLane.size();

  // Registers first, so that register bits cross no lanes unless they have to.
  BitSpan regFirst, laneFirst;
  for (uint64_t image : srcReg)
    regFirst.add(image);
  if (shuffle) {
    for (uint64_t image : srcLane) {
      regFirst.add(image);
      laneFirst.add(image);
    }
    for (uint64_t image : srcReg)
      laneFirst.add(image);
  }
  uint32_t regMask = (1u << numRegs) - 1, laneMask = (1u << numLanes) - 1;
  auto solveRegFirst = [&](uint64_t target) -> std::optional<Image> {
    std::optional<uint64_t> made = regFirst.solve(target);
    if (!made)
      return std::nullopt;
    return Image{uint32_t(*made) & regMask, uint32_t(*made >> numRegs)};
  };
  auto solveLaneFirst = [&](uint64_t target) -> std::optional<Image> {
    std::optional<uint64_t> made = laneFirst.solve(target);
    if (!made)
      return std::nullopt;
    return Image{uint32_t(*made >> numLanes), uint32_t(*made) & laneMask};
  };

  Plan plan;
  for (uint64_t target : images(to, dst, 0)) {
    std::optional<Image> image = solveRegFirst(target);
    if (!image)
      return std::nullopt;
    plan.reg.push_back(*image);
  }
  for (auto [bit, target] : llvm::enumerate(images(to, dst, 1))) {
    Image image;
    if (target == srcLane[bit]) {
      image.lane = 1u << bit;
    } else if (shuffle) {
      std::optional<Image> found = solveLaneFirst(target);
      if (!found)
        return std::nullopt;
      image = *found;
    } else {
      std::optional<Image> found = solveRegFirst(target ^ srcLane[bit]);
      if (!found)
        return std::nullopt;
      image = {found->reg, 1u << bit};
    }
    plan.lane.push_back(image);
  }
  for (auto [bit, target] : llvm::enumerate(images(to, dst, 2))) {
    uint64_t rest = target ^ srcWave[bit];
    std::optional<Image> image =
        shuffle ? solveLaneFirst(rest) : solveRegFirst(rest);
    if (!image)
      return std::nullopt;
    plan.wave.push_back(*image);
  }
  return plan;
}

/// Turns register images that depend on the thread into selectors: a basis of
/// their span, and for each thread bit its coordinates.
static llvm::SmallVector<uint32_t> makeSelectors(const Plan &plan,
                                                 Conversion &conversion) {
  llvm::SmallVector<uint32_t> basis;
  llvm::SmallVector<unsigned> ids;
  BitSpan span;
  unsigned id = 0;
  auto visit = [&](const Image &image) {
    if (span.add(image.reg)) {
      basis.push_back(image.reg);
      ids.push_back(id);
    }
    ++id;
  };
  llvm::for_each(plan.lane, visit);
  llvm::for_each(plan.wave, visit);
  conversion.selectors.resize(basis.size());
  auto mark = [&](ArrayRef<Image> bits, auto member) {
    for (auto [bit, image] : llvm::enumerate(bits)) {
      uint64_t made = *span.solve(image.reg);
      for (auto [place, basisId] : llvm::enumerate(ids))
        if (made >> basisId & 1)
          conversion.selectors[place].*member |= 1u << bit;
    }
  };
  mark(plan.lane, &Conversion::Selector::laneMask);
  mark(plan.wave, &Conversion::Selector::waveMask);
  return basis;
}

/// Decides between Identity and Registers for moves within a thread. If the
/// source holds copies, a register stays itself when it may.
static void preferSameRegisters(const Layout &src, Conversion &conversion) {
  bool identity = src.numRegisters() == conversion.moves.size();
  for (auto [reg, move] : llvm::enumerate(conversion.moves)) {
    unsigned &from = move.registers[0];
    if (reg < src.numRegisters() &&
        src.registerIndex(reg) == src.registerIndex(from))
      from = reg;
    identity &= from == reg;
  }
  conversion.kind =
      identity ? Conversion::Kind::Identity : Conversion::Kind::Registers;
}

static std::string shapeText(const Layout &layout) {
  std::string text;
  for (int64_t extent : layout.shape())
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

llvm::FailureOr<Conversion> greta::convert(const Layout &src, const Layout &dst,
                                           std::string &error) {
  if (src.shape() != dst.shape()) {
    error = "a conversion from shape " + shapeText(src) + " to shape " +
            shapeText(dst);
    return llvm::failure();
  }
  if (src.numLanes() != dst.numLanes() || src.numWaves() != dst.numWaves()) {
    error = "a conversion from " + std::to_string(src.numLanes()) +
            " lanes in " + std::to_string(src.numWaves()) + " waves to " +
            std::to_string(dst.numLanes()) + " lanes in " +
            std::to_string(dst.numWaves()) + " waves";
    return llvm::failure();
  }
  Index tile;
  for (unsigned dim = 0; dim != src.rank(); ++dim)
    tile.push_back(std::max(src.tile()[dim], dst.tile()[dim]));
  llvm::SmallVector<unsigned> srcMap, dstMap;
  Layout from = src.withTile(tile, &srcMap), to = dst.withTile(tile, &dstMap);

  Conversion result;
  bool shuffle = false;
  std::optional<Plan> plan = findPlan(from, to, /*shuffle=*/false);
  if (!plan) {
    shuffle = true;
    plan = findPlan(from, to, /*shuffle=*/true);
  }
  if (!plan)
    return result;

  llvm::SmallVector<uint32_t> basis = makeSelectors(*plan, result);
  if (shuffle) {
    for (const Image &image : plan->lane)
      result.laneFromLane.push_back(image.lane);
    for (const Image &image : plan->wave)
      result.laneFromWave.push_back(image.lane);
  }
  result.moves.resize(to.numRegisters());
  for (unsigned reg = 0, e = to.numRegisters(); reg != e; ++reg) {
    Image start;
    for (auto [bit, image] : llvm::enumerate(plan->reg))
      if (reg >> bit & 1) {
        start.reg ^= image.reg;
        start.lane ^= image.lane;
      }
    unsigned repetition = reg / to.tileRegisters() * from.tileRegisters();
    Conversion::Move &move = result.moves[dstMap[reg]];
    move.laneXor = start.lane;
    for (unsigned choice = 0; choice != 1u << basis.size(); ++choice) {
      uint32_t tileReg = start.reg;
      for (unsigned place = 0; place != basis.size(); ++place)
        if (choice >> place & 1)
          tileReg ^= basis[place];
      move.registers.push_back(srcMap[repetition + tileReg]);
    }
  }
  if (shuffle)
    result.kind = Conversion::Kind::Shuffle;
  else if (!basis.empty())
    result.kind = Conversion::Kind::Select;
  else
    preferSameRegisters(src, result);
  return result;
}

llvm::FailureOr<Conversion>
greta::broadcast(const Layout &src, const Layout &dst, std::string &error) {
  if (src.rank() != dst.rank()) {
    error = "a broadcast from shape " + shapeText(src) + " to shape " +
            shapeText(dst);
    return llvm::failure();
  }
  Layout flat = dst;
  auto flatRegister = llvm::to_vector(llvm::seq(dst.numRegisters()));
  for (unsigned dim = 0; dim != src.rank(); ++dim) {
    if (src.shape()[dim] != 1)
      continue;
    llvm::SmallVector<unsigned> map;
    flat = flat.collapse(dim, &map);
    for (unsigned &reg : flatRegister)
      reg = map[reg];
  }
  llvm::FailureOr<Conversion> moved = convert(src, flat, error);
  if (failed(moved) || moved->kind == Conversion::Kind::Shared)
    return moved;
  Conversion result = *moved;
  result.moves.clear();
  for (unsigned from : flatRegister)
    result.moves.push_back(moved->moves[from]);
  if (result.kind <= Conversion::Kind::Registers)
    preferSameRegisters(src, result);
  return result;
}

std::optional<llvm::SmallVector<unsigned>> greta::relabel(const Layout &src,
                                                          const Layout &dst) {
  std::string error;
  llvm::FailureOr<Conversion> moved = broadcast(src, dst, error);
  if (failed(moved) || (moved->kind != Conversion::Kind::Identity &&
                        moved->kind != Conversion::Kind::Registers))
    return std::nullopt;
  llvm::SmallVector<unsigned> registers;
  for (const Conversion::Move &move : moved->moves)
    registers.push_back(move.registers[0]);
  return registers;
}

llvm::FailureOr<Reduction> greta::reduce(const Layout &layout, unsigned dim,
                                         std::string &error) {
  llvm::FailureOr<Layout::BitsAlong> along = layout.bitsAlong(dim, error);
  if (failed(along))
    return llvm::failure();
  Reduction reduction;
  llvm::SmallVector<unsigned> map;
  reduction.result = layout.collapse(dim, &map);
  reduction.lanes = along->lanes;
  reduction.waves = along->waves;
  reduction.registers.resize(reduction.result.numRegisters());
  // Copies among the registers are those with a free bit set.
  uint32_t copies = layout.freeRegisterBits();
  for (auto [reg, target] : llvm::enumerate(map))
    if ((reg % layout.tileRegisters() & copies) == 0)
      reduction.registers[target].push_back(reg);
  return reduction;
}
