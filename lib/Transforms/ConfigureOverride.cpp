//===- ConfigureOverride.cpp - the attribute greta.config -----------------===//
//
// What a source or a tuning database asks for in place of the choice, part by
// part. In a source an entry may be for some targets only:
//
//   greta.config = {waves = 4, gfx942 = {tile = [256, 256, 64]},
//                   "vulkan:nvidia" = {tile = [160, 160, 64]}}
//
//===----------------------------------------------------------------------===//

#include "TileModel.h"

using namespace mlir;
using namespace greta;

static bool isNumber(Attribute entry) {
  auto integer = dyn_cast<IntegerAttr>(entry);
  return integer && integer.getValue().isSignedIntN(32);
}

static bool isKnown(NamedAttribute entry) {
  if (llvm::is_contained({"tile", "instruction"}, entry.getName())) {
    auto array = dyn_cast<ArrayAttr>(entry.getValue());
    return array && llvm::all_of(array, isNumber);
  }
  if (entry.getName() == "opaque")
    return isa<UnitAttr>(entry.getValue());
  return llvm::is_contained({"waves", "stages", "slice", "group", "split"},
                            entry.getName()) &&
         isNumber(entry.getValue());
}

FailureOr<DictionaryAttr> greta::configFor(MatmulOp matmul,
                                           const TargetRow &row) {
  Attribute attribute = matmul->getAttr("greta.config");
  if (!attribute)
    return DictionaryAttr();
  auto config = dyn_cast<DictionaryAttr>(attribute);
  if (!config)
    return matmul.emitOpError("has a 'greta.config' that is no dictionary");
  NamedAttrList entries;
  SmallVector<DictionaryAttr> targets;
  for (NamedAttribute entry : config) {
    auto part = dyn_cast<DictionaryAttr>(entry.getValue());
    if (!part) {
      entries.append(entry);
      continue;
    }
    llvm::Expected<SmallVector<const TargetRow *>> rows =
        parseTargets(entry.getName());
    if (!rows)
      return matmul.emitOpError("has a 'greta.config' with a dictionary for '")
             << entry.getName().getValue()
             << "': " << llvm::toString(rows.takeError());
    if (llvm::is_contained(*rows, &row))
      targets.push_back(part);
  }
  // By name, so that vulkan:nvidia comes after vulkan.
  for (DictionaryAttr part : targets)
    for (NamedAttribute entry : part)
      entries.set(entry.getName(), entry.getValue());
  if (entries.empty())
    return DictionaryAttr();
  return entries.getDictionary(matmul.getContext());
}

/// Parts of a product that may be asked for.
static constexpr int64_t mostSplit = 1024;

FailureOr<std::optional<int64_t>> greta::askedSplit(MatmulOp matmul,
                                                    const TargetRow &row) {
  FailureOr<DictionaryAttr> config = configFor(matmul, row);
  if (failed(config))
    return failure();
  auto asked = *config ? config->getAs<IntegerAttr>("split") : nullptr;
  if (!asked)
    return std::optional<int64_t>();
  if (asked.getValue().slt(1) || asked.getValue().sgt(mostSplit))
    return matmul.emitOpError("has a 'greta.config' whose 'split' is not from "
                              "1 to ")
           << mostSplit;
  bool splits =
      !ShapedType::isDynamic(matmul.getDepth()) && !matmul.getBatchRank();
  if (!splits && !asked.getValue().isOne())
    return matmul.emitOpError("has a 'greta.config' that does not fit: its "
                              "'split' needs K in the type, and no batch");
  return std::optional<int64_t>(asked.getInt());
}

std::optional<std::string>
greta::applyConfig(Tile &tile, DictionaryAttr config,
                   ArrayRef<const MatrixInstruction *> available) {
  if (!llvm::all_of(config, isKnown))
    return "that is not made of 'tile' and 'instruction', arrays of integers, "
           "'waves', 'stages', 'slice', 'group' and 'split', integers below "
           "2^31, and 'opaque'";
  auto number = [&](StringRef name, int64_t &value) {
    if (auto integer = config.getAs<IntegerAttr>(name))
      value = integer.getValue().getSExtValue();
  };
  auto numbers = [&](StringRef name) {
    SmallVector<int64_t> values;
    if (auto array = config.getAs<ArrayAttr>(name))
      for (Attribute entry : array)
        values.push_back(cast<IntegerAttr>(entry).getValue().getSExtValue());
    return values;
  };
  if (config.contains("tile")) {
    SmallVector<int64_t> sizes = numbers("tile");
    if (sizes.size() != 3 ||
        llvm::any_of(sizes, [](int64_t n) { return n < 1 || n > 1024; }))
      return "whose 'tile' is not three extents from 1 to 1024";
    tile.m = sizes[0];
    tile.n = sizes[1];
    tile.k = sizes[2];
    tile.slice = tile.stages == 1 ? tile.instruction->k : tile.k;
    tile.split = 1;
  }
  if (config.contains("instruction")) {
    SmallVector<int64_t> sizes = numbers("instruction");
    auto found = llvm::find_if(available, [&](const MatrixInstruction *mi) {
      return sizes == SmallVector<int64_t>{mi->m, mi->n, mi->k};
    });
    if (found == available.end())
      return "whose 'instruction' the target does not have for these operands";
    tile.instruction = *found;
  }
  tile.opaque = config.contains("opaque");
  if (tile.opaque && tile.instruction->name != "coopmat")
    return "with 'opaque', which cooperative matrices may be";
  number("waves", tile.waves);
  number("stages", tile.stages);
  number("slice", tile.slice);
  number("group", tile.group);
  number("split", tile.split);
  if (tile.split < 1 || tile.split > mostSplit)
    return "whose 'split' is not from 1 to " + std::to_string(mostSplit);
  if (!llvm::isPowerOf2_64(std::max<int64_t>(tile.waves, 0)) ||
      tile.stages < 1 || tile.stages > 2 || tile.group < 1)
    return "whose waves are no power of two, stages not 1 or 2, or group not "
           "positive";
  return std::nullopt;
}

llvm::json::Object greta::configOf(const Tile &tile) {
  const MatrixInstruction &mi = *tile.instruction;
  llvm::json::Object config{
      {"tile", {tile.m, tile.n, tile.k}},
      {"instruction", {mi.m, mi.n, mi.k}},
      {"waves", tile.waves},
      {"stages", tile.stages},
      {"slice", tile.slice},
      {"group", tile.group},
  };
  if (tile.split > 1)
    config["split"] = tile.split;
  if (tile.opaque)
    config["opaque"] = true;
  return config;
}
