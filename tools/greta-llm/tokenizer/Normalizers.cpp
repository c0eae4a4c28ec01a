// Normalizers.cpp: see Normalizers.h.
#include "tokenizer/Normalizers.h"
#include "tokenizer/TokenizerTables.h"

namespace greta::llm {

// White space at the ends is left out.
std::string stripped(std::string from, bool left, bool right) {
  std::vector<int32_t> codes = codesOf(from);
  auto isText = [](int32_t code) { return !isWhiteSpace(code); };
  if (right)
    codes.erase(std::find_if(codes.rbegin(), codes.rend(), isText).base(),
                codes.end());
  if (left)
    codes.erase(codes.begin(),
                std::find_if(codes.begin(), codes.end(), isText));
  std::string result;
  for (int32_t code : codes)
    result += utf8(static_cast<uint32_t>(code));
  return result;
}

// `to` stands for two and more spaces.
std::string withoutRepeats(const std::string &from, const std::string &to) {
  std::string result;
  for (size_t at = 0; at < from.size();) {
    size_t end = std::min(from.find_first_not_of(' ', at), from.size());
    if (end - at < 2)
      end = at + 1;
    result += end - at < 2 ? from.substr(at, 1) : to;
    at = end;
  }
  return result;
}

// Spaces between words are runs of " " alone: what else is white space, a table
// of characters made one, or it is a part of a word.
std::string withBars(const std::string &from, bool prepends, bool merges) {
  std::string result;
  bool isInWord = false;
  for (char c : from) {
    if (c == ' ') {
      isInWord = false;
      if (!merges)
        result += bar;
      continue;
    }
    if (!std::exchange(isInWord, true) && (merges || prepends)) {
      result += bar;
      prepends = false;
    }
    result += c;
  }
  return result;
}

} // namespace greta::llm
