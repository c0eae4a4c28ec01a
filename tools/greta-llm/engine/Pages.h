// Pages.h: who has which page of the KV cache, and what lies in it. In:
// sequences that grow and end, and the tokens whose keys their pages hold. Out:
// numbers of pages, and for a prompt those that hold its beginning already (the
// prefix cache).
//
// A full page is known by its tokens and by the page before it, so by all
// tokens up to its end. Sequences with the same beginning share such pages,
// which are counted. Only full pages are shared, and nobody writes to a full
// page, so none is ever copied. A page that nobody uses any more keeps what it
// holds until a page is needed and it is the one that was used longest ago.
//
// Pages are found by comparing tokens, not hashes alone, so no text that
// somebody makes up is taken for another one.
#ifndef GRETA_LLM_PAGES_H
#define GRETA_LLM_PAGES_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

namespace greta::llm {

// Tokens in one page of the KV cache.
constexpr int64_t pageSize = 16;

// The evaluated part of a sequence lies in these pages.
struct Sequence {
  std::vector<int32_t> pages;
  int64_t length = 0;
  // The first pages, whose tokens are known, and the name of the last of them.
  size_t known = 0;
  uint64_t chain = 0;
};

class Pages {
public:
  explicit Pages(int64_t count = 0);

  // Pages for as many tokens more; false, and nothing changes, where there are
  // no more.
  bool reserve(Sequence &sequence, int64_t tokens);
  // The pages of a sequence go back; the sequence is empty.
  void release(Sequence &sequence);

  // Goes on with pages that hold the tokens behind the sequence's length, in
  // place of those that are reserved for them. The last of the tokens is always
  // left, because somebody wants to know what follows it. Returns how many
  // tokens need not be evaluated.
  int64_t share(Sequence &sequence, const std::vector<int32_t> &tokens);
  // The sequence begins with these tokens, and the keys of the first `count`
  // are in its pages before anything that is queued from now on.
  void remember(Sequence &sequence, const std::vector<int32_t> &tokens,
                int64_t count);
  // Forgets what pages hold.
  void forget();

  // Pages that can be had, whatever they hold.
  int64_t free() const {
    return static_cast<int64_t>(empty.size() + idle.size());
  }

private:
  // A page by what it holds.
  struct Key {
    uint64_t before; // the name of the page before; 0: none
    std::array<int32_t, pageSize> tokens;
    bool operator==(const Key &other) const {
      return before == other.before && tokens == other.tokens;
    }
  };
  struct Hash {
    uint64_t seed; // drawn, so that nobody can choose texts that collide
    size_t operator()(const Key &key) const;
  };
  struct Page {
    int32_t users = 0;
    uint64_t name = 0; // never given twice; 0: what it holds is not known
    Key key;
    std::list<int32_t>::iterator place; // in `idle`
  };

  Key keyOf(const Sequence &sequence, const std::vector<int32_t> &tokens) const;
  void drop(int32_t page);

  std::vector<Page> pages;
  std::vector<int32_t> empty;
  std::list<int32_t> idle; // known and not used, the oldest first
  std::unordered_map<Key, int32_t, Hash> known;
  uint64_t names = 0;
};

} // namespace greta::llm
#endif
