// Experts.cpp: see Experts.h. Pairs are ordered without atomics, so that the
// order, and with it every sum, is the same each time: a workgroup for each
// expert counts the pairs of lower experts and numbers its own by a scan. It
// reads the experts of all pairs, 4 bytes each, twice.
#include "engine/Experts.h"
#include "engine/Program.h"

#include <algorithm>

namespace greta::llm {
namespace {

// Logits are brought within these, so that NaN is the least; lanes beyond the
// experts, and experts that were taken, are below.
constexpr double least = -3.0e38, most = 3.0e38, taken = -3.4e38,
                 elsewhere = -3.2e38; // in a group that was not chosen
constexpr int64_t pairsTogether = 1024;
constexpr int64_t expertColumns = 1024; // of a block of the width

int64_t powerOfTwo(int64_t least) {
  int64_t size = 8;
  while (size < least)
    size *= 2;
  return size;
}

// Groups of experts are chosen by their largest number, or with biases by the
// sum of the two largest. Experts of other groups than the chosen ones become
// less than any that is there.
Block inChosenGroups(Program &p, const Config &config, const Block &choice,
                     const Block &expert) {
  const Mixture &m = config.mixture;
  Block groupOf =
      p.elementwise("arith.divui", {expert, p.integer(m.count / m.groups)});
  Block group = p.iota(0, {powerOfTwo(m.groups)});
  Block zero = p.integer(0);
  Block scores = p.loop(
      zero, p.integer(m.groups), 1,
      {p.number(taken, p.convert("arith.sitofp", group, "f32"))},
      [&](Block i, Program::Blocks so) -> Program::Blocks {
        Block isIn = groupOf == p.splat(i, expert.shape);
        Block mine = p.select(isIn, choice, p.number(taken, choice));
        auto [score, index] = p.argmax(mine, expert, 0);
        if (config.has(ChoiceBias))
          score =
              score + p.reduce("arith.maxnumf",
                               p.select(expert == p.splat(index, expert.shape),
                                        p.number(taken, mine), mine),
                               0);
        return {p.select(group == p.splat(i, group.shape),
                         p.splat(score, group.shape), so[0])};
      })[0];
  Block isChosen =
      p.loop(zero, p.integer(m.usedGroups), 1, {scores, p.number(0, choice)},
             [&](Block, Program::Blocks so) -> Program::Blocks {
               auto [score, index] = p.argmax(so[0], group, 0);
               return {p.select(group == p.splat(index, group.shape),
                                p.number(taken, so[0]), so[0]),
                       p.select(groupOf == p.splat(index, expert.shape),
                                p.number(1, so[1]), so[1])};
             })[1];
  return p.select(isChosen > 0, choice, p.number(elsewhere, choice));
}

// A token's experts, and their weights: `number` counts them, of which the
// first ones are used.
struct Choice {
  Block experts, weights, number, isUsed;
};

// The arguments that a choice reads.
struct Scores {
  Scores(Program &p, const Config &config)
      : logits(p.argument("logits", "f32")) {
    if (config.has(ChoiceBias))
      biases = p.argument("biases", "f32");
  }
  Block logits, biases;
};

Choice choose(Program &p, const Config &config, const Scores &scores,
              const Block &token) {
  const Mixture &mixture = config.mixture;
  bool areSigmoids = config.has(ChoiceBias);
  Block logits = scores.logits, biases = scores.biases;
  Block expert = p.iota(0, {powerOfTwo(mixture.count)});
  Block isExpert = expert < mixture.count;
  Block read = p.load(logits + token * mixture.count + expert, isExpert, least);
  // No number of a file is below those of experts that are taken.
  auto bounded = [&](Block x) {
    Block atLeast = p.elementwise("arith.maxnumf", {x, p.number(least, x)});
    return p.elementwise("arith.minnumf", {atLeast, p.number(most, atLeast)});
  };
  Block logit = bounded(read);
  Block top = p.reduce("arith.maxnumf", logit, 0), choice = logit, share, all;
  if (areSigmoids) {
    Block e = p.elementwise("math.exp", {p.number(0, logit) - logit});
    share = p.elementwise("arith.divf", {p.number(1, e), e + 1});
    choice = bounded(share + p.load(biases + expert, isExpert, 0));
  } else {
    share = p.elementwise("math.exp", {logit - top});
    all = p.reduce("arith.addf", p.select(isExpert, share, p.number(0, share)),
                   0);
  }
  if (mixture.groups > 1)
    choice = inChosenGroups(
        p, config, p.select(isExpert, choice, p.number(taken, choice)), expert);

  Block number = p.iota(0, {powerOfTwo(mixture.used)});
  Block none = p.splat(p.integer(0), number.shape);
  Block nothing = p.splat(p.number(0, top), number.shape);
  Program::Blocks chosen = p.loop(
      p.integer(0), p.integer(mixture.used), 1,
      {p.select(isExpert, choice, p.number(taken, choice)), none, nothing},
      [&](Block i, Program::Blocks so) -> Program::Blocks {
        auto [value, index] = p.argmax(so[0], expert, 0);
        Block weight =
            areSigmoids || mixture.groups > 1
                ? p.reduce("arith.addf",
                           p.select(expert == p.splat(index, expert.shape),
                                    share, p.number(0, share)),
                           0)
                : p.elementwise("math.exp", {value - top});
        Block isThis = number == p.splat(i, number.shape);
        return {p.select(expert == p.splat(index, expert.shape),
                         p.number(taken, so[0]), so[0]),
                p.select(isThis, p.splat(index, number.shape), so[1]),
                p.select(isThis, p.splat(weight, number.shape), so[2])};
      });
  Block weight = chosen[2];
  if (mixture.normalises)
    all = p.reduce("arith.addf", weight, 0);
  if (areSigmoids && mixture.normalises)
    all = all + 1e-20;
  if (!areSigmoids || mixture.normalises)
    weight = p.elementwise("arith.divf", {weight, p.splat(all, number.shape)});
  if (mixture.scale != 1)
    weight = weight * mixture.scale;
  return {chosen[1], weight, number, number < mixture.used};
}

std::string chooseKernel(const Config &config) {
  Program p("choose_experts", 1);
  Scores scores(p, config);
  Block experts = p.argument("experts", "i32");
  Block weights = p.argument("weights", "f32");
  Block token = p.programId(0);
  Choice choice = choose(p, config, scores, token);
  Block at = token * config.mixture.used + choice.number;
  p.store(choice.experts, experts + at, choice.isUsed);
  p.store(choice.weights, weights + at, choice.isUsed);
  return p.finish();
}

std::string sortKernel() {
  Program p("sort_pairs", 4);
  Block experts = p.argument("experts", "i32");
  Block places = p.argument("places", "i32");
  Block offsets = p.argument("offsets", "i32");
  Block pairs = p.argument("pairs", "i32", /*isPointer=*/false);
  Block mine = p.programId(0), zero = p.integer(0);
  Block lane = p.iota(0, {pairsTogether});
  // The expert of each of some pairs; -1 beyond the last one.
  auto read = [&](const Block &pair) {
    return p.load(experts + pair, pair < pairs, -1);
  };
  auto count = [&](const Block &condition) {
    return p.convert("arith.extui", condition, "i32");
  };
  Block begin =
      p.loop(zero, pairs, pairsTogether, {zero},
             [&](Block first, Program::Blocks so) -> Program::Blocks {
               Block pair = lane + first, expert = read(pair);
               Block isLower = (expert < mine) & (expert >= 0);
               return {so[0] + p.reduce("arith.addi", count(isLower), 0)};
             })[0];
  p.store(begin, offsets + mine);
  p.loop(zero, pairs, pairsTogether, {begin},
         [&](Block first, Program::Blocks so) -> Program::Blocks {
           Block pair = lane + first;
           Block isMine = read(pair) == mine;
           Block numbered = p.scan("arith.addi", count(isMine), 0);
           p.store(numbered + (so[0] - 1), places + pair, isMine);
           return {so[0] + p.reduce("arith.addi", count(isMine), 0)};
         });
  return p.finish();
}

// Columns of a block of a row, and whether they are there.
struct Columns {
  Columns(Program &p, int64_t width)
      : column(p.programId(1) * expertColumns + p.iota(0, {expertColumns})),
        areThere(column < width) {}
  Block column, areThere;
};

Block rowOf(Program &p, const Block &tensor, const Block &row, int64_t width) {
  Block wide = p.convert("arith.extsi", row, "i64");
  return tensor + wide * static_cast<double>(width);
}

// Copies a workgroup's columns of a row to another.
void copyRow(Program &p, const Block &from, const Block &row, const Block &to,
             const Block &place, int64_t width) {
  Columns c(p, width);
  Block value = p.load(rowOf(p, from, row, width) + c.column, c.areThere, 0);
  p.store(value, rowOf(p, to, place, width) + c.column, c.areThere);
}

std::string gatherKernel(const Config &config, const std::string &element) {
  Program p("gather_pairs", 4);
  Block x = p.argument("x", element);
  Block places = p.argument("places", "i32");
  std::vector<ExpertBias> biases = expertBiases(config);
  std::vector<Block> tables;
  Block experts;
  if (!biases.empty())
    experts = p.argument("experts", "i32");
  for (const ExpertBias &bias : biases)
    tables.push_back(p.argument(bias.weight, element));
  Block rows = p.argument("rows", element);
  Block pair = p.programId(0), place = p.load(places + pair);
  copyRow(p, x,
          p.elementwise("arith.divui", {pair, p.integer(config.mixture.used)}),
          rows, place, config.width);
  for (size_t i = 0; i < biases.size(); ++i)
    copyRow(p, tables[i], p.load(experts + pair),
            p.argument(biases[i].weight + "_rows", element), place,
            biases[i].width);
  return p.finish();
}

// All of experts_order for one token, whose experts are different ones: each
// workgroup chooses them itself and copies its part of one pair's rows.
std::string orderOneKernel(const Config &config, const std::string &element) {
  const Mixture &mixture = config.mixture;
  Program p("order_pairs_of_one", 4);
  Scores scores(p, config);
  Block x = p.argument("x", element);
  std::vector<ExpertBias> biases = expertBiases(config);
  std::vector<Block> tables;
  for (const ExpertBias &bias : biases)
    tables.push_back(p.argument(bias.weight, element));
  Block weights = p.argument("weights", "f32");
  Block places = p.argument("places", "i32");
  Block offsets = p.argument("offsets", "i32");
  Block rows = p.argument("rows", element);
  Block pair = p.programId(0), zero = p.integer(0);
  Choice choice = choose(p, config, scores, zero);
  auto expertOf = [&](const Block &number) {
    Block isThis = choice.number == p.splat(number, choice.number.shape);
    return p.reduce(
        "arith.addi",
        p.select(isThis, choice.experts, p.number(0, choice.experts)), 0);
  };
  Block mine = expertOf(pair);
  Block isLower =
      (choice.experts < p.splat(mine, choice.number.shape)) & choice.isUsed;
  Block place =
      p.reduce("arith.addi", p.convert("arith.extui", isLower, "i32"), 0);
  copyRow(p, x, zero, rows, place, config.width);
  for (size_t i = 0; i < biases.size(); ++i)
    copyRow(p, tables[i], mine, p.argument(biases[i].weight + "_rows", element),
            place, biases[i].width);
  p.when(p.programId(1) == 0, [&] {
    p.store(place, places + pair);
    p.when(pair == 0, [&] {
      p.store(choice.weights, weights + choice.number, choice.isUsed);
      Block expert = p.iota(0, {powerOfTwo(mixture.count + 1)});
      Block begin =
          p.loop(zero, p.integer(mixture.used), 1, {p.number(0, expert)},
                 [&](Block i, Program::Blocks so) -> Program::Blocks {
                   Block isBefore = p.splat(expertOf(i), expert.shape) < expert;
                   return {so[0] + p.convert("arith.extui", isBefore, "i32")};
                 })[0];
      p.store(begin, offsets + expert, expert < mixture.count + 1);
    });
  });
  return p.finish();
}

// In place: a workgroup reads and writes its own part of x.
std::string addKernel(const Mixture &mixture, int64_t width) {
  Program p("add_pairs", 4);
  Block x = p.argument("x", "f32");
  Block rows = p.argument("rows", "f32");
  Block places = p.argument("places", "i32");
  Block weights = p.argument("weights", "f32");
  Block token = p.programId(0);
  Columns c(p, width);
  Block sum = p.load(rowOf(p, x, token, width) + c.column, c.areThere, 0);
  for (int64_t i = 0; i < mixture.used; ++i) {
    Block pair =
        token * static_cast<double>(mixture.used) + static_cast<double>(i);
    Block row = p.load(rowOf(p, rows, p.load(places + pair), width) + c.column,
                       c.areThere, 0);
    sum = sum + row * p.load(weights + pair);
  }
  p.store(sum, rowOf(p, x, token, width) + c.column, c.areThere);
  return p.finish();
}

// The two functions; t is the number of tokens.
class FunctionText {
public:
  FunctionText(const Config &config, const std::string &element)
      : count(std::to_string(config.mixture.count)),
        offsets(std::to_string(config.mixture.count + 1)),
        used(std::to_string(config.mixture.used)),
        width(std::to_string(config.width)), element(element),
        biases(expertBiases(config)), isBiased(config.has(ChoiceBias)) {
    int64_t widest = config.width;
    for (const ExpertBias &bias : biases)
      widest = std::max(widest, bias.width);
    blocks = blocksOf(config.width);
    blocksOfAll = blocksOf(widest);
  }

  std::string order() const {
    std::string declared, given, types, named, shapes, choice, ofChoice;
    if (isBiased) {
      declared = ", %exp_probs_b_bias: " + tensor(count, "f32");
      choice = ", %exp_probs_b_bias";
      ofChoice = ", " + tensor(count, "f32");
    }
    for (const ExpertBias &bias : biases) {
      std::string columns = std::to_string(bias.width),
                  type = tensor(count + "x" + columns, element);
      declared += ", %" + bias.weight + "_bias: " + type;
      given += ", %" + bias.weight + "_bias";
      types += ", " + type;
      named += ", %" + bias.weight + "_rows";
      shapes += ", " + map(pairs() + ", " + columns);
    }
    if (!biases.empty()) {
      given = ", %chosen" + given;
      types = ", " + tensor("?x" + used, "i32") + types;
    }
    return "func.func @experts_order(%router_logits: " +
           tensor("?x" + count, "f32") +
           ", %normed: " + tensor("?x" + width, element) +
           shape("t, " + width) + declared + ")\n    -> (" + results() +
           ") {\n" +
           "  %chosen, %weights = greta_tile.launch @choose_experts grid " +
           map("t") + " scalars " + map("") + " (%router_logits" + choice +
           ") shapes [" + map("t, " + used) + ", " + map("t, " + used) +
           "]\n      : (" + tensor("?x" + count, "f32") + ofChoice + ") -> (" +
           tensor("?x" + used, "i32") + ", " + tensor("?x" + used, "f32") +
           ")\n" + "  %places, %offsets = greta_tile.launch @sort_pairs grid " +
           map(offsets) + " scalars " + map(pairs()) + " (%chosen) shapes [" +
           map(pairs()) + ", " + map(offsets) + "]\n      : (" +
           tensor("?x" + used, "i32") + ") -> (" + tensor("?", "i32") + ", " +
           tensor(offsets, "i32") + ")\n" + "  %rows" + named +
           " = greta_tile.launch @gather_pairs grid " +
           map(pairs() + ", " + blocksOfAll) + " scalars " + map("") +
           " (%normed, %places" + given + ") shapes [" +
           map(pairs() + ", " + width) + shapes + "]\n      : (" +
           tensor("?x" + width, element) + ", " + tensor("?", "i32") + types +
           ") -> (" + rows() +
           ")\n  return %weights, %places, %offsets, %rows" + named + " : " +
           results() + "\n}\n";
  }

  // The same of one token, in one launch.
  std::string orderOne() const {
    std::string declared, given, types, shapes, rowsOfAll = ", %rows";
    auto add = [&](const std::string &argument, const std::string &type) {
      declared += ", %" + argument + ": " + type;
      given += ", %" + argument;
      types += ", " + type;
    };
    std::string logits = tensor("1x" + count, "f32");
    if (isBiased)
      add("exp_probs_b_bias", tensor(count, "f32"));
    add("normed", tensor("1x" + width, element));
    std::string made = tensor("1x" + used, "f32") + ", " + tensor(used, "i32") +
                       ", " + tensor(offsets, "i32") + ", " +
                       tensor(used + "x" + width, element);
    for (const ExpertBias &bias : biases) {
      std::string columns = std::to_string(bias.width);
      add(bias.weight + "_bias", tensor(count + "x" + columns, element));
      rowsOfAll += ", %" + bias.weight + "_rows";
      shapes += ", " + fixed(used + ", " + columns);
      made += ", " + tensor(used + "x" + columns, element);
    }
    return "func.func @experts_order_1(%router_logits: " + logits + declared +
           ")\n    -> (" + made + ") {\n  %weights, %places, %offsets" +
           rowsOfAll + " = greta_tile.launch @order_pairs_of_one grid " +
           fixed(used + ", " + blocksOfAll) + " scalars " + fixed("") +
           " (%router_logits" + given + ") shapes [" + fixed("1, " + used) +
           ", " + fixed(used) + ", " + fixed(offsets) + ", " +
           fixed(used + ", " + width) + shapes + "]\n      : (" + logits +
           types + ") -> (" + made + ")\n  return %weights, %places, %offsets" +
           rowsOfAll + " : " + made + "\n}\n";
  }

  std::string add() const {
    std::string x = tensor("?x" + width, "f32"), places = tensor("?", "i32"),
                weights = tensor("?x" + used, "f32");
    return "func.func @experts_add(%x: " + x + ", %pair_results: " + x +
           shape(pairs() + ", " + width) + ",\n    %pair_places: " + places +
           shape(pairs()) + ", %pair_weights: " + weights +
           shape("t, " + used) + ") -> " + x + " {\n" +
           "  %y = greta_tile.launch @add_pairs grid " + map("t, " + blocks) +
           " scalars " + map("") +
           " (%x, %pair_results, %pair_places, %pair_weights) tied [0] shapes "
           "[]\n      : (" +
           x + ", " + x + ", " + places + ", " + weights + ") -> " + x +
           "\n  return %y : " + x + "\n}\n";
  }

private:
  static std::string map(const std::string &extents) {
    return "affine_map<()[t] -> (" + extents + ")>";
  }
  static std::string fixed(const std::string &extents) {
    return "affine_map<() -> (" + extents + ")>";
  }
  static std::string shape(const std::string &extents) {
    return " {greta.shape = " + map(extents) + "}";
  }
  static std::string tensor(const std::string &extents,
                            const std::string &type) {
    return "tensor<" + extents + "x" + type + ">";
  }
  std::string pairs() const { return "t * " + used; }
  static std::string blocksOf(int64_t columns) {
    return std::to_string((columns + expertColumns - 1) / expertColumns);
  }
  std::string rows() const {
    std::string types = tensor("?x" + width, element);
    for (const ExpertBias &bias : biases)
      types += ", " + tensor("?x" + std::to_string(bias.width), element);
    return types;
  }
  std::string results() const {
    return tensor("?x" + used, "f32") + ", " + tensor("?", "i32") + ", " +
           tensor(offsets, "i32") + ", " + rows();
  }

  std::string count, offsets, used, width, element, blocks, blocksOfAll;
  std::vector<ExpertBias> biases;
  bool isBiased; // the choice of experts is
};

} // namespace

std::vector<ExpertBias> expertBiases(const Config &config) {
  std::vector<ExpertBias> biases;
  for (auto [weight, width] :
       {std::pair("ffn_gate_exps", config.mixture.hidden),
        std::pair("ffn_up_exps", config.mixture.hidden),
        std::pair("ffn_down_exps", config.width)})
    if (config.biases.count(weight))
      biases.push_back({weight, width});
  return biases;
}

std::string biasOfPairs(const std::string &weight) {
  return "pair_" + weight + "_bias";
}

std::string writeExperts(const Config &config, const std::string &element) {
  FunctionText text(config, element);
  return chooseKernel(config) + sortKernel() + gatherKernel(config, element) +
         orderOneKernel(config, element) +
         addKernel(config.mixture, config.width) + text.order() +
         text.orderOne() + text.add();
}

} // namespace greta::llm
