// EncoderGraph.cpp: an encoder's functions (Writer.h). In: the tokens of texts,
// filled up to the length of the longest one, and their lengths. Out: the state
// of each token, in f32, behind every layer.
//
//   embed          rows of the embedding, and of positions' vectors or of the
//                  tables of rope (Graph.cpp)
//   encode_first   these with types' vectors, and the first norm
//   promptC        a layer of class C
//
// All take any number of tokens and texts. The tokens of a text see each other.
#include "engine/Writer.h"

#include <cmath>

namespace greta::llm {

std::string Writer::encodeFirst() const {
  Function f(encodeFirstFunction, any);
  Value x = f.argument("x", {{any, config.width}, "f32"});
  if (config.has(LearnedPositions)) {
    Value positions = f.argument("placed", {{any, config.width}, "f32"});
    x = f.elementwise("arith.addf", {x, positions});
  }
  Value types = f.argument("token_types", {{config.width}, "f32"});
  x = f.elementwise("arith.addf", {x, f.repeat(types, x.type)});
  return f.finish({norm(f, x, "token_embd_norm", config.width)});
}

// The heads' sums of values, before the output's weight.
Value Writer::attendToAll(const Layer &in, const Value &x) const {
  Function &f = in.f;
  int64_t size = config.headSize;
  auto keysOrValues = [&](const Value &rows) {
    return f.transposed(f.bySequence(rows, in.lengths), {0, 2, 1, 3});
  };
  Value q = rotated(in, heads(in, x, "attn_q", config.heads), "attn_q");
  Value k = rotated(in, heads(in, x, "attn_k", config.keyHeads), "attn_k");
  Value v = heads(in, x, "attn_v", config.keyHeads);
  Value queries = f.bySequence(q, in.lengths);
  double scale = 1 / std::sqrt(static_cast<double>(size));
  Value attended =
      f.op("greta.attention", {queries, keysOrValues(k), keysOrValues(v)},
           queries.type, "{scale = " + number(scale) + ", tokens_first}",
           {{"lengths", {in.lengths}}});
  Value rows =
      f.collapse(attended, {any, config.heads, size}, "[[0, 1], [2], [3]]");
  return f.collapse(rows, {any, config.heads * size}, "[[0], [1, 2]]");
}

std::string Writer::encodeLayer(const std::string &name, int64_t layer) const {
  Function f(name, any);
  Value x = f.argument("x", {{any, config.width}, "f32"}), cos, sin;
  if (!config.has(LearnedPositions)) {
    cos = f.argument("cos", {{any, config.pairs()}, "f32"});
    sin = f.argument("sin", {{any, config.pairs()}, "f32"});
  }
  Value lengths = f.argument("lengths", {{any}, "i32"});
  Layer in{f, layer, any, true, cos, sin, {}, {}, lengths, {}};
  auto add = [&](const Value &more, const char *normName) {
    return norm(f, f.elementwise("arith.addf", {x, more}), normName,
                config.width);
  };
  Value attended = attendToAll(in, f.convert(x, element));
  x = add(project(in, attended, "attn_output", "f32"), "attn_output_norm");
  x = add(mlp(in, f.convert(x, element)), "layer_output_norm");
  return f.finish({x});
}

} // namespace greta::llm
