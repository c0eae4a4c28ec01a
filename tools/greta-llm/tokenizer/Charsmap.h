// Charsmap.h: SentencePiece's table of characters that texts have in place of
// others, such as NFKC's. In: the table's bytes, which tokenizer.json has in
// base64: the size of a trie, the trie, and texts that end with a zero. Out:
// normalised texts, as Hugging Face's `tokenizers` or SentencePiece has them.
//
// The trie is a double array (darts-clone): a unit has a label, the place of
// its children, and whether one of these is the number of a text. Every place
// is checked when it is used, because files may be wrong.
#ifndef GRETA_LLM_CHARSMAP_H
#define GRETA_LLM_CHARSMAP_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace greta::llm {

// Fails where it is no base64.
std::string bytesOfBase64(const std::string &text);

class Charsmap {
public:
  // Fails with a reason, for whoever knows the file.
  explicit Charsmap(const std::string &bytes);
  // As Hugging Face's library does it.
  std::string operator()(const std::string &text) const;
  // As SentencePiece does it, and llama.cpp: at each character the longest text
  // that the table has.
  std::string longest(const std::string &text) const;

private:
  // A beginning of a text that the table has, and what stands for it.
  struct Found {
    size_t size;
    std::string_view text;
  };
  std::optional<Found> find(std::string_view text, bool takesLongest) const;

  std::vector<uint32_t> units;
  std::string texts;
};

} // namespace greta::llm
#endif
