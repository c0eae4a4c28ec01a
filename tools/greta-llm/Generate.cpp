// Generate.cpp: the verbs that run a model on one text. `generate` continues
// it, `logits` writes what the model says after each token, `tokenize` shows
// the tokens.
#include "Compile.h"
#include "Npy.h"
#include "Options.h"
#include "OutputFiles.h"
#include "Tokens.h"
#include "engine/DraftModel.h"
#include "server/Chat.h"
#include "tokenizer/Tokenizer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace greta::llm {
namespace {

void checkRoom(const std::vector<int32_t> &tokens, const Engine &engine) {
  if (static_cast<int64_t>(tokens.size()) > engine.freeTokens())
    fail("the prompt has " + std::to_string(tokens.size()) +
         " tokens; the context has room for " +
         std::to_string(engine.freeTokens()) + " (--context)");
}

} // namespace

int generate(const Options &options) {
  Model model = readLanguageModel(options.model, options.synthetic);
  Tokenizer tokenizer(model);
  Engine engine(model, packageFor(model, options, {options.drafts + 1}),
                EngineOptions::of(options));
  return engine.lead([&] {
    std::unique_ptr<Drafts> drafts = draftsFor(options, tokenizer, engine, 1);
    std::vector<int32_t> tokens =
        tokenizer.encode(options.prompt, options.addsSpecial);
    if (tokens.empty())
      fail("the prompt has no tokens");
    checkRoom(tokens, engine);
    int64_t prompt = static_cast<int64_t>(tokens.size());
    // The last token needs no place in the context.
    int64_t most = std::min(options.count, engine.freeTokens() - prompt + 1);
    Sequence sequence;
    engine.reserve(sequence, prompt + std::max<int64_t>(most - 1, 0));

    Sampling sampling = options.sampling;
    sampling.seed = seedOf(options);
    double begin = seconds(), prompted = begin;
    engine.append(sequence, tokens.data(), tokens.size());
    bool isFirst = true;
    auto take = [&](int32_t token) {
      if (std::exchange(isFirst, false))
        prompted = seconds();
      if (tokenizer.isEnd(token) && !options.ignoresEnd)
        return false;
      std::string bytes = tokenizer.bytesOf(token);
      fwrite(bytes.data(), 1, bytes.size(), stdout);
      fflush(stdout);
      return true;
    };
    int64_t made =
        engine.generate(sequence, tokens, sampling, most, take, drafts.get());
    double end = seconds();
    fputc('\n', stdout);
    fflush(stdout); // the statistics begin a line of their own
    if (!options.isQuiet)
      fprintf(stderr,
              "%s: prompt %lld tokens, %.1f tokens/s; generated %lld, %.1f "
              "tokens/s\n",
              engine.deviceName().c_str(), static_cast<long long>(prompt),
              static_cast<double>(prompt) / (prompted - begin),
              static_cast<long long>(made),
              static_cast<double>(made) / (end - prompted));
    auto [guessed, right] = engine.drafted();
    if (!options.isQuiet && options.drafts)
      fprintf(stderr, "drafts: %lld of %lld tokens were right\n",
              static_cast<long long>(right), static_cast<long long>(guessed));
    return 0;
  });
}

int logits(const Options &options) {
  Model model = readLanguageModel(options.model, options.synthetic);
  std::vector<int32_t> tokens =
      checkedTokens(options.tokens, model.config, "the prompt");
  Engine engine(model, packageFor(model, options, {1}),
                EngineOptions::of(options));
  return engine.lead([&] {
    checkRoom(tokens, engine);
    Sequence sequence;
    int64_t count = static_cast<int64_t>(tokens.size());
    engine.reserve(sequence, count);
    // Pieces of a size, one after another: how a text comes in must not matter.
    int64_t piece = options.batches.front() ? options.batches.front() : count;
    std::vector<float> all;
    for (int64_t first = 0; first < count; first += piece) {
      const int32_t *begin = tokens.data() + first;
      size_t size = static_cast<size_t>(std::min(piece, count - first));
      const std::vector<float> &rows =
          size > 1 ? engine.evaluate(sequence, begin, size, 0)
                   : engine.evaluateOne(sequence, *begin);
      all.insert(all.end(), rows.begin(), rows.end());
    }
    greta_run::HostTensor tensor{"f32", {count, engine.vocabulary()}, {}};
    tensor.Bytes.resize(all.size() * 4);
    memcpy(tensor.Bytes.data(), all.data(), tensor.Bytes.size());
    greta_run::OutputFiles out;
    out.add(options.output, greta_run::npyFile(tensor));
    out.commit();
    return 0;
  });
}

int tokenize(const Options &options) {
  // With --synthetic the text is the only word.
  bool isAlone = !options.synthetic.empty() && options.text.empty();
  const std::string &text = isAlone ? options.model : options.text;
  Model model = readVocabulary(isAlone ? "" : options.model, options.synthetic);
  Tokenizer tokenizer(model);
  nlohmann::json ids;
  if (options.isChat) {
    auto messages = nlohmann::json::parse(text, nullptr, false);
    if (!messages.is_array())
      fail("--chat takes a list of messages in JSON: "
           "[{\"role\": \"user\", \"content\": \"hi\"}]");
    ids = tokenizer.encode(ChatTemplate(model).prompt(messages), false);
  } else {
    ids = tokenizer.encode(text, options.addsSpecial);
  }
  puts(ids.dump().c_str());
  return 0;
}

} // namespace greta::llm
