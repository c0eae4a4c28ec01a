// Options.h: what greta-llm was asked for; one verb is one function, which
// returns the exit status.
#ifndef GRETA_LLM_OPTIONS_H
#define GRETA_LLM_OPTIONS_H

#include "engine/Sampling.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace greta::llm {

class Meeting;

struct Options {
  std::string model, synthetic, package, device, output, targets, type, prompt,
      text, file, kvCache, format = "table", host = "127.0.0.1", keyFile;
  std::string draftModel;           // a smaller one, which guesses
  std::string system;               // the first message of a chat
  std::string first, second;        // [package] model, as they were given
  std::vector<std::string> devices; // that compute the model together
  std::string split = "tensor";     // how they divide it
  std::string meet;                 // where processes that compute it meet
  std::shared_ptr<Meeting> meeting; // there; none without
  int64_t ranks = 0, rank = 0;      // how many they are, and which this is
  int64_t shards = 1;               // the same, for compile
  std::optional<int64_t> partRows;  // of sums over devices, see --help
  int64_t joined = 0;               // workgroups a compute unit, see --help
  std::vector<int64_t> batches = {1}, prompts = {512}, depths = {0}, tokens;
  int64_t count = 128, longest = 0, context = 0, chunk = 2048, repetitions = 5,
          window = 512, drafts = 0, port = 8080, parallel = 8, queue = 64,
          grace = 20;
  double peak = 0, bandwidth = 0, promptMilliseconds = 20;
  bool noGraphs = false, printsModule = false, addsSpecial = true,
       ignoresEnd = false, isQuiet = false, profiles = false, isChat = false,
       isDeterministic = false, hasSeed = false, hasParallel = false,
       noPrefixCache = false;
  Sampling sampling;
};

// The time of a clock that only goes forward.
double seconds();
// The seed that was given, else one that is drawn.
uint64_t seedOf(const Options &options);

int compile(const Options &options);
int run(const Options &options);
int generate(const Options &options);
int embed(const Options &options);
int logits(const Options &options);
int tokenize(const Options &options);
int bench(const Options &options);
int list(const Options &options);
int perplexity(const Options &options);
int serve(const Options &options);
// The hidden command that Chat.cpp starts to run a template.
int renderTemplate(const Options &options);

} // namespace greta::llm
#endif
