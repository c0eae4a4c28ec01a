//===- Inst.h - a decoded, bound instruction --------------------*- C++ -*-===//
//
// The form instructions have while they execute: a handler and operands that
// need no further interpretation. Bind.cpp builds them from the assembly text
// LLVM's MC layer prints (a documented, stable interface, unlike the operand
// order of its MCInsts), once per code object.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_INST_H
#define GRETA_SIM_INST_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace greta::sim {

constexpr unsigned MaxLanes = 64;

/// Numbers the scalar register file. 0-105 are s0-s105.
namespace slot {
enum : uint16_t {
  VCC = 106,
  TTMP = 108,
  M0 = 124,
  Null = 125, ///< reads zero, two words wide with 126 unused
  Exec = 128,
  FlatScratch = 130,
  Xnack = 132,
  SharedBase = 134,
  SharedLimit = 136,
  PrivateBase = 138,
  PrivateLimit = 140,
  Scc = 142,
  Trash = 144, ///< where writes to null go (up to 16 words)
  Count = 160
};
}

/// Numbers the vector register file: v0-v255, a0-a255, then rows that the
/// simulator uses for permuted or widened operands.
namespace row {
enum : uint16_t { Agpr = 256, Temp = 512, Count = 544 };
}

struct Operand {
  enum Kind : uint8_t { None, Vgpr, Sgpr, Const };
  Kind kind = None;
  uint8_t words = 1;
  bool neg = false, abs = false;
  bool hi = false;    ///< 16-bit operand in the high half
  char type = 'i';    ///< letter of OpInfo::types
  uint16_t index = 0; ///< row or slot
  const uint32_t *splat =
      nullptr;        ///< Const: the value in every lane, low row first
  uint64_t value = 0; ///< Const

  bool isVgpr() const { return kind == Vgpr; }
  explicit operator bool() const { return kind != None; }
};

struct Wave;
struct Inst;
struct OpInfo;
using Handler = void (*)(Wave &, const Inst &);

/// Classes of instructions, for counts, waits and hazards.
enum class Unit : uint8_t {
  Salu,
  Smem,
  Valu,
  Trans,
  Matrix,
  Lds,
  Global,
  Flat,
  Scratch,
  Buffer,
  Branch,
  Other
};

enum InstFlag : uint32_t {
  Clamp = 1 << 0,
  Return =
      1 << 1, ///< atomic returns the old value (glc, sc0, TH_ATOMIC_RETURN)
  BoundCtrl = 1 << 2,
  FetchInactive = 1 << 3,
  WritesExec = 1 << 4,
  OffEn = 1 << 5,
  IdxEn = 1 << 6,
  ToLds = 1 << 7,
  HiDst = 1 << 9, ///< 16-bit result goes to the high half
  Saddr = 1 << 10,
  Sdwa = 1 << 11,
  Dpp = 1 << 12,
  Coherent = 1 << 13, ///< cache policy of an atomic load or store
};

struct Inst {
  Handler fn = nullptr;
  const Inst *inner = nullptr; ///< what a DPP, SDWA or VOPD wrapper runs
  const OpInfo *op = nullptr;
  Operand dst[2];
  Operand src[5];
  int64_t imm = 0;  ///< offset, branch target index, waitcnt fields, ...
  int64_t imm2 = 0; ///< second offset
  uint32_t flags = 0;
  uint32_t address = 0; ///< byte offset in the image
  uint8_t bytes = 4;
  Unit unit = Unit::Other;
  uint8_t numSrc = 0;
  uint8_t omod = 0; ///< 1: *2, 2: *4, 3: /2
  uint8_t opSel = 0, opSelHi = 0, negLo = 0, negHi = 0;
  uint8_t cbsz = 0, abid = 0, blgp = 0;
  /// DPP: kind, parameter, row mask, bank mask. SDWA: dst_sel, dst_unused,
  /// src0_sel, src1_sel (bit 7: sign-extend).
  uint8_t lane[4] = {0, 0, 15, 15};
  uint32_t dpp8 = 0;
  /// s_waitcnt: vmcnt, expcnt, lgkmcnt, 8 bits each; 0xff waits for nothing.
  uint32_t waits = 0xffffff;
  uint32_t param = 0; ///< OpInfo::param

  bool has(InstFlag f) const { return flags & f; }
};

/// A row of the instruction table. `types` gives destinations, '=', sources:
///   i b32  l b64  s 16-bit  f f32  h f16  y bf16  D f64  p two 16-bit
///   q two f32  m lane mask  r any width, kept as written  x ignored
struct OpInfo {
  const char *name;
  Handler fn;
  const char *types;
  uint32_t param = 0;
  uint32_t flags = 0;
  Unit unit = Unit::Valu;
};

enum OpFlag : uint32_t {
  Tied = 1,      ///< the destination is also the last source
  CrossLane = 2, ///< result lanes depend on other lanes' sources
  Pk16 = 4,      ///< packed 16-bit: op_sel/neg apply to halves
  Result16 = 8,  ///< 16-bit result
  Optional = 16, ///< trailing sources may be absent
  NoDst = 32,    ///< in some forms the destination is EXEC and not written out
  ImplicitVcc = 64,
  NoSelHi = 128,   ///< mixed precision: op_sel_hi is zero when not written
  WaitCount = 256, ///< param is a WaitKind
  Select = 512,    ///< src[2] is a mask that picks src[0] or src[1]
  Merge = 1024,    ///< parts of the sources: defined when one of them is
  Returns = 2048,  ///< an atomic that can return the old value
  OnExec = 4096,   ///< a branch that asks whether any lane is on
};

enum WaitKind : uint32_t {
  WaitNone,
  WaitAll, ///< Inst::waits has the three fields
  WaitLoad,
  WaitStore,
  WaitLgkm,
  WaitLds,
  WaitSmem,
  WaitLoadLds,
  WaitStoreLds,
  WaitIdle
};

using OpTable = llvm::ArrayRef<OpInfo>;
OpTable saluOps();
OpTable saluFloatOps();
OpTable controlOps();
OpTable smemOps();
OpTable valuIntOps();
OpTable valuFloatOps();
OpTable valuHalfOps();
OpTable valuConvertOps();
OpTable valuCompareOps();
OpTable valuLaneOps();
OpTable gprIndexOps();
OpTable vop3pOps();
OpTable mfmaOps();
OpTable wmmaOps();
OpTable dsOps();
OpTable dsLaneOps();
OpTable globalOps();
OpTable bufferOps();

} // namespace greta::sim

#endif
