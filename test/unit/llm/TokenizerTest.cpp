// TokenizerTest.cpp: hostile vocabularies and texts, whose time must not be the
// product of their sizes. Tokens themselves are compared with Hugging Face's in
// test/llm.
#include "tokenizer/Tokenizer.h"

#include <ctime>
#include <gtest/gtest.h>

using namespace greta::llm;
using nlohmann::json;

namespace {

constexpr size_t MiB = 1u << 20;

// A model of which only the tokenizer is of interest. A file makes it one that
// is not synthetic.
Model modelWith(json tokenizer, int64_t vocabulary) {
  Model model;
  model.path = "m";
  model.config.vocabulary = vocabulary;
  model.files.push_back(std::make_unique<Mapping>("/proc/self/exe"));
  model.tokenizer = std::move(tokenizer);
  return model;
}

// Bytes alone, in GPT-2's alphabet, and added tokens.
json byteLevel(const std::vector<std::string> &added, bool composes = false) {
  json vocabulary = json::object();
  for (int i = 0, next = 0x100; i < 256; ++i) {
    bool isPrintable =
        (i >= 0x21 && i <= 0x7e) || (i >= 0xa1 && i <= 0xac) || i >= 0xae;
    int code = isPrintable ? i : next++;
    std::string character =
        code < 0x80 ? std::string(1, static_cast<char>(code))
                    : std::string{static_cast<char>(0xc0 | code >> 6),
                                  static_cast<char>(0x80 | (code & 63))};
    vocabulary[character] = i;
  }
  json list = json::array();
  for (const std::string &text : added)
    list.push_back({{"content", text},
                    {"id", 256 + static_cast<int>(list.size())},
                    {"special", true}});
  return {
      {"model",
       {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}},
      {"added_tokens", list},
      {"normalizer", composes ? json{{"type", "NFC"}} : json()},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}}};
}

Tokenizer tokenizerWith(const std::vector<std::string> &added,
                        bool composes = false) {
  return Tokenizer(modelWith(byteLevel(added, composes),
                             256 + static_cast<int64_t>(added.size())));
}

double secondsOf(const Tokenizer &tokenizer, const std::string &text) {
  // The processor's: others may use it, too.
  std::clock_t begin = std::clock();
  EXPECT_FALSE(tokenizer.encode(text, false).empty());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(Tokenizer, TheLongestAddedTokenCounts) {
  Tokenizer t = tokenizerWith({"<a", "<ab>", "<abc>", "<abc>d", "<a", "\xff"});
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(t.encode("<abc>", false), Ids{258});
  EXPECT_EQ(t.encode("<abc>d<abc>x", false), (Ids{259, 258, 'x'}));
  EXPECT_EQ(t.encode("<abc", false), (Ids{256, 'b', 'c'})); // the first of two
  EXPECT_EQ(t.encode("<<ab>", false), (Ids{'<', 257}));
  EXPECT_EQ(t.encode("<", false), Ids{'<'});
}

TEST(Tokenizer, ManyAddedTokensCostNothing) {
  std::vector<std::string> added;
  for (int i = 0; i < 6400; ++i)
    added.push_back("<unused" + std::to_string(i) + ">");
  Tokenizer t = tokenizerWith(added);
  double few = secondsOf(tokenizerWith({}), std::string(4 * MiB, 'x'));
  EXPECT_LT(secondsOf(t, std::string(4 * MiB, 'x')), 2 * few + 1);
  EXPECT_LT(secondsOf(t, std::string(4 * MiB, '<')), 2 * few + 2);
}

// Four times the text takes four times as long; sixteen times if each piece
// looks at all before it. A busy machine makes processor time up to twice as
// long.
TEST(Tokenizer, TimeIsLinearInTheText) {
  Tokenizer t = tokenizerWith({"<a>"}, /*composes=*/true);
  std::string marks;
  while (marks.size() < MiB) // out of order: below, above
    marks += "\xcc\x80\xcc\xa3";
  for (const std::string &text :
       {"e" + marks, std::string(MiB, ' '), std::string(MiB, '\n'),
        std::string(MiB, '7'), std::string(MiB, '\xff')})
    EXPECT_LT(secondsOf(t, text), 8 * secondsOf(t, text.substr(0, MiB / 4)) + 1)
        << static_cast<int>(text.back());
}

TEST(Tokenizer, UnigramsTakeTimeThatIsLinearInTheText) {
  json vocabulary = json::array({json::array({"<unk>", 0.0})});
  for (size_t size = 1; size <= 32; ++size)
    vocabulary.push_back(
        json::array({std::string(size, 'a'), -double(size) - 0.5}));
  Tokenizer t(modelWith(
      {{"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}}},
       {"pre_tokenizer", {{"type", "WhitespaceSplit"}}}},
      100));
  // A letter takes one and a token half, so few tokens are best.
  EXPECT_EQ(t.encode(std::string(64, 'a'), false),
            (std::vector<int32_t>{32, 32}));
  EXPECT_LT(secondsOf(t, std::string(MiB, 'a')), 10);
  EXPECT_LT(secondsOf(t, std::string(MiB, '\xff')), 10);
  std::string words;
  while (words.size() < MiB)
    words += "aaa b ";
  EXPECT_LT(secondsOf(t, words), 10);
  EXPECT_FALSE(t.isTooLong(4 * MiB, 1)); // spaces and unknown words vanish
}

TEST(Tokenizer, TextsThatAreTooLongAreNotReadToTheirEnd) {
  Tokenizer t = tokenizerWith({"<a>"});
  std::string text;
  while (text.size() < 4 * MiB)
    text += "ab cd<a> ";
  double whole = secondsOf(t, text);
  for (size_t most : {0, 1, 100}) {
    std::clock_t begin = std::clock();
    size_t count = t.encode(text, false, most).size();
    double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_GT(count, most);
    EXPECT_LT(count, most + 16);
    EXPECT_LT(took, whole / 2);
  }
  EXPECT_EQ(t.encode("ab cd<a>", false, 6).size(), 6u);
  // Tokens have up to three bytes here.
  EXPECT_FALSE(t.isTooLong(12, 4));
  EXPECT_TRUE(t.isTooLong(21, 4));
}

// NFC makes a text shorter.
TEST(Tokenizer, TextsThatAreComposedAreTooLongLater) {
  Tokenizer t = tokenizerWith({}, true);
  std::string text; // U+1FBE, U+0308 and U+0301, which become U+0390
  for (int i = 0; i < 100; ++i)
    text += "\xe1\xbe\xbe\xcc\x88\xcc\x81";
  EXPECT_EQ(t.encode(text, false).size(), 200u);
  EXPECT_FALSE(t.isTooLong(text.size(), 200));
  EXPECT_TRUE(t.isTooLong(text.size(), 80));
}

// A byte that is no token is left out, unless it falls back to one.
TEST(Tokenizer, BytesThatAreLeftOutAreNotTooLong) {
  json tokenizer = byteLevel({});
  tokenizer["model"]["vocab"].erase("x");
  Tokenizer t(modelWith(tokenizer, 256));
  EXPECT_EQ(t.encode(std::string(1000, 'x') + "ab", false).size(), 2u);
  EXPECT_FALSE(t.isTooLong(1002, 2));
}

// SentencePiece's kind: spaces become bars, the rest bytes or merges by score.
TEST(Tokenizer, ScoresAndBars) {
  json tokens = {"<unk>"}, scores = {0}, types = {2};
  for (int i = 0; i < 256; ++i) {
    char name[8];
    snprintf(name, sizeof(name), "<0x%02X>", i);
    tokens.push_back(name);
    scores.push_back(0);
    types.push_back(6);
  }
  for (const char *word : {"a", "b", "aa", "ab", "\xe2\x96\x81"}) {
    tokens.push_back(word);
    // Nearly all the range of floats, closer than 2^-20 to each other.
    scores.push_back(std::string(word) == "ab" ? 1e-30 : -3e38);
    types.push_back(1);
  }
  Tokenizer t(modelWith({{"tokenizer.ggml.model", "llama"},
                         {"tokenizer.ggml.tokens", tokens},
                         {"tokenizer.ggml.scores", scores},
                         {"tokenizer.ggml.token_type", types},
                         {"tokenizer.ggml.add_bos_token", false},
                         {"tokenizer.ggml.add_space_prefix", false}},
                        400));
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(t.encode("aab", false), (Ids{257, 260}));
  EXPECT_EQ(t.encode("x a", false), (Ids{1 + 'x', 261, 257}));
  EXPECT_FALSE(t.isTooLong(24, 4)); // tokens have up to six bytes
  EXPECT_TRUE(t.isTooLong(30, 4));
  EXPECT_LT(secondsOf(t, std::string(4 * MiB, ' ')), 10);
  EXPECT_LT(secondsOf(t, std::string(4 * MiB, 'x')), 10);
}

} // namespace
