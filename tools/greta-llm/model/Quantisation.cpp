// Quantisation.cpp: see Quantisation.h.
#include "model/Quantisation.h"
#include "model/Description.h"
#include "model/Fields.h"
#include "model/Fp8.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace greta::llm {
namespace {

using nlohmann::json;

//===----------------------------------------------------------------------===//
// quantization_config
//===----------------------------------------------------------------------===//

// Rows and columns of a block.
void readBlockSize(const std::string &path, const Fields &fields,
                   const char *key, Quantisation &how) {
  std::vector<double> sizes = fields.numbers(key);
  constexpr double most = 1 << 24;
  for (double size : sizes)
    if (!(size >= 1 && size <= most && size == std::floor(size)))
      sizes.clear();
  if (sizes.size() != 2)
    fail(path + ": '" + key +
         "' is no list of the rows and columns of a block");
  how.blockRows = static_cast<int64_t>(sizes[0]);
  how.blockColumns = static_cast<int64_t>(sizes[1]);
}

// Activations stay as they are, whatever the file says of them: a scale that
// was measured for them (`static`) only brings them into the range of fp8.
void readFp8(const std::string &path, const json &about, Quantisation &how) {
  checkFields(Description::Fp8, path, about, nullptr);
  Fields fields(path, about);
  how.isFp8 = true;
  if (fields.find("weight_block_size"))
    readBlockSize(path, fields, "weight_block_size", how);
}

const json &objectIn(const std::string &path, const json &object,
                     const char *key) {
  const json *value = Fields(path, object).find(key);
  if (!value || !value->is_object())
    fail(path + ": 'quantization_config' lacks the object '" + key + "'");
  return *value;
}

void readCompressed(const std::string &path, const json &about,
                    Quantisation &how) {
  std::string form = Fields(path, about).text("format");
  if (form != "float-quantized")
    fail(path + ": the weights are in compressed-tensors' form '" + form +
         "'; greta-llm reads 'float-quantized'");
  checkFields(Description::Compressed, path, about, nullptr);
  how.isFp8 = true;
  if (Fields(path, about).find("sparsity_config"))
    checkFields(Description::CompressedSparsity, path,
                objectIn(path, about, "sparsity_config"), nullptr);
  const json &groups = objectIn(path, about, "config_groups");
  if (groups.size() != 1 || !groups.begin()->is_object())
    fail(path + ": 'config_groups' has " + std::to_string(groups.size()) +
         " groups; greta-llm reads one, of fp8");
  const json &group = *groups.begin();
  checkFields(Description::CompressedGroup, path, group, nullptr);
  const json &weights = objectIn(path, group, "weights");
  checkFields(Description::CompressedWeights, path, weights, nullptr);
  Fields fields(path, weights);
  std::string strategy = fields.text("strategy");
  if (strategy == "block")
    readBlockSize(path, fields, "block_structure", how);
  else if (strategy != "tensor" && strategy != "channel")
    fail(path + ": weights share scales by '" + strategy +
         "'; greta-llm reads tensor, channel and block");
}

} // namespace

Quantisation quantisationOf(const std::string &path, const json &config) {
  Quantisation result;
  const json *about = Fields(path, config).find("quantization_config");
  if (!about)
    return result;
  if (!about->is_object())
    fail(path + ": 'quantization_config' is no object");
  Fields fields(path, *about);
  result.method = fields.text("quant_method");
  if (result.method == "fp8" || result.method == "fbgemm_fp8") {
    readFp8(path, *about, result);
    return result;
  }
  if (result.method == "compressed-tensors") {
    readCompressed(path, *about, result);
    return result;
  }
  if (result.method != "awq" && result.method != "gptq" &&
      result.method != "mxfp4")
    fail(
        path + ": the weights are quantised by '" + result.method +
        "'; greta-llm reads awq, gptq, fp8, fbgemm_fp8, compressed-tensors and "
        "mxfp4, and GGUF files");
  checkFields(Description::Quantisation, path, *about, nullptr);
  if (result.method == "mxfp4")
    return result;
  if (fields.number("bits") != 4)
    fail(path + ": the weights have " + std::to_string(fields.size("bits")) +
         " bits; greta-llm reads awq and gptq with 4");
  if (std::string version = fields.text("version");
      result.method == "awq" && !version.empty() && version != "gemm")
    fail(path + ": the weights are in awq's form '" + version +
         "'; greta-llm reads 'gemm'");
  result.group =
      fields.number("group_size") == -1 ? -1 : fields.size("group_size");
  std::string form = fields.text("checkpoint_format");
  if (!form.empty() && form != "gptq" && form != "gptq_v2")
    fail(path + ": the weights are in gptq's form '" + form +
         "'; greta-llm reads 'gptq' and 'gptq_v2'");
  result.isStoredLessOne = result.method == "gptq" && form != "gptq_v2";
  return result;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

namespace {

// Makes one weight of the parts that the name in `parts` begins.
void join(Model &model, const Parts &parts, const std::string &name,
          const Quantisation &how) {
  auto part = [&](const char *suffix, const char *dtype,
                  std::vector<int64_t> shape) -> const uint8_t * {
    auto it = parts.find(name + suffix);
    if (it == parts.end() || it->second.dtype != dtype ||
        (!shape.empty() && it->second.shape != shape))
      fail(model.path + ": the " + how.method + " weight '" + name +
           "' has no '" + (suffix + 1) + "' of " + dtype +
           " that fits its shape");
    return it->second.data;
  };
  Stored stored;
  stored.format = Format::Int4;
  Grouped &g = stored.grouped;
  g.isAwq = how.method == "awq";
  g.zeroOffset = how.isStoredLessOne;
  g.words = part(".qweight", "I32", {});
  std::vector<int64_t> words = parts.at(name + ".qweight").shape;
  if (words.size() != 2 || words[0] > 1 << 24 || words[1] > 1 << 24)
    fail(model.path + ": the " + how.method + " weight '" + name +
         "' is no matrix");
  int64_t k = words[0] * (g.isAwq ? 1 : 8), n = words[1] * (g.isAwq ? 8 : 1);
  g.group = how.group == -1 ? k : how.group;
  if (g.group < 1 || k % g.group || n % 8)
    fail(model.path + ": the " + how.method + " weight '" + name + "' has " +
         std::to_string(k) + " rows in groups of " + std::to_string(g.group) +
         " and " + std::to_string(n) +
         " columns; they have to be whole groups, and eights");
  int64_t groups = k / g.group;
  g.zeros = part(".qzeros", "I32", {groups, n / 8});
  g.scales = part(".scales", "F16", {groups, n});
  if (parts.count(name + ".g_idx")) {
    const uint8_t *groupOf = part(".g_idx", "I32", {k});
    for (int64_t i = 0; i < k; ++i) {
      int32_t group;
      memcpy(&group, groupOf + 4 * i, 4);
      if (group < 0 || group >= groups)
        fail(model.path + ": the " + how.method + " weight '" + name +
             "' has a 'g_idx' of " + std::to_string(group) + "; there are " +
             std::to_string(groups) + " groups");
      if (group != i / g.group)
        g.groupOf = groupOf;
    }
  }
  stored.shape = {n, k};
  if (!model.weights.emplace(name, stored).second)
    fail(model.path + ": the weight '" + name +
         "' is there as it is and quantised");
}

// The same for MXFP4, [.., K / 32, 16] bytes and [.., K / 32] exponents.
void joinMxfp4(Model &model, const Parts &parts, const std::string &name) {
  if (!model.config.has(GatesInTurn))
    fail(model.path + ": the weight '" + name +
         "' is in mxfp4, which greta-llm does not read for this model type");
  const Part &blocks = parts.at(name + mxfp4Blocks);
  auto scales = parts.find(name + mxfp4Scales);
  std::vector<int64_t> groups = blocks.shape;
  if (groups.size() < 3 || groups.back() != 16 || blocks.dtype != "U8")
    fail(model.path + ": the mxfp4 weight '" + name +
         "' has no blocks of 16 bytes");
  groups.pop_back();
  if (scales == parts.end() || scales->second.shape != groups ||
      scales->second.dtype != "U8")
    fail(model.path + ": the mxfp4 weight '" + name +
         "' has no scales that fit its blocks");
  Stored stored;
  stored.format = Format::MXFP4;
  stored.shape = groups;
  stored.shape.back() *= 32;
  stored.data = blocks.data;
  stored.scales = scales->second.data;
  stored.rowStride = static_cast<size_t>(stored.columns()) / 2;
  if (!model.weights.emplace(name, stored).second)
    fail(model.path + ": the weight '" + name +
         "' is there as it is and quantised");
}

// Scales are multiplied with, whatever their name says.
constexpr const char *fp8Scales[] = {".weight_scale", ".weight_scale_inv"};

// The same for fp8: the matrix is there, its scales are tensors beside it.
void joinFp8(const Model &model, const Parts &parts, const std::string &name,
             const Stored &stored, const Quantisation &how,
             Fp8Matrices &matrices) {
  auto refuse = [&](const std::string &why) {
    fail(model.path + ": the fp8 weight '" + name + "' " + why);
  };
  if (!how.isFp8)
    refuse("is there, and 'quantization_config' does not say so");
  if (stored.shape.size() != 2)
    refuse("is no matrix");
  const Part *part = nullptr;
  for (const char *suffix : fp8Scales)
    if (auto it = parts.find(name + suffix); it != parts.end()) {
      if (part)
        refuse("has two scales");
      part = &it->second;
    }
  if (!part)
    refuse("has no scale");
  Fp8Matrix matrix;
  matrix.numbers = stored.data;
  matrix.scales = part->data;
  matrix.columns = stored.columns();
  const FormatInfo *info = findFloats(part->dtype);
  if (!info)
    refuse("has scales of " + part->dtype);
  matrix.scaleFormat = info->format;
  auto all = [](int64_t size, int64_t block) {
    return (size + block - 1) / block;
  };
  std::vector<int64_t> shape = part->shape;
  matrix.blockRows = how.blockRows;
  matrix.blockColumns = how.blockColumns;
  if (!how.blockRows) {
    bool isOne = std::all_of(shape.begin(), shape.end(),
                             [](int64_t extent) { return extent == 1; });
    matrix.blockRows = isOne ? stored.rows() : 1;
    matrix.blockColumns = matrix.columns;
    if (isOne) // [], [1]
      shape = {1, 1};
  }
  std::vector<int64_t> asked = {all(stored.rows(), matrix.blockRows),
                                all(matrix.columns, matrix.blockColumns)};
  if (shape != asked)
    refuse("has scales of " + shapeText(part->shape) + "; its shape asks for " +
           shapeText(asked));
  matrices.add(matrix);
}

void joinAllFp8(Model &model, const Parts &parts, const Quantisation &how,
                std::set<std::string> &joined) {
  auto matrices = std::make_shared<Fp8Matrices>();
  for (auto &[name, stored] : model.weights) {
    if (stored.format != Format::F8_E4M3)
      continue;
    joinFp8(model, parts, name, stored, how, *matrices);
    stored.fp8 = matrices;
    for (const char *suffix : fp8Scales)
      joined.insert(name + suffix);
    // Scales of activations are not used: activations stay as they are.
    for (const char *suffix :
         {".input_scale", ".activation_scale", ".input_scale_ub"})
      joined.insert(name + suffix);
  }
}

} // namespace

void joinParts(Model &model, const Parts &parts, const Quantisation &how) {
  constexpr std::string_view words = ".qweight", blocks = mxfp4Blocks;
  std::set<std::string> joined;
  for (const auto &[name, part] : parts) {
    if ((how.method == "awq" || how.method == "gptq") &&
        endsWith(name, words)) {
      std::string whole = name.substr(0, name.size() - words.size());
      join(model, parts, whole, how);
      for (const char *suffix : {".qweight", ".qzeros", ".scales", ".g_idx"})
        joined.insert(whole + suffix);
    }
    if (how.method == "mxfp4" && endsWith(name, blocks)) {
      std::string whole = name.substr(0, name.size() - blocks.size());
      joinMxfp4(model, parts, whole);
      joined.insert({name, whole + mxfp4Scales});
    }
  }
  joinAllFp8(model, parts, how, joined);
  for (const auto &[name, part] : parts)
    if (!joined.count(name))
      fail(model.path + ": the tensor '" + name +
           "' is not a part of any weight that greta-llm knows");
}

} // namespace greta::llm
