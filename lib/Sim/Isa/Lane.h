//===- Lane.h - DPP, SDWA and VOPD around plain instructions ----*- C++ -*-===//
#ifndef GRETA_SIM_LANE_H
#define GRETA_SIM_LANE_H

#include "Isa/Inst.h"
#include "llvm/ADT/StringRef.h"

namespace greta::sim {

void runDpp(Wave &w, const Inst &i);
void runDpp8(Wave &w, const Inst &i);
void runSdwa(Wave &w, const Inst &i);
void runIndexed(Wave &w, const Inst &i);
void runVopd(Wave &w, const Inst &i);

/// Reads quad_perm, row_shl, row_share, dpp8 and so on into the instruction.
bool parseDpp(llvm::StringRef key, llvm::StringRef value, int64_t n, Inst &i);
/// Parses the operands of s_set_gpr_idx_on by name.
int64_t parseGprIndex(llvm::StringRef text);
/// Parses matrix formats by number or name.
uint8_t parseFormat(llvm::StringRef text, int64_t n);

} // namespace greta::sim

#endif
