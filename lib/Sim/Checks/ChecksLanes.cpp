//===- ChecksLanes.cpp - definedness across lanes -------------------------===//
//
// An instruction that moves data between lanes moves its definedness the same
// way: the instruction runs once more before it really does, on rows that hold
// a tag per lane instead of the data.
//
//===----------------------------------------------------------------------===//
#include "Checks/ChecksState.h"
#include "Code/Program.h"
#include "greta/Sim/Simulator.h"

using namespace greta::sim;
using llvm::StringRef;

namespace {

enum Cross : uint8_t {
  Unknown,
  None,
  ByDpp,
  ReadLane,
  ReadFirstLane,
  WriteLane,
  Swap,
  PermuteFirst,  ///< the first source moves
  PermuteSecond, ///< the second source moves, the first is an address
  Whole,         ///< all lanes count as defined
};

/// Nothing else uses these rows.
constexpr uint16_t TagIn = row::Temp + 16, TagOut = row::Temp + 17;
/// Marks a lane that the instruction did not write.
constexpr uint32_t Untouched = 2;

Cross kindOf(const Inst &i) {
  if (i.has(Dpp))
    return ByDpp;
  if (!i.op || !(i.op->flags & CrossLane) || i.unit == Unit::Matrix)
    return None;
  StringRef name = i.op->name;
  if (name == "v_readlane_b32")
    return ReadLane;
  if (name == "v_readfirstlane_b32")
    return ReadFirstLane;
  if (name == "v_writelane_b32")
    return WriteLane;
  if (name.starts_with("ds_"))
    return name.contains("permute") ? PermuteSecond : PermuteFirst;
  if (name == "v_swap_b32" || name.contains("_swap_b32"))
    return Swap;
  return name.starts_with("v_permlane") ? PermuteFirst : Whole;
}

void writeTags(Wave &w, uint16_t row, uint64_t defined, uint32_t more) {
  for (unsigned l = 0; l < MaxLanes; ++l)
    w.v[row][l] = uint32_t(~defined >> l & 1) | more;
}
Operand tagRow(uint16_t index) {
  Operand o;
  o.kind = Operand::Vgpr;
  o.index = index;
  return o;
}

} // namespace

void Checker::State::crossBefore(Wave &w, WaveState &s, const Inst &i) {
  size_t index = size_t(&i - w.program->code());
  if (crossKinds.size() <= index)
    crossKinds.resize(w.program->size());
  if (crossKinds[index] == Unknown)
    crossKinds[index] = kindOf(i);
  Cross kind = Cross(crossKinds[index]);
  auto definedOf = [&](const Operand &o) {
    Operand first = o;
    first.words = 1;
    return definedLanes(s, first);
  };
  auto lane = [&](uint64_t mask, unsigned l) {
    return mask >> (l & (w.lanes - 1u)) & 1 ? ~uint64_t(0) : 0;
  };
  switch (kind) {
  case ReadLane:
    crossDefined = lane(definedOf(i.src[0]), w.scalar(i.src[1]));
    return;
  case ReadFirstLane:
    crossDefined = lane(definedOf(i.src[0]),
                        w.exec ? unsigned(llvm::countr_zero(w.exec)) : 0);
    return;
  case WriteLane:
    crossWritten = uint64_t(1) << (w.scalar(i.src[1]) & (w.lanes - 1u));
    crossDefined = definedOf(i.src[0]);
    return;
  case ByDpp:
  case Swap:
  case PermuteFirst:
  case PermuteSecond:
    break;
  default:
    return;
  }
  if (!i.dst[0].isVgpr())
    return;
  unsigned data = kind == PermuteSecond;
  bool swaps = kind == Swap;
  writeTags(w, TagIn, definedOf(i.src[data]), 0);
  writeTags(w, TagOut, definedOf(i.dst[0]), swaps ? 0 : Untouched);
  Inst shadow = i, move;
  shadow.src[data] = tagRow(TagIn);
  shadow.dst[0] = tagRow(TagOut);
  shadow.flags &= ~uint32_t(WritesExec);
  if (kind == ByDpp) {
    static const OpInfo *const mov = findOp("v_mov_b32");
    move.op = mov;
    move.fn = mov->fn;
    move.unit = Unit::Valu;
    move.numSrc = 1;
    move.src[0] = tagRow(row::Temp);
    move.dst[0] = tagRow(TagOut);
    shadow.inner = &move;
  }
  shadow.fn(w, shadow);
  crossWritten = crossDefined = 0;
  for (unsigned l = 0; l < w.lanes; ++l) {
    uint32_t tag = w.v[TagOut][l];
    crossWritten |= uint64_t(swaps || !(tag & Untouched)) << l;
    crossDefined |= uint64_t(!(tag & 1)) << l;
  }
  if (swaps) {
    uint64_t other = 0;
    for (unsigned l = 0; l < w.lanes; ++l)
      other |= uint64_t(!(w.v[TagIn][l] & 1)) << l;
    s.defined[i.src[0].index] = other;
  }
  // Only the first source of a DPP instruction moves between lanes.
  if (kind == ByDpp && i.numSrc > 1) {
    Inst rest = i;
    for (unsigned k = 1; k < i.numSrc; ++k)
      rest.src[k - 1] = i.src[k];
    rest.numSrc = uint8_t(i.numSrc - 1);
    if (i.op->flags & Select) {
      uint64_t m = w.mask(i.src[2]), first = crossDefined;
      crossDefined = (first & ~m) | (definedOf(i.src[1]) & m);
    } else {
      uint64_t others = resultLanes(s, w, rest, true);
      crossDefined = i.op->flags & (Merge | Pk16 | Result16)
                         ? crossDefined | others
                         : crossDefined & others;
    }
  }
}

bool Checker::State::crossAfter(Wave &w, WaveState &s, const Inst &i) {
  Cross kind = Cross(crossKinds[size_t(&i - w.program->code())]);
  auto define = [&](uint64_t lanes, uint64_t m) {
    const Operand &d = i.dst[0];
    for (unsigned k = 0; k < d.words; ++k)
      if (d.isVgpr() && d.index + k < row::Temp) {
        uint64_t &x = s.defined[d.index + k];
        x = (x & ~lanes) | (m & lanes);
      } else if (d.kind == Operand::Sgpr && d.index + k < slot::Count) {
        s.undefined[d.index + k] = m ? 0 : ~0u;
      }
  };
  switch (kind) {
  case None:
    return false;
  case Whole:
    define(w.exec, ~uint64_t(0));
    return true;
  case ReadLane:
  case ReadFirstLane:
    define(~uint64_t(0), crossDefined);
    return true;
  default:
    // Comparisons give masks, whose definedness is not tracked by lane.
    define(crossWritten, i.dst[0].isVgpr() ? crossDefined : ~uint64_t(0));
    return true;
  }
}
