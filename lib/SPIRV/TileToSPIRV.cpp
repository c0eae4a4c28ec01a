//===- TileToSPIRV.cpp - kernels at the lane level to spirv.module --------===//
//
// The pass greta-tile-to-spirv and the shell of a module (arguments, entry
// point, execution modes, capabilities). TileToSPIRVKernel.h says how values
// are represented.
//
//===----------------------------------------------------------------------===//

#include "greta/SPIRV/TileToSPIRV.h"
#include "TileToSPIRVKernel.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using greta::tospirv::KernelEmitter;
using greta::tospirv::PartList;
using greta::tospirv::Parts;

namespace greta {
#define GEN_PASS_DEF_GRETATILETOSPIRV
#include "greta/Passes.h.inc"
} // namespace greta

KernelEmitter::KernelEmitter(tile::FuncOp kernel, const DriverFacts &driver)
    : kernel(kernel), driver(driver), b(kernel.getLoc(), kernel.getContext()) {}

//===----------------------------------------------------------------------===//
// Values and constants
//===----------------------------------------------------------------------===//

void KernelEmitter::set(Value value, Parts parts) {
  values[value] = parts.copy(allocator);
}

Parts KernelEmitter::get(Value value) {
  auto known = values.find(value);
  if (known != values.end())
    return known->second;
  // The elements are made where the words were, so every later user finds them.
  const Words &packed = words.at(value);
  OpBuilder::InsertionGuard guard(b);
  if (packed.last)
    b.setInsertionPointAfter(packed.last);
  else
    b.setInsertionPointToStart(packed.block);
  set(value, unpack(getElementTypeOrSelf(value.getType()), packed.parts));
  return values.at(value);
}

bool KernelEmitter::isPacked(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || vector.getRank() != 1)
    return false;
  unsigned bits = vector.getElementType().getIntOrFloatBitWidth();
  return (bits == 8 || bits == 16) && vector.getNumElements() * bits % 32 == 0;
}

void KernelEmitter::setWords(Value value, Parts parts) {
  Block *block = b.getInsertionBlock();
  assert(b.getInsertionPoint() == block->end() && "words are made in order");
  words[value] = {parts.copy(allocator), block,
                  block->empty() ? nullptr : &block->back()};
}

PartList KernelEmitter::getWords(Value value) {
  auto known = words.find(value);
  if (known == words.end())
    return pack(getElementTypeOrSelf(value.getType()), get(value));
  PartList list(known->second.parts);
  for (Value &word : list)
    word = bitcast(b.getI32Type(), word); // of a pair
  return list;
}

Value KernelEmitter::getPair(Value value) {
  auto known = words.find(value);
  if (known != words.end())
    return bitcast(pairType(), known->second.parts.front());
  if (DenseElementsAttr numbers; matchPattern(value, m_Constant(&numbers)))
    return constant(numbers);
  return spirv::CompositeConstructOp::create(b, pairType(),
                                             ValueRange(get(value)));
}

PartList KernelEmitter::getCarried(Value value) {
  return isPacked(value.getType()) ? getWords(value) : PartList(get(value));
}

SmallVector<Type> KernelEmitter::carriedTypes(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (!isPacked(type))
    return SmallVector<Type>(countOf(type), registerType(element));
  return SmallVector<Type>(countOf(type) * element.getIntOrFloatBitWidth() / 32,
                           b.getI32Type());
}

int64_t KernelEmitter::countOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}

Type KernelEmitter::registerType(Type scalar) {
  if (auto fragment = dyn_cast<tile::FragmentType>(scalar))
    return matrixType(fragment);
  if (scalar.isF32() || scalar.isInteger(1) || scalar.isInteger(32) ||
      scalar.isInteger(64))
    return scalar;
  if (scalar.isBF16())
    return b.getF32Type();
  if (isa<tile::PtrType>(scalar))
    return b.getI64Type();
  if (scalar.isF16()) {
    require(spirv::Capability::Float16);
    return scalar;
  }
  if (scalar.isF64()) {
    require(spirv::Capability::Float64);
    return scalar;
  }
  if (scalar.isInteger(8) || scalar.isInteger(16)) {
    require(scalar.isInteger(8) ? spirv::Capability::Int8
                                : spirv::Capability::Int16);
    return scalar;
  }
  return Type();
}

Value KernelEmitter::inPrologue(llvm::function_ref<Value()> build) {
  OpBuilder::InsertionGuard guard(b);
  if (lastOfPrologue)
    b.setInsertionPointAfter(lastOfPrologue);
  else
    b.setInsertionPointToStart(&function.getBody().front());
  Value value = build();
  lastOfPrologue = &*std::prev(b.getInsertionPoint());
  return value;
}

Value KernelEmitter::constant(TypedAttr attr) {
  Value &value = constants[attr];
  if (!value)
    value = inPrologue(
        [&] { return make<spirv::ConstantOp>(attr.getType(), attr); });
  return value;
}

Value KernelEmitter::constInt(Type type, int64_t value) {
  if (type.isInteger(1))
    return constant(b.getBoolAttr(value != 0));
  return constant(cast<TypedAttr>(IntegerAttr::get(
      type, APInt(type.getIntOrFloatBitWidth(), value, /*isSigned=*/true,
                  /*implicitTrunc=*/true))));
}

spirv::GlobalVariableOp
KernelEmitter::addVariable(StringRef name, Type pointee,
                           spirv::StorageClass storage) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(function);
  auto type = spirv::PointerType::get(pointee, storage);
  auto variable = spirv::GlobalVariableOp::create(b, TypeAttr::get(type),
                                                  b.getStringAttr(name));
  interface.push_back(SymbolRefAttr::get(variable));
  return variable;
}

Value KernelEmitter::builtin(spirv::BuiltIn which, Type type) {
  Value &value = builtins[static_cast<unsigned>(which)];
  if (value)
    return value;
  StringRef name = spirv::stringifyBuiltIn(which);
  spirv::GlobalVariableOp variable =
      addVariable(name, type, spirv::StorageClass::Input);
  variable.setBuiltInAttr(b.getStringAttr(name));
  value = inPrologue([&] {
    Value pointer = spirv::AddressOfOp::create(b, variable);
    return make<spirv::LoadOp>(type, pointer, spirv::MemoryAccessAttr(),
                               IntegerAttr());
  });
  return value;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult KernelEmitter::unknown(Operation *op) {
  return op->emitOpError("is not known to greta-tile-to-spirv");
}

LogicalResult KernelEmitter::emitOp(Operation *op) {
  b.setLoc(op->getLoc());
  for (Type type : op->getResultTypes()) {
    if (isa<tile::SharedType>(type))
      continue;
    auto vector = dyn_cast<VectorType>(type);
    bool list = vector && vector.getRank() == 1 && !vector.isScalable();
    if (!registerType(list ? vector.getElementType() : type))
      return op->emitOpError("has a value of type ")
             << type
             << ", which greta-tile-to-spirv has no registers for; it takes "
                "f16, bf16, f32, f64, i1, i8, i16, i32, i64 and vectors of "
                "them "
                "with one dimension, and fragments of f32, f16, bf16, i8 and "
                "i32";
    if (isa<tile::FragmentType>(type) &&
        !isa_and_nonnull<tile::GretaTileDialect, scf::SCFDialect>(
            op->getDialect()))
      return unknown(op);
  }
  LogicalResult result =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case<scf::ForOp>([&](auto loop) { return emitFor(loop); })
          .Case<scf::WhileOp>([&](auto loop) { return emitWhile(loop); })
          .Case<scf::IfOp>([&](auto branch) { return emitIf(branch); })
          .Default([&](Operation *) {
            Dialect *dialect = op->getDialect();
            if (isa_and_nonnull<tile::GretaTileDialect>(dialect))
              return emitLaneOp(op);
            if (isa_and_nonnull<arith::ArithDialect>(dialect))
              return emitArithOp(op);
            if (isa_and_nonnull<math::MathDialect>(dialect))
              return emitMathOp(op);
            if (isa_and_nonnull<vector::VectorDialect>(dialect))
              return emitVectorOp(op);
            return unknown(op);
          });
  if (succeeded(result))
    noteRange(op);
  return result;
}

LogicalResult KernelEmitter::emitBlock(Block &block) {
  AddressScope scope(addresses);
  for (Operation &op : block)
    if (!isa<scf::YieldOp, scf::ConditionOp>(op) && failed(emitOp(&op)))
      return failure();
  return success();
}

static bool isElementInMemory(Type type) {
  return type.isF32() || type.isF16() || type.isBF16() || type.isF64() ||
         type.isInteger(1) || type.isInteger(8) || type.isInteger(16) ||
         type.isInteger(32) || type.isInteger(64);
}

/// Emits one push-constant block that has every argument at its natural
/// alignment (docs/internals/package.md). If a device has fewer push constants,
/// the runtime makes the kernel read the block from memory.
LogicalResult KernelEmitter::emitArguments() {
  constexpr unsigned mostBytes = 4096;
  Block::BlockArgListType arguments = kernel.getBody().getArguments();
  if (arguments.empty())
    return success();
  SmallVector<Type> types;
  SmallVector<uint32_t> offsets;
  uint32_t size = 0;
  for (Value argument : arguments) {
    auto pointer = dyn_cast<tile::PtrType>(argument.getType());
    if (pointer && !isElementInMemory(pointer.getElementType()))
      return kernel.emitOpError("has an argument of type ")
             << pointer
             << "; greta-tile-to-spirv moves f16, bf16, f32, f64, i8, "
             << "i16, i32 and i64";
    types.push_back(pointer ? Type(b.getI64Type()) : argument.getType());
    if (!types.back().isInteger(32) && !types.back().isInteger(64) &&
        !types.back().isF32())
      return kernel.emitOpError("has an argument of type ")
             << argument.getType()
             << "; greta-tile-to-spirv takes pointers, i32, i64 and f32: "
                "greta-tile-explicit-arguments makes them of others";
    unsigned bytes = types.back().getIntOrFloatBitWidth() / 8;
    offsets.push_back(llvm::alignTo(size, bytes));
    size = offsets.back() + bytes;
  }
  if (size > mostBytes)
    return kernel.emitOpError("has ")
           << size << " bytes of arguments; a package's kernel has at most "
           << mostBytes;
  auto block =
      spirv::StructType::get(types, offsets, {},
                             {spirv::StructType::StructDecorationInfo(
                                 spirv::Decoration::Block, b.getUnitAttr())});
  spirv::GlobalVariableOp variable =
      addVariable("args", block, spirv::StorageClass::PushConstant);
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    if (types[i].isInteger(32) && kernel.getArgAttr(i, tile::nonNegativeName))
      setMaximum(argument, APInt::getSignedMaxValue(32));
    if (argument.use_empty())
      continue;
    Value index = constI32(i);
    Value value = inPrologue([&, i = i] {
      Value base = spirv::AddressOfOp::create(b, variable);
      Value member = make<spirv::AccessChainOp>(
          spirv::PointerType::get(types[i], spirv::StorageClass::PushConstant),
          base, ValueRange(index));
      return make<spirv::LoadOp>(types[i], member, spirv::MemoryAccessAttr(),
                                 IntegerAttr());
    });
    set(argument, value);
  }
  return success();
}

void KernelEmitter::finishModule() {
  b.setInsertionPointToEnd(module->getBody());
  b.setLoc(kernel.getLoc());
  spirv::EntryPointOp::create(b, spirv::ExecutionModel::GLCompute, function,
                              interface);
  spirv::ExecutionModeOp::create(
      b, function, spirv::ExecutionMode::LocalSize,
      {static_cast<int32_t>(kernel.getBlockSize()), 1, 1});
  if (capabilities.contains(spirv::Capability::RoundingModeRTE))
    spirv::ExecutionModeOp::create(b, function,
                                   spirv::ExecutionMode::RoundingModeRTE, {16});
  SmallVector<spirv::Extension> extensions;
  if (hasFragments)
    extensions.push_back(spirv::Extension::SPV_KHR_cooperative_matrix);
  if (capabilities.contains(spirv::Capability::BFloat16TypeKHR))
    extensions.push_back(spirv::Extension::SPV_KHR_bfloat16);
  if (capabilities.contains(spirv::Capability::AtomicFloat32AddEXT))
    extensions.push_back(spirv::Extension::SPV_EXT_shader_atomic_float_add);
  // Sorted, so that the text does not depend on the order of the ops.
  SmallVector<spirv::Capability> sorted = capabilities.takeVector();
  llvm::sort(sorted);
  module->setVceTripleAttr(spirv::VerCapExtAttr::get(
      spirv::Version::V_1_5, sorted, extensions, b.getContext()));
}

OwningOpRef<spirv::ModuleOp> KernelEmitter::emit() {
  if (!kernel.getBody().hasOneBlock()) {
    kernel.emitOpError("has several blocks; greta-tile-to-spirv takes "
                       "structured control flow (scf)");
    return nullptr;
  }
  require(spirv::Capability::Shader);
  require(spirv::Capability::Int64);
  require(spirv::Capability::PhysicalStorageBufferAddresses);
  kernel.walk([&](Operation *op) {
    auto barrier = dyn_cast<tile::BarrierOp>(op);
    hasFences |= isa<tile::FenceOp>(op) || (barrier && barrier.getGlobal());
    hasFragments |=
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<tile::FragmentType>);
  });
  // On the H200 prompts lose 2 % if such kernels have one of these or both.
  if (tile::sharesInLoops(kernel))
    driver.mergesUnknown = driver.knowsReadonly = false;
  if (hasFragments)
    require(spirv::Capability::CooperativeMatrixKHR);
  if (inVulkanModel())
    require(spirv::Capability::VulkanMemoryModel);
  module = spirv::ModuleOp::create(
      b, spirv::AddressingModel::PhysicalStorageBuffer64,
      inVulkanModel() ? spirv::MemoryModel::Vulkan
                      : spirv::MemoryModel::GLSL450,
      std::nullopt, kernel.getName());
  b.setInsertionPointToStart(module->getBody());
  function =
      spirv::FuncOp::create(b, kernel.getName(), b.getFunctionType({}, {}));
  b.setInsertionPointToStart(function.addEntryBlock());
  if (failed(emitArguments()) || failed(emitBlock(kernel.getBody().front())))
    return nullptr;
  IRRewriter rewriter(b.getContext());
  (void)runRegionDCE(rewriter, function.getBody());
  finishModule();
  return std::move(module);
}

FailureOr<OwningOpRef<spirv::ModuleOp>>
greta::convertTileToSPIRV(tile::FuncOp kernel, const DriverFacts &driver) {
  if (failed(kernel.checkTarget()))
    return failure();
  OwningOpRef<spirv::ModuleOp> module = KernelEmitter(kernel, driver).emit();
  if (!module)
    return failure();
  return module;
}

namespace {
struct GretaTileToSPIRV
    : public greta::impl::GretaTileToSPIRVBase<GretaTileToSPIRV> {
  using GretaTileToSPIRVBase::GretaTileToSPIRVBase;
  void runOnOperation() override {
    if (failed(greta::tile::checkNoLaunch(getOperation())))
      return signalPassFailure();
    for (auto kernel : llvm::make_early_inc_range(
             getOperation().getOps<greta::tile::FuncOp>())) {
      FailureOr<OwningOpRef<spirv::ModuleOp>> module =
          greta::convertTileToSPIRV(kernel);
      if (failed(module))
        return signalPassFailure();
      OpBuilder(kernel).insert(module->release());
      kernel.erase();
    }
  }
};
} // namespace
