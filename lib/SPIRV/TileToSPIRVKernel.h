//===- TileToSPIRVKernel.h - emitting one kernel as SPIR-V ------*- C++ -*-===//
//
// The state and the services of the translation of one kernel; the files
// TileToSPIRV*.cpp each implement one group of its ops.
//
// A direct translation in one walk, not a dialect conversion: every scalar
// that the kernel's vectors hold becomes one SPIR-V scalar (drivers' compilers
// work on scalars and pack 16-bit ones again themselves), so that vectors of
// any length need no types of their own and thousands of unrolled ops cost a
// few milliseconds. Source types become these in registers:
//
//   f16 f32 f64 i1 i8 i16 i32 i64   the same
//   bf16                    f32 whose low 16 bits are zero
//   !greta_tile.ptr         i64, a device address
//   !greta_tile.fragment    a cooperative matrix
//
// Vectors of f16, bf16, i8 and i16 that fill 32-bit words are packed: memory,
// loops, conditionals and reinterpretation give and take their words, and the
// elements are unpacked only when an op asks for them. So 16 bytes on their way
// from global to shared memory are four words all the way.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_SPIRV_TILETOSPIRVKERNEL_H
#define GRETA_LIB_SPIRV_TILETOSPIRVKERNEL_H

#include "GretaTile/GretaTile.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "llvm/ADT/ScopedHashTable.h"
#include "llvm/ADT/SetVector.h"

namespace mlir {
namespace scf {
class ForOp;
class IfOp;
class WhileOp;
} // namespace scf
} // namespace mlir

namespace greta::tospirv {

/// The SPIR-V scalars of one source value, one per vector element.
using Parts = llvm::ArrayRef<mlir::Value>;
using PartList = llvm::SmallVector<mlir::Value>;

class KernelEmitter {
public:
  KernelEmitter(tile::FuncOp kernel, bool hasNumberExtrema);

  /// Translates the kernel; null after a diagnostic.
  mlir::OwningOpRef<mlir::spirv::ModuleOp> emit();

  //===--- Control flow and the module's shell (TileToSPIRV.cpp) ---------===//
  mlir::LogicalResult emitArguments();
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitOp(mlir::Operation *op);
  mlir::LogicalResult emitFor(mlir::scf::ForOp op);
  mlir::LogicalResult emitWhile(mlir::scf::WhileOp op);
  mlir::LogicalResult emitIf(mlir::scf::IfOp op);
  /// Emits both branches, and returns what the one that is taken has at its
  /// end, of `types`. There may be no `onFalse`, and no results then.
  using Arm = llvm::function_ref<mlir::FailureOr<PartList>()>;
  mlir::FailureOr<PartList> emitSelection(mlir::TypeRange types,
                                          mlir::Value condition, Arm onTrue,
                                          Arm onFalse);
  void finishModule();

  //===--- Groups of ops; `unknown` for ops that are not of the group ----===//
  mlir::LogicalResult emitLaneOp(mlir::Operation *op);   // TileToSPIRVMemory
  mlir::LogicalResult emitVectorOp(mlir::Operation *op); // TileToSPIRVVector
  mlir::LogicalResult emitArithOp(mlir::Operation *op);  // TileToSPIRVArith
  mlir::LogicalResult emitMathOp(mlir::Operation *op);   // TileToSPIRVMath
  mlir::LogicalResult
  emitFragmentOp(mlir::Operation *op); // TileToSPIRVFragment
  mlir::LogicalResult unknown(mlir::Operation *op);

  //===--- Values ---------------------------------------------------------===//
  /// The elements of a value.
  Parts get(mlir::Value value);
  mlir::Value getScalar(mlir::Value value) { return get(value).front(); }
  void set(mlir::Value value, Parts parts);
  /// Is a value of this type packed?
  static bool isPacked(mlir::Type type);
  /// The words of a packed value.
  PartList getWords(mlir::Value value);
  /// Two f16, whose word is a vector of SPIR-V: addition, subtraction,
  /// multiplication and fma are one instruction for both.
  static bool isPair(mlir::Type type) {
    auto vector = mlir::dyn_cast<mlir::VectorType>(type);
    return vector && vector.getElementType().isF16() && countOf(vector) == 2;
  }
  mlir::Type pairType() {
    return mlir::VectorType::get(2, registerType(b.getF16Type()));
  }
  mlir::Value getPair(mlir::Value value);
  /// Sets the elements of a vector, of two f16 also as a pair.
  void setElements(mlir::Value value, Parts parts);
  bool hasWords(mlir::Value value) const { return words.contains(value); }
  void setWords(mlir::Value value, Parts parts);
  /// The values that control flow passes on: words of a packed value, elements
  /// of others.
  PartList getCarried(mlir::Value value);
  llvm::SmallVector<mlir::Type> carriedTypes(mlir::Type type);
  /// Elements of a source value: 1 for a scalar.
  static int64_t countOf(mlir::Type type);
  /// The register type of a source scalar or fragment, null where there is
  /// none. Requires the capabilities that the type needs.
  mlir::Type registerType(mlir::Type scalar);

  //===--- Building
  //--------------------------------------------------------===//
  template <typename OpT, typename... Args>
  mlir::Value make(mlir::Type type, Args &&...args) {
    return OpT::create(b, type, std::forward<Args>(args)...);
  }
  /// A unary or binary op whose result has the type of its operands.
  template <typename OpT, typename... Args>
  mlir::Value same(mlir::Value first, Args &&...rest) {
    return make<OpT>(first.getType(), first, std::forward<Args>(rest)...);
  }
  template <typename OpT> mlir::Value compare(mlir::Value x, mlir::Value y) {
    return make<OpT>(b.getI1Type(), x, y);
  }
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return make<mlir::spirv::SelectOp>(x.getType(), condition, x, y);
  }
  mlir::Value bitcast(mlir::Type type, mlir::Value value) {
    return value.getType() == type ? value
                                   : make<mlir::spirv::BitcastOp>(type, value);
  }
  mlir::Value constant(mlir::TypedAttr value);
  mlir::Value constInt(mlir::Type type, int64_t value);
  mlir::Value constI32(int64_t value) {
    return constInt(b.getI32Type(), value);
  }
  mlir::Value constF32(float value) {
    return constant(b.getF32FloatAttr(value));
  }
  void require(mlir::spirv::Capability capability) {
    capabilities.insert(capability);
  }
  /// A variable of the module, listed in the entry point's interface.
  mlir::spirv::GlobalVariableOp addVariable(llvm::StringRef name,
                                            mlir::Type pointee,
                                            mlir::spirv::StorageClass storage);
  /// The value of an input variable, loaded at the kernel's start.
  mlir::Value builtin(mlir::spirv::BuiltIn which, mlir::Type type);
  /// Runs `build` with the builder at the end of the kernel's prologue, which
  /// dominates everything.
  mlir::Value inPrologue(llvm::function_ref<mlir::Value()> build);

  //===--- Numbers (TileToSPIRVArith.cpp) ---------------------------------===//
  /// f32 rounded to the nearest bf16, ties to even, as f32; approximately: ties
  /// away from zero, and numbers only. (Drivers' own conversions may round
  /// towards zero: the H200's does, 580.159.)
  mlir::Value roundToBF16(mlir::Value value, bool approximately = false);
  /// 0 in 16 bits, which no compiler sees: n (n + 1) is even.
  mlir::Value hiddenZero();
  /// Between a source type's register form and f32, in which everything but
  /// the simplest arithmetic is done; f64 stays what it is.
  mlir::Value toF32(mlir::Value value);
  mlir::Value fromF32(mlir::Value value, mlir::Type scalar);
  mlir::Value isNaN(mlir::Value value) {
    return make<mlir::spirv::IsNanOp>(b.getI1Type(), value);
  }
  mlir::Value emitFloatArith(mlir::Operation *op, Parts x);
  mlir::Value emitIntArith(mlir::Operation *op, Parts x);
  mlir::Value emitCast(mlir::Operation *op, mlir::Value x);
  mlir::LogicalResult emitExtendedProduct(mlir::Operation *op);
  mlir::LogicalResult emitWideDivision(mlir::Operation *op);
  /// Applies `build` to each element of the operands and sets the result.
  mlir::LogicalResult elementwise(mlir::Operation *op,
                                  llvm::function_ref<mlir::Value(Parts)> build);

  /// An op that is one instruction, elements and results of one type.
  template <typename FromT, typename ToT> struct Row {
    static mlir::Value emit(KernelEmitter &e, mlir::Operation *op, Parts x) {
      if (!mlir::isa<FromT>(op))
        return {};
      return ToT::create(e.b, mlir::TypeRange(x.front().getType()),
                         mlir::ValueRange(x));
    }
  };
  /// By the row of the op; null: there is none.
  template <typename... RowsT>
  mlir::Value emitByRow(mlir::Operation *op, Parts x) {
    mlir::Value result;
    (void)((result = RowsT::emit(*this, op, x)) || ...);
    return result;
  }

  //===--- Ranges of integers (TileToSPIRVRange.cpp) ---------------------===//
  mlir::ConstantIntRanges rangeOf(mlir::Value integer) const;
  bool isNonNegative(mlir::Value value) const;
  /// It is that at most, and not negative.
  void setMaximum(mlir::Value value, const llvm::APInt &maximum);
  void noteRange(mlir::Operation *op);

  //===--- Memory (TileToSPIRVMemory.cpp) ---------------------------------===//
  mlir::LogicalResult emitAccess(mlir::Operation *op, mlir::Value base,
                                 mlir::Value offset, mlir::Type type,
                                 int64_t align, mlir::Value stored);
  mlir::Value lanePointer(mlir::Value base, mlir::Value offset,
                          unsigned elementBytes, int64_t &constantBytes);
  /// Makes a pointer to what lies so many bytes behind an address.
  mlir::Value pointerTo(mlir::Type type, mlir::Value address, int64_t bytes);
  mlir::LogicalResult emitSharedAlloc(tile::SharedAllocOp op);
  /// To an element of an array in shared memory.
  mlir::Value sharedPointer(mlir::Value array, mlir::Value index);
  mlir::LogicalResult emitShuffle(mlir::Operation *op, mlir::Value value,
                                  llvm::function_ref<mlir::Value(mlir::Value)>);
  /// Elements to 32-bit words and back, little endian. `element` is a source
  /// type; the number of words is the elements' bytes / 4.
  PartList pack(mlir::Type element, Parts parts);
  PartList unpack(mlir::Type element, Parts words);
  /// One element narrower than a word to its form in memory and back.
  mlir::Type memoryType(mlir::Type element);
  mlir::Value toMemory(mlir::Type element, mlir::Value value);
  mlir::Value fromMemory(mlir::Type element, mlir::Value value);

  /// The memory operands of loads and stores of shared memory.
  mlir::spirv::MemoryAccessAttr sharedAccess();

  //===--- Pointers and atomics (TileToSPIRVPointers.cpp) -----------------===//
  mlir::LogicalResult emitPtrAdd(tile::PtrAddOp op);
  mlir::LogicalResult emitAtomicRmw(tile::PtrAtomicRmwOp op);
  mlir::LogicalResult emitAtomicCas(tile::PtrAtomicCasOp op);
  mlir::LogicalResult emitFence(tile::FenceOp op);
  mlir::LogicalResult emitWaveId(tile::WaveIdOp op);
  mlir::LogicalResult emitSharedLoad(tile::SharedLoadOp op);
  mlir::LogicalResult emitSharedStore(tile::SharedStoreOp op);
  mlir::LogicalResult emitBarrier(tile::BarrierOp op);
  mlir::FailureOr<mlir::spirv::Scope> scopeOf(mlir::Operation *op,
                                              tile::MemoryScope scope);
  struct AtomicPlace {
    mlir::Value pointer;
    mlir::spirv::Scope scope;
  };
  template <typename OpT> mlir::FailureOr<AtomicPlace> atomicPlace(OpT op);

  //===--- Cooperative matrices (TileToSPIRVFragment.cpp) -----------------===//
  mlir::Type matrixType(tile::FragmentType fragment);
  mlir::LogicalResult emitFragmentAccess(mlir::Operation *op,
                                         tile::FragmentType fragment,
                                         mlir::Value array, mlir::Value index,
                                         int64_t stride, bool transposed,
                                         mlir::Value stored);
  mlir::LogicalResult emitFragmentProduct(tile::MmaOp op);

  //===--- State ----------------------------------------------------------===//
  tile::FuncOp kernel;
  const bool hasNumberExtrema; // of a number and NaN, see TileToSPIRV.h
  mlir::ImplicitLocOpBuilder b;
  mlir::OwningOpRef<mlir::spirv::ModuleOp> module;
  mlir::spirv::FuncOp function;
  mlir::Operation *lastOfPrologue = nullptr;
  /// Either puts the module into the Vulkan memory model.
  bool hasFragments = false, hasFences = false;
  bool inVulkanModel() const { return hasFragments || hasFences; }
  llvm::SetVector<mlir::spirv::Capability> capabilities;
  llvm::SmallVector<mlir::Attribute> interface;
  llvm::BumpPtrAllocator allocator;
  llvm::DenseMap<mlir::Value, Parts> values;
  /// Words, and where to unpack them: in `block`, behind `last` or first.
  struct Words {
    Parts parts;
    mlir::Block *block;
    mlir::Operation *last;
  };
  llvm::DenseMap<mlir::Value, Words> words;
  llvm::DenseMap<mlir::Value, mlir::ConstantIntRanges> ranges;
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;
  llvm::DenseMap<unsigned, mlir::Value> builtins;
  mlir::Value zero; // hiddenZero, once it is wanted
  /// base + zext(offset * size) of the current block and those around it.
  using AddressKey = std::pair<mlir::Value, mlir::Value>;
  llvm::ScopedHashTable<AddressKey, mlir::Value> addresses;
  using AddressScope = llvm::ScopedHashTableScope<AddressKey, mlir::Value>;
};

} // namespace greta::tospirv

#endif
