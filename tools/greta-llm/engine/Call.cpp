// Call.cpp: see Call.h. Fields follow each other without names; a vector begins
// with its size. Whoever takes a call trusts none of it: a rank 0 that is
// false, or of another build, ends the others, and does no more.
#include "engine/Call.h"
#include "model/Mapping.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

namespace greta::llm {
namespace {

struct Writes {
  std::string &bytes;
  void raw(const void *from, size_t size) {
    bytes.append(static_cast<const char *>(from), size);
  }
  size_t count(size_t size, size_t) {
    raw(&size, sizeof(size));
    return size;
  }
};

struct Reads {
  const std::string &bytes;
  size_t at = 0;
  void raw(void *to, size_t size) {
    if (size > bytes.size() - at)
      fail("a call of rank 0 ends early");
    std::copy_n(bytes.data() + at, size, static_cast<char *>(to));
    at += size;
  }
  // The elements of a vector that are there, of at least `least` bytes each.
  size_t count(size_t, size_t least) {
    size_t size;
    raw(&size, sizeof(size));
    if (size > (bytes.size() - at) / least)
      fail("a call of rank 0 ends early");
    return size;
  }
};

// A bool has two values, a byte more.
template <typename Way> void walk(Way &way, bool &value) {
  auto byte = static_cast<uint8_t>(value);
  way.raw(&byte, 1);
  if (byte > 1)
    fail("a call of rank 0 has a flag of " + std::to_string(byte));
  value = byte != 0;
}

template <typename Way, typename T>
std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>> walk(Way &way,
                                                                    T &value) {
  way.raw(&value, sizeof(value));
}

template <typename Way, typename A, typename B>
void walk(Way &way, std::pair<A, B> &pair);
template <typename Way> void walk(Way &way, Sequence &sequence);
template <typename Way> void walk(Way &way, Sampling &sampling);
template <typename Way> void walk(Way &way, Checked &checked);

template <typename Way, typename T>
void walk(Way &way, std::vector<T> &values) {
  constexpr bool isPlain = std::is_arithmetic_v<T>;
  size_t size = way.count(values.size(), isPlain ? sizeof(T) : 1);
  if constexpr (isPlain) {
    values.resize(size);
    way.raw(values.data(), size * sizeof(T));
    return;
  }
  // An element takes more memory than its bytes, so a false size must not.
  for (size_t i = 0; i < size; ++i) {
    if (i == values.size())
      values.emplace_back();
    walk(way, values[i]);
  }
}

template <typename Way, typename... Fields>
void walkAll(Way &way, Fields &...fields) {
  (walk(way, fields), ...);
}

template <typename Way, typename A, typename B>
void walk(Way &way, std::pair<A, B> &pair) {
  walkAll(way, pair.first, pair.second);
}

template <typename Way> void walk(Way &way, Sequence &sequence) {
  walkAll(way, sequence.pages, sequence.length, sequence.known, sequence.chain);
}

template <typename Way> void walk(Way &way, Sampling &s) {
  walkAll(way, s.temperature, s.topK, s.topP, s.minP, s.repeatPenalty,
          s.repeatWindow, s.frequencyPenalty, s.presencePenalty, s.biases,
          s.isMasked, s.seed);
}

template <typename Way> void walk(Way &way, Checked &checked) {
  walkAll(way, checked.sequence, checked.tokens, checked.count,
          checked.sampling, checked.said, checked.masks, checked.wantsLogits);
}

template <typename Way> void walk(Way &way, Call &call) {
  walk(way, call.kind);
  if (call.kind > Call::Last)
    fail("a call of rank 0 has the kind " + std::to_string(call.kind));
  // A step is told for each token, and is its kind alone.
  if (call.kind != Call::Step && call.kind != Call::Nothing)
    walkAll(way, call.place, call.to, call.left, call.said, call.part,
            call.sequence, call.tokens, call.mask, call.sampling, call.checked);
}

} // namespace

std::string bytesOf(const Call &call) {
  std::string bytes;
  Writes way{bytes};
  walk(way, const_cast<Call &>(call)); // which only reading changes
  return bytes;
}

Call callOf(const std::string &bytes) {
  Call call;
  Reads way{bytes};
  walk(way, call);
  if (way.at != bytes.size())
    fail("a call of rank 0 has " + std::to_string(bytes.size() - way.at) +
         " bytes too many");
  return call;
}

namespace {

// More than any server has, and few enough for sizes that are products of it.
constexpr int64_t mostPlaces = 1 << 20;

void require(int64_t value, int64_t least, int64_t most, const char *what) {
  if (value < least || value > most)
    fail("a call of rank 0 has " + std::string(what) + " " +
         std::to_string(value) + ", which is not from " +
         std::to_string(least) + " to " + std::to_string(most));
}

void requireNumber(double value, const char *what) {
  if (!std::isfinite(value))
    fail("a call of rank 0 has " + std::string(what) +
         ", which is no finite number");
}

int64_t sizeOf(size_t size) {
  return static_cast<int64_t>(std::min<size_t>(size, INT64_MAX));
}

struct Checker {
  const CallLimits &limits;

  void place(int64_t number) const {
    require(number, 0, limits.places - 1, "the place");
  }
  void tokens(const std::vector<int32_t> &all) const {
    for (int32_t token : all)
      require(token, 0, limits.vocabulary - 1, "the token");
  }
  void pages(const Sequence &sequence) const {
    require(sizeOf(sequence.pages.size()), 0, limits.pages,
            "a number of pages of");
    for (int32_t page : sequence.pages)
      require(page, 0, limits.pages - 1, "the page");
  }
  // The keys of tokens from `first` on are written to its pages.
  void sequence(const Sequence &sequence, int64_t first, size_t more) const {
    pages(sequence);
    int64_t most =
        std::min(limits.positions, sizeOf(sequence.pages.size()) * pageSize);
    require(first, 0, most, "a length of");
    require(sizeOf(more), 0, most - first, "a number of tokens of");
  }
  void mask(const std::vector<uint32_t> &mask) const {
    int64_t words = maskWords(limits.vocabulary);
    require(sizeOf(mask.size()), words, words, "a mask's size of");
  }
  void sampling(const Sampling &sampling) const {
    require(sampling.topK, 0, INT32_MAX, "a top_k of");
    require(sampling.repeatWindow, 0, rememberedTokens, "a window of");
    require(sizeOf(sampling.biases.size()), 0, mostBiases,
            "a number of biases of");
    for (const auto &[token, bias] : sampling.biases) {
      tokens({token});
      requireNumber(bias, "a bias");
    }
    // Without an order among logits the likeliest may be no token.
    for (double value : {sampling.temperature, sampling.topP, sampling.minP,
                         sampling.repeatPenalty, sampling.frequencyPenalty,
                         sampling.presencePenalty, 1 / sampling.repeatPenalty})
      requireNumber(value, "an option of sampling");
  }
  void begin(const Call &call) const {
    place(call.place);
    sequence(call.sequence, 0, call.tokens.size());
    tokens(call.tokens);
    sampling(call.sampling);
    int64_t size = sizeOf(call.tokens.size());
    require(size, 1, limits.positions, "a number of tokens of");
    require(call.said, 0, size, "a number of generated tokens of");
    // The last one needs no position.
    require(call.left, 1, limits.positions + 1 - size,
            "a number of wanted tokens of");
    if (!limits.parts)
      fail("a call of rank 0 begins behind no prompt");
    require(call.part, 0, limits.parts - 1, "the part");
  }
  void append(const Call &call) const {
    int64_t parts = sizeOf(call.checked.size()), all = 0;
    require(parts, 1, static_cast<int64_t>(mostParts), "a number of parts of");
    for (const Checked &one : call.checked) {
      tokens(one.tokens);
      sequence(one.sequence, one.sequence.length, one.tokens.size());
      require(sizeOf(one.tokens.size()), 1, limits.positions,
              "a number of tokens of");
      all += sizeOf(one.tokens.size());
    }
    bool isStep = call.kind == Call::StepAndAppend;
    if (parts > 1 || isStep) // one sequence's tokens are taken apart
      require(all, 1, limits.chunk - (isStep ? limits.rows : 0),
              "tokens of several parts:");
  }
  void check(const Call &call) const {
    int64_t rows = 0;
    for (const Checked &one : call.checked) {
      sequence(one.sequence, 0, one.tokens.size());
      tokens(one.tokens);
      sampling(one.sampling);
      int64_t size = sizeOf(one.tokens.size()), count = sizeOf(one.count);
      require(count, 1, size, "a number of checked tokens of");
      require(sizeOf(one.said), 0, size - count + 1,
              "a number of generated tokens of");
      if (one.sampling.isMasked)
        require(sizeOf(one.masks.size()), count, count, "a number of masks of");
      for (const std::vector<uint32_t> &some : one.masks)
        mask(some);
      rows += count;
    }
    require(rows, 1, limits.places, "a number of places of");
    if (!limits.isAtRest)
      fail("a call of rank 0 checks tokens while places generate");
  }
};

} // namespace

void checkCall(const Call &call, const CallLimits &limits) {
  Checker checker{limits};
  switch (call.kind) {
  case Call::MakePlaces:
    return require(call.place, 1, mostPlaces, "a number of places of");
  case Call::Append:
  case Call::StepAndAppend:
    return checker.append(call);
  case Call::EvaluateOne:
    require(sizeOf(call.tokens.size()), 1, 1, "a number of tokens of");
    checker.tokens(call.tokens);
    return checker.sequence(call.sequence, call.sequence.length, 1);
  case Call::WriteTable:
    checker.place(call.place);
    return checker.pages(call.sequence);
  case Call::SetMask:
    checker.place(call.place);
    return checker.mask(call.mask);
  case Call::Move:
    checker.place(call.place);
    return checker.place(call.to);
  case Call::Begin:
    return checker.begin(call);
  case Call::Check:
    return checker.check(call);
  case Call::End:
    return checker.place(call.place);
  case Call::Step:
  case Call::ForgetPlaces:
  case Call::Nothing:
  case Call::Last:
    return;
  }
}

} // namespace greta::llm
