// Hazards.h: where operations of a stream have to wait for earlier ones. In:
// the bytes that each operation touches. Out: whether a barrier stands before
// it, which is where it shares bytes with one since the last barrier and one of
// both writes them.
#ifndef GRETA_RUNTIME_HAZARDS_H
#define GRETA_RUNTIME_HAZARDS_H

#include "Backend.h"

namespace greta::rt {

// The bytes of memory that operations since the last barrier touched.
class Hazards {
public:
  // Returns whether an operation needs a barrier, and notes its uses.
  bool begin(Span<Use> Uses) {
    bool Clash = Unknown;
    for (const Use &U : Uses)
      Clash |= clashes(U);
    if (Clash) {
      for (size_t B : Filled)
        Buckets[B].clear();
      Filled.clear();
      Unknown = false;
    }
    for (const Use &U : Uses)
      add(U);
    return Clash;
  }
  // Notes that something unknown ran.
  void forget() { Unknown = true; }

private:
  struct Touched {
    const Memory *Of;
    uint64_t Begin, End;
    bool Writes;
  };
  // From this many parts on, a barrier costs less than looking through them.
  static constexpr size_t mostParts = 64;

  static size_t bucketOf(const Memory *M) {
    return reinterpret_cast<uintptr_t>(M) / 64 % 64;
  }
  bool clashes(const Use &U) const {
    const std::vector<Touched> &Bucket = Buckets[bucketOf(&**U.Of)];
    if (Bucket.size() >= mostParts)
      return true;
    for (const Touched &T : Bucket)
      if (T.Of == &**U.Of && (T.Writes || U.Writes) && T.Begin < U.End &&
          U.Begin < T.End)
        return true;
    return false;
  }
  void add(const Use &U) {
    size_t Index = bucketOf(&**U.Of);
    std::vector<Touched> &Bucket = Buckets[Index];
    for (const Touched &T : Bucket)
      if (T.Of == &**U.Of && T.Begin <= U.Begin && U.End <= T.End &&
          (T.Writes || !U.Writes))
        return; // nothing new
    if (Bucket.empty())
      Filled.push_back(Index);
    Bucket.push_back({&**U.Of, U.Begin, U.End, U.Writes});
  }

  std::array<std::vector<Touched>, 64> Buckets;
  std::vector<size_t> Filled; // buckets that are not empty
  bool Unknown = true;
};

} // namespace greta::rt
#endif
