//===- Target.h - what the compiler knows about each chip -------*- C++ -*-===//
//
// The target table: one row of plain data per AMD chip, per family of Vulkan
// devices, and one for the host. Passes ask rows, never chip names. Each row
// cites where its numbers come from. No MLIR here.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TARGET_TARGET_H
#define GRETA_TARGET_TARGET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>

namespace greta {

/// The runtime backend that loads the code; also the manifest's `backend`.
enum class Backend { Hip, Vulkan, Host };

/// The manifest's name of a backend: "hip", "vulkan" or "host".
llvm::StringRef getBackendName(Backend backend);

/// How a chip encodes 8-bit floats in its matrix instructions.
enum class Fp8Kind { None, Fnuz, Ocp };

/// The (row, column) that one bit of a register or lane number adds.
struct FragmentBasis {
  uint8_t row, column;
};

/// The places of a matrix operand's elements: the XOR of the bases of the set
/// bits of the register and the lane (docs/internals/stages/4-layouts.md,
/// "The attribute"). A zero basis replicates. Rows and columns of A are (m, k),
/// of B (k, n), of the accumulator (m, n). Empty: the device does not say, and
/// nobody probed it.
struct FragmentLayout {
  llvm::ArrayRef<FragmentBasis> reg;
  llvm::ArrayRef<FragmentBasis> lane;
  bool isKnown() const { return !lane.empty(); }
};

/// D = A * B + C on `blocks` independent tiles.
struct MatrixInstruction {
  /// The intrinsic after "llvm.amdgcn.", or "coopmat" for a
  /// VK_KHR_cooperative_matrix shape (subgroup scope, result type = acc).
  llvm::StringRef name;
  unsigned m, n, k, blocks;
  llvm::StringRef a, b, acc; // dtypes as in the manifest
  unsigned cycles;           // between issues on one SIMD; 0: not known
  FragmentLayout aLayout, bLayout, accLayout;
  /// The device's instruction makes the transposed product: A and B change
  /// places. For operands that come in registers.
  bool isSwapped = false;
};

/// A load behind which the lanes of a group hand each other what they have
/// loaded: `registers` neighbours each, of which the receiver has one from each
/// of as many lanes.
struct TransposedLoad {
  /// A bit of the receiver's number in its group, or of its register.
  struct Bit {
    bool isRegister;
    uint8_t number;
  };
  bool isShared; // from shared memory; else from global memory
  unsigned elementBytes, registers;
  /// For each bit of the number of the lane that loads an element, the lowest
  /// first, the receiver's bit that it is. Which neighbour it is are the lowest
  /// bits of the receiver's number.
  llvm::ArrayRef<Bit> lanes;
};

/// Registers of one kind, per lane, in units of 32 bits (SGPRs: per wave).
struct RegisterFile {
  unsigned perWave = 0; // the most that one wave can name
  unsigned perSimd = 0; // what the waves of a SIMD share; 0: not a limit
  unsigned granule = 1; // allocation unit
};

/// A loop over K tiles, as the tile model sees it (lib/Configure/TileTime.cpp):
/// what a compute unit does in a cycle, and what its units do not hide of each
/// other. All times are cycles. The unit is all that a workgroup's waves spread
/// over (`unitsPerWorkgroup`).
struct LoopRates {
  double issue = 0;        // of a matrix instruction, beside its own cycles
  double ldsBytes = 128;   // a cycle, that shared memory moves
  double cacheBytes = 128; // a cycle, that the second cache brings
  // An iteration of a workgroup that has the unit to itself.
  double busiest = 1;   // part of its busiest unit's time that it takes
  double others = 0;    // part of the others' time
  double iteration = 0; // barriers and first reads
  double iterationDirect =
      0;                    // the same where loads go straight to shared memory
  double hidden = 0;        // of that, by this part of the matrix time
  double narrow = 1;        // times longer where lanes share blocks unequally
  double latency = 0;       // from a load to its store to shared memory
  double latencyFew = 0;    // more, up to 128 rows: nobody loaded B before
  double latencyDirect = 0; // of a load straight to shared memory
  double behind = 0;        // part of the unit's work that loads come behind
  // Several workgroups on a unit.
  double contention = 0; // part of the busiest unit's time that each other adds
  double crowded = 0;    // part of the others' time that a full unit shows
  // Beside the iterations.
  double ends = 0;       // before and behind a workgroup's loop
  double partial = 1.04; // times longer for each side with a partial block
  double meeting = 0;    // of the parts of a split GEMM
  double search = 800;   // of a workgroup that finds no rows of a group
  double partBytes = 64; // a cycle, of parts that are written and read
};

/// A loop whose operands go from memory to the registers of the matrix
/// instructions; times are cycles.
struct StreamRates {
  double line = 0;     // for each cache line of a wave's load; 0: no such loops
  double perWord = 0;  // of scales, or of zeros, for a wave's 8 columns
  double latency = 0;  // of an iteration of one wave
  double loads = 0;    // times longer than its loads alone
  double ends = 0;     // of a workgroup
  double start = 0;    // of the launch
  double sums = 16;    // a cycle, that meet in shared memory
  double rowBytes = 0; // of memory's time, for every 512 of a row
  unsigned mostRows = 64;       // of A
  unsigned bytesOfWave = 128;   // of a row of B, at a time
  unsigned numbersOfWave = 128; // likewise, at most
  unsigned fewRows = 8;    // of A, above which packed weights are half as many
  unsigned registers = 40; // for addresses
};

/// SIMT FMAs of skinny GEMMs.
struct SkinnyRates {
  unsigned columns = 2;   // of a lane, up to four rows
  unsigned mostWaves = 8; // of a workgroup, likewise
  double perWeight = 2.7; // issue slots of a wave, for a row
  double perPacked = 4.1; // the same for weights of 4 bits
};

/// Tiles of attention.
struct AttentionFacts {
  double vgprs = 0.65;        // part of a lane's registers that a tile may take
  double vgprsOfWave = 0.375; // the same where waves have keys of their own
  double vgprsOfBytes = 0;    // the same of keys of i8; 0: the fewest keys
  double vgprsOfFewest = 0.75; // for waves to have the fewest keys as their own
  double vgprsOfGradients = 0.65; // the same of gradients
  double overGradients = 4 / 3.0; // times those, of which the compiler spills
                                  // the rest, before rows go to shared memory
  bool wholeOperands = true;      // a wave's registers have all of a dot's at a
                                  // time, not a piece after the other
  unsigned tilesOfSmall = 1; // an instruction's rows for a wave, times this,
                             // where heads have up to 64 elements
  unsigned wavesOfFew = 1;   // for each SIMD, where queries are few
  unsigned keysOfFew = 64;   // at most, of an iteration of few queries
  bool skipsRescale = true;  // where no row's maximum moves: a branch
};

/// The coefficients of a chip and its compiler for the choice of tiles.
struct TileFacts {
  unsigned stages = 2;         // of shared memory
  unsigned deepest = 256;      // K tile
  unsigned spareVgprs = 16;    // of a lane, for the compiler
  unsigned transposed = 2;     // times that a block is there on its way
  unsigned weightsOfLane = 32; // of 4 bits, that it loads at a time
  unsigned rowsOfGroup = 8;    // GROUP_M; 0: blocks in flight are square
  unsigned slotsPerIssue = 0;  // of a wave's instructions that matrix units
                               // hide, one in so many cycles; 0: none
  // Lanes load the elements of cooperative matrices, as those of AMD's
  // instructions; else drivers load whole matrices.
  bool matricesByElement = false;
  // The model chooses the schedules of block programs' loops, too.
  bool schedulesLoops = false;
  LoopRates loop;
  StreamRates stream;
  SkinnyRates skinny;
  AttentionFacts attention;
};

/// The largest lane's program that is compiled: larger ones take minutes, or
/// all memory.
struct CodeLimits {
  /// 32-bit registers of one block. Attention's heads of 576 elements take as
  /// many where lanes are few, and spill; LLVM takes minutes for softmax of a
  /// row in 1024.
  unsigned registers = 768;
  unsigned instructions = 65536; // those of a loop once
  /// Vulkan: turns of all loops of a lane together, after which its driver ends
  /// them; 0: as many as there are. Nobody waits in such a loop.
  int64_t turns = 0;
};

struct TargetRow {
  llvm::StringRef name; // as given to --target, and the manifest's `target`
  Backend backend;
  llvm::ArrayRef<llvm::StringRef> aliases;
  /// Lanes that shuffle together; 1: no subgroup operation may be used.
  unsigned waveSize;
  unsigned maxWorkgroupSize;
  unsigned ldsBytes;        // of one workgroup
  unsigned ldsBytesPerUnit; // shared by the workgroups of a CU (SM, WGP half)
  RegisterFile vgprs;
  RegisterFile agprs;
  /// VGPRs and AGPRs share one file (gfx90a and its successors).
  bool unifiedVgprs;
  RegisterFile sgprs;
  unsigned computeUnits;
  unsigned simdsPerUnit;
  unsigned maxWavesPerSimd;
  unsigned xcds; // chiplets that workgroups are dealt to in turn; 1: none
  unsigned clockMHz;
  unsigned bandwidthGBs;
  /// Bytes per lane that global memory can load straight into LDS.
  llvm::ArrayRef<unsigned> directToLdsBytes;
  Fp8Kind fp8;
  llvm::ArrayRef<MatrixInstruction> matrix;
  /// Vulkan: members of VkPhysicalDevice*Features that the family has and a
  /// module may need; what it does need goes into the manifest. AMD: what not
  /// every chip has, by names of our own.
  llvm::ArrayRef<llvm::StringRef> features;
  /// Vulkan: SPIR-V capabilities a module may declare.
  llvm::ArrayRef<llvm::StringRef> capabilities;
  llvm::StringRef source;
  TileFacts tiles = {};
  unsigned waveCycles = 1; // of a SIMD, for an instruction of a wave
  /// Compute units whose SIMDs and shared memory a workgroup's waves share.
  unsigned unitsPerWorkgroup = 1;
  /// Vulkan: of NMax and NMin of a number and NaN its drivers make the number.
  bool hasNumberExtrema = false;
  CodeLimits most = {};
  unsigned ldsBanks = 32; // of 4 bytes each
  llvm::ArrayRef<TransposedLoad> transposedLoads = {};
  /// In each direction between two devices, where the vendor's library sums in
  /// a stream of the device's own context; 0: it is not known, or not so.
  unsigned linkGBs = 0;

  bool isHip() const { return backend == Backend::Hip; }
  bool isVulkan() const { return backend == Backend::Vulkan; }
  bool isHost() const { return backend == Backend::Host; }
  /// "nvidia" for the row vulkan:nvidia; the name elsewhere.
  llvm::StringRef family() const {
    return name.split(':').second.empty() ? name : name.split(':').second;
  }
  bool hasFeature(llvm::StringRef feature) const;
  /// Lanes load the instruction's operands as elements of cooperative matrices.
  /// Only 16-bit floats: SPIR-V's bf16 would be converted on the way, and bytes
  /// be taken out of words one by one.
  bool loadsElements(const MatrixInstruction &instruction) const {
    return tiles.matricesByElement && instruction.name == "coopmat" &&
           instruction.a == "f16";
  }
};

/// All rows: AMD chips, Vulkan families (best first, portable last), host.
llvm::ArrayRef<TargetRow> getTargets();

/// The row of that name or alias; upper and lower case are the same. The error
/// lists what exists.
llvm::Expected<const TargetRow *> lookupTarget(llvm::StringRef name);

/// "gfx942,vulkan,host": rows in the order given, each once; `vulkan` stands
/// for all of its families.
llvm::Expected<llvm::SmallVector<const TargetRow *>>
parseTargets(llvm::StringRef list);

/// Waves of one SIMD that fit with this many registers per wave and workgroups
/// of this size and LDS use; at least the CU takes one workgroup. 0 when one
/// workgroup does not fit at all.
unsigned getOccupancy(const TargetRow &row, unsigned vgprs, unsigned agprs,
                      unsigned sgprs, unsigned ldsBytes, unsigned blockSize);

namespace detail {
llvm::ArrayRef<TargetRow> amdgpuRows();
llvm::ArrayRef<TargetRow> vulkanRows();
/// 16x16x16 with RDNA3's layouts, and with RDNA4's.
MatrixInstruction wmmaOfRdna3(llvm::StringRef name, llvm::StringRef in,
                              llvm::StringRef acc, unsigned cycles);
MatrixInstruction wmmaOfRdna4(llvm::StringRef name, llvm::StringRef in,
                              llvm::StringRef acc, unsigned cycles);
/// The RDNA family's, whose lanes hold this many copies of an operand.
TileFacts tilesOfRdna(unsigned copies);
} // namespace detail
} // namespace greta

#endif
