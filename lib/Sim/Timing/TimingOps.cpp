//===- TimingOps.cpp - units, cycles, registers and waits by instruction --===//
#include "Timing/TimingOps.h"
#include "Checks/ChecksState.h"

using namespace greta::sim;
using llvm::StringRef;

static void registersOf(const Inst &i, Op &o) {
  auto add = [](const Operand &r, llvm::SmallVectorImpl<uint16_t> &to) {
    for (unsigned k = 0; k < r.words; ++k) {
      if (r.kind == Operand::Vgpr && r.index + k < row::Temp)
        to.push_back(uint16_t(r.index + k));
      else if (r.kind == Operand::Sgpr && r.index + k < slot::VCC + 2)
        to.push_back(uint16_t(ScalarBase + r.index + k));
    }
  };
  StringRef name = i.op ? i.op->name : "";
  bool sparse = name.contains("smfmac") || name.contains("swmmac");
  unsigned acc = sparse ? i.numSrc - 1u : 2;
  for (unsigned k = 0; k < i.numSrc; ++k) {
    // The unit forwards an accumulator that is also the result.
    if (o.port == Matrix && k == acc && i.src[k].kind == Operand::Vgpr &&
        i.src[k].index == i.dst[0].index) {
      o.acc = i.src[k].index;
      o.accWords = i.dst[0].words;
      continue;
    }
    add(i.src[k], o.reads);
  }
  for (const Operand &d : i.dst)
    add(d, o.writes);
}

/// Sets the numbers of accesses that a wait leaves in flight.
static void setWaits(const Inst &i, Op &o) {
  o.wait = true;
  uint32_t n = uint32_t(i.imm);
  auto set = [&](List l, uint32_t left) {
    o.limit[l] = uint8_t(std::min(left, 255u));
  };
  switch (i.param) {
  case WaitAll:
    set(Loads, i.waits & 0xff);
    set(Shared, i.waits >> 16 & 0xff);
    break;
  case WaitLoad:
    set(Loads, n);
    break;
  case WaitStore:
    set(Stores, n);
    break;
  case WaitLgkm:
  case WaitLds:
    set(Shared, n);
    break;
  case WaitSmem:
    set(Scalars, n);
    break;
  case WaitLoadLds:
    set(Loads, n >> 8 & 63);
    set(Shared, n & 63);
    break;
  case WaitStoreLds:
    set(Stores, n >> 8 & 63);
    set(Shared, n & 63);
    break;
  case WaitIdle:
    for (List l : {Loads, Stores, Shared, Scalars})
      set(l, 0);
    break;
  default:
    break;
  }
}

Op greta::sim::timedOp(const Chip &chip, const TimingRow &row, bool wave32,
                       const Inst &i) {
  Op o;
  o.known = true;
  StringRef name = i.op ? i.op->name : "";
  bool gfx9 = chip.isGfx9();
  unsigned vector = gfx9 || wave32 ? row.slot : 2u * row.slot;
  auto words = [&](const Operand &r) { return r ? unsigned(r.words) : 0u; };
  o.pause = row.slot;
  switch (i.unit) {
  case Unit::Valu: {
    o.port = Valu;
    unsigned times = 1;
    if (name.contains("_f64") && row.f64Cycles > row.slot)
      times = row.f64Cycles;
    else if (name.starts_with("v_mul_lo_u32") ||
             name.starts_with("v_mul_hi_") || name.starts_with("v_mad_u64") ||
             name.starts_with("v_mad_i64") || name.starts_with("v_mad_co"))
      times = 4;
    o.busy = uint16_t(vector * times);
    o.latency = uint16_t(o.busy - row.slot + row.aluLatency);
    break;
  }
  case Unit::Trans:
    o.port = Trans;
    o.busy = uint16_t(row.transCycles * vector / row.slot);
    o.latency = uint16_t(o.busy + row.aluLatency - row.slot);
    break;
  case Unit::Matrix:
    o.port = Matrix;
    o.busy = uint16_t(matrixCycles(chip, i));
    o.forward = o.busy;
    // This is the write-back that ChecksHazards.cpp has wait states for.
    o.latency = uint16_t(o.busy + 2 * row.aluLatency);
    break;
  case Unit::Salu:
    o.port = Salu;
    o.busy = row.slot;
    o.latency = gfx9 ? row.slot : 2;
    break;
  case Unit::Smem:
    o.port = Smem;
    o.busy = row.slot;
    break;
  case Unit::Lds:
    o.port = Lds;
    o.busy = row.slot;
    o.bytes = uint16_t(
        4 * std::max(words(i.dst[0]), words(i.src[1]) + words(i.src[2])));
    break;
  case Unit::Global:
  case Unit::Flat:
  case Unit::Scratch:
  case Unit::Buffer:
    o.port = Vmem;
    o.busy = row.slot;
    o.toLds = i.has(ToLds) || name.contains("_lds_");
    o.flat = i.unit == Unit::Flat;
    o.store = name.contains("store") ||
              (name.contains("atomic") && !i.dst[0] && !i.has(Return));
    o.bytes =
        uint16_t(4 * (i.dst[0] ? words(i.dst[0])
                               : words(i.src[i.unit == Unit::Buffer ? 0 : 1])));
    if (o.toLds)
      o.bytes = uint16_t(std::max(4u, i.param & 0xff));
    break;
  case Unit::Branch:
    o.port = Jump;
    o.busy = row.slot;
    break;
  case Unit::Other:
    if (name == "s_nop")
      o.pause = row.slot * unsigned(i.imm + 1);
    else if (name == "s_sleep")
      o.pause = 64 * std::max(1u, unsigned(i.imm) & 127);
    else if (name == "s_setprio")
      o.priority = int8_t(i.imm & 3);
    o.end = name.starts_with("s_endpgm");
    o.signal = name == "s_barrier" || name.starts_with("s_barrier_signal");
    o.barrierWait = name == "s_barrier" || name == "s_barrier_wait";
    break;
  }
  // RDNA handles these beside the instruction behind them.
  if (!gfx9 && (name == "s_delay_alu" || name == "s_clause"))
    o.pause = 0;
  registersOf(i, o);
  if (!i.op || !(i.op->flags & WaitCount))
    return o;
  setWaits(i, o);
  return o;
}
