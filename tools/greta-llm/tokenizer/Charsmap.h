// Charsmap.h: SentencePiece's table of characters that texts have in place of
// others, such as NFKC's. In: the table as tokenizer.json has it, in base64:
// the size of a trie, the trie, and texts that end with a zero. Out: normalised
// texts, as Hugging Face's `tokenizers` has them.
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

class Charsmap {
public:
  // Fails with a reason, for whoever knows the file.
  explicit Charsmap(const std::string &base64);
  std::string operator()(const std::string &text) const;

private:
  // The shortest beginning that the table has counts; this is the text that
  // stands for it, or there is none.
  std::optional<std::string_view> find(std::string_view text) const;

  std::vector<uint32_t> units;
  std::string texts;
};

} // namespace greta::llm
#endif
