// LatentGraph.cpp: what a layer of latents has in place of others' queries,
// keys and values (Writer.h, Latent.h). In: x, or the queries that latent_join
// made and the cache. Out: latentC_T, and the attention of layerC_T.
#include "engine/Latent.h"
#include "engine/Writer.h"

namespace greta::llm {

// x [heads, tokens, columns] times each head's transposed weight.
Value Writer::batched(Function &f, const Value &x, const std::string &weight,
                      int64_t rows, int64_t columns) const {
  Value w = f.argument(weight, {{config.heads, rows, columns}, element});
  return f.op("greta.matmul", {x, w}, {{config.heads, f.tokens, rows}, element},
              f.ofPrompt());
}

// Keys are rows of the cache, and values what these begin with.
Value Writer::attentionOfLatents(const Layer &in) const {
  Function &f = in.f;
  const Latent &l = config.latent;
  Value queries =
      f.argument("latent_queries",
                 {latentShape(config, "latent_queries", in.tokens), element});
  Cached latents{
      f.argument("k_cache", {{any, pageSize, 1, config.headSize}, element}),
      {}};
  Value mixed = f.firstColumns(attend(in, queries, latents, latents), l.rank);
  Value values = batched(f, f.swapped(mixed), "attn_v_b", l.value, l.rank);
  return f.collapse(f.swapped(values), {in.tokens, config.heads * l.value},
                    "[[0], [1, 2]]");
}

std::string Writer::latent(const std::string &name, int64_t layer,
                           int64_t tokens) const {
  Function f(name, tokens);
  const Latent &l = config.latent;
  Value x = f.argument("x", {{tokens, config.width}, "f32"});
  Type turns{{tokens, config.pairs()}, "f32"};
  Value cos = f.argument("cos", turns), sin = f.argument("sin", turns);
  Layer in{f, layer, tokens, false, cos, sin, {}, {}, {}, {}};
  Value normed = f.convert(norm(f, x, "attn_norm", config.width), element);
  Value low = normed;
  if (l.queryRank)
    low = f.convert(norm(f, project(in, normed, "attn_q_a", "f32"),
                         "attn_q_a_norm", l.queryRank, epsilonOfLatents),
                    element);
  auto withRope = [&](const Value &from, const std::string &weight,
                      int64_t heads) {
    Value y = f.expand(project(in, from, weight, element),
                       {tokens, heads, l.rope}, "[[0], [1, 2]]");
    return f.op("greta.rope", {y, cos, sin}, y.type, "{style = \"neox\"}");
  };
  Value plain = f.expand(project(in, low, "attn_q_plain", element),
                         {tokens, config.heads, l.plain}, "[[0], [1, 2]]");
  Value q = batched(f, f.swapped(plain), "attn_k_b", l.rank, l.plain);
  Value qRope = withRope(low, "attn_q_rope", config.heads);
  Value kv = f.convert(norm(f, project(in, normed, "attn_kv_a", "f32"),
                            "attn_kv_a_norm", l.rank, epsilonOfLatents),
                       element);
  Value kRope = f.collapse(withRope(normed, "attn_k_rope", 1), {tokens, l.rope},
                           "[[0], [1, 2]]");
  return f.finish({q, qRope, kv, kRope});
}

} // namespace greta::llm
