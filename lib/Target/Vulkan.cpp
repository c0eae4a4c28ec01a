//===- Vulkan.cpp - the rows of the Vulkan device families ----------------===//
//
// Sources, by the names the rows use:
//   spec: Vulkan 1.3 specification, "Required Limits" and "Required Features"
//   measured: our own probes of 2026-11-20 and 21
//   (docs/internals/stages/2-configuration.md): the
//     H200 with driver 580.159.04 and lavapipe 26.1; shared memory per SM
//     counted by how many one-wave workgroups run at once, layouts read with an
//     iota kernel
//   RADV: Mesa 25.0.7, radv_physical_device.c, and its null device
//   ANV: Mesa 25.0.7, src/intel/dev and src/intel/vulkan; nobody ran these rows
//   executed: what RADV makes of the runtime's layout probe
//     (runtime/src/vulkan/ProbeModule.cpp), run in the simulator: of 25.0.7 for
//     gfx1103, of 26.1.6 for gfx1100 and gfx1201; no such GPU was at hand
//
//===----------------------------------------------------------------------===//

#include "greta/Target/Target.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace greta;

//===----------------------------------------------------------------------===//
// Cooperative matrices
//===----------------------------------------------------------------------===//

// H200, measured: A 16x16 of f16 and the accumulators 16x16 are alike, as are
// bf16 and f16, and the accumulators of all types.
static constexpr FragmentBasis nvLaneA[] = {
    {0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}};
static constexpr FragmentBasis nvLaneB[] = {
    {2, 0}, {4, 0}, {0, 1}, {0, 2}, {0, 4}};
static constexpr FragmentBasis nvReg16x16[] = {{0, 1}, {0, 8}, {8, 0}};
static constexpr FragmentBasis nvReg16x8[] = {{0, 1}, {8, 0}};
static constexpr FragmentBasis nvRegB16x16[] = {{1, 0}, {8, 0}, {0, 8}};
static constexpr FragmentLayout nvA = {nvReg16x16, nvLaneA};
static constexpr FragmentLayout nv16x8 = {nvReg16x8, nvLaneA};
static constexpr FragmentLayout nvB16x16 = {nvRegB16x16, nvLaneB};
static const FragmentLayout nvB16x8 = {ArrayRef(nvRegB16x16).take_front(2),
                                       nvLaneB};
// The transposed product of 8 rows: A as the device's B is, B as its A.
static const FragmentLayout nvSwappedA = {ArrayRef(nvReg16x16).take_front(2),
                                          nvLaneA};
static constexpr FragmentBasis nvReg8x16[] = {{1, 0}, {0, 8}};
static constexpr FragmentLayout nv8x16 = {nvReg8x16, nvLaneB};
static const FragmentLayout nvB8x8 = {ArrayRef(nvRegB16x16).take_front(1),
                                      nvLaneB};
// i8: twice the columns of A and rows of B.
static constexpr FragmentBasis nvLaneA8[] = {
    {0, 4}, {0, 8}, {1, 0}, {2, 0}, {4, 0}};
static constexpr FragmentBasis nvLaneB8[] = {
    {4, 0}, {8, 0}, {0, 1}, {0, 2}, {0, 4}};
static constexpr FragmentBasis nvRegA16x32[] = {
    {0, 1}, {0, 2}, {0, 16}, {8, 0}};
static constexpr FragmentBasis nvRegB32x16[] = {
    {1, 0}, {2, 0}, {16, 0}, {0, 8}};
static constexpr FragmentLayout nvA16x32 = {nvRegA16x32, nvLaneA8};
static constexpr FragmentLayout nvB32x16 = {nvRegB32x16, nvLaneB8};
static const FragmentLayout nvB32x8 = {ArrayRef(nvRegB32x16).take_front(3),
                                       nvLaneB8};

// Cycles follow from the rate at which the H200 issues instructions whose
// operands stay in registers (docs/benchmarks/README.md, "Rates of the target
// table"). Types that nobody measured have those of 128 SIMT FMAs a cycle.
static const MatrixInstruction matrixNvidia[] = {
    {"coopmat", 8, 16, 16, 1, "f16", "f16", "f32", 7, nvSwappedA, nvB16x16,
     nv8x16, /*isSwapped=*/true},
    {"coopmat", 16, 8, 16, 1, "f16", "f16", "f32", 7, nvA, nvB16x8, nv16x8},
    {"coopmat", 16, 8, 16, 1, "f16", "f16", "f16", 7, nvA, nvB16x8, nv16x8},
    {"coopmat", 16, 16, 16, 1, "f16", "f16", "f32", 18, nvA, nvB16x16, nvA},
    {"coopmat", 16, 16, 16, 1, "f16", "f16", "f16", 18, nvA, nvB16x16, nvA},
    {"coopmat", 16, 8, 8, 1, "f16", "f16", "f32", 8, nv16x8, nvB8x8, nv16x8},
    {"coopmat", 16, 8, 8, 1, "f16", "f16", "f16", 8, nv16x8, nvB8x8, nv16x8},
    {"coopmat", 16, 16, 16, 1, "bf16", "bf16", "f32", 18, nvA, nvB16x16, nvA},
    {"coopmat", 16, 16, 32, 1, "i8", "i8", "i32", 64, nvA16x32, nvB32x16, nvA},
    {"coopmat", 16, 8, 32, 1, "i8", "i8", "i32", 32, nvA16x32, nvB32x8,
     nv16x8}};

// lavapipe 26.1, measured, but for the cycles.
static constexpr FragmentBasis along8Columns[] = {{0, 1}, {0, 2}, {0, 4}};
static constexpr FragmentBasis along8Rows[] = {{1, 0}, {2, 0}, {4, 0}};
static constexpr FragmentLayout lvpA = {along8Rows, along8Columns};
static constexpr FragmentLayout lvpB = {along8Columns, along8Rows};
static const MatrixInstruction matrixLavapipe[] = {
    {"coopmat", 8, 8, 8, 1, "f16", "f16", "f32", 4, lvpA, lvpB, lvpA},
    {"coopmat", 8, 8, 8, 1, "f16", "f16", "f16", 4, lvpA, lvpB, lvpA},
    {"coopmat", 8, 8, 8, 1, "i8", "i8", "i32", 4, lvpA, lvpB, lvpA}};

// RADV makes v_wmma of them, whose layouts of elements they have: executed.
static MatrixInstruction ofRdna3(StringRef in, StringRef acc) {
  return greta::detail::wmmaOfRdna3("coopmat", in, acc, /*cycles=*/32);
}
static const MatrixInstruction matrixRdna3[] = {
    ofRdna3("f16", "f32"), ofRdna3("f16", "f16"), ofRdna3("i8", "i32")};

// RADV from 26 on; 25.0.7 has none there, for which the functions' variants
// without matrices are. It has products of bf16 with results of bf16 and of
// fp8, too, which GRETA's SPIR-V has not. Cycles: the row gfx1201.
static MatrixInstruction ofRdna4(StringRef in, StringRef acc, unsigned cycles) {
  return greta::detail::wmmaOfRdna4("coopmat", in, acc, cycles);
}
static const MatrixInstruction matrixRdna4[] = {
    ofRdna4("f16", "f32", 16), ofRdna4("f16", "f16", 16),
    ofRdna4("bf16", "f32", 16), ofRdna4("i8", "i32", 8)};

// Intel's Xe2: DPAS of 8 rows by 16 columns, a depth of 8 words. Nobody has
// read the layouts. Cycles of one of a core's eight matrix units, from the
// B580's 233 trillion operations a second of i8.
static MatrixInstruction ofXe2(unsigned k, StringRef in, StringRef acc) {
  return {"coopmat", 8, 16, k, 1, in, in, acc, 16, {}, {}, {}};
}
static const MatrixInstruction matrixXe2[] = {
    ofXe2(16, "f16", "f32"), ofXe2(16, "f16", "f16"), ofXe2(16, "bf16", "f32"),
    ofXe2(32, "i8", "i32")};

// Xe-HPG: half as wide, without bf16. Cycles of one of a core's sixteen matrix
// units, from the A770's 262 trillion operations a second of i8.
static MatrixInstruction ofXeHpg(unsigned k, StringRef in, StringRef acc) {
  return {"coopmat", 8, 8, k, 1, in, in, acc, 16, {}, {}, {}};
}
static const MatrixInstruction matrixXeHpg[] = {ofXeHpg(16, "f16", "f32"),
                                                ofXeHpg(16, "f16", "f16"),
                                                ofXeHpg(32, "i8", "i32")};

//===----------------------------------------------------------------------===//
// Features and capabilities
//===----------------------------------------------------------------------===//

// Every device of interest has these: buffers are 64-bit addresses, f16 and
// bf16 are stored in 16 bits.
static constexpr StringRef portableFeatures[] = {
    "bufferDeviceAddress",      "shaderInt64",   "shaderInt16",
    "storageBuffer16BitAccess", "shaderFloat16", "vulkanMemoryModel"};
static constexpr StringRef portableCapabilities[] = {
    "Shader",
    "Int64",
    "Int16",
    "Float16",
    "StorageBuffer16BitAccess",
    "PhysicalStorageBufferAddresses",
    "VulkanMemoryModel"};
// With subgroups; the last two where matrices of bf16 are. A device that does
// not add floats atomically takes the portable variant of a function that does.
static constexpr StringRef subgroupFeatures[] = {
    "bufferDeviceAddress",
    "shaderInt64",
    "shaderInt16",
    "storageBuffer16BitAccess",
    "shaderFloat16",
    "vulkanMemoryModel",
    "shaderInt8",
    "storageBuffer8BitAccess",
    "shaderBufferInt64Atomics",
    "shaderFloat64",
    "shaderBufferFloat32AtomicAdd",
    "subgroupSizeControl",
    "computeFullSubgroups",
    "cooperativeMatrix",
    "shaderBFloat16Type",
    "shaderBFloat16CooperativeMatrix"};
static constexpr StringRef subgroupCapabilities[] = {
    "Shader",
    "Int64",
    "Int16",
    "Float16",
    "StorageBuffer16BitAccess",
    "PhysicalStorageBufferAddresses",
    "VulkanMemoryModel",
    "Int8",
    "StorageBuffer8BitAccess",
    "Int64Atomics",
    "Float64",
    "AtomicFloat32AddEXT",
    "GroupNonUniform",
    "GroupNonUniformShuffle",
    "CooperativeMatrixKHR",
    "BFloat16TypeKHR",
    "BFloat16CooperativeMatrixKHR"};

static constexpr StringRef namesNvidia[] = {"vulkan:h200"};
static constexpr StringRef namesIntel[] = {"vulkan:xe2", "vulkan:b580"};
static constexpr StringRef namesXeHpg[] = {"vulkan:xehpg", "vulkan:a770"};
static constexpr StringRef namesWave64[] = {"vulkan:amd64"};
static constexpr StringRef namesLavapipe[] = {"vulkan:llvmpipe"};

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

namespace {
struct Unit {
  unsigned computeUnits, simdsPerUnit, maxWavesPerSimd, clockMHz, bandwidthGBs;
};

/// Drivers load matrices from shared memory as a whole, and keep the next block
/// in registers meanwhile. The rates are fitted to the only device that was
/// measured, the H200; docs/benchmarks/README.md, "Rates of the target table",
/// has the figures behind this and the functions below.
TileFacts tilesOfDriver() {
  TileFacts tiles;
  tiles.stages = tiles.stagesOfLoop = 1;
  tiles.deepest = 128;
  tiles.spareVgprs = 48; // drivers do not say what they spill
  tiles.transposed = 1;
  tiles.rowsOfGroup = 0; // gemm_candidates in docs/benchmarks/README.md
  // Drivers order loads as registers allow, so large tiles pay.
  AttentionFacts &attention = tiles.attention;
  attention.vgprs = 0.95;
  attention.vgprsOfWave = attention.vgprsOfGradients = 1.05;
  attention.wholeOperands = false;
  attention.tilesOfSmall = 2;
  // NVIDIA's driver loses more by a branch in a loop than by multiplications.
  attention.skipsRescale = false;
  LoopRates &loop = tiles.loop;
  loop.busiest = 0.6;
  loop.others = 0.3;
  loop.iteration = 1260;
  loop.latency = 1200;
  loop.latencyFew = 1400;
  loop.behind = 0.1;
  loop.contention = 1;
  loop.ends = 1100;
  loop.meeting = 16300;
  loop.partBytes = 104;
  return tiles;
}

/// Skinny GEMMs and decoding on the H200 have rates of their own.
TileFacts tilesOfNvidia() {
  TileFacts tiles = tilesOfDriver();
  StreamRates &stream = tiles.stream;
  stream.line = 2;
  stream.perWord = 11;
  stream.latency = 1000;
  stream.loads = 6;
  stream.ends = 300;
  stream.start = 1500;
  stream.rowBytes = 64;
  tiles.skinny = {4, 4, 1, 2.7, 4.1};
  tiles.attention.wavesOfFew = 2;
  return tiles;
}

/// Lanes do what those of AMD's code objects do. The rates are fitted to RADV's
/// code in the simulator. Mesa 26 keeps a workgroup's waves on one compute unit
/// and reads 8 bytes of shared memory a lane, which half of the banks answer.
/// Neither Mesa 25 nor 26 reads ahead as LLVM does, so several small workgroups
/// hide each other's waits. Attention's tiles are those for which
/// RADV itself counts enough registers; few queries take 32 keys at a time.
TileFacts tilesOfRadv() {
  TileFacts tiles = tilesOfDriver();
  const TileFacts ofRdna = greta::detail::tilesOfRdna(/*copies=*/2);
  tiles.matricesByElement = true;
  tiles.stagesOfLoop = 2;
  LoopRates &loop = tiles.loop = ofRdna.loop;
  loop.ldsBytes = 80;
  loop.cacheBytes = 54;
  loop.others = 0.25;
  loop.iteration = 250;
  loop.latency = 120;
  loop.behind = 0.22;
  loop.contention = 0.8;
  loop.crowded = 0.035;
  loop.ends = 620;
  tiles.attention = ofRdna.attention;
  tiles.attention.keysOfFew = 32;
  return tiles;
}

/// Lanes are few: packed weights are loaded by words.
TileFacts tilesOfCpu() {
  TileFacts tiles = tilesOfDriver();
  tiles.weightsOfLane = 8;
  tiles.skinny.mostWaves = 64; // of one lane each
  return tiles;
}

/// Seen on the H200 (docs/experiments/skinny-tiles.md); Mesa's llvmpipe makes
/// NaN of some extrema.
TargetRow withDriverOfNvidia(TargetRow row) {
  row.driver = {/*hasNumberExtrema=*/true, /*mergesUnknown=*/true,
                /*knowsReadonly=*/true};
  return row;
}

/// llvmpipe's time goes with the square of a lane's program: Debian 12's took
/// 55 s for a GEMM of 128x128x128 in f32 with 22,309 instructions, which is
/// five minutes for these.
TargetRow withFewerInstructions(TargetRow row) {
  row.most.instructions = 49152;
  row.most.iterations = 65535;
  return row;
}

TargetRow family(StringRef name, ArrayRef<StringRef> aliases,
                 unsigned subgroupSize, unsigned maxWorkgroupSize,
                 unsigned sharedBytes, unsigned sharedBytesPerUnit,
                 RegisterFile registers, Unit unit,
                 ArrayRef<MatrixInstruction> matrix, StringRef source,
                 TileFacts tiles) {
  bool subgroups = subgroupSize > 1;
  size_t unused =
      any_of(matrix, [](const auto &inst) { return inst.a == "bf16"; }) ? 0 : 2;
  return {name,
          Backend::Vulkan,
          aliases,
          subgroupSize,
          maxWorkgroupSize,
          sharedBytes,
          sharedBytesPerUnit,
          registers,
          /*agprs=*/{},
          /*unifiedVgprs=*/false,
          /*sgprs=*/{},
          unit.computeUnits,
          unit.simdsPerUnit,
          unit.maxWavesPerSimd,
          /*xcds=*/1,
          unit.clockMHz,
          unit.bandwidthGBs,
          /*directToLdsBytes=*/{},
          Fp8Kind::None,
          matrix,
          subgroups ? ArrayRef(subgroupFeatures).drop_back(unused)
                    : ArrayRef(portableFeatures),
          subgroups ? ArrayRef(subgroupCapabilities).drop_back(unused)
                    : ArrayRef(portableCapabilities),
          source,
          tiles,
          /*waveCycles=*/1};
}
} // namespace

static const TargetRow families[] = {
    // About 1 KB more of shared memory than declared is counted per workgroup.
    withDriverOfNvidia(family("vulkan:nvidia", namesNvidia, 32, 1024, 49152,
                              57344, {255, 512, 8}, {132, 4, 16, 1980, 4800},
                              matrixNvidia, "measured, H200", tilesOfNvidia())),
    family("vulkan:rdna3", {}, 32, 1024, 65536, 65536, {256, 1536, 24},
           {96, 2, 16, 2500, 960}, matrixRdna3,
           "RADV navi31; executed; the row gfx1100", tilesOfRadv()),
    family("vulkan:rdna4", {}, 32, 1024, 65536, 65536, {256, 1536, 24},
           {64, 2, 16, 2970, 640}, matrixRdna4,
           "RADV gfx1201; executed; the row gfx1201", tilesOfRadv()),
    // A lane has the 128 registers that each of a unit's eight threads has.
    family("vulkan:intel", namesIntel, 16, 1024, 49152, 131072,
           {128, 1024, 128}, {20, 8, 8, 2670, 456}, matrixXe2,
           "Arc B580: Intel's product page; ANV", tilesOfDriver()),
    family("vulkan:intel-xehpg", namesXeHpg, 8, 1024, 65536, 131072,
           {128, 1024, 128}, {32, 16, 8, 2100, 560}, matrixXeHpg,
           "Arc A770: Intel's product page; ANV", tilesOfDriver()),
    family("vulkan:wave64", namesWave64, 64, 1024, 32768, 65536, {256, 512, 8},
           {64, 4, 8, 1500, 500}, {},
           "GCN and CDNA through Vulkan: RADV, the row gfx90a",
           tilesOfDriver()),
    // No GPU: one compute unit stands for a CPU core.
    withFewerInstructions(family("vulkan:lavapipe", namesLavapipe, 8, 1024,
                                 32768, 32768, {}, {4, 1, 16, 3000, 50},
                                 matrixLavapipe, "measured, lavapipe 26.1",
                                 tilesOfCpu())),
    // The limits that the specification guarantees; its 128 invocations bind
    // us.
    family("vulkan:portable", {}, 1, 128, 16384, 16384, {},
           {16, 1, 16, 1000, 100}, {}, "spec", tilesOfCpu())};

ArrayRef<TargetRow> greta::detail::vulkanRows() { return families; }
