//===- ConfigureOverride.cpp - the attribute greta.config -----------------===//
//
// What somebody asks for in place of the choice, part by part.
//
//===----------------------------------------------------------------------===//

#include "TileModel.h"

using namespace mlir;
using namespace greta;

LogicalResult
greta::overrideTile(Tile &tile, MatmulOp matmul,
                    ArrayRef<const MatrixInstruction *> available) {
  Attribute attribute = matmul->getAttr("greta.config");
  if (!attribute)
    return success();
  auto isNumber = [](Attribute entry) {
    auto integer = dyn_cast<IntegerAttr>(entry);
    return integer && integer.getValue().isSignedIntN(32);
  };
  auto isKnown = [&](NamedAttribute entry) {
    if (llvm::is_contained({"tile", "instruction"}, entry.getName())) {
      auto array = dyn_cast<ArrayAttr>(entry.getValue());
      return array && llvm::all_of(array, isNumber);
    }
    if (entry.getName() == "opaque")
      return isa<UnitAttr>(entry.getValue());
    return llvm::is_contained({"waves", "stages", "slice", "group"},
                              entry.getName()) &&
           isNumber(entry.getValue());
  };
  auto config = dyn_cast<DictionaryAttr>(attribute);
  if (!config || !llvm::all_of(config, isKnown))
    return matmul.emitOpError(
        "has a 'greta.config' that is not a dictionary of 'tile' and "
        "'instruction', arrays of integers, 'waves', 'stages', 'slice' and "
        "'group', integers below 2^31, and 'opaque'");
  auto number = [&](StringRef name, int64_t &value) {
    if (auto integer = config.getAs<IntegerAttr>(name))
      value = integer.getValue().getSExtValue();
  };
  auto triple = [&](StringRef name) {
    SmallVector<int64_t> values;
    if (auto array = config.getAs<ArrayAttr>(name))
      for (Attribute entry : array)
        values.push_back(cast<IntegerAttr>(entry).getValue().getSExtValue());
    return values;
  };
  if (config.contains("tile")) {
    SmallVector<int64_t> sizes = triple("tile");
    if (sizes.size() != 3 ||
        llvm::any_of(sizes, [](int64_t n) { return n < 1 || n > 1024; }))
      return matmul.emitOpError("has a 'greta.config' whose 'tile' is not "
                                "three extents from 1 to 1024");
    tile.m = sizes[0];
    tile.n = sizes[1];
    tile.k = sizes[2];
    tile.slice = tile.stages == 1 ? tile.instruction->k : tile.k;
  }
  if (config.contains("instruction")) {
    SmallVector<int64_t> sizes = triple("instruction");
    auto found = llvm::find_if(available, [&](const MatrixInstruction *mi) {
      return sizes == SmallVector<int64_t>{mi->m, mi->n, mi->k};
    });
    if (found == available.end())
      return matmul.emitOpError("has a 'greta.config' whose 'instruction' the "
                                "target does not have for these operands");
    tile.instruction = *found;
  }
  tile.opaque = config.contains("opaque");
  if (tile.opaque && tile.instruction->name != "coopmat")
    return matmul.emitOpError("has a 'greta.config' with 'opaque', which "
                              "cooperative matrices may be");
  number("waves", tile.waves);
  number("stages", tile.stages);
  number("slice", tile.slice);
  number("group", tile.group);
  if (!llvm::isPowerOf2_64(std::max<int64_t>(tile.waves, 0)) ||
      tile.stages < 1 || tile.stages > 2 || tile.group < 1)
    return matmul.emitOpError("has a 'greta.config' whose waves are no power "
                              "of two, stages not 1 or 2, or group not "
                              "positive");
  return success();
}
