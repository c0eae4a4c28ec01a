// Graph.cpp: see Graph.h.
#include "engine/Graph.h"
#include "engine/Program.h"
#include "engine/Sampling.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <set>

namespace greta::llm {
namespace {

constexpr int64_t any = -1; // a dynamic extent

struct Type {
  std::vector<int64_t> shape;
  std::string element;

  std::string text() const {
    std::string result = "tensor<";
    for (int64_t extent : shape)
      result += (extent == any ? "?" : std::to_string(extent)) + "x";
    return result + element + ">";
  }
};

struct Value {
  std::string name;
  Type type;
};

std::string joined(const std::vector<std::string> &parts,
                   const char *separator = ", ") {
  std::string result;
  for (const std::string &part : parts)
    result += (result.empty() ? "" : separator) + part;
  return result;
}

// A function under construction.
class Function {
public:
  Function(std::string name, int64_t tokens)
      : tokens(tokens), name(std::move(name)) {}

  Value argument(const std::string &argumentName, Type type) {
    Value value{"%" + argumentName, std::move(type)};
    arguments.push_back(value);
    return value;
  }

  // `op %a, %b attributes : types of a, b -> type`
  Value op(const std::string &op, const std::vector<Value> &operands, Type type,
           const std::string &attributes = "") {
    return line(op + " " + namesOf(operands) +
                    (attributes.empty() ? "" : " " + attributes) + " : " +
                    typesOf(operands) + " -> " + type.text(),
                type);
  }

  // Elementwise: one type says it all.
  Value elementwise(const std::string &op, const std::vector<Value> &operands) {
    return line(op + " " + namesOf(operands) + " : " +
                    operands.front().type.text(),
                operands.front().type);
  }

  Value convert(const Value &value, const std::string &element) {
    if (value.type.element == element)
      return value;
    Type type{value.type.shape, element};
    return line(
        std::string(element == "f32" ? "arith.extf " : "arith.truncf ") +
            value.name + " : " + value.type.text() + " to " + type.text(),
        type);
  }

  // `groups` as tensor.expand_shape has them; its first dimension are tokens.
  Value expand(const Value &value, std::vector<int64_t> shape,
               const std::string &groups) {
    std::vector<std::string> sizes;
    for (int64_t extent : shape)
      sizes.push_back(extent == any ? count() : std::to_string(extent));
    Type type{std::move(shape), value.type.element};
    return line("tensor.expand_shape " + value.name + " " + groups +
                    " output_shape [" + joined(sizes) +
                    "] : " + value.type.text() + " into " + type.text(),
                type);
  }

  Value collapse(const Value &value, std::vector<int64_t> shape,
                 const std::string &groups) {
    Type type{std::move(shape), value.type.element};
    return line("tensor.collapse_shape " + value.name + " " + groups + " : " +
                    value.type.text() + " into " + type.text(),
                type);
  }

  // A vector for every token.
  Value repeat(const Value &vector, const Type &type) {
    Value empty =
        line("tensor.empty(" + (tokens == any ? count() : std::string()) +
                 ") : " + type.text(),
             type);
    return line("linalg.broadcast ins(" + vector.name + " : " +
                    vector.type.text() + ") outs(" + empty.name + " : " +
                    type.text() + ") dimensions = [0]",
                type);
  }

  std::string finish(const std::vector<Value> &results) const {
    std::vector<std::string> declared;
    for (const Value &argument : arguments)
      declared.push_back(argument.name + ": " + argument.type.text());
    return "func.func @" + name + "(" + joined(declared) + ")\n    -> (" +
           typesOf(results) + ") {\n" + body + "  return " + namesOf(results) +
           " : " + typesOf(results) + "\n}\n";
  }

  const int64_t tokens;

private:
  static std::string namesOf(const std::vector<Value> &values) {
    std::vector<std::string> names;
    for (const Value &value : values)
      names.push_back(value.name);
    return joined(names);
  }
  static std::string typesOf(const std::vector<Value> &values) {
    std::vector<std::string> types;
    for (const Value &value : values)
      types.push_back(value.type.text());
    return joined(types);
  }
  Value line(const std::string &text, const Type &type) {
    std::string result = "%" + std::to_string(numbered++);
    body += "  " + result + " = " + text + "\n";
    return {result, type};
  }
  // The number of tokens, of the first argument, as an index.
  std::string count() {
    if (counted.empty()) {
      counted = "%tokens_of_x";
      body += "  %c0 = arith.constant 0 : index\n  " + counted +
              " = tensor.dim " + arguments.front().name +
              ", %c0 : " + arguments.front().type.text() + "\n";
    }
    return counted;
  }

  std::string name, body, counted;
  std::vector<Value> arguments;
  int numbered = 0;
};

// Writes the functions of one model.
class Writer {
public:
  Writer(const Model &model, Element element)
      : model(model), config(model.config), element(nameOf(element)),
        kind(element) {}

  std::string embed() const;
  std::string layer(const std::string &name, int64_t layer, int64_t tokens,
                    bool isPrompt) const;
  std::string head(const std::string &name, int64_t tokens) const;

private:
  Value linear(Function &f, const Value &x, const std::string &weight,
               const std::string &stored, const std::string &result) const;
  Value norm(Function &f, const Value &x, const std::string &weight,
             int64_t width) const;
  std::string number(double value) const {
    char text[64];
    snprintf(text, sizeof(text), "%.9e : f32", value);
    return text;
  }

  const Model &model;
  const Config &config;
  std::string element;
  Element kind;
};

// x times the transposed weight; `stored` is the weight's name in the model.
// Packed weights are multiplied as they are where the result is f16.
Value Writer::linear(Function &f, const Value &x, const std::string &weight,
                     const std::string &stored,
                     const std::string &result) const {
  const std::vector<int64_t> &shape = model.weight(stored).shape;
  int64_t rows = shape[0], columns = shape[1];
  int64_t group = heldGroup(model, stored, kind);
  Value w;
  if (group) {
    Format format = model.weight(stored).format;
    std::vector<Value> packed;
    for (const PackedPart &part : packedParts(format, columns, group))
      packed.push_back(
          f.argument(weight + part.suffix, {{rows, part.columns}, part.dtype}));
    const WeightFormat *row = packedFormat(format);
    w = f.op("greta.dequant", packed, {shape, "f16"},
             "{" +
                 (row ? "format = \"" + std::string(row->name) + "\", "
                      : std::string()) +
                 "group = " + std::to_string(group) + "}");
  } else {
    w = f.argument(weight, {shape, element});
  }
  // Prompts have one set of kernels, chosen for long ones: others for ranges of
  // their length would multiply the time to compile.
  Value y = f.op(
      "greta.matmul", {x, w}, {{f.tokens, rows}, group ? "f16" : result},
      f.tokens == any ? "{transpose_b, greta.ranges = []}" : "{transpose_b}");
  return f.convert(y, result);
}

// In f32, rounded to the activations' type.
Value Writer::norm(Function &f, const Value &x, const std::string &weight,
                   int64_t width) const {
  Value w = f.argument(weight, {{width}, "f32"});
  Value y = f.op("greta.rms_norm", {x, w}, x.type,
                 "{eps = " + number(config.epsilon) + "}");
  return f.convert(y, element);
}

std::string Writer::layer(const std::string &name, int64_t layer,
                          int64_t tokens, bool isPrompt) const {
  Function f(name, tokens);
  int64_t heads = config.heads, keyHeads = config.keyHeads,
          size = config.headSize;
  Type cacheType{{any, pageSize, keyHeads, size}, element};
  Value x = f.argument("x", {{tokens, config.width}, "f32"});
  Value cos = f.argument("cos", {{tokens, size / 2}, "f32"});
  Value sin = f.argument("sin", {{tokens, size / 2}, "f32"});
  Value slots = f.argument("slots", {{tokens}, "i32"});
  // A sequence of many tokens, or of one token each.
  int64_t sequences = isPrompt ? 1 : tokens;
  Value table = f.argument("table", {{sequences, any}, "i32"});
  Value lengths = f.argument("lengths", {{sequences}, "i32"});

  auto stored = [&](const std::string &weight) {
    return Model::inLayer(layer, weight);
  };
  auto project = [&](const Value &from, const std::string &weight,
                     const std::string &result) {
    return linear(f, from, weight, stored(weight), result);
  };
  Value normed = norm(f, x, "attn_norm", config.width);
  auto headsOf = [&](const std::string &weight, int64_t count) {
    Value y = project(normed, weight, element);
    if (config.hasBias) {
      Value bias = f.argument(weight + "_bias", {{count * size}, element});
      y = f.elementwise("arith.addf", {y, f.repeat(bias, y.type)});
    }
    return f.expand(y, {tokens, count, size}, "[[0], [1, 2]]");
  };
  auto rotated = [&](Value y, const std::string &weight) {
    if (config.hasHeadNorms)
      y = norm(f, y, weight + "_norm", size);
    return f.op("greta.rope", {y, cos, sin}, y.type, "{style = \"neox\"}");
  };
  Value q = rotated(headsOf("attn_q", heads), "attn_q");
  Value k = rotated(headsOf("attn_k", keyHeads), "attn_k");
  Value v = headsOf("attn_v", keyHeads);
  auto updated = [&](const std::string &cacheName, const Value &rows) {
    Value cache = f.argument(cacheName, cacheType);
    return f.op("greta.paged_kv_update", {cache, rows, slots}, cacheType);
  };
  Value keys = updated("k_cache", k), values = updated("v_cache", v);
  Value queries = f.expand(q, {sequences, isPrompt ? tokens : 1, heads, size},
                           "[[0, 1], [2], [3]]");
  char scale[64];
  snprintf(scale, sizeof(scale), "{scale = %.9e : f32",
           1 / std::sqrt(static_cast<double>(size)));
  std::string attributes = scale;
  if (config.window)
    attributes += ", window = " + std::to_string(config.window) + " : i64";
  Value attended =
      f.op("greta.paged_attention", {queries, keys, values, table, lengths},
           queries.type, attributes + ", tokens_first}");
  attended = f.collapse(attended, {tokens, heads * size}, "[[0, 1], [2, 3]]");
  Value middle =
      f.elementwise("arith.addf", {x, project(attended, "attn_output", "f32")});

  Value inner = norm(f, middle, "ffn_norm", config.width);
  Value gate = project(inner, "ffn_gate", element);
  Value up = project(inner, "ffn_up", element);
  Value active = f.op("greta.swiglu", {gate, up}, gate.type);
  Value y =
      f.elementwise("arith.addf", {middle, project(active, "ffn_down", "f32")});
  return f.finish({y, keys, values});
}

std::string Writer::head(const std::string &name, int64_t tokens) const {
  Function f(name, tokens);
  Value x = f.argument("x", {{tokens, config.width}, "f32"});
  Value normed = norm(f, x, "output_norm", config.width);
  return f.finish({linear(f, normed, "output", "output", "f32")});
}

// Rows of tables by index: a block program, because the dialect has no op that
// looks up.
std::string lookupKernel(const std::string &element) {
  constexpr int64_t width = 1024;
  Program p("lookup_" + element, 4);
  Block table = p.argument("table", element);
  Block index = p.argument("index", "i32");
  Block y = p.argument("y", "f32");
  Block columns = p.argument("columns", "i32", /*isPointer=*/false);
  Block row = p.programId(0);
  Block column = p.programId(1) * width + p.iota(0, {width});
  Block isThere = column < columns;
  auto wide = [&](const Block &x) {
    return p.convert("arith.extsi", x, "i64");
  };
  Block source = table + wide(p.load(index + row)) * wide(columns);
  Block target = y + wide(row) * wide(columns);
  Block value = p.load(source + column, isThere, 0);
  p.store(element == "f32" ? value : p.convert("arith.extf", value, "f32"),
          target + column, isThere);
  return p.finish();
}

std::string Writer::embed() const {
  std::vector<std::string> facts; // the package's metadata
  for (const auto &[name, value] : factsOf(model, kind))
    facts.push_back("\"" + name + "\" = \"" + value + "\"");
  // Symbols: tokens, positions, and the length of rope's tables.
  std::string shape = " {greta.shape = affine_map<()[t, c] -> (t)>}";
  Type tokenType{{any}, "i32"};
  Type tableType{{config.vocabulary, config.width}, element};
  Type ropeType{{any, config.headSize / 2}, "f32"};
  std::string text =
      "func.func @embed(%tokens: " + tokenType.text() +
      ", %positions: " + tokenType.text() + shape +
      ", %token_embd: " + tableType.text() +
      ", %cos_table: " + ropeType.text() + ", %sin_table: " + ropeType.text() +
      " {greta.shape = affine_map<()[t, c] -> (c, " +
      std::to_string(config.headSize / 2) + ")>})\n    -> (" +
      Type{{any, config.width}, "f32"}.text() + ", " + ropeType.text() + ", " +
      ropeType.text() + ") attributes {greta.metadata = {" + joined(facts) +
      "}} {\n";
  auto lookup = [&](const char *result, const char *table, const Type &type,
                    const char *index) {
    std::string columns = std::to_string(type.shape[1]);
    std::string to = Type{{any, type.shape[1]}, "f32"}.text();
    text += std::string("  ") + result + " = greta_tile.launch @lookup_" +
            type.element + " grid affine_map<()[t, c] -> (t, " +
            std::to_string((type.shape[1] + 1023) / 1024) +
            ")> scalars affine_map<()[t, c] -> (" + columns + ")> (" + table +
            ", " + index + ")\n      shapes [affine_map<()[t, c] -> (t, " +
            columns + ")>] : (" + type.text() + ", tensor<?xi32>) -> " + to +
            "\n";
  };
  lookup("%x", "%token_embd", tableType, "%tokens");
  lookup("%cos", "%cos_table", ropeType, "%positions");
  lookup("%sin", "%sin_table", ropeType, "%positions");
  text +=
      "  return %x, %cos, %sin : " + Type{{any, config.width}, "f32"}.text() +
      ", " + ropeType.text() + ", " + ropeType.text() + "\n}\n";
  return lookupKernel("f32") + (element == "f32" ? "" : lookupKernel(element)) +
         text;
}

} // namespace

int64_t heldGroup(const Model &model, const std::string &name,
                  Element element) {
  // The embedding is also looked up, so it is held in rows; a packed copy
  // serves the output where one weight is both.
  const Stored &stored = model.weight(name);
  if (element != Element::F16 || name == "token_embd")
    return 0;
  if (stored.format == Format::Int4)
    return canPackGrouped(stored) ? stored.grouped.group : 0;
  return packedFormat(stored.format) ? infoOf(stored.format).group : 0;
}

// How functions take a weight.
static std::string describeArgument(const Model &model, const std::string &name,
                                    Element element) {
  int64_t group = heldGroup(model, name, element);
  if (!group)
    return nameOf(element);
  return infoOf(model.weight(name).format).name +
         std::string(" in groups of ") + std::to_string(group);
}

std::string describeHeld(const Model &model, Element element) {
  std::map<std::string, int> counts;
  for (const auto &[name, stored] : model.weights) {
    if (stored.shape.size() < 2)
      continue;
    std::string format = infoOf(stored.format).name;
    const WeightFormat *row = packedFormat(stored.format);
    int bits = row ? row->allBits() : 4;
    bool isPacked = heldGroup(model, name, element) != 0;
    ++counts[" in " + format +
             (isPacked ? ", kept in " + std::to_string(bits) + " bits"
              : format == nameOf(element)
                  ? ""
                  : std::string(", expanded to ") + nameOf(element))];
  }
  std::vector<std::string> parts;
  for (const auto &[what, count] : counts)
    parts.push_back(std::to_string(count) +
                    (count == 1 ? " matrix" : " matrices") + what);
  return joined(parts, "; ");
}

LayerClasses classify(const Model &model, Element element) {
  LayerClasses classes;
  std::map<std::vector<std::string>, size_t> known;
  for (int64_t layer = 0; layer < model.config.layers; ++layer) {
    std::vector<std::string> held;
    for (const Weight &weight : layerWeights(model.config))
      held.push_back(
          describeArgument(model, Model::inLayer(layer, weight.name), element));
    auto [it, isNew] = known.emplace(std::move(held), known.size());
    if (isNew)
      classes.first.push_back(layer);
    classes.classOf.push_back(it->second);
  }
  return classes;
}

// How functions take the matrices with these names, and in which of them.
static std::string describeMatrices(
    const Model &model, Element element,
    const std::vector<std::pair<std::string, std::string>> &names) {
  std::map<std::string, std::vector<std::string>> held;
  for (const auto &[shown, stored] : names)
    held[describeArgument(model, stored, element)].push_back(shown);
  std::vector<std::string> parts;
  for (const auto &[how, which] : held)
    parts.push_back(held.size() == 1 ? how : how + " (" + joined(which) + ")");
  return joined(parts);
}

std::map<std::string, std::string> factsOf(const Model &model,
                                           Element element) {
  const Config &c = model.config;
  char epsilon[32];
  snprintf(epsilon, sizeof(epsilon), "%.6g",
           static_cast<double>(static_cast<float>(c.epsilon)));
  std::map<std::string, std::string> facts = {
      // Counts up when functions change their meaning, not their arguments.
      {"functions", "2"},
      {"layers", std::to_string(c.layers)},
      {"width", std::to_string(c.width)},
      {"MLP width", std::to_string(c.hidden)},
      {"vocabulary", std::to_string(c.vocabulary)},
      {"heads", std::to_string(c.heads)},
      {"key heads", std::to_string(c.keyHeads)},
      {"head size", std::to_string(c.headSize)},
      {"window", c.window ? std::to_string(c.window) : "none"},
      {"epsilon", epsilon},
      {"biases of queries, keys and values", c.hasBias ? "yes" : "no"},
      {"norms of queries and keys", c.hasHeadNorms ? "yes" : "no"},
      {"output", describeMatrices(model, element, {{"output", "output"}})}};
  LayerClasses classes = classify(model, element);
  for (size_t i = 0; i < classes.first.size(); ++i) {
    std::vector<std::pair<std::string, std::string>> names;
    for (const Weight &weight : layerWeights(c))
      if (weight.shape.size() > 1)
        names.push_back(
            {weight.name, Model::inLayer(classes.first[i], weight.name)});
    facts["matrices of layers of class " + std::to_string(i)] =
        describeMatrices(model, element, names);
  }
  return facts;
}

std::string layerFunction(size_t layerClass, int64_t tokens) {
  return "layer" + std::to_string(layerClass) + "_" + std::to_string(tokens);
}

std::string promptFunction(size_t layerClass) {
  return "prompt" + std::to_string(layerClass);
}

std::string headFunction(int64_t tokens) {
  return "head_" + (tokens ? std::to_string(tokens) : "n");
}

std::string writeModule(const Model &model, Element element,
                        const std::vector<int64_t> &sizes) {
  Writer writer(model, element);
  LayerClasses classes = classify(model, element);
  std::string text = writer.embed() + writer.head(headFunction(0), any) +
                     writeSampling(model.config.vocabulary, pageSize);
  for (size_t c = 0; c < classes.first.size(); ++c)
    text += writer.layer(promptFunction(c), classes.first[c], any,
                         /*isPrompt=*/true);
  for (int64_t size : std::set<int64_t>(sizes.begin(), sizes.end())) {
    for (size_t c = 0; c < classes.first.size(); ++c)
      text += writer.layer(layerFunction(c, size), classes.first[c], size,
                           /*isPrompt=*/false);
    text += writer.head(headFunction(size), size);
  }
  return text;
}

} // namespace greta::llm
