// Lane.h: the copies of one direction through staging memory, in steps. In: a
// stream, to which the caller queues the copies of a step. Out: which steps are
// done; as many as there are slots may be under way.
#ifndef GRETA_RUNTIME_COMM_LANE_H
#define GRETA_RUNTIME_COMM_LANE_H

#include "Backend.h"

#include <array>

namespace greta::rt::comm {

struct Lane {
  static constexpr size_t slots = 4;
  Lane(Device &D, Stream &S) : S(S) {
    for (auto &E : Ends)
      E = D.createEvent();
  }
  // Call this when the copies of the next step are in the stream.
  void issued() {
    S.record(*Ends[Issued % slots]);
    S.flush();
    ++Issued;
  }
  // Returns whether one more step is done.
  bool poll() {
    if (Done == Issued || !Ends[Done % slots]->wait(0))
      return false;
    ++Done;
    return true;
  }
  Stream &S;
  std::array<std::shared_ptr<Event>, slots> Ends;
  uint64_t Issued = 0, Done = 0;
};

} // namespace greta::rt::comm
#endif
