// Sampling.cpp: see Sampling.h. Two kernels:
//
// `sample_parts` finds in each part of 64 logits the largest, and in each block
// of 16 parts the largest, the sum of weights, exp((l - largest) /
// temperature), and the best candidate, as if every token were allowed.
// `sample_choose`, one workgroup a sequence, takes the best of all candidates
// and sums over the tokens that are likelier. If it is not allowed, neither is
// what is less likely, and the best of the likelier ones is the next candidate.
// Parts whose largest logit is below are not read, so this is short, and mostly
// over at once. If probabilities are flat and top_k is small, the top_k-th
// of the blocks' largest logits bounds what is read.
#include "engine/Sampling.h"
#include "engine/Program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

namespace greta::llm {

static int32_t bitsOf(double value) {
  float narrow = static_cast<float>(value);
  int32_t bits;
  memcpy(&bits, &narrow, sizeof(bits));
  return bits;
}

std::vector<int32_t> samplingRow(const Sampling &sampling, int64_t left,
                                 const std::vector<int32_t> &tokens,
                                 size_t size) {
  constexpr int64_t all = std::numeric_limits<int32_t>::max();
  auto word = [](int64_t value) { return static_cast<int32_t>(value); };
  std::vector<int32_t> row(SamplingWords);
  int64_t count = static_cast<int64_t>(size);
  row[Left] = word(left);
  row[Position] = word(count - 1);
  row[Window] = word(std::min(sampling.repeatWindow, rememberedTokens));
  row[SeedLow] = word(static_cast<int64_t>(sampling.seed & 0xffffffffu));
  row[SeedHigh] = word(static_cast<int64_t>(sampling.seed >> 32));
  row[Penalty] = bitsOf(sampling.repeatPenalty);
  row[InversePenalty] = bitsOf(1 / sampling.repeatPenalty);
  // The likeliest token is always allowed, so it needs no limits.
  bool isGreedy = sampling.temperature <= 0;
  double temperature = isGreedy ? 1 : sampling.temperature;
  row[TopK] =
      word(isGreedy || !sampling.topK ? all : std::min(sampling.topK, all));
  row[Inverse] = bitsOf(1 / temperature);
  row[Noise] = bitsOf(isGreedy ? 0 : 1);
  row[MinDistance] =
      bitsOf(isGreedy ? -INFINITY : temperature * std::log(sampling.minP));
  row[TopP] = bitsOf(isGreedy || sampling.topP >= 1 ? 2 : sampling.topP);
  row[Masked] = sampling.isMasked;
  row[Frequency] = bitsOf(sampling.frequencyPenalty);
  row[Presence] = bitsOf(sampling.presencePenalty);
  row[BiasCount] =
      word(std::min(static_cast<int64_t>(sampling.biases.size()), mostBiases));
  for (size_t i = 0; i < static_cast<size_t>(row[BiasCount]); ++i) {
    row[BiasTokens + i] = sampling.biases[i].first;
    row[BiasValues + i] =
        bitsOf(static_cast<double>(sampling.biases[i].second));
  }
  for (int64_t i = std::max<int64_t>(0, count - rememberedTokens); i < count;
       ++i)
    row[static_cast<size_t>(History + i % rememberedTokens)] =
        tokens[static_cast<size_t>(i)];
  return row;
}

namespace {

constexpr int64_t part = 64, partsOfBlock = 16, block = part * partsOfBlock;
// Parts that `sample_choose` reads at once.
constexpr int64_t partsTogether = 64;
// Logits are brought within these, so that they can be subtracted; NaN becomes
// the least.
constexpr double least = -3.0e38, most = 3.0e38;
// Less than what any token has to say.
constexpr double unset = -3.4e38;

// The sizes for a vocabulary; blocks have sizes that are powers of two.
struct Sizes {
  explicit Sizes(int64_t vocabulary)
      : vocabulary(vocabulary), blockCount((vocabulary + block - 1) / block) {
    while (blocks < blockCount)
      blocks *= 2;
    parts = blocks * partsOfBlock;
  }
  int64_t vocabulary, blockCount, blocks = 8, parts;
};

// xorshift and multiply: each bit depends on all.
Block mixed(Block x) {
  x = x ^ (x >> 16);
  x = x * 0x7feb352d;
  x = x ^ (x >> 15);
  x = x * static_cast<int32_t>(0x846ca68b);
  return x ^ (x >> 16);
}

// The state of a sequence that both kernels read.
struct Row {
  Row(Program &p, const Block &places, const Block &rows)
      : p(p), line(p.programId(0)), place(p.load(places + line)),
        words(rows + place * SamplingWords), left(word(Left)) {}
  Block word(int which) const { return p.load(words + which); }
  Block number(int which) const {
    return p.convert("arith.bitcast", word(which), "f32");
  }
  // Whether tokens are counted: their penalties are not 0, nor -0.
  Block counts() const {
    return ((word(Frequency) | word(Presence)) & 0x7fffffff) > 0;
  }

  Program &p;
  Block line, place, words, left;
};

class Choice {
public:
  Choice(Program &p, const Row &row, const Block &logits, int64_t vocabulary)
      : p(p), row(row), vocabulary(vocabulary) {
    Block wide = p.convert("arith.extsi", row.line, "i64");
    base = logits + wide * static_cast<double>(vocabulary);
    inverse = row.number(Inverse);
    position = row.word(Position) + 1;
    first =
        mixed(row.word(SeedLow) ^ mixed(row.word(SeedHigh) ^ mixed(position)));
    second = mixed(first ^ static_cast<int32_t>(0x9e3779b9));
  }

  Block finite(const Block &x) {
    Block atLeast = p.elementwise("arith.maxnumf", {x, p.number(least, x)});
    return p.elementwise("arith.minnumf", {atLeast, p.number(most, x)});
  }
  Block logitsOf(const Block &tokens) {
    return finite(p.load(base + tokens, tokens < vocabulary, least));
  }
  Block weights(const Block &logits, const Block &reference) {
    return p.elementwise("math.exp", {(logits - reference) * inverse});
  }

  // l / temperature + g, with g = -ln(-ln(1 - v)) and v uniform from 2^-31 to
  // 1 - 2^-24. The largest g come from the smallest v, which have all their
  // bits; 1 - v would lose them, so there a series stands for its logarithm.
  Block keys(const Block &logits, const Block &tokens) {
    Block bits = mixed(mixed(tokens ^ first) + second);
    Block whole = p.convert("arith.sitofp", (bits >> 1) | 1, "f32");
    Block drawn = whole * 0x1p-31;
    Block v =
        p.elementwise("arith.minnumf", {drawn, p.number(1 - 0x1p-24, drawn)});
    Block series = v * (v * (v * (v * 0.25 + 1.0 / 3) + 0.5) + 1);
    Block one = p.number(1, v);
    Block exact = p.number(0, v) - p.elementwise("math.log", {one - v});
    Block waited = p.select(v < 0x1p-6, series, exact);
    return logits * inverse -
           p.elementwise("math.log", {waited}) * row.number(Noise);
  }

  // The largest key and its token.
  std::pair<Block, Block> best(const Block &keys, const Block &tokens) {
    return p.argmax(flat(keys), flat(tokens), 0);
  }
  Block sum(const char *op, const Block &x) { return p.reduce(op, flat(x), 0); }
  Block flat(const Block &x) { return p.reshape(x, {x.shape[0] * x.shape[1]}); }

  Program &p;
  const Row &row;
  int64_t vocabulary;
  Block base, inverse, position, first, second;
};

// Changes the logits of a block of tokens, from `begin` on, in place. All that
// is read is read before anything is written.
void changeLogits(Program &p, const Row &row, Choice &c, const Block &begin,
                  const Block &masks, const Block &counts) {
  auto stored = [&](const Block &changed, const Block &at, const Block &mask) {
    p.barrier();
    p.store(changed, at, mask);
    p.barrier();
  };
  auto isHere = [&](const Block &token) {
    return (token >= begin) & (token < begin + block);
  };
  Block penalty = row.number(Penalty);
  p.when(p.compare("ne", "one", penalty, p.number(1, penalty)), [&] {
    // Takes the last tokens that are in this block. One that is there twice
    // gets the same value twice, from different lanes, so it is written
    // atomically.
    Block slot = p.iota(0, {rememberedTokens});
    Block last = p.splat(row.word(Position), slot.shape);
    Block age = (last - slot) & (rememberedTokens - 1);
    Block isRecent = (age < row.word(Window)) & (age <= last);
    Block token = p.load(row.words + History + slot, isRecent, -1);
    Block isIn = isHere(token);
    Block at = c.base + token;
    Block old = p.load(at, isIn, 0);
    Block changed =
        p.select(old > 0, old * row.number(InversePenalty), old * penalty);
    p.barrier();
    p.exchange(p.convert("arith.bitcast", changed, "i32"),
               p.castPointer(c.base, "i32") + token, isIn);
    p.barrier();
  });
  Block token = p.iota(0, {block}) + begin, isToken = token < c.vocabulary;
  p.when(row.counts(), [&] {
    Block count = p.load(counts + row.place * c.vocabulary + token, isToken, 0);
    Block isSaid = count > 0, at = c.base + token;
    Block times = p.convert("arith.sitofp", count, "f32");
    stored(p.load(at, isSaid, 0) -
               (times * row.number(Frequency) + row.number(Presence)),
           at, isSaid);
  });
  p.when(row.word(BiasCount) > 0, [&] {
    Block slot = p.iota(0, {mostBiases});
    Block isThere = slot < row.word(BiasCount);
    Block biased = p.load(row.words + BiasTokens + slot, isThere, -1);
    Block isIn = isHere(biased), at = c.base + biased;
    Block bias =
        p.convert("arith.bitcast",
                  p.load(row.words + BiasValues + slot, isThere, 0), "f32");
    stored(p.load(at, isIn, 0) + bias, at, isIn);
  });
  p.when(row.word(Masked) > 0, [&] {
    Block word = p.load(
        masks + row.place * maskWords(c.vocabulary) + (token >> 5), isToken, 0);
    Block bit = p.elementwise("arith.shrui", {word, token & 31}) & 1;
    stored(p.splat(p.number(least, penalty), token.shape), c.base + token,
           isToken & (bit == 0));
  });
}

std::string partsKernel(const Sizes &sizes) {
  Program p("sample_parts", 4);
  Block places = p.argument("places", "i32");
  Block rows = p.argument("rows", "i32");
  Block masks = p.argument("masks", "i32");
  Block counts = p.argument("counts", "i32");
  Block logits = p.argument("logits", "f32");
  Block partTops = p.argument("part_tops", "f32");
  Block blockTops = p.argument("block_tops", "f32");
  Block sums = p.argument("sums", "f32");
  Block bestKeys = p.argument("best_keys", "f32");
  Block bestTokens = p.argument("best_tokens", "i32");
  Row row(p, places, rows);
  p.when(row.left > 0, [&] {
    Choice c(p, row, logits, sizes.vocabulary);
    Block number = p.programId(1), begin = number * block;
    changeLogits(p, row, c, begin, masks, counts);
    std::vector<int64_t> lines = {partsOfBlock, part};
    Block tokens = p.iota(0, lines) * part + p.iota(1, lines) + begin;
    Block logit = c.logitsOf(tokens);
    Block tops = p.reduce("arith.maxnumf", logit, 1);
    Block top = p.reduce("arith.maxnumf", tops, 0);
    Block sum = c.sum("arith.addf", c.weights(logit, top));
    auto [key, token] = c.best(c.keys(logit, tokens), tokens);
    p.store(tops, partTops + (row.line * sizes.parts + number * partsOfBlock +
                              p.iota(0, {partsOfBlock})));
    Block at = row.line * sizes.blocks + number;
    p.store(top, blockTops + at);
    p.store(sum, sums + at);
    p.store(key, bestKeys + at);
    p.store(token, bestTokens + at);
  });
  return p.finish();
}

// The `count`-th of some numbers, from the largest on: of those that have fewer
// than so many larger ones the smallest. They are loaded as a column and as a
// row, each for the lanes that need it.
Block nthLargest(Program &p, const Sizes &sizes, const Block &numbers,
                 const Block &count) {
  std::vector<int64_t> pairs = {sizes.blocks, sizes.blocks};
  auto loaded = [&](int axis) {
    std::vector<int64_t> shape = {1, 1};
    shape[static_cast<size_t>(axis)] = sizes.blocks;
    Block index = p.iota(axis, shape);
    return p.load(numbers + index, index < sizes.blockCount, least);
  };
  Block row = loaded(1);
  Block isLarger = p.broadcast(loaded(0), pairs) > p.broadcast(row, pairs);
  Block larger =
      p.reduce("arith.addi", p.convert("arith.extui", isLarger, "i32"), 0);
  Block own = p.reshape(row, {sizes.blocks});
  return p.reduce("arith.minnumf",
                  p.select(larger < count, own, p.number(most, own)), 0);
}

// The results of `sample_parts`, and memory for lists of parts.
struct Parts {
  Block tops, blockTops, sums, bestKeys, bestTokens, lists;
};

// The candidates of a row, of which each is the best of those that are likelier
// than the one before.
class Candidates {
public:
  Candidates(Program &p, const Sizes &sizes, const Row &row, Choice &c,
             const Parts &parts)
      : p(p), sizes(sizes), row(row), c(c), lists(parts.lists) {
    index = p.iota(0, {sizes.parts});
    Block partsOfRow = row.line * sizes.parts;
    tops = p.load(parts.tops + (partsOfRow + index),
                  index < sizes.blockCount * partsOfBlock, least);
    Block blocksOfRow = row.line * sizes.blocks;
    Block number = p.iota(0, {sizes.blocks}), at = blocksOfRow + number;
    Block isBlock = number < sizes.blockCount;
    Block blockTop = p.load(parts.blockTops + at, isBlock, least);
    top = p.reduce("arith.maxnumf", blockTop, 0);
    Block total = p.reduce(
        "arith.addf",
        p.load(parts.sums + at, isBlock, 0) * c.weights(blockTop, top), 0);
    topP = row.number(TopP);
    nucleus = topP * total;
    first = p.argmax(p.load(parts.bestKeys + at, isBlock, unset),
                     p.load(parts.bestTokens + at, isBlock, 0), 0)
                .second;
    topK = row.word(TopK);
    // Nothing below is allowed.
    bound = p.elementwise(
        "arith.maxnumf",
        {top + row.number(MinDistance),
         p.choose(
             topK <= sizes.blockCount,
             [&] {
               return nthLargest(p, sizes, parts.blockTops + blocksOfRow, topK);
             },
             [&] { return p.number(least, top); })});
  }

  // The first one that is allowed.
  Block allowed() {
    return p.repeat(first, [&](Block candidate) -> std::pair<Block, Block> {
      return next(candidate);
    });
  }

private:
  // Whether to go on behind a candidate, and with which.
  std::pair<Block, Block> next(const Block &candidate) {
    Block logit = c.finite(p.load(c.base + candidate));
    Block isLimited = (topK < sizes.vocabulary) | (topP < 1) | (logit < bound);
    // The list of the parts that are read, and behind it their number.
    Block list = lists + row.line * (sizes.parts + 1);
    Block toRead = p.choose(
        isLimited, [&] { return listParts(list, logit); },
        [&] { return p.integer(0); });
    auto [count, weight, best] = search(list, toRead, logit, candidate);
    // Alone at the top, or not to be asked: it is its own successor.
    Block isFirst = best == candidate;
    Block isAllowed = (logit >= bound) & (count < topK) & (weight < nucleus);
    Block isChosen = isFirst | isAllowed;
    return {isChosen == 0, p.select(isChosen, candidate, best)};
  }

  Block competes(const Block &l, const Block &logit) {
    return (l > logit) & (l >= bound);
  }

  Block listParts(const Block &list, const Block &logit) {
    Block isRead = competes(tops, logit);
    Block numbered =
        p.scan("arith.addi", p.convert("arith.extui", isRead, "i32"), 0);
    Block end = p.splat(p.integer(sizes.parts), numbered.shape);
    p.barrier();
    p.store(index, list + (numbered - 1), isRead);
    p.store(numbered, list + end, index == sizes.parts - 1);
    p.barrier();
    return p.load(list + sizes.parts);
  }

  // Searches the parts of a list for tokens that are likelier than `candidate`,
  // and returns their number, the sum of their weights, and the best of them.
  std::tuple<Block, Block, Block> search(const Block &list, const Block &toRead,
                                         const Block &logit,
                                         const Block &candidate) {
    Block none = p.number(0, logit), nobody = p.number(unset, logit);
    Program::Blocks found =
        p.loop(p.integer(0), toRead, partsTogether,
               {p.integer(0), none, nobody, candidate},
               [&](Block done, Program::Blocks so) -> Program::Blocks {
                 std::vector<int64_t> lines = {partsTogether, part};
                 Block next = p.iota(0, {partsTogether, 1}) + done;
                 // Parts beyond the last one lie beyond the vocabulary.
                 Block which = p.load(list + next, next < toRead, 0);
                 Block begin = p.select(next < toRead, which,
                                        p.number(sizes.parts, which)) *
                               part;
                 Block token = p.broadcast(begin, lines) + p.iota(1, lines);
                 Block read = c.logitsOf(token);
                 Block isIn = competes(read, logit);
                 Block one = p.convert("arith.extui", isIn, "i32");
                 // At least one competes in each part that is read, so what
                 // does not is never the best.
                 Block l = p.select(isIn, read, nobody);
                 Block weight = c.weights(l, top);
                 auto [key, best] = c.best(c.keys(l, token), token);
                 Block isBetter = key > so[2];
                 return {so[0] + c.sum("arith.addi", one),
                         so[1] + c.sum("arith.addf", weight),
                         p.select(isBetter, key, so[2]),
                         p.select(isBetter, best, so[3])};
               });
    return {found[0], found[1], found[3]};
  }

  Program &p;
  const Sizes &sizes;
  const Row &row;
  Choice &c;
  Block lists, index, tops, top, topP, nucleus, first, topK, bound;
};

std::string chooseKernel(const Sizes &sizes, int64_t pageSize) {
  Program p("sample_choose", 16);
  Block places = p.argument("places", "i32");
  Block table = p.argument("table", "i32");
  Parts parts;
  parts.tops = p.argument("part_tops", "f32");
  parts.blockTops = p.argument("block_tops", "f32");
  parts.sums = p.argument("sums", "f32");
  parts.bestKeys = p.argument("best_keys", "f32");
  parts.bestTokens = p.argument("best_tokens", "i32");
  Block positions = p.argument("positions", "i32");
  Block slots = p.argument("slots", "i32");
  Block lengths = p.argument("lengths", "i32");
  Block rows = p.argument("rows", "i32");
  Block counts = p.argument("counts", "i32");
  Block tokens = p.argument("tokens", "i32");
  Block logits = p.argument("logits", "f32");
  parts.lists = p.argument("lists", "i32");
  Block pages = p.argument("pages", "i32", /*isPointer=*/false);
  Row row(p, places, rows);
  p.when(row.left > 0, [&] {
    Choice c(p, row, logits, sizes.vocabulary);
    // The rest of the next step's input; behind the last token there is none.
    Block goesOn = row.left > 1;
    Block page = p.load(
        table + row.place * pages +
            p.elementwise("arith.divui", {c.position, p.integer(pageSize)}),
        goesOn, 0);
    Block slot = page * pageSize + (c.position & (pageSize - 1));
    p.barrier(); // all have read the row
    p.store(row.left - 1, row.words + Left);
    p.store(c.position, row.words + Position);
    p.store(p.select(goesOn, c.position, p.integer(0)), positions + row.place);
    p.store(p.select(goesOn, slot, p.integer(-1)), slots + row.place);
    p.store(p.select(goesOn, c.position + 1, p.integer(0)),
            lengths + row.place);

    Block token = Candidates(p, sizes, row, c, parts).allowed();
    p.store(token, row.words + History + (c.position & (rememberedTokens - 1)));
    p.store(token, tokens + row.place);
    p.when(row.counts(), [&] {
      Block count = counts + row.place * sizes.vocabulary + token;
      Block more = p.load(count) + 1;
      p.barrier();
      p.store(more, count);
    });
  });
  return p.finish();
}

} // namespace

std::string writeSampling(int64_t vocabulary, int64_t pageSize) {
  auto number = [](int64_t value) { return std::to_string(value); };
  // Symbols: rows of logits, places, pages of a sequence.
  auto map = [](const std::string &extents) {
    return "affine_map<()[r, t, p] -> (" + extents + ")>";
  };
  auto line = [](int64_t columns, const char *element) {
    return "tensor<?x" + std::to_string(columns) + "x" + element + ">";
  };
  Sizes sizes(vocabulary);
  auto aliased = [](const char *name, const std::string &type) {
    return std::string("!") + name + " = " + type + "\n";
  };
  return partsKernel(sizes) + chooseKernel(sizes, pageSize) +
         aliased("logits", line(vocabulary, "f32")) +
         aliased("rows", line(SamplingWords, "i32")) +
         aliased("parts", line(sizes.parts, "f32")) +
         aliased("blocks", line(sizes.blocks, "f32")) +
         aliased("best", line(sizes.blocks, "i32")) +
         aliased("lists", line(sizes.parts + 1, "i32")) +
         aliased("list", "tensor<?xi32>") +
         aliased("table", "tensor<?x?xi32>") +
         aliased("masks", line(maskWords(vocabulary), "i32")) +
         aliased("counts", line(vocabulary, "i32")) +
         "#of_places = " + map("t") +
         "\n#part = " + map("r, " + number(sizes.parts)) +
         "\n#list = " + map("r, " + number(sizes.parts + 1)) +
         "\n#block = " + map("r, " + number(sizes.blocks)) + "\n" +
         "func.func @sample(%logits: !logits, %places: !list {greta.shape = " +
         map("r") + "}, %table: !table, %rows: !rows {greta.shape = " +
         map("t, " + number(SamplingWords)) +
         "},\n    %masks: !masks {greta.shape = " +
         map("t, " + number(maskWords(vocabulary))) +
         "}, %counts: !counts {greta.shape = " +
         map("t, " + number(vocabulary)) + R"(},
    %tokens: !list {greta.shape = #of_places},
    %positions: !list {greta.shape = #of_places},
    %slots: !list {greta.shape = #of_places},
    %lengths: !list {greta.shape = #of_places})
    -> (!logits, !rows, !counts, !list, !list, !list, !list) {
  %l, %parts, %tops, %sums, %keys, %best = greta_tile.launch @sample_parts grid )" +
         map("r, " + number(sizes.blockCount)) + " scalars " + map("") + R"(
      (%places, %rows, %masks, %counts, %logits) tied [4, -1, -1, -1, -1, -1]
      shapes [#part, #block, #block, #block, #block]
      : (!list, !rows, !masks, !counts, !logits)
      -> (!logits, !parts, !blocks, !blocks, !blocks, !best)
  %0:7 = greta_tile.launch @sample_choose grid )" +
         map("r") + " scalars " + map("p") + R"(
      (%places, %table, %parts, %tops, %sums, %keys, %best,
       %positions, %slots, %lengths, %rows, %counts, %tokens, %l)
      tied [7, 8, 9, 10, 11, 12, -1] shapes [#list]
      : (!list, !table, !parts, !blocks, !blocks, !blocks, !best,
         !list, !list, !list, !rows, !counts, !list, !logits)
      -> (!list, !list, !list, !rows, !counts, !list, !lists)
  return %l, %0#3, %0#4, %0#5, %0#0, %0#1, %0#2
      : !logits, !rows, !counts, !list, !list, !list, !list
}
)";
}

} // namespace greta::llm
