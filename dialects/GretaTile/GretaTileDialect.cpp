//===- GretaTileDialect.cpp - dialect, types and the layout attribute -----===//

#include "GretaTile/GretaTile.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta::tile;

#include "GretaTile/GretaTileDialect.cpp.inc"
#include "GretaTile/GretaTileEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "GretaTile/GretaTileAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "GretaTile/GretaTileTypes.cpp.inc"

void GretaTileDialect::initialize() {
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
      parser.emitError(loc) << "basis has " << rank << " coordinates, 'rep' has "
                            << rep.size() << "; a layout has one per dimension";
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

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int32_t> reg, ArrayRef<int32_t> lane,
                                 ArrayRef<int32_t> wave,
                                 ArrayRef<int32_t> rep) {
  if (rep.empty())
    return emitError() << "a layout has at least one dimension";
  for (ArrayRef<int32_t> bases : {reg, lane, wave})
    if (bases.size() % rep.size())
      return emitError() << "bases must have " << rep.size() << " coordinates";
  for (int32_t count : rep)
    if (count < 1)
      return emitError() << "'rep' has " << count << "; it is at least 1";
  for (ArrayRef<int32_t> bases : {reg, lane, wave})
    for (int32_t coordinate : bases)
      if (coordinate < 0)
        return emitError() << "basis coordinate " << coordinate
                           << " is negative";
  return success();
}

/// Extent of one tile along each dimension: one more than the OR of all bases.
static SmallVector<int64_t> tileExtents(LayoutAttr layout) {
  size_t rank = layout.getRep().size();
  SmallVector<int64_t> extents(rank, 0);
  for (ArrayRef<int32_t> bases :
       {layout.getReg(), layout.getLane(), layout.getWave()})
    for (auto [i, coordinate] : llvm::enumerate(bases))
      extents[i % rank] |= coordinate;
  for (int64_t &extent : extents)
    ++extent;
  return extents;
}

LogicalResult
LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                           function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != getRep().size())
    return emitError() << "layout of rank " << getRep().size()
                       << " on a tensor of rank " << shape.size();
  SmallVector<int64_t> extents = tileExtents(*this);
  for (auto [dim, extent] : llvm::enumerate(extents))
    if (extent * getRep()[dim] != shape[dim])
      return emitError() << "layout covers " << extent * getRep()[dim]
                         << " elements of dimension " << dim
                         << ", the tensor has " << shape[dim];
  return success();
}
