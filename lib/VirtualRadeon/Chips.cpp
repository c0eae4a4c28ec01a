//===- Chips.cpp - the table of virtual Radeons ---------------------------===//
//
// Sources: AMD's product pages (units, clocks, memory, caches), the chip
// revisions and families of the kernel's amdgpu_drm.h and of amdgpu.ids.
// Numbers that no compute program depends on (render backends, GB_ADDR_CONFIG's
// pipes) are plausible ones.
//
//===----------------------------------------------------------------------===//
#include "Chips.h"

using namespace greta::radeon;

static constexpr uint64_t GiB = uint64_t(1) << 30;
// AMDGPU_FAMILY_*; Debian 12's header ends before some of them.
enum : uint32_t { NV = 143, GC11 = 145, GC1103 = 148, GC115 = 150, GC12 = 152 };
// AMDGPU_VRAM_TYPE_*.
enum : uint32_t { GDDR6 = 9, DDR5 = 10, LPDDR5 = 12 };

static const Chip table[] = {
    // name  gfx  family, external and device id, PCI revision, IP
    // APU, engines, arrays, units an array, units, backends, L2 slices, KiB, L3
    // MHz, memory's, its type and width, GB_ADDR_CONFIG, memory
    {"phoenix", "gfx1103", GC1103, 0x01, 0x15bf, 0xc1,   0x0b0001, true,
     1,         2,         6,      12,   4,      4,      2048,     0,
     2800,      2800,      DDR5,   128,  0x0242, 4 * GiB},
    {"navi21", "gfx1030", NV,    0x28, 0x73bf, 0xc1,    0x0a0300, false,
     4,        2,         10,    72,   16,     16,      4096,     128,
     2250,     1000,      GDDR6, 256,  0x0444, 16 * GiB},
    {"navi31", "gfx1100", GC11,  0x01, 0x744c, 0xc8,    0x0b0000, false,
     6,        2,         8,     96,   24,     24,      6144,     96,
     2500,     1250,      GDDR6, 384,  0x0545, 24 * GiB},
    {"gfx1151", "gfx1151", GC115,  0xc1, 0x1586, 0xc1,    0x0b0501, true,
     2,         2,         10,     40,   8,      8,       2048,     32,
     2900,      4000,      LPDDR5, 256,  0x0343, 16 * GiB},
    {"gfx1201", "gfx1201", GC12,  0x51, 0x7550, 0xc0,    0x0c0001, false,
     4,         2,         8,     64,   16,     16,      8192,     64,
     2970,      1258,      GDDR6, 256,  0x0444, 16 * GiB},
};

llvm::ArrayRef<Chip> greta::radeon::chips() { return table; }

const Chip *greta::radeon::findChip(llvm::StringRef name) {
  for (const Chip &c : table)
    if (name == c.name || name == c.gfx)
      return &c;
  return nullptr;
}
