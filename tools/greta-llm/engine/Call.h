// Call.h: what the first engine of several tells the others. In: a call that
// changes sequences or places. Out: the same as a value, and as bytes for
// another process.
#ifndef GRETA_LLM_CALL_H
#define GRETA_LLM_CALL_H

#include "engine/Pages.h"
#include "engine/Sampling.h"

#include <string>

namespace greta::llm {

// Parts of sequences that one pass takes at most.
constexpr size_t mostParts = 16;

// A sequence's part of a step that checks guesses: the last `count` of its
// tokens, of which all but the first are guesses. Pages are reserved for all.
struct Checked {
  Sequence sequence;
  std::vector<int32_t> tokens;
  size_t count = 1;
  Sampling sampling;
  // So many of the tokens before the guesses, the last ones, are generated.
  size_t said = 0;
  // Each of the `count` tokens has a mask of what may follow, if one has.
  std::vector<std::vector<uint32_t>> masks;
  bool wantsLogits = false;
};

// A call of Engine's function of that name, with those of its arguments that
// the kind has.
struct Call {
  enum Kind : uint8_t {
    MakePlaces,
    Append,
    EvaluateOne,
    WriteTable,
    SetMask,
    Move,
    Begin,
    Step,
    StepAndAppend,
    Check,
    End,
    ForgetPlaces,
    Nothing, // says that the caller is there
    Last
  };
  Kind kind = Nothing;
  int64_t place = 0; // of MakePlaces their number
  int64_t left = 0, said = 0;
  int64_t part = 0; // of Begin
  Sequence sequence = {};
  std::vector<int32_t> tokens = {};
  std::vector<uint32_t> mask = {};
  Sampling sampling = {};
  // Append has the sequences, each with the tokens that go behind its others.
  std::vector<Checked> checked = {};
  int64_t to = 0; // the place that Move ends at
};

// Both are of one build on one kind of machine. callOf fails where the bytes
// are no call.
std::string bytesOf(const Call &call);
Call callOf(const std::string &bytes);

// The parts of an engine that calls may name.
struct CallLimits {
  int64_t places = 0;     // that generate
  int64_t pages = 0;      // of the cache
  int64_t positions = 0;  // of a sequence's tokens
  int64_t vocabulary = 0; // tokens
  int64_t chunk = 0;      // tokens of a pass
  int64_t parts = 0;      // of the last pass
  int64_t rows = 0;       // of places that generate, in such a pass
  // No place generates, and the input of all was written.
  bool isAtRest = false;
};
// Fails where the call would have the engine use memory of nobody, whatever
// rank 0 says.
void checkCall(const Call &call, const CallLimits &limits);

} // namespace greta::llm
#endif
