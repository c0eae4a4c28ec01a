// PagesTest.cpp: the pages of the KV cache against what they were said to hold:
// whatever sequences begin, end and share, a page that is found has the tokens
// that were looked for, and a page that somebody has is nobody else's to write.
#include "engine/Pages.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace greta::llm;

namespace {

struct Text {
  Sequence sequence;
  std::vector<int32_t> tokens;
};

// The tokens that each page of the device would hold.
class Device {
public:
  explicit Device(size_t pages) : held(pages) {}

  /// Evaluates the tokens from the sequence's length on.
  void evaluate(Text &text) {
    for (auto at = static_cast<size_t>(text.sequence.length);
         at < text.tokens.size(); ++at) {
      auto &page = held[static_cast<size_t>(text.sequence.pages[at / 16])];
      page.resize(16);
      page[at % 16] = text.tokens[at];
    }
    text.sequence.length = static_cast<int64_t>(text.tokens.size());
  }
  bool holds(const Text &text, int64_t count) const {
    for (size_t at = 0; at < static_cast<size_t>(count); ++at) {
      auto &page = held[static_cast<size_t>(text.sequence.pages[at / 16])];
      if (page.size() <= at % 16 || page[at % 16] != text.tokens[at])
        return false;
    }
    return true;
  }

private:
  std::vector<std::vector<int32_t>> held;
};

TEST(Pages, FindsWhatIsThere) {
  Pages pages(8);
  Text first{{}, std::vector<int32_t>(40, 1)}, second = first;
  ASSERT_TRUE(pages.reserve(first.sequence, 40));
  pages.remember(first.sequence, first.tokens, 40);
  first.sequence.length = 40;
  EXPECT_EQ(pages.free(), 5);
  EXPECT_EQ(pages.share(second.sequence, second.tokens), 32);
  EXPECT_EQ(second.sequence.pages[1], first.sequence.pages[1]);
  ASSERT_TRUE(pages.reserve(second.sequence, 8));
  EXPECT_EQ(pages.free(), 4);
  pages.release(first.sequence);
  EXPECT_EQ(pages.free(), 5);
  pages.release(second.sequence);
  EXPECT_EQ(pages.free(), 8);
  // The last token of a prompt is evaluated though its page is there.
  Text exact{{}, std::vector<int32_t>(32, 1)};
  EXPECT_EQ(pages.share(exact.sequence, exact.tokens), 16);
  pages.release(exact.sequence);
  // All eight pages, so nothing is left of what was there.
  Sequence other;
  EXPECT_FALSE(pages.reserve(other, 129));
  ASSERT_TRUE(pages.reserve(other, 128));
  pages.release(other);
  EXPECT_EQ(pages.share(exact.sequence, exact.tokens), 0);
}

TEST(Pages, GivesUpTheEndOfTheOldestText) {
  Pages pages(6);
  for (int32_t name : {1, 2}) {
    Text text{{}, std::vector<int32_t>(48, name)};
    ASSERT_TRUE(pages.reserve(text.sequence, 48));
    pages.remember(text.sequence, text.tokens, 48);
    pages.release(text.sequence);
  }
  Sequence other;
  ASSERT_TRUE(pages.reserve(other, 16));
  for (auto [name, found] : std::map<int32_t, int>{{1, 32}, {2, 48}}) {
    Text text{{}, std::vector<int32_t>(64, name)};
    EXPECT_EQ(pages.share(text.sequence, text.tokens), found);
    pages.release(text.sequence);
  }
  pages.forget();
  Text text{{}, std::vector<int32_t>(64, 2)};
  EXPECT_EQ(pages.share(text.sequence, text.tokens), 0);
  EXPECT_EQ(pages.free(), 5);
}

TEST(Pages, HoldsWhatItSays) {
  std::mt19937 random(1);
  Pages pages(24);
  Device device(24);
  std::vector<Text> texts;
  int64_t shared = 0;
  for (int turn = 0; turn < 4000; ++turn) {
    if (texts.size() > 4 || (!texts.empty() && random() % 3 == 0)) {
      size_t which = random() % texts.size();
      EXPECT_TRUE(device.holds(texts[which], texts[which].sequence.length));
      pages.release(texts[which].sequence);
      texts.erase(texts.begin() + static_cast<std::ptrdiff_t>(which));
    }
    // Few different beginnings.
    Text text;
    for (size_t size = 1 + random() % 90; text.tokens.size() < size;)
      text.tokens.insert(text.tokens.end(), 1 + random() % 20,
                         static_cast<int32_t>(random() % 2));
    int64_t found = pages.share(text.sequence, text.tokens);
    EXPECT_LT(found, static_cast<int64_t>(text.tokens.size()));
    EXPECT_TRUE(device.holds(text, found));
    shared += found;
    auto left = static_cast<int64_t>(text.tokens.size()) - found;
    if (!pages.reserve(text.sequence, left)) {
      pages.release(text.sequence);
      continue;
    }
    device.evaluate(text);
    if (random() % 4)
      pages.remember(text.sequence, text.tokens, text.sequence.length);
    for (const Text &other : texts)
      EXPECT_TRUE(device.holds(other, other.sequence.length));
    texts.push_back(std::move(text));
    if (random() % 500 == 0) {
      for (Text &other : texts)
        pages.release(other.sequence);
      texts.clear();
      pages.forget();
    }
  }
  EXPECT_GT(shared, 10000);
  for (Text &text : texts)
    pages.release(text.sequence);
  EXPECT_EQ(pages.free(), 24);
}

} // namespace
