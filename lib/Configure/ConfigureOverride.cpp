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
#include "greta/Configure/Tuning.h"
#include <array>

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
  if (llvm::is_contained({"opaque", "direct"}, entry.getName()))
    return isa<UnitAttr>(entry.getValue());
  return llvm::is_contained({"waves", "stages", "slice", "group", "split"},
                            entry.getName()) &&
         isNumber(entry.getValue());
}

FailureOr<DictionaryAttr> greta::configFor(Operation *op,
                                           const TargetRow &row) {
  Attribute attribute = op->getAttr("greta.config");
  if (!attribute)
    return DictionaryAttr();
  auto config = dyn_cast<DictionaryAttr>(attribute);
  if (!config)
    return op->emitOpError("has a 'greta.config' that is no dictionary");
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
      return op->emitOpError("has a 'greta.config' with a dictionary for '")
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
  return entries.getDictionary(op->getContext());
}

const TuningEntry *greta::measuredFor(const Space &space,
                                      const Limits &limits) {
  TuningKey key = tuningKey(space, limits.row);
  const TuningEntry *entry = limits.tuning ? limits.tuning->find(key) : nullptr;
  if (!entry)
    entry = TuningDatabase::shipped().find(key);
  // A family's variant without matrix instructions has the family's name.
  if (entry && entry->config.get("instruction") &&
      instructionsFor(space.matmul, limits).empty())
    return nullptr;
  return entry;
}

FailureOr<bool> greta::applyAsked(
    const Space &space, const Limits &limits,
    llvm::function_ref<std::optional<std::string>(DictionaryAttr)> apply) {
  MatmulOp matmul = space.matmul;
  FailureOr<DictionaryAttr> asked = configFor(matmul, limits.row);
  if (failed(asked))
    return failure();
  if (*asked) {
    if (std::optional<std::string> why = apply(*asked))
      return matmul.emitOpError("has a 'greta.config' ") << *why;
    return true;
  }
  const TuningEntry *entry = measuredFor(space, limits);
  if (!entry)
    return false;
  std::optional<std::string> why =
      apply(toAttribute(matmul.getContext(), entry->config));
  // An entry that ships is also for shapes near by, which it may not fit.
  if (why && limits.tuning)
    matmul.emitRemark("the tuning database has a configuration for ")
        << limits.row.name << " " << *why << "; the model's choice is taken";
  return !why;
}

/// Sets `value` to an entry's, if there is one.
static void take(DictionaryAttr config, StringRef name, int64_t &value) {
  if (auto integer = config.getAs<IntegerAttr>(name))
    value = integer.getValue().getSExtValue();
}

static SmallVector<int64_t> numbersOf(DictionaryAttr config, StringRef name) {
  SmallVector<int64_t> values;
  if (auto array = config.getAs<ArrayAttr>(name))
    for (Attribute entry : array)
      values.push_back(cast<IntegerAttr>(entry).getValue().getSExtValue());
  return values;
}

/// A block's extent that may be asked for; skinny GEMMs go far along K.
static constexpr int64_t mostExtent = 1024, mostDepthOfSkinny = 65536;

/// M, N and K; none: they are not three from 1 to `most`.
static std::optional<std::array<int64_t, 3>> tileOf(DictionaryAttr config,
                                                    int64_t most = mostExtent) {
  SmallVector<int64_t> sizes = numbersOf(config, "tile");
  if (sizes.size() != 3 ||
      llvm::any_of(sizes, [&](int64_t n) { return n < 1 || n > most; }))
    return std::nullopt;
  return std::array<int64_t, 3>{sizes[0], sizes[1], sizes[2]};
}

static std::string noTile(int64_t most = mostExtent) {
  return "whose 'tile' is not three extents from 1 to " + std::to_string(most);
}

static std::optional<std::string> whyNotSplit(int64_t split) {
  if (split >= 1 && split <= mostSplit)
    return std::nullopt;
  return "whose 'split' is not from 1 to " + std::to_string(mostSplit);
}

std::optional<std::string>
greta::applyConfig(Tile &tile, DictionaryAttr config,
                   ArrayRef<const MatrixInstruction *> available) {
  if (!llvm::all_of(config, isKnown))
    return "that is not made of 'tile' and 'instruction', arrays of integers, "
           "'waves', 'stages', 'slice', 'group' and 'split', integers below "
           "2^31, 'opaque' and 'direct'";
  if (config.contains("tile")) {
    auto sizes = tileOf(config);
    if (!sizes)
      return noTile();
    std::tie(tile.m, tile.n, tile.k) = std::tuple_cat(*sizes);
    tile.slice = tile.stages == 1 ? tile.instruction->k : tile.k;
    tile.split = 1;
  }
  if (config.contains("instruction")) {
    SmallVector<int64_t> sizes = numbersOf(config, "instruction");
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
  tile.direct = config.contains("direct");
  take(config, "waves", tile.waves);
  take(config, "stages", tile.stages);
  take(config, "slice", tile.slice);
  take(config, "group", tile.group);
  take(config, "split", tile.split);
  if (std::optional<std::string> why = whyNotSplit(tile.split))
    return why;
  if (!llvm::isPowerOf2_64(std::max<int64_t>(tile.waves, 0)) ||
      tile.stages < 0 || tile.stages > 3 || tile.group < 1)
    return "whose waves are no power of two, stages not 0 to 3, or group not "
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
  if (tile.direct)
    config["direct"] = true;
  return config;
}

/// Takes what a configuration says of blocks without matrix instructions.
static std::optional<std::string>
applyBlocks(Choice &choice, DictionaryAttr config, MatmulOp matmul,
            const Limits &limits, WhyNot whyNot) {
  bool skinny = choice.space.run != 0;
  auto isPart = [&](NamedAttribute entry) {
    StringRef name = entry.getName();
    if (name == "tile")
      return isKnown(entry);
    bool isNamed = llvm::is_contained({"waves", "split"}, name) ||
                   (skinny && llvm::is_contained({"run", "unroll"}, name));
    return isNamed && isNumber(entry.getValue());
  };
  if (!llvm::all_of(config, isPart))
    return std::string("that is not made of 'tile', an array of integers, ") +
           (skinny ? "'waves', 'run', 'unroll' and 'split'"
                   : "'waves' and 'split'") +
           ", integers below 2^31, which are what a " +
           (skinny ? "skinny GEMM has"
                   : "GEMM without matrix instructions has");
  SpaceSchedule &space = choice.space;
  if (config.contains("tile")) {
    int64_t most = skinny ? mostDepthOfSkinny : mostExtent;
    auto sizes = tileOf(config, most);
    if (!sizes)
      return noTile(most);
    std::tie(space.rows.back(), space.columns, space.depth) =
        std::tuple_cat(*sizes);
    choice.space.split = 1;
  }
  int64_t waves = choice.block / limits.wave;
  take(config, "waves", waves);
  take(config, "run", space.run);
  take(config, "unroll", space.unroll);
  take(config, "split", choice.space.split);
  if (!llvm::isPowerOf2_64(std::max<int64_t>(waves, 0)) || space.run < 0 ||
      (skinny && space.run < 1) || space.unroll < 1)
    return "whose waves are no power of two, or 'run' or 'unroll' not positive";
  if (std::optional<std::string> why = whyNotSplit(choice.space.split))
    return why;
  choice.block = waves * limits.wave;
  int64_t depth = matmul.getDepth();
  // So many parts at most: none is empty, and those of skinny GEMMs are whole
  // blocks.
  if (!skinny)
    choice.space.split =
        partsOf(llvm::divideCeil(std::max<int64_t>(depth, 1), space.depth),
                choice.space.split);
  while (skinny && choice.space.split > 1 &&
         depth % (space.depth * choice.space.split))
    --choice.space.split;
  if (std::optional<std::string> why = whyNot(choice))
    return "that does not fit: " + *why;
  return std::nullopt;
}

FailureOr<Choice> greta::overrideBlocks(const Space &space,
                                        const Limits &limits,
                                        const Choice &choice, WhyNot whyNot) {
  Choice asked;
  auto apply = [&](DictionaryAttr config) {
    asked = choice;
    return applyBlocks(asked, config, space.matmul, limits, whyNot);
  };
  FailureOr<bool> isAsked = applyAsked(space, limits, apply);
  if (failed(isAsked))
    return failure();
  return *isAsked ? asked : choice;
}

std::optional<std::string> greta::applyConfig(Schedule &attention,
                                              DictionaryAttr config,
                                              bool isBackward) {
  auto isWhole = [](NamedAttribute entry) {
    return llvm::is_contained({"tile", "waves"}, entry.getName());
  };
  if (isBackward && !llvm::all_of(config, isWhole))
    return "that is not made of 'tile' and 'waves', which are what gradients "
           "of attention have";
  auto isPart = [](NamedAttribute entry) {
    return entry.getName() == "tile"
               ? isKnown(entry)
               : llvm::is_contained({"waves", "unroll", "split"},
                                    entry.getName()) &&
                     isNumber(entry.getValue());
  };
  if (!llvm::all_of(config, isPart))
    return "that is not made of 'tile', an array of integers, 'waves', "
           "'unroll' and 'split', integers below 2^31, which are what "
           "attention has";
  SpaceSchedule &space = attention.spaces.front();
  int64_t heads = space.rows[1];
  if (config.contains("tile")) {
    SmallVector<int64_t> sizes = numbersOf(config, "tile");
    if (sizes.size() != 2 || llvm::any_of(sizes, [](int64_t n) {
          return n < 16 || n > mostExtent || !llvm::isPowerOf2_64(n);
        }))
      return "whose 'tile' is not two powers of two from 16 to " +
             std::to_string(mostExtent) +
             (isBackward ? ", what is added up and what the loop goes over"
                         : ", rows and keys");
    space.rows[2] = std::max<int64_t>(1, sizes[0] / heads);
    space.depth = sizes[1];
  }
  take(config, "waves", attention.waves);
  take(config, "unroll", space.unroll);
  take(config, "split", space.split);
  if (!llvm::isPowerOf2_64(std::max<int64_t>(attention.waves, 0)) ||
      !llvm::isPowerOf2_64(std::max<int64_t>(space.unroll, 0)))
    return "whose 'waves' or 'unroll' is no power of two";
  return whyNotSplit(space.split);
}

llvm::json::Object greta::configOf(const Choice &choice, const Limits &limits) {
  const SpaceSchedule &space = choice.space;
  llvm::json::Object config{
      {"tile", {space.rows.back(), space.columns, space.depth}},
      {"waves", choice.block / limits.wave},
  };
  if (space.run) {
    config["run"] = space.run;
    config["unroll"] = space.unroll;
  }
  if (choice.space.split > 1)
    config["split"] = choice.space.split;
  return config;
}
