//===- TimingTable.cpp - one row per chip for the issue model -------------===//
//
// Sources, by column:
//   clock, memory   AMD's product pages (as lib/Target/Amdgpu.cpp)
//   vgprs, granule, waves   LLVM, AMDGPUBaseInfo.cpp
//   slot   a GCN/CDNA SIMD issues for each of its waves once in 4 cycles (CDNA3
//          ISA, 'wave64 over 4 cycles'); an RDNA SIMD every cycle (RDNA3 ISA)
//   alu, trans   LLVM, SISchedule.td; transcendentals at a quarter of the rate
//   f64    CDNA: full rate; RDNA: a sixteenth (product pages)
//   LDS, caches   latencies of the order that public microbenchmarks report
//          (Chips and Cheese on MI300X, RDNA3, RDNA4); LLVM gives vector memory
//          320 cycles. They are assumptions: docs/internals/simulator.md.
//          CDNA's memory: 500 cycles, with which more of AMD's measured winners
//          are among the first three candidates than with 700
//          (docs/benchmarks/calibration_winners.csv)
//   widths   vector cache 64 bytes a cycle on CDNA2, 128 from CDNA3 on, and 16
//          addresses (ROCm Compute Profiler: 61.3 TB/s on 228 CUs at 2.1 GHz);
//          RDNA white paper: 128 bytes, 32 addresses. Fill: a CU's share of
//          the L2, 128 bytes a cycle from each of 32 channels for 110 CUs, 16
//          for 38 (25.8 TB/s by the same profiler) and 16 for 32
//
//===----------------------------------------------------------------------===//
#include "Timing/Timing.h"

using namespace greta::sim;

//  clk GB/s | vgprs granule waves | slot alu trans f64 | LDS scalar cache
//  memory | addresses cache fill | barrier branch
#define CDNA(name, clock, gbs, cache, fill)                                    \
  {name, clock, gbs, 512, 8,  8,     4,    4,  16, 4,                          \
   64,   128,   128, 500, 16, cache, fill, 16, 16}
#define RDNA(name, clock, gbs, vgprs, granule)                                 \
  {name, clock, gbs, vgprs, granule, 16,  1,  5,  4, 16,                       \
   32,   64,    96,  600,   32,      128, 64, 16, 8}

static const TimingRow rows[] = {
    CDNA("gfx90a", 1700, 1638, 64, 37),   CDNA("gfx942", 2100, 5300, 128, 54),
    CDNA("gfx950", 2400, 8000, 128, 64),  RDNA("gfx1030", 2250, 512, 1024, 16),
    RDNA("gfx1100", 2500, 960, 1536, 24), RDNA("gfx1101", 2430, 624, 1536, 24),
    RDNA("gfx1102", 2655, 288, 1024, 16), RDNA("gfx1103", 2700, 120, 1024, 16),
    RDNA("gfx1150", 2900, 120, 1024, 16), RDNA("gfx1151", 2900, 256, 1536, 24),
    RDNA("gfx1200", 3130, 320, 1536, 24), RDNA("gfx1201", 2970, 640, 1536, 24),
};

const TimingRow &greta::sim::timingRow(const Chip &chip) {
  for (const TimingRow &r : rows)
    if (llvm::StringRef(r.name) == chip.name)
      return r;
  return rows[0];
}

static unsigned roundUp(unsigned x, unsigned to) {
  return (x + to - 1) / to * to;
}

Residency greta::sim::residency(const Chip &chip, uint32_t rsrc1, bool wave32,
                                unsigned waves, uint32_t ldsBytes,
                                unsigned sgprs) {
  const TimingRow &row = timingRow(chip);
  Residency r;
  r.waves = waves;
  // A workgroup in WGP mode spreads over both halves of a WGP.
  bool wgp = !chip.isGfx9() && (rsrc1 >> 29 & 1);
  r.simds = chip.simds * (wgp ? 2 : 1);
  r.units = std::max(1u, chip.computeUnits / (wgp ? 2u : 1u));
  uint32_t lds = chip.ldsBytes * (wgp ? 2 : 1);
  unsigned perSimd = row.maxWaves;
  r.limit = "wave slots";
  auto cap = [&](unsigned &value, unsigned to, const char *why) {
    if (to < value) {
      value = to;
      r.limit = why;
    }
  };
  // A register takes twice as much in RDNA's wave64 as in wave32.
  unsigned vgprs = requestedVgprs(chip, rsrc1, wave32);
  bool half = !chip.isGfx9() && !wave32;
  unsigned file = half ? row.vgprs / 2 : row.vgprs;
  unsigned granule = half ? row.vgprGranule / 2 : row.vgprGranule;
  cap(perSimd, std::max(1u, file / roundUp(vgprs, granule)), "VGPRs");
  if (chip.isGfx9() && sgprs > 96) // 800 per SIMD, in granules of 16
    cap(perSimd, 7, "SGPRs");
  unsigned groups = std::max(1u, perSimd * r.simds / std::max(1u, waves));
  if (ldsBytes)
    cap(groups,
        std::max(1u, lds / roundUp(ldsBytes,
                                   chip.family == Family::GFX950 ? 1280 : 512)),
        "LDS");
  // A workgroup with more than one wave takes one of the unit's barriers.
  if (waves > 1)
    cap(groups, chip.isGfx9() ? 16 : 32, "workgroup slots");
  r.workgroups = groups;
  return r;
}
