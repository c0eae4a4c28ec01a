// Pages.cpp: see Pages.h.
#include "engine/Pages.h"

#include <algorithm>
#include <random>

namespace greta::llm {

static uint64_t drawn() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

size_t Pages::Hash::operator()(const Key &key) const {
  // SplitMix64's mixer over all words.
  uint64_t hash = seed ^ key.before;
  auto mix = [&] {
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    hash ^= hash >> 31;
  };
  for (int32_t token : key.tokens) {
    mix();
    hash += static_cast<uint32_t>(token);
  }
  mix();
  return hash;
}

Pages::Pages(int64_t count)
    : pages(static_cast<size_t>(count)), known(0, Hash{drawn()}) {
  for (int64_t page = count; page-- > 0;)
    empty.push_back(static_cast<int32_t>(page));
}

bool Pages::reserve(Sequence &sequence, int64_t tokens) {
  size_t wanted =
      static_cast<size_t>((sequence.length + tokens + pageSize - 1) / pageSize);
  if (wanted > sequence.pages.size() + empty.size() + idle.size())
    return false;
  while (sequence.pages.size() < wanted) {
    if (empty.empty()) {
      int32_t oldest = idle.front();
      idle.pop_front();
      Page &page = pages[static_cast<size_t>(oldest)];
      known.erase(page.key);
      page.name = 0;
      empty.push_back(oldest);
    }
    sequence.pages.push_back(empty.back());
    empty.pop_back();
    pages[static_cast<size_t>(sequence.pages.back())].users = 1;
  }
  return true;
}

/// One user less.
void Pages::drop(int32_t number) {
  Page &page = pages[static_cast<size_t>(number)];
  if (--page.users)
    return;
  if (page.name)
    page.place = idle.insert(idle.end(), number);
  else
    empty.push_back(number);
}

void Pages::release(Sequence &sequence) {
  // The last page is the oldest, so that a page goes before the one in front
  // of it, without which nobody finds it.
  std::for_each(sequence.pages.rbegin(), sequence.pages.rend(),
                [&](int32_t page) { drop(page); });
  sequence = {};
}

/// The tokens that the next page has to hold, the first that is not known.
Pages::Key Pages::keyOf(const Sequence &sequence,
                        const std::vector<int32_t> &tokens) const {
  Key key{sequence.chain, {}};
  std::copy_n(tokens.begin() +
                  static_cast<std::ptrdiff_t>(sequence.known) * pageSize,
              pageSize, key.tokens.begin());
  return key;
}

int64_t Pages::share(Sequence &sequence, const std::vector<int32_t> &tokens) {
  int64_t before = sequence.length, count = static_cast<int64_t>(tokens.size());
  if (sequence.length != static_cast<int64_t>(sequence.known) * pageSize)
    return 0;
  while (sequence.length + pageSize < count) {
    auto it = known.find(keyOf(sequence, tokens));
    if (it == known.end())
      break;
    Page &page = pages[static_cast<size_t>(it->second)];
    if (page.users++ == 0)
      idle.erase(page.place);
    if (sequence.known < sequence.pages.size()) {
      drop(sequence.pages[sequence.known]);
      sequence.pages[sequence.known] = it->second;
    } else {
      sequence.pages.push_back(it->second);
    }
    ++sequence.known;
    sequence.chain = page.name;
    sequence.length += pageSize;
  }
  return sequence.length - before;
}

void Pages::remember(Sequence &sequence, const std::vector<int32_t> &tokens,
                     int64_t count) {
  while (static_cast<int64_t>(sequence.known + 1) * pageSize <= count) {
    int32_t number = sequence.pages[sequence.known];
    // Another sequence may have evaluated the same at the same time: its page
    // is the one that is known.
    auto [it, isNew] = known.try_emplace(keyOf(sequence, tokens), number);
    Page &page = pages[static_cast<size_t>(it->second)];
    if (isNew) {
      page.name = ++names;
      page.key = it->first;
    }
    sequence.chain = page.name;
    ++sequence.known;
  }
}

void Pages::forget() {
  known.clear();
  for (Page &page : pages)
    page.name = 0;
  empty.insert(empty.end(), idle.begin(), idle.end());
  idle.clear();
}

} // namespace greta::llm
