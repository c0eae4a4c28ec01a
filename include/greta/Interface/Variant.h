//===- Variant.h - what a code generator hands to the package ---*- C++ -*-===//
//
// One function compiled for one device kind, as plain data: the members are the
// manifest's (docs/internals/package.md). Expressions are affine and over
// symbols only: symbol k is the function's k-th.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_INTERFACE_VARIANT_H
#define GRETA_INTERFACE_VARIANT_H

#include "greta/Target/Target.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Types.h"
#include <array>
#include <optional>
#include <string>

namespace greta {

/// A tensor that crosses the function's boundary, a scalar argument, or a
/// temporary.
struct TensorSpec {
  std::string name; // empty for temporaries
  mlir::Type elementType;
  llvm::SmallVector<mlir::AffineExpr> shape;
  bool isScalar = false;
  std::optional<unsigned> tied; // a result: the argument that it begins as
  bool isZeroed = false;  // a temporary: zeros before and after every launch
  int64_t alignment = 16; // in bytes, of where it begins
  std::optional<int64_t> maxBytes;
  bool holdsAddresses = false; // that kernels follow
};

/// A function's symbol: the extent of one dimension of one argument, or without
/// one the value of a scalar argument.
struct SymbolSpec {
  unsigned arg;
  std::optional<unsigned> dim;
};

struct FunctionSpec {
  std::string name;
  llvm::SmallVector<SymbolSpec> symbols;
  llvm::SmallVector<TensorSpec> args, results;
  /// Arguments are memory and not values: they may overlap.
  bool isInPlace = false;
};

/// One value of a kernel's argument block.
struct KernelArg {
  enum Kind { Arg, Result, Temp, Scalar } kind;
  unsigned index = 0;     // of the argument, result or temporary
  mlir::AffineExpr value; // of a scalar that the launch computes
  bool isWide = false;    // it is an i64, else an i32
  std::optional<int64_t> largest = std::nullopt; // that an i32 may be
};

/// The loop with the most matrix instructions.
struct LoopStats {
  unsigned instructions, matrix;
  double matrixShare; // of its time that matrix units are busy, by the model
};

/// The code object's own figures; absent if it has none.
struct KernelStats {
  int64_t vgprs, sgprs, agprs, ldsBytes, scratchBytes, vgprSpills, sgprSpills,
      occupancy;
  /// The limit that keeps more waves out: vgprs, sgprs, lds_bytes, waves.
  std::string occupancyLimit;
  std::optional<LoopStats> loop; // none without matrix instructions
};

/// The log that a kernel's prints and assertions leave in a temporary.
struct KernelLog {
  unsigned temp = 0;
  mlir::ArrayAttr sites; // null: it has none
};

/// A configuration that was compiled, spilled, and gave way to another.
struct PassedOver {
  mlir::DictionaryAttr config;
  int64_t vgprSpills;
};

struct CompiledKernel {
  std::string entry;
  /// The object, or the text that CompileOptions::artifact asked for.
  std::string object;
  std::array<int64_t, 3> block = {1, 1, 1};
  llvm::SmallVector<mlir::AffineExpr, 3> grid; // 1 to 3 axes, the rest are 1
  llvm::SmallVector<KernelArg> args;
  int64_t ldsBytes = 0;
  bool isResident = false; // its workgroups run at a time
  /// The numbers of the arguments that begin at a part's first row, if the
  /// launch is made in parts; empty: it is not.
  llvm::SmallVector<int64_t, 0> byRows;
  /// Integers, strings and booleans by name; null: none.
  mlir::DictionaryAttr config;
  KernelLog log;
  std::optional<KernelStats> stats;
  llvm::SmallVector<PassedOver, 0> passedOver;
};

/// A sum over ranks. It comes behind `after` kernels; its places are tensors.
struct RankSum {
  unsigned after;
  KernelArg from, to;
  /// The sum is made in parts of so many rows; the tensors have `extent` rows.
  /// 0: there is one part.
  int64_t partRows = 0;
  mlir::AffineExpr extent = {};
  /// Whether the kernels next to it are launched in the same parts.
  bool before = false, behind = false;
};

/// One VK_KHR_cooperative_matrix shape, subgroup scope.
struct CoopMatrixShape {
  unsigned m, n, k;
  std::string a, b, c, result; // dtypes
};

/// The element layout of one matrix type that a kernel was compiled for.
struct CoopMatrixLayout {
  std::string use, dtype; // a, b or acc
  unsigned rows, columns;
  FragmentLayout layout;
};

/// The features that a device must have; empty members are left out of the
/// manifest.
struct Requirements {
  std::string arch;          // hip, host
  unsigned subgroupSize = 0; // vulkan; 0: no subgroup operations
  llvm::SmallVector<std::string> features;
  llvm::SmallVector<std::string> subgroupOps;
  int64_t sharedBytes = 0;
  int64_t computeUnits = 0; // at least
  bool communicator = false;
  int64_t resident = 0; // workgroups of a launch that run at a time
  llvm::SmallVector<CoopMatrixShape> coopmat;
  llvm::SmallVector<CoopMatrixLayout> layouts;
};

/// The kernels, sums and temporaries of a launch.
struct CompiledKernels {
  llvm::SmallVector<TensorSpec> temps;
  llvm::SmallVector<CompiledKernel, 1> kernels;
  llvm::SmallVector<RankSum, 0> sums; // in their order
};

/// Its kernels and temporaries if `extent` is from `least` to `most`.
struct CompiledRange : CompiledKernels {
  mlir::AffineExpr extent;
  int64_t least, most;
  Requirements requires_;
};

struct CompiledVariant : CompiledKernels {
  /// Unique in the function: gfx942, vulkan-nvidia-coopmat, host.
  std::string id;
  const TargetRow *row;
  Requirements requires_;
  llvm::SmallVector<CompiledRange, 0> ranges; // in ascending order
};

struct CompiledFunction {
  FunctionSpec spec;
  llvm::SmallVector<CompiledVariant, 1> variants; // best first
};

/// The function's interface from its type, its arguments' greta.name and the
/// attributes of greta-annotate-shapes.
FunctionSpec getFunctionSpec(mlir::func::FuncOp func);

/// The manifest's name of an element type; empty when it has none. Types that
/// no fused op has are included only if `all` are asked for.
llvm::StringRef getDtypeName(mlir::Type type, bool all = true);

} // namespace greta

#endif
