//===- Config.cpp - the attribute `config` of greta.kernel ----------------===//

#include "Configure.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace greta;

DictionaryAttr greta::toAttribute(MLIRContext *context,
                                  const KernelConfig &config) {
  Builder builder(context);
  SmallVector<Attribute> spaces;
  for (const SpaceConfig &space : config.spaces) {
    NamedAttrList entries;
    if (!space.flat)
      entries.set("rows", builder.getI64ArrayAttr(space.rows));
    entries.set("columns", builder.getI64IntegerAttr(space.columns));
    if (space.flat)
      entries.set("flat", builder.getUnitAttr());
    if (space.loop)
      entries.set("loop", builder.getUnitAttr());
    if (space.depth)
      entries.set("depth", builder.getI64IntegerAttr(space.depth));
    if (space.run)
      entries.set("run", builder.getI64IntegerAttr(space.run));
    if (space.run || space.unroll > 1)
      entries.set("unroll", builder.getI64IntegerAttr(space.unroll));
    if (space.matrix)
      entries.set("matrix", space.matrix);
    if (space.pipeline)
      entries.set("pipeline", space.pipeline);
    if (space.group > 1)
      entries.set("group", builder.getI64IntegerAttr(space.group));
    if (space.chiplets > 1)
      entries.set("chiplets", builder.getI64IntegerAttr(space.chiplets));
    if (space.split > 1)
      entries.set("split", builder.getI64IntegerAttr(space.split));
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
      space.columns = integerIn(dictionary, "columns");
      space.depth = integerIn(dictionary, "depth");
      space.run = integerIn(dictionary, "run");
      space.unroll = std::max<int64_t>(1, integerIn(dictionary, "unroll"));
      space.flat = dictionary.contains("flat");
      space.loop = dictionary.contains("loop");
      space.matrix = dictionary.getAs<tile::MatrixAttr>("matrix");
      space.pipeline = dictionary.getAs<tile::PipelineAttr>("pipeline");
      space.group = std::max<int64_t>(1, integerIn(dictionary, "group"));
      space.chiplets = std::max<int64_t>(1, integerIn(dictionary, "chiplets"));
      space.split = std::max<int64_t>(1, integerIn(dictionary, "split"));
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
