//===- Bind.cpp - assembly lines to executable instructions ---------------===//
//
// A mnemonic loses its encoding suffix (_e32, _e64, _dpp, _sdwa) and is looked
// up in the tables of the instruction groups; the row's types say how each
// operand is read. DPP, SDWA and VOPD become a wrapper around the plain
// instruction.
//
//===----------------------------------------------------------------------===//
#include "Code/Program.h"
#include "Isa/Fp8.h"
#include "Isa/Lane.h"
#include "Isa/Valu.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace greta::sim;
using namespace llvm;

/// Maps mnemonics to the rows of all instruction tables.
static const StringMap<const OpInfo *> &opTable() {
  static const StringMap<const OpInfo *> map = [] {
    StringMap<const OpInfo *> m;
    for (OpTable t :
         {saluOps(), saluFloatOps(), controlOps(), smemOps(), valuIntOps(),
          valuFloatOps(), valuHalfOps(), valuConvertOps(), valuCompareOps(),
          valuLaneOps(), gprIndexOps(), vop3pOps(), fp8Ops(), mfmaOps(),
          wmmaOps(), dsOps(), dsLaneOps(), globalOps(), bufferOps()})
      for (const OpInfo &o : t)
        m.try_emplace(o.name, &o);
    return m;
  }();
  return map;
}

const OpInfo *greta::sim::findOp(StringRef name) {
  return opTable().lookup(name);
}

std::vector<const OpInfo *> greta::sim::allOps() {
  std::vector<const OpInfo *> ops;
  for (const auto &entry : opTable())
    ops.push_back(entry.second);
  return ops;
}

/// Reports an instruction that could not be bound when it is reached, because
/// the text of a code object also holds data and code that no kernel runs.
static void unknownInstruction(Wave &w, const Inst &i) {
  w.fault(i, "the simulator does not know " + w.program->problem(i));
}

bool greta::sim::parseInt(StringRef t, int64_t &x) {
  bool negative = t.consume_front("-");
  uint64_t u;
  if (t.consume_front("0x") ? t.getAsInteger(16, u) : t.getAsInteger(10, u))
    return false;
  x = negative ? -int64_t(u) : int64_t(u);
  return true;
}

void Binder::constant(Operand &o, uint64_t value) {
  o.kind = Operand::Const;
  o.value = value;
  const uint32_t *&rows = program.constants[value];
  if (!rows) {
    std::vector<uint32_t> v(2 * MaxLanes, uint32_t(value));
    std::fill(v.begin() + MaxLanes, v.end(), uint32_t(value >> 32));
    program.constantRows.push_back(std::move(v));
    rows = program.constantRows.back().data();
  }
  o.splat = rows;
}

bool Binder::registerOperand(StringRef t, Operand &o) {
  if (t.consume_back(".h"))
    o.hi = true;
  else
    t.consume_back(".l");
  struct Name {
    const char *name;
    uint16_t index;
    uint8_t words;
  };
  static const Name names[] = {
      {"vcc", slot::VCC, 2},
      {"vcc_lo", slot::VCC, 1},
      {"vcc_hi", slot::VCC + 1, 1},
      {"exec", slot::Exec, 2},
      {"exec_lo", slot::Exec, 1},
      {"exec_hi", slot::Exec + 1, 1},
      {"m0", slot::M0, 1},
      {"null", slot::Null, 1},
      {"flat_scratch", slot::FlatScratch, 2},
      {"flat_scratch_lo", slot::FlatScratch, 1},
      {"flat_scratch_hi", slot::FlatScratch + 1, 1},
      {"src_flat_scratch_base_lo", slot::FlatScratch, 1},
      {"src_flat_scratch_base_hi", slot::FlatScratch + 1, 1},
      {"xnack_mask", slot::Xnack, 2},
      {"xnack_mask_lo", slot::Xnack, 1},
      {"xnack_mask_hi", slot::Xnack + 1, 1},
      {"src_shared_base", slot::SharedBase, 2},
      {"src_shared_limit", slot::SharedLimit, 2},
      {"src_private_base", slot::PrivateBase, 2},
      {"src_private_limit", slot::PrivateLimit, 2},
      {"src_scc", slot::Scc, 1},
      {"scc", slot::Scc, 1},
  };
  for (const Name &n : names)
    if (t == n.name) {
      o.kind = Operand::Sgpr;
      o.index = n.index;
      o.words = n.words;
      return true;
    }
  uint16_t first;
  unsigned limit;
  if (t.consume_front("ttmp")) {
    first = slot::TTMP, limit = 16;
    o.kind = Operand::Sgpr;
  } else if (t.consume_front("s")) {
    first = 0, limit = 106;
    o.kind = Operand::Sgpr;
  } else if (t.consume_front("v")) {
    first = 0, limit = 256;
    o.kind = Operand::Vgpr;
  } else if (t.consume_front("a")) {
    first = row::Agpr, limit = 256;
    o.kind = Operand::Vgpr;
  } else {
    return false;
  }
  unsigned low, high;
  if (t.consume_front("[")) {
    auto [a, b] = t.drop_back().split(':');
    if (a.getAsInteger(10, low))
      return false;
    high = low;
    if (!b.empty() && b.getAsInteger(10, high))
      return false;
  } else {
    if (t.getAsInteger(10, low))
      return false;
    high = low;
  }
  if (high < low || high >= limit)
    return false;
  o.index = uint16_t(first + low);
  o.words = uint8_t(high - low + 1);
  return true;
}

bool Binder::operand(StringRef t, char type, Operand &o) {
  o.type = type;
  if (t == "off") {
    o.kind = Operand::None;
    return true;
  }
  StringRef body = t;
  bool neg = body.consume_front("-"), abs = body.consume_front("|"),
       constantToo = abs; // "-5" is a constant, "-|5|" a modified one
  body.consume_back("|"); // of "|v0, vcc|", as LLVM prints v_cndmask
  if (body.consume_front("neg(")) {
    neg = constantToo = true;
    body.consume_back(")");
  }
  if (body.consume_front("sext(")) {
    constantToo = true;
    body.consume_back(")"); // the selection carries the flag (wrapSdwa)
  }
  if (body.empty())
    return false;
  if (registerOperand(body, o)) {
    o.neg = neg;
    o.abs = abs;
    return true;
  }
  o.kind = Operand::None;
  if (constantToo) {
    o.abs = abs;
    o.neg = neg;
    t = body;
  }
  if (t.consume_front("lit64(") || t.consume_front("lit("))
    t = t.drop_back();
  int64_t x;
  if (parseInt(t, x)) {
    bool literal = t.starts_with("0x");
    uint64_t u = uint64_t(x);
    if (type == 'D' && literal && isUInt<32>(u))
      u <<= 32;
    else if (type != 'l' && type != 'D' && type != 'r' && type != 'm' &&
             type != 'k')
      u = uint32_t(u);
    constant(o, u);
    return true;
  }
  double d;
  if (t.getAsDouble(d))
    return false;
  // 1/(2 pi) prints rounded; every type has its own constant for it.
  bool inv2pi = d > 0.15915 && d < 0.15916;
  float f = inv2pi ? llvm::bit_cast<float>(0x3e22f983u) : float(d);
  switch (type) {
  case 'D':
  case 'l':
    constant(o, inv2pi ? 0x3fc45f306dc9c882ull : llvm::bit_cast<uint64_t>(d));
    break;
  case 'h':
  case 's':
  case 'p':
    constant(o, inv2pi ? 0x3118 : floatToHalf(f));
    break;
  case 'y':
    constant(o, floatToBf16(f));
    break;
  default:
    constant(o, llvm::bit_cast<uint32_t>(f));
  }
  return true;
}

Inst &Binder::keep(const Inst &i) {
  program.inner.push_back(i);
  return program.inner.back();
}

void Binder::wrapDpp(Inst &i) {
  Inst &in = keep(i);
  in.flags &= ~uint32_t(Dpp);
  in.src[0].kind = Operand::Vgpr;
  in.src[0].index = row::Temp;
  in.src[0].hi = i.src[0].hi;
  i.inner = &in;
  i.fn = i.dpp8 ? runDpp8 : runDpp;
}

void Binder::wrapSdwa(Inst &i) {
  Inst &in = keep(i);
  for (unsigned k = 0; k < 2 && k < i.numSrc; ++k)
    if ((i.lane[2 + k] & 7) != 6) {
      in.src[k].kind = Operand::Vgpr;
      in.src[k].index = uint16_t(row::Temp + 2 * k);
    }
  if (i.dst[0].isVgpr() && (i.lane[0] & 7) != 6) {
    in.dst[0].index = row::Temp + 4;
    in.opSel = 0;
  }
  i.inner = &in;
  i.fn = runSdwa;
}

bool Binder::vopd(StringRef line, Inst &i) {
  auto [x, y] = line.split("::");
  Inst parts[2];
  unsigned k = 0;
  for (StringRef half : {x, y}) {
    half = half.trim();
    if (!half.consume_front("v_dual_"))
      return false;
    std::string text = "v_" + half.str();
    ParsedInst p = parseAssembly(text);
    parts[k].address = i.address;
    if (!bindParsed(p, parts[k]) || !parts[k].dst[0].isVgpr())
      return false;
    ++k;
  }
  i.op = parts[0].op;
  i.dst[0] = parts[0].dst[0];
  i.dst[1] = parts[1].dst[0];
  unsigned n = 0;
  for (const Inst &part : parts)
    for (unsigned s = 0; s < part.numSrc && n < 5; ++s)
      i.src[n++] = part.src[s];
  i.numSrc = uint8_t(n);
  // Both halves have to read before either writes.
  parts[0].dst[0].index = row::Temp + 8;
  Inst &second = keep(parts[1]);
  parts[0].inner = nullptr;
  Inst &first = keep(parts[0]);
  first.inner = &second;
  i.inner = &first;
  i.unit = Unit::Valu;
  i.fn = runVopd;
  return true;
}

bool Binder::unknownOperand(StringRef text) {
  problem = ("the operand '" + text + "' of this instruction").str();
  return false;
}

/// Binds the results that `types` lists; `at` is the next operand of the text.
bool Binder::bindResults(const ParsedInst &p, StringRef types, unsigned &at,
                         Inst &i) {
  for (unsigned k = 0; k < types.size(); ++k, ++at) {
    if (at >= p.operands.size())
      return false;
    if (!operand(p.operands[at], types[k], i.dst[k]))
      return unknownOperand(p.operands[at]);
    Operand &d = i.dst[k];
    if (d.kind == Operand::Const)
      return false;
    if (d.kind == Operand::Sgpr && d.index == slot::Null)
      d.index = slot::Trash;
    if (d.kind == Operand::Sgpr && d.index < slot::Exec + 2 &&
        d.index + d.words > slot::Exec)
      i.flags |= WritesExec;
    if (d.hi)
      i.flags |= HiDst;
  }
  return true;
}

/// Binds the sources that `types` lists; `n` counts those that are kept.
bool Binder::bindSources(const ParsedInst &p, StringRef types, bool sdwa,
                         unsigned &at, unsigned &n, Inst &i) {
  const OpInfo *op = i.op;
  for (unsigned k = 0; k < types.size(); ++k) {
    if ((op->flags & Tied) && k + 1 == types.size()) {
      i.src[n] = i.dst[0];
      i.src[n].type = types[k];
      ++n;
      break;
    }
    if (at >= p.operands.size()) {
      if ((op->flags & ImplicitVcc) && types[k] == 'm') {
        i.src[n].kind = Operand::Sgpr;
        i.src[n].index = slot::VCC;
        i.src[n].words = program.wave32 ? 1 : 2;
        i.src[n++].type = 'm';
        break;
      }
      if (op->flags & Optional)
        break;
      return false;
    }
    StringRef t = p.operands[at++];
    if (types[k] == 'x')
      continue;
    if (types[k] == 'k') {
      Operand constant; // a literal constant may print as a float
      if (!operand(t, 'k', constant) || constant.kind != Operand::Const)
        return unknownOperand(t);
      i.imm = int64_t(constant.value);
      continue;
    }
    // Mixed-precision operands that are f16 take f16's inline constants.
    char type = (op->flags & NoSelHi) && (i.opSelHi >> k & 1) ? 'h' : types[k];
    if (n == 5 || !operand(t, type, i.src[n]))
      return unknownOperand(t);
    if (sdwa && k < 2 && t.contains("sext("))
      i.lane[2 + k] |= 0x80;
    ++n;
  }
  return true;
}

bool Binder::bindParsed(const ParsedInst &p, Inst &i) {
  StringRef name = p.mnemonic;
  bool dpp = name.consume_back("_dpp");
  bool sdwa = name.consume_back("_sdwa");
  if (!name.consume_back("_e64"))
    name.consume_back("_e32");
  // gfx90a calls global_load_lds_dword by another name.
  std::string toLds;
  if (p.modifier("lds"))
    for (StringRef prefix : {"global_load_", "scratch_load_"})
      if (name.starts_with(prefix))
        name = toLds = (prefix + "lds_" + name.substr(prefix.size())).str();
  const OpInfo *op = findOp(name);
  if (!op)
    return false;
  i.op = op;
  i.fn = op->fn;
  i.param = op->param;
  i.unit = op->unit;
  StringRef types = op->types;
  auto [dsts, srcs] = types.split('=');
  unsigned numDst = unsigned(dsts.size()), numSrc = unsigned(srcs.size());
  // Packed operations have these defaults before the modifiers are read.
  i.opSelHi = op->flags & NoSelHi ? 0 : 7;
  i.numSrc = uint8_t(numSrc - (op->flags & Tied ? 1 : 0));
  if (!modifiers(p, i))
    return false;
  if (dsts.starts_with("?")) {
    dsts =
        i.has(Return) || p.mnemonic.contains("_rtn") ? dsts.drop_front() : "";
    numDst = unsigned(dsts.size());
  }
  if (i.has(ToLds) ||
      ((op->flags & NoDst) && p.operands.size() < numDst + numSrc)) {
    dsts = "";
    numDst = 0;
  }
  unsigned at = 0, n = 0;
  if (!bindResults(p, dsts, at, i) || !bindSources(p, srcs, sdwa, at, n, i))
    return false;
  if (at < p.operands.size())
    return unknownOperand(p.operands[at]);
  i.numSrc = uint8_t(n);
  bool trueHalves = false;
  for (const StringRef &t : p.operands)
    trueHalves |= t.contains(".l") || t.contains(".h");
  // Only vector registers have names for true halves. op_sel picks the half of
  // a scalar.
  if (!(op->flags & Pk16))
    for (unsigned k = 0; k < n; ++k)
      if (StringRef("shy").contains(i.src[k].type) && (i.opSel >> k & 1) &&
          i.src[k].kind != Operand::Const && !(trueHalves && i.src[k].isVgpr()))
        i.src[k].hi = true;
  if (!trueHalves && !(op->flags & Pk16)) {
    if ((op->flags & Tied) && i.has(HiDst))
      i.src[n - 1].hi = true;
  } else if (trueHalves) {
    i.flags &= ~uint32_t(HiDst);
    if (i.dst[0].hi)
      i.flags |= HiDst;
  }
  // LLVM prints comparisons without the suffix.
  if (dpp || i.has(Dpp))
    wrapDpp(i);
  if (sdwa)
    wrapSdwa(i);
  return true;
}

Inst Binder::bind(StringRef line, uint32_t address, unsigned bytes) {
  Inst i;
  i.address = address;
  i.bytes = uint8_t(bytes);
  bool good = false;
  if (!line.empty()) {
    if (line.contains(" :: ")) {
      good = vopd(line.trim(), i);
    } else {
      ParsedInst p = parseAssembly(line);
      good = bindParsed(p, i);
      // Branch targets are offsets in the image; Program makes indices of them.
      if (good && i.unit == Unit::Branch)
        i.imm2 = int64_t(address) + 4 + 4 * int64_t(int16_t(i.imm));
    }
  }
  if (!good) {
    program.problems[address] =
        problem.empty() ? "this instruction" : std::move(problem);
    problem.clear();
    Inst bad;
    bad.address = address;
    bad.bytes = uint8_t(bytes);
    bad.fn = unknownInstruction;
    return bad;
  }
  wrapIndexed(i);
  return i;
}
