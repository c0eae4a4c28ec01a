//===- ConfigureOverride.cpp - the attribute greta.config -----------------===//
//
// A source or a tuning database may ask for each part of a tile, in place of
// the choice. An entry of a source may be for some targets only:
//
//   greta.config = {waves = 4, gfx942 = {tile = [256, 256, 64]},
//                   "vulkan:nvidia" = {tile = [160, 160, 64]}}
//
//===----------------------------------------------------------------------===//

#include "TileModel.h"
#include "greta/Configure/Tuning.h"

using namespace mlir;
using namespace greta;

namespace {
/// An entry of a configuration that is an integer.
struct Part {
  StringLiteral name;
  int64_t Tile::*member;
  unsigned kinds;
  int64_t least, most;
  bool isPower = false; // of two
};
} // namespace

static constexpr Part parts[] = {
    {"group", &Tile::group, MatrixGemm, 1, INT32_MAX},
    {"run", &Tile::run, SkinnyGemm, 1, INT32_MAX},
    {"slice", &Tile::slice, MatrixGemm, 1, INT32_MAX},
    {"split", &Tile::split, AnyGemm | Attention, 1, mostSplit},
    {"stages", &Tile::stages, MatrixGemm, 0, 3},
    {"unroll", &Tile::unroll, SkinnyGemm | Attention, 1, INT32_MAX, true},
    {"waves", &Tile::waves, AnyGemm | Attention | AttentionGradients, 1,
     INT32_MAX, true}};

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
  const TuningEntry *entry =
      limits.tuning ? limits.tuning->find(key, limits.row) : nullptr;
  if (!entry)
    entry = TuningDatabase::shipped().find(key, limits.row);
  // A family's variant without matrix instructions has the family's name.
  if (entry && entry->config.get("instruction") &&
      instructionsFor(space.matmul, limits).empty())
    return nullptr;
  return entry;
}

static StringRef nameOf(TileKind kind) {
  return kind == MatrixGemm   ? "a GEMM on matrix units"
         : kind == SkinnyGemm ? "a skinny GEMM"
         : kind == SimtGemm   ? "a GEMM without matrix instructions"
         : kind == Attention  ? "attention"
                              : "gradients of attention";
}

/// Returns the integers of an array; none: it has other elements.
static std::optional<SmallVector<int64_t>> numbersOf(Attribute value) {
  auto array = dyn_cast<ArrayAttr>(value);
  if (!array)
    return std::nullopt;
  SmallVector<int64_t> numbers;
  for (Attribute entry : array) {
    auto integer = dyn_cast<IntegerAttr>(entry);
    if (!integer || !integer.getValue().isSignedIntN(32))
      return std::nullopt;
    numbers.push_back(integer.getInt());
  }
  return numbers;
}

/// Takes the extents of a tile: M, N and K of a GEMM, own rows and others of
/// attention. Parts of the tile that depend on the old ones are reset.
static std::optional<std::string> takeExtents(Tile &tile, Attribute value,
                                              TileKind kind) {
  // Skinny GEMMs go far along K.
  const int64_t most = kind == SkinnyGemm ? 65536 : 1024;
  bool isGemm = kind & AnyGemm;
  std::optional<SmallVector<int64_t>> sizes = numbersOf(value);
  auto isWrong = [&](int64_t n) {
    return n > most || (isGemm ? n < 1 : n < 16 || !llvm::isPowerOf2_64(n));
  };
  if (!sizes || sizes->size() != (isGemm ? 3 : 2) ||
      llvm::any_of(*sizes, isWrong))
    return (isGemm ? "whose 'tile' is not three extents from 1 to "
                   : "whose 'tile' is not two powers of two from 16 to ") +
           std::to_string(most) +
           (isGemm              ? ""
            : kind == Attention ? ", rows and keys"
                                : ", what is added up and what the loop goes "
                                  "over");
  tile.m = sizes->front();
  tile.k = sizes->back();
  if (!isGemm)
    return std::nullopt;
  tile.n = (*sizes)[1];
  tile.split = 1;
  if (kind == MatrixGemm)
    tile.slice = tile.stages == 1 ? tile.instruction->k : tile.k;
  return std::nullopt;
}

static std::optional<std::string> takePart(Tile &tile, NamedAttribute entry,
                                           TileKind kind) {
  StringRef name = entry.getName();
  const Part *part = llvm::find_if(parts, [&](const Part &part) {
    return part.name == name && (part.kinds & kind);
  });
  if (part == std::end(parts)) {
    std::string why = ("with '" + name + "', which " + nameOf(kind) +
                       " cannot have; there are 'tile'")
                          .str();
    for (const Part &known : parts)
      if (known.kinds & kind)
        why += (", '" + known.name + "'").str();
    return why +
           (kind == MatrixGemm ? ", 'instruction', 'opaque', 'direct'" : "");
  }
  auto integer = dyn_cast<IntegerAttr>(entry.getValue());
  int64_t value = integer && integer.getValue().isSignedIntN(32)
                      ? integer.getInt()
                      : INT64_MIN;
  if (value < part->least || value > part->most ||
      (part->isPower && !llvm::isPowerOf2_64(value)))
    return ("whose '" + name + "' is not " +
            (part->isPower
                 ? "a power of two"
                 : "from " + Twine(part->least) + " to " + Twine(part->most)))
        .str();
  tile.*part->member = value;
  return std::nullopt;
}

/// Replaces parts of `tile` by those that `config` has for its kind; why that
/// cannot be, as "whose ..".
static std::optional<std::string>
takeConfig(Tile &tile, DictionaryAttr config, TileKind kind,
           ArrayRef<const MatrixInstruction *> available) {
  if (Attribute extents = config.get("tile"))
    if (std::optional<std::string> why = takeExtents(tile, extents, kind))
      return why;
  tile.opaque = tile.direct = false;
  for (NamedAttribute entry : config) {
    StringRef name = entry.getName();
    if (name == "tile")
      continue;
    if (kind == MatrixGemm && name == "instruction") {
      std::optional<SmallVector<int64_t>> sizes = numbersOf(entry.getValue());
      auto found = llvm::find_if(available, [&](const MatrixInstruction *mi) {
        return sizes == SmallVector<int64_t>{mi->m, mi->n, mi->k};
      });
      if (found == available.end())
        return "whose 'instruction' the target does not have for these "
               "operands";
      tile.instruction = *found;
    } else if (kind == MatrixGemm &&
               llvm::is_contained({"opaque", "direct"}, name)) {
      if (!isa<UnitAttr>(entry.getValue()))
        return ("whose '" + name + "' has a value; it stands alone").str();
      (name == "opaque" ? tile.opaque : tile.direct) = true;
    } else if (std::optional<std::string> why = takePart(tile, entry, kind)) {
      return why;
    }
  }
  if (tile.opaque && tile.instruction->name != "coopmat")
    return "with 'opaque', which cooperative matrices may be";
  return std::nullopt;
}

LogicalResult greta::takeAsked(KernelKind &kind, const Space &space,
                               const Limits &limits) {
  MatmulOp matmul = space.matmul;
  Operation *op = matmul ? matmul : space.alone;
  // The tile of the launch's first GEMM has taken what is asked for. A family's
  // variant without matrix instructions keeps the choice.
  Limits full(limits.row, /*useMatrix=*/true);
  if (kind.kind == Rows || limits.isLedByMatrix() ||
      (kind.kind == SimtGemm && !instructionsFor(matmul, full).empty()) ||
      (space.alone && limits.matrix.size() < full.matrix.size()))
    return success();
  FailureOr<DictionaryAttr> config = configFor(op, limits.row);
  if (failed(config))
    return failure();
  bool isInSource = *config != nullptr;
  if (!isInSource) {
    const TuningEntry *entry = matmul ? measuredFor(space, limits) : nullptr;
    if (!entry)
      return success();
    config = toAttribute(op->getContext(), entry->config);
  }
  Tile asked = kind.tile;
  std::optional<std::string> why =
      takeConfig(asked, *config, kind.kind, kind.available);
  // Parts of skinny GEMMs are whole blocks.
  while (asked.run && asked.split > 1 &&
         matmul.getDepth() % (asked.k * asked.split))
    --asked.split;
  if (!why && (why = kind.whyNot(asked)))
    why = "that does not fit: " + *why;
  if (!why)
    kind.tile = asked;
  else if (isInSource)
    return op->emitOpError("has a 'greta.config' ") << *why;
  // An entry that ships is also for shapes near by, which it may not fit.
  else if (limits.tuning)
    op->emitRemark("the tuning database has a configuration for ")
        << limits.row.name << " " << *why << "; the model's choice is taken";
  return success();
}

llvm::json::Object greta::configOf(const Tile &tile) {
  llvm::json::Object config{
      {"tile", llvm::json::Array{tile.m, tile.n, tile.k}}};
  if (const MatrixInstruction *mi = tile.instruction)
    config["instruction"] = llvm::json::Array{mi->m, mi->n, mi->k};
  for (const Part &part : parts)
    if ((part.kinds & tile.kindOfGemm()) &&
        (part.name != "split" || tile.split > 1))
      config[part.name] = tile.*part.member;
  if (tile.opaque)
    config["opaque"] = true;
  if (tile.direct)
    config["direct"] = true;
  return config;
}
