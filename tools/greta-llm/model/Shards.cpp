// Shards.cpp: see Shards.h. Queries, keys, values, gates and ups are divided by
// rows, and what multiplies their results (the output projection and the down
// projection) by columns, along whole blocks of its format. All else every
// device has.
#include "model/Shards.h"

namespace greta::llm {
namespace {

enum class Along { Nothing, Rows, Columns };

Along divided(const std::string &name) {
  std::string last = name.substr(name.rfind('.') + 1);
  for (const char *rows : {"attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up"})
    if (last == rows || last == std::string(rows) + "_bias")
      return Along::Rows;
  return last == "attn_output" || last == "ffn_down" ? Along::Columns
                                                     : Along::Nothing;
}

// A part of a weight's last dimension.
void divideColumns(Stored &stored, int64_t number, int64_t count) {
  size_t stride = stored.rowStride ? stored.rowStride : stored.rowBytes();
  stored.shape.back() /= count;
  if (stored.data) {
    stored.data += static_cast<size_t>(number) * stored.rowBytes();
    if (stored.shape.size() > 1)
      stored.rowStride = stride;
  }
}

void divideRows(Stored &stored, int64_t number, int64_t count) {
  if (stored.shape.size() == 1) // of a bias
    return divideColumns(stored, number, count);
  if (stored.data)
    stored.data =
        stored.row(static_cast<size_t>(number * stored.shape[0] / count));
  stored.shape[0] /= count;
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
  if (count != 2 && count != 4 && count != 8)
    refuse("there may be 2, 4 or 8");
  const std::pair<uint64_t, const char *> traits[] = {
      {Bidirectional, "it is a model of embeddings"},
      {Experts, "it has experts"},
      {LatentKeys, "its keys are latents"},
      {NormsAfter, "it has norms behind attention and MLP"},
      {RowNorms, "it has norms of all heads together"},
      {Parallel, "its MLP is beside attention"},
      {Sinks, "its attention has sinks"}};
  for (auto [trait, why] : traits)
    if (c.has(trait))
      refuse(why);
  for (const char *name : {"attn_output", "ffn_down"})
    if (c.biases.count(name))
      refuse(std::string(name) + " has a bias");
  if (c.heads % count || c.keyHeads % count || c.hidden % count)
    refuse("it has " + std::to_string(c.heads) + " heads, " +
           std::to_string(c.keyHeads) + " of keys, and an MLP of " +
           std::to_string(c.hidden));
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
  shard.config.keyHeads /= count;
  shard.config.hidden /= count;
  shard.config.shards = count;
  shard.ends = whole.ends;
  shard.pairsAreNeighbours = whole.pairsAreNeighbours;
  shard.weights = whole.weights;
  for (auto &[name, stored] : shard.weights) {
    Along along = divided(name);
    if (along == Along::Nothing)
      continue;
    const FormatInfo &info = infoOf(stored.format);
    if (stored.format == Format::Int4 || stored.scales || stored.columnStride ||
        !stored.parts.empty())
      refuse("its weights are " + std::string(info.name) +
             (stored.format == Format::Int4 ? "" : ", in several parts"));
    if (along == Along::Columns && stored.columns() / count % info.block)
      refuse("a part of a row of '" + name + "' is " +
             std::to_string(stored.columns() / count) +
             " weights, a block of " + info.name + " is " +
             std::to_string(info.block));
    if (along == Along::Columns)
      divideColumns(stored, number, count);
    else
      divideRows(stored, number, count);
  }
  return shard;
}

} // namespace greta::llm
