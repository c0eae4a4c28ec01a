//===- TileToSPIRVFragment.cpp - fragments to cooperative matrices --------===//
//
// A fragment is one value of VK_KHR_cooperative_matrix's type, subgroup scope.
// It is loaded from and stored to arrays in shared memory as they are: the
// pointer's type and the matrix's may differ, and the stride counts what the
// pointer points to, so that an array of vector<4xi32> is read 16 bytes at a
// time whatever the matrix's type is.
//
// Elements are members of the composite. A matrix is put together by inserting
// them into one of zeros, because a composite of several constituents is not
// defined for matrices. i8 and i32 are signed. bf16 is a type of its own inside
// of matrices only; elements become f32 on the way out.
//
// The extension demands the Vulkan memory model (finishModule). There, accesses
// to shared memory must say that other lanes may see them, and the barrier
// makes them available and visible; KernelEmitter::sharedAccess has the former.
//
//===----------------------------------------------------------------------===//

#include "TileToSPIRVKernel.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using greta::tospirv::KernelEmitter;
using greta::tospirv::PartList;

Type KernelEmitter::matrixType(tile::FragmentType fragment) {
  using Use = spirv::CooperativeMatrixUseKHR;
  Type element = fragment.getElementType();
  if (!element.isF32() && !element.isF16() && !element.isBF16() &&
      !element.isInteger(8) && !element.isInteger(32))
    return Type();
  if (element.isBF16()) {
    require(spirv::Capability::BFloat16TypeKHR);
    require(spirv::Capability::BFloat16CooperativeMatrixKHR);
  } else {
    registerType(element);
  }
  Use use = fragment.getUse() == tile::FragmentUse::A   ? Use::MatrixA
            : fragment.getUse() == tile::FragmentUse::B ? Use::MatrixB
                                                        : Use::MatrixAcc;
  return spirv::CooperativeMatrixType::get(element, fragment.getRows(),
                                           fragment.getColumns(),
                                           spirv::Scope::Subgroup, use);
}

/// These convert an element between its form in registers and that of a
/// matrix's member.
static Value toMember(KernelEmitter &e, Type element, Value value) {
  return element.isBF16() ? e.make<spirv::FConvertOp>(element, value) : value;
}
static Value fromMember(KernelEmitter &e, Type element, Value value) {
  return element.isBF16() ? e.make<spirv::FConvertOp>(e.b.getF32Type(), value)
                          : value;
}

LogicalResult KernelEmitter::emitFragmentAccess(Operation *op,
                                                tile::FragmentType fragment,
                                                Value array, Value index,
                                                int64_t stride, bool transposed,
                                                Value stored) {
  Type entry = cast<tile::SharedType>(array.getType()).getElementType();
  int64_t bytes = fragment.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t entryBytes =
      getElementTypeOrSelf(entry).getIntOrFloatBitWidth() / 8 * countOf(entry);
  int64_t line = transposed ? fragment.getRows() : fragment.getColumns();
  int64_t align = std::min<int64_t>(16, line * bytes);
  if (stride * entryBytes % align)
    return op->emitOpError("has lines ")
           << stride * entryBytes << " bytes apart; Vulkan takes multiples of "
           << align << " for " << fragment;
  Value pointer = sharedPointer(array, index);
  auto layout = spirv::CooperativeMatrixLayoutKHRAttr::get(
      b.getContext(), transposed
                          ? spirv::CooperativeMatrixLayoutKHR::ColumnMajor
                          : spirv::CooperativeMatrixLayoutKHR::RowMajor);
  Value apart = constI32(stride);
  if (stored)
    spirv::KHRCooperativeMatrixStoreOp::create(
        b, pointer, stored, layout, apart, sharedAccess(), IntegerAttr());
  else
    set(op->getResult(0), make<spirv::KHRCooperativeMatrixLoadOp>(
                              matrixType(fragment), pointer, layout, apart,
                              sharedAccess(), IntegerAttr()));
  return success();
}

LogicalResult KernelEmitter::emitFragmentProduct(tile::MmaOp op) {
  auto a = dyn_cast<tile::FragmentType>(op.getA().getType());
  if (!a || op.getIntrinsic() != "coopmat")
    return op.emitOpError("is '")
           << op.getIntrinsic() << "' on " << op.getA().getType()
           << "; Vulkan has 'coopmat' on fragments";
  using Operands = spirv::CooperativeMatrixOperandsKHR;
  spirv::CooperativeMatrixOperandsKHRAttr operands;
  if (isa<IntegerType>(a.getElementType()))
    operands = spirv::CooperativeMatrixOperandsKHRAttr::get(
        b.getContext(), Operands::ASigned | Operands::BSigned |
                            Operands::CSigned | Operands::ResultSigned);
  Value acc = getScalar(op.getAcc());
  set(op, make<spirv::KHRCooperativeMatrixMulAddOp>(
              acc.getType(), getScalar(op.getA()), getScalar(op.getB()), acc,
              operands));
  return success();
}

LogicalResult KernelEmitter::emitFragmentOp(Operation *op) {
  if (kernel.getNumLanes() == 1)
    return op->emitOpError("stands in a kernel of wave_size 1; cooperative "
                           "matrices belong to a subgroup");
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tile::FragmentLoadOp op) {
        return emitFragmentAccess(op, op.getResult().getType(), op.getArray(),
                                  op.getIndex(), op.getStride(),
                                  op.getTransposed(), Value());
      })
      .Case([&](tile::FragmentStoreOp op) {
        return emitFragmentAccess(op, op.getValue().getType(), op.getArray(),
                                  op.getIndex(), op.getStride(),
                                  op.getTransposed(), getScalar(op.getValue()));
      })
      .Case([&](tile::FragmentSplatOp op) {
        Value member =
            toMember(*this, op.getValue().getType(), getScalar(op.getValue()));
        set(op, make<spirv::CompositeConstructOp>(
                    matrixType(op.getResult().getType()), ValueRange(member)));
        return success();
      })
      .Case([&](tile::FragmentElementsOp op) {
        Type element = op.getResult().getType().getElementType();
        Value matrix = getScalar(op.getValue());
        PartList parts;
        for (int32_t i = 0, n = countOf(op.getType()); i < n; ++i)
          parts.push_back(
              fromMember(*this, element,
                         spirv::CompositeExtractOp::create(b, matrix, {i})));
        set(op, parts);
        return success();
      })
      .Case([&](tile::FragmentFromElementsOp op) {
        tile::FragmentType fragment = op.getResult().getType();
        Type element = fragment.getElementType();
        Value zero = constant(cast<TypedAttr>(b.getZeroAttr(element)));
        Value matrix = make<spirv::CompositeConstructOp>(matrixType(fragment),
                                                         ValueRange(zero));
        for (auto [i, part] : llvm::enumerate(get(op.getValue())))
          matrix = spirv::CompositeInsertOp::create(
              b, toMember(*this, element, part), matrix,
              {static_cast<int32_t>(i)});
        set(op, matrix);
        return success();
      })
      .Case([&](tile::MmaOp op) { return emitFragmentProduct(op); })
      .Default([&](Operation *) { return unknown(op); });
}
