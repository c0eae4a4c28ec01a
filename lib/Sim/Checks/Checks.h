//===- Checks.h - what a checked launch watches -----------------*- C++ -*-===//
//
// One Checker per workgroup. The memory instructions report accesses to it; the
// instruction loop shows it every instruction before and after it runs. Reports
// name the kernel, the instruction, the lane and the address, and end the
// launch.
//
//   uninit  a register or LDS word that was never written reaches an address or
//           memory. Definedness is tracked by register and lane and propagates
//           through arithmetic and across lanes, so that copying garbage around
//           is no error.
//   races   two waves touch a word, one writes, and no barrier orders them
//           (vector clocks; a barrier joins the clocks of all waves). Lanes
//           that go on behind a barrier which their wave passed only because
//           other lanes were on.
//   waits   a register, or LDS that a direct-to-LDS load fills, is used before
//           the s_waitcnt that covers the load
//   hazards wait states the hardware does not insert (ChecksHazards.cpp)
//   programs what a launch's programs do to memory (Programs.h); registers that
//           hold what nobody wrote are undefined then, too
//   align   accesses that only the unaligned access mode allows
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_CHECKS_H
#define GRETA_SIM_CHECKS_H

#include "Wave.h"
#include <memory>

namespace greta::sim {

class ProgramChecker;

/// A Rewrite stores the value that is there already. It is no race: compilers
/// let all waves that hold a copy of a value store it.
enum class Access : uint8_t { Read, Write, Rewrite, Atomic, AtomicRead };

/// Accesses of less than a word are made of accesses of a whole word, so they
/// move the neighbouring bytes, too.
inline bool isAtomic(const Inst &i) {
  return i.has(Coherent) || (i.op->flags & Returns);
}

class Checker {
public:
  /// `programs` is not null with CheckPrograms.
  Checker(Workgroup &group, unsigned checks,
          ProgramChecker *programs = nullptr);
  ~Checker();
  /// Forgets everything, for a new workgroup.
  void reset();
  /// Marks registers that the kernel starts with as defined.
  void defineVector(Wave &w, unsigned row);
  void defineScalar(Wave &w, unsigned first, unsigned count);
  void undefineScalar(Wave &w, unsigned slot);

  void before(Wave &w, const Inst &i);
  void after(Wave &w, const Inst &i);

  void lds(Wave &w, const Inst &i, unsigned lane, uint32_t address,
           unsigned bytes, Access access);
  void global(Wave &w, const Inst &i, unsigned lane, uint64_t address,
              unsigned bytes, Access access);

  /// Returns whether an access outside of every allocation leaves an argument,
  /// and reports it as that.
  bool isBeyondArgument(Wave &w, const Inst &i, int lane, uint64_t address,
                        unsigned bytes, bool write);

  /// A wave arrives at a barrier; all have arrived; a wave goes on.
  void signal(Wave &w, const Inst &i);
  void completed();
  void wait(Wave &w);
  void ended(Wave &w);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace greta::sim

#endif
