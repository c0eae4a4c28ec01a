// GgufPatterns.h: the patterns of the tokenizers that GGUF files name. In: a
// name. Out: the patterns that split its texts, and what else it does.
#ifndef GRETA_LLM_GGUF_PATTERNS_H
#define GRETA_LLM_GGUF_PATTERNS_H

#include <string>
#include <vector>

namespace greta::llm {

// GPT-2's, which `ByteLevel` uses on its own.
extern const char *const gpt2Pattern;

// GGUF names a tokenizer's patterns only. Whether the model's tokenizer.json
// composes characters (NFC), takes whole pieces and begins texts with a token
// is not in files, either, or not in all of them.
struct GgufTokenizer {
  const char *names; // tokenizer.ggml.pre
  std::vector<const char *> patterns;
  enum Flag { Composes = 1, WholePieces = 2, Begins = 4 };
  int flags = 0;
  bool has(Flag flag) const { return (flags & flag) != 0; }
};

// Null: not known.
const GgufTokenizer *findGgufTokenizer(const std::string &name);
std::string ggufTokenizerNames();

} // namespace greta::llm
#endif
