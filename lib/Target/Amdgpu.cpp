//===- Amdgpu.cpp - the rows of the AMD chips -----------------------------===//
//
// Sources, by the names the rows use:
//   CDNA2 ISA, CDNA3 ISA, CDNA4 ISA, RDNA2 ISA, RDNA3 ISA, RDNA3.5 ISA, RDNA4
//   ISA:
//     AMD, "... Instruction Set Architecture: Reference Guide"
//   LLVM: llvm/docs/AMDGPUUsage.rst and AMDGPU.td of LLVM 22 (register counts
//     and granules: AMDGPUBaseInfo.cpp; 1536 instead of 1024 VGPRs where
//     AMDGPU.td has Feature1_5xVGPRs)
//   product: AMD's product pages (CUs, clocks, bandwidth, and half of what they
//     say of an Infinity Fabric link, which counts both directions)
//   loops: the tile model's coefficients, fitted to the simulator's estimates
//     of 1,262 tiles at 108 shapes (the CDNAs together) and of 577 at 70
//     (gfx1100 and gfx1201) by docs/benchmarks/tile_times.py; `narrow` only
//     keeps choices away, and of `others`, `hidden` and RDNA's `crowded`, which
//     the fit hardly tells, as much is taken as leaves the largest GEMMs the
//     tiles whose loops read least
//   rates: cycles = operations of the instruction / (peak rate / CUs / SIMDs /
//     clock), with the peak rates of the CDNA white papers and product pages
//
//===----------------------------------------------------------------------===//

#include "greta/Target/Target.h"

using namespace llvm;
using namespace greta;
using greta::detail::tilesOfRdna;
using greta::detail::wmmaOfRdna3;
using greta::detail::wmmaOfRdna4;

//===----------------------------------------------------------------------===//
// Layouts of matrix operands
//===----------------------------------------------------------------------===//
namespace {
// k runs through the registers of a lane; 2, 4, 8 and 16 elements.
constexpr FragmentBasis alongColumns[] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}};
constexpr FragmentBasis alongRows[] = {{1, 0}, {2, 0}, {4, 0}, {8, 0}};

// MFMA 16x16: lane % 16 = row of A, lane / 16 = k group of E elements.
template <uint8_t E>
constexpr FragmentBasis lane16A[] = {{1, 0}, {2, 0}, {4, 0},
                                     {8, 0}, {0, E}, {0, 2 * E}};
template <uint8_t E>
constexpr FragmentBasis lane16B[] = {{0, 1}, {0, 2}, {0, 4},
                                     {0, 8}, {E, 0}, {2 * E, 0}};
// MFMA 32x32: lane % 32 = row of A, lane / 32 = k group of E elements.
template <uint8_t E>
constexpr FragmentBasis lane32A[] = {{1, 0}, {2, 0},  {4, 0},
                                     {8, 0}, {16, 0}, {0, E}};
template <uint8_t E>
constexpr FragmentBasis lane32B[] = {{0, 1}, {0, 2},  {0, 4},
                                     {0, 8}, {0, 16}, {E, 0}};
// MFMA accumulators: row = 4 * (lane / 16) + r; row = 8 * (r / 4) +
// 4 * (lane / 32) + r % 4.
constexpr FragmentBasis acc16Reg[] = {{1, 0}, {2, 0}};
constexpr FragmentBasis acc16Lane[] = {{0, 1}, {0, 2}, {0, 4},
                                       {0, 8}, {4, 0}, {8, 0}};
constexpr FragmentBasis acc32Reg[] = {{1, 0}, {2, 0}, {8, 0}, {16, 0}};
constexpr FragmentBasis acc32Lane[] = {{0, 1}, {0, 2},  {0, 4},
                                       {0, 8}, {0, 16}, {4, 0}};
// WMMA gfx11: every lane has all k of a row; lanes 16-31 repeat lanes 0-15.
constexpr FragmentBasis wmma11LaneA[] = {
    {1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 0}};
constexpr FragmentBasis wmma11LaneB[] = {
    {0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 0}};
// row = 2 * r + lane / 16.
constexpr FragmentBasis wmma11AccReg[] = {{2, 0}, {4, 0}, {8, 0}};
constexpr FragmentBasis wmma11AccLane[] = {
    {0, 1}, {0, 2}, {0, 4}, {0, 8}, {1, 0}};
// WMMA gfx12: lane % 16 = row, k = 8 * (lane / 16) + e; row = 8 * (lane / 16)
// + r.
constexpr FragmentBasis wmma12LaneA[] = {
    {1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 8}};
constexpr FragmentBasis wmma12LaneB[] = {
    {0, 1}, {0, 2}, {0, 4}, {0, 8}, {8, 0}};
constexpr FragmentBasis wmma12AccReg[] = {{1, 0}, {2, 0}, {4, 0}};
constexpr FragmentBasis wmma12AccLane[] = {
    {0, 1}, {0, 2}, {0, 4}, {0, 8}, {8, 0}};

constexpr unsigned log2of(unsigned value) {
  return value <= 1 ? 0 : 1 + log2of(value / 2);
}

/// `edge` rows by as many columns.
MatrixInstruction square(unsigned edge, unsigned k, StringRef name,
                         StringRef in, StringRef acc, unsigned cycles,
                         FragmentLayout a, FragmentLayout b, FragmentLayout c) {
  return {name, edge, edge, k, /*blocks=*/1, in, in, acc, cycles, a, b, c};
}

/// 16x16xK with E = K / 4 elements of A per lane.
template <uint8_t E>
MatrixInstruction mfma16(StringRef name, StringRef in, StringRef acc,
                         unsigned cycles) {
  return square(16, 4u * E, name, in, acc, cycles,
                {ArrayRef(alongColumns).take_front(log2of(E)), lane16A<E>},
                {ArrayRef(alongRows).take_front(log2of(E)), lane16B<E>},
                {acc16Reg, acc16Lane});
}

/// 32x32xK with E = K / 2 elements of A per lane.
template <uint8_t E>
MatrixInstruction mfma32(StringRef name, StringRef in, StringRef acc,
                         unsigned cycles) {
  return square(32, 2u * E, name, in, acc, cycles,
                {ArrayRef(alongColumns).take_front(log2of(E)), lane32A<E>},
                {ArrayRef(alongRows).take_front(log2of(E)), lane32B<E>},
                {acc32Reg, acc32Lane});
}

/// The instruction with another type for B.
MatrixInstruction mixed(MatrixInstruction instruction, StringRef b) {
  instruction.b = b;
  return instruction;
}
} // namespace

// CDNA2 ISA, 7 "Matrix arithmetic instructions"; LLVM FeatureMAIInsts, gfx90a.
static const MatrixInstruction matrixGfx90a[] = {
    mfma16<4>("mfma.f32.16x16x16f16", "f16", "f32", 32),
    mfma32<4>("mfma.f32.32x32x8f16", "f16", "f32", 64),
    mfma16<4>("mfma.f32.16x16x16bf16.1k", "bf16", "f32", 32),
    mfma32<4>("mfma.f32.32x32x8bf16.1k", "bf16", "f32", 64),
    mfma16<1>("mfma.f32.16x16x4f32", "f32", "f32", 32),
    mfma32<1>("mfma.f32.32x32x2f32", "f32", "f32", 64),
    mfma16<4>("mfma.i32.16x16x16i8", "i8", "i32", 32),
    mfma32<4>("mfma.i32.32x32x8i8", "i8", "i32", 64)};

// CDNA3 ISA, 7 "Matrix arithmetic instructions".
static const MatrixInstruction matrixGfx942[] = {
    mfma16<4>("mfma.f32.16x16x16f16", "f16", "f32", 16),
    mfma32<4>("mfma.f32.32x32x8f16", "f16", "f32", 32),
    mfma16<4>("mfma.f32.16x16x16bf16.1k", "bf16", "f32", 16),
    mfma32<4>("mfma.f32.32x32x8bf16.1k", "bf16", "f32", 32),
    mfma16<1>("mfma.f32.16x16x4f32", "f32", "f32", 32),
    mfma32<1>("mfma.f32.32x32x2f32", "f32", "f32", 64),
    mfma16<8>("mfma.i32.16x16x32.i8", "i8", "i32", 16),
    mfma32<8>("mfma.i32.32x32x16.i8", "i8", "i32", 32),
    mfma16<8>("mfma.f32.16x16x32.fp8.fp8", "f8e4m3fnuz", "f32", 16),
    mfma32<8>("mfma.f32.32x32x16.fp8.fp8", "f8e4m3fnuz", "f32", 32),
    mfma16<8>("mfma.f32.16x16x32.bf8.bf8", "f8e5m2fnuz", "f32", 16),
    mfma32<8>("mfma.f32.32x32x16.bf8.bf8", "f8e5m2fnuz", "f32", 32),
    mixed(mfma16<8>("mfma.f32.16x16x32.fp8.bf8", "f8e4m3fnuz", "f32", 16),
          "f8e5m2fnuz"),
    mixed(mfma32<8>("mfma.f32.32x32x16.fp8.bf8", "f8e4m3fnuz", "f32", 32),
          "f8e5m2fnuz"),
    mixed(mfma16<8>("mfma.f32.16x16x32.bf8.fp8", "f8e5m2fnuz", "f32", 16),
          "f8e4m3fnuz"),
    mixed(mfma32<8>("mfma.f32.32x32x16.bf8.fp8", "f8e5m2fnuz", "f32", 32),
          "f8e4m3fnuz")};

// CDNA4 ISA, 7 "Matrix arithmetic instructions": twice the K at CDNA3's cycles.
static const MatrixInstruction matrixGfx950[] = {
    mfma16<8>("mfma.f32.16x16x32.f16", "f16", "f32", 16),
    mfma32<8>("mfma.f32.32x32x16.f16", "f16", "f32", 32),
    mfma16<8>("mfma.f32.16x16x32.bf16", "bf16", "f32", 16),
    mfma32<8>("mfma.f32.32x32x16.bf16", "bf16", "f32", 32),
    mfma16<4>("mfma.f32.16x16x16f16", "f16", "f32", 16),
    mfma32<4>("mfma.f32.32x32x8f16", "f16", "f32", 32),
    mfma16<4>("mfma.f32.16x16x16bf16.1k", "bf16", "f32", 16),
    mfma32<4>("mfma.f32.32x32x8bf16.1k", "bf16", "f32", 32),
    mfma16<1>("mfma.f32.16x16x4f32", "f32", "f32", 32),
    mfma32<1>("mfma.f32.32x32x2f32", "f32", "f32", 64),
    mfma16<16>("mfma.i32.16x16x64.i8", "i8", "i32", 16),
    mfma32<16>("mfma.i32.32x32x32.i8", "i8", "i32", 32),
    mfma16<8>("mfma.f32.16x16x32.fp8.fp8", "f8e4m3fn", "f32", 16),
    mfma32<8>("mfma.f32.32x32x16.fp8.fp8", "f8e4m3fn", "f32", 32),
    mfma16<8>("mfma.f32.16x16x32.bf8.bf8", "f8e5m2", "f32", 16),
    mfma32<8>("mfma.f32.32x32x16.bf8.bf8", "f8e5m2", "f32", 32),
    mixed(mfma16<8>("mfma.f32.16x16x32.fp8.bf8", "f8e4m3fn", "f32", 16),
          "f8e5m2"),
    mixed(mfma32<8>("mfma.f32.32x32x16.fp8.bf8", "f8e4m3fn", "f32", 32),
          "f8e5m2"),
    mixed(mfma16<8>("mfma.f32.16x16x32.bf8.fp8", "f8e5m2", "f32", 16),
          "f8e4m3fn"),
    mixed(mfma32<8>("mfma.f32.32x32x16.bf8.fp8", "f8e5m2", "f32", 32),
          "f8e4m3fn")};

// RDNA3 ISA, 7.9 "Wave matrix multiply accumulate". No f32 operands.
static const MatrixInstruction matrixGfx11[] = {
    wmmaOfRdna3("wmma.f32.16x16x16.f16", "f16", "f32", 32),
    wmmaOfRdna3("wmma.f32.16x16x16.bf16", "bf16", "f32", 32),
    wmmaOfRdna3("wmma.i32.16x16x16.iu8", "i8", "i32", 32)};

// RDNA4 ISA, 7.12 "Wave matrix multiply accumulate". No f32 operands.
static const MatrixInstruction matrixGfx12[] = {
    wmmaOfRdna4("wmma.f32.16x16x16.f16", "f16", "f32", 16),
    wmmaOfRdna4("wmma.f32.16x16x16.bf16", "bf16", "f32", 16),
    wmmaOfRdna4("wmma.i32.16x16x16.iu8", "i8", "i32", 8),
    wmmaOfRdna4("wmma.f32.16x16x16.fp8.fp8", "f8e4m3fn", "f32", 8),
    wmmaOfRdna4("wmma.f32.16x16x16.bf8.bf8", "f8e5m2", "f32", 8),
    mixed(wmmaOfRdna4("wmma.f32.16x16x16.fp8.bf8", "f8e4m3fn", "f32", 8),
          "f8e5m2"),
    mixed(wmmaOfRdna4("wmma.f32.16x16x16.bf8.fp8", "f8e5m2", "f32", 8),
          "f8e4m3fn")};

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

static constexpr unsigned ldsDword[] = {4};
static constexpr unsigned ldsDwordOrFour[] = {4, 12, 16};

// CDNA4 ISA, DS_READ_B64_TR_B16 and DS_READ_B64_TR_B8; the simulator has them
// from AMD's own tests. 16 lanes load rows of 16 elements and have a column
// each.
static constexpr TransposedLoad::Bit lanesOfRows16[] = {
    {false, 2}, {false, 3}, {true, 0}, {true, 1}};
static constexpr TransposedLoad::Bit lanesOfRows8[] = {
    {false, 3}, {true, 0}, {true, 1}, {true, 2}};
static const TransposedLoad transposedGfx950[] = {
    {/*isShared=*/true, 2, 4, lanesOfRows16},
    {/*isShared=*/true, 1, 8, lanesOfRows8}};

// RDNA4 ISA, GLOBAL_LOAD_TR_B128 and GLOBAL_LOAD_TR_B64 in waves of 32; the
// simulator says who has measured them. Eight lanes load eight numbers each, of
// rows that 16 lanes have a column of.
static constexpr TransposedLoad::Bit lanesOfGlobal16[] = {
    {true, 0}, {true, 1}, {true, 2}};
static constexpr TransposedLoad::Bit lanesOfGlobal8[] = {
    {true, 0}, {true, 1}, {false, 3}, {true, 2}};
static const TransposedLoad transposedGfx12[] = {
    {/*isShared=*/false, 2, 8, lanesOfGlobal16},
    {/*isShared=*/false, 1, 8, lanesOfGlobal8}};

static constexpr StringRef namesGfx90a[] = {"cdna2", "mi200", "mi210", "mi250",
                                            "mi250x"};
static constexpr StringRef namesGfx942[] = {"cdna3",  "mi300",  "mi300x",
                                            "mi300a", "mi308x", "mi325x"};
static constexpr StringRef namesGfx950[] = {"cdna4", "mi350", "mi350x",
                                            "mi355x"};
static constexpr StringRef namesGfx1030[] = {
    "rdna2", "navi21", "rx6800", "rx6800xt", "rx6900xt", "rx6950xt", "w6800"};
static constexpr StringRef namesGfx1100[] = {
    "rdna3", "navi31", "rx7900xtx", "rx7900xt", "rx7900gre", "w7900"};
static constexpr StringRef namesGfx1101[] = {"navi32", "rx7800xt", "rx7700xt"};
static constexpr StringRef namesGfx1102[] = {"navi33", "rx7600", "rx7600xt"};
static constexpr StringRef namesGfx1103[] = {"phoenix", "radeon780m"};
static constexpr StringRef namesGfx1150[] = {"strix-point", "radeon890m"};
static constexpr StringRef namesGfx1151[] = {"rdna3.5", "strix-halo",
                                             "radeon8060s"};
static constexpr StringRef namesGfx1200[] = {"navi44", "rx9060xt"};
static constexpr StringRef namesGfx1201[] = {"rdna4", "navi48", "rx9070xt",
                                             "rx9070"};

// Additions of floats in memory. Arithmetic on two f32 at a time (v_pk_mul_f32
// and others, CDNA 2 ISA guide, 6.7). Two f32 rounded to a pair of bf16
// (v_cvt_pk_bf16_f32). Lane exchange: v_permlane32_swap; DPP row_xmask and
// v_permlanex16. Buffer descriptors that say what out of bounds means. One
// instruction of two (VOPD, RDNA 3 ISA guide, 7.6).
static constexpr StringRef featuresCdna[] = {"atomic_add_f32", "atomic_add_f64",
                                             "packed_f32", "permlane32_swap",
                                             "cvt_pk_bf16"};
static const ArrayRef<StringRef> beforeGfx950 =
    ArrayRef(featuresCdna).drop_back(2);
static constexpr StringRef featuresRdna[] = {"row_xmask", "buffer_oob_select",
                                             "atomic_add_f32", "dual_issue"};

namespace {
/// The numbers that differ between chips of one generation.
struct Chip {
  StringRef name;
  ArrayRef<StringRef> aliases;
  unsigned computeUnits, clockMHz, bandwidthGBs;
  StringRef source;
  unsigned linkGBs = 0;
};

TargetRow cdna(Chip chip, unsigned ldsBytes, unsigned ldsBanks, unsigned xcds,
               ArrayRef<unsigned> directToLds, Fp8Kind fp8,
               ArrayRef<MatrixInstruction> matrix, TileFacts tiles,
               ArrayRef<StringRef> features,
               ArrayRef<TransposedLoad> transposedLoads = {}) {
  return {chip.name,
          Backend::Hip,
          chip.aliases,
          /*waveSize=*/64,
          /*maxWorkgroupSize=*/1024,
          ldsBytes,
          /*ldsBytesPerUnit=*/ldsBytes,
          /*vgprs=*/{256, 512, 8},
          /*agprs=*/{256, 512, 8},
          /*unifiedVgprs=*/true,
          /*sgprs=*/{102, 800, 16},
          chip.computeUnits,
          /*simdsPerUnit=*/4,
          /*maxWavesPerSimd=*/8,
          xcds,
          chip.clockMHz,
          chip.bandwidthGBs,
          directToLds,
          fp8,
          matrix,
          features,
          /*capabilities=*/{},
          chip.source,
          tiles,
          /*waveCycles=*/4,
          /*unitsPerWorkgroup=*/1,
          /*driver=*/{},
          /*most=*/{},
          ldsBanks,
          transposedLoads,
          chip.linkGBs};
}

/// `ldsBytes` a cycle, fitted, the second cache's share of a CU, and the cost
/// of direct loads in an iteration, of which those of 4 bytes are four times as
/// many. The fit hardly determines these numbers. They are such that only large
/// tiles of gfx950 take direct loads.
TileFacts tilesOfCdna(double ldsBytes, double cacheBytes,
                      double iterationDirect) {
  TileFacts tiles;
  tiles.fillsLate = true;
  // Registers that LLVM needs beside the estimate; if they are too few, the
  // chooser is told (lib/Package/Hip.cpp).
  tiles.spareVgprs = 4;
  // Lanes are many: they load packed weights by words.
  tiles.weightsOfLane = 8;
  tiles.slotsPerIssue = 4; // CDNA3 ISA, 'wave64 over 4 cycles'
  // As many as spill nothing with AGPRs beside.
  tiles.attention.vgprs = tiles.attention.vgprsOfGradients = 0.75;
  tiles.attention.vgprsOfBytes = 0.375;
  LoopRates &loop = tiles.loop;
  loop.issue = 1; // issue_model.csv: loops of matrix instructions alone
  loop.ldsBytes = ldsBytes;
  loop.cacheBytes = cacheBytes;
  // These are fitted (docs/benchmarks/README.md, "Rates of the target table").
  loop.others = 0.06;
  loop.iteration = 227;
  loop.iterationDirect = iterationDirect;
  loop.hidden = 0.14;
  loop.narrow = 4;
  loop.latency = 340;
  loop.latencyDirect = 700;
  loop.behind = 0.2;
  loop.contention = 0.5;
  loop.crowded = 0.06;
  loop.ends = 2650;
  loop.meeting = 1400;
  loop.search = 800; // two rounds of loads that wait for each other
  loop.partBytes = 40;
  return tiles;
}

/// Decoding with keys of 8 bits is faster with 32 keys a wave than with 16.
/// gfx950 and RDNA keep 16, since heads of 128 or of 64 elements lose there.
TileFacts tilesBeforeGfx950(double cacheBytes, double iterationDirect) {
  TileFacts tiles = tilesOfCdna(155, cacheBytes, iterationDirect);
  tiles.stagesOfDirect = 3;
  tiles.attention.vgprsOfBytes = 0.55;
  return tiles;
}

/// A CU is half a WGP: two SIMDs and, as far as counting goes, half of its
/// 128 KB of LDS. LLVM compiles for WGP mode, where workgroups have both
/// halves. SGPRs are the same for every wave and limit nothing.
TargetRow rdna(Chip chip, unsigned vgprsPerSimd, unsigned vgprGranule,
               Fp8Kind fp8, ArrayRef<MatrixInstruction> matrix, TileFacts tiles,
               ArrayRef<StringRef> features = featuresRdna,
               ArrayRef<TransposedLoad> transposedLoads = {}) {
  return {chip.name,
          Backend::Hip,
          chip.aliases,
          /*waveSize=*/32,
          /*maxWorkgroupSize=*/1024,
          /*ldsBytes=*/65536,
          /*ldsBytesPerUnit=*/65536,
          /*vgprs=*/{256, vgprsPerSimd, vgprGranule},
          /*agprs=*/{},
          /*unifiedVgprs=*/false,
          /*sgprs=*/{106, 0, 1},
          chip.computeUnits,
          /*simdsPerUnit=*/2,
          /*maxWavesPerSimd=*/16,
          /*xcds=*/1,
          chip.clockMHz,
          chip.bandwidthGBs,
          /*directToLdsBytes=*/{},
          fp8,
          matrix,
          features,
          /*capabilities=*/{},
          chip.source,
          tiles,
          /*waveCycles=*/1,
          /*unitsPerWorkgroup=*/2,
          /*driver=*/{},
          /*most=*/{},
          /*ldsBanks=*/32,
          transposedLoads};
}
} // namespace

MatrixInstruction greta::detail::wmmaOfRdna3(StringRef name, StringRef in,
                                             StringRef acc, unsigned cycles) {
  return square(16, 16, name, in, acc, cycles, {alongColumns, wmma11LaneA},
                {alongRows, wmma11LaneB}, {wmma11AccReg, wmma11AccLane});
}

MatrixInstruction greta::detail::wmmaOfRdna4(StringRef name, StringRef in,
                                             StringRef acc, unsigned cycles) {
  return square(16, 16, name, in, acc, cycles,
                {ArrayRef(alongColumns).take_front(3), wmma12LaneA},
                {ArrayRef(alongRows).take_front(3), wmma12LaneB},
                {wmma12AccReg, wmma12AccLane});
}

TileFacts greta::detail::tilesOfRdna(unsigned copies) {
  TileFacts tiles;
  tiles.fillsLate = true;
  // If lanes hold operands twice, LLVM needs more of them on their way.
  tiles.spareVgprs = 16 * copies;
  tiles.transposed = 1 + copies;
  LoopRates &loop = tiles.loop;
  loop.ldsBytes = 2 * 128;  // RDNA3 ISA: 128 bytes a cycle for each half
  loop.cacheBytes = 2 * 54; // loops: 0.85 of the half's 64
  // These are fitted (docs/benchmarks/README.md, "Rates of the target table").
  // WMMA occupies the vector unit back to back, so nothing is lost at issue.
  loop.others = 0.06;
  loop.iteration = 81;
  loop.narrow = 4;
  loop.latency = 401;
  loop.behind = 0.25;
  loop.contention = 0.46;
  loop.crowded = 0.1;
  loop.ends = 1260;
  loop.meeting = 2880;
  loop.partBytes = 82;
  return tiles;
}

static const TargetRow chips[] = {
    // One of the two dies of an MI250X, which is one device.
    cdna({"gfx90a", namesGfx90a, 110, 1700, 1638,
          "CDNA2 ISA; LLVM gfx90a; product MI250X", 50},
         65536, 32, 1, ldsDword, Fp8Kind::None, matrixGfx90a,
         tilesBeforeGfx950(33, 600), beforeGfx950),
    cdna({"gfx942", namesGfx942, 304, 2100, 5300,
          "CDNA3 ISA; LLVM gfx942; product MI300X", 64},
         65536, 32, 8, ldsDword, Fp8Kind::Fnuz, matrixGfx942,
         tilesBeforeGfx950(47, 540), beforeGfx950),
    cdna({"gfx950", namesGfx950, 256, 2400, 8000,
          "CDNA4 ISA; LLVM gfx950; product MI355X", 76},
         163840, 64, 8, ldsDwordOrFour, Fp8Kind::Ocp, matrixGfx950,
         tilesOfCdna(169, 56, 280), featuresCdna, transposedGfx950),
    rdna({"gfx1030", namesGfx1030, 72, 2250, 512,
          "RDNA2 ISA; LLVM gfx1030; product RX 6800 XT"},
         1024, 16, Fp8Kind::None, /*matrix=*/{}, tilesOfRdna(1),
         ArrayRef(featuresRdna).drop_back(2)),
    rdna({"gfx1100", namesGfx1100, 96, 2500, 960,
          "RDNA3 ISA; LLVM gfx1100; product RX 7900 XTX"},
         1536, 24, Fp8Kind::None, matrixGfx11, tilesOfRdna(2)),
    rdna({"gfx1101", namesGfx1101, 60, 2430, 624,
          "RDNA3 ISA; LLVM gfx1101; product RX 7800 XT"},
         1536, 24, Fp8Kind::None, matrixGfx11, tilesOfRdna(2)),
    rdna({"gfx1102", namesGfx1102, 32, 2655, 288,
          "RDNA3 ISA; LLVM gfx1102; product RX 7600"},
         1024, 16, Fp8Kind::None, matrixGfx11, tilesOfRdna(2)),
    rdna({"gfx1103", namesGfx1103, 12, 2700, 120,
          "RDNA3 ISA; LLVM gfx1103; product Radeon 780M, LPDDR5X-7500"},
         1024, 16, Fp8Kind::None, matrixGfx11, tilesOfRdna(2)),
    rdna({"gfx1150", namesGfx1150, 16, 2900, 120,
          "RDNA3.5 ISA; LLVM gfx1150; product Radeon 890M, LPDDR5X-7500"},
         1024, 16, Fp8Kind::None, matrixGfx11, tilesOfRdna(2)),
    rdna({"gfx1151", namesGfx1151, 40, 2900, 256,
          "RDNA3.5 ISA; LLVM gfx1151; product Radeon 8060S, LPDDR5X-8000"},
         1536, 24, Fp8Kind::None, matrixGfx11, tilesOfRdna(2)),
    rdna({"gfx1200", namesGfx1200, 32, 3130, 320,
          "RDNA4 ISA; LLVM gfx1200; product RX 9060 XT"},
         1536, 24, Fp8Kind::Ocp, matrixGfx12, tilesOfRdna(1), featuresRdna,
         transposedGfx12),
    rdna({"gfx1201", namesGfx1201, 64, 2970, 640,
          "RDNA4 ISA; LLVM gfx1201; product RX 9070 XT"},
         1536, 24, Fp8Kind::Ocp, matrixGfx12, tilesOfRdna(1), featuresRdna,
         transposedGfx12)};

ArrayRef<TargetRow> greta::detail::amdgpuRows() { return chips; }
