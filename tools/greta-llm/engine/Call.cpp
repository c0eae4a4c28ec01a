// Call.cpp: see Call.h. Fields follow each other without names; a vector begins
// with its size.
#include "engine/Call.h"
#include "model/Mapping.h"

#include <cstring>
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
    memcpy(to, bytes.data() + at, size);
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
  values.resize(way.count(values.size(), isPlain ? sizeof(T) : 1));
  if constexpr (isPlain)
    way.raw(values.data(), values.size() * sizeof(T));
  else
    for (T &value : values)
      walk(way, value);
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
  // A step is told for each token, and is its kind alone.
  if (call.kind != Call::Step && call.kind != Call::Nothing)
    walkAll(way, call.place, call.left, call.said, call.sequence, call.tokens,
            call.mask, call.sampling, call.checked);
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
  return call;
}

} // namespace greta::llm
