//===- ChecksScalar.cpp - what undefined masks and scalars decide ---------===//
//
// With CheckPrograms, scalar registers are undefined bit by bit, as masks of
// lanes are: a lane that compares garbage under a mask that leaves it out
// decides nothing. The effect of undefined bits is found by running the
// instruction on the scalar registers once for each way of filling them, with
// ones or zeros an operand: bits of the result that differ are undefined.
// Branches, and lanes that are turned on or off, may not depend on any.
//
//===----------------------------------------------------------------------===//
#include "Checks/ChecksState.h"

using namespace greta::sim;
using llvm::StringRef;
using llvm::Twine;

/// Returns whether each bit of the result depends on the same source bits.
static bool isBitwise(StringRef name) {
  static constexpr const char *bitwise[] = {
      "s_and",  "s_nand", "s_or",  "s_nor",  "s_xor",
      "s_xnor", "s_not",  "s_mov", "s_cmov", "s_cselect"};
  return llvm::any_of(bitwise,
                      [&](StringRef one) { return name.starts_with(one); });
}

static uint64_t maskOf(const WaveState &s, unsigned first, bool isWide) {
  return uint64_t(isWide ? s.undefined[first + 1] : 0) << 32 |
         s.undefined[first];
}

void Checker::State::decides(Wave &w, const WaveState &s, const Inst &i,
                             const char *what) {
  w.fault(i, Twine(s.origin) + " decides " + what);
}

void Checker::State::scalarBefore(Wave &w, WaveState &s, const Inst &i) {
  scalarResult.reset();
  if (s.origin.empty() || !i.op)
    return;
  StringRef name = i.op->name;
  if (i.unit == Unit::Branch) {
    bool taken = (name.contains("scc") && s.undefined[slot::Scc]) ||
                 (name.contains("vcc") && maskOf(s, slot::VCC, !w.wave32));
    if (taken)
      decides(w, s, i, "a branch");
    return;
  }
  // These comparisons decide which lanes go on.
  if (i.unit == Unit::Valu && !i.dst[0] && (i.op->flags & NoDst)) {
    if (w.exec & ~resultLanes(s, w, i, false))
      decides(w, s, i, "which lanes go on");
    return;
  }
  if (i.unit != Unit::Salu)
    return;
  llvm::SmallVector<llvm::SmallVector<uint16_t, 2>, 3> groups;
  for (unsigned k = 0; k < i.numSrc; ++k) {
    llvm::SmallVector<uint16_t, 2> words;
    for (unsigned n = 0; i.src[k].kind == Operand::Sgpr && n < i.src[k].words;
         ++n)
      if (s.undefined[i.src[k].index + n])
        words.push_back(uint16_t(i.src[k].index + n));
    if (!words.empty())
      groups.push_back(words);
  }
  bool hasSource = !groups.empty();
  if (s.undefined[slot::Scc])
    groups.push_back({slot::Scc});
  if (groups.empty())
    return;
  uint32_t before[slot::Count], first[slot::Count];
  std::memcpy(before, w.s, sizeof(before));
  uint64_t exec = w.exec;
  uint32_t pc = w.pc;
  ScalarResult &result = scalarResult.emplace();
  for (unsigned way = 0; way < 1u << groups.size(); ++way) {
    std::memcpy(w.s, before, sizeof(before));
    w.setExec(exec);
    for (unsigned g = 0; g < groups.size(); ++g)
      for (uint16_t word : groups[g]) {
        uint32_t bits = word == slot::Scc ? 1 : s.undefined[word];
        w.s[word] = way >> g & 1 ? w.s[word] | bits : w.s[word] & ~bits;
      }
    i.fn(w, i);
    auto differing = [&](unsigned word) { return first[word] ^ w.s[word]; };
    if (way == 0) {
      std::memcpy(first, w.s, sizeof(first));
      continue;
    }
    for (unsigned n = 0; n < i.dst[0].words && i.dst[0]; ++n)
      result.undefined[n & 1] |= differing(i.dst[0].index + n);
    result.exec |=
        uint64_t(differing(slot::Exec + 1)) << 32 | differing(slot::Exec);
    result.scc |= differing(slot::Scc) != 0;
  }
  std::memcpy(w.s, before, sizeof(before));
  w.setExec(exec);
  w.pc = pc;
  if (hasSource && !isBitwise(name)) {
    result.undefined[0] = result.undefined[1] = ~0u;
    result.scc |= name.starts_with("s_cmp") || name.starts_with("s_bitcmp");
  }
}

void Checker::State::scalarAfter(Wave &w, WaveState &s, const Inst &i) {
  if (!scalarResult)
    return;
  for (unsigned n = 0; n < i.dst[0].words && i.dst[0]; ++n)
    s.undefined[i.dst[0].index + n] = scalarResult->undefined[n & 1];
  s.undefined[slot::Scc] = scalarResult->scc;
  if (scalarResult->exec & (w.wave32 ? 0xffffffffu : ~uint64_t(0)))
    decides(w, s, i, "which lanes go on");
}
