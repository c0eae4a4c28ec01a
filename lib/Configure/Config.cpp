//===- Config.cpp - the attribute `config` of greta.kernel ----------------===//

#include "Configure.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace greta;

namespace {
/// An integer of a space's entry, and what it is where the entry has none.
struct IntegerField {
  StringLiteral name;
  int64_t SpaceConfig::*member;
  int64_t least;
};
} // namespace

static constexpr IntegerField integerFields[] = {
    {"columns", &SpaceConfig::columns, 0},
    {"depth", &SpaceConfig::depth, 0},
    {"run", &SpaceConfig::run, 0},
    {"unroll", &SpaceConfig::unroll, 1},
    {"group", &SpaceConfig::group, 1},
    {"chiplets", &SpaceConfig::chiplets, 1},
    {"split", &SpaceConfig::split, 1}};

DictionaryAttr greta::toAttribute(MLIRContext *context,
                                  const KernelConfig &config) {
  Builder builder(context);
  SmallVector<Attribute> spaces;
  for (const SpaceConfig &space : config.spaces) {
    NamedAttrList entries;
    for (const IntegerField &field : integerFields)
      if (int64_t value = space.*field.member;
          value > field.least || (space.run && field.name == "unroll"))
        entries.set(field.name, builder.getI64IntegerAttr(value));
    if (!space.flat)
      entries.set("rows", builder.getI64ArrayAttr(space.rows));
    if (space.flat)
      entries.set("flat", builder.getUnitAttr());
    if (space.loop)
      entries.set("loop", builder.getUnitAttr());
    if (space.matrix)
      entries.set("matrix", space.matrix);
    if (space.pipeline)
      entries.set("pipeline", space.pipeline);
    spaces.push_back(entries.getDictionary(context));
  }
  NamedAttrList entries;
  if (config.waves) {
    entries.set("waves", builder.getI64IntegerAttr(config.waves));
  } else {
    entries.set("block_size", builder.getI64IntegerAttr(config.blockSize));
    entries.set("wave_size", builder.getI64IntegerAttr(config.waveSize));
  }
  if (config.gridLimit)
    entries.set("grid_limit", builder.getI64IntegerAttr(config.gridLimit));
  entries.set("spaces", builder.getArrayAttr(spaces));
  return entries.getDictionary(context);
}

/// A positive integer; 0 when it is missing or something else.
static int64_t integerIn(DictionaryAttr dictionary, StringRef name) {
  auto value = dictionary.getAs<IntegerAttr>(name);
  return value && value.getValue().isSignedIntN(32)
             ? std::max<int64_t>(0, value.getInt())
             : 0;
}

FailureOr<KernelConfig> greta::getConfig(KernelOp kernel) {
  DictionaryAttr attribute = kernel.getConfigAttr();
  if (!attribute)
    return kernel.emitOpError("has no 'config'; run greta-configure first");
  KernelConfig config;
  config.blockSize = integerIn(attribute, "block_size");
  config.waveSize = integerIn(attribute, "wave_size");
  config.waves = integerIn(attribute, "waves");
  config.gridLimit = integerIn(attribute, "grid_limit");
  auto spaces = attribute.getAs<ArrayAttr>("spaces");
  if ((!config.waves && (!config.blockSize || !config.waveSize)) || !spaces ||
      spaces.size() != kernel.getSpaces().size())
    return kernel.emitOpError("has a 'config' without positive 'block_size' "
                              "and 'wave_size', or 'waves', and one entry in "
                              "'spaces' per region");
  FailureOr<SmallVector<Space>> infos = analyzeSpaces(kernel);
  if (failed(infos))
    return failure();
  for (auto [entry, info] : llvm::zip(spaces, *infos)) {
    auto dictionary = dyn_cast<DictionaryAttr>(entry);
    SpaceConfig space;
    if (dictionary) {
      for (const IntegerField &field : integerFields)
        space.*field.member =
            std::max(field.least, integerIn(dictionary, field.name));
      space.flat = dictionary.contains("flat");
      space.loop = dictionary.contains("loop");
      space.matrix = dictionary.getAs<tile::MatrixAttr>("matrix");
      space.pipeline = dictionary.getAs<tile::PipelineAttr>("pipeline");
      if (auto rows = dictionary.getAs<ArrayAttr>("rows"))
        for (Attribute extent : rows)
          if (auto integer = dyn_cast<IntegerAttr>(extent))
            space.rows.push_back(integer.getInt());
    }
    bool rowsFit =
        space.flat
            ? info.isFlat && space.rows.empty()
            : space.rows.size() == info.groups.size() &&
                  llvm::all_of(space.rows, [](int64_t n) { return n > 0; });
    bool hasDepth = info.matmul || (info.alone && !getUpdatedCache(info.alone));
    if (!space.columns || !rowsFit || (hasDepth && !space.depth) ||
        (info.heads && !space.run &&
         space.columns != constantOf(info.columns(kernel.getContext()))))
      return kernel.emitOpError("has a 'config' whose space ")
             << config.spaces.size() << " needs 'columns', and 'rows' for "
             << info.groups.size()
             << " groups of row dimensions, and for a GEMM 'depth' and "
                "whole heads, for attention 'depth'";
    if (!space.run && !fitsPacked(info, space.depth))
      return kernel.emitOpError("has a 'config' whose space ")
             << config.spaces.size() << " has 'depth' " << space.depth
             << "; of packed weights it takes a power of two, 8 to eight "
                "groups";
    if (space.run && !fitsSkinny(info, space))
      return kernel.emitOpError("has a 'config' whose space ")
             << config.spaces.size() << " has 'run' " << space.run
             << "; that is for GEMMs of a static depth, of which it and "
                "'depth' take whole runs, powers of two";
    if (space.split > 1 && !fitsSplit(info, space))
      return kernel.emitOpError("has a 'config' whose space ")
             << config.spaces.size() << " does not give each of the "
             << space.split << " parts of its GEMM blocks along a static K";
    // A row that is reduced belongs to one workgroup.
    std::optional<int64_t> columns =
        constantOf(info.columns(kernel.getContext()));
    if (info.hasReduction && !space.loop &&
        (!columns || *columns > space.columns))
      return kernel.emitOpError("has a 'config' whose space ")
             << config.spaces.size() << " reduces rows longer than its "
             << space.columns << " 'columns'; set 'loop'";
    config.spaces.push_back(std::move(space));
  }
  return config;
}
