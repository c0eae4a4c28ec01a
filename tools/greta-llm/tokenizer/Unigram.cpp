// Unigram.cpp: SentencePiece's unigram tokenizer (Tokenizer.h). In: a word, and
// the vocabulary with a score for each token. Out: the tokens that are the word
// and whose scores' sum is the largest.
//
// The best way to each character is known when the ways on from it are looked
// at (A. Viterbi, 1967), so the time is that of looking the tokens up that
// begin at each character.
#include "tokenizer/TokenizerTables.h"

#include <algorithm>

namespace greta::llm {

void Tokenizer::Tables::encodeUnigram(const std::string &word,
                                      std::vector<int32_t> &to) const {
  struct Way {
    double score = 0;
    size_t from = 0;
    int32_t token = -1; // none leads here yet
  };
  std::vector<Way> ways(word.size() + 1);
  for (size_t at = 0; at < word.size();) {
    size_t size = std::min(characterSize(static_cast<unsigned char>(word[at])),
                           word.size() - at);
    double before = ways[at].score;
    bool isKnown = false;
    // The first of equal ways counts, as in Hugging Face's `tokenizers`.
    auto take = [&](size_t end, double score, int32_t token) {
      Way &way = ways[end];
      if (way.token < 0 || before + score > way.score)
        way = {before + score, at, token};
    };
    pieces.visit(word, at, [&](int32_t token, size_t length) {
      isKnown = isKnown || length == size;
      take(at + length, pieceScores[static_cast<size_t>(token)], token);
    });
    if (!isKnown)
      take(at + size, unknownScore, *unknown);
    at += size;
  }
  // Neighbours that are unknown are one token.
  std::vector<int32_t> tokens;
  for (size_t end = word.size(); end > 0; end = ways[end].from) {
    int32_t token = ways[end].token;
    if (token != *unknown || tokens.empty() || tokens.back() != token)
      tokens.push_back(token);
  }
  to.insert(to.end(), tokens.rbegin(), tokens.rend());
}

} // namespace greta::llm
