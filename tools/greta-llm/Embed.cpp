// Embed.cpp: the verb `embed`. In: a model of embeddings and a text, or its
// tokens. Out: the text's embedding as a list of numbers in JSON.
#include "Compile.h"
#include "Options.h"
#include "Tokens.h"
#include "engine/Encoder.h"
#include "tokenizer/Tokenizer.h"

#include <nlohmann/json.hpp>

namespace greta::llm {

int embed(const Options &options) {
  Model model = readModel(options.model, options.synthetic);
  if (!model.config.has(Bidirectional))
    fail(model.path +
         ": makes texts, not embeddings; embed runs bert, roberta, "
         "xlm-roberta and nomic_bert");
  std::vector<int64_t> given = options.tokens;
  if (given.empty())
    for (int32_t token :
         Tokenizer(model).encode(options.prompt, options.addsSpecial))
      given.push_back(token);
  std::vector<int32_t> tokens = checkedTokens(given, model.config, "the text");
  Encoder encoder(model, packageFor(model, options, {}),
                  EngineOptions::of(options));
  if (static_cast<int64_t>(tokens.size()) > encoder.longest())
    fail("the text has " + std::to_string(tokens.size()) +
         " tokens; the model takes " + std::to_string(encoder.longest()));
  std::vector<float> vector = encoder.embed({&tokens}).front();
  if (vector.empty())
    fail(encoder.notFinite());
  puts(nlohmann::json(vector).dump().c_str());
  return 0;
}

} // namespace greta::llm
