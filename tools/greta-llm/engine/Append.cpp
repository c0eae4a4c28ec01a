// Append.cpp: tokens behind those that sequences have (Engine.h). In: parts of
// sequences, whose pages are reserved. Out: passes over them, queued, and
// logits where they are wanted.
#include "engine/Engine.h"

#include <algorithm>

namespace greta::llm {

int32_t Engine::slotOf(const Sequence &sequence, int64_t position) {
  size_t page = static_cast<size_t>(position / pageSize);
  return static_cast<int32_t>(sequence.pages[page] * pageSize +
                              position % pageSize);
}

// The others append to copies: what they know of a sequence is its pages.
void Engine::tellAppended(const std::vector<Part> &parts, bool isStep) const {
  tell([&] {
    Call call{isStep ? Call::StepAndAppend : Call::Append};
    for (const Part &part : parts) {
      Checked one;
      one.sequence = *part.sequence;
      one.tokens.assign(part.tokens, part.tokens + part.count);
      call.checked.push_back(std::move(one));
    }
    return call;
  });
}

void Engine::append(const std::vector<Part> &parts) {
  tellAppended(parts);
  if (parts.size() > 1)
    return appendPass(parts);
  Part part = parts.front();
  auto chunk = static_cast<size_t>(options.chunk);
  for (size_t left = part.count; left; left -= part.count) {
    part.count = std::min(chunk, left);
    appendPass({part});
    part.tokens += part.count;
  }
}

// The first rows are those of so many places, whose input is on the device but
// for the tables.
void Engine::appendPass(const std::vector<Part> &parts, int64_t rows) {
  auto before = static_cast<size_t>(rows);
  size_t columns = 0, tokens = before;
  for (size_t place = 0; place < before; ++place)
    columns = std::max(columns, places.tables[place].size());
  for (const Part &part : parts) {
    columns = std::max(columns, part.sequence->pages.size());
    tokens += part.count;
  }
  auto count = static_cast<int64_t>(tokens);
  Inputs inputs = inputsOf(count, rows + static_cast<int64_t>(parts.size()),
                           static_cast<int64_t>(columns));
  inputWords.assign(inputs.bytes() / 4, 0);
  auto array = [&](int which) {
    return inputWords.data() + inputs.offset(which) / 4;
  };
  ends.clear();
  size_t row = 0;
  for (; row < before; ++row) {
    array(Begins)[row + 1] = static_cast<int32_t>(row + 1);
    std::copy(places.tables[row].begin(), places.tables[row].end(),
              array(Tables) + row * columns);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    size_t number = before + i;
    Sequence &sequence = *parts[i].sequence;
    std::copy_n(parts[i].tokens, parts[i].count, array(Tokens) + row);
    for (size_t end = row + parts[i].count; row < end; ++row) {
      int64_t position = sequence.length++;
      array(Positions)[row] = static_cast<int32_t>(position);
      array(Slots)[row] = slotOf(sequence, position);
    }
    array(Lengths)[number] = static_cast<int32_t>(sequence.length);
    array(Begins)[number + 1] = static_cast<int32_t>(row);
    std::copy(sequence.pages.begin(), sequence.pages.end(),
              array(Tables) + number * columns);
    ends.push_back(static_cast<int64_t>(row));
  }
  stream.write(inputBuffer, inputWords.data(), inputs.bytes());
  for (int which : {Tokens, Positions, Slots, Lengths})
    if (rows)
      greta::check(greta_buffer_copy(
          stream.get(), inputBuffer.get(), inputs.offset(which),
          places.input.get(), inputsOfPlaces().offset(which), before * 4));
  receiveResidual(count);
  queueLayers(steps.back(), inputs);
  sendResidual(count);
}

void Engine::readLogits(int64_t rows) {
  if (!stage.isLast)
    return;
  size_t before = logits.size(),
         more = static_cast<size_t>(rows * model.config.vocabulary);
  logits.resize(before + more);
  stream.read(logitBuffer, logits.data() + before, more * 4);
}

const std::vector<float> &Engine::evaluate(Sequence &sequence,
                                           const int32_t *tokens, size_t count,
                                           size_t first) {
  tellAppended({{&sequence, tokens, count}});
  logits.clear();
  for (size_t begin = 0; begin < count;) {
    size_t part = std::min(count - begin, static_cast<size_t>(options.chunk));
    appendPass({{&sequence, tokens + begin, part}});
    auto row = static_cast<int64_t>(std::max(first, begin) - begin);
    begin += part;
    for (int64_t rows; row < ends.back(); row += rows) {
      rows = std::min(ends.back() - row, logitRows);
      queueHead(steps.back(), inputsOf(rows, 1, pages), row, rows);
      readLogits(rows);
    }
  }
  return logits;
}

} // namespace greta::llm
