// TokenizerTables.h: what a tokenizer is made of, whichever file it came from
// (TokenizerFiles.cpp), and a compiled pattern.
#ifndef GRETA_LLM_TOKENIZER_TABLES_H
#define GRETA_LLM_TOKENIZER_TABLES_H

#include "tokenizer/Tokenizer.h"

#include <algorithm>
#include <array>
#include <functional>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace greta::llm {

// No vocabulary that is known has tokens of a tenth of it. Texts are compared
// with added tokens byte by byte, so it bounds the time that each byte takes.
constexpr size_t largestToken = 1024;

// A regular expression over UTF-8 text.
class Pattern {
public:
  explicit Pattern(const std::string &text);
  // [begin, end) of the first match at or behind `from`; none: no value.
  std::optional<std::pair<size_t, size_t>> find(const std::string &text,
                                                size_t from) const;

private:
  struct Free {
    void operator()(pcre2_code *code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data *data) const {
      pcre2_match_data_free(data);
    }
  };
  std::unique_ptr<pcre2_code, Free> code;
};

// These texts are looked up where they may begin in another one.
class Prefixes {
public:
  // `number` is what `visit` says of the text. Equal texts have the
  // least of their numbers.
  void add(std::string text, int32_t number) {
    texts.emplace_back(std::move(text), number);
  }
  // Has to come before `visit`.
  void finish();
  // Calls `each` with the number and the size of every text that `text` has at
  // `at`, the shortest first.
  template <typename Each>
  void visit(const std::string &text, size_t at, Each each) const;

private:
  std::vector<std::pair<std::string, int32_t>> texts; // sorted
  size_t from[257] = {}; // the first that begins with a byte
};

template <typename Each>
void Prefixes::visit(const std::string &text, size_t at, Each each) const {
  // [begin, end) share the first `size` bytes with the text.
  auto begin = texts.begin() + static_cast<std::ptrdiff_t>(
                                   from[static_cast<unsigned char>(text[at])]),
       end =
           texts.begin() + static_cast<std::ptrdiff_t>(
                               from[static_cast<unsigned char>(text[at]) + 1]);
  for (size_t size = 1; begin != end; ++size) {
    if (begin->first.size() == size)
      each(begin->second, size);
    while (begin != end && begin->first.size() == size)
      ++begin;
    if (begin == end || at + size == text.size())
      return;
    unsigned char next = static_cast<unsigned char>(text[at + size]);
    auto byteOf = [&](const auto &one) {
      return static_cast<unsigned char>(one.first[size]);
    };
    begin = std::partition_point(
        begin, end, [&](const auto &one) { return byteOf(one) < next; });
    end = std::partition_point(
        begin, end, [&](const auto &one) { return byteOf(one) == next; });
  }
}

struct AddedToken {
  std::string text;
  int32_t id;
  bool isSpecial, stripsLeft = false, stripsRight = false;
  bool isNormalised = false; // looked up in normalised texts, itself so, too
};

enum class Prepend { Never, First, Always };

// BERT changes a text so before it is split (WordPiece.cpp).
struct BertNormalizer {
  bool cleans = true;           // no control characters, and spaces alone
  bool setsChineseApart = true; // between spaces
  bool stripsAccents = true;    // of letters taken apart (NFD)
  bool lowers = true;           // letters
  std::string operator()(const std::string &text) const;
};
// Words, and each sign of punctuation as a word of its own.
std::vector<std::string> wordsOfBert(const std::string &text);
// Unicode's property White_Space.
bool isWhiteSpace(int32_t code);

struct Tokenizer::Tables {
  std::vector<std::string> tokens; // as the vocabulary spells them
  std::unordered_map<std::string, int32_t> ids;
  std::vector<AddedToken> added;
  // Numbers in `added` of those that texts are searched for as they are, and
  // of those behind normalizers; set by `finish`.
  Prefixes addedTexts, normalisedTexts;
  std::unordered_map<int32_t, bool> isSpecial; // of added tokens

  // WordPiece.
  std::optional<BertNormalizer> bertNormalizer;
  bool splitsAsBert = false;       // into words, before all patterns
  bool takesLongestTokens = false; // in place of merging
  std::string continuing = "##";   // before tokens that do not begin a word
  size_t longestWord = 100;        // characters; a longer one is unknown
  size_t longestToken = 0;         // bytes, set by `finish`
  bool mayLeaveOut = true; // bytes of a text get no token, or many get one

  // Unigram.
  bool isUnigram = false;          // in place of merging
  std::vector<double> pieceScores; // of `pieces`, which are tokens
  Prefixes pieces;
  double unknownScore = 0; // of a character that is no token

  // These come behind BertNormalizer and NFC, in this order, and before all
  // else.
  std::vector<std::function<std::string(std::string)>> normalizers;
  bool splitsAtSpaces = false; // which are left out

  // Before merging.
  bool composes = false;             // Unicode's NFC
  Prepend prepends = Prepend::Never; // a space, where a text begins
  bool spacesAreBars = false;        // " " becomes U+2581
  bool prependsOnce = false;         // not where there is one
  std::vector<Pattern> patterns;     // each splits what the last one left
  bool isByteLevel = false;          // characters stand for bytes
  bool startsWithSpace = false;      // byte level: a space before the text

  // Merging: two tokens → rank, joined token. Without ranks, tokens join whose
  // text together is a token, the highest score first.
  struct Merge {
    int64_t rank;
    int32_t joined;
  };
  std::unordered_map<uint64_t, Merge> merges;
  std::vector<float> scores;
  bool takesWholePieces = false; // a piece that is a token is one
  bool fallsBackToBytes = false; // an unknown character is <0x..> per byte
  std::array<std::optional<int32_t>, 256> byteTokens; // <0x00> to <0xFF>
  std::optional<int32_t> unknown;
  bool fusesUnknown = false;

  std::vector<int32_t> before, after; // what the model wants around a text
  std::vector<int32_t> ends;

  static uint64_t key(int32_t left, int32_t right) {
    return uint64_t(static_cast<uint32_t>(left)) << 32 |
           static_cast<uint32_t>(right);
  }
  std::optional<Merge> mergeOf(int32_t left, int32_t right) const;
  // Makes what is looked up out of what was read.
  void finish();
  // Calls `takeText` with what is between added tokens, and where it begins,
  // and `takeToken` with each of them, until one of both says that it is
  // enough.
  void divide(const std::string &text, const Prefixes &by,
              const std::function<bool(std::string, size_t)> &takeText,
              const std::function<bool(int32_t)> &takeToken) const;
  std::optional<int32_t> find(const std::string &token) const {
    auto it = ids.find(token);
    return it == ids.end() ? std::nullopt : std::optional<int32_t>(it->second);
  }
  void encodeText(std::string text, bool isFirst, size_t most,
                  std::vector<int32_t> &to) const;
  void encodePiece(const std::string &piece, std::vector<int32_t> &to) const;
  void encodeWord(const std::string &word, std::vector<int32_t> &to) const;
  void encodeUnigram(const std::string &word, std::vector<int32_t> &to) const;
  std::string normalised(std::string text) const;
  // The text is normalised already.
  std::vector<std::string> piecesOf(std::string text, bool isFirst) const;
  void encodeNormalised(std::string text, bool isFirst, size_t most,
                        std::vector<int32_t> &to) const;
};

// The bar that stands for a space in SentencePiece's vocabularies.
constexpr const char *bar = "\xe2\x96\x81";

// The character of GPT-2's alphabet that stands for a byte, as UTF-8.
const std::string &characterOf(unsigned char byte);
std::string utf8(uint32_t code);
// The characters of a text; what is no UTF-8 becomes U+FFFD.
std::vector<int32_t> codesOf(const std::string &text);
// Unicode's NFD.
std::vector<int32_t> decomposed(const std::vector<int32_t> &codes);
// How many bytes the character has that begins with `lead`.
size_t characterSize(unsigned char lead);
void replaceAll(std::string &text, const std::string &from,
                const std::string &to);

} // namespace greta::llm
#endif
