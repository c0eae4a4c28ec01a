// Grammar.cpp: see Grammar.h.
#include "grammar/Grammar.h"

#include <algorithm>
#include <stdexcept>

namespace greta::llm {

namespace {
constexpr size_t mostParts = 200'000, mostNodes = 50'000, mostRules = 2000;
constexpr int deepest = 200;
constexpr int64_t mostRepeats = 10'000;

[[noreturn]] void tooLarge() { throw std::runtime_error("it is too large"); }
} // namespace

GrammarBuilder::Expression GrammarBuilder::add(Part part) {
  if (all.size() == mostParts)
    tooLarge();
  all.push_back(std::move(part));
  return static_cast<Expression>(all.size() - 1);
}

int32_t GrammarBuilder::setOf(const std::bitset<256> &bytes) {
  // Few different ones: the last ones are looked at.
  for (size_t back = 1; back <= std::min<size_t>(grammar.sets.size(), 32);
       ++back)
    if (grammar.sets[grammar.sets.size() - back] == bytes)
      return static_cast<int32_t>(grammar.sets.size() - back);
  grammar.sets.push_back(bytes);
  return static_cast<int32_t>(grammar.sets.size() - 1);
}

GrammarBuilder::Expression GrammarBuilder::byteRange(unsigned first,
                                                     unsigned last) {
  std::bitset<256> bytes;
  for (unsigned byte = first; byte <= last; ++byte)
    bytes.set(byte);
  return this->bytes(bytes);
}

GrammarBuilder::Expression GrammarBuilder::bytes(const std::bitset<256> &set) {
  Part part{What::Set, {}};
  part.which = setOf(set);
  return add(std::move(part));
}

GrammarBuilder::Expression GrammarBuilder::literal(const std::string &bytes) {
  std::vector<Expression> parts;
  for (char byte : bytes) {
    auto value = static_cast<unsigned char>(byte);
    parts.push_back(byteRange(value, value));
  }
  return sequence(std::move(parts));
}

GrammarBuilder::Expression
GrammarBuilder::sequence(std::vector<Expression> parts) {
  if (parts.size() == 1)
    return parts[0];
  return add({What::Sequence, std::move(parts)});
}

GrammarBuilder::Expression
GrammarBuilder::choice(std::vector<Expression> parts) {
  if (parts.size() == 1)
    return parts[0];
  return add({What::Choice, std::move(parts)});
}

GrammarBuilder::Expression
GrammarBuilder::oneOf(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  // texts[first, last) have the first `size` bytes in common.
  struct Maker {
    GrammarBuilder &builder;
    const std::vector<std::string> &texts;
    Expression from(size_t first, size_t last, size_t size, int depth) {
      std::vector<Expression> ways;
      if (first + 1 == last)
        return builder.literal(texts[first].substr(size));
      // A common beginning needs no choice, and no depth.
      size_t more = size;
      while (more < texts[first].size() &&
             texts[first][more] == texts[last - 1][more])
        ++more;
      if (more > size)
        return builder.sequence(
            {builder.literal(texts[first].substr(size, more - size)),
             from(first, last, more, depth)});
      if (depth > deepest)
        throw std::runtime_error("its texts have too many beginnings");
      if (texts[first].size() == size) {
        ways.push_back(builder.empty());
        ++first;
      }
      while (first < last) {
        size_t end = first;
        while (end < last && texts[end][size] == texts[first][size])
          ++end;
        ways.push_back(from(first, end, size, depth + 1));
        first = end;
      }
      return builder.choice(std::move(ways));
    }
  };
  return texts.empty() ? choice({})
                       : Maker{*this, texts}.from(0, texts.size(), 0, 0);
}

GrammarBuilder::Expression GrammarBuilder::repeat(Expression part,
                                                  int64_t least, int64_t most) {
  if (least < 0 || (most >= 0 && most < least))
    throw std::runtime_error("a number of repetitions is wrong");
  if (std::max(least, most) > mostRepeats)
    throw std::runtime_error("it repeats something more than " +
                             std::to_string(mostRepeats) + " times");
  // An expression that is repeated often is written once.
  if (std::max(least, most) > 1 &&
      all[static_cast<size_t>(part)].what != What::Call &&
      all[static_cast<size_t>(part)].what != What::Set) {
    int32_t rule = newRule();
    define(rule, part);
    part = call(rule);
  }
  return add({What::Repeat, {part}, least, most});
}

int32_t GrammarBuilder::newRule() {
  if (definitions.size() == mostRules)
    throw std::runtime_error("it has more than " + std::to_string(mostRules) +
                             " rules");
  definitions.push_back(-1);
  return static_cast<int32_t>(definitions.size() - 1);
}

void GrammarBuilder::define(int32_t rule, Expression expression) {
  definitions[static_cast<size_t>(rule)] = expression;
}

GrammarBuilder::Expression GrammarBuilder::call(int32_t rule) {
  Part part{What::Call, {}};
  part.which = rule;
  return add(std::move(part));
}

//===----------------------------------------------------------------------===//
// Characters
//===----------------------------------------------------------------------===//

namespace {
// Ranges of bytes one behind the other.
using ByteRanges = std::vector<std::pair<unsigned, unsigned>>;

std::string utf8Of(uint32_t code) {
  std::string text;
  if (code < 0x80)
    return {static_cast<char>(code)};
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static const unsigned leads[] = {0, 0xc0, 0xe0, 0xf0};
  text += static_cast<char>(leads[more] | code >> (6 * more));
  while (more--)
    text += static_cast<char>(0x80 | (code >> (6 * more) & 0x3f));
  return text;
}

// All characters from `first` to `last`, which have equally many bytes, as
// sequences in which each byte is of a range.
void split(uint32_t first, uint32_t last, std::vector<ByteRanges> &to) {
  std::string a = utf8Of(first), b = utf8Of(last);
  // Behind the first byte that differs the bytes have to be any: else the range
  // is cut where they are.
  for (int bits = 6; bits < 6 * static_cast<int>(a.size()); bits += 6) {
    uint32_t low = (1u << bits) - 1;
    if ((first & ~low) == (last & ~low))
      break;
    if (first & low) {
      split(first, first | low, to);
      return split((first | low) + 1, last, to);
    }
    if ((last & low) != low) {
      split(first, (last & ~low) - 1, to);
      return split(last & ~low, last, to);
    }
  }
  ByteRanges ranges;
  for (size_t i = 0; i < a.size(); ++i)
    ranges.push_back(
        {static_cast<unsigned char>(a[i]), static_cast<unsigned char>(b[i])});
  to.push_back(std::move(ranges));
}
} // namespace

GrammarBuilder::Expression
GrammarBuilder::characters(const CharacterRanges &ranges) {
  static const CharacterRanges lengths = {{0, 0x7f},
                                          {0x80, 0x7ff},
                                          {0x800, 0xd7ff},
                                          {0xe000, 0xffff},
                                          {0x10000, 0x10ffff}};
  std::vector<ByteRanges> sequences;
  for (auto [first, last] : ranges)
    for (auto [least, most] : lengths)
      if (std::max(first, least) <= std::min(last, most))
        split(std::max(first, least), std::min(last, most), sequences);
  // Bytes alone are one set.
  std::bitset<256> single;
  std::vector<Expression> ways;
  for (const ByteRanges &bytes : sequences) {
    if (bytes.size() == 1) {
      for (unsigned byte = bytes[0].first; byte <= bytes[0].second; ++byte)
        single.set(byte);
      continue;
    }
    std::vector<Expression> parts;
    for (auto [first, last] : bytes)
      parts.push_back(byteRange(first, last));
    ways.push_back(sequence(std::move(parts)));
  }
  if (single.any()) {
    Part part{What::Set, {}};
    part.which = setOf(single);
    ways.push_back(add(std::move(part)));
  }
  return choice(std::move(ways));
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

int32_t GrammarBuilder::node(Grammar::Node node) {
  if (grammar.nodes.size() == mostNodes)
    tooLarge();
  grammar.nodes.push_back(node);
  return static_cast<int32_t>(grammar.nodes.size() - 1);
}

int32_t GrammarBuilder::compileRepeat(const Part &part, int32_t next,
                                      int depth) {
  Expression repeated = part.parts[0];
  int64_t least = part.least, most = part.most;
  if (most < 0) {
    int32_t loop = node({Grammar::Split, 0, -1, next});
    int32_t body = compile(repeated, loop, depth + 1);
    grammar.nodes[static_cast<size_t>(loop)].next = body;
    next = loop;
  }
  // From the last one on: each that may be missing goes to what follows all.
  int32_t after = next;
  for (int64_t i = least; i < most; ++i)
    next = node({Grammar::Split, 0, compile(repeated, next, depth + 1), after});
  for (int64_t i = 0; i < least; ++i)
    next = compile(repeated, next, depth + 1);
  return next;
}

int32_t GrammarBuilder::compile(Expression expression, int32_t next,
                                int depth) {
  if (depth > 4 * deepest)
    throw std::runtime_error("it is nested too deep");
  const Part &part = all[static_cast<size_t>(expression)];
  switch (part.what) {
  case What::Set:
    return node({Grammar::Bytes, part.which, next});
  case What::Call:
    return node({Grammar::Call, part.which, next});
  case What::Sequence:
    for (auto it = part.parts.rbegin(); it != part.parts.rend(); ++it)
      next = compile(*it, next, depth + 1);
    return next;
  case What::Repeat:
    return compileRepeat(part, next, depth);
  case What::Choice:
    break;
  }
  if (part.parts.empty()) // an empty set of bytes
    return node({Grammar::Bytes, setOf({}), next});
  int32_t way = compile(part.parts.back(), next, depth + 1);
  for (size_t i = part.parts.size() - 1; i-- > 0;)
    way =
        node({Grammar::Split, 0, compile(part.parts[i], next, depth + 1), way});
  return way;
}

/// A rule that may call itself before any byte would do so without end.
void GrammarBuilder::checkRecursion() {
  size_t count = grammar.entries.size();
  std::vector<bool> isNullable(count);
  std::vector<std::vector<int32_t>> calls(count);
  // Visits the states that can be reached without a byte.
  auto look = [&](size_t rule) {
    bool reachesEnd = false;
    calls[rule].clear();
    std::vector<int32_t> open = {grammar.entries[rule]};
    std::vector<bool> &seen = scratch;
    std::vector<int32_t> marked;
    while (!open.empty()) {
      int32_t at = open.back();
      open.pop_back();
      if (seen[static_cast<size_t>(at)])
        continue;
      seen[static_cast<size_t>(at)] = true;
      marked.push_back(at);
      const Grammar::Node &node = grammar.nodes[static_cast<size_t>(at)];
      if (node.kind == Grammar::End)
        reachesEnd = true;
      if (node.kind == Grammar::Split) {
        open.push_back(node.next);
        open.push_back(node.other);
      }
      if (node.kind == Grammar::Call) {
        calls[rule].push_back(node.which);
        if (isNullable[static_cast<size_t>(node.which)])
          open.push_back(node.next);
      }
    }
    for (int32_t at : marked)
      seen[static_cast<size_t>(at)] = false;
    return reachesEnd;
  };
  for (bool changes = true; changes;) {
    changes = false;
    // There and back: most rules call their neighbours.
    for (size_t i = 0; i < 2 * count; ++i) {
      size_t rule = i < count ? i : 2 * count - 1 - i;
      if (look(rule) && !isNullable[rule])
        changes = isNullable[rule] = true;
    }
  }
  // A cycle among these calls; 1: open, 2: done.
  std::vector<char> state(count);
  for (size_t root = 0; root < count; ++root) {
    std::vector<std::pair<size_t, size_t>> path;
    auto enter = [&](size_t rule) {
      if (state[rule] == 1)
        throw std::runtime_error(
            "one of its rules calls itself before any character");
      if (state[rule] == 0) {
        state[rule] = 1;
        path.push_back({rule, 0});
      }
    };
    enter(root);
    while (!path.empty()) {
      auto &[rule, next] = path.back();
      if (next == calls[rule].size()) {
        state[rule] = 2;
        path.pop_back();
      } else {
        enter(static_cast<size_t>(calls[rule][next++]));
      }
    }
  }
}

/// No way is left that never ends, such as that to a property whose value
/// cannot be.
void GrammarBuilder::cutDeadEnds() {
  using Nodes = std::vector<int32_t>;
  size_t count = grammar.nodes.size();
  std::vector<Nodes> before(count), calls(grammar.entries.size()),
      rules(count); // that a node is the entry of
  std::vector<bool> ends(count);
  Nodes open;
  for (size_t rule = 0; rule < grammar.entries.size(); ++rule)
    rules[static_cast<size_t>(grammar.entries[rule])].push_back(
        static_cast<int32_t>(rule));
  auto mark = [&](int32_t at) {
    if (!ends[static_cast<size_t>(at)])
      open.push_back(at);
    ends[static_cast<size_t>(at)] = true;
  };
  for (size_t i = 0; i < count; ++i) {
    auto at = static_cast<int32_t>(i);
    const Grammar::Node &node = grammar.nodes[i];
    if (node.kind == Grammar::End)
      mark(at);
    if (node.kind == Grammar::Call)
      calls[static_cast<size_t>(node.which)].push_back(at);
    if (node.kind != Grammar::Bytes ||
        grammar.sets[static_cast<size_t>(node.which)].any())
      for (int32_t next : {node.next, node.other})
        if (next >= 0)
          before[static_cast<size_t>(next)].push_back(at);
  }
  auto endsBehind = [&](int32_t at) {
    const Grammar::Node &node = grammar.nodes[static_cast<size_t>(at)];
    if (node.kind != Grammar::Call)
      return true;
    int32_t entry = grammar.entries[static_cast<size_t>(node.which)];
    return ends[static_cast<size_t>(node.next)] &&
           ends[static_cast<size_t>(entry)];
  };
  while (!open.empty()) {
    auto at = static_cast<size_t>(open.back());
    open.pop_back();
    Nodes some = before[at];
    for (int32_t rule : rules[at])
      some.insert(some.end(), calls[static_cast<size_t>(rule)].begin(),
                  calls[static_cast<size_t>(rule)].end());
    for (int32_t one : some)
      if (endsBehind(one))
        mark(one);
  }
  if (!ends[static_cast<size_t>(
          grammar.entries[static_cast<size_t>(grammar.root)])])
    throw std::runtime_error("no text fits it");
  for (Grammar::Node &node : grammar.nodes)
    if (node.kind == Grammar::Split) {
      if (!ends[static_cast<size_t>(node.next)])
        node.next = node.other;
      if (!ends[static_cast<size_t>(node.other)])
        node.other = node.next;
    }
}

Grammar GrammarBuilder::finish(int32_t root) {
  int32_t end = node({Grammar::End});
  for (Expression definition : definitions) {
    if (definition < 0)
      throw std::runtime_error("it calls a rule that it does not define");
    grammar.entries.push_back(compile(definition, end, 0));
  }
  grammar.root = root;
  scratch.assign(grammar.nodes.size(), false);
  checkRecursion();
  cutDeadEnds();
  return std::move(grammar);
}

} // namespace greta::llm
