//===- StreamOrder.h - races between operations of streams ------*- C++ -*-===//
//
// In: what copies, fills and checked launches did to memory, in the order in
// which they were submitted, and what events, waits and the host order. Out:
// for each operation an earlier one that uses some of its bytes, too, if one of
// the two writes them and nothing orders the two.
//
// Operations have numbers. A Clock has for each stream the latest operation
// that is done before something else. An operation that any thread of the host
// has seen done is done before all that is submitted later, because threads
// tell each other by locks that nobody sees here.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_HIP_STREAMORDER_H
#define GRETA_SIM_HIP_STREAMORDER_H

#include "greta/Sim/Simulator.h"
#include <deque>

namespace greta::sim::hip {

class StreamOrder {
public:
  using Clock = std::map<uint64_t, uint64_t>; ///< operations by stream
  struct Stream {
    uint64_t id;
    Clock done; ///< before an operation that is submitted now
  };
  struct Operation {
    std::string name; ///< "a copy", "'scale'"
    MemoryUse use;
    std::vector<ArgumentExtent> arguments = {};
    uint64_t stream = 0, number = 0;
  };

  Stream makeStream() { return {++streams, {}}; }
  /// Submits an operation that has run; returns the text of its race, or "".
  std::string add(Stream &stream, Operation op, const Device &device);
  void join(Clock &to, const Clock &from) const;
  /// Notes that the host has seen these operations done.
  void finish(const Clock &done);
  void finishAll() { pending.clear(); }
  /// Returns whether the host has seen all of it done.
  bool isFinished(const Clock &done) const;
  /// Forgets freed memory, whose addresses another allocation may get.
  void forget(uint64_t base, uint64_t bytes);

private:
  uint64_t streams = 0, operations = 0;
  std::deque<Operation> pending; ///< by number; the host has not seen them done
};

} // namespace greta::sim::hip

#endif
