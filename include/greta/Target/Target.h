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

/// Which runtime backend loads the code; also the manifest's `backend`.
enum class Backend { Hip, Vulkan, Host };

/// The manifest's name of a backend: "hip", "vulkan" or "host".
llvm::StringRef getBackendName(Backend backend);

/// How a chip encodes 8-bit floats in its matrix instructions.
enum class Fp8Kind { None, Fnuz, Ocp };

/// The (row, column) that one bit of a register or lane number adds.
struct FragmentBasis {
  uint8_t row, column;
};

/// Where the elements of a matrix operand are: the XOR of the bases of the set
/// bits of the register and the lane (docs/architecture.md, "Layouts"). A zero
/// basis replicates. Rows and columns of A are (m, k), of B (k, n), of the
/// accumulator (m, n). Empty: the device does not say, and nobody probed it.
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
};

/// Registers of one kind, per lane, in units of 32 bits (SGPRs: per wave).
struct RegisterFile {
  unsigned perWave = 0; // the most that one wave can name
  unsigned perSimd = 0; // what the waves of a SIMD share; 0: not a limit
  unsigned granule = 1; // allocation unit
};

/// What bounds a compute unit's loop over K tiles, for the tile model
/// (lib/Configure/TileModel.cpp).
struct LoopLimits {
  unsigned latency = 0;   // cycles from a load to its store to LDS; 0: unknown
  unsigned directLatency; // of a load straight to LDS
  unsigned ldsBytes, cacheBytes; // a cycle, of LDS and from the second cache
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
  LoopLimits loop = {};
  unsigned waveCycles = 1; // of a SIMD, for an instruction of a wave

  bool isHip() const { return backend == Backend::Hip; }
  bool isVulkan() const { return backend == Backend::Vulkan; }
  bool isHost() const { return backend == Backend::Host; }
  /// "nvidia" for the row vulkan:nvidia; the name elsewhere.
  llvm::StringRef family() const {
    return name.split(':').second.empty() ? name : name.split(':').second;
  }
  bool hasFeature(llvm::StringRef feature) const;
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
} // namespace detail
} // namespace greta

#endif
