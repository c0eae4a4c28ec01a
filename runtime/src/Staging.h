// Staging.h: the ring of host memory through which a stream's writes and reads
// pass.
//
// A stream numbers its batches of operations. Space in the ring belongs to the
// batch that uses it and is free again when that batch is done, so the ring
// only needs to know numbers, not drivers. A stream T has
//   uint64_t Next;       the number of the batch that is being filled
//   uint64_t Completed;  the last batch that was seen to be done
//   void waitFor(N);     returns when batch N is done; ends it if it is the one
//                        being filled
#ifndef GRETA_RUNTIME_STAGING_H
#define GRETA_RUNTIME_STAGING_H

#include <cstddef>
#include <cstdint>
#include <deque>

namespace greta::rt {

class StagingRing {
public:
  static constexpr size_t bytes = 16u << 20;
  // An operation moves at most so many bytes, so that transfers overlap with
  // the host's copies before and after them.
  static constexpr size_t chunkBytes = bytes / 4;

  // Returns the offset of `Size` bytes, at most a chunk, for the batch that
  // `Stream` is filling. Waits for the batch that used them before.
  template <typename T> size_t take(size_t Size, T &Stream) {
    Size = (Size + 15) / 16 * 16;
    while (!InUse.empty() && InUse.front().Batch <= Stream.Completed)
      InUse.pop_front();
    // An empty ring begins again, in bytes that caches still have.
    size_t Begin = !InUse.empty() && Head + Size <= bytes ? Head : 0;
    // Entries are in the order of their batches: waiting for one is waiting for
    // all before it.
    for (size_t I = InUse.size(); I-- > 0;) {
      if (InUse[I].End <= Begin || Begin + Size <= InUse[I].Begin)
        continue;
      Stream.waitFor(InUse[I].Batch);
      InUse.erase(InUse.begin(), InUse.begin() + I + 1);
      break;
    }
    if (!InUse.empty() && InUse.back().End == Begin &&
        InUse.back().Batch == Stream.Next)
      InUse.back().End += Size;
    else
      InUse.push_back({Begin, Begin + Size, Stream.Next});
    Head = Begin + Size;
    return Begin;
  }

private:
  struct Piece {
    size_t Begin, End;
    uint64_t Batch;
  };
  std::deque<Piece> InUse;
  size_t Head = 0; // offset of the next free byte
};
static_assert(StagingRing::chunkBytes % 16 == 0, "chunks keep alignment");

} // namespace greta::rt
#endif
