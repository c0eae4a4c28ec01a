//===- TargetTest.cpp - the target table says what it can mean ------------===//

#include "greta/Target/Target.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include "gtest/gtest.h"
#include <map>

using namespace greta;
using llvm::ArrayRef;
using llvm::StringRef;

static std::string errorOf(llvm::StringRef list) {
  auto targets = parseTargets(list);
  return targets ? "" : llvm::toString(targets.takeError());
}

static const TargetRow &row(StringRef name) {
  return *llvm::cantFail(lookupTarget(name));
}

TEST(Target, NamesAreUnique) {
  llvm::StringSet<> seen;
  for (const TargetRow &row : getTargets()) {
    EXPECT_TRUE(seen.insert(row.name).second) << row.name.str();
    EXPECT_FALSE(row.source.empty()) << row.name.str();
    for (StringRef alias : row.aliases)
      EXPECT_TRUE(seen.insert(alias).second) << alias.str();
  }
  EXPECT_FALSE(seen.contains("vulkan"));
}

TEST(Target, EveryChipOfTheContractExists) {
  for (StringRef name :
       {"gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1101",
        "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1200", "gfx1201"}) {
    EXPECT_EQ(row(name).name, name);
    EXPECT_TRUE(row(name).isHip());
    EXPECT_EQ(row(name).waveSize, name.starts_with("gfx9") ? 64u : 32u);
  }
}

TEST(Target, Aliases) {
  EXPECT_EQ(row("rdna3").name, "gfx1100");
  EXPECT_EQ(row("RX7900XTX").name, "gfx1100");
  for (StringRef alias : {"rdna2", "rx6800xt", "navi21"})
    EXPECT_EQ(row(alias).name, "gfx1030");
  EXPECT_EQ(row("mi300x").name, "gfx942");
  EXPECT_EQ(row("vulkan:nvidia").family(), "nvidia");
  EXPECT_EQ(row("gfx942").family(), "gfx942");
  EXPECT_EQ(row("gfx942").linkGBs, 64u);
  EXPECT_EQ(row("gfx1100").linkGBs, 0u);
  EXPECT_EQ(row("vulkan:b580").name, "vulkan:intel");
  EXPECT_EQ(row("vulkan:a770").name, "vulkan:intel-xehpg");
}

TEST(Target, ListsExpandVulkanOnce) {
  auto targets = llvm::cantFail(parseTargets("gfx942, vulkan,host,mi300x"));
  ASSERT_GE(targets.size(), 5u);
  EXPECT_EQ(targets.front()->name, "gfx942");
  EXPECT_EQ(targets.back()->name, "host");
  EXPECT_EQ(llvm::count_if(targets, [](auto *row) { return row->isVulkan(); }),
            (long)targets.size() - 2);
  EXPECT_TRUE(llvm::any_of(
      targets, [](auto *row) { return row->name == "vulkan:portable"; }));
}

TEST(Target, UnknownNamesAreListedAgainst) {
  std::string error = errorOf("gfx942,gfx906");
  EXPECT_NE(error.find("unknown target 'gfx906'"), std::string::npos);
  EXPECT_NE(error.find("gfx1201"), std::string::npos);
  EXPECT_NE(error.find("vulkan:lavapipe"), std::string::npos);
  for (StringRef none : {"", " "})
    EXPECT_TRUE(StringRef(errorOf(none))
                    .starts_with("no target is given; targets are "))
        << errorOf(none);
  EXPECT_NE(errorOf("gfx942,").find("unknown target ''"), std::string::npos);
}

TEST(Target, LimitsAreUsable) {
  for (const TargetRow &row : getTargets()) {
    EXPECT_TRUE(llvm::isPowerOf2_32(row.waveSize)) << row.name.str();
    EXPECT_GE(row.maxWorkgroupSize, row.waveSize) << row.name.str();
    EXPECT_GE(row.ldsBytesPerUnit, row.ldsBytes) << row.name.str();
    if (row.isVulkan()) {
      EXPECT_TRUE(row.hasFeature("bufferDeviceAddress"));
      EXPECT_EQ(row.waveSize == 1, !row.hasFeature("subgroupSizeControl"));
    }
  }
}

/// Every element of a rows x columns operand is held, all equally often.
static void expectCovers(FragmentLayout layout, unsigned waveSize,
                         unsigned rows, unsigned columns,
                         const std::string &what) {
  ASSERT_EQ(1u << layout.lane.size(), waveSize) << what;
  std::map<std::pair<unsigned, unsigned>, unsigned> holders;
  unsigned registers = 1u << layout.reg.size();
  for (unsigned lane = 0; lane < waveSize; ++lane)
    for (unsigned reg = 0; reg < registers; ++reg) {
      unsigned r = 0, c = 0;
      auto add = [&](ArrayRef<FragmentBasis> bases, unsigned index) {
        for (auto [bit, basis] : llvm::enumerate(bases))
          if (index >> bit & 1) {
            r ^= basis.row;
            c ^= basis.column;
          }
      };
      add(layout.reg, reg);
      add(layout.lane, lane);
      ASSERT_LT(r, rows) << what;
      ASSERT_LT(c, columns) << what;
      ++holders[{r, c}];
    }
  ASSERT_EQ(holders.size(), size_t(rows) * columns) << what;
  for (auto &[index, count] : holders)
    EXPECT_EQ(count, waveSize * registers / (rows * columns)) << what;
}

TEST(Target, MatrixLayoutsCoverTheirOperands) {
  unsigned known = 0;
  for (const TargetRow &row : getTargets())
    for (const MatrixInstruction &inst : row.matrix) {
      std::string what = (row.name + " " + inst.name).str() + " " +
                         std::to_string(inst.m) + "x" + std::to_string(inst.n) +
                         "x" + std::to_string(inst.k);
      EXPECT_EQ(inst.blocks, 1u) << what;
      if (row.isHip()) {
        EXPECT_TRUE(inst.aLayout.isKnown()) << what;
        EXPECT_TRUE(row.name.starts_with("gfx9") ==
                    inst.name.starts_with("mfma"));
      }
      if (!inst.aLayout.isKnown())
        continue;
      ++known;
      expectCovers(inst.aLayout, row.waveSize, inst.m, inst.k, what + " A");
      expectCovers(inst.bLayout, row.waveSize, inst.k, inst.n, what + " B");
      expectCovers(inst.accLayout, row.waveSize, inst.m, inst.n, what + " acc");
    }
  EXPECT_GT(known, 50u);
}

/// Peak f16 rate of the table against the product pages, in TFLOP/s.
TEST(Target, CyclesGiveThePeakRates) {
  for (auto [name, expected] :
       {std::pair("gfx90a", 191.5), std::pair("gfx942", 1307.4),
        std::pair("gfx950", 2516.6), std::pair("gfx1100", 122.8),
        std::pair("gfx1201", 194.6)}) {
    const TargetRow &chip = row(name);
    double best = 0;
    for (const MatrixInstruction &inst : chip.matrix)
      if (inst.a == "f16")
        best = std::max(best, 2.0 * inst.m * inst.n * inst.k / inst.cycles *
                                  chip.simdsPerUnit * chip.computeUnits *
                                  chip.clockMHz * 1e-6);
    EXPECT_NEAR(best, expected, 0.02 * expected) << name;
  }
}

TEST(Target, Occupancy) {
  const TargetRow &mi300 = row("gfx942"), &navi31 = row("gfx1100");
  EXPECT_EQ(getOccupancy(mi300, 64, 0, 32, 0, 256), 8u);
  EXPECT_EQ(getOccupancy(mi300, 65, 0, 32, 0, 256), 7u);
  EXPECT_EQ(getOccupancy(mi300, 128, 0, 32, 0, 256), 4u);
  EXPECT_EQ(getOccupancy(mi300, 128, 128, 32, 0, 256), 2u);
  EXPECT_EQ(getOccupancy(mi300, 24, 0, 102, 0, 256), 7u);    // SGPRs limit
  EXPECT_EQ(getOccupancy(mi300, 24, 0, 32, 40000, 256), 1u); // LDS limits
  EXPECT_EQ(getOccupancy(mi300, 24, 0, 32, 70000, 256), 0u);
  EXPECT_EQ(getOccupancy(mi300, 24, 0, 32, 0, 2048), 0u);
  EXPECT_EQ(getOccupancy(navi31, 96, 0, 106, 0, 256), 16u);
  EXPECT_EQ(getOccupancy(navi31, 97, 0, 106, 0, 64), 12u);
}
