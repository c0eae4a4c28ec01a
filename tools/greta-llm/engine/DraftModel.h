// DraftModel.h: a smaller model that guesses what texts go on with, for a model
// with the same tokens. In: the tokens so far. Out: the likeliest next ones.
//
// It keeps the keys of each text by its slot. It evaluates only what these do
// not have: the tokens since the first guess that was wrong.
#ifndef GRETA_LLM_DRAFTMODEL_H
#define GRETA_LLM_DRAFTMODEL_H

#include "Options.h"
#include "engine/Drafts.h"
#include "engine/Engine.h"
#include "tokenizer/Tokenizer.h"

namespace greta::llm {

// Makes what guesses for an engine with so many slots, as --drafts and
// --draft-model say; null where nothing is guessed.
std::unique_ptr<Drafts> draftsFor(const Options &options,
                                  const Tokenizer &tokenizer,
                                  const Engine &engine, int64_t slots);

class DraftModel : public Drafts {
public:
  // Fails where its tokens are not those of the large model.
  DraftModel(const Options &options, const Tokenizer &large, int64_t vocabulary,
             int64_t context, int64_t slots);

  std::vector<std::vector<int32_t>> guess(const std::vector<Asked> &texts,
                                          size_t most) override;
  bool costs() const override { return true; }
  void end(int64_t slot) override;
  void forget() override;

private:
  struct Text {
    Sequence sequence;
    std::vector<int32_t> tokens; // whose keys the cache has
  };
  size_t keep(const Asked &asked);
  size_t room(const Asked &asked) const;
  size_t begin(const Asked &asked, size_t part, Engine::Chosen &first);

  Model model;
  const int64_t largeVocabulary;
  Engine engine;
  std::vector<Text> texts;
};

} // namespace greta::llm
#endif
