// Graph.cpp: see Graph.h.
#include "engine/Graph.h"
#include "engine/Experts.h"
#include "engine/Latent.h"
#include "engine/Program.h"
#include "engine/Sampling.h"
#include "engine/Writer.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <set>

namespace greta::llm {

// Packed weights of f16 are multiplied as they are where the result is f16,
// too, those of bf16 with any result.
std::string Writer::resultOf(const std::string &stored,
                             const std::string &result) const {
  bool isF16 = kind == Element::F16 && heldGroup(model, stored, kind) != 0;
  return isF16 ? element : result;
}

Value Writer::held(Function &f, const std::string &weight,
                   const std::string &stored) const {
  const std::vector<int64_t> &shape = model.weight(stored).shape;
  int64_t group = heldGroup(model, stored, kind);
  if (!group)
    return f.argument(weight, {shape, element});
  Format format = model.weight(stored).format;
  int64_t rows = model.weight(stored).rows(), columns = shape.back();
  std::vector<Value> packed;
  for (const PackedPart &part : packedParts(format, columns, group))
    packed.push_back(
        f.argument(weight + part.suffix, {{rows, part.columns}, part.dtype}));
  const WeightFormat *row = heldFormat(model.weight(stored));
  Value w = f.op("greta.dequant", packed, {{rows, columns}, element},
                 "{" +
                     (row ? "format = \"" + std::string(row->name) + "\", "
                          : std::string()) +
                     "group = " + std::to_string(group) + "}");
  return shape.size() < 3 ? w : f.expand(w, shape, "[[0, 1], [2]]");
}

// This adds a weight's bias. Each device adds its share where the sum is over
// several.
Value Writer::biased(Function &f, const Value &y, Value bias,
                     const std::string &weight) const {
  bias = f.convert(bias, y.type.element);
  if (weight == "attn_output" || weight.rfind("ffn_down", 0) == 0)
    bias = f.scaled(bias, share());
  return f.elementwise(
      "arith.addf",
      {y, bias.type.shape == y.type.shape ? bias : f.repeat(bias, y.type)});
}

// x times the transposed weight; `stored` is the weight's name in the model.
Value Writer::linear(Function &f, const Value &x, const std::string &weight,
                     const std::string &stored,
                     const std::string &result) const {
  int64_t rows = model.weight(stored).shape[0];
  Value w = held(f, weight, stored);
  Value y = f.op("greta.matmul", {x, w},
                 {{f.tokens, rows}, resultOf(stored, result)}, f.ofPrompt());
  y = f.convert(y, result);
  if (!config.biases.count(weight))
    return y;
  return biased(f, y, f.argument(weight + "_bias", {{rows}, element}), weight);
}

// In f32 where x is.
Value Writer::norm(Function &f, const Value &x, const std::string &weight,
                   int64_t width, double eps) const {
  std::string epsilon = "{eps = " + number(eps) + "}";
  Value w = f.argument(weight, {{width}, "f32"});
  if (!config.has(MeanNorms))
    return f.op("greta.rms_norm", {x, w}, x.type, epsilon);
  Value bias = config.has(NormBiases)
                   ? f.argument(weight + "_bias", {{width}, "f32"})
                   : f.constant(0, {{width}, "f32"});
  return f.op("greta.layer_norm", {x, w, bias}, x.type, epsilon);
}

Value Writer::heads(const Layer &in, const Value &x, const std::string &weight,
                    int64_t count) const {
  Value y = project(in, x, weight, element);
  if (weight == "attn_v")
    y = narrowed(in.f, y); // in the GEMM's kernel, before it is seen as heads
  else if (config.has(RowNorms))
    y = norm(in.f, y, weight + "_norm", count * config.headSize);
  return in.f.expand(y, {in.tokens, count, config.headSize}, "[[0], [1, 2]]");
}

// Keys or values as numbers of e4m3, the largest of which stands for all beyond
// it, where the cache has these.
Value Writer::narrowed(Function &f, const Value &x) const {
  if (cache != KvCache::Fp8)
    return x;
  constexpr double largest = 448;
  Value y = f.elementwise("arith.minimumf", {x, f.constant(largest, x.type)});
  y = f.elementwise("arith.maximumf", {y, f.constant(-largest, x.type)});
  return f.convert(y, elementOf(cache, element));
}

Value Writer::rotated(const Layer &in, const Value &heads,
                      const std::string &weight) const {
  Value y = heads;
  if (config.has(HeadNorms))
    y = norm(in.f, y, weight + "_norm", config.headSize);
  // A rope that turns nothing.
  size_t rope = config.kinds[static_cast<size_t>(in.number)].rope;
  if (config.ropes[rope].factors.empty())
    return y;
  return in.f.op("greta.rope", {y, in.cos, in.sin}, y.type,
                 "{style = \"neox\"}");
}

// A cache with new rows, which it quantises where it has scales.
Writer::Cached Writer::updated(const Layer &in, const std::string &name,
                               const Value &rows) const {
  Function &f = in.f;
  Type type{{any, pageSize, config.keyHeads, config.headSize},
            elementOf(cache, element)};
  Value old = f.argument(name + "_cache", type);
  int64_t group = groupOf(cache);
  if (!group)
    return {f.op("greta.paged_kv_update", {old, rows, in.slots}, type), {}};
  Type scales{{any, pageSize, config.keyHeads, config.headSize / group}, "f16"};
  Value oldScales = f.argument(name + "_scales", scales);
  auto [made, madeScales] = f.op2(
      "greta.paged_kv_update", {old, rows, in.slots, oldScales}, type, scales);
  return {made, {madeScales}};
}

// The heads' sums of values, before the output's weight.
Value Writer::attention(const Layer &in, const Value &x,
                        std::vector<Value> &caches) const {
  Function &f = in.f;
  int64_t size = config.headSize, count = config.heads;
  Value q = rotated(in, heads(in, x, "attn_q", count), "attn_q");
  Value k = rotated(in, heads(in, x, "attn_k", config.keyHeads), "attn_k");
  Value v = heads(in, x, "attn_v", config.keyHeads);
  Cached keys = updated(in, "k", narrowed(f, k));
  Cached values = updated(in, "v", v);
  for (const Cached *one : {&keys, &values}) {
    caches.push_back(one->rows);
    caches.insert(caches.end(), one->scales.begin(), one->scales.end());
  }
  return f.collapse(attend(in, q, keys, values), {in.tokens, count * size},
                    "[[0], [1, 2]]");
}

// Queries [tokens, heads, size], and as many results.
Value Writer::attend(const Layer &in, const Value &q, const Cached &keys,
                     const Cached &values) const {
  Function &f = in.f;
  int64_t size = config.headSize, count = config.heads;
  double scale = config.attentionScale
                     ? config.attentionScale
                     : 1 / std::sqrt(static_cast<double>(size));
  std::string attributes = "{scale = " + number(scale);
  if (int64_t window = config.kinds[static_cast<size_t>(in.number)].window)
    attributes += ", window = " + std::to_string(window) + " : i64";
  if (config.attentionCap)
    attributes += ", softcap = " + number(config.attentionCap);
  std::vector<Value> sinks;
  if (config.has(Sinks))
    sinks.push_back(f.argument("attn_sinks", {{count}, "f32"}));
  std::vector<Value> scales = keys.scales;
  scales.insert(scales.end(), values.scales.begin(), values.scales.end());
  auto attended = [&](const Value &queries, std::vector<Value> begins) {
    return f.op(
        "greta.paged_attention",
        {queries, keys.rows, values.rows, in.table, in.lengths}, queries.type,
        attributes,
        {{"begins", std::move(begins)}, {"sinks", sinks}, {"scales", scales}});
  };
  if (in.isPrompt) {
    attributes += "}";
    return attended(q, {in.begins});
  }
  attributes += ", tokens_first}";
  Value queries =
      f.expand(q, {in.tokens, 1, count, size}, "[[0, 1], [2], [3]]");
  return f.collapse(attended(queries, {}), {in.tokens, count, size},
                    "[[0, 1], [2], [3]]");
}

// GELU in f32: x / 2 (1 + erf(x / sqrt(2))), or by its formula with tanh:
// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
Value Writer::gelu(Function &f, const Value &gate) const {
  Value x = f.convert(gate, "f32");
  auto times = [&](const Value &a, const Value &b) {
    return f.elementwise("arith.mulf", {a, b});
  };
  auto plusOne = [&](const Value &a) {
    return f.elementwise("arith.addf", {a, f.constant(1, a.type)});
  };
  if (config.architecture->activation == Activation::Gelu)
    return times(
        f.scaled(x, 0.5),
        plusOne(f.elementwise("math.erf", {f.scaled(x, std::sqrt(0.5))})));
  Value inner = times(x, plusOne(f.scaled(times(x, x), 0.044715)));
  Value bent =
      f.elementwise("math.tanh", {f.scaled(inner, std::sqrt(2 / M_PI))});
  return times(f.scaled(x, 0.5), plusOne(bent));
}

// In f32: (up + 1) gate sigmoid(slope gate) of a gate below the bound and an up
// within it.
Value Writer::clampedSwiglu(Function &f, const Value &gate,
                            const Value &up) const {
  Value g = f.convert(gate, "f32"), u = f.convert(up, "f32");
  auto all = [&](double value) { return f.constant(value, g.type); };
  g = f.elementwise("arith.minimumf", {g, all(config.clamp)});
  u = f.elementwise("arith.minimumf", {u, all(config.clamp)});
  u = f.elementwise("arith.maximumf", {u, all(-config.clamp)});
  Value e = f.elementwise("math.exp", {f.scaled(g, -config.slope)});
  Value share = f.elementwise("arith.divf",
                              {g, f.elementwise("arith.addf", {e, all(1)})});
  return f.elementwise("arith.mulf",
                       {share, f.elementwise("arith.addf", {u, all(1)})});
}

// Gate and up become what the MLP's last product reads.
Value Writer::gated(Function &f, const Value &gate, const Value &up) const {
  switch (config.architecture->activation) {
  case Activation::Silu:
    return f.op("greta.swiglu", {gate, up}, gate.type);
  case Activation::Gelu:
  case Activation::GeluTanh:
    return f.convert(
        f.elementwise("arith.mulf", {gelu(f, gate), f.convert(up, "f32")}),
        element);
  case Activation::ClampedSwiglu:
    break;
  }
  return f.convert(clampedSwiglu(f, gate, up), element);
}

Value Writer::mlp(const Layer &in, const Value &x,
                  const std::string &suffix) const {
  Function &f = in.f;
  if (config.has(Ungated)) {
    Value active = gelu(f, project(in, x, "ffn_up", element));
    return project(in, f.convert(active, element), "ffn_down", "f32");
  }
  Value gate = project(in, x, "ffn_gate" + suffix, element);
  Value up = project(in, x, "ffn_up" + suffix, element);
  return project(in, gated(f, gate, up), "ffn_down" + suffix, "f32");
}

// The MLP that all tokens have beside a mixture.
Value Writer::shared(const Layer &in, const Value &x) const {
  Function &f = in.f;
  Value y = mlp(in, x, "_shexp");
  if (!config.has(SharedGate))
    return y;
  Value gate = project(in, x, "ffn_gate_inp_shexp", "f32");
  Value e = f.elementwise("math.exp", {f.scaled(gate, -1)});
  Value one = f.constant(1, gate.type);
  Value share =
      f.elementwise("arith.divf", {one, f.elementwise("arith.addf", {e, one})});
  share = f.collapse(share, {in.tokens}, "[[0, 1]]");
  return f.elementwise("arith.mulf", {y, f.repeat(share, y.type, 1)});
}

// Rows of pairs times the weights of their experts.
Value Writer::grouped(Function &f, int64_t layer, const Value &x,
                      const std::string &weight, const Value &offsets,
                      const std::string &result) const {
  std::string stored = Model::inLayer(layer, weight);
  Value w = held(f, weight, stored);
  Type type{{x.type.shape[0], w.type.shape[1]}, resultOf(stored, result)};
  Value y = f.convert(f.op("greta.grouped_matmul", {x, w, offsets}, type,
                           f.ofPrompt(config.mixture.used)),
                      result);
  if (!config.biases.count(weight))
    return y;
  Value bias = f.argument(biasOfPairs(weight), {y.type.shape, element});
  return biased(f, y, bias, weight);
}

std::string Writer::experts(const std::string &name, int64_t layer,
                            int64_t tokens) const {
  int64_t pairs = tokens == any ? any : tokens * config.mixture.used;
  Function f(name, pairs);
  Value rows = f.argument("pair_rows", {{pairs, config.width}, element});
  Value offsets =
      f.argument("expert_offsets", {{config.mixture.count + 1}, "i32"});
  Value gate = grouped(f, layer, rows, "ffn_gate_exps", offsets, element);
  Value up = grouped(f, layer, rows, "ffn_up_exps", offsets, element);
  Value active = gated(f, gate, up);
  return f.finish({grouped(f, layer, active, "ffn_down_exps", offsets, "f32")});
}

// Attention and the MLP read the stream, or its norm.
Value Writer::input(Function &f, const Value &from,
                    const char *normName) const {
  return f.convert(
      config.has(NormsBefore) ? norm(f, from, normName, config.width) : from,
      element);
}

// x and what a part of the layer adds to it.
Value Writer::residual(Function &f, const Value &x, Value more,
                       const char *normName) const {
  if (config.has(NormsAfter))
    more = norm(f, more, normName, config.width);
  more = f.scaled(more, config.residualScale);
  return f.elementwise("arith.addf", {f.scaled(x, share()), more});
}

// The sum over devices that have a part of each layer.
Value Writer::summed(Function &f, const Value &y) const {
  return config.shards > 1 ? f.op("greta.all_reduce", {y}, y.type) : y;
}

// The results are what experts are added to, what they and the router read,
// and the router's logits.
std::vector<Value> Writer::toExperts(const Layer &in, const Value &x,
                                     const Value &inner) const {
  Value y = in.f.scaled(x, share());
  if (config.mixture.shared)
    y = in.f.elementwise("arith.addf", {y, shared(in, inner)});
  return {y, inner, project(in, inner, "ffn_gate_inp", "f32")};
}

std::string Writer::layer(const std::string &name, int64_t layer,
                          int64_t tokens, bool isPrompt) const {
  Function f(name, tokens);
  Type turns{{tokens, config.pairs()}, "f32"};
  Value x = f.argument("x", {{tokens, config.width}, "f32"}), cos, sin, slots;
  if (!config.has(LatentKeys)) {
    cos = f.argument("cos", turns);
    sin = f.argument("sin", turns);
    slots = f.argument("slots", {{tokens}, "i32"});
  }
  // Sequences with any number of tokens each, or with one.
  int64_t sequences = isPrompt ? any : tokens;
  Value table = f.argument("table", {{sequences, any}, "i32"});
  Value lengths = f.argument("lengths", {{sequences}, "i32"}), begins;
  if (isPrompt)
    begins = f.argument("begins", {{any}, "i32"});
  Layer in{f, layer, tokens, isPrompt, cos, sin, slots, table, lengths, begins};

  bool isHanded = !isPrompt && handsNorms();
  Value normed, attended;
  std::vector<Value> caches;
  if (config.has(LatentKeys)) {
    attended = attentionOfLatents(in);
  } else {
    normed = isHanded ? f.argument("normed", {{tokens, config.width}, element})
                      : input(f, x, "attn_norm");
    attended = attention(in, normed, caches);
  }
  auto finished = [&](std::vector<Value> results) {
    results.insert(results.end(), caches.begin(), caches.end());
    return f.finish(results);
  };
  Value middle =
      summed(f, residual(f, x, project(in, attended, "attn_output", "f32"),
                         "post_attention_norm"));
  Value inner = config.has(Parallel) ? normed : input(f, middle, "ffn_norm");
  if (config.hasExperts(layer))
    return finished(toExperts(in, middle, inner));
  std::vector<Value> results = {
      summed(f, residual(f, middle, mlp(in, inner), "post_ffw_norm"))};
  if (isHanded)
    results.push_back(input(f, results.front(), "next_norm"));
  return finished(results);
}

std::string Writer::begin(const std::string &name, int64_t tokens) const {
  Function f(name, tokens);
  Value x = f.argument("x", {{tokens, config.width}, "f32"});
  return f.finish({input(f, x, "attn_norm")});
}

std::string Writer::head(const std::string &name, int64_t tokens) const {
  Function f(name, tokens);
  Value normed;
  if (tokens != any && handsNorms()) {
    normed = f.argument("normed", {{tokens, config.width}, element});
  } else {
    Value x = f.argument("x", {{tokens, config.width}, "f32"});
    normed = f.convert(norm(f, x, "output_norm", config.width), element);
  }
  Value logits =
      f.scaled(linear(f, normed, "output", "output", "f32"), config.logitScale);
  if (config.logitCap) {
    Value bent =
        f.elementwise("math.tanh", {f.scaled(logits, 1 / config.logitCap)});
    logits = f.scaled(bent, config.logitCap);
  }
  return f.finish({logits});
}

// Rows of tables by index: a block program, because the dialect has no op that
// looks up.
std::string lookupKernel(const std::string &name, const std::string &element,
                         double scale) {
  constexpr int64_t width = 1024;
  Program p(name, 4);
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
  if (element != "f32")
    value = p.convert("arith.extf", value, "f32");
  p.store(scale == 1 ? value : value * scale, target + column, isThere);
  return p.finish();
}

// The facts, which are the package's metadata.
std::string Writer::metadata() const {
  std::vector<std::string> facts;
  for (const auto &[name, value] : factsOf(model, kind, cache))
    facts.push_back("\"" + name + "\" = \"" + value + "\"");
  return "{greta.metadata = {" + joined(facts) + "}}";
}

std::string Writer::embed() const {
  struct Lookup {
    std::string result, table;
    Type type;
    const char *index;
    std::string element;
    double scale;
  };
  bool hasVectors = config.has(LearnedPositions);
  std::vector<Lookup> lookups = {{"x",
                                  "token_embd",
                                  {{config.vocabulary, config.width}, element},
                                  "tokens",
                                  element,
                                  config.embeddingScale}};
  if (hasVectors)
    lookups.push_back({"placed",
                       "position_embd",
                       {{config.context, config.width}, element},
                       "positions",
                       element,
                       1});
  // Each rope has cosines and sines.
  for (size_t rope = 0; !hasVectors && rope < config.ropes.size(); ++rope)
    for (const char *name : {"cos", "sin"}) {
      std::string turns = name + (rope ? std::to_string(rope) : std::string());
      lookups.push_back({turns,
                         turns + "_table",
                         {{any, config.pairs()}, "f32"},
                         "positions",
                         "f32",
                         1});
    }
  // Symbols: tokens, positions, and the length of rope's tables.
  std::string symbols = hasVectors ? "()[t]" : "()[t, c]";
  std::map<std::string, std::string> kernels;
  std::vector<std::string> arguments, results, types;
  std::string launches;
  for (const Lookup &one : lookups) {
    std::string kernel =
        "lookup_" + std::string(one.scale == 1 ? "" : "scaled_") + one.element;
    kernels.emplace(kernel, lookupKernel(kernel, one.element, one.scale));
    std::string columns = std::to_string(one.type.shape[1]),
                to = Type{{any, one.type.shape[1]}, "f32"}.text();
    arguments.push_back("%" + one.table + ": " + one.type.text());
    results.push_back("%" + one.result);
    types.push_back(to);
    launches += "  %" + one.result + " = greta_tile.launch @" + kernel +
                " grid affine_map<" + symbols + " -> (t, " +
                std::to_string((one.type.shape[1] + 1023) / 1024) +
                ")> scalars affine_map<" + symbols + " -> (" + columns +
                ")> (%" + one.table + ", %" + one.index +
                ")\n      shapes [affine_map<" + symbols + " -> (t, " +
                columns + ")>] : (" + one.type.text() + ", tensor<?xi32>) -> " +
                to + "\n";
  }
  std::string text;
  for (const auto &[name, kernel] : kernels)
    text += kernel;
  std::string ofTables =
      hasVectors ? ""
                 : " {greta.shape = affine_map<" + symbols + " -> (c, " +
                       std::to_string(config.pairs()) + ")>}";
  return text + "func.func @embed(%tokens: tensor<?xi32>, %positions: " +
         "tensor<?xi32> {greta.shape = affine_map<" + symbols + " -> (t)>}, " +
         joined(arguments) + ofTables + ")\n    -> (" + joined(types) +
         ") attributes " + metadata() + " {\n" + launches + "  return " +
         joined(results) + " : " + joined(types) + "\n}\n";
}

std::string layerFunction(size_t layerClass, int64_t tokens) {
  return "layer" + std::to_string(layerClass) + "_" + std::to_string(tokens);
}

std::string promptFunction(size_t layerClass) {
  return "prompt" + std::to_string(layerClass);
}

std::string expertsFunction(size_t layerClass, int64_t tokens) {
  return "experts" + std::to_string(layerClass) + "_" +
         (tokens ? std::to_string(tokens) : "n");
}

std::string latentFunction(size_t layerClass, int64_t tokens) {
  return "latent" + std::to_string(layerClass) + "_" +
         (tokens ? std::to_string(tokens) : "n");
}

std::string beginFunction(int64_t tokens) {
  return "begin_" + std::to_string(tokens);
}

std::string headFunction(int64_t tokens) {
  return "head_" + (tokens ? std::to_string(tokens) : "n");
}

std::string writeModule(const Model &model, Element element, KvCache cache,
                        const std::vector<int64_t> &sizes) {
  Writer writer(model, element, cache);
  LayerClasses classes = classify(model, element);
  if (model.config.has(Bidirectional)) {
    std::string text = writer.embed() + writer.encodeFirst();
    for (size_t c = 0; c < classes.first.size(); ++c)
      text += writer.encodeLayer(promptFunction(c), classes.first[c]);
    return text;
  }
  bool hasExperts = model.config.has(Experts);
  std::string text = writer.embed() + writer.head(headFunction(0), any) +
                     writeSampling(model.config.vocabulary, pageSize);
  if (hasExperts)
    text += writeExperts(model.config, nameOf(element));
  if (model.config.has(LatentKeys))
    text += writeLatent(model.config, pageSize, nameOf(element));
  auto add = [&](const std::string &name, size_t c, int64_t tokens,
                 bool isPrompt) {
    text += writer.layer(name, classes.first[c], tokens, isPrompt);
    if (model.config.has(LatentKeys))
      text += writer.latent(latentFunction(c, isPrompt ? 0 : tokens),
                            classes.first[c], tokens);
    if (model.config.hasExperts(classes.first[c]))
      text += writer.experts(expertsFunction(c, isPrompt ? 0 : tokens),
                             classes.first[c], tokens);
  };
  for (size_t c = 0; c < classes.first.size(); ++c)
    add(promptFunction(c), c, any, /*isPrompt=*/true);
  for (int64_t size : std::set<int64_t>(sizes.begin(), sizes.end())) {
    for (size_t c = 0; c < classes.first.size(); ++c)
      add(layerFunction(c, size), c, size, /*isPrompt=*/false);
    text += writer.head(headFunction(size), size);
    if (writer.handsNorms())
      text += writer.begin(beginFunction(size), size);
  }
  return text;
}

} // namespace greta::llm
