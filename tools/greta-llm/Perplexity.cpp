// Perplexity.cpp: the verb `perplexity`. In: a text. Out: the exponential of
// the mean of -log p of its tokens, with its standard error, as llama.cpp
// counts it: the text is cut into windows, each begins as texts begin, and the
// tokens of its later half are predicted from all before them.
#include "Compile.h"
#include "Options.h"
#include "engine/Engine.h"
#include "tokenizer/Tokenizer.h"

#include <cmath>

namespace greta::llm {

/// -log of the probability that `logits` give a token.
static double surprise(const float *logits, size_t count, int32_t token) {
  double most = logits[0], sum = 0;
  for (size_t i = 1; i < count; ++i)
    most = std::max(most, static_cast<double>(logits[i]));
  for (size_t i = 0; i < count; ++i)
    sum += std::exp(static_cast<double>(logits[i]) - most);
  return std::log(sum) + most - static_cast<double>(logits[token]);
}

int perplexity(const Options &options) {
  Model model = readLanguageModel(options.model, options.synthetic);
  Tokenizer tokenizer(model);
  std::vector<int32_t> tokens =
      tokenizer.encode(readText(options.file), /*addsSpecial=*/true);
  std::vector<int32_t> first = tokenizer.encode("", /*addsSpecial=*/true);
  size_t window = static_cast<size_t>(options.window);
  if (tokens.size() < window)
    fail(options.file + ": has " + std::to_string(tokens.size()) +
         " tokens; a window has " + std::to_string(window) + " (--window)");
  EngineOptions engineOptions = EngineOptions::of(options);
  if (!engineOptions.context)
    engineOptions.context = options.window;
  if (engineOptions.context < options.window)
    fail("the context of " + std::to_string(engineOptions.context) +
         " tokens is less than a window (--window)");
  Engine engine(model, packageFor(model, options, {1}), engineOptions);
  return engine.lead([&] {
    size_t vocabulary = static_cast<size_t>(engine.vocabulary());
    double sum = 0, squares = 0, count = 0;
    for (size_t from = 0; from + window <= tokens.size(); from += window) {
      std::vector<int32_t> part(tokens.begin() + static_cast<long>(from),
                                tokens.begin() +
                                    static_cast<long>(from + window));
      if (!first.empty())
        part.front() = first.front();
      Sequence sequence;
      engine.reserve(sequence, options.window);
      const std::vector<float> &logits =
          engine.evaluate(sequence, part.data(), window - 1, window / 2);
      for (size_t i = window / 2, row = 0; i + 1 < window; ++i, ++row) {
        double value =
            surprise(logits.data() + row * vocabulary, vocabulary, part[i + 1]);
        sum += value;
        squares += value * value;
        ++count;
      }
      engine.release(sequence);
      if (!options.isQuiet)
        fprintf(stderr, "[%zu] %.4f\n", from / window + 1,
                std::exp(sum / count));
    }
    double mean = sum / count;
    double variance = std::max(0.0, squares / count - mean * mean);
    printf("perplexity %.4f +- %.4f (%.0f tokens)\n", std::exp(mean),
           std::exp(mean) * std::sqrt(variance / std::max(1.0, count - 1)),
           count);
    return 0;
  });
}

} // namespace greta::llm
