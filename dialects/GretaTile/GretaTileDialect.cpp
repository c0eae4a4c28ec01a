//===- GretaTileDialect.cpp - dialect, types and the layout attribute -----===//

#include "GretaTile/GretaTile.h"
#include "GretaTile/LoopAttributes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

#include "GretaTile/GretaTileDialect.cpp.inc"
#include "GretaTile/GretaTileEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "GretaTile/GretaTileAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "GretaTile/GretaTileTypes.cpp.inc"

namespace {
/// An op of a helper function may stand in the kernel that calls it.
struct KernelInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

void GretaTileDialect::initialize() {
  addInterfaces<KernelInlinerInterface>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "GretaTile/GretaTileAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "GretaTile/GretaTileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "GretaTile/GretaTileOps.cpp.inc"
      >();
}

LogicalResult GretaTileDialect::verifyOperationAttribute(Operation *op,
                                                         NamedAttribute attr) {
  if (attr.getName() != stagesName)
    return success();
  auto stages = dyn_cast<IntegerAttr>(attr.getValue());
  if (stages && stages.getType().isSignlessInteger(32) && stages.getInt() >= 0)
    return success();
  return op->emitError() << "has '" << stagesName
                         << "' (Triton IR's 'tt.num_stages') = "
                         << attr.getValue()
                         << "; the number of stages is an i32 of at least 0 "
                            "(0: the compiler chooses)";
}

//===----------------------------------------------------------------------===//
// FragmentType: <16x8xf32, acc>
//===----------------------------------------------------------------------===//

Type FragmentType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  StringRef use;
  SMLoc loc = parser.getCurrentLocation(), useLoc;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element) || parser.parseComma() ||
      parser.getCurrentLocation(&useLoc) || parser.parseKeyword(&use) ||
      parser.parseGreater())
    return {};
  std::optional<FragmentUse> kind = symbolizeFragmentUse(use);
  if (!kind) {
    parser.emitError(useLoc) << "a fragment's use is a, b or acc";
    return {};
  }
  if (shape.size() != 2) {
    parser.emitError(loc) << "a fragment has two dimensions";
    return {};
  }
  return FragmentType::get(parser.getContext(), shape[0], shape[1], element,
                           *kind);
}

void FragmentType::print(AsmPrinter &printer) const {
  printer << "<" << getRows() << "x" << getColumns() << "x" << getElementType()
          << ", " << stringifyFragmentUse(getUse()) << ">";
}

//===----------------------------------------------------------------------===//
// LayoutAttr: {reg = [[..], ..], lane = [..], wave = [..], rep = [..]}
//===----------------------------------------------------------------------===//

static ParseResult parseBases(AsmParser &parser, StringRef name,
                              SmallVectorImpl<int32_t> &flat,
                              SmallVectorImpl<size_t> &ranks) {
  if (parser.parseKeyword(name) || parser.parseEqual())
    return failure();
  auto parseBasis = [&]() -> ParseResult {
    size_t before = flat.size();
    auto parseOne = [&] { return parser.parseInteger(flat.emplace_back()); };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
      return failure();
    ranks.push_back(flat.size() - before);
    return success();
  };
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        parseBasis);
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SmallVector<int32_t> reg, lane, wave, rep;
  SmallVector<size_t> ranks;
  SMLoc loc = parser.getCurrentLocation();
  auto parseRep = [&] { return parser.parseInteger(rep.emplace_back()); };
  if (parser.parseLess() || parser.parseLBrace() ||
      parseBases(parser, "reg", reg, ranks) || parser.parseComma() ||
      parseBases(parser, "lane", lane, ranks) || parser.parseComma() ||
      parseBases(parser, "wave", wave, ranks) || parser.parseComma() ||
      parser.parseKeyword("rep") || parser.parseEqual() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseRep) ||
      parser.parseRBrace() || parser.parseGreater())
    return {};
  for (size_t rank : ranks)
    if (rank != rep.size()) {
      parser.emitError(loc)
          << "basis has " << rank << " coordinates, 'rep' has " << rep.size()
          << "; a layout has one per dimension";
      return {};
    }
  return parser.getChecked<LayoutAttr>(loc, parser.getContext(), reg, lane,
                                       wave, rep);
}

static void printBases(AsmPrinter &printer, StringRef name,
                       ArrayRef<int32_t> flat, size_t rank) {
  printer << name << " = [";
  for (size_t i = 0; i < flat.size(); i += rank) {
    printer << (i ? ", [" : "[");
    llvm::interleaveComma(flat.slice(i, rank), printer);
    printer << "]";
  }
  printer << "], ";
}

void LayoutAttr::print(AsmPrinter &printer) const {
  size_t rank = getRep().size();
  printer << "<{";
  printBases(printer, "reg", getReg(), rank);
  printBases(printer, "lane", getLane(), rank);
  printBases(printer, "wave", getWave(), rank);
  printer << "rep = [";
  llvm::interleaveComma(getRep(), printer);
  printer << "]}>";
}

static Bases toBases(ArrayRef<int32_t> flat, size_t rank) {
  Bases bases;
  for (size_t i = 0; i + rank <= flat.size(); i += rank)
    bases.emplace_back(flat.slice(i, rank));
  return bases;
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int32_t> reg, ArrayRef<int32_t> lane,
                                 ArrayRef<int32_t> wave,
                                 ArrayRef<int32_t> rep) {
  if (rep.empty())
    return emitError() << "a layout has at least one dimension";
  Layout layout(toBases(reg, rep.size()), toBases(lane, rep.size()),
                toBases(wave, rep.size()), rep);
  if (std::optional<std::string> error = layout.verify())
    return emitError() << "not a layout: " << *error;
  return success();
}

Layout greta::tile::toLayout(LayoutAttr attr) {
  size_t rank = attr.getRep().size();
  return Layout(toBases(attr.getReg(), rank), toBases(attr.getLane(), rank),
                toBases(attr.getWave(), rank), attr.getRep());
}

LayoutAttr greta::tile::toAttr(MLIRContext *context, const Layout &layout) {
  auto flatten = [](const Bases &bases) {
    SmallVector<int32_t> flat;
    for (const Basis &basis : bases)
      llvm::append_range(flat, basis);
    return flat;
  };
  return LayoutAttr::get(context, flatten(layout.reg()), flatten(layout.lane()),
                         flatten(layout.wave()), layout.rep());
}

LogicalResult
LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                           function_ref<InFlightDiagnostic()> emitError) const {
  Index covered = toLayout(*this).shape();
  if (shape.size() != covered.size())
    return emitError() << "layout of rank " << covered.size()
                       << " on a tensor of rank " << shape.size();
  for (auto [dim, extent] : llvm::enumerate(covered))
    if (extent != shape[dim])
      return emitError() << "layout covers " << extent
                         << " elements of dimension " << dim
                         << ", the tensor has " << shape[dim];
  return success();
}

LogicalResult MatrixAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringAttr intrinsic, bool swapped,
                                 bool opaque, bool elements, LayoutAttr a,
                                 LayoutAttr b, LayoutAttr acc) {
  if (elements && (opaque || intrinsic.getValue() != "coopmat"))
    return emitError() << "elements are those of cooperative matrices whose "
                          "layouts are known";
  for (LayoutAttr layout : {a, b, acc})
    if (layout.getRep().size() != 2 || !layout.getWave().empty() ||
        layout.getRep()[0] != 1 || layout.getRep()[1] != 1)
      return emitError() << "the layout of a matrix instruction's operand has "
                            "two dimensions, no waves and no repetitions";
  Index left = toLayout(a).shape(), right = toLayout(b).shape(),
        sum = toLayout(acc).shape();
  if (left[0] != sum[0] || left[1] != right[0] || right[1] != sum[1])
    return emitError() << "multiplies " << left[0] << "x" << left[1] << " by "
                       << right[0] << "x" << right[1] << " into " << sum[0]
                       << "x" << sum[1];
  return success();
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

LogicalResult
PlacementAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t dim,
                      int64_t stride, int64_t vector, int64_t rows,
                      int64_t phases) {
  auto isPower = [](int64_t n) { return n > 0 && llvm::isPowerOf2_64(n); };
  if (dim < 0 || stride <= 0 || !isPower(vector) || !isPower(rows) ||
      !isPower(phases))
    return emitError() << "a placement has a dimension, a positive stride, and "
                          "powers of two for vector, rows and phases";
  return success();
}

LogicalResult LocalType::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t stages, RankedTensorType block,
                                PlacementAttr placement) {
  if (stages <= 0 || !block.hasStaticShape() ||
      !block.getElementType().isIntOrFloat() ||
      placement.getDim() >= block.getRank())
    return emitError() << "a local is stages of a static block that has the "
                          "placement's dimension";
  int64_t row = block.getDimSize(placement.getDim());
  if (placement.getStride() < row ||
      row % (placement.getVector() * placement.getPhases()))
    return emitError() << "rows of " << row << " elements do not fit a stride "
                       << "of " << placement.getStride() << " or "
                       << placement.getPhases() << " phases of "
                       << placement.getVector();
  return success();
}

LogicalResult PipelineAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t stages, int64_t slice,
                                   int64_t direct) {
  if (stages < 0 || stages > 3 || slice < 1)
    return emitError() << "a pipeline has up to three stages and a positive "
                          "slice";
  if (direct && (stages < 2 || (direct != 4 && direct != 16)))
    return emitError() << "a pipeline loads directly with two or three "
                          "stages, 4 or 16 bytes a lane";
  return success();
}
