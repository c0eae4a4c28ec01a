//===- Control.cpp - branches, barriers, waits, mode ----------------------===//
#include "Code/Program.h"
#include "Isa/Float.h"
#include "Wave.h"
#include "Workgroup.h"

using namespace greta::sim;

namespace {

void nothing(Wave &, const Inst &) {}

void branchTo(Wave &w, const Inst &i, int64_t index) {
  if (LLVM_UNLIKELY(index < 0))
    return w.fault(i, "branch out of the code object or into an instruction");
  w.pc = uint32_t(index);
}
void branch(Wave &w, const Inst &i) { branchTo(w, i, i.imm); }
enum Condition { Scc0, Scc1, VccZ, VccNz, ExecZ, ExecNz };
template <Condition C> void branchIf(Wave &w, const Inst &i) {
  bool take = false;
  uint64_t vcc = w.wave32 ? w.s[slot::VCC] : w.s64(slot::VCC);
  switch (C) {
  case Scc0:
    take = !w.scc();
    break;
  case Scc1:
    take = w.scc();
    break;
  case VccZ:
    take = !vcc;
    break;
  case VccNz:
    take = vcc;
    break;
  case ExecZ:
    take = !w.exec;
    break;
  case ExecNz:
    take = w.exec;
    break;
  }
  if (take)
    branchTo(w, i, i.imm);
}

uint64_t nextAddress(const Wave &w, const Inst &i) {
  return w.wg->programBase + i.address + i.bytes;
}
void jump(Wave &w, const Inst &i, uint64_t address) {
  branchTo(w, i, w.program->indexOf(address - w.wg->programBase));
}
void getpc(Wave &w, const Inst &i) {
  w.setScalar64(i.dst[0], nextAddress(w, i));
}
void setpc(Wave &w, const Inst &i) { jump(w, i, w.scalar64(i.src[0])); }
void swappc(Wave &w, const Inst &i) {
  uint64_t to = w.scalar64(i.src[0]);
  w.setScalar64(i.dst[0], nextAddress(w, i));
  jump(w, i, to);
}
void call(Wave &w, const Inst &i) {
  w.setScalar64(i.dst[0], nextAddress(w, i));
  jump(w, i, nextAddress(w, i) + uint64_t(4 * int64_t(int16_t(i.imm))));
}
void endpgm(Wave &w, const Inst &) { w.state = RunState::Done; }
void trap(Wave &w, const Inst &i) {
  w.fault(i, "s_trap " + llvm::Twine(i.imm) +
                 (i.imm == 2 ? " (the kernel aborted)" : ""));
}

void barrier(Wave &w, const Inst &i) {
  signalBarrier(w, i);
  waitBarrier(w, i);
}
void signal(Wave &w, const Inst &i) {
  if (w.scalar(i.src[0]) != ~0u)
    return w.fault(i, "only the workgroup barrier (-1) is supported");
  signalBarrier(w, i);
}
void signalIsFirst(Wave &w, const Inst &i) {
  w.setScc(w.wg->arrived == 0);
  signal(w, i);
}
void wait(Wave &w, const Inst &i) {
  if (uint16_t(i.imm) != 0xffff)
    return w.fault(i, "only the workgroup barrier (-1) is supported");
  waitBarrier(w, i);
}
/// Sets waves that arrived in bits 16 and up, members in 4 and up, valid in 0.
void barrierState(Wave &w, const Inst &i) {
  if (w.scalar(i.src[0]) != ~0u)
    return w.fault(i, "only the workgroup barrier (-1) is supported");
  w.setScalar(i.dst[0],
              w.wg->arrived << 16 | uint32_t(w.wg->waves.size()) << 4 | 1);
}
void yieldWave(Wave &w, const Inst &) { w.state = RunState::Yield; }

/// Returns the id. The modifiers keep hwreg(name, offset, size) as text; the
/// binder leaves id, offset and size in lane[0..2].
unsigned hwregId(const Inst &i) { return i.lane[0]; }
enum HardwareRegister : unsigned {
  Mode = 1,
  Status = 2,
  HwId = 4,         ///< gfx9
  StatePriv = 4,    ///< gfx12, which moved SCC there from the status register
  XccId = 20,       ///< gfx9
  FlatScratch = 20, ///< gfx10, and 21
  HwId1 = 23,
  SchedMode = 26,
  ShaderCycles = 29,
  ShaderCyclesHigh = 30
};
/// Holds a register's value and which of its bits the simulator has.
struct HwregValue {
  uint32_t value = 0, known = 0;
};
HwregValue readHwreg(const Wave &w, unsigned id) {
  constexpr uint32_t All = ~0u;
  bool gfx12 = w.chip->isGfx12();
  uint64_t vcc = w.wave32 ? w.s[slot::VCC] : w.s64(slot::VCC);
  switch (id) {
  case Mode:
    return {w.mode, All};
  case Status: { // SCC 0 before gfx12, EXECZ 9, VCCZ 10
    uint32_t zeros = uint32_t(!w.exec) << 9 | uint32_t(!vcc) << 10;
    return gfx12 ? HwregValue{zeros, 0x600}
                 : HwregValue{zeros | uint32_t(w.scc()), 0x601};
  }
  case HwId: // the wave's slot in the low bits, or SCC 9
    return gfx12              ? HwregValue{uint32_t(w.scc()) << 9, 0x200}
           : w.chip->isGfx9() ? HwregValue{w.id, All}
                              : HwregValue();
  case HwId1:
    return {w.id, All};
  case XccId:
  case ShaderCyclesHigh:
    return {0, All};
  case ShaderCycles:
    return {uint32_t(w.budget), All};
  default:
    return {};
  }
}
uint32_t fieldMask(const Inst &i) {
  unsigned size = i.lane[2] ? i.lane[2] : 32;
  return size >= 32 ? ~0u : (1u << size) - 1;
}
void getreg(Wave &w, const Inst &i) {
  HwregValue r = readHwreg(w, hwregId(i));
  if (fieldMask(i) << i.lane[1] & ~r.known)
    return w.fault(i, r.known ? "the simulator does not have these bits of the "
                                "hardware register"
                              : "the simulator does not have this hardware "
                                "register");
  w.setScalar(i.dst[0], r.value >> i.lane[1] & fieldMask(i));
}
void setField(Wave &w, const Inst &i, uint32_t x) {
  if (hwregId(i) == SchedMode) // the hint about hazards changes nothing
    return;
  if (w.chip->isGfx10() && hwregId(i) / 2 == FlatScratch / 2) {
    w.s[slot::FlatScratch + hwregId(i) % 2] = x;
    return;
  }
  if (hwregId(i) == StatePriv && w.chip->isGfx12())
    return w.fault(i, "only trap handlers may write this hardware register");
  if (hwregId(i) != Mode)
    return w.fault(i, "the simulator does not have this hardware register");
  uint32_t m = fieldMask(i) << i.lane[1];
  w.mode = (w.mode & ~m) | (x << i.lane[1] & m);
  w.applyMode();
}
void setreg(Wave &w, const Inst &i) { setField(w, i, w.scalar(i.src[0])); }
void setregImm(Wave &w, const Inst &i) { setField(w, i, uint32_t(i.imm)); }
void roundMode(Wave &w, const Inst &i) {
  w.mode = (w.mode & ~15u) | (uint32_t(i.imm) & 15);
  w.applyMode();
}
void denormMode(Wave &w, const Inst &i) {
  w.mode = (w.mode & ~0xf0u) | (uint32_t(i.imm) & 15) << 4;
  w.applyMode();
}
/// Sets VSKIP, during which no vector instruction is issued (Workgroup.cpp).
void setVskip(Wave &w, const Inst &i) {
  bool skip = w.scalar(i.src[0]) >> (w.scalar(i.src[1]) & 31) & 1;
  w.mode = (w.mode & ~ModeVskip) | (skip ? ModeVskip : 0);
}
void sendmsgRtn(Wave &w, const Inst &i) {
  for (unsigned k = 0; k < i.dst[0].words; ++k)
    w.s[i.dst[0].index + k] = k ? 0 : uint32_t(++w.wg->clock);
}
void memtime(Wave &w, const Inst &i) {
  w.setScalar64(i.dst[0], ++w.wg->clock * 100);
}

#define ROW(name, fn, types, unit) {name, fn, types, 0, 0, Unit::unit}
const OpInfo table[] = {
    ROW("s_nop", nothing, "=k", Other),
    ROW("s_sleep", yieldWave, "=k", Other),
    ROW("s_sleep_var", yieldWave, "=i", Other),
    ROW("s_setprio", nothing, "=k", Other),
    ROW("s_sethalt", nothing, "=k", Other),
    ROW("s_inst_prefetch", nothing, "=k", Other),
    ROW("s_set_inst_prefetch_distance", nothing, "=k", Other),
    ROW("s_clause", nothing, "=k", Other),
    ROW("s_icache_inv", nothing, "=", Other),
    ROW("s_gl1_inv", nothing, "=", Other),
    ROW("s_dcache_inv_vol", nothing, "=", Other),
    ROW("s_dcache_wb_vol", nothing, "=", Other),
    ROW("s_incperflevel", nothing, "=k", Other),
    ROW("s_decperflevel", nothing, "=k", Other),
    ROW("s_dcache_wb", nothing, "=", Other),
    ROW("s_dcache_inv", nothing, "=", Other),
    ROW("s_wakeup", nothing, "=", Other),
    ROW("s_code_end", endpgm, "=", Other),
    ROW("s_ttracedata", nothing, "=", Other),
    ROW("s_ttracedata_imm", nothing, "=k", Other),
    {"s_delay_alu", nothing, "=k", 0, Optional, Unit::Other},
    {"s_wait_alu", nothing, "=k", 0, Optional, Unit::Other},
    {"s_waitcnt_depctr", nothing, "=k", 0, Optional, Unit::Other},
    {"s_sendmsg", nothing, "=k", 0, Optional, Unit::Other},
    {"s_sendmsghalt", nothing, "=k", 0, Optional, Unit::Other},
    {"s_version", nothing, "=x", 0, Optional, Unit::Other},
    ROW("s_sendmsg_rtn_b32", sendmsgRtn, "i=", Smem),
    ROW("s_sendmsg_rtn_b64", sendmsgRtn, "l=", Smem),
    ROW("s_memtime", memtime, "l=", Smem),
    ROW("s_memrealtime", memtime, "l=", Smem),
    {"s_waitcnt", nothing, "=k", WaitAll, Optional | WaitCount, Unit::Other},
    {"s_waitcnt_vscnt", nothing, "=xk", WaitStore, WaitCount, Unit::Other},
    {"s_waitcnt_vmcnt", nothing, "=xk", WaitLoad, WaitCount, Unit::Other},
    {"s_waitcnt_lgkmcnt", nothing, "=xk", WaitLgkm, WaitCount, Unit::Other},
    {"s_waitcnt_expcnt", nothing, "=xk", WaitNone, WaitCount, Unit::Other},
    {"s_wait_idle", nothing, "=", WaitIdle, WaitCount, Unit::Other},
    ROW("s_wait_event", nothing, "=k", Other),
    {"s_wait_loadcnt", nothing, "=k", WaitLoad, WaitCount, Unit::Other},
    {"s_wait_storecnt", nothing, "=k", WaitStore, WaitCount, Unit::Other},
    {"s_wait_samplecnt", nothing, "=k", WaitNone, WaitCount, Unit::Other},
    {"s_wait_bvhcnt", nothing, "=k", WaitNone, WaitCount, Unit::Other},
    {"s_wait_dscnt", nothing, "=k", WaitLds, WaitCount, Unit::Other},
    {"s_wait_kmcnt", nothing, "=k", WaitSmem, WaitCount, Unit::Other},
    {"s_wait_expcnt", nothing, "=k", WaitNone, WaitCount, Unit::Other},
    {"s_wait_loadcnt_dscnt", nothing, "=k", WaitLoadLds, WaitCount,
     Unit::Other},
    {"s_wait_storecnt_dscnt", nothing, "=k", WaitStoreLds, WaitCount,
     Unit::Other},
    ROW("s_branch", branch, "=k", Branch),
    ROW("s_cbranch_scc0", branchIf<Scc0>, "=k", Branch),
    ROW("s_cbranch_scc1", branchIf<Scc1>, "=k", Branch),
    ROW("s_cbranch_vccz", branchIf<VccZ>, "=k", Branch),
    ROW("s_cbranch_vccnz", branchIf<VccNz>, "=k", Branch),
    {"s_cbranch_execz", branchIf<ExecZ>, "=k", 0, OnExec, Unit::Branch},
    {"s_cbranch_execnz", branchIf<ExecNz>, "=k", 0, OnExec, Unit::Branch},
    ROW("s_getpc_b64", getpc, "l=", Salu),
    ROW("s_setpc_b64", setpc, "=l", Other),
    ROW("s_swappc_b64", swappc, "l=l", Other),
    ROW("s_call_b64", call, "l=k", Other),
    {"s_endpgm", endpgm, "=x", 0, Optional, Unit::Other},
    ROW("s_endpgm_saved", endpgm, "=", Other),
    ROW("s_trap", trap, "=k", Other),
    ROW("s_barrier", barrier, "=", Other),
    ROW("s_barrier_signal", signal, "=i", Other),
    ROW("s_barrier_signal_isfirst", signalIsFirst, "=i", Other),
    ROW("s_barrier_wait", wait, "=k", Other),
    ROW("s_get_barrier_state", barrierState, "i=i", Salu),
    ROW("s_getreg_b32", getreg, "i=", Salu),
    ROW("s_setreg_b32", setreg, "=i", Salu),
    ROW("s_setreg_imm32_b32", setregImm, "=k", Salu),
    ROW("s_round_mode", roundMode, "=k", Salu),
    ROW("s_denorm_mode", denormMode, "=k", Salu),
    ROW("s_setvskip", setVskip, "=ii", Salu),
    ROW("v_nop", nothing, "=", Valu),
    ROW("v_pipeflush", nothing, "=", Valu),
    ROW("v_clrexcp", nothing, "=", Valu),
    // The name is followed by cache policy bits, which parse as an operand.
    {"buffer_wbl2", nothing, "=x", 0, Optional, Unit::Other},
    {"buffer_inv", nothing, "=x", 0, Optional, Unit::Other},
    ROW("buffer_invl2", nothing, "=", Other),
    ROW("buffer_wbinvl1", nothing, "=", Other),
    ROW("buffer_wbinvl1_vol", nothing, "=", Other),
    ROW("buffer_gl0_inv", nothing, "=", Other),
    ROW("buffer_gl1_inv", nothing, "=", Other),
    ROW("global_inv", nothing, "=", Other),
    ROW("global_wb", nothing, "=", Other),
    ROW("global_wbinv", nothing, "=", Other),
};

} // namespace

OpTable greta::sim::controlOps() { return table; }
