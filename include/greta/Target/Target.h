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

/// A load after which the lanes of a group exchange elements. Each lane loads
/// `registers` neighbours from memory, and receives one element from each of as
/// many lanes.
struct TransposedLoad {
  /// A bit of the receiver's number in its group, or of its register's number.
  struct Bit {
    bool isRegister;
    uint8_t number;
  };
  bool isShared; // from shared memory; else from global memory
  unsigned elementBytes, registers;
  /// An element is loaded by one lane and received by another. This names, for
  /// each bit of the loading lane's number, the lowest first, the equal bit of
  /// the receiver. The lowest bits of the receiver's number in its group say
  /// which of the loading lane's neighbours the element is.
  llvm::ArrayRef<Bit> lanes;
};

/// Registers of one kind, per lane, in units of 32 bits (SGPRs: per wave).
struct RegisterFile {
  unsigned perWave = 0; // the most that one wave can name
  unsigned perSimd = 0; // what the waves of a SIMD share; 0: not a limit
  unsigned granule = 1; // allocation unit
};

/// The rates by which lib/Configure/TileTime.cpp estimates a GEMM's loop over K
/// tiles. Times are cycles. "The unit" is the hardware that a workgroup's waves
/// spread over: `unitsPerWorkgroup` compute units with their matrix units,
/// shared memory and path to the second cache. In an iteration, its busiest
/// part is the one of these three that needs the most cycles.
struct LoopRates {
  /// A matrix instruction takes this many cycles beside its own.
  double issue = 0;
  /// Shared memory moves this many bytes a cycle.
  double ldsBytes = 128;
  /// The second cache delivers this many bytes a cycle.
  double cacheBytes = 128;

  // An iteration of a workgroup that has the unit to itself takes
  //   busiest * (time of the busiest part) + others * (time of the others)
  //   + iteration - hidden * (time of the matrix instructions),
  // and `narrow` times that if lanes share blocks unequally.
  double busiest = 1;
  double others = 0;
  /// Barriers and the first reads of shared memory take this long.
  double iteration = 0;
  /// The same for loops that load straight to shared memory.
  double iterationDirect = 0;
  double hidden = 0;
  double narrow = 1;

  // An iteration takes at least
  //   latency + behind * (time of all parts).
  /// The time from a load to the store of its block to shared memory.
  double latency = 0;
  /// GEMMs of up to 128 rows wait this much longer, because no other workgroup
  /// has brought B to the cache before.
  double latencyFew = 0;
  /// The latency of loads straight to shared memory.
  double latencyDirect = 0;
  double behind = 0;

  // Several workgroups share the unit.
  /// Each further workgroup adds this part of the busiest part's time.
  double contention = 0;
  /// If workgroups fill the unit, this part of the other parts' time shows.
  double crowded = 0;

  // Beside its iterations:
  /// A workgroup takes this long before and behind its loop.
  double ends = 0;
  /// A GEMM takes this many times as long for each dimension, M or N, that its
  /// tile does not divide.
  double partial = 1.04;
  /// Workgroups that split K take this long to meet.
  double meeting = 0;
  /// A workgroup of a grouped GEMM takes this long to find that it has no rows.
  double search = 800;
  /// Partial sums of a split K are written and read at so many bytes a cycle.
  double partBytes = 64;
};

/// The rates of a loop whose operands go from memory straight to the registers
/// of the matrix instructions. Times are cycles.
struct StreamRates {
  /// The first cache takes this long for each line that a wave's load touches.
  /// 0: the target has no such loops.
  double line = 0;
  /// It takes this long for the scales, or the zeros, of a wave's 8 columns.
  double perWord = 0;
  /// An iteration of one wave takes this long, and `loads` times its loads.
  double latency = 0;
  double loads = 0;
  /// A workgroup takes this long before and behind its loop.
  double ends = 0;
  /// A launch takes this long to begin.
  double start = 0;
  /// Waves that share K add so many sums a cycle through shared memory.
  double sums = 16;
  /// An iteration reads pieces of up to 512 bytes of rows of B. Each costs
  /// memory as much as this many bytes more.
  double rowBytes = 0;
  /// The rows of A are at most this many.
  unsigned mostRows = 64;
  /// A wave reads at most so many bytes, and so many weights, of a row of B in
  /// an iteration; half as many weights if they are packed and A has more than
  /// `fewRows` rows.
  unsigned bytesOfWave = 128;
  unsigned numbersOfWave = 128;
  unsigned fewRows = 8;
  /// A lane needs so many registers for addresses.
  unsigned registers = 40;
};

/// Skinny GEMMs by SIMT FMAs.
struct SkinnyRates {
  /// Up to four rows of A, a lane has so many columns, and a workgroup at most
  /// so many waves.
  unsigned columns = 2;
  unsigned mostWaves = 8;
  /// GEMMs of one row that share a launch have so many blocks of B under way in
  /// a lane at most: workgroups are many, and all should have places.
  unsigned unrollBeside = 8;
  /// A weight takes so many issue slots of a wave for each row of A; a weight
  /// of 4 bits takes the second number.
  double perWeight = 2.7;
  double perPacked = 4.1;
};

/// The choice of attention's tiles (lib/Configure/ConfigureAlone.cpp). A part
/// of the registers is a part of those that a lane has.
struct AttentionFacts {
  /// A tile may take this part of the registers.
  double vgprs = 0.65;
  /// The same if each wave has keys of its own.
  double vgprsOfWave = 0.375;
  /// The same if each wave has keys of its own, of 8 bits. 0: a wave has as few
  /// keys as an instruction takes.
  double vgprsOfBytes = 0;
  /// Waves have keys of their own if the fewest keys take at most this part.
  double vgprsOfFewest = 0.75;
  /// The same as `vgprs` for gradients.
  double vgprsOfGradients = 0.65;
  /// Gradients may need this many times the registers that they may take, and
  /// spill the rest, before their own rows go to shared memory.
  double overGradients = 4 / 3.0;
  /// A wave's registers hold a dot's operand as a whole, not piece by piece.
  bool wholeOperands = true;
  /// If heads have up to 64 elements, a wave has this many times the rows of an
  /// instruction.
  unsigned tilesOfSmall = 1;
  /// If queries are few, each SIMD gets so many waves, and an iteration has at
  /// most so many keys.
  unsigned wavesOfFew = 1;
  unsigned keysOfFew = 64;
  /// The loop branches around rescaling if no row's maximum moves.
  bool skipsRescale = true;
};

/// The choice of tiles for a chip and its compiler.
struct TileFacts {
  /// Loops have so many stages of shared memory.
  unsigned stages = 2;
  /// The largest K tile.
  unsigned deepest = 256;
  /// A lane leaves so many registers to the compiler.
  unsigned spareVgprs = 16;
  /// A block that is transposed on its way to shared memory takes registers
  /// this many times.
  unsigned transposed = 2;
  /// A lane loads so many weights of 4 bits at a time.
  unsigned weightsOfLane = 32;
  /// GROUP_M, the rows of tiles that neighbouring workgroups share. 0: as many
  /// as make the tiles in flight a square.
  unsigned rowsOfGroup = 8;
  /// One instruction of a wave is hidden under matrix instructions in so many
  /// cycles. 0: none is.
  unsigned slotsPerIssue = 0;
  /// Lanes load the elements of cooperative matrices, as those of AMD's
  /// instructions; else drivers load whole matrices.
  bool matricesByElement = false;
  /// A block program's loop with dots has so many stages, as far as they fit,
  /// unless another number leaves more waves or hides more of few. A launch's
  /// number is followed if this is more than one.
  int64_t stagesOfLoop = 2;
  /// The most stages of a block program's loop with direct loads.
  int64_t stagesOfDirect = 2;
  /// A GEMM's only stage is filled under the products of the last slice. It
  /// pays where the compiler keeps that order and what is read in front of it
  /// stays in registers.
  bool fillsLate = false;
  LoopRates loop;
  StreamRates stream;
  SkinnyRates skinny;
  AttentionFacts attention;
};

/// The largest program of a lane that is compiled. Larger ones take minutes, or
/// all memory.
struct CodeLimits {
  /// A block takes at most so many 32-bit registers of a lane. Attention with
  /// heads of 576 elements takes as many where lanes are few, and spills; LLVM
  /// takes minutes for a softmax whose rows take 1024.
  unsigned registers = 768;
  /// A program has at most so many instructions; a loop's count once.
  unsigned instructions = 65536;
  /// Vulkan: the driver ends loops when all loops of a lane together have had
  /// so many iterations. 0: it does not. No lane waits for others in such a
  /// loop.
  int64_t iterations = 0;
};

/// Vulkan: what a family's drivers make of SPIR-V.
struct DriverFacts {
  /// They make the number of NMax and NMin of a number and NaN.
  bool hasNumberExtrema = false;
  /// They make one instruction of x & m | c if they do not know c, else two.
  bool mergesUnknown = false;
  /// Loads of memory that is declared to be only read need no order.
  bool knowsReadonly = false;
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
  DriverFacts driver = {};
  CodeLimits most = {};
  unsigned ldsBanks = 32; // of 4 bytes each
  llvm::ArrayRef<TransposedLoad> transposedLoads = {};
  /// In each direction between two devices, where the vendor's library sums in
  /// a stream of the device's own context; 0: it is not known, or not so.
  unsigned linkGBs = 0;

  bool isHip() const { return backend == Backend::Hip; }
  bool isVulkan() const { return backend == Backend::Vulkan; }
  bool isHost() const { return backend == Backend::Host; }
  /// Loads take a mask of their own: AMD's have bounds, beyond which they bring
  /// zeros.
  bool masksLoads() const { return isHip(); }
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
