// Latent.cpp: see Latent.h.
#include "engine/Latent.h"
#include "engine/FunctionText.h"
#include "engine/Program.h"

namespace greta::llm {

std::vector<int64_t> latentShape(const Config &c, const std::string &name,
                                 int64_t tokens) {
  const Latent &l = c.latent;
  if (!c.has(LatentKeys))
    return {};
  if (name == "latent_q")
    return {c.heads, tokens, l.rank};
  if (name == "latent_q_rope")
    return {tokens, c.heads, l.rope};
  if (name == "latent_kv")
    return {tokens, l.rank};
  if (name == "latent_k_rope")
    return {tokens, l.rope};
  if (name == "latent_queries")
    return {tokens, c.heads, c.headSize};
  return {};
}

// A workgroup for each head of a token, and one for the token's row of the
// cache, which is that of head `heads`.
static std::string joinKernel(const Config &c, const std::string &element) {
  constexpr int64_t columns = 256;
  const Latent &l = c.latent;
  Program p("join_latents", 4);
  Block q = p.argument("q", element), qRope = p.argument("q_rope", element);
  Block kv = p.argument("kv", element), kRope = p.argument("k_rope", element);
  Block slots = p.argument("slots", "i32"),
        cache = p.argument("cache", element),
        queries = p.argument("queries", element);
  Block tokens = p.argument("tokens", "i32", /*isPointer=*/false);
  Block token = p.programId(0), head = p.programId(1);
  auto wide = [&](const Block &x) {
    return p.convert("arith.extsi", x, "i64");
  };
  auto copy = [&](const Block &from, const Block &row, const Block &to,
                  int64_t count) {
    double width = static_cast<double>(count);
    for (int64_t first = 0; first < count; first += columns) {
      Block column = p.iota(0, {columns}) + static_cast<double>(first);
      Block isThere = column < width;
      p.store(p.load(from + row * width + column, isThere, 0), to + column,
              isThere);
    }
  };
  double heads = static_cast<double>(c.heads),
         size = static_cast<double>(c.headSize);
  p.when(head < heads, [&] {
    Block row = wide(token * heads + head);
    Block to = queries + row * size;
    copy(q, wide(head * tokens + token), to, l.rank);
    copy(qRope, row, to + p.integer(l.rank), l.rope);
  });
  Block slot = p.load(slots + token);
  p.when((head == heads) & (slot >= 0), [&] {
    Block to = cache + wide(slot) * size;
    copy(kv, wide(token), to, l.rank);
    copy(kRope, wide(token), to + p.integer(l.rank), l.rope);
  });
  return p.finish();
}

std::string writeLatent(const Config &c, int64_t page,
                        const std::string &element) {
  auto map = [](const std::string &extents) {
    return "affine_map<()[t, p] -> (" + extents + ")>";
  };
  auto extents = [](const std::vector<int64_t> &shape) {
    std::vector<std::string> texts;
    for (int64_t extent : shape)
      texts.push_back(extent == any ? "t" : std::to_string(extent));
    return joined(texts);
  };
  std::vector<std::string> declared, given, types;
  auto add = [&](const std::string &name, const std::string &type,
                 const std::string &shape) {
    declared.push_back("%" + name + ": " + type +
                       " {greta.shape = " + map(shape) + "}");
    given.push_back("%" + name);
    types.push_back(type);
  };
  for (const char *name : latentResults) {
    std::vector<int64_t> shape = latentShape(c, name, any);
    add(name, Type{shape, element}.text(), extents(shape));
  }
  add("slots", "tensor<?xi32>", "t");
  std::string cache = Type{{any, page, 1, c.headSize}, element}.text();
  add("k_cache", cache,
      "p, " + std::to_string(page) + ", 1, " + std::to_string(c.headSize));
  std::vector<int64_t> shape = latentShape(c, "latent_queries", any);
  std::string results = cache + ", " + Type{shape, element}.text();
  return joinKernel(c, element) + "func.func @latent_join(" + joined(declared) +
         ")\n    -> (" + results +
         ") {\n  %cache, %queries = greta_tile.launch @join_latents grid " +
         map("t, " + std::to_string(c.heads + 1)) + " scalars " + map("t") +
         " (" + joined(given) + ") tied [5, -1] shapes [" +
         map(extents(shape)) + "]\n      : (" + joined(types) + ") -> (" +
         results + ")\n  return %cache, %queries : " + results + "\n}\n";
}

} // namespace greta::llm
