// Tokenizer.cpp: see Tokenizer.h.
#include "tokenizer/TokenizerTables.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <queue>
#include <utf8proc.h>

namespace greta::llm {

//===----------------------------------------------------------------------===//
// Characters
//===----------------------------------------------------------------------===//

std::string utf8(uint32_t code) {
  utf8proc_uint8_t bytes[4];
  utf8proc_ssize_t size =
      utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  return {reinterpret_cast<char *>(bytes), static_cast<size_t>(size)};
}

const std::string &characterOf(unsigned char byte) {
  // Printable ones stand for themselves, the others follow from U+0100 on.
  static const auto alphabet = [] {
    std::array<std::string, 256> all;
    uint32_t next = 256;
    for (uint32_t b = 0; b < 256; ++b) {
      bool isPrintable =
          (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      all[b] = utf8(isPrintable ? b : next++);
    }
    return all;
  }();
  return alphabet[byte];
}

size_t characterSize(unsigned char lead) {
  return lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

void replaceAll(std::string &text, const std::string &from,
                const std::string &to) {
  std::string result;
  size_t done = 0;
  for (size_t at; (at = text.find(from, done)) != std::string::npos;
       done = at + from.size())
    result.append(text, done, at - done).append(to);
  text = result.append(text, done);
}

std::vector<int32_t> codesOf(const std::string &text) {
  std::vector<int32_t> codes;
  codes.reserve(text.size());
  auto bytes = reinterpret_cast<const utf8proc_uint8_t *>(text.data());
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t code;
    utf8proc_ssize_t size = utf8proc_iterate(
        bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    codes.push_back(size > 0 ? code : 0xfffd);
    at += static_cast<size_t>(size > 0 ? size : 1);
  }
  return codes;
}

static std::string textOf(const std::vector<int32_t> &codes) {
  std::string text;
  for (int32_t code : codes)
    text += utf8(static_cast<uint32_t>(code));
  return text;
}

constexpr auto composing = static_cast<utf8proc_option_t>(
    UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_DECOMPOSE);

/// utf8proc orders the marks behind a letter in quadratic time, so they are
/// ordered here.
std::vector<int32_t> decomposed(const std::vector<int32_t> &given) {
  std::vector<int32_t> codes;
  codes.reserve(given.size());
  for (int32_t code : given) {
    utf8proc_int32_t parts[64];
    utf8proc_ssize_t count =
        utf8proc_decompose_char(code, parts, 64, composing, nullptr);
    if (count < 0 || count > 64)
      return given;
    codes.insert(codes.end(), parts, parts + count);
  }
  auto classOf = [](utf8proc_int32_t code) {
    return utf8proc_get_property(code)->combining_class;
  };
  auto isStarter = [&](utf8proc_int32_t code) { return classOf(code) == 0; };
  for (auto from = codes.begin(); from != codes.end();) {
    from = std::find_if_not(from, codes.end(), isStarter);
    auto to = std::find_if(from, codes.end(), isStarter);
    std::vector<std::pair<uint64_t, utf8proc_int32_t>> marks;
    for (auto it = from; it != to; ++it)
      marks.push_back({uint64_t(classOf(*it)) << 32 | marks.size(), *it});
    std::sort(marks.begin(), marks.end());
    for (const auto &[order, code] : marks)
      *from++ = code;
  }
  return codes;
}

/// Unicode's NFC.
static std::string composed(const std::string &text) {
  if (std::all_of(text.begin(), text.end(),
                  [](unsigned char c) { return c < 0x80; }))
    return text;
  std::vector<int32_t> codes = decomposed(codesOf(text));
  utf8proc_ssize_t count = utf8proc_normalize_utf32(
      codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), composing);
  if (count < 0)
    return text;
  codes.resize(static_cast<size_t>(count));
  return textOf(codes);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

Pattern::Pattern(const std::string &text) {
  int error;
  PCRE2_SIZE offset;
  // \C, which matches a part of a character, would leave no UTF-8 behind.
  code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()),
                           text.size(),
                           PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                           &error, &offset, nullptr));
  if (!code)
    fail("the tokenizer's pattern cannot be read at character " +
         std::to_string(offset) + ": " + text);
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
}

std::optional<std::pair<size_t, size_t>> Pattern::find(const std::string &text,
                                                       size_t from) const {
  // Belongs to this call alone: texts are split in many threads.
  std::unique_ptr<pcre2_match_data, Free> found(
      pcre2_match_data_create_from_pattern(code.get(), nullptr));
  int count =
      pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                  text.size(), from, PCRE2_NO_UTF_CHECK, found.get(), nullptr);
  if (count == PCRE2_ERROR_NOMATCH)
    return std::nullopt;
  if (count < 0)
    fail("the tokenizer's pattern takes too long on this text");
  PCRE2_SIZE *ends = pcre2_get_ovector_pointer(found.get());
  return std::pair<size_t, size_t>(ends[0], ends[1]);
}

/// Matches, and what lies between them, each as a piece of its own.
static std::vector<std::string> split(const std::string &text,
                                      const Pattern &pattern) {
  std::vector<std::string> pieces;
  size_t done = 0, from = 0;
  while (from < text.size()) {
    auto match = pattern.find(text, from);
    if (!match)
      break;
    auto [begin, end] = *match;
    if (end <= begin) { // nothing: look from the next character on
      from = begin + characterSize(static_cast<unsigned char>(text[begin]));
      continue;
    }
    if (begin > done)
      pieces.push_back(text.substr(done, begin - done));
    pieces.push_back(text.substr(begin, end - begin));
    done = from = end;
  }
  if (done < text.size())
    pieces.push_back(text.substr(done));
  return pieces;
}

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

// Integers in the order of finite scores, the highest first.
static int64_t rankOf(float score) {
  int32_t bits;
  memcpy(&bits, &score, sizeof(bits));
  return bits < 0 ? bits & INT32_MAX : -int64_t(bits);
}

std::optional<Tokenizer::Tables::Merge>
Tokenizer::Tables::mergeOf(int32_t left, int32_t right) const {
  if (scores.empty()) {
    auto it = merges.find(key(left, right));
    return it == merges.end() ? std::nullopt : std::optional<Merge>(it->second);
  }
  auto joined = find(tokens[static_cast<size_t>(left)] +
                     tokens[static_cast<size_t>(right)]);
  if (!joined)
    return std::nullopt;
  return Merge{rankOf(scores[static_cast<size_t>(*joined)]), *joined};
}

void Prefixes::finish() {
  std::sort(texts.begin(), texts.end());
  for (const auto &[text, number] : texts)
    ++from[static_cast<unsigned char>(text[0]) + 1];
  std::partial_sum(std::begin(from), std::end(from), std::begin(from));
}

void Tokenizer::Tables::finish() {
  pieces.finish();
  for (const std::string &token : tokens)
    longestToken = std::max(longestToken, token.size());
  std::sort(
      added.begin(), added.end(),
      [](const AddedToken &a, const AddedToken &b) { return a.id < b.id; });
  for (size_t i = 0; i < added.size(); ++i) {
    std::string text =
        added[i].isNormalised ? normalised(added[i].text) : added[i].text;
    if (!text.empty())
      (added[i].isNormalised ? normalisedTexts : addedTexts)
          .add(text, static_cast<int32_t>(i));
  }
  addedTexts.finish();
  normalisedTexts.finish();
  for (size_t byte = 0; byte < byteTokens.size(); ++byte) {
    char name[8];
    snprintf(name, sizeof(name), "<0x%02X>", static_cast<unsigned>(byte));
    byteTokens[byte] = find(name);
  }
  bool hasAllBytes = isByteLevel || fallsBackToBytes;
  for (size_t byte = 0; byte < byteTokens.size() && hasAllBytes; ++byte)
    hasAllBytes =
        isByteLevel
            ? find(characterOf(static_cast<unsigned char>(byte))).has_value()
            : byteTokens[byte].has_value();
  mayLeaveOut = !hasAllBytes || takesLongestTokens || isUnigram ||
                splitsAtSpaces || splitsAsBert || bertNormalizer ||
                !normalizers.empty() ||
                std::any_of(added.begin(), added.end(), [](const auto &token) {
                  return token.stripsLeft || token.stripsRight;
                });
}

void Tokenizer::Tables::divide(
    const std::string &text, const Prefixes &by,
    const std::function<bool(std::string, size_t)> &takeText,
    const std::function<bool(int32_t)> &takeToken) const {
  // The size of the white space that begins at `at`; other characters: 0.
  auto spaceAt = [&](size_t at) {
    size_t size = characterSize(static_cast<unsigned char>(text[at]));
    return isWhiteSpace(codesOf(text.substr(at, size))[0]) ? size : 0;
  };
  auto spaceBefore = [&](size_t end) {
    size_t at = end - 1;
    while ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80)
      --at;
    return spaceAt(at);
  };
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const AddedToken *longest = nullptr;
    size_t end = at;
    by.visit(text, at, [&](int32_t number, size_t size) {
      longest = &added[static_cast<size_t>(number)];
      end = at + size;
    });
    if (!longest) {
      ++at;
      continue;
    }
    size_t begin = at;
    while (longest->stripsLeft && begin > done && spaceBefore(begin))
      begin -= spaceBefore(begin);
    while (longest->stripsRight && end < text.size() && spaceAt(end))
      end += spaceAt(end);
    if (takeText(text.substr(done, begin - done), done) ||
        takeToken(longest->id))
      return;
    done = at = end;
  }
  takeText(text.substr(done), done);
}

void Tokenizer::Tables::encodePiece(const std::string &piece,
                                    std::vector<int32_t> &to) const {
  if (takesWholePieces)
    if (auto whole = find(piece)) {
      to.push_back(*whole);
      return;
    }
  // A list of tokens, in which neighbours are joined.
  struct Symbol {
    int32_t token, previous, next;
    bool isGone = false;
  };
  std::vector<Symbol> symbols;
  bool wasUnknown = false;
  auto push = [&](int32_t token) {
    int32_t at = static_cast<int32_t>(symbols.size());
    symbols.push_back({token, at - 1, at + 1});
  };
  for (size_t at = 0; at < piece.size();) {
    size_t size = characterSize(static_cast<unsigned char>(piece[at]));
    std::string character = piece.substr(at, size);
    at += size;
    std::optional<int32_t> token = find(character);
    bool isUnknown = false;
    if (token) {
      push(*token);
    } else {
      std::vector<int32_t> bytes;
      for (unsigned char byte : character)
        if (fallsBackToBytes && byteTokens[byte])
          bytes.push_back(*byteTokens[byte]);
      isUnknown = bytes.size() != character.size();
      if (!isUnknown)
        for (int32_t byte : bytes)
          push(byte);
      else if (unknown && !(wasUnknown && fusesUnknown))
        push(*unknown);
    }
    wasUnknown = isUnknown;
  }
  if (!symbols.empty())
    symbols.back().next = -1;

  struct Candidate {
    int64_t rank;
    int32_t left, leftToken, rightToken, joined;
    bool operator<(const Candidate &other) const { // the best one is on top
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  std::priority_queue<Candidate> candidates;
  auto consider = [&](int32_t left) {
    if (left < 0 || symbols[static_cast<size_t>(left)].next < 0)
      return;
    const Symbol &a = symbols[static_cast<size_t>(left)];
    const Symbol &b = symbols[static_cast<size_t>(a.next)];
    if (auto merge = mergeOf(a.token, b.token))
      candidates.push({merge->rank, left, a.token, b.token, merge->joined});
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i)
    consider(static_cast<int32_t>(i));
  while (!candidates.empty()) {
    Candidate best = candidates.top();
    candidates.pop();
    Symbol &a = symbols[static_cast<size_t>(best.left)];
    if (a.isGone || a.token != best.leftToken || a.next < 0)
      continue;
    Symbol &b = symbols[static_cast<size_t>(a.next)];
    if (b.token != best.rightToken)
      continue;
    a.token = best.joined;
    b.isGone = true;
    a.next = b.next;
    if (a.next >= 0)
      symbols[static_cast<size_t>(a.next)].previous = best.left;
    consider(a.previous);
    consider(best.left);
  }
  for (const Symbol &symbol : symbols)
    if (!symbol.isGone)
      to.push_back(symbol.token);
}

std::string Tokenizer::Tables::normalised(std::string text) const {
  if (bertNormalizer)
    text = (*bertNormalizer)(text);
  if (composes)
    text = composed(text);
  for (const auto &normalize : normalizers)
    text = normalize(std::move(text));
  return text;
}

// Each piece is cut into tokens by itself.
std::vector<std::string> Tokenizer::Tables::piecesOf(std::string text,
                                                     bool isFirst) const {
  std::vector<std::string> pieces;
  if (splitsAtSpaces) {
    bool isOpen = false; // the last word may go on
    for (int32_t code : codesOf(text)) {
      if (isWhiteSpace(code)) {
        isOpen = false;
        continue;
      }
      if (!std::exchange(isOpen, true))
        pieces.emplace_back();
      pieces.back() += utf8(static_cast<uint32_t>(code));
    }
  } else if (!text.empty()) {
    pieces.push_back(std::move(text));
  }
  std::string space = spacesAreBars ? bar : " ";
  bool prepend =
      prepends == Prepend::Always || (prepends == Prepend::First && isFirst);
  for (std::string &piece : pieces) {
    if (spacesAreBars)
      replaceAll(piece, " ", bar);
    if (prepend && !(prependsOnce && piece.rfind(space, 0) == 0))
      piece = space + piece;
    if (startsWithSpace && piece[0] != ' ')
      piece = " " + piece;
    prepend = prepend && prepends == Prepend::Always;
  }
  auto refine = [&](auto divide) {
    std::vector<std::string> finer;
    for (const std::string &piece : pieces)
      for (std::string &part : divide(piece))
        finer.push_back(std::move(part));
    pieces = std::move(finer);
  };
  if (splitsAsBert)
    refine(wordsOfBert);
  for (const Pattern &pattern : patterns)
    refine([&](const std::string &piece) { return split(piece, pattern); });
  return pieces;
}

void Tokenizer::Tables::encodeText(std::string text, bool isFirst, size_t most,
                                   std::vector<int32_t> &to) const {
  if (text.empty() || to.size() > most)
    return;
  divide(
      normalised(std::move(text)), normalisedTexts,
      [&](std::string part, size_t at) {
        encodeNormalised(std::move(part), isFirst && at == 0, most, to);
        return to.size() > most;
      },
      [&](int32_t token) {
        to.push_back(token);
        return to.size() > most;
      });
}

void Tokenizer::Tables::encodeNormalised(std::string text, bool isFirst,
                                         size_t most,
                                         std::vector<int32_t> &to) const {
  for (const std::string &piece : piecesOf(std::move(text), isFirst)) {
    if (to.size() > most)
      return;
    if (takesLongestTokens) {
      encodeWord(piece, to);
      continue;
    }
    if (isUnigram) {
      encodeUnigram(piece, to);
      continue;
    }
    if (!isByteLevel) {
      encodePiece(piece, to);
      continue;
    }
    std::string characters;
    for (char byte : piece)
      characters += characterOf(static_cast<unsigned char>(byte));
    encodePiece(characters, to);
  }
}

std::vector<int32_t> Tokenizer::encode(const std::string &given,
                                       bool addsSpecial, size_t most) const {
  // Positions are numbers of 32 bits.
  if (given.size() > size_t(1) << 28)
    fail("the text has " + std::to_string(given.size()) +
         " bytes; up to 2^28 become tokens");
  // Text that is no UTF-8 gets U+FFFD in place of what is wrong.
  std::string text = textOf(codesOf(given));
  std::vector<int32_t> result;
  if (addsSpecial)
    result = tables->before;
  tables->divide(
      text, tables->addedTexts,
      [&](std::string part, size_t at) {
        tables->encodeText(std::move(part), at == 0, most, result);
        return result.size() > most;
      },
      [&](int32_t token) {
        result.push_back(token);
        return result.size() > most;
      });
  if (addsSpecial)
    result.insert(result.end(), tables->after.begin(), tables->after.end());
  return result;
}

bool Tokenizer::isTooLong(size_t bytes, int64_t count) const {
  // NFC leaves more than a quarter of the bytes: at most 7 become 2 (U+1FBE,
  // U+0308 and U+0301 become U+0390).
  size_t least = tables->composes ? bytes / 4 : bytes;
  return !tables->mayLeaveOut &&
         least / std::max<size_t>(tables->longestToken, 1) >
             static_cast<size_t>(count);
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

std::string Tokenizer::bytesOf(int32_t token) const {
  if (token < 0 || static_cast<size_t>(token) >= tables->tokens.size())
    return "";
  const std::string &text = tables->tokens[static_cast<size_t>(token)];
  if (auto it = tables->isSpecial.find(token); it != tables->isSpecial.end())
    return it->second ? "" : text;
  if (tables->isByteLevel) {
    static const auto bytes = [] {
      std::unordered_map<std::string, char> all;
      for (int b = 0; b < 256; ++b)
        all[characterOf(static_cast<unsigned char>(b))] = static_cast<char>(b);
      return all;
    }();
    std::string result;
    for (size_t at = 0; at < text.size();) {
      size_t size = characterSize(static_cast<unsigned char>(text[at]));
      auto it = bytes.find(text.substr(at, size));
      result += it == bytes.end() ? text.substr(at, size)
                                  : std::string(1, it->second);
      at += size;
    }
    return result;
  }
  if (tables->takesLongestTokens)
    return text.rfind(tables->continuing, 0) == 0
               ? text.substr(tables->continuing.size())
               : " " + text;
  if (tables->fallsBackToBytes && text.size() == 6 &&
      text.compare(0, 3, "<0x") == 0 && text[5] == '>')
    return std::string(1, static_cast<char>(std::strtol(
                              text.substr(3, 2).c_str(), nullptr, 16)));
  std::string result = text;
  if (tables->spacesAreBars)
    replaceAll(result, bar, " ");
  return result;
}

bool Tokenizer::isEnd(int32_t token) const {
  for (int32_t end : tables->ends)
    if (end == token)
      return true;
  return false;
}

std::optional<int32_t> Tokenizer::find(const std::string &token) const {
  return tables->find(token);
}

size_t Tokenizer::size() const { return tables->tokens.size(); }

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer &&) noexcept = default;

} // namespace greta::llm
