// Matcher.cpp: see Matcher.h.
#include "grammar/Matcher.h"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace greta::llm {

namespace {
constexpr int32_t deepestStack = 128;    // frames on another
constexpr size_t mostWays = 2048;        // of a state
constexpr size_t mostStates = 16384;     // that one mask or text may need
constexpr size_t keptStates = 2048;      // from one token to the next
constexpr size_t keptMasks = 32;         //
constexpr int64_t creditOfText = 50'000; // nodes that each token adds
// For masks behind guesses, all together: it is not the text's.
constexpr int64_t creditOfGuesses = 50'000;
constexpr int64_t bytesOfNode = 32; // that are walked in the time of a node

[[noreturn]] void tooHard() {
  throw GrammarTooHard(
      "the grammar takes too long: it can be read in too many ways");
}
} // namespace

SortedVocabulary::SortedVocabulary(const Tokenizer &tokenizer, int64_t count)
    : count(count) {
  std::vector<std::pair<std::string, int32_t>> texts;
  int64_t known = std::min(count, static_cast<int64_t>(tokenizer.size()));
  for (int32_t token = 0; token < known; ++token)
    if (std::string text = tokenizer.bytesOf(token);
        !text.empty() && !tokenizer.isEnd(token))
      texts.emplace_back(std::move(text), token);
  std::sort(texts.begin(), texts.end());
  const std::string *before = nullptr;
  for (const auto &[text, token] : texts) {
    uint32_t common = 0;
    while (before && common < before->size() && common < text.size() &&
           (*before)[common] == text[common])
      ++common;
    entries.push_back({token, static_cast<uint32_t>(bytes.size()),
                       static_cast<uint32_t>(text.size()), common});
    bytes += text;
    before = &text;
  }
}

size_t Matcher::HashOfWays::operator()(const std::vector<Way> &ways) const {
  uint64_t hash = ways.size();
  for (auto [node, frame] : ways) {
    hash ^= static_cast<uint64_t>(static_cast<uint32_t>(node)) << 32 |
            static_cast<uint32_t>(frame);
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  }
  return hash ^ (hash >> 31);
}

Matcher::Matcher(std::shared_ptr<const Grammar> given,
                 const SortedVocabulary &vocabulary)
    : Matcher(std::move(given)) {
  this->vocabulary = &vocabulary;
}

Matcher::Matcher(std::shared_ptr<const Grammar> given, int64_t credit)
    : grammar(std::move(given)), credit(credit) {
  state = stateOf(
      {{grammar->entries[static_cast<size_t>(grammar->root)], nowhere}});
}

int32_t Matcher::frame(int32_t node, int32_t below) {
  uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(node)) << 32 |
                 static_cast<uint32_t>(below);
  auto [it, isNew] =
      frameNumbers.try_emplace(key, static_cast<int32_t>(frames.size()));
  if (isNew) {
    int32_t depth =
        below < 0 ? 1 : frames[static_cast<size_t>(below)].depth + 1;
    frames.push_back({node, below, depth});
  }
  return it->second;
}

/// The state of all ways that begin at these nodes.
int32_t Matcher::stateOf(std::vector<Way> open) {
  State made;
  std::set<Way> seen(open.begin(), open.end());
  auto add = [&](Way way) {
    if (seen.insert(way).second)
      open.push_back(way);
  };
  while (!open.empty()) {
    auto [at, below] = open.back();
    open.pop_back();
    if (--credit < 0 || seen.size() > 4 * mostWays)
      tooHard();
    const Grammar::Node &node = grammar->nodes[static_cast<size_t>(at)];
    switch (node.kind) {
    case Grammar::Bytes:
      made.ways.push_back({at, below});
      break;
    case Grammar::Split:
      add({node.next, below});
      add({node.other, below});
      break;
    case Grammar::Call: {
      int32_t entry = grammar->entries[static_cast<size_t>(node.which)];
      // If nothing follows there is nothing to return to.
      if (grammar->nodes[static_cast<size_t>(node.next)].kind == Grammar::End)
        add({entry, below});
      else if (below < 0 ||
               frames[static_cast<size_t>(below)].depth < deepestStack)
        add({entry, frame(node.next, below)});
      break;
    }
    case Grammar::End:
      if (below < 0)
        made.mayEnd = true;
      else
        add({frames[static_cast<size_t>(below)].node,
             frames[static_cast<size_t>(below)].below});
    }
  }
  if (made.ways.empty() && !made.mayEnd)
    return nowhere;
  if (made.ways.size() > mostWays)
    tooHard();
  std::sort(made.ways.begin(), made.ways.end());
  auto [it, isNew] = stateNumbers[made.mayEnd].try_emplace(
      made.ways, static_cast<int32_t>(states.size()));
  if (isNew) {
    if (states.size() == mostStates)
      tooHard();
    made.next.assign(256, unknown);
    states.push_back(std::make_unique<State>(std::move(made)));
  }
  return it->second;
}

int32_t Matcher::step(int32_t from, unsigned char byte) {
  State &before = *states[static_cast<size_t>(from)];
  int32_t &to = before.next[byte];
  if (to == unknown) {
    std::vector<Way> open;
    for (auto [at, below] : before.ways) {
      const Grammar::Node &node = grammar->nodes[static_cast<size_t>(at)];
      if (grammar->sets[static_cast<size_t>(node.which)].test(byte))
        open.push_back({node.next, below});
    }
    credit -= static_cast<int64_t>(before.ways.size());
    std::sort(open.begin(), open.end());
    open.erase(std::unique(open.begin(), open.end()), open.end());
    to = open.empty() ? nowhere : stateOf(std::move(open));
  }
  return to;
}

/// A way of an older table.
Matcher::Way Matcher::moved(Way way, Matcher &old) {
  std::vector<int32_t> nodes;
  for (int32_t at = way.second; at >= 0;
       at = old.frames[static_cast<size_t>(at)].below)
    nodes.push_back(old.frames[static_cast<size_t>(at)].node);
  way.second = nowhere;
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it)
    way.second = frame(*it, way.second);
  return way;
}

/// Keeps nothing but the state at hand.
void Matcher::forgetOthers() {
  Matcher fresh(grammar, *vocabulary);
  const State &now = *states[static_cast<size_t>(state)];
  State copy;
  copy.mayEnd = now.mayEnd;
  for (Way way : now.ways)
    copy.ways.push_back(fresh.moved(way, *this));
  std::sort(copy.ways.begin(), copy.ways.end());
  copy.next.assign(256, unknown);
  auto [it, isNew] = fresh.stateNumbers[copy.mayEnd].try_emplace(
      copy.ways, static_cast<int32_t>(fresh.states.size()));
  if (isNew)
    fresh.states.push_back(std::make_unique<State>(std::move(copy)));
  fresh.state = it->second;
  fresh.credit = credit;
  *this = std::move(fresh);
}

const std::vector<uint32_t> &Matcher::mask(const std::vector<int32_t> &ends) {
  worked = 0;
  if (states.size() > keptStates || masks.size() > keptMasks)
    forgetOthers();
  return maskHere(ends);
}

/// The mask of the state at hand.
const std::vector<uint32_t> &
Matcher::maskHere(const std::vector<int32_t> &ends) {
  if (auto it = masks.find(state); it != masks.end())
    return it->second;
  int64_t before = credit, workedBefore = worked;
  worked += before; // all of it, where that is not enough
  std::vector<uint32_t> words(static_cast<size_t>(vocabulary->count + 31) / 32);
  auto allow = [&](int32_t token) {
    words[static_cast<size_t>(token) / 32] |= 1u << (token % 32);
  };
  // path[n]: where the first n bytes of the entry at hand lead.
  std::vector<int32_t> path = {state};
  constexpr size_t everywhere = SIZE_MAX;
  size_t dead = everywhere; // so many bytes lead nowhere
  int64_t walked = static_cast<int64_t>(vocabulary->entries.size());
  for (const SortedVocabulary::Entry &entry : vocabulary->entries) {
    if (entry.common >= dead)
      continue;
    dead = everywhere;
    path.resize(std::min<size_t>(path.size(), entry.common + 1));
    const char *text = vocabulary->bytes.data() + entry.begin;
    auto known = static_cast<int64_t>(path.size());
    while (path.size() <= entry.size) {
      int32_t to =
          step(path.back(), static_cast<unsigned char>(text[path.size() - 1]));
      if (to == nowhere) {
        dead = path.size();
        break;
      }
      path.push_back(to);
    }
    walked += static_cast<int64_t>(path.size()) - known;
    if (dead == everywhere)
      allow(entry.token);
  }
  if (mayEnd())
    for (int32_t end : ends)
      allow(end);
  worked = workedBefore + before - credit + walked / bytesOfNode;
  return masks.emplace(state, std::move(words)).first->second;
}

std::vector<std::vector<uint32_t>>
Matcher::masksBehind(const std::vector<std::string> &texts,
                     const std::vector<int32_t> &ends) {
  std::vector<std::vector<uint32_t>> behind;
  int32_t here = state;
  int64_t held = credit, end = worked + creditOfGuesses;
  credit = std::min(held, creditOfGuesses);
  try {
    for (const std::string &text : texts) {
      // More states or masks would soon be forgotten with the others.
      if (states.size() > keptStates || masks.size() > keptMasks ||
          worked >= end || !follow(text))
        break;
      behind.push_back(maskHere(ends));
    }
  } catch (const GrammarTooHard &) {
    // The text may never come there.
  }
  state = here;
  credit = held;
  return behind;
}

bool Matcher::follow(const std::string &bytes) {
  for (char byte : bytes) {
    int32_t to = step(state, static_cast<unsigned char>(byte));
    if (to == nowhere)
      return false;
    state = to;
  }
  return true;
}

bool Matcher::take(const std::string &bytes) {
  credit = std::min(credit + creditOfText, wholeCredit);
  return follow(bytes);
}

} // namespace greta::llm
