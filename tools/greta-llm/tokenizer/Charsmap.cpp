// Charsmap.cpp: see Charsmap.h.
#include "tokenizer/Charsmap.h"
#include "tokenizer/TokenizerTables.h"

#include <cstring>
#include <utf8proc.h>

namespace greta::llm {

// The longest text of Unicode's NFKC has 33 bytes. It bounds how much longer a
// table makes a text.
constexpr size_t longestText = 64;

// A text in base64 stands for bytes, and may end with signs of equality.
std::string bytesOfBase64(const std::string &text) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                : c >= 'a' && c <= 'z' ? c - 'a' + 26
                : c >= '0' && c <= '9' ? c - '0' + 52
                : c == '+'             ? 62
                : c == '/'             ? 63
                                       : -1;
    if (c == '=')
      break;
    if (value < 0)
      fail("is no base64");
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (++count == 4) {
      for (int shift : {16, 8, 0})
        bytes += static_cast<char>(bits >> shift & 0xff);
      bits = 0;
      count = 0;
    }
  }
  if (count == 1)
    fail("is no base64");
  for (int i = 1; i < count; ++i)
    bytes += static_cast<char>(bits >> (6 * count - 8 * i) & 0xff);
  return bytes;
}

Charsmap::Charsmap(const std::string &bytes) {
  uint32_t size = 0;
  if (bytes.size() >= sizeof(size))
    memcpy(&size, bytes.data(), sizeof(size));
  if (size < 4 || size % 4 || size > bytes.size() - 4)
    fail("has a trie of " + std::to_string(size) + " bytes in " +
         std::to_string(bytes.size()));
  units.resize(size / 4);
  memcpy(units.data(), bytes.data() + 4, size);
  texts = bytes.substr(4 + size);
  // Patterns take what they match for UTF-8 without a look at it.
  auto data = reinterpret_cast<const utf8proc_uint8_t *>(texts.data());
  for (size_t at = 0, begin = 0; at < texts.size();) {
    utf8proc_int32_t code;
    utf8proc_ssize_t length = utf8proc_iterate(
        data + at, static_cast<utf8proc_ssize_t>(texts.size() - at), &code);
    if (length <= 0)
      fail("has a text that is no UTF-8");
    at += static_cast<size_t>(length);
    if (code == 0)
      begin = at;
    if (at - begin > longestText)
      fail("has a text of more than " + std::to_string(longestText) + " bytes");
  }
}

std::optional<Charsmap::Found> Charsmap::find(std::string_view text,
                                              bool takesLongest) const {
  auto childrenOf = [](uint32_t unit) {
    return size_t(unit >> 10) << ((unit & 0x200) >> 6);
  };
  std::optional<Found> found;
  size_t place = childrenOf(units[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    place ^= byte;
    if (byte == 0 || place >= units.size() ||
        (units[place] & 0x800000ff) != byte)
      break;
    uint32_t unit = units[place];
    place ^= childrenOf(unit);
    if (!(unit & 0x100))
      continue;
    if (place >= units.size())
      break;
    size_t begin = units[place] & 0x7fffffff;
    // A text does not begin inside a character.
    if (begin >= texts.size() ||
        (static_cast<unsigned char>(texts[begin]) & 0xc0) == 0x80)
      break;
    size_t end = std::min(texts.find('\0', begin), texts.size());
    found = {i + 1, std::string_view(texts).substr(begin, end - begin)};
    if (!takesLongest)
      break;
  }
  return found;
}

std::string Charsmap::longest(const std::string &text) const {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    std::string_view rest = std::string_view(text).substr(at);
    size_t size = std::min(characterSize(static_cast<unsigned char>(rest[0])),
                           rest.size());
    auto found = find(rest, /*takesLongest=*/true);
    // It ends where a character does, or patterns would see parts of one.
    if (found &&
        (found->size == rest.size() ||
         (static_cast<unsigned char>(rest[found->size]) & 0xc0) != 0x80)) {
      result += found->text;
      size = found->size;
    } else {
      result += rest.substr(0, size);
    }
    at += size;
  }
  return result;
}

std::string Charsmap::operator()(const std::string &text) const {
  // Characters that are one to a reader are looked up together where they have
  // up to five bytes, and else each alone.
  std::string result;
  auto take = [&](std::string_view part) {
    auto found = find(part, /*takesLongest=*/false);
    if (found)
      result += found->text;
    return found.has_value();
  };
  size_t begin = 0;
  std::vector<size_t> begins; // of the characters since `begin`
  auto flush = [&](size_t end) {
    std::string_view whole = std::string_view(text).substr(begin, end - begin);
    begins.push_back(end);
    if (whole.size() > 5 || !take(whole))
      for (size_t i = 0; i + 1 < begins.size(); ++i) {
        std::string_view one =
            std::string_view(text).substr(begins[i], begins[i + 1] - begins[i]);
        if (!take(one))
          result += one;
      }
    begins.clear();
    begin = end;
  };
  int32_t state = 0, before = 0;
  size_t at = 0;
  for (int32_t code : codesOf(text)) {
    if (at > begin && utf8proc_grapheme_break_stateful(before, code, &state))
      flush(at);
    begins.push_back(at);
    before = code;
    at += utf8(static_cast<uint32_t>(code)).size();
  }
  if (at > begin)
    flush(at);
  return result;
}

} // namespace greta::llm
