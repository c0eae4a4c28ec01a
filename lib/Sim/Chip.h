//===- Chip.h - what the simulator knows about each chip --------*- C++ -*-===//
//
// One row per chip. The compiler's target table (lib/Target) is about choosing
// code; this one is about executing it, so it has what semantics and the issue
// model depend on.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_CHIP_H
#define GRETA_SIM_CHIP_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace greta::sim {

enum class Family : uint8_t {
  GFX90A,
  GFX940,
  GFX950,
  GFX103,
  GFX11,
  GFX115,
  GFX12
};

struct Chip {
  const char *name;
  Family family;
  bool fp8Fnuz; ///< fp8/bf8 without negative zero (gfx942); OCP otherwise
  bool architectedIds;  ///< workgroup ids in ttmp7/ttmp9 (gfx12)
  bool archFlatScratch; ///< scratch base needs no SGPRs (gfx942 on)
  uint8_t waveSize;     ///< default wave size
  uint8_t simds;        ///< SIMDs per CU (per WGP half on RDNA)
  uint16_t computeUnits;
  uint32_t ldsBytes;  ///< per workgroup
  uint8_t elfMachine; ///< EF_AMDGPU_MACH in e_flags

  bool isGfx9() const { return family <= Family::GFX950; }
  bool isGfx10() const { return family == Family::GFX103; }
  bool isGfx11() const {
    return family == Family::GFX11 || family == Family::GFX115;
  }
  bool isGfx12() const { return family == Family::GFX12; }
  bool isGfx11Plus() const { return family >= Family::GFX11; }
};

/// Vector registers that COMPUTE_PGM_RSRC1 asks for: its field counts 8 of
/// them, 4 in RDNA's wave64.
inline unsigned requestedVgprs(const Chip &chip, uint32_t rsrc1, bool wave32) {
  return ((rsrc1 & 63) + 1) * (chip.isGfx9() || wave32 ? 8 : 4);
}

const Chip *findChip(llvm::StringRef name);
llvm::ArrayRef<Chip> chips();

} // namespace greta::sim

#endif
