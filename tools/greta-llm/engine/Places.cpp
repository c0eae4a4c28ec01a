// Places.cpp: sequences that generate (Engine.h). A step is a graph, which is
// replayed as it is: layers, head, and the choice of the next tokens, which
// leaves on the device what the next step begins with. The host writes to a
// place only when a sequence comes or goes.
#include "engine/Engine.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace greta::llm {

struct Engine::Chosen::State {
  greta::Event event;
  greta::Buffer tokens;       // mapped; by line
  std::vector<int64_t> lines; // of places
  bool isRead = false;
  std::map<int64_t, greta::Buffer> logits; // mapped; by place
  std::vector<int64_t> withLogits;         // of these, those that are new
};

int32_t Engine::Chosen::operator[](int64_t place) {
  if (!std::exchange(state->isRead, true))
    state->event.synchronize();
  size_t line = static_cast<size_t>(state->lines[static_cast<size_t>(place)]);
  return static_cast<const int32_t *>(state->tokens.pointer())[line];
}

const float *Engine::Chosen::logits(int64_t place) {
  (void)(*this)[place];
  const std::vector<int64_t> &some = state->withLogits;
  return std::find(some.begin(), some.end(), place) == some.end()
             ? nullptr
             : static_cast<const float *>(state->logits.at(place).pointer());
}

/// The functions for the smallest number that is enough, or the largest.
const Engine::Step &Engine::stepFor(int64_t sequences) const {
  size_t i = 0;
  while (i + 2 < steps.size() && steps[i].size < sequences)
    ++i;
  return steps[i];
}

void Engine::makePlaces(int64_t sequences) {
  tell([&] { return Call{Call::MakePlaces, sequences}; });
  places = {};
  places.size = stepFor(sequences).size;
  int64_t size = places.size, batches = (sequences + size - 1) / size;
  places.lines = batches * pitch();
  places.left.assign(static_cast<size_t>(sequences), 0);
  places.tables.assign(static_cast<size_t>(sequences), {});
  for (std::vector<bool> *some :
       {&places.wantsLogits, &places.isMasked, &places.waits})
    some->assign(static_cast<size_t>(sequences), false);
  places.batches.resize(static_cast<size_t>(batches));
  places.input = allocateForOthers(inputsOfPlaces().bytes());
  places.rows =
      runtime.allocate(static_cast<size_t>(places.lines * SamplingWords) * 4);
  places.masks = runtime.allocate(
      static_cast<size_t>(places.lines * maskWords(vocabulary())) * 4);
  places.counts =
      runtime.allocate(static_cast<size_t>(places.lines * vocabulary()) * 4);
  // The numbers of all places, then each where a tensor may begin.
  std::vector<int32_t> numbers(static_cast<size_t>(places.lines * 5));
  for (int64_t line = 0; line < places.lines; ++line)
    numbers[static_cast<size_t>(line)] =
        numbers[static_cast<size_t>(places.lines + line * 4)] =
            static_cast<int32_t>(line);
  places.numbers = runtime.allocate(numbers.size() * 4);
  stream.write(places.numbers, numbers.data(), places.numbers.size());
  reads.clear();
  placesAreClear = false;
}

Engine::Inputs Engine::inputsOfPlaces() const {
  return {&places.input, places.lines, 0, places.lines, places.lines, pages};
}

/// Nobody generates: no slots, no keys, nothing to choose.
void Engine::clearPlaces() {
  Inputs inputs = inputsOfPlaces();
  stream.fill(places.input, inputs.bytes(), 0);
  stream.fill(places.input, static_cast<size_t>(places.lines) * 4, ~0u,
              inputs.offset(Slots));
  stream.fill(places.rows, places.rows.size(), 0);
  std::fill(places.left.begin(), places.left.end(), 0);
  for (std::vector<int32_t> &table : places.tables)
    table.clear();
  placesAreClear = true;
}

/// The choice from the first rows of the logits, for the places whose numbers
/// begin there.
void Engine::queueSample(int64_t rows, size_t numbers) {
  if (!stage.isLast)
    return;
  const greta::Function &function = sample.front();
  std::vector<greta::TensorInfo> infos = function.arguments();
  std::vector<greta::Tensor> tensors =
      bindAll(function, -1, inputsOfPlaces(), x[0], 0);
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].name == "logits")
      tensors[i].shape[0] = rows;
    if (infos[i].name == "places") {
      tensors[i].shape[0] = rows;
      tensors[i].offset = numbers;
    }
  }
  std::vector<greta::Tensor> results;
  for (const greta::TensorInfo &info : function.results())
    results.push_back(tensors[static_cast<size_t>(info.tied)]);
  function.launch(stream, tensors, results);
}

void Engine::queueStep(int64_t batch, const Step &step) {
  Inputs inputs = inputsOfPlaces();
  inputs.first = batch * pitch();
  inputs.tokens = inputs.sequences = step.size;
  queueLayers(step, inputs);
  queueHead(step, inputs, 0, inputs.tokens);
  queueSample(inputs.tokens, static_cast<size_t>(inputs.first) * 4);
}

/// A step of the first `count` places of a batch.
void Engine::runStep(int64_t batch, int64_t count) {
  const Step &step = stepFor(options.keepsSize ? places.size : count);
  computedRows += step.size;
  receiveResidual(step.size);
  if (!options.usesGraphs) {
    queueStep(batch, step);
  } else {
    greta::Graph &graph = places.batches[static_cast<size_t>(batch)][step.size];
    if (!graph.get())
      graph = stream.capture([&] { queueStep(batch, step); });
    stream.launch(graph);
  }
  sendResidual(step.size);
}

Engine::Chosen Engine::newRead() {
  size_t bytes = static_cast<size_t>(places.lines) * 4;
  // One that nobody waits for any more.
  auto it = std::find_if(reads.begin(), reads.end(), [](const auto &state) {
    return state.use_count() == 1;
  });
  if (it == reads.end())
    it = reads.insert(reads.end(),
                      std::make_shared<Chosen::State>(
                          Chosen::State{runtime.event(),
                                        runtime.allocateMapped(bytes),
                                        {},
                                        false,
                                        {},
                                        {}}));
  Chosen chosen;
  chosen.state = *it;
  Chosen::State &state = **it;
  state.isRead = false;
  state.withLogits.clear();
  state.lines.clear();
  for (size_t place = 0; place < places.left.size(); ++place)
    state.lines.push_back(lineOf(static_cast<int64_t>(place)));
  return chosen;
}

/// The logits that a place's token was chosen from, which are that row's until
/// the next ones are computed.
void Engine::queueLogits(Chosen &chosen, int64_t place, int64_t row) {
  size_t bytes = static_cast<size_t>(vocabulary()) * 4;
  auto [it, isNew] = chosen.state->logits.try_emplace(place);
  if (isNew)
    it->second = runtime.allocateMapped(bytes);
  greta::check(greta_buffer_copy(stream.get(), it->second.get(), 0,
                                 logitBuffer.get(),
                                 static_cast<size_t>(row) * bytes, bytes));
  chosen.state->withLogits.push_back(place);
}

void Engine::queueTokens(Chosen &chosen) {
  shareNextInput();
  stream.copy(chosen.state->tokens, places.input,
              static_cast<size_t>(places.lines) * 4);
  stream.record(chosen.state->event);
  stream.flush();
}

/// Writes what is not there already.
void Engine::writeTable(int64_t place, const Sequence &sequence) {
  std::vector<int32_t> &held = places.tables[static_cast<size_t>(place)];
  if (held == sequence.pages)
    return;
  held = sequence.pages;
  Inputs inputs = inputsOfPlaces();
  inputs.first = lineOf(place);
  stream.write(places.input, sequence.pages.data(), sequence.pages.size() * 4,
               inputs.offset(Tables));
}

bool Engine::extend(int64_t place, Sequence &sequence, int64_t tokens,
                    int64_t more) {
  int64_t size = static_cast<int64_t>(sequence.pages.size()) * pageSize;
  if (size >= sequence.length + tokens)
    return true;
  if (!reserve(sequence, more) && !reserve(sequence, tokens))
    return false;
  tell([&] {
    Call call{Call::WriteTable, place};
    call.sequence = sequence;
    return call;
  });
  writeTable(place, sequence);
  return true;
}

void Engine::warmUp() {
  // The kernels of each range of a prompt's tokens, once.
  for (int64_t length : promptRanges) {
    Sequence sequence;
    std::vector<int32_t> prompt(static_cast<size_t>(length) + 1);
    if (length < positions && reserve(sequence, length + 1))
      append(sequence, prompt.data(), prompt.size());
    release(sequence);
  }
  auto use = [&](int64_t place) {
    Sequence sequence;
    const std::vector<int32_t> prompt = {0};
    reserve(sequence, 4);
    append(sequence, prompt.data(), prompt.size());
    Chosen chosen = begin(place, sequence, prompt, Sampling(), 3);
    for (int i = 0; i < 2; ++i)
      chosen = step();
    (void)chosen[place];
    end(place);
    release(sequence);
  };
  int64_t count = static_cast<int64_t>(places.left.size());
  for (int64_t first = 0; first < count; first += places.size)
    for (const Step &one : steps)
      if (one.size && one.size <= places.size &&
          (one.size == places.size || !options.keepsSize))
        use(std::min(first + one.size, count) - 1);
  forgetPlaces();
}

void Engine::writeMask(int64_t place, const std::vector<uint32_t> &mask) {
  size_t words = static_cast<size_t>(maskWords(vocabulary()));
  stream.write(places.masks, mask.data(), words * 4,
               static_cast<size_t>(lineOf(place)) * words * 4);
}

void Engine::setMask(int64_t place, const std::vector<uint32_t> &mask) {
  tell([&] {
    Call call{Call::SetMask, place};
    call.mask = mask;
    return call;
  });
  writeMask(place, mask);
  auto index = static_cast<size_t>(place);
  if (places.left[index] && places.waits[index])
    writeLeft(place, places.left[index]);
  places.waits[index] = false;
}

void Engine::writeLeft(int64_t place, int64_t left) {
  stream.fill(places.rows, 4, static_cast<uint32_t>(left),
              static_cast<size_t>(lineOf(place) * SamplingWords + Left) * 4);
}

/// A guided place has nothing left to choose until its next mask is there: a
/// step computes its keys and values once more and leaves it as it is.
void Engine::awaitMask(int64_t place) {
  auto index = static_cast<size_t>(place);
  places.waits[index] = places.isMasked[index];
  if (places.isMasked[index] && places.left[index])
    writeLeft(place, 0);
}

/// Writes, and returns, how often a place's sequence has generated each token.
std::vector<int32_t>
Engine::writeCounts(int64_t place, std::vector<int32_t>::const_iterator first,
                    std::vector<int32_t>::const_iterator end) {
  std::vector<int32_t> counts(static_cast<size_t>(vocabulary()));
  std::for_each(first, end,
                [&](int32_t token) { ++counts[static_cast<size_t>(token)]; });
  stream.write(places.counts, counts.data(), counts.size() * 4,
               static_cast<size_t>(lineOf(place)) * counts.size() * 4);
  return counts;
}

Engine::Chosen Engine::begin(int64_t place, const Sequence &sequence,
                             const std::vector<int32_t> &prompt,
                             const Sampling &sampling, int64_t left,
                             int64_t said, size_t part) {
  tell([&] {
    Call call{Call::Begin, place, left, said};
    call.part = static_cast<int64_t>(part);
    call.sequence = sequence;
    call.tokens = prompt;
    call.sampling = sampling;
    return call;
  });
  if (!placesAreClear)
    clearPlaces();
  queueHead(steps.back(), inputsOf(1, 1, pages), ends.at(part) - 1, 1);
  int64_t line = lineOf(place);
  std::vector<int32_t> row = samplingRow(sampling, left, prompt, prompt.size());
  stream.write(places.rows, row.data(), row.size() * 4,
               static_cast<size_t>(line) * row.size() * 4);
  if (sampling.counts())
    (void)writeCounts(place, prompt.end() - said, prompt.end());
  writeTable(place, sequence);
  queueSample(1, static_cast<size_t>(places.lines + line * 4) * 4);
  places.left[static_cast<size_t>(place)] = left - 1;
  places.isMasked[static_cast<size_t>(place)] = sampling.isMasked;
  awaitMask(place);
  Chosen chosen = newRead();
  if (places.wantsLogits[static_cast<size_t>(place)])
    queueLogits(chosen, place, 0);
  queueTokens(chosen);
  return chosen;
}

/// The places whose next token a step chooses, in order.
std::vector<int64_t> Engine::choosing() const {
  std::vector<int64_t> some;
  for (size_t place = 0; place < places.left.size(); ++place)
    if (places.left[place] > 0 && !places.waits[place])
      some.push_back(static_cast<int64_t>(place));
  return some;
}

int64_t Engine::stepPlaces() const {
  std::vector<int64_t> some = choosing();
  return some.empty() ? 0 : some.back() + 1;
}

Engine::Chosen Engine::step(const std::vector<Part> &parts) {
  if (parts.empty())
    tell([] { return Call{Call::Step}; });
  else
    tellAppended(parts, /*isStep=*/true);
  int64_t rows = stepPlaces();
  // How many of a batch's places: up to the last one that takes part.
  std::vector<int64_t> counts(places.batches.size()), some = choosing();
  for (int64_t place : some) {
    --places.left[static_cast<size_t>(place)];
    counts[static_cast<size_t>(place / places.size)] = place % places.size + 1;
  }
  Chosen chosen = newRead();
  if (!isShared() && parts.empty())
    stream.hold(); // the step and the copy of its tokens start as one
  for (size_t batch = 0; batch < counts.size(); ++batch) {
    if (!parts.empty()) {
      appendPass(parts, rows);
      queueHead(steps.back(), inputsOf(rows, rows, 1), 0, rows);
      queueSample(rows, 0);
      computedRows += rows;
    } else if (counts[batch]) {
      runStep(static_cast<int64_t>(batch), counts[batch]);
    }
    for (int64_t place : some)
      if (place / places.size == static_cast<int64_t>(batch) &&
          places.wantsLogits[static_cast<size_t>(place)])
        queueLogits(chosen, place, place % places.size);
  }
  for (int64_t place : some)
    awaitMask(place);
  queueTokens(chosen);
  return chosen;
}

int64_t Engine::generate(const Sequence &sequence,
                         const std::vector<int32_t> &prompt,
                         const Sampling &sampling, int64_t most,
                         const std::function<bool(int32_t)> &take,
                         Drafts *drafts) {
  if (drafts)
    return generateWithDrafts(sequence, prompt, sampling, most, take, *drafts);
  // The device is a step ahead of the text.
  std::deque<Chosen> ahead;
  int64_t made = 0;
  for (int64_t queued = 0; made < most; ++made) {
    for (; queued < most && ahead.size() < 2; ++queued)
      ahead.push_back(queued ? step()
                             : begin(0, sequence, prompt, sampling, most));
    int32_t token = ahead.front()[0];
    ahead.pop_front();
    if (!take(token))
      break;
  }
  return made;
}

void Engine::end(int64_t place) {
  tell([&] { return Call{Call::End, place}; });
  // The device clears a place by itself behind the last token.
  if (std::exchange(places.left[static_cast<size_t>(place)], 0) == 0)
    return;
  clearInput(place);
}

/// A step leaves the place as it is.
void Engine::clearInput(int64_t place) {
  Inputs inputs = inputsOfPlaces();
  inputs.first = lineOf(place);
  writeLeft(place, 0);
  stream.fill(places.input, 4, ~0u, inputs.offset(Slots));
  stream.fill(places.input, 4, 0, inputs.offset(Lengths));
}

void Engine::move(int64_t from, int64_t to) {
  tell([&] {
    Call call{Call::Move, from};
    call.to = to;
    return call;
  });
  if (from == to)
    return;
  auto copy = [&](const greta::Buffer &buffer, size_t toOffset,
                  size_t fromOffset, size_t bytes) {
    greta::check(greta_buffer_copy(stream.get(), buffer.get(), toOffset,
                                   buffer.get(), fromOffset, bytes));
  };
  Inputs before = inputsOfPlaces(), after = before;
  before.first = lineOf(from);
  after.first = lineOf(to);
  for (int array : {Tokens, Positions, Slots, Lengths})
    copy(places.input, after.offset(array), before.offset(array), 4);
  auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
  if (size_t bytes = places.tables[f].size() * 4)
    copy(places.input, after.offset(Tables), before.offset(Tables), bytes);
  for (const greta::Buffer *lines :
       {&places.rows, &places.masks, &places.counts}) {
    size_t bytes = lines->size() / static_cast<size_t>(places.lines);
    copy(*lines, static_cast<size_t>(after.first) * bytes,
         static_cast<size_t>(before.first) * bytes, bytes);
  }
  clearInput(from);
  places.left[t] = std::exchange(places.left[f], 0);
  places.tables[t] = places.tables[f];
  for (std::vector<bool> *some :
       {&places.wantsLogits, &places.isMasked, &places.waits})
    (*some)[t] = (*some)[f];
}

int64_t Engine::rowsOf(int64_t count) const {
  int64_t rest = count % places.size;
  return count - rest + (rest ? stepFor(rest).size : 0);
}

const std::vector<float> &Engine::evaluateOne(Sequence &sequence,
                                              int32_t token) {
  tell([&] {
    Call call{Call::EvaluateOne};
    call.sequence = sequence;
    call.tokens = {token};
    return call;
  });
  clearPlaces();
  int64_t position = sequence.length++;
  Inputs inputs = inputsOfPlaces();
  auto put = [&](int array, int32_t value) {
    stream.write(places.input, &value, 4, inputs.offset(array));
  };
  put(Tokens, token);
  put(Positions, static_cast<int32_t>(position));
  put(Slots, slotOf(sequence, position));
  put(Lengths, static_cast<int32_t>(position + 1));
  stream.write(places.input, sequence.pages.data(), sequence.pages.size() * 4,
               inputs.offset(Tables));
  runStep(0, 1);
  logits.clear();
  readLogits(1);
  placesAreClear = false;
  return logits;
}

} // namespace greta::llm
