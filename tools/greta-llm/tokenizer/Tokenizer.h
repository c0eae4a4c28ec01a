// Tokenizer.h: text to tokens and back, by byte-pair merges, by WordPiece, or
// by SentencePiece's unigrams. In: a model's tokenizer.json, or the same tables
// from GGUF's metadata. Out: the ids that Hugging Face's `tokenizers` gives.
//
//   text → added tokens cut out → normalised → split by patterns → tokens
//
// Texts are normalised as BERT does it, by Unicode's NFC, and then by the
// file's own list, such as SentencePiece's table (Charsmap.h).
//
// Merging starts from characters, which stand for bytes where the tokenizer is
// byte-level, and joins the neighbours of the lowest rank until none has one.
// WordPiece takes the longest token that a word begins with, and goes on behind
// it (WordPiece.cpp). Unigram takes the tokens whose scores' sum is the largest
// (Unigram.cpp).
#ifndef GRETA_LLM_TOKENIZER_H
#define GRETA_LLM_TOKENIZER_H

#include "model/Model.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace greta::llm {

class Tokenizer {
public:
  explicit Tokenizer(const Model &model);
  ~Tokenizer();
  Tokenizer(Tokenizer &&) noexcept;

  // `addsSpecial`: what the model wants around a text, such as its beginning.
  // A text with more than `most` tokens may lose some of them, but keeps more
  // than `most`.
  std::vector<int32_t> encode(const std::string &text, bool addsSpecial,
                              size_t most = SIZE_MAX) const;
  // A text of so many bytes has more than so many tokens for sure. Tokenizers
  // that may leave bytes out, or take many as one token, are never sure.
  bool isTooLong(size_t bytes, int64_t tokens) const;
  // The bytes that a token stands for; none for special ones. A token may be
  // part of a character.
  std::string bytesOf(int32_t token) const;
  bool isEnd(int32_t token) const;
  std::optional<int32_t> find(const std::string &token) const;
  size_t size() const;

  struct Tables;

private:
  std::unique_ptr<Tables> tables;
};

} // namespace greta::llm
#endif
