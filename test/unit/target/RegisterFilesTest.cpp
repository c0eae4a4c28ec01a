//===- RegisterFilesTest.cpp - both tables have LLVM's register files -----===//
//
// The compiler's table (lib/Target) and the simulator's (lib/Sim) each say how
// many registers the waves of a SIMD share. LLVM's subtarget features are what
// they are compared with.
//
//===----------------------------------------------------------------------===//

#include "Chip.h"
#include "Timing/Timing.h"
#include "greta/Target/Target.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Triple.h"
#include "gtest/gtest.h"

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
}

using namespace greta;

namespace {

/// VGPRs of a SIMD, per lane, and how many a wave gets at a time, by the rules
/// of LLVM's AMDGPUBaseInfo.cpp for the default wave size.
RegisterFile registersByLLVM(llvm::StringRef chip) {
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTargetMC();
  llvm::Triple triple("amdgcn-amd-amdhsa");
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      target->createMCSubtargetInfo(triple, chip, ""));
  if (info->checkFeatures("+gfx90a-insts"))
    return {256, 512, 8};
  EXPECT_TRUE(info->checkFeatures("+gfx10-3-insts")) << chip.str();
  if (info->checkFeatures("+allocate1_5xvgprs"))
    return {256, 1536, 24};
  return {256, 1024, 16};
}

TEST(RegisterFiles, AreLLVMs) {
  unsigned chips = 0;
  for (const TargetRow &row : getTargets()) {
    if (!row.isHip())
      continue;
    SCOPED_TRACE(row.name.str());
    RegisterFile want = registersByLLVM(row.name);
    EXPECT_EQ(row.vgprs.perSimd, want.perSimd);
    EXPECT_EQ(row.vgprs.granule, want.granule);
    const sim::Chip *chip = sim::findChip(row.name);
    ASSERT_TRUE(chip);
    const sim::TimingRow &timing = sim::timingRow(*chip);
    EXPECT_STREQ(timing.name, chip->name);
    EXPECT_EQ(timing.vgprs, want.perSimd);
    EXPECT_EQ(timing.vgprGranule, want.granule);
    EXPECT_EQ(timing.maxWaves, row.maxWavesPerSimd);
    EXPECT_EQ(timing.clockMHz, row.clockMHz);
    EXPECT_EQ(timing.memoryGBs, row.bandwidthGBs);
    EXPECT_EQ(chip->ldsBytes, row.ldsBytes);
    EXPECT_EQ(chip->simds, row.simdsPerUnit);
    ++chips;
  }
  EXPECT_EQ(chips, sim::chips().size());
}

/// The number of waves that fit of kernels with 128 and 129 registers and
/// workgroups of a wave, in the compiler's table and in the simulator's.
TEST(RegisterFiles, GiveTheSameOccupancy) {
  for (const TargetRow &row : getTargets()) {
    const sim::Chip *chip = sim::findChip(row.name);
    if (!chip)
      continue;
    SCOPED_TRACE(row.name.str());
    RegisterFile file = registersByLLVM(row.name);
    for (unsigned registers : {128u, 129u}) {
      unsigned allocated =
          (registers + file.granule - 1) / file.granule * file.granule;
      unsigned waves = file.perSimd / allocated;
      EXPECT_EQ(getOccupancy(row, registers, 0, 0, 0, row.waveSize), waves);
      // GRANULATED_WORKITEM_VGPR_COUNT.
      unsigned rsrc1 = (registers + 7) / 8 - 1;
      sim::Residency where = sim::residency(*chip, rsrc1, row.waveSize == 32,
                                            /*waves=*/1, /*ldsBytes=*/0,
                                            /*sgprs=*/0);
      EXPECT_EQ(where.workgroups, waves * row.simdsPerUnit);
    }
  }
}

} // namespace
