// Checks.cpp: steps that also check guesses of what follows (Engine.h). A place
// is a token there, not a sequence: the last one of a sequence, and the guesses
// behind it. Their lines have one page table and lengths that grow by one, and
// the keys of all are written before attention reads any, so each sees those
// before it. Each wants one token, so the device clears its line behind that.
#include "engine/Drafts.h"
#include "engine/Engine.h"

#include <algorithm>

namespace greta::llm {

/// Guesses have the places that sequences leave of the steps' largest size that
/// is of use.
int64_t Engine::wantedPlaces() const {
  if (!options.drafts)
    return options.sequences;
  int64_t size = stepFor(options.sequences * (options.drafts + 1)).size;
  return (options.sequences + size - 1) / size * size;
}

/// Writes masks, counts and the tables of pages of a sequence whose tokens'
/// places begin here.
void Engine::writeChecked(const Checked &one, int64_t place) {
  size_t first = one.tokens.size() - one.count;
  std::vector<int32_t> counts;
  for (size_t i = 0; i < one.count; ++i, ++place) {
    writeTable(place, one.sequence);
    if (one.sampling.isMasked)
      writeMask(place, one.masks[i]);
    if (!one.sampling.counts())
      continue;
    if (!i) {
      auto behind = one.tokens.begin() + static_cast<ptrdiff_t>(first) + 1;
      counts =
          writeCounts(place, behind - static_cast<ptrdiff_t>(one.said), behind);
      continue;
    }
    // The counts are the place before's, and those of one more guess.
    auto token = static_cast<size_t>(one.tokens[first + i]);
    size_t bytes = counts.size() * 4,
           at = static_cast<size_t>(lineOf(place)) * bytes,
           before = static_cast<size_t>(lineOf(place - 1)) * bytes;
    stream.copy(places.counts, places.counts, bytes, at, before);
    stream.fill(places.counts, 4, static_cast<uint32_t>(++counts[token]),
                at + token * 4);
  }
}

Engine::Chosen Engine::check(const std::vector<Checked> &sequences) {
  tell([&] {
    Call call{Call::Check};
    call.checked = sequences;
    return call;
  });
  int64_t count = 0;
  for (const Checked &one : sequences)
    count += static_cast<int64_t>(one.count);
  auto lines = static_cast<size_t>(lineOf(count - 1) + 1);
  std::vector<int32_t> arrays[4], rows(lines * SamplingWords);
  for (int array : {Tokens, Positions, Slots, Lengths})
    arrays[array].assign(lines, array == Slots ? -1 : 0);
  std::vector<int64_t> withLogits;
  int64_t place = 0;
  for (const Checked &one : sequences) {
    writeChecked(one, place);
    for (size_t i = one.tokens.size() - one.count; i < one.tokens.size();
         ++i, ++place) {
      auto line = static_cast<size_t>(lineOf(place));
      auto position = static_cast<int32_t>(i);
      arrays[Tokens][line] = one.tokens[i];
      arrays[Positions][line] = position;
      arrays[Slots][line] = slotOf(one.sequence, position);
      arrays[Lengths][line] = position + 1;
      std::vector<int32_t> row =
          samplingRow(one.sampling, 1, one.tokens, i + 1);
      std::copy(row.begin(), row.end(),
                rows.begin() + static_cast<ptrdiff_t>(line * SamplingWords));
      if (one.wantsLogits)
        withLogits.push_back(place);
    }
  }
  Inputs inputs = inputsOfPlaces();
  for (int array : {Tokens, Positions, Slots, Lengths})
    stream.write(places.input, arrays[array].data(), lines * 4,
                 inputs.offset(array));
  stream.write(places.rows, rows.data(), rows.size() * 4);
  Chosen chosen = newRead();
  if (!isShared())
    stream.hold(); // as in step()
  for (int64_t first = 0; first < count; first += places.size) {
    runStep(first / places.size, std::min(count - first, places.size));
    for (int64_t one : withLogits)
      if (one / places.size == first / places.size)
        queueLogits(chosen, one, one % places.size);
  }
  queueTokens(chosen);
  return chosen;
}

int64_t Engine::generateWithDrafts(const Sequence &sequence,
                                   const std::vector<int32_t> &prompt,
                                   const Sampling &sampling, int64_t most,
                                   const std::function<bool(int32_t)> &take,
                                   Drafts &drafts) {
  Checked checked = {sequence, prompt, 1, sampling, 0, {}, false};
  std::vector<int32_t> &tokens = checked.tokens;
  std::vector<int32_t> next = {begin(0, sequence, prompt, sampling, 1)[0]};
  for (int64_t made = 0;;) {
    for (int32_t token : next) {
      if (!take(token))
        return made;
      tokens.push_back(token);
      if (++made == most)
        return made;
    }
    int64_t room = std::min({options.drafts, most - made - 1, places.size - 1});
    std::vector<int32_t> draft =
        drafts.guess({{0, &tokens, static_cast<size_t>(room)}}, SIZE_MAX)
            .front();
    size_t size = tokens.size();
    tokens.insert(tokens.end(), draft.begin(), draft.end());
    checked.count = draft.size() + 1;
    checked.said = static_cast<size_t>(made);
    Chosen chosen = check({checked});
    tokens.resize(size);
    guessed += static_cast<int64_t>(draft.size());
    next = {chosen[0]};
    for (size_t i = 0; i < draft.size() && draft[i] == next.back();
         ++i, ++right)
      next.push_back(chosen[static_cast<int64_t>(i) + 1]);
  }
}

} // namespace greta::llm
