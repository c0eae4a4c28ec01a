//===- Manifest.cpp - what is in a package, as JSON -----------------------===//
//
// docs/internals/package.md is the schema; this file writes it and nothing else
// does.
//
//===----------------------------------------------------------------------===//

#include "greta/Fuse/Symbols.h"
#include "greta/Package/Compile.h"
#include "greta/Package/Package.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/SHA256.h"
#include <cmath>
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace greta;
using Json = nlohmann::ordered_json;

static Json expression(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return "d" + std::to_string(symbol.getPosition());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  return Json::array({operatorName(expr).str(), expression(binary.getLHS()),
                      expression(binary.getRHS())});
}

static Json expressions(ArrayRef<AffineExpr> exprs) {
  Json list = Json::array();
  for (AffineExpr expr : exprs)
    list.push_back(expression(expr));
  return list;
}

static Json tensorJson(const TensorSpec &spec, const char *access) {
  Json json;
  if (!spec.name.empty())
    json["name"] = spec.name;
  // No buffer holds i1, which a scalar may be.
  json["dtype"] = spec.elementType.isInteger(1)
                      ? "i1"
                      : getDtypeName(spec.elementType).str();
  if (spec.isScalar) {
    json["kind"] = "scalar";
    return json;
  }
  json["shape"] = expressions(spec.shape);
  if (access)
    json["access"] = spec.tied ? "readwrite" : access;
  if (spec.tied)
    json["tied"] = *spec.tied;
  if (spec.isZeroed)
    json["zeroed"] = true;
  if (spec.alignment != TensorSpec().alignment)
    json["align"] = spec.alignment;
  if (spec.maxBytes)
    json["max_bytes"] = *spec.maxBytes;
  if (spec.holdsAddresses)
    json["addresses"] = true;
  return json;
}

static Json kernelArg(const KernelArg &arg) {
  switch (arg.kind) {
  case KernelArg::Arg:
    return {{"kind", "arg"}, {"index", arg.index}};
  case KernelArg::Result:
    return {{"kind", "result"}, {"index", arg.index}};
  case KernelArg::Temp:
    return {{"kind", "temp"}, {"index", arg.index}};
  case KernelArg::Scalar: {
    Json json = {{"kind", arg.isWide ? "i64" : "i32"},
                 {"value", expression(arg.value)}};
    if (arg.largest)
      json["max"] = *arg.largest;
    return json;
  }
  }
  llvm_unreachable("an argument without a kind");
}

/// Converts an attribute: an integer, string, boolean, list or dictionary.
static Json attribute(Attribute attr) {
  if (auto list = dyn_cast<ArrayAttr>(attr)) {
    Json json = Json::array();
    for (Attribute entry : list)
      json.push_back(attribute(entry));
    return json;
  }
  if (auto entries = dyn_cast<DictionaryAttr>(attr)) {
    Json json = Json::object();
    for (NamedAttribute entry : entries)
      json[entry.getName().str()] = attribute(entry.getValue());
    return json;
  }
  if (auto flag = dyn_cast<BoolAttr>(attr))
    return flag.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(attr))
    return integer.getInt();
  if (auto string = dyn_cast<StringAttr>(attr))
    return string.getValue().str();
  std::string text;
  llvm::raw_string_ostream(text) << attr;
  return text;
}

static Json requirements(const Requirements &needs) {
  Json json = Json::object();
  if (!needs.arch.empty())
    json["arch"] = needs.arch;
  if (needs.subgroupSize)
    json["subgroup_size"] = needs.subgroupSize;
  if (!needs.features.empty())
    json["features"] =
        std::vector<std::string>(needs.features.begin(), needs.features.end());
  if (!needs.subgroupOps.empty())
    json["subgroup_ops"] = std::vector<std::string>(needs.subgroupOps.begin(),
                                                    needs.subgroupOps.end());
  if (needs.sharedBytes)
    json["shared_bytes"] = needs.sharedBytes;
  if (needs.computeUnits)
    json["compute_units"] = needs.computeUnits;
  if (needs.communicator)
    json["communicator"] = true;
  if (needs.resident)
    json["resident"] = needs.resident;
  for (const CoopMatrixShape &shape : needs.coopmat)
    json["coopmat"].push_back({{"m", shape.m},
                               {"n", shape.n},
                               {"k", shape.k},
                               {"a", shape.a},
                               {"b", shape.b},
                               {"c", shape.c},
                               {"result", shape.result}});
  auto bases = [](ArrayRef<FragmentBasis> list) {
    Json all = Json::array();
    for (FragmentBasis basis : list)
      all.push_back({basis.row, basis.column});
    return all;
  };
  for (const CoopMatrixLayout &layout : needs.layouts)
    json["layouts"].push_back({{"use", layout.use},
                               {"dtype", layout.dtype},
                               {"rows", layout.rows},
                               {"cols", layout.columns},
                               {"lane", bases(layout.layout.lane)},
                               {"element", bases(layout.layout.reg)}});
  return json;
}

static std::string sha256(StringRef bytes) {
  auto hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes));
  return llvm::toHex(hash, /*LowerCase=*/true);
}

namespace {
/// Gives objects their places in the archive.
class Members {
public:
  explicit Members(std::map<std::string, std::string> &members)
      : members(members) {}

  /// Returns the name of the member that holds `bytes`, which may be there
  /// already.
  std::string add(StringRef stem, StringRef extension, const std::string &hash,
                  const std::string &bytes) {
    std::string &path = byHash[hash + extension.str()];
    if (!path.empty())
      return path;
    // Function names may hold anything; file names may not.
    std::string name;
    for (char c : stem)
      name += llvm::isAlnum(c) || c == '.' || c == '-' ? c : '_';
    path = "objects/" + name + extension.str();
    for (unsigned i = 1; members.count(path); ++i)
      path = "objects/" + name + "." + std::to_string(i) + extension.str();
    members[path] = bytes;
    return path;
  }

private:
  std::map<std::string, std::string> &members;
  std::map<std::string, std::string> byHash;
};
} // namespace

/// `stem`: of the name of its object.
static Json kernelJson(const CompiledVariant &variant,
                       const CompiledKernel &kernel, const std::string &stem,
                       Members &members) {
  StringRef extension = variant.row->isHip()      ? ".hsaco"
                        : variant.row->isVulkan() ? ".spv"
                                                  : ".so";
  std::string hash = sha256(kernel.object);
  Json json;
  json["file"] = members.add(stem, extension, hash, kernel.object);
  json["sha256"] = hash;
  json["entry"] = kernel.entry;
  json["block"] = kernel.block;
  Json grid = expressions(kernel.grid);
  while (grid.size() < 3)
    grid.push_back(1);
  json["grid"] = grid;
  json["lds_bytes"] = kernel.ldsBytes;
  if (kernel.isResident) {
    json["resident"] = true;
    if (variant.row->isVulkan())
      json["trial"] = kernel.args.size() - 1;
  }
  if (!kernel.byRows.empty())
    json["by_rows"] =
        std::vector<int64_t>(kernel.byRows.begin(), kernel.byRows.end());
  json["args"] = Json::array();
  for (const KernelArg &arg : kernel.args)
    json["args"].push_back(kernelArg(arg));
  json["config"] = kernel.config ? attribute(kernel.config) : Json::object();
  if (kernel.log.sites)
    json["log"] = {{"temp", kernel.log.temp},
                   {"sites", attribute(kernel.log.sites)}};
  if (const auto &stats = kernel.stats)
    json["stats"] = {{"vgprs", stats->vgprs},
                     {"sgprs", stats->sgprs},
                     {"agprs", stats->agprs},
                     {"lds_bytes", stats->ldsBytes},
                     {"scratch_bytes", stats->scratchBytes},
                     {"vgpr_spills", stats->vgprSpills},
                     {"sgpr_spills", stats->sgprSpills},
                     {"occupancy", stats->occupancy},
                     {"occupancy_limit", stats->occupancyLimit}};
  // A share has three digits: no more can be meant.
  if (kernel.stats && kernel.stats->loop)
    json["stats"]["loop"] = {
        {"instructions", kernel.stats->loop->instructions},
        {"matrix", kernel.stats->loop->matrix},
        {"matrix_share",
         std::round(kernel.stats->loop->matrixShare * 1000) / 1000}};
  for (const PassedOver &worse : kernel.passedOver)
    json["passed_over"].push_back({{"config", attribute(worse.config)},
                                   {"vgpr_spills", worse.vgprSpills}});
  return json;
}

/// Sets the kernels of a variant, or of one of its ranges.
static void setKernels(Json &json, const CompiledVariant &variant,
                       const CompiledKernels &what, const std::string &stem,
                       Members &members) {
  json["temps"] = Json::array();
  for (const TensorSpec &temp : what.temps)
    json["temps"].push_back(tensorJson(temp, nullptr));
  json["kernels"] = Json::array();
  for (auto [index, kernel] : llvm::enumerate(what.kernels)) {
    bool isAlone = what.kernels.size() == 1;
    json["kernels"].push_back(kernelJson(
        variant, kernel, isAlone ? stem : stem + "." + std::to_string(index),
        members));
  }
  for (const RankSum &sum : what.sums) {
    Json one = {{"after", sum.after},
                {"from", kernelArg(sum.from)},
                {"to", kernelArg(sum.to)}};
    if (sum.partRows)
      one["parts"] = {{"of", expression(sum.extent)},
                      {"rows", sum.partRows},
                      {"before", sum.before},
                      {"behind", sum.behind}};
    json["sums"].push_back(std::move(one));
  }
}

static Json functionJson(const CompiledFunction &function, Members &members) {
  const FunctionSpec &spec = function.spec;
  Json json;
  json["name"] = spec.name;
  if (spec.isInPlace)
    json["in_place"] = true;
  json["symbols"] = Json::array();
  for (auto [index, symbol] : llvm::enumerate(spec.symbols)) {
    Json one = {{"name", "d" + std::to_string(index)}, {"arg", symbol.arg}};
    if (symbol.dim)
      one["dim"] = *symbol.dim;
    json["symbols"].push_back(one);
  }
  json["args"] = Json::array();
  for (const TensorSpec &arg : spec.args)
    json["args"].push_back(tensorJson(arg, "read"));
  json["results"] = Json::array();
  for (const TensorSpec &result : spec.results)
    json["results"].push_back(tensorJson(result, "write"));
  json["variants"] = Json::array();
  for (const CompiledVariant &variant : function.variants) {
    Json one;
    one["id"] = variant.id;
    one["target"] = variant.row->name.str();
    one["backend"] = getBackendName(variant.row->backend).str();
    one["requires"] = requirements(variant.requires_);
    // A device tells by its size which of a family's rows is nearest.
    if (variant.row->isVulkan())
      one["compute_units"] = variant.row->computeUnits;
    std::string stem = spec.name + "." + variant.id;
    setKernels(one, variant, variant, stem, members);
    for (const CompiledRange &range : variant.ranges) {
      Json part;
      part["when"] = {
          Json::array({expression(range.extent), range.least, range.most})};
      part["requires"] = requirements(range.requires_);
      setKernels(part, variant, range,
                 stem + ".from-" + std::to_string(range.least), members);
      one["ranges"].push_back(std::move(part));
    }
    json["variants"].push_back(std::move(one));
  }
  return json;
}

PackageContents greta::describePackage(ArrayRef<CompiledFunction> functions,
                                       DictionaryAttr metadata) {
  PackageContents contents;
  Members members(contents.members);
  Json json;
  json["schema"] = 1;
  json["compiler"] = {{"greta", GRETA_VERSION}, {"llvm", LLVM_VERSION_STRING}};
  if (metadata)
    json["metadata"] = attribute(metadata);
  json["functions"] = Json::array();
  for (const CompiledFunction &function : functions)
    json["functions"].push_back(functionJson(function, members));
  // A name that is no UTF-8 is shown with replacement characters.
  contents.manifest =
      json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  return contents;
}
