//===- Modifiers.cpp - what LLVM prints behind an instruction's operands --===//
//
// One table of modifiers: which units' instructions take each, and what it
// becomes in the bound instruction. A modifier that is not in the table, or
// not for this instruction, fails the binding by its name: nothing that LLVM
// prints is dropped silently. Cache policies and scheduling hints stand in the
// table too: they are taken, and change nothing that a program can see.
//
//===----------------------------------------------------------------------===//
#include "Code/Program.h"
#include "Isa/Fp8.h"
#include "Isa/Lane.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace greta::sim;
using namespace llvm;

namespace {

constexpr uint32_t bit(Unit u) { return 1u << unsigned(u); }
constexpr uint32_t Lds = bit(Unit::Lds), Smem = bit(Unit::Smem),
                   Other = bit(Unit::Other), Matrix = bit(Unit::Matrix),
                   Alu = bit(Unit::Valu) | bit(Unit::Trans),
                   // v_s_exp_f32 and its like are scalar.
    Output = Alu | bit(Unit::Salu),
                   Vmem = bit(Unit::Global) | bit(Unit::Flat) |
                          bit(Unit::Scratch) | bit(Unit::Buffer),
                   // Cache control instructions are bound as Other.
    Cached = Vmem | Smem | Other;

/// Holds "[a,b,c]" as bits, and the number of entries.
struct BitList {
  unsigned bits = 0, count = 0;
  BitList(StringRef t) {
    t.consume_front("[");
    t.consume_back("]");
    while (!t.empty()) {
      auto [head, tail] = t.split(',');
      bits |= unsigned(head.trim() == "1") << count++;
      t = tail;
    }
  }
  operator uint8_t() const { return uint8_t(bits); }
};

unsigned selection(StringRef t) {
  return StringSwitch<unsigned>(t)
      .Case("BYTE_0", 0)
      .Case("BYTE_1", 1)
      .Case("BYTE_2", 2)
      .Case("BYTE_3", 3)
      .Case("WORD_0", 4)
      .Case("WORD_1", 5)
      .Default(6);
}

/// Parses HW_REG_MODE, 4, 2 or only a number into lane[0..2]: id, offset, size.
void parseHwreg(StringRef t, Inst &i) {
  auto [name, rest] = t.split(',');
  auto [offset, size] = rest.split(',');
  name = name.trim();
  unsigned id =
      StringSwitch<unsigned>(name)
          .Cases({"HW_REG_MODE", "HW_REG_WAVE_MODE"}, 1)
          .Cases({"HW_REG_STATUS", "HW_REG_WAVE_STATUS"}, 2)
          .Cases({"HW_REG_HW_ID", "HW_REG_WAVE_STATE_PRIV"}, 4)
          .Cases({"HW_REG_XCC_ID", "HW_REG_FLAT_SCR_LO"}, 20)
          .Case("HW_REG_FLAT_SCR_HI", 21)
          .Cases({"HW_REG_HW_ID1", "HW_REG_WAVE_HW_ID1"}, 23)
          .Case("HW_REG_WAVE_SCHED_MODE", 26)
          .Cases({"HW_REG_SHADER_CYCLES", "HW_REG_SHADER_CYCLES_LO"}, 29)
          .Case("HW_REG_SHADER_CYCLES_HI", 30)
          .Default(0);
  unsigned n = 0;
  if (!id && !name.getAsInteger(0, n))
    id = n;
  i.lane[0] = uint8_t(id);
  n = 0;
  (void)offset.trim().getAsInteger(0, n);
  i.lane[1] = uint8_t(n & 31);
  n = 32;
  if (!size.empty())
    (void)size.trim().getAsInteger(0, n);
  i.lane[2] = uint8_t(n);
}

/// Applies sc0, glc and gfx12's words. The access is coherent with others; in
/// an atomic the bit also returns the old value.
void coherent(Inst &i) { i.flags |= Coherent; }
void coherentOrReturn(Inst &i) {
  coherent(i);
  if (i.op->flags & Returns)
    i.flags |= Return;
}

bool isDirectToLds(const OpInfo &op) {
  StringRef name = op.name;
  return name.contains("_load_lds_") ||
         (op.unit == Unit::Buffer && name.contains("_load_"));
}

struct Modifier {
  const char *name;
  uint32_t units;
  /// Returns false if this instruction does not take it. `n` is the number.
  bool (*apply)(Inst &i, StringRef value, int64_t n);
};

#define TAKES(statement)                                                       \
  [](Inst &i, StringRef value, int64_t n) {                                    \
    (void)i, (void)value, (void)n;                                             \
    statement;                                                                 \
    return true;                                                               \
  }
#define WAIT_FIELD(shift)                                                      \
  TAKES(i.waits = (i.waits & ~(0xffu << shift)) | uint32_t(n) << shift)

const Modifier table[] = {
    // Memory.
    {"offset", Lds | Vmem | Smem, TAKES(i.imm = n)},
    {"offset0", Lds, TAKES(i.imm = n)},
    {"offset1", Lds, TAKES(i.imm2 = n)},
    {"offen", bit(Unit::Buffer), TAKES(i.flags |= OffEn)},
    {"idxen", bit(Unit::Buffer), TAKES(i.flags |= IdxEn)},
    {"lds", Vmem,
     [](Inst &i, StringRef, int64_t) {
       i.flags |= ToLds;
       return isDirectToLds(*i.op);
     }},
    {"sc0", Cached, TAKES(coherentOrReturn(i))},
    {"glc", Cached, TAKES(coherentOrReturn(i))},
    {"sc1", Cached, TAKES(coherent(i))},
    {"scope", Cached, TAKES(if (value != "SCOPE_CU") coherent(i))},
    {"th", Cached,
     TAKES(if (value.contains("ATOMIC") && value.contains("RETURN")) i.flags |=
           Return)},
    {"nt", Cached, TAKES()},
    {"slc", Cached, TAKES()},
    {"dlc", Cached, TAKES()},
    {"scc", Cached, TAKES()},
    {"nv", Cached, TAKES()},
    {"swz", bit(Unit::Buffer), TAKES()},
    // Arithmetic.
    {"clamp", Output | Matrix, TAKES(i.flags |= Clamp)},
    {"mul", Output, TAKES(i.omod = n == 2 ? 1 : 2)},
    {"div", Output, TAKES(i.omod = 3)},
    {"op_sel", Alu | Matrix,
     TAKES(BitList list(value); i.opSel = list;
           if (list.count > i.numSrc && (i.opSel >> i.numSrc & 1)) i.flags |=
           HiDst)},
    {"op_sel_hi", Alu | Matrix, TAKES(i.opSelHi = BitList(value))},
    {"neg_lo", Alu | Matrix, TAKES(i.negLo = BitList(value))},
    {"neg_hi", Alu | Matrix, TAKES(i.negHi = BitList(value))},
    {"bitop3", Alu, TAKES(i.imm = n)},
    {"byte_sel", Alu, TAKES(i.abid = uint8_t(n))},
    {"cbsz", Matrix, TAKES(i.cbsz = parseFormat(value, n))},
    {"abid", Matrix, TAKES(i.abid = uint8_t(n))},
    {"blgp", Matrix, TAKES(i.blgp = parseFormat(value, n))},
    // Double-precision MFMA spells blgp this way.
    {"neg", Matrix, TAKES(i.blgp = BitList(value))},
    {"index_key", Matrix, TAKES(i.abid = uint8_t(n))},
    {"matrix_a_fmt", Matrix, TAKES(i.cbsz = parseFormat(value, n))},
    {"matrix_b_fmt", Matrix, TAKES(i.blgp = parseFormat(value, n))},
    // Across lanes (parseDpp has the permutations), and parts of registers.
    {"row_mask", Alu, TAKES(i.lane[2] = uint8_t(n))},
    {"bank_mask", Alu, TAKES(i.lane[3] = uint8_t(n))},
    {"bound_ctrl", Alu, TAKES(i.flags |= BoundCtrl)},
    {"fi", Alu, TAKES(i.flags |= FetchInactive)},
    {"dst_sel", Alu, TAKES(i.lane[0] = uint8_t(selection(value)))},
    {"dst_unused", Alu,
     TAKES(i.lane[1] = value == "UNUSED_SEXT"       ? 1
                       : value == "UNUSED_PRESERVE" ? 2
                                                    : 0)},
    {"src0_sel", Alu,
     TAKES(i.lane[2] = uint8_t(selection(value) | (i.lane[2] & 0x80)))},
    {"src1_sel", Alu,
     TAKES(i.lane[3] = uint8_t(selection(value) | (i.lane[3] & 0x80)))},
    // Control.
    {"vmcnt", Other, WAIT_FIELD(0)},
    {"expcnt", Other, WAIT_FIELD(8)},
    {"lgkmcnt", Other, WAIT_FIELD(16)},
    {"hwreg", bit(Unit::Salu), TAKES(parseHwreg(value, i))},
    {"gpr_idx", Other, TAKES(i.imm = parseGprIndex(value))},
    {"sendmsg", Other | Smem, TAKES()},
    {"instid0", Other, TAKES()},
    {"instid1", Other, TAKES()},
    {"instskip", Other, TAKES()},
};

} // namespace

bool Binder::modifiers(const ParsedInst &p, Inst &i) {
  if (p.mnemonic.ends_with("_sdwa")) {
    i.lane[0] = i.lane[2] = i.lane[3] = 6;
    i.lane[1] = 0;
  }
  for (const auto &modifier : p.modifiers) {
    StringRef key = modifier.first, value = modifier.second;
    int64_t n = 0;
    parseInt(value, n);
    const Modifier *m =
        find_if(table, [&](const Modifier &m) { return key == m.name; });
    bool taken = m != std::end(table)
                     ? m->units & bit(i.unit) && m->apply(i, value, n)
                     : (bit(i.unit) & Alu && parseDpp(key, value, n, i)) ||
                           // s_wait_alu and s_waitcnt_depctr name their
                           // counter.
                           (i.unit == Unit::Other && key.starts_with("depctr"));
    if (!taken) {
      problem = ("the modifier '" + key + "' of this instruction").str();
      return false;
    }
  }
  return true;
}
