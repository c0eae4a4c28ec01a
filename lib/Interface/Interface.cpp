//===- Interface.cpp - what a function takes and gives --------------------===//
//
// In: a function with greta.symbols and greta.shapes (greta-annotate-shapes).
// Out: its FunctionSpec, in the manifest's words.
//
//===----------------------------------------------------------------------===//

#include "greta/Interface/Launches.h"
#include "greta/Interface/Variant.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace greta;

StringRef greta::getDtypeName(Type type, bool all) {
  if (!all && (type.isF64() || type.isInteger(16) || type.isInteger(64)))
    return "";
  return llvm::TypeSwitch<Type, StringRef>(type)
      .Case([](Float32Type) -> StringRef { return "f32"; })
      .Case([](Float64Type) -> StringRef { return "f64"; })
      .Case([](Float16Type) -> StringRef { return "f16"; })
      .Case([](BFloat16Type) -> StringRef { return "bf16"; })
      .Case([](Float8E4M3FNType) -> StringRef { return "f8e4m3fn"; })
      .Case([](Float8E4M3FNUZType) -> StringRef { return "f8e4m3fnuz"; })
      .Case([](Float8E5M2Type) -> StringRef { return "f8e5m2"; })
      .Case([](Float8E5M2FNUZType) -> StringRef { return "f8e5m2fnuz"; })
      .Case([](IntegerType type) -> StringRef {
        return type.isInteger(8)    ? "i8"
               : type.isInteger(16) ? "i16"
               : type.isInteger(32) ? "i32"
               : type.isInteger(64) ? "i64"
                                    : "";
      })
      .Default(StringRef());
}

/// An extent of greta.shapes: an integer, "d0", or [op, a, b].
static AffineExpr parseExtent(Attribute extent) {
  MLIRContext *context = extent.getContext();
  if (auto constant = dyn_cast<IntegerAttr>(extent))
    return getAffineConstantExpr(constant.getInt(), context);
  if (auto name = dyn_cast<StringAttr>(extent)) {
    unsigned symbol = 0;
    name.getValue().drop_front().getAsInteger(10, symbol);
    return getAffineSymbolExpr(symbol, context);
  }
  auto parts = cast<ArrayAttr>(extent).getValue();
  AffineExpr a = parseExtent(parts[1]), b = parseExtent(parts[2]);
  StringRef op = cast<StringAttr>(parts[0]).getValue();
  if (op == "+")
    return a + b;
  if (op == "*")
    return a * b;
  if (op == "floordiv")
    return a.floorDiv(b);
  if (op == "ceildiv")
    return a.ceilDiv(b);
  return a % b;
}

FunctionSpec greta::getFunctionSpec(func::FuncOp func) {
  FunctionSpec spec;
  spec.name = func.getSymName().str();
  spec.isInPlace = func->hasAttr(inPlaceName);
  for (Attribute symbol : func->getAttrOfType<ArrayAttr>("greta.symbols")) {
    auto pair = cast<ArrayAttr>(symbol).getValue();
    SymbolSpec &made = spec.symbols.emplace_back();
    made.arg = cast<IntegerAttr>(pair[0]).getInt();
    if (pair.size() > 1)
      made.dim = cast<IntegerAttr>(pair[1]).getInt();
  }
  auto shapes = func->getAttrOfType<ArrayAttr>("greta.shapes").getValue();
  auto describe = [&](Type type, Attribute shape, std::string name) {
    TensorSpec tensor;
    tensor.name = std::move(name);
    tensor.elementType = getElementTypeOrSelf(type);
    tensor.isScalar = !isa<RankedTensorType>(type);
    for (Attribute extent : cast<ArrayAttr>(shape))
      tensor.shape.push_back(parseExtent(extent));
    return tensor;
  };
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    auto name = func.getArgAttrOfType<StringAttr>(i, "greta.name");
    spec.args.push_back(
        describe(func.getArgumentTypes()[i], shapes[i],
                 name ? name.getValue().str() : "arg" + std::to_string(i)));
    spec.args.back().alignment = alignmentOf(func.getArgument(i));
    if (func.getArgAttr(i, tile::pointerRangeName))
      spec.args.back().maxBytes = INT32_MAX;
    spec.args.back().holdsAddresses =
        func.getArgAttr(i, addressesName) != nullptr;
  }
  auto results = func.getBody().front().getTerminator()->getOperands();
  for (auto [i, type] : llvm::enumerate(func.getResultTypes())) {
    spec.results.push_back(
        describe(type, shapes[spec.args.size() + i], "r" + std::to_string(i)));
    // A result that is another one, too, is a copy of it.
    std::optional<unsigned> tied = tiedArgument(results[i]);
    if (llvm::none_of(spec.results, [&](const TensorSpec &other) {
          return tied && other.tied == tied;
        }))
      spec.results.back().tied = tied;
  }
  return spec;
}
