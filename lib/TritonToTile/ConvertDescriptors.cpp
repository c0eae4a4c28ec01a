//===- ConvertDescriptors.cpp - Triton IR's tensor descriptors ------------===//
//
// A block behind a descriptor becomes a block of pointers, masked where it
// leaves the tensor:
//
//   pointers = base + sum_d (index_d + iota_d) * stride_d
//   mask     = and_d (0 <= index_d + iota_d < shape_d)
//
// A descriptor that a kernel takes as an argument is its pointer; its shape and
// strides are the arguments behind it, where Triton's frontend puts them.
//
//===----------------------------------------------------------------------===//

#include "TritonToTile.h"

using namespace mlir;
using namespace greta;
using namespace greta::triton;

struct OpConverter::Descriptor {
  Value base;
  SmallVector<Value> shape;   // i32
  SmallVector<Value> strides; // i64, elements
  bool fillsWithNan = false;  // what loads give beyond the shape, else zero
};

SmallVector<Value> triton::descriptorParts(UnrealizedConversionCastOp desc,
                                           unsigned rank) {
  auto argument = cast<BlockArgument>(desc.getOperand(0));
  return SmallVector<Value>(ValueRange(argument.getOwner()->getArguments())
                                .drop_front(argument.getArgNumber())
                                .take_front(1 + 2 * rank));
}

FailureOr<OpConverter::Descriptor>
OpConverter::describe(Operation *op, Value desc, size_t rank) {
  Descriptor result;
  auto isNan = [](IntegerAttr padding) {
    constexpr int32_t nan = 2;
    return padding && padding.getInt() == nan;
  };
  if (auto make = desc.getDefiningOp<MakeTensorDescriptorOp>()) {
    result.base = make->getOperand(0);
    result.shape = llvm::to_vector(make.getShape());
    result.strides = llvm::to_vector(make.getStrides());
    result.fillsWithNan = isNan(make.getPaddingAttr());
  } else if (auto cast = desc.getDefiningOp<UnrealizedConversionCastOp>()) {
    result.fillsWithNan = isNan(cast->getAttrOfType<IntegerAttr>(paddingName));
    SmallVector<Value> parts = descriptorParts(cast, rank);
    result.base = parts[0];
    for (Value value : ArrayRef(parts).drop_front()) {
      if (result.shape.size() < rank && value.getType().isInteger(32))
        result.shape.push_back(value);
      else if (value.getType().isInteger(64))
        result.strides.push_back(value);
    }
  } else {
    return op->emitOpError("uses a descriptor that neither this kernel nor its "
                           "caller made");
  }
  auto block = cast<DescriptorType>(desc.getType()).getBlock();
  if (result.shape.size() != rank || result.strides.size() != rank ||
      static_cast<size_t>(block.getRank()) != rank)
    return op->emitOpError("uses a descriptor of ")
           << block << " with " << result.shape.size() << " extents and "
           << result.strides.size() << " strides at " << rank << " indices";
  return result;
}

OpConverter::Access OpConverter::access(const Descriptor &desc,
                                        ArrayRef<Value> indices,
                                        ArrayRef<int64_t> shape) {
  Type i64 = b.getI64Type();
  Value pointers = desc.base, mask;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    int64_t line[] = {shape[dim]};
    auto lineType = RankedTensorType::get(line, b.getI32Type());
    Value along = index;
    if (!isa<RankedTensorType>(index.getType()))
      along = add(splat(index, line), iota(line, 0));
    Value offset = mul(arith::ExtSIOp::create(b, lineType.clone(i64), along),
                       splat(desc.strides[dim], line));
    pointers = tile::PtrAddOp::create(b, pointers, spread(offset, dim, shape));
    Value isWithin =
        both(compare(Predicate::sge, along, numberOf(b, lineType, 0)),
             below(along, splat(desc.shape[dim], line)));
    isWithin = spread(isWithin, dim, shape);
    mask = mask ? both(mask, isWithin) : isWithin;
  }
  return {pointers, mask};
}

FailureOr<OpConverter::Described> OpConverter::locate(Operation *op, Value desc,
                                                      ArrayRef<Value> indices,
                                                      RankedTensorType moved) {
  FailureOr<Descriptor> known = describe(op, desc, indices.size());
  if (failed(known))
    return failure();
  // A descriptor of <1x16xf32> may give tensor<16xf32>; rows that are gathered
  // are as many as there are indices.
  ArrayRef<int64_t> shape =
      isa<RankedTensorType>(indices[0].getType())
          ? moved.getShape()
          : cast<DescriptorType>(desc.getType()).getBlock().getShape();
  if (shape.size() != indices.size())
    return op->emitOpError("moves ")
           << moved << " at " << indices.size() << " indices";
  auto [pointers, mask] = access(*known, indices, shape);
  return Described{moved.clone(shape), pointers, mask, known->fillsWithNan};
}

LogicalResult OpConverter::load(Operation *op, Value desc,
                                ArrayRef<Value> indices) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  FailureOr<Described> at = locate(op, desc, indices, type);
  if (failed(at))
    return failure();
  Value other;
  if (at->fillsWithNan && isa<FloatType>(type.getElementType()))
    other = numberOf(b, at->block, std::numeric_limits<double>::quiet_NaN());
  Value value = tile::LoadScatteredOp::create(b, at->block, at->pointers,
                                              at->mask, other);
  return replace(op, {reshape(value, type.getShape())});
}

LogicalResult OpConverter::store(Operation *op, Value desc,
                                 ArrayRef<Value> indices, Value value) {
  FailureOr<Described> at =
      locate(op, desc, indices, cast<RankedTensorType>(value.getType()));
  if (failed(at))
    return failure();
  tile::StoreScatteredOp::create(b, reshape(value, at->block.getShape()),
                                 at->pointers, at->mask);
  return replace(op, {});
}

LogicalResult OpConverter::convert(DescriptorLoadOp op) {
  return load(op, op.getDesc(), llvm::to_vector(op.getIndices()));
}

LogicalResult OpConverter::convert(DescriptorStoreOp op) {
  return store(op, op.getDesc(), llvm::to_vector(op.getIndices()),
               op.getValue());
}

/// Extends numbers of rows from 16 bits, with their sign, to 32.
static Value wideRows(Value rows, ImplicitLocOpBuilder &b) {
  Type wide = tile::withElementType(rows.getType(), b.getI32Type());
  return rows.getType() == wide
             ? rows
             : arith::ExtSIOp::create(b, wide, rows).getResult();
}

LogicalResult OpConverter::convert(DescriptorGatherOp op) {
  return load(op, op.getDesc(), {wideRows(op.getRows(), b), op.getColumn()});
}

LogicalResult OpConverter::convert(DescriptorScatterOp op) {
  return store(op, op.getDesc(), {wideRows(op.getRows(), b), op.getColumn()},
               op.getValue());
}

LogicalResult OpConverter::convert(DescriptorReduceOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  RankedTensorType block =
      cast<DescriptorType>(op.getDesc().getType()).getBlock();
  if (type.getShape() != block.getShape())
    return op.emitOpError("combines ")
           << type << " with blocks of another shape in memory";
  bool isFloat = isa<FloatType>(type.getElementType());
  std::string name = op.getKind().str();
  if (isFloat && name == "add")
    name = "fadd";
  // The block alone says that numbers have no sign.
  if (block.getElementType().isUnsignedInteger() &&
      (name == "max" || name == "min"))
    name = "u" + name;
  std::optional<tile::AtomicKind> kind = tile::symbolizeAtomicKind(name);
  if (!kind || (isFloat && kind != tile::AtomicKind::FAdd))
    return op.emitOpError("combines ")
           << type.getElementType() << " in memory by '" << op.getKind()
           << "'; descriptors add, and integers and, or, xor, max and min, too";
  FailureOr<Descriptor> known =
      describe(op, op.getDesc(), op.getIndices().size());
  if (failed(known))
    return failure();
  auto [pointers, mask] =
      access(*known, llvm::to_vector(op.getIndices()), type.getShape());
  tile::AtomicRmwOp::create(b, type, *kind, tile::MemoryOrder::Relaxed,
                            tile::MemoryScope::Device, pointers, op.getValue(),
                            mask);
  return replace(op, {});
}
