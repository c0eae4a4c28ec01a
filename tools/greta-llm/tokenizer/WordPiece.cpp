// WordPiece.cpp: BERT's tokenizer (Tokenizer.h). In: a text, or one of its
// words. Out: the normalised text, its words, and a word's tokens: the longest
// token that it begins with, then the longest that goes on from there.
#include "tokenizer/TokenizerTables.h"

#include <algorithm>
#include <utf8proc.h>

namespace greta::llm {

bool isWhiteSpace(int32_t code) {
  return (code >= 0x9 && code <= 0xd) || code == 0x20 || code == 0x85 ||
         code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
         code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
         code == 0x3000;
}

namespace {

// A control character, of formats, or of private use, but for those that are
// spaces in texts.
bool isControl(int32_t code) {
  if (code == '\t' || code == '\n' || code == '\r')
    return false;
  utf8proc_category_t category = utf8proc_category(code);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO;
}

bool isPunctuation(int32_t code) {
  if (code < 0x80)
    return (code >= 33 && code <= 47) || (code >= 58 && code <= 64) ||
           (code >= 91 && code <= 96) || (code >= 123 && code <= 126);
  utf8proc_category_t category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

// The blocks of Chinese characters as BERT lists them.
bool isChinese(int32_t code) {
  constexpr std::pair<int32_t, int32_t> blocks[] = {
      {0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df},
      {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf},
      {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
  return std::any_of(std::begin(blocks), std::end(blocks), [&](const auto &b) {
    return code >= b.first && code <= b.second;
  });
}

} // namespace

std::string BertNormalizer::operator()(const std::string &text) const {
  std::vector<int32_t> codes;
  auto keep = [&](int32_t code) {
    if (cleans && (code == 0 || code == 0xfffd || isControl(code)))
      return;
    code = cleans && isWhiteSpace(code) ? ' ' : code;
    bool isApart = setsChineseApart && isChinese(code);
    if (isApart)
      codes.push_back(' ');
    codes.push_back(code);
    if (isApart)
      codes.push_back(' ');
  };
  for (int32_t code : codesOf(text))
    keep(code);
  if (stripsAccents) {
    codes = decomposed(codes);
    auto isAccent = [](int32_t code) {
      return utf8proc_category(code) == UTF8PROC_CATEGORY_MN;
    };
    codes.erase(std::remove_if(codes.begin(), codes.end(), isAccent),
                codes.end());
  }
  std::string result;
  for (int32_t code : codes) {
    // The one character that becomes two.
    if (lowers && code == 0x130)
      result += "i\xcc\x87";
    else
      result +=
          utf8(static_cast<uint32_t>(lowers ? utf8proc_tolower(code) : code));
  }
  return result;
}

std::vector<std::string> wordsOfBert(const std::string &text) {
  std::vector<std::string> words;
  bool isOpen = false; // the last word may go on
  for (int32_t code : codesOf(text)) {
    bool isAlone = isPunctuation(code);
    if (isWhiteSpace(code)) {
      isOpen = false;
      continue;
    }
    if (!isOpen || isAlone)
      words.emplace_back();
    words.back() += utf8(static_cast<uint32_t>(code));
    isOpen = !isAlone;
  }
  return words;
}

void Tokenizer::Tables::encodeWord(const std::string &word,
                                   std::vector<int32_t> &to) const {
  std::vector<size_t> begins; // of characters
  for (size_t at = 0; at < word.size();
       at += characterSize(static_cast<unsigned char>(word[at])))
    begins.push_back(at);
  begins.push_back(word.size());
  size_t before = to.size(), at = 0;
  bool isKnown = begins.size() - 1 <= longestWord;
  while (isKnown && begins[at] < word.size()) {
    size_t end = begins.size() - 1;
    std::optional<int32_t> token;
    for (; end > at && !token; --end) {
      size_t size = begins[end] - begins[at];
      if (size <= longestToken)
        token = find((at ? continuing : "") + word.substr(begins[at], size));
    }
    isKnown = token.has_value();
    if (isKnown)
      to.push_back(*token);
    at = end + 1;
  }
  if (isKnown)
    return;
  to.resize(before);
  to.push_back(*unknown);
}

} // namespace greta::llm
