//===- TritonDialect.cpp - Triton IR as text: types and syntax ------------===//

#include "Triton/Triton.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace greta;
using namespace greta::triton;

//===----------------------------------------------------------------------===//
// Syntax that ops share
//===----------------------------------------------------------------------===//

/// A word of an enumeration; what reads the op knows which ones there are.
static ParseResult parseKeyword(OpAsmParser &parser, StringAttr &attr) {
  StringRef word;
  if (parser.parseKeyword(&word))
    return failure();
  attr = parser.getBuilder().getStringAttr(word);
  return success();
}
static void printKeyword(OpAsmPrinter &printer, Operation *, StringAttr attr) {
  printer << attr.getValue();
}

/// `cacheModifier = cg evictionPolicy = evict_first`
static ParseResult parseCacheHints(OpAsmParser &parser, DictionaryAttr &attr) {
  NamedAttrList hints;
  for (StringRef name : {"cacheModifier", "evictionPolicy"}) {
    StringRef hint;
    if (failed(parser.parseOptionalKeyword(name)))
      continue;
    if (parser.parseEqual() || parser.parseKeyword(&hint))
      return failure();
    hints.append(name, parser.getBuilder().getStringAttr(hint));
  }
  if (!hints.empty())
    attr = hints.getDictionary(parser.getContext());
  return success();
}
static void printCacheHints(OpAsmPrinter &printer, Operation *,
                            DictionaryAttr attr) {
  auto printHint = [&](NamedAttribute hint) {
    printer << hint.getName().getValue() << " = "
            << cast<StringAttr>(hint.getValue()).getValue();
  };
  if (attr)
    llvm::interleave(attr.getValue(), printer, printHint, " ");
}

#include "Triton/TritonDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "Triton/TritonAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "Triton/TritonTypes.cpp.inc"
#define GET_OP_CLASSES
#include "Triton/TritonOps.cpp.inc"

void TTDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Triton/TritonAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "Triton/TritonTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Triton/TritonOps.cpp.inc"
      >();
}

std::optional<Dialect::ParseOpHook>
TTDialect::getParseOperationHook(StringRef name) const {
  return [](OpAsmParser &parser, OperationState &state) -> ParseResult {
    StringRef name = state.name.getStringRef();
    StringRef remedy = llvm::StringSwitch<StringRef>(name)
                           .Cases({"tt.make_tensor_ptr", "tt.advance"},
                                  "block pointers went with Triton 3.8, say "
                                  "tl.make_tensor_descriptor")
                           .Default("print the kernel with one of these");
    return parser.emitError(parser.getNameLoc(), "'")
           << name << "' is no op of the Triton IR of 3.6 to 3.9: " << remedy;
  };
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

Type triton::getPointee(Type pointers) {
  if (auto pointer = dyn_cast<PtrType>(pointers))
    return pointer.getPointee();
  if (auto block = dyn_cast<RankedTensorType>(pointers))
    if (auto pointer = dyn_cast<PtrType>(block.getElementType()))
      return block.clone(pointer.getPointee());
  return {};
}

Type triton::getMaskType(Type like) {
  Type i1 = IntegerType::get(like.getContext(), 1);
  auto block = dyn_cast<RankedTensorType>(like);
  return block ? Type(block.clone(i1)) : i1;
}

/// <f32>, or <f32, 1>: global memory is address space 1.
Type PtrType::parse(AsmParser &parser) {
  Type pointee;
  int64_t space = 1;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseType(pointee) ||
      (succeeded(parser.parseOptionalComma()) && parser.parseInteger(space)) ||
      parser.parseGreater())
    return {};
  if (space != 1) {
    parser.emitError(loc)
        << "a pointer into address space " << space
        << "; Triton IR points into global memory, which is 1";
    return {};
  }
  if (!pointee.isIntOrFloat()) {
    parser.emitError(loc)
        << "a pointer to " << pointee
        << "; kernels point to numbers: keep addresses as int64, and say "
           "tl.make_tensor_descriptor for blocks in memory";
    return {};
  }
  return get(parser.getContext(), pointee);
}

void PtrType::print(AsmPrinter &printer) const {
  printer << "<" << getPointee() << ">";
}

/// <16x32xf16>, or <tensor<16x32xf16>> before Triton 3.8.
Type DescriptorType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  Type type;
  OptionalParseResult wrapped = parser.parseOptionalType(type);
  if (wrapped.has_value()) {
    if (failed(*wrapped))
      return {};
  } else {
    SmallVector<int64_t> shape;
    Type element;
    if (parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
        parser.parseType(element))
      return {};
    if (element.isIntOrFloat())
      type = RankedTensorType::get(shape, element);
  }
  if (parser.parseGreater())
    return {};
  auto block = dyn_cast_or_null<RankedTensorType>(type);
  if (!block || !block.getElementType().isIntOrFloat() ||
      !block.hasStaticShape() || block.getRank() == 0) {
    parser.emitError(loc) << "a descriptor is of blocks of numbers, such as "
                             "<16x32xf16>";
    return {};
  }
  return get(parser.getContext(), block);
}

void DescriptorType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getBlock().getShape());
  printer << "x" << getBlock().getElementType() << ">";
}

/// <cache_modifier = wt, eviction_policy = evict_normal>
Attribute CachePolicyAttr::parse(AsmParser &parser, Type) {
  SmallVector<NamedAttribute> hints;
  auto parseHint = [&]() -> ParseResult {
    StringRef name, hint;
    if (parser.parseKeyword(&name) || parser.parseEqual() ||
        parser.parseKeyword(&hint))
      return failure();
    hints.emplace_back(name, parser.getBuilder().getStringAttr(hint));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseHint))
    return {};
  return get(parser.getContext(), hints);
}

void CachePolicyAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getHints(), printer, [&](NamedAttribute hint) {
    printer << hint.getName().getValue() << " = "
            << cast<StringAttr>(hint.getValue()).getValue();
  });
  printer << ">";
}

//===----------------------------------------------------------------------===//
// FuncOp
//===----------------------------------------------------------------------===//

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &state) {
  auto buildType = [](Builder &builder, ArrayRef<Type> args,
                      ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(args, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, state, /*allowVariadic=*/false,
      getFunctionTypeAttrName(state.name), buildType,
      getArgAttrsAttrName(state.name), getResAttrsAttrName(state.name));
}

void FuncOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult ReturnOp::verify() {
  ArrayRef<Type> results =
      cast<FuncOp>((*this)->getParentOp()).getResultTypes();
  if (getOperandTypes() != results)
    return emitOpError("returns other values than its function, which has ")
           << results.size() << " results";
  return success();
}
