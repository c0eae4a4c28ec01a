//===- TileToSPIRVKernel.h - emitting one kernel as SPIR-V ------*- C++ -*-===//
//
// The state of the translation of one kernel, and functions that its parts
// share. Each file TileToSPIRV*.cpp implements one group of ops.
//
// The translation is one walk, not a dialect conversion. Every element of a
// vector becomes one SPIR-V scalar, since drivers' compilers work on scalars
// and pack 16-bit ones again themselves. So vectors of any length need no types
// of their own, and thousands of unrolled ops cost a few milliseconds. In
// registers source types become these:
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
#include "greta/Names.h"
#include "greta/Target/Target.h"
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
using Parts = ArrayRef<Value>;
using PartList = SmallVector<Value>;

class KernelEmitter {
public:
  KernelEmitter(tile::FuncOp kernel, const DriverFacts &driver);

  /// Translates the kernel; null after a diagnostic.
  mlir::OwningOpRef<mlir::spirv::ModuleOp> emit();

  //===--- Control flow and the module's shell (TileToSPIRV.cpp) ---------===//
  LogicalResult emitArguments();
  LogicalResult emitBlock(Block &block);
  LogicalResult emitOp(Operation *op);
  LogicalResult emitFor(scf::ForOp op);
  LogicalResult emitWhile(scf::WhileOp op);
  LogicalResult emitIf(scf::IfOp op);
  /// Emits both branches, and returns the results, of `types`, of the branch
  /// that is taken. Without `onFalse` there are no results.
  using Arm = function_ref<FailureOr<PartList>()>;
  FailureOr<PartList> emitSelection(mlir::TypeRange types, Value condition,
                                    Arm onTrue, Arm onFalse);
  void finishModule();

  //===--- Groups of ops; `unknown` for ops that are not of the group ----===//
  LogicalResult emitLaneOp(Operation *op);     // TileToSPIRVMemory
  LogicalResult emitVectorOp(Operation *op);   // TileToSPIRVVector
  LogicalResult emitArithOp(Operation *op);    // TileToSPIRVArith
  LogicalResult emitMathOp(Operation *op);     // TileToSPIRVMath
  LogicalResult emitFragmentOp(Operation *op); // TileToSPIRVFragment
  LogicalResult unknown(Operation *op);

  //===--- Values ---------------------------------------------------------===//
  /// Returns the elements of a value.
  Parts get(Value value);
  Value getScalar(Value value) { return get(value).front(); }
  void set(Value value, Parts parts);
  /// Whether values of a type are packed.
  static bool isPacked(Type type);
  /// Returns the words of a packed value.
  PartList getWords(Value value);
  /// Whether a type is a pair, two f16 whose word is a vector of SPIR-V.
  /// Addition, subtraction, multiplication and fma of pairs are one
  /// instruction.
  static bool isPair(Type type) {
    auto vector = mlir::dyn_cast<VectorType>(type);
    return vector && vector.getElementType().isF16() && countOf(vector) == 2;
  }
  Type pairType() { return VectorType::get(2, registerType(b.getF16Type())); }
  Value getPair(Value value);
  /// Sets the elements of a vector; two f16 are also set as a pair.
  void setElements(Value value, Parts parts);
  bool hasWords(Value value) const { return words.contains(value); }
  void setWords(Value value, Parts parts);
  /// Returns the values that control flow passes on: the words of a packed
  /// value, the elements of another.
  PartList getCarried(Value value);
  SmallVector<Type> carriedTypes(Type type);
  /// The number of elements of a source type; 1 for a scalar.
  static int64_t countOf(Type type);
  /// Returns the type of a source scalar or fragment in registers; null: it has
  /// none. Requires the capabilities that the type needs.
  Type registerType(Type scalar);

  //===--- Building
  //--------------------------------------------------------===//
  template <typename OpT, typename... Args>
  Value make(Type type, Args &&...args) {
    return OpT::create(b, type, std::forward<Args>(args)...);
  }
  /// A unary or binary op whose result has the type of its operands.
  template <typename OpT, typename... Args>
  Value same(Value first, Args &&...rest) {
    return make<OpT>(first.getType(), first, std::forward<Args>(rest)...);
  }
  template <typename OpT> Value compare(Value x, Value y) {
    return make<OpT>(b.getI1Type(), x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return make<mlir::spirv::SelectOp>(x.getType(), condition, x, y);
  }
  Value bitcast(Type type, Value value) {
    return value.getType() == type ? value
                                   : make<mlir::spirv::BitcastOp>(type, value);
  }
  Value constant(mlir::TypedAttr value);
  Value constInt(Type type, int64_t value);
  Value constI32(int64_t value) { return constInt(b.getI32Type(), value); }
  Value constF32(float value) { return constant(b.getF32FloatAttr(value)); }
  void require(mlir::spirv::Capability capability) {
    capabilities.insert(capability);
  }
  /// Adds a variable to the module, and to the entry point's interface.
  mlir::spirv::GlobalVariableOp addVariable(StringRef name, Type pointee,
                                            mlir::spirv::StorageClass storage);
  /// Returns the value of an input variable, which the kernel loads first.
  Value builtin(mlir::spirv::BuiltIn which, Type type);
  /// Runs `build` with the builder at the end of the kernel's prologue, which
  /// dominates everything.
  Value inPrologue(function_ref<Value()> build);

  //===--- Numbers (TileToSPIRVArith.cpp, TileToSPIRVHidden.cpp) ----------===//
  /// Rounds an f32 to the nearest bf16, ties to even, and returns it as f32.
  /// With `approximately` ties go away from zero, and NaN is not handled. The
  /// drivers' own conversions may round towards zero, as NVIDIA's does.
  Value roundToBF16(Value value, bool approximately = false);
  /// Returns the lowest bit of n (n + 1), a 0 that no compiler recognises.
  Value hiddenZero(Value n);
  /// Returns such a 0 of 16 bits, the same for all lanes.
  Value hiddenZero();
  /// Returns a number that no compiler knows, in a register of its own.
  Value hidden(uint32_t number);
  /// Returns the hidden number that an op takes in place of a constant: of
  /// x & m | c that c, if the kernel needs it often; null: none.
  Value hiddenOperand(Operation *op);
  /// These convert between a source type's form in registers and f32, in which
  /// all but the simplest arithmetic is done. f64 stays as it is.
  Value toF32(Value value);
  Value fromF32(Value value, Type scalar);
  Value isNaN(Value value) {
    return make<mlir::spirv::IsNanOp>(b.getI1Type(), value);
  }
  Value emitFloatArith(Operation *op, Parts x);
  Value emitIntArith(Operation *op, Parts x);
  Value emitCast(Operation *op, Value x);
  LogicalResult emitExtendedProduct(Operation *op);
  LogicalResult emitWideDivision(Operation *op);
  /// Applies `build` to each element of the operands and sets the result.
  LogicalResult elementwise(Operation *op, function_ref<Value(Parts)> build);

  /// An op that becomes one instruction whose operands and result have one
  /// type.
  template <typename FromT, typename ToT> struct Row {
    static Value emit(KernelEmitter &e, Operation *op, Parts x) {
      if (!mlir::isa<FromT>(op))
        return {};
      return ToT::create(e.b, mlir::TypeRange(x.front().getType()),
                         ValueRange(x));
    }
  };
  /// Emits an op by its row; null: no row is for it.
  template <typename... RowsT> Value emitByRow(Operation *op, Parts x) {
    Value result;
    (void)((result = RowsT::emit(*this, op, x)) || ...);
    return result;
  }

  //===--- Ranges of integers (TileToSPIRVRange.cpp) ---------------------===//
  mlir::ConstantIntRanges rangeOf(Value integer) const;
  bool isNonNegative(Value value) const;
  /// Notes that a value is not negative, and at most `maximum`.
  void setMaximum(Value value, const llvm::APInt &maximum);
  void noteRange(Operation *op);

  //===--- Memory (TileToSPIRVMemory.cpp) ---------------------------------===//
  LogicalResult emitAccess(Operation *op, Value base, Value offset, Type type,
                           int64_t align, Value stored);
  Value lanePointer(Value base, Value offset, unsigned elementBytes,
                    int64_t &constantBytes);
  /// Makes a pointer to the place so many bytes behind an address.
  Value pointerTo(Type type, Value address, int64_t bytes);
  Value readonlyPointerTo(Type type, Value address, int64_t bytes);
  /// Whether nobody writes an argument's memory while the kernel runs.
  bool isReadonly(Value base);
  void noteWritten();
  LogicalResult emitSharedAlloc(tile::SharedAllocOp op);
  /// Makes a pointer to an element of an array in shared memory.
  Value sharedPointer(Value array, Value index);
  LogicalResult emitShuffle(Operation *op, Value value,
                            function_ref<Value(Value)>);
  /// These convert elements to 32-bit words and back, little endian. `element`
  /// is a source type; there are as many words as the elements' bytes / 4.
  PartList pack(Type element, Parts parts);
  PartList unpack(Type element, Parts words);
  /// These convert an element to its form in memory and back.
  Type memoryType(Type element);
  Value toMemory(Type element, Value value);
  Value fromMemory(Type element, Value value);

  /// The memory operands of loads and stores of shared memory.
  mlir::spirv::MemoryAccessAttr sharedAccess();

  //===--- Pointers and atomics (TileToSPIRVPointers.cpp) -----------------===//
  LogicalResult emitPtrAdd(tile::PtrAddOp op);
  LogicalResult emitAtomicRmw(tile::PtrAtomicRmwOp op);
  LogicalResult emitAtomicCas(tile::PtrAtomicCasOp op);
  LogicalResult emitFence(tile::FenceOp op);
  LogicalResult emitWaveId(tile::WaveIdOp op);
  LogicalResult emitSharedLoad(tile::SharedLoadOp op);
  LogicalResult emitSharedStore(tile::SharedStoreOp op);
  LogicalResult emitBarrier(tile::BarrierOp op);
  FailureOr<mlir::spirv::Scope> scopeOf(Operation *op, tile::MemoryScope scope);
  struct AtomicPlace {
    Value pointer;
    mlir::spirv::Scope scope;
  };
  template <typename OpT> FailureOr<AtomicPlace> atomicPlace(OpT op);

  //===--- Cooperative matrices (TileToSPIRVFragment.cpp) -----------------===//
  Type matrixType(tile::FragmentType fragment);
  LogicalResult emitFragmentAccess(Operation *op, tile::FragmentType fragment,
                                   Value array, Value index, int64_t stride,
                                   bool transposed, Value stored);
  LogicalResult emitFragmentProduct(tile::MmaOp op);

  //===--- State ----------------------------------------------------------===//
  tile::FuncOp kernel;
  DriverFacts driver; // that this kernel makes use of
  ImplicitLocOpBuilder b;
  mlir::OwningOpRef<mlir::spirv::ModuleOp> module;
  mlir::spirv::FuncOp function;
  Operation *lastOfPrologue = nullptr;
  /// A module with fragments or fences has the Vulkan memory model.
  bool hasFragments = false, hasFences = false;
  bool inVulkanModel() const { return hasFragments || hasFences; }
  llvm::SetVector<mlir::spirv::Capability> capabilities;
  SmallVector<Attribute> interface;
  llvm::BumpPtrAllocator allocator;
  DenseMap<Value, Parts> values;
  /// Words, and the place where they are unpacked: behind `last` in `block`, or
  /// at its beginning if that is null.
  struct Words {
    Parts parts;
    Block *block;
    Operation *last;
  };
  DenseMap<Value, Words> words;
  DenseMap<Value, mlir::ConstantIntRanges> ranges;
  DenseMap<Attribute, Value> constants;
  DenseMap<unsigned, Value> builtins;
  Value zero; // hiddenZero's result; null: it was not asked for yet
  // Keys of 64 bits, because a DenseMap has no place for two of 32.
  DenseMap<uint64_t, Value> hiddenNumbers;
  /// The arguments whose memory the kernel may write; unset: nobody asked yet.
  std::optional<llvm::SmallDenseSet<Value>> written;
  /// For constants c how many x & m | c there are.
  DenseMap<uint64_t, unsigned> raised;
  /// The addresses base + zext(offset * size) that the current block and those
  /// around it have computed.
  using AddressKey = std::pair<Value, Value>;
  llvm::ScopedHashTable<AddressKey, Value> addresses;
  using AddressScope = llvm::ScopedHashTableScope<AddressKey, Value>;
};

} // namespace greta::tospirv

#endif
