// PatternNames.cpp: see PatternNames.h.
#include "grammar/PatternNames.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace greta::llm {

using Expression = GrammarBuilder::Expression;

constexpr size_t mostNameStates = 300;
constexpr int64_t nodesOfOne = 10'000; // to read the patterns of an object
constexpr int64_t nodesOfState = 256;  // to look behind it

PatternNames::PatternNames(const std::vector<std::string> &patterns,
                           const std::vector<std::string> &listed,
                           int64_t &work)
    : work(work) {
  charge(nodesOfOne);
  auto add = [&](auto expression) {
    GrammarBuilder builder;
    int32_t root = builder.newRule();
    builder.define(root, expression(builder));
    auto grammar = std::make_shared<const Grammar>(builder.finish(root));
    charge(static_cast<int64_t>(grammar->nodes.size()));
    automata.emplace_back(std::move(grammar), this->work);
  };
  for (const std::string &pattern : patterns)
    add([&](GrammarBuilder &b) {
      // No name here begins with a backslash, so that no pattern fits none.
      return b.choice({addPattern(b, pattern, b.characters(plainCharacters())),
                       b.literal("\\")});
    });
  add([&](GrammarBuilder &b) { return otherNames(b, listed); });
}

/// The work of all objects of a grammar has an end.
void PatternNames::charge(int64_t nodes) {
  work -= nodes;
  if (work < 0)
    throw std::runtime_error("'patternProperties' of a JSON schema, all "
                             "together, take too long");
}

bool PatternNames::matches(size_t pattern, const std::string &name) {
  Matcher &automaton = automata[pattern];
  int64_t before = automaton.creditLeft();
  int32_t at = automaton.here();
  for (char letter : name) {
    auto byte = static_cast<unsigned char>(letter);
    if (byte < ' ' || byte == '"' || byte == '\\')
      throw std::runtime_error(
          "'patternProperties' of a JSON schema beside a property whose name "
          "needs escapes is not supported");
    if (at >= 0)
      at = automaton.behind(at, byte);
  }
  charge(before - automaton.creditLeft());
  return at >= 0 && automaton.mayEndAt(at);
}

/// The states that all automata have together, each with what is behind it.
void PatternNames::join() {
  using States = std::vector<int32_t>;
  std::map<States, size_t> numbers;
  std::vector<States> all;
  auto numberOf = [&](const States &states) {
    auto [it, isNew] = numbers.try_emplace(states, all.size());
    if (isNew) {
      if (all.size() == mostNameStates)
        throw std::runtime_error(
            "'patternProperties' of a JSON schema has patterns with too many "
            "states: the names beside them make more than 300 rules");
      all.push_back(states);
    }
    return it->second;
  };
  States begin;
  for (Matcher &automaton : automata)
    begin.push_back(automaton.here());
  numberOf(begin);
  auto left = [&] {
    int64_t sum = 0;
    for (const Matcher &automaton : automata)
      sum += automaton.creditLeft();
    return sum;
  };
  for (size_t at = 0; at < all.size(); ++at) {
    int64_t before = left();
    std::map<States, std::bitset<256>> next;
    for (unsigned byte = 0; byte < 256; ++byte) {
      States to;
      for (size_t i = 0; i < automata.size(); ++i)
        to.push_back(all[at][i] < 0
                         ? all[at][i]
                         : automata[i].behind(
                               all[at][i], static_cast<unsigned char>(byte)));
      if (to.back() >= 0)
        next[to].set(byte);
    }
    Joined joined;
    for (size_t i = 0; i < automata.size(); ++i)
      joined.ends.push_back(all[at][i] >= 0 &&
                            automata[i].mayEndAt(all[at][i]));
    for (const auto &[to, bytes] : next)
      joined.next.emplace_back(numberOf(to), bytes);
    states.push_back(std::move(joined));
    charge(before - left() + nodesOfState);
  }
}

std::optional<Expression> PatternNames::named(GrammarBuilder &b,
                                              const std::vector<bool> &which) {
  if (states.empty())
    join();
  std::vector<bool> ends = which;
  ends.push_back(true); // it is not listed
  // The places from which such a name is reached, each from behind.
  std::vector<std::vector<size_t>> before(states.size());
  std::vector<int32_t> rules(states.size(), -1);
  std::vector<size_t> open;
  auto reach = [&](size_t at) {
    if (rules[at] >= 0)
      return;
    rules[at] = b.newRule();
    open.push_back(at);
  };
  for (size_t at = 0; at < states.size(); ++at) {
    for (const auto &[to, bytes] : states[at].next)
      before[to].push_back(at);
    if (states[at].ends == ends)
      reach(at);
  }
  for (size_t done = 0; done < open.size(); ++done)
    for (size_t from : before[open[done]])
      reach(from);
  for (size_t at : open) {
    std::vector<Expression> ways;
    if (states[at].ends == ends)
      ways.push_back(b.empty());
    for (const auto &[to, bytes] : states[at].next)
      if (rules[to] >= 0)
        ways.push_back(b.sequence({b.bytes(bytes), b.call(rules[to])}));
    b.define(rules[at], b.choice(std::move(ways)));
  }
  if (rules[0] < 0)
    return std::nullopt;
  return b.call(rules[0]);
}

} // namespace greta::llm
