// Safetensors.cpp: a folder as Hugging Face's tools write it. In: config.json,
// model.safetensors or the parts that model.safetensors.index.json names, and
// tokenizer.json where there is one. Out: sizes, weights under GGUF's names,
// and the tokenizer's JSON.
#include "model/ConfigJson.h"
#include "model/Description.h"
#include "model/Fields.h"
#include "model/Json.h"
#include "model/Quantisation.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <set>

namespace greta::llm {
namespace {

using nlohmann::json;

json readJson(const std::string &path) {
  json value = parseJson(Mapping(path).text(), path);
  if (!value.is_object())
    fail(path + ": is no JSON object");
  return value;
}

// "mlp.experts.gate_up_proj_bias" as "ffn_gate_up_exps_bias".
std::string nameWithoutSuffix(const Architecture &architecture,
                              const std::string &within) {
  std::string whole = architecture.nameOf(within);
  for (const std::string &end : {std::string("_bias"), std::string(mxfp4Blocks),
                                 std::string(mxfp4Scales)})
    if (endsWith(within, end) && whole.empty()) {
      whole = architecture.nameOf(within.substr(0, within.size() - end.size()));
      whole += whole.empty() ? "" : end;
    }
  return whole;
}

// An encoder may be a part of a model, whose name comes first.
std::string withoutModel(const std::string &name) {
  for (const std::string model : {"bert.", "roberta."})
    if (name.rfind(model, 0) == 0)
      return name.substr(model.size());
  return name;
}

// The same of an encoder: "encoder.layer.3.attention.self.query.weight", and
// "gamma" and "beta" in old files.
std::string nameInEncoder(const Architecture &architecture, std::string name) {
  name = withoutModel(name);
  size_t dot = name.rfind('.');
  std::string part = name.substr(dot + 1), whole = name.substr(0, dot);
  std::string suffix = part == "weight" || part == "gamma" ? ""
                       : part == "bias" || part == "beta"  ? "_bias"
                                                           : "." + part;
  constexpr const char *outer[][2] = {
      {"embeddings.word_embeddings", "token_embd"},
      {"embeddings.position_embeddings", "position_embd"},
      {"embeddings.token_type_embeddings", "token_types"},
      {"embeddings.LayerNorm", "token_embd_norm"},
      {"emb_ln", "token_embd_norm"}};
  for (const auto &[theirs, ours] : outer)
    if (whole == theirs)
      return ours + suffix;
  for (const std::string layers : {"encoder.layer.", "encoder.layers."}) {
    size_t end = whole.find('.', layers.size());
    if (whole.rfind(layers, 0) != 0 || end == std::string::npos)
      continue;
    std::string ours = architecture.nameOf(whole.substr(end + 1));
    if (!ours.empty())
      return "blk." + whole.substr(layers.size(), end - layers.size()) + "." +
             ours + suffix;
  }
  return "";
}

// Whether a tensor of an encoder's file is of what is behind its states, or a
// list of numbers that is not read.
bool isBehindStates(const std::string &name) {
  std::string rest = withoutModel(name);
  for (const char *part :
       {"pooler.", "cls.", "lm_head.", "embeddings.position_ids"})
    if (rest.rfind(part, 0) == 0)
      return true;
  return false;
}

// "model.layers.3.self_attn.q_proj.weight" as "blk.3.attn_q"; what is no weight
// of a known layer has no name. Other parts of a weight keep theirs.
std::string shortName(const Architecture &architecture, std::string name) {
  size_t dot = name.rfind('.');
  if (dot == std::string::npos)
    return "";
  std::string part = name.substr(dot);
  std::string suffix = part == ".bias"     ? "_bias"
                       : part == ".weight" ? ""
                                           : part;
  if (architecture.has(Bidirectional))
    return nameInEncoder(architecture, name);
  name.resize(dot);
  if (name == "lm_head")
    return "output" + suffix;
  if (name.rfind("model.", 0) != 0)
    return "";
  name = name.substr(6);
  if (name == "embed_tokens")
    return "token_embd" + suffix;
  if (name == "norm")
    return "output_norm" + suffix;
  size_t end = name.find('.', 7);
  if (name.rfind("layers.", 0) != 0 || end == std::string::npos)
    return "";
  std::string within = name.substr(end + 1), expert;
  std::string layer = "blk." + name.substr(7, end - 7) + ".";
  if (std::string ours = nameWithoutSuffix(architecture, within + part);
      !ours.empty())
    return layer + ours;
  // "mlp.experts.7.up_proj": the number goes to the name's end.
  constexpr std::string_view experts = ".experts.";
  if (size_t at = within.find(experts); at != within.npos) {
    size_t number = at + experts.size(), after = within.find('.', number);
    if (after == within.npos)
      return "";
    expert = "." + within.substr(number, after - number);
    within.erase(number, after - number + 1);
  }
  std::string ours = architecture.nameOf(within);
  if (!ours.empty())
    ours += expert;
  return ours.empty() ? "" : layer + ours + suffix;
}

// Whether a tensor is of a part that is no text; `name` becomes what it is in
// the text part.
bool isOfOtherPart(std::string &name) {
  std::string rest = name.rfind("model.", 0) == 0 ? name.substr(6) : name;
  for (const char *part : {"vision_tower.", "multi_modal_projector."})
    if (rest.rfind(part, 0) == 0)
      return true;
  const std::string text = "language_model.";
  if (rest.rfind(text, 0) == 0) {
    rest = rest.substr(text.size());
    bool isWhole =
        rest.rfind("model.", 0) == 0 || rest.rfind("lm_head.", 0) == 0;
    name = isWhole ? rest : "model." + rest;
  }
  return false;
}

// Whether a tensor is of the layers behind the last one, which guess at later
// tokens.
bool isOfNextLayer(const Config &c, const std::string &name) {
  const std::string layers = "model.layers.";
  return name.rfind(layers, 0) == 0 &&
         std::atoll(name.c_str() + layers.size()) >= c.layers;
}

// Weights of experts that are gates and ups in turn: rows of MXFP4 [experts, 2
// hidden, width], or columns of floats, which lie transposed, as those of
// `down` do; of the biases [experts, 2 hidden] they are columns, too.
void takeGatesInTurn(Model &model, int64_t layer) {
  const Config &c = model.config;
  int64_t count = c.mixture.count, hidden = c.mixture.hidden;
  auto take = [&](const std::string &name, std::vector<int64_t> shape,
                  bool isMatrix, Stored &stored) {
    auto found = model.weights.extract(Model::inLayer(layer, name));
    if (!found)
      return false;
    stored = found.mapped();
    if (isMatrix && !stored.scales)
      std::swap(shape[1], shape[2]);
    if (stored.shape != shape)
      fail(model.path + ": the weight '" + found.key() +
           "' has not the shape that the model's sizes ask for");
    return true;
  };
  // Row or column `first` and each so-many-th behind it, of each expert.
  auto put = [&](const std::string &name, Stored stored,
                 std::vector<int64_t> shape, size_t first, size_t step) {
    size_t bytes = infoOf(stored.format).bytes,
           rows = static_cast<size_t>(shape[1]) * step;
    if (stored.scales) {
      stored.data += first * stored.rowStride;
      stored.scales += first * stored.rowStride / 16;
      stored.rowStride *= step;
    } else if (shape.size() == 2) {
      stored.data += first * bytes;
      stored.rowStride = rows * bytes;
      stored.columnStride = step * bytes;
    } else {
      size_t columns = static_cast<size_t>(shape[2]);
      for (size_t expert = 0; expert < static_cast<size_t>(count); ++expert)
        stored.parts.push_back(stored.data +
                               (expert * rows * columns + first) * bytes);
      stored.rowStride = step * bytes;
      stored.columnStride = rows * bytes;
    }
    stored.shape = std::move(shape);
    model.weights[Model::inLayer(layer, name)] = stored;
  };
  Stored both, down;
  if (take("ffn_gate_up_exps", {count, 2 * hidden, c.width}, true, both))
    for (size_t first : {0, 1})
      put(first ? "ffn_up_exps" : "ffn_gate_exps", both,
          {count, hidden, c.width}, first, 2);
  if (take("ffn_gate_up_exps_bias", {count, 2 * hidden}, false, both))
    for (size_t first : {0, 1})
      put(first ? "ffn_up_exps_bias" : "ffn_gate_exps_bias", both,
          {count, hidden}, first, 2);
  if (take("ffn_down_exps", {count, c.width, hidden}, true, down))
    put("ffn_down_exps", down, {count, c.width, hidden}, 0, 1);
}

void readTensors(Model &model, Parts &quantised, const std::string &path) {
  model.files.push_back(std::make_unique<Mapping>(path));
  const Mapping &file = *model.files.back();
  uint64_t length = 0;
  if (file.size() >= 8)
    memcpy(&length, file.data(), 8);
  if (file.size() < 8 || length > file.size() - 8)
    fail(path + ": the safetensors header is cut off");
  // The format's own limit.
  if (length > 100'000'000)
    fail(path + ": the safetensors header has " + std::to_string(length) +
         " bytes; 100 MB are possible");
  json header = parseJson(file.text().substr(8, length),
                          path + ": the safetensors header");
  if (!header.is_object())
    fail(path + ": the safetensors header is no JSON object");
  const uint8_t *data = file.data() + 8 + length;
  uint64_t bytes = file.size() - 8 - length;
  std::vector<std::pair<uint64_t, uint64_t>> places; // of the tensors
  for (auto &[theirs, about] : header.items()) {
    std::string name = theirs;
    if (model.config.nextLayers && isOfNextLayer(model.config, name))
      continue;
    if (model.config.has(Bidirectional) && isBehindStates(name))
      continue;
    if (name == "__metadata__" || (model.config.isPart && isOfOtherPart(name)))
      continue;
    std::string ours = shortName(*model.config.architecture, name);
    // Old files have rope's table, which follows from config.json.
    constexpr std::string_view table = ".rotary_emb.inv_freq";
    if (ours.empty() && name.size() > table.size() &&
        name.substr(name.size() - table.size()) == table)
      continue;
    if (ours.empty())
      fail(path + ": the tensor '" + name +
           "' is not one that greta-llm knows");
    Stored stored;
    uint64_t begin = 0, end = 0, elements = 1;
    bool isPossible = true;
    std::string dtype;
    try {
      dtype = about.at("dtype").get<std::string>();
      auto whole = [](const json &value) {
        // Converting another type would be undefined, or round.
        return value.is_number_unsigned()
                   ? value.get<uint64_t>()
                   : std::numeric_limits<uint64_t>::max();
      };
      isPossible = about.at("shape").size() <= 4;
      for (const json &extent : about.at("shape")) {
        uint64_t size = whole(extent);
        isPossible = isPossible && size >= 1 &&
                     !__builtin_mul_overflow(elements, size, &elements) &&
                     elements <= uint64_t(1) << 48;
        stored.shape.push_back(static_cast<int64_t>(size));
      }
      begin = whole(about.at("data_offsets").at(0));
      end = whole(about.at("data_offsets").at(1));
    } catch (const json::exception &) {
      fail(path + ": the safetensors header describes '" + name +
           "' in a way that cannot be read");
    }
    bool isPart = endsWith(ours, name.substr(name.rfind('.'))) ||
                  endsWith(ours, mxfp4Blocks) || endsWith(ours, mxfp4Scales);
    const FormatInfo *info = !isPart && dtype == "F8_E4M3"
                                 ? &infoOf(Format::F8_E4M3)
                                 : findFloats(dtype);
    uint64_t bytesOfOne = info                       ? info->bytes
                          : isPart && dtype == "I32" ? 4
                          : isPart && dtype == "U8"  ? 1
                                                     : 0;
    if (!bytesOfOne)
      fail(path + ": the tensor '" + name + "' is of " + dtype +
           "; greta-llm reads F32, F16, BF16 and F8_E4M3");
    if (info)
      stored.format = info->format;
    bool isScalar = stored.shape.empty() && !isPart;
    if (!isPossible || isScalar || begin > end || end > bytes ||
        elements * bytesOfOne != end - begin)
      fail(path + ": the tensor '" + name +
           "' does not lie within the file as its shape says");
    stored.data = data + begin;
    places.push_back({begin, end});
    bool isNew =
        isPart ? quantised.insert({ours, {stored.shape, dtype, stored.data}})
                     .second
               : model.weights.emplace(ours, stored).second;
    if (!isNew)
      fail(path + ": the tensor '" + name + "' is in another part, too");
  }
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); ++i)
    if (places[i].first < places[i - 1].second)
      fail(path + ": tensors overlap: one begins at byte " +
           std::to_string(places[i].first) + ", where another goes to " +
           std::to_string(places[i - 1].second));
}

// The tokens that end a text: one id, or a list.
void addEnds(Model &model, const std::string &path, const json &about) {
  const json *given = Fields(path, about).find("eos_token_id");
  if (!given)
    return;
  auto add = [&](const json &id) {
    if (!id.is_number_unsigned() ||
        id.get<uint64_t>() >= static_cast<uint64_t>(model.config.vocabulary))
      fail(path + ": 'eos_token_id' is no token of the model");
    model.ends.push_back(id.get<int32_t>());
  };
  if (given->is_array())
    std::for_each(given->begin(), given->end(), add);
  else
    add(*given);
}

// How sentence-transformers makes a text's embedding. Without its files it is
// the mean, which is its default, too.
Pooling poolingOf(const std::filesystem::path &folder) {
  namespace fs = std::filesystem;
  fs::path path = folder / "1_Pooling" / "config.json";
  if (fs::path list = folder / "modules.json"; fs::exists(list)) {
    std::string file = list, within;
    for (const json &module : parseJson(Mapping(file).text(), file)) {
      Fields fields(file, module);
      std::string type = fields.text("type");
      if (endsWith(type, ".Pooling"))
        within = fields.text("path");
      else if (!endsWith(type, ".Transformer") && !endsWith(type, ".Normalize"))
        fail(file + ": has the module '" + type +
             "'; greta-llm takes Transformer, Pooling and Normalize");
    }
    fs::path part = within;
    if (part.empty() || part.is_absolute() ||
        std::count(part.begin(), part.end(), ".."))
      fail(file + ": has no module Pooling with the path of a folder in this "
                  "one");
    path = folder / part / "config.json";
  } else if (!fs::exists(path)) {
    return Pooling::Mean;
  }
  json about = readJson(path);
  std::vector<std::string> modes;
  const std::string mode = "pooling_mode";
  for (const auto &[name, value] : about.items())
    if (name == mode && value.is_string())
      modes.push_back(value.get<std::string>());
    else if (name.rfind(mode + "_", 0) == 0 && value == true)
      modes.push_back(name.substr(mode.size() + 1));
  if (modes.size() == 1 && (modes[0] == "mean" || modes[0] == "mean_tokens"))
    return Pooling::Mean;
  if (modes.size() == 1 && (modes[0] == "cls" || modes[0] == "cls_token"))
    return Pooling::First;
  fail(path.string() + ": greta-llm takes the mean of the tokens or the first "
                       "one, pooling_mode_mean_tokens or "
                       "pooling_mode_cls_token, and no other");
}

} // namespace

void readSafetensors(Model &model) {
  namespace fs = std::filesystem;
  fs::path folder = model.path;
  std::string configPath = folder / "config.json";
  if (!fs::exists(configPath))
    fail(model.path + ": is a folder without config.json; name a .gguf file, "
                      "or a folder with safetensors and config.json");
  json config = readJson(configPath);
  model.config = configOf(configPath, config);
  model.pairsAreNeighbours = model.config.has(PairsInFiles);
  std::set<std::string> parts;
  std::string index = folder / "model.safetensors.index.json";
  if (fs::exists(index)) {
    json names = readJson(index)["weight_map"];
    if (!names.is_object())
      fail(index + ": has no weight_map");
    for (auto &[name, part] : names.items()) {
      // A part lies in the folder itself.
      if (!part.is_string() ||
          fs::path(part.get<std::string>()).has_parent_path())
        fail(index + ": '" + name + "' is in no file of the folder");
      parts.insert(part.get<std::string>());
    }
  } else {
    parts.insert("model.safetensors");
  }
  Quantisation how = quantisationOf(configPath, config);
  Parts quantised;
  for (const std::string &part : parts)
    readTensors(model, quantised, folder / part);
  joinParts(model, quantised, how);
  for (int64_t layer = 0;
       model.config.has(GatesInTurn) && layer < model.config.layers; ++layer)
    takeGatesInTurn(model, layer);
  const std::string norm = "_norm";
  for (auto &[name, stored] : model.weights)
    stored.isLessOne =
        model.config.has(NormsLessOne) && name.size() > norm.size() &&
        name.compare(name.size() - norm.size(), norm.size(), norm) == 0;
  Fields fields(configPath, config);
  if (fields.flag("tie_word_embeddings"))
    model.weights.erase("output");
  else if (fields.find("tie_word_embeddings") && model.isTied() &&
           !model.config.has(Bidirectional)) // which make no texts
    fail(model.path + ": the weight 'lm_head' is missing, and "
                      "'tie_word_embeddings' is false");
  addEnds(model, configPath, config);
  if (model.config.has(Bidirectional))
    model.config.pooling = poolingOf(folder);
  // A file for generation has the longer list.
  if (std::string path = folder / "generation_config.json"; fs::exists(path))
    addEnds(model, path, readJson(path));
  if (fs::exists(folder / "tokenizer.json"))
    model.tokenizer = readJson(folder / "tokenizer.json");
  if (fs::exists(folder / "tokenizer_config.json"))
    model.tokenizerConfig = readJson(folder / "tokenizer_config.json");
  // Newer models have the template in a file of its own.
  if (std::string path = folder / "chat_template.jinja"; fs::exists(path))
    model.tokenizerConfig["chat_template"] = Mapping(path).text();
}

} // namespace greta::llm
