// Shards.cpp: see Shards.h. Queries, keys, values, gates and ups are divided by
// rows, those of experts within each expert, and what multiplies their results
// (the output and down projections) by columns, along whole blocks of its
// format. All else every device has, the router and what makes latents
// included.
#include "model/Shards.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>

namespace greta::llm {
namespace {

// A weight is divided along its outermost dimension, by the rows of each of
// several matrices, or by columns.
enum class Along { Nothing, Outermost, Rows, Columns };

Along divided(const std::string &name) {
  static const std::map<std::string, Along> known = {
      {"attn_q", Along::Outermost},         {"attn_k", Along::Outermost},
      {"attn_v", Along::Outermost},         {"attn_sinks", Along::Outermost},
      {"attn_q_plain", Along::Outermost},   {"attn_q_rope", Along::Outermost},
      {"attn_k_b", Along::Outermost},       {"attn_v_b", Along::Outermost},
      {"ffn_gate", Along::Outermost},       {"ffn_up", Along::Outermost},
      {"ffn_gate_shexp", Along::Outermost}, {"ffn_up_shexp", Along::Outermost},
      {"ffn_gate_exps", Along::Rows},       {"ffn_up_exps", Along::Rows},
      {"attn_output", Along::Columns},      {"ffn_down", Along::Columns},
      {"ffn_down_shexp", Along::Columns},   {"ffn_down_exps", Along::Columns}};
  std::string last = name.substr(name.rfind('.') + 1);
  constexpr std::string_view suffix = "_bias";
  bool isBias =
      last.size() > suffix.size() &&
      last.compare(last.size() - suffix.size(), suffix.size(), suffix) == 0;
  if (isBias)
    last.resize(last.size() - suffix.size());
  auto it = known.find(last);
  Along along = it == known.end() ? Along::Nothing : it->second;
  // Columns of biases are rows of what they are added to.
  if (isBias)
    return along == Along::Outermost || along == Along::Rows ? Along::Columns
                                                             : Along::Nothing;
  return along;
}

// The result is how many bytes lie before a number of a row.
size_t bytesTo(const Stored &stored, int64_t column) {
  const FormatInfo &info = infoOf(stored.format);
  size_t number = static_cast<size_t>(column);
  return stored.scales         ? number / 2
         : stored.columnStride ? number * stored.columnStride
                               : number / static_cast<size_t>(info.block) *
                                     static_cast<size_t>(info.bytes);
}

void moveBy(Stored &stored, size_t bytes) {
  if (stored.data)
    stored.data += bytes;
  if (stored.scales)
    stored.scales += bytes / 16;
  for (const uint8_t *&part : stored.parts)
    part += bytes;
}

void divideColumns(Stored &stored, int64_t number, int64_t count) {
  size_t stride = stored.rowStride ? stored.rowStride : stored.rowBytes();
  stored.shape.back() /= count;
  moveBy(stored, bytesTo(stored, number * stored.shape.back()));
  if (stored.shape.size() > 1)
    stored.rowStride = stride;
}

void divideOutermost(Stored &stored, int64_t number, int64_t count) {
  if (stored.shape.size() == 1)
    return divideColumns(stored, number, count);
  if (stored.parts.empty() && stored.data) {
    size_t first = static_cast<size_t>(number * (stored.rows() / count));
    moveBy(stored, static_cast<size_t>(stored.row(first) - stored.data));
  }
  auto of = [&](int64_t which) {
    return stored.parts.begin() +
           static_cast<std::ptrdiff_t>(stored.parts.size()) * which / count;
  };
  stored.parts = {of(number), of(number + 1)};
  stored.shape[0] /= count;
}

// A part of each matrix becomes one that lies apart.
void divideRows(Stored &stored, int64_t number, int64_t count) {
  std::vector<const uint8_t *> parts = stored.parts;
  if (stored.data && parts.empty())
    for (int64_t first = 0; first < stored.rows(); first += stored.shape[1])
      parts.push_back(stored.row(static_cast<size_t>(first)));
  stored.parts = std::move(parts);
  size_t stride = stored.rowStride ? stored.rowStride : stored.rowBytes();
  stored.shape[1] /= count;
  for (const uint8_t *&part : stored.parts)
    part += static_cast<size_t>(number * stored.shape[1]) * stride;
}

void refuseToDivide(const Model &whole, int64_t count, const std::string &why) {
  fail(whole.path + ": cannot be divided among " + std::to_string(count) +
       " devices: " + why);
}

} // namespace

void checkDivisible(const Model &whole, int64_t count) {
  const Config &c = whole.config;
  auto refuse = [&](const std::string &why) {
    refuseToDivide(whole, count, why);
  };
  const std::pair<uint64_t, const char *> traits[] = {
      {Bidirectional, "it is a model of embeddings"},
      {NormsAfter, "it has norms behind attention and MLP"},
      {RowNorms, "it has norms of all heads together"},
      {Parallel, "its MLP is beside attention"}};
  for (auto [trait, why] : traits)
    if (c.has(trait))
      refuse(why);
  if (count != 2 && count != 4 && count != 8)
    refuse("there may be 2, 4 or 8");
  const Mixture &m = c.mixture;
  if (c.heads % count || (!c.has(LatentKeys) && c.keyHeads % count) ||
      c.hidden % count || m.hidden % count || m.shared % count)
    refuse("it has " + std::to_string(c.heads) + " heads, " +
           std::to_string(c.keyHeads) + " of keys, and an MLP of " +
           std::to_string(c.hidden) +
           (c.has(Experts) ? ", of experts " + std::to_string(m.hidden) +
                                 " and " + std::to_string(m.shared)
                           : ""));
}

Model shardOf(const Model &whole, int64_t number, int64_t count) {
  checkDivisible(whole, count);
  const Config &c = whole.config;
  auto refuse = [&](const std::string &why) {
    refuseToDivide(whole, count, why);
  };
  Model shard;
  shard.path = whole.path;
  shard.config = c;
  shard.config.heads /= count;
  if (!c.has(LatentKeys)) // the latent is the keys of all heads
    shard.config.keyHeads /= count;
  shard.config.hidden /= count;
  shard.config.mixture.hidden /= count;
  shard.config.mixture.shared /= count;
  shard.config.shards = count;
  shard.ends = whole.ends;
  shard.pairsAreNeighbours = whole.pairsAreNeighbours;
  shard.weights = whole.weights;
  for (auto &[name, stored] : shard.weights) {
    Along along = divided(name);
    if (along == Along::Nothing)
      continue;
    const FormatInfo &info = infoOf(stored.format);
    if (stored.format == Format::Int4)
      refuse("its weights are " + std::string(info.name));
    if (along == Along::Columns && stored.columns() / count % info.block)
      refuse("a part of a row of '" + name + "' is " +
             std::to_string(stored.columns() / count) +
             " weights, a block of " + info.name + " is " +
             std::to_string(info.block));
    if (along == Along::Columns)
      divideColumns(stored, number, count);
    else if (along == Along::Rows)
      divideRows(stored, number, count);
    else
      divideOutermost(stored, number, count);
  }
  return shard;
}

std::vector<int64_t> layersByMemory(int64_t layers,
                                    const std::vector<double> &free) {
  auto count = static_cast<int64_t>(free.size());
  bool isKnown = std::find(free.begin(), free.end(), 0) == free.end();
  double all = std::accumulate(free.begin(), free.end(), 0.0), sum = 0;
  std::vector<int64_t> shares;
  for (int64_t stage = 0, before = 0; stage < count; ++stage) {
    sum += isKnown ? free[static_cast<size_t>(stage)] / all
                   : 1 / static_cast<double>(count);
    int64_t end = std::lround(sum * static_cast<double>(layers));
    end = std::clamp(end, before + 1, layers - (count - 1 - stage));
    shares.push_back(end - before);
    before = end;
  }
  return shares;
}

} // namespace greta::llm
