// DraftModel.cpp: see DraftModel.h.
#include "engine/DraftModel.h"
#include "Compile.h"
#include "model/Json.h"

#include <algorithm>

namespace greta::llm {

namespace {

/// Fails if the two models number tokens differently, because a guess is the
/// number of a token.
const Model &checkTokens(const Model &model, const Tokenizer &large) {
  Tokenizer own(model);
  auto quoted = [](const Tokenizer &tokenizer, int32_t token) {
    return nlohmann::json(tokenizer.bytesOf(token))
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  size_t count = std::min(own.size(), large.size());
  for (int32_t token = 0; token < static_cast<int32_t>(count); ++token)
    if (own.bytesOf(token) != large.bytesOf(token))
      fail(model.path + ": cannot guess for this model: its token " +
           std::to_string(token) + " is " + quoted(own, token) + ", not " +
           quoted(large, token));
  if (own.size() != large.size())
    fail(model.path + ": cannot guess for this model: it has " +
         (own.size() < count + 1 ? "no token " : "a token ") +
         std::to_string(count) + ", which the model has" +
         (own.size() < count + 1 ? "" : " not"));
  return model;
}

/// The draft model runs on one device, from a package of its own. Its cache is
/// not quantised, because every model can have that.
Options optionsOf(const Options &options, int64_t context) {
  Options own = options;
  own.model = options.draftModel;
  own.synthetic.clear();
  own.package.clear();
  own.kvCache.clear();
  if (!own.devices.empty())
    own.device = own.devices.front();
  own.devices.clear();
  own.meet.clear();
  own.meeting.reset();
  own.rank = 0;
  own.split = "tensor";
  own.drafts = 0;
  own.context = context;
  return own;
}

EngineOptions engineOptionsOf(const Options &options, int64_t slots) {
  EngineOptions own = EngineOptions::of(options);
  own.sequences = slots;
  return own;
}

} // namespace

std::unique_ptr<Drafts> draftsFor(const Options &options,
                                  const Tokenizer &tokenizer,
                                  const Engine &engine, int64_t slots) {
  if (!options.drafts)
    return nullptr;
  if (options.draftModel.empty())
    return std::make_unique<OwnPast>();
  return std::make_unique<DraftModel>(options, tokenizer, engine.vocabulary(),
                                      engine.capacity(), slots);
}

DraftModel::DraftModel(const Options &options, const Tokenizer &large,
                       int64_t vocabulary, int64_t context, int64_t slots)
    : model(readLanguageModel(options.draftModel, "")),
      largeVocabulary(vocabulary),
      engine(checkTokens(model, large),
             packageFor(model, optionsOf(options, context), batchesFor(slots)),
             engineOptionsOf(
                 optionsOf(options,
                           std::min(context, model.config.context * slots)),
                 slots)),
      texts(static_cast<size_t>(slots)) {
  engine.warmUp();
}

/// Keeps the keys of the tokens with which the text still begins. Returns how
/// many tokens have no keys; the last one never has.
size_t DraftModel::keep(const Asked &asked) {
  const std::vector<int32_t> &tokens = *asked.tokens;
  Text &text = texts[static_cast<size_t>(asked.slot)];
  size_t common = 0;
  while (common < text.tokens.size() && common + 1 < tokens.size() &&
         text.tokens[common] == tokens[common])
    ++common;
  text.tokens.resize(common);
  text.sequence.length = static_cast<int64_t>(common);
  return tokens.size() - common;
}

/// Returns how many guesses the model can make behind a text: none if the text
/// is too long, or has tokens that the model does not know.
size_t DraftModel::room(const Asked &asked) const {
  const std::vector<int32_t> &tokens = *asked.tokens;
  size_t begin = texts[static_cast<size_t>(asked.slot)].tokens.size();
  auto longest = static_cast<size_t>(model.config.context);
  if (tokens.size() >= longest ||
      !std::all_of(tokens.begin() + static_cast<ptrdiff_t>(begin), tokens.end(),
                   [&](int32_t one) { return one < engine.vocabulary(); }))
    return 0;
  return std::min(asked.most, longest - tokens.size());
}

/// Queues some of the tokens that have no keys and, when none is left, the
/// first guess. Returns how many guesses there will be.
size_t DraftModel::begin(const Asked &asked, size_t part,
                         Engine::Chosen &first) {
  const std::vector<int32_t> &tokens = *asked.tokens;
  Text &text = texts[static_cast<size_t>(asked.slot)];
  size_t begin = text.tokens.size(), most = room(asked);
  auto pages = static_cast<int64_t>(tokens.size() - begin + most);
  if (!most || !part || !engine.reserve(text.sequence, pages))
    return 0;
  auto from = tokens.begin() + static_cast<ptrdiff_t>(begin);
  engine.append(text.sequence, tokens.data() + begin, part);
  text.tokens.insert(text.tokens.end(), from,
                     from + static_cast<ptrdiff_t>(part));
  if (text.tokens.size() < tokens.size())
    return 0;
  Sampling likeliest;
  likeliest.temperature = 0;
  first = engine.begin(asked.slot, text.sequence, tokens, likeliest,
                       static_cast<int64_t>(most));
  return most;
}

std::vector<std::vector<int32_t>>
DraftModel::guess(const std::vector<Asked> &asked, size_t most) {
  std::vector<std::vector<int32_t>> guesses(asked.size());
  std::vector<Engine::Chosen> firsts(asked.size()), others;
  std::vector<size_t> missing, counts;
  for (const Asked &one : asked) {
    size_t misses = keep(one);
    missing.push_back(room(one) ? misses : 0);
  }
  std::vector<size_t> parts = partsOf(missing, most);
  for (size_t i = 0; i < asked.size(); ++i)
    counts.push_back(begin(asked[i], parts[i], firsts[i]));
  // Each step has the next guess for all that want one more.
  size_t longest = 1;
  for (size_t count : counts)
    longest = std::max(longest, count);
  while (others.size() + 1 < longest)
    others.push_back(engine.step());
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!counts[i])
      continue;
    int64_t slot = asked[i].slot;
    std::vector<int32_t> &guess = guesses[i];
    guess.push_back(firsts[i][slot]);
    for (size_t step = 0; guess.size() < counts[i]; ++step)
      guess.push_back(others[step][slot]);
    // A guess gets its keys in the step after it, so the last one has none.
    std::vector<int32_t> &held = texts[static_cast<size_t>(slot)].tokens;
    held.insert(held.end(), guess.begin(), guess.end() - 1);
    guess.erase(
        std::find_if(guess.begin(), guess.end(),
                     [&](int32_t one) { return one >= largeVocabulary; }),
        guess.end());
  }
  return guesses;
}

void DraftModel::end(int64_t slot) {
  Text &text = texts[static_cast<size_t>(slot)];
  engine.release(text.sequence);
  text.tokens.clear();
}

void DraftModel::forget() {
  for (size_t slot = 0; slot < texts.size(); ++slot)
    end(static_cast<int64_t>(slot));
  engine.forget();
}

} // namespace greta::llm
