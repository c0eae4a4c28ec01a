//===- Chip.cpp - the simulator's chip table ------------------------------===//
//
// Sources: LLVM's AMDGPUUsage (ABI, fp8 kinds, LDS), AMD's CDNA2/CDNA3/RDNA2/
// RDNA3/RDNA4 ISA manuals, AMD's product pages (compute units).
//
//===----------------------------------------------------------------------===//
#include "Chip.h"
#include "llvm/BinaryFormat/ELF.h"

using namespace greta::sim;

static const Chip table[] = {
    // name       family          fnuz   archId archScr wave simd CUs  LDS
    {"gfx90a", Family::GFX90A, true, false, false, 64, 4, 110, 65536,
     llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX90A},
    {"gfx942", Family::GFX940, true, false, true, 64, 4, 304, 65536,
     llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX942},
    {"gfx950", Family::GFX950, false, false, true, 64, 4, 256, 163840,
     llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX950},
    {"gfx1030", Family::GFX103, false, false, false, 32, 2, 72, 65536,
     llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX1030},
    {"gfx1100", Family::GFX11, false, false, true, 32, 2, 96, 65536,
     llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX1100},
    {"gfx1101", Family::GFX11, false, false, true, 32, 2, 60, 65536,
     llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX1101},
    {"gfx1102", Family::GFX11, false, false, true, 32, 2, 32, 65536,
     llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX1102},
    {"gfx1103", Family::GFX11, false, false, true, 32, 2, 12, 65536,
     llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX1103},
    {"gfx1150", Family::GFX115, false, false, true, 32, 2, 16, 65536,
     llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX1150},
    {"gfx1151", Family::GFX115, false, false, true, 32, 2, 40, 65536,
     llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX1151},
    {"gfx1200", Family::GFX12, false, true, true, 32, 2, 32, 65536,
     llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX1200},
    {"gfx1201", Family::GFX12, false, true, true, 32, 2, 64, 65536,
     llvm::ELF::EF_AMDGPU_MACH_AMDGCN_GFX1201},
};

llvm::ArrayRef<Chip> greta::sim::chips() { return table; }

const Chip *greta::sim::findChip(llvm::StringRef name) {
  for (const Chip &c : table)
    if (name == c.name)
      return &c;
  return nullptr;
}
