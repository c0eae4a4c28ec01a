//===- TileToSPIRVMemory.cpp - lane ops of greta_tile to SPIR-V -----------===//
//
// Indices, global and shared memory, barriers and shuffles.
//
// A global access of 16 bytes is one load or store of vector<4xi32> (or f32)
// through a physical storage buffer pointer, because storage typed f16 makes
// drivers load element by element; narrower ones take two or one words, and
// what is less than a word its own type. Addresses have the form
//
//   (base + zext64(lane offset * element bytes)) + constant
//
// with a 32-bit product where the offset is known to be small enough: RADV
// makes of it a scalar base, a 32-bit lane offset and an immediate. Offsets
// without a bound are extended before they are multiplied. Behind an argument
// that promises less than 2 GiB it is their sign that extends them, which those
// of accessed elements do not have: lavapipe loads from uniform addresses where
// no lane is active, too, and just before the argument is memory more often
// than 4 Gi elements behind it.
//
//===----------------------------------------------------------------------===//

#include "TileToSPIRVKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using greta::tospirv::KernelEmitter;
using greta::tospirv::PartList;
using greta::tospirv::Parts;

static constexpr int64_t wordBytes = 4;
static constexpr int64_t widestAccess = 16;

static int64_t bytesOf(Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

//===----------------------------------------------------------------------===//
// Elements and words
//===----------------------------------------------------------------------===//

PartList KernelEmitter::pack(Type element, Parts parts) {
  Type i32 = b.getI32Type();
  PartList words;
  if (bytesOf(element) == wordBytes) {
    for (Value part : parts)
      words.push_back(bitcast(i32, part));
  } else if (bytesOf(element) == 2 * wordBytes) {
    for (Value part : parts) {
      Value pair = bitcast(VectorType::get(2, i32), part);
      for (int32_t i : {0, 1})
        words.push_back(spirv::CompositeExtractOp::create(b, pair, {i}));
    }
  } else if (element.isBF16()) {
    for (; !parts.empty(); parts = parts.drop_front(2)) {
      Value low = same<spirv::ShiftRightLogicalOp>(bitcast(i32, parts[0]),
                                                   constI32(16));
      words.push_back(same<spirv::BitwiseOrOp>(bitcast(i32, parts[1]), low));
    }
  } else {
    unsigned perWord = wordBytes / bytesOf(element);
    auto type = VectorType::get(perWord, parts.front().getType());
    for (; !parts.empty(); parts = parts.drop_front(perWord)) {
      Value piece = make<spirv::CompositeConstructOp>(
          type, ValueRange(parts.take_front(perWord)));
      words.push_back(bitcast(i32, piece));
    }
  }
  return words;
}

PartList KernelEmitter::unpack(Type element, Parts words) {
  Type f32 = b.getF32Type();
  PartList parts;
  if (bytesOf(element) == wordBytes) {
    for (Value word : words)
      parts.push_back(bitcast(element, word));
  } else if (bytesOf(element) == 2 * wordBytes) {
    for (; !words.empty(); words = words.drop_front(2)) {
      Value pair = make<spirv::CompositeConstructOp>(
          VectorType::get(2, b.getI32Type()), ValueRange(words.take_front(2)));
      parts.push_back(bitcast(element, pair));
    }
  } else if (element.isBF16()) {
    for (Value word : words) {
      Value low = same<spirv::ShiftLeftLogicalOp>(word, constI32(16));
      Value high = same<spirv::BitwiseAndOp>(word, constI32(0xffff0000));
      parts.push_back(bitcast(f32, low));
      parts.push_back(bitcast(f32, high));
    }
  } else {
    int32_t perWord = wordBytes / bytesOf(element);
    auto type = VectorType::get(perWord, registerType(element));
    for (Value word : words) {
      Value piece = bitcast(type, word);
      for (int32_t i = 0; i < perWord; ++i)
        parts.push_back(spirv::CompositeExtractOp::create(b, piece, {i}));
    }
  }
  return parts;
}

Type KernelEmitter::memoryType(Type element) {
  return element.isBF16() ? b.getI16Type() : element;
}

Value KernelEmitter::toMemory(Type element, Value value) {
  if (!element.isBF16())
    return value;
  Value high = same<spirv::ShiftRightLogicalOp>(bitcast(b.getI32Type(), value),
                                                constI32(16));
  return make<spirv::UConvertOp>(b.getI16Type(), high);
}

Value KernelEmitter::fromMemory(Type element, Value value) {
  if (!element.isBF16())
    return value;
  Value bits = make<spirv::UConvertOp>(b.getI32Type(), value);
  return bitcast(b.getF32Type(),
                 same<spirv::ShiftLeftLogicalOp>(bits, constI32(16)));
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

/// Whether a pointer is an argument that promises to reach less than 2^31
/// bytes.
static bool promisesRange(Value base) {
  while (auto cast = base.getDefiningOp<greta::tile::PtrCastOp>())
    base = cast->getOperand(0);
  BlockArgument argument = greta::tile::argumentOf(base);
  return argument == base && greta::tile::hasPointerRange(argument);
}

Value KernelEmitter::lanePointer(Value base, Value offset,
                                 unsigned elementBytes,
                                 int64_t &constantBytes) {
  // x + constant, where the sum is known not to wrap.
  APInt constant;
  auto sum = offset.getDefiningOp<arith::AddIOp>();
  while (sum && isNonNegative(offset) && isNonNegative(sum.getLhs()) &&
         matchPattern(sum.getRhs(), m_ConstantInt(&constant))) {
    constantBytes += constant.getSExtValue() * elementBytes;
    offset = sum.getLhs();
    sum = offset.getDefiningOp<arith::AddIOp>();
  }
  Value address = getScalar(base);
  bool isSigned = promisesRange(base);
  if (matchPattern(offset, m_ConstantInt(&constant))) {
    constantBytes += (isSigned ? constant.getSExtValue()
                               : int64_t(constant.getZExtValue())) *
                     elementBytes;
    return address;
  }
  AddressKey key(base, offset);
  if (Value known = addresses.lookup(key))
    return known;
  Type i64 = b.getI64Type();
  bool fits = rangeOf(offset).umax().getZExtValue() * elementBytes <=
              (isSigned ? uint64_t(std::numeric_limits<int32_t>::max())
                        : std::numeric_limits<uint32_t>::max());
  Value bytes = getScalar(offset);
  auto scale = [&](Value value) {
    Value shift = constI32(llvm::Log2_32(elementBytes));
    return elementBytes == 1 ? value
                             : same<spirv::ShiftLeftLogicalOp>(value, shift);
  };
  if (fits)
    bytes = make<spirv::UConvertOp>(i64, scale(bytes));
  else
    bytes = scale(isSigned ? make<spirv::SConvertOp>(i64, bytes)
                           : make<spirv::UConvertOp>(i64, bytes));
  address = same<spirv::IAddOp>(address, bytes);
  addresses.insert(key, address);
  return address;
}

Value KernelEmitter::pointerTo(Type type, Value address, int64_t bytes) {
  if (bytes)
    address = same<spirv::IAddOp>(address, constInt(b.getI64Type(), bytes));
  return make<spirv::ConvertUToPtrOp>(
      spirv::PointerType::get(type, spirv::StorageClass::PhysicalStorageBuffer),
      address);
}

/// A pointer to a member that is only read, because pointers themselves cannot
/// say so.
Value KernelEmitter::readonlyPointerTo(Type type, Value address,
                                       int64_t bytes) {
  using spirv::StructType;
  Value first = constI32(0);
  auto block =
      StructType::get({type}, {0u},
                      {StructType::MemberDecorationInfo(
                          0, spirv::Decoration::NonWritable, b.getUnitAttr())},
                      {StructType::StructDecorationInfo(
                          spirv::Decoration::Block, b.getUnitAttr())});
  return make<spirv::AccessChainOp>(
      spirv::PointerType::get(type, spirv::StorageClass::PhysicalStorageBuffer),
      pointerTo(block, address, bytes), ValueRange(first));
}

bool KernelEmitter::isReadonly(Value base) {
  BlockArgument argument = tile::argumentOf(base);
  if (!argument)
    return false;
  unsigned number = argument.getArgNumber();
  if (kernel.getArgAttr(number, tile::readonlyName))
    return true;
  if (!driver.knowsReadonly || !kernel.getArgAttr(number, tile::noaliasName))
    return false;
  if (!written)
    noteWritten();
  return !written->contains(argument);
}

/// A pointer that is neither loaded from nor moved may be written through.
void KernelEmitter::noteWritten() {
  written.emplace();
  kernel.walk([&](Operation *op) {
    if (isa<tile::PtrLoadOp, tile::PtrAddOp, tile::PtrCastOp>(op))
      return;
    for (Value operand : op->getOperands())
      if (isa<tile::PtrType>(operand.getType()))
        written->insert(tile::argumentOf(operand));
  });
}

LogicalResult KernelEmitter::emitAccess(Operation *op, Value base, Value offset,
                                        Type type, int64_t align,
                                        Value stored) {
  Type element = getElementTypeOrSelf(type);
  int64_t bytes = bytesOf(element);
  if (align < bytes)
    return op->emitOpError("moves ")
           << type << " aligned to " << align
           << " bytes; greta-tile-to-spirv needs the alignment of an element";
  // Memory that nobody writes needs no order, and may come from any cache.
  bool isReadonly = this->isReadonly(base);
  int64_t constantBytes = 0;
  Value address = lanePointer(base, offset, bytes, constantBytes);

  // Every access is of whole words then, which stay what they are.
  bool packed = isPacked(type) && align >= wordBytes;
  PartList source;
  if (stored)
    source = packed ? getWords(stored) : PartList(get(stored));
  Parts left = source;
  PartList loaded;
  int64_t total = bytes * countOf(type);
  for (int64_t done = 0; done < total;) {
    int64_t chunk =
        std::min<int64_t>({widestAccess, align,
                           int64_t(llvm::bit_floor(uint64_t(total - done)))});
    bool words = chunk >= wordBytes;
    if (!words)
      chunk = bytes;
    // f32 and i32 travel as they are, everything else as i32 words.
    Type unit = !words               ? memoryType(element)
                : bytes == wordBytes ? element
                                     : b.getI32Type();
    int64_t units = words ? chunk / wordBytes : 1;
    Type accessed = units == 1 ? unit : Type(VectorType::get(units, unit));
    if (bytesOf(unit) == 2)
      require(spirv::Capability::StorageBuffer16BitAccess);
    if (bytesOf(unit) == 1)
      require(spirv::Capability::StorageBuffer8BitAccess);

    int64_t place = constantBytes + done;
    Value pointer = !stored && isReadonly && driver.knowsReadonly
                        ? readonlyPointerTo(accessed, address, place)
                        : pointerTo(accessed, address, place);
    auto access = spirv::MemoryAccess::Aligned;
    if (hasFences && !isReadonly)
      access = access | spirv::MemoryAccess::NonPrivatePointer;
    auto aligned = spirv::MemoryAccessAttr::get(b.getContext(), access);
    IntegerAttr alignment = b.getI32IntegerAttr(chunk);
    if (stored) {
      Parts parts = left.take_front(packed ? units : chunk / bytes);
      left = left.drop_front(parts.size());
      PartList pieces = packed || !words || bytes == wordBytes
                            ? PartList(parts)
                            : pack(element, parts);
      if (!words)
        pieces.front() = toMemory(element, pieces.front());
      Value value =
          units == 1
              ? pieces.front()
              : make<spirv::CompositeConstructOp>(accessed, ValueRange(pieces));
      auto store = spirv::StoreOp::create(b, pointer, value);
      store.setMemoryAccessAttr(aligned);
      store.setAlignmentAttr(alignment);
    } else {
      Value value = make<spirv::LoadOp>(accessed, pointer, aligned, alignment);
      PartList pieces;
      for (int32_t i = 0; i < units; ++i)
        pieces.push_back(
            units == 1 ? value
                       : spirv::CompositeExtractOp::create(b, value, {i}));
      if (!words)
        pieces.front() = fromMemory(element, pieces.front());
      else if (bytes != wordBytes && !packed)
        pieces = unpack(element, pieces);
      llvm::append_range(loaded, pieces);
    }
    done += chunk;
  }
  if (packed && !stored)
    setWords(op->getResult(0), loaded);
  else if (!stored)
    set(op->getResult(0), loaded);
  return success();
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

LogicalResult KernelEmitter::emitSharedAlloc(tile::SharedAllocOp op) {
  auto type = op.getResult().getType();
  Type entry = type.getElementType(), element = getElementTypeOrSelf(entry);
  bool isWords = bytesOf(element) == wordBytes && isa<VectorType>(entry) &&
                 countOf(entry) <= 4;
  if (element.isInteger(1) || element.isBF16() ||
      registerType(element) != element || (isa<VectorType>(entry) && !isWords))
    return op.emitOpError("allocates ")
           << type
           << "; greta-expand makes words or other scalars of the elements";
  // Arrays with one offset are of one element type: the first of them makes a
  // variable that is large enough for all.
  int64_t size = type.getSize();
  if (op.getOffset())
    for (auto other : kernel.getBody().getOps<tile::SharedAllocOp>()) {
      if (other.getOffset() != op.getOffset())
        continue;
      if (other->isBeforeInBlock(op)) {
        set(op, getScalar(other.getResult()));
        return success();
      }
      size = std::max(size, other.getResult().getType().getSize());
    }
  // Drivers place variables one behind the other, each aligned for its element
  // alone, and matrix loads need 16 bytes: every variable is whole 16 bytes.
  constexpr int64_t matrixAlignment = 16;
  int64_t entryBytes = bytesOf(element) * countOf(entry);
  size = llvm::alignTo(size,
                       matrixAlignment / std::gcd(matrixAlignment, entryBytes));
  auto array = spirv::ArrayType::get(entry, size);
  std::string name = "shared" + std::to_string(interface.size());
  spirv::GlobalVariableOp variable =
      addVariable(name, array, spirv::StorageClass::Workgroup);
  set(op, Value(inPrologue([&]() -> Value {
        return spirv::AddressOfOp::create(b, variable);
      })));
  return success();
}

spirv::MemoryAccessAttr KernelEmitter::sharedAccess() {
  if (!inVulkanModel())
    return {};
  return spirv::MemoryAccessAttr::get(b.getContext(),
                                      spirv::MemoryAccess::NonPrivatePointer);
}

Value KernelEmitter::sharedPointer(Value array, Value index) {
  Type entry = cast<tile::SharedType>(array.getType()).getElementType();
  return make<spirv::AccessChainOp>(
      spirv::PointerType::get(entry, spirv::StorageClass::Workgroup),
      getScalar(array), ValueRange(getScalar(index)));
}

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

/// Emits a shuffle. `shuffle` moves one 32-bit value; narrower and wider ones
/// are moved in words, so that no device needs shaderSubgroupExtendedTypes.
LogicalResult
KernelEmitter::emitShuffle(Operation *op, Value value,
                           llvm::function_ref<Value(Value)> shuffle) {
  if (kernel.getNumLanes() == 1)
    return op->emitOpError(
        "stands in a kernel of wave_size 1, which has no subgroup operations; "
        "exchange through shared memory");
  require(spirv::Capability::GroupNonUniformShuffle);
  Type type = value.getType(), i32 = b.getI32Type();
  Value part = getScalar(value);
  if (type.isInteger(1)) {
    Value moved = shuffle(select(part, constI32(1), constI32(0)));
    part = compare<spirv::INotEqualOp>(moved, constI32(0));
  } else if (type.isF16()) {
    Value moved = shuffle(make<spirv::FConvertOp>(b.getF32Type(), part));
    part = make<spirv::FConvertOp>(type, moved);
  } else if (type.isInteger(8) || type.isInteger(16)) {
    Value moved = shuffle(make<spirv::UConvertOp>(i32, part));
    part = make<spirv::UConvertOp>(type, moved);
  } else if (type.isInteger(64) || type.isF64()) {
    PartList words = pack(type, part);
    for (Value &word : words)
      word = shuffle(word);
    part = unpack(type, words).front();
  } else {
    part = shuffle(part);
  }
  set(op->getResult(0), part);
  return success();
}

LogicalResult KernelEmitter::emitWaveId(tile::WaveIdOp op) {
  if (kernel.getNumLanes() == 1) {
    set(op, builtin(spirv::BuiltIn::LocalInvocationIndex, b.getI32Type()));
  } else if (kernel.getNumWaves() == 1) {
    set(op, constI32(0));
  } else {
    require(spirv::Capability::GroupNonUniform);
    set(op, builtin(spirv::BuiltIn::SubgroupId, b.getI32Type()));
  }
  return success();
}

LogicalResult KernelEmitter::emitSharedLoad(tile::SharedLoadOp op) {
  Type entry = op.getResult().getType();
  Value value =
      make<spirv::LoadOp>(entry, sharedPointer(op.getArray(), op.getIndex()),
                          sharedAccess(), IntegerAttr());
  PartList parts = {value};
  if (isa<VectorType>(entry)) {
    parts.clear();
    for (int32_t i = 0, n = countOf(entry); i < n; ++i)
      parts.push_back(spirv::CompositeExtractOp::create(b, value, {i}));
  }
  set(op, parts);
  return success();
}

LogicalResult KernelEmitter::emitSharedStore(tile::SharedStoreOp op) {
  Type entry = op.getValue().getType();
  Value pointer = sharedPointer(op.getArray(), op.getIndex());
  Value value = isa<VectorType>(entry)
                    ? make<spirv::CompositeConstructOp>(
                          entry, ValueRange(get(op.getValue())))
                    : getScalar(op.getValue());
  spirv::StoreOp::create(b, pointer, value).setMemoryAccessAttr(sharedAccess());
  return success();
}

LogicalResult KernelEmitter::emitBarrier(tile::BarrierOp op) {
  using Semantics = spirv::MemorySemantics;
  Semantics semantics = Semantics::AcquireRelease | Semantics::WorkgroupMemory;
  if (inVulkanModel())
    semantics = semantics | Semantics::MakeAvailable | Semantics::MakeVisible;
  if (op.getGlobal())
    semantics = semantics | Semantics::UniformMemory;
  spirv::ControlBarrierOp::create(b, spirv::Scope::Workgroup,
                                  spirv::Scope::Workgroup, semantics);
  return success();
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

LogicalResult KernelEmitter::emitLaneOp(Operation *op) {
  Type i32 = b.getI32Type();
  spirv::Scope subgroup = spirv::Scope::Subgroup;
  bool alone = kernel.getNumLanes() == 1;
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<tile::ReturnOp>([&](auto) {
        spirv::ReturnOp::create(b);
        return success();
      })
      .Case([&](tile::ProgramIdOp op) {
        Value id =
            builtin(spirv::BuiltIn::WorkgroupId, VectorType::get(3, i32));
        set(op, Value(spirv::CompositeExtractOp::create(
                    b, id, {static_cast<int32_t>(op.getAxis())})));
        return success();
      })
      .Case([&](tile::LaneIdOp op) {
        if (!alone)
          require(spirv::Capability::GroupNonUniform);
        set(op, alone
                    ? constI32(0)
                    : builtin(spirv::BuiltIn::SubgroupLocalInvocationId, i32));
        return success();
      })
      .Case<tile::WaveIdOp>([&](auto op) { return emitWaveId(op); })
      .Case<tile::PtrAddOp>([&](auto op) { return emitPtrAdd(op); })
      .Case<tile::PtrToIntOp, tile::IntToPtrOp, tile::PtrCastOp>([&](auto op) {
        set(op, getScalar(op->getOperand(0)));
        return success();
      })
      .Case<tile::PtrAtomicRmwOp>([&](auto op) { return emitAtomicRmw(op); })
      .Case<tile::PtrAtomicCasOp>([&](auto op) { return emitAtomicCas(op); })
      .Case<tile::FenceOp>([&](auto op) { return emitFence(op); })
      .Case([&](tile::PtrLoadOp op) -> LogicalResult {
        if (op.getMask())
          return op.emitOpError("has a mask, which Vulkan's loads have not; "
                                "put it in a branch");
        return emitAccess(op, op.getBase(), op.getOffset(),
                          op.getResult().getType(), op.getAlign(), Value());
      })
      .Case([&](tile::PtrStoreOp op) {
        return emitAccess(op, op.getBase(), op.getOffset(),
                          op.getValue().getType(), op.getAlign(),
                          op.getValue());
      })
      .Case([&](tile::SharedAllocOp op) { return emitSharedAlloc(op); })
      .Case([&](tile::SharedStageOp op) {
        set(op, getScalar(op.getArray()));
        return success();
      })
      .Case<tile::SharedLoadOp>([&](auto op) { return emitSharedLoad(op); })
      .Case<tile::SharedStoreOp>([&](auto op) { return emitSharedStore(op); })
      .Case([&](tile::SharedAddOp op) {
        spirv::AtomicIAddOp::create(
            b, i32, sharedPointer(op.getArray(), op.getIndex()),
            spirv::Scope::Workgroup, spirv::MemorySemantics::None,
            getScalar(op.getValue()));
        return success();
      })
      // Drivers order instructions themselves.
      .Case<tile::ScheduleGroupOp>([&](auto) { return success(); })
      .Case<tile::BarrierOp>([&](auto op) { return emitBarrier(op); })
      .Case([&](tile::ShuffleXorOp op) -> LogicalResult {
        if (int64_t(op.getMask()) >= kernel.getNumLanes() && !alone)
          return op.emitOpError("has mask ")
                 << op.getMask() << " in waves of " << kernel.getNumLanes();
        Value mask = constI32(op.getMask());
        return emitShuffle(op, op.getValue(), [&](Value value) {
          return make<spirv::GroupNonUniformShuffleXorOp>(
              value.getType(), subgroup, value, mask);
        });
      })
      .Case([&](tile::ShuffleOp op) {
        Value lane = getScalar(op.getLane());
        return emitShuffle(op, op.getValue(), [&](Value value) {
          return make<spirv::GroupNonUniformShuffleOp>(value.getType(),
                                                       subgroup, value, lane);
        });
      })
      .Case<tile::MmaOp, tile::FragmentLoadOp, tile::FragmentStoreOp,
            tile::FragmentSplatOp, tile::FragmentElementsOp,
            tile::FragmentFromElementsOp>(
          [&](auto op) { return emitFragmentOp(op); })
      .Default([&](Operation *) {
        return op->emitOpError(
            "is a block op; greta-tile-to-spirv takes the lane level, which "
            "greta-tile-distribute makes");
      });
}
