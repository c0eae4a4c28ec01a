// Normalizers.h: parts of what tokenizers change in a text before it is split.
#ifndef GRETA_LLM_NORMALIZERS_H
#define GRETA_LLM_NORMALIZERS_H

#include <string>

namespace greta::llm {

// White space at the ends is left out.
std::string stripped(std::string from, bool left, bool right);
// `to` stands for two and more spaces.
std::string withoutRepeats(const std::string &from, const std::string &to);
// As llama.cpp writes SentencePiece's spaces: each is a bar, or where `merges`,
// each word has one before it and there is no other. The first word has one
// where `prepends`.
std::string withBars(const std::string &from, bool prepends, bool merges);

} // namespace greta::llm
#endif
