// Repeat.h: graphs of calls that a stream repeats. In: a stream's calls,
// and the points where somebody waits for it. Out: the calls queued as they
// come, or, once the calls between two such points were the same twice, one
// graph in their place.
//
//   wait  A B C  wait  A B C  wait  A B C
//         learnt       recorded     A and B held back, with C the graph starts
//
// Calls that begin a recorded sequence are held back until it is complete, and
// queued one by one when the next is another. A sequence that is only learnt
// keeps nothing alive; a recorded sequence keeps its memory, as any graph does.
#ifndef GRETA_RUNTIME_REPEAT_H
#define GRETA_RUNTIME_REPEAT_H

#include "Function.h"

#include <functional>
#include <list>

namespace greta::rt {

// A launch, a copy or a fill, with everything that tells it from others.
struct Step {
  enum Kind : uint64_t { Launch, Copy, Fill };
  std::vector<uint64_t> Words;                    // the kind, then its operands
  std::vector<std::weak_ptr<const void>> Objects; // objects that Words name

  void clear() {
    Words.clear();
    Objects.clear();
  }
  template <typename T> void object(const std::shared_ptr<T> &Object) {
    Words.push_back(reinterpret_cast<uintptr_t>(Object.get()));
    Objects.push_back(Object);
  }
  void tensors(const std::vector<TensorArg> &Tensors);
  bool isAlive() const;
};

// Reads the parts of a step, one after another.
class StepReader {
public:
  explicit StepReader(const Step &S) : S(S) {}
  uint64_t word() { return S.Words[Word++]; }
  template <typename T> std::shared_ptr<T> object() {
    ++Word;
    return std::static_pointer_cast<T>(
        std::const_pointer_cast<void>(S.Objects[Object++].lock()));
  }
  // `Memories` keeps the memory that the tensors point to.
  void tensors(std::vector<TensorArg> &Out, std::vector<MemoryRef> &Memories);

private:
  const Step &S;
  size_t Word = 0, Object = 0;
};

class Repeats {
public:
  // `Queue` queues a step on `S`, or records it while S captures.
  Repeats(Stream &S, std::function<void(const Step &)> Queue)
      : S(S), Queue(std::move(Queue)) {}

  // Returns whether it takes the step; otherwise the caller queues it now.
  bool takes(const Step &Next);
  // Ends the sequence: somebody waits, or makes a call that no graph has in it.
  void end();
  // Returns the number of calls that ran as parts of graphs.
  uint64_t replayed() const { return Replayed; }

private:
  struct Sequence {
    std::vector<Step> Steps;
    std::shared_ptr<Graph> Recorded; // null: seen once
    std::vector<std::shared_ptr<const void>> Keep;
  };
  // At most so many sequences of so many steps are remembered; the one that was
  // not met for longest is forgotten.
  static constexpr size_t mostSequences = 8, mostSteps = 1 << 14;

  bool matches(const Step &Next);
  void release();
  void record(Sequence &Of);

  Stream &S;
  std::function<void(const Step &)> Queue;
  std::list<Sequence> Known;     // the one met last comes first
  std::vector<Step> Now;         // queued since the last wait
  Sequence *Following = nullptr; // a recorded one, with `Held` calls held back
  size_t Held = 0;
  uint64_t Replayed = 0;
};

} // namespace greta::rt
#endif
