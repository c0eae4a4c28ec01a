//===- Checks.h - what a checked launch watches -----------------*- C++ -*-===//
//
// One Checker per workgroup. The memory instructions report accesses to it; the
// instruction loop shows it every instruction before it runs. Reports name the
// kernel, the instruction, the lane and the address, and end the launch.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_CHECKS_H
#define GRETA_SIM_CHECKS_H

#include "Wave.h"
#include <memory>

namespace greta::sim {

enum class Access : uint8_t { Read, Write, Atomic };

class Checker {
public:
  Checker(Workgroup &group, unsigned checks);
  ~Checker();
  /// A new workgroup starts: forgets everything.
  void reset();
  /// Registers the kernel starts with.
  void defineVector(Wave &w, unsigned row);
  void defineScalar(Wave &w, unsigned first, unsigned count);

  /// Before an instruction: waits, hazards, uninitialised sources.
  void before(Wave &w, const Inst &i);
  /// After it: destinations become defined or undefined, loads pending.
  void after(Wave &w, const Inst &i);

  void lds(Wave &w, const Inst &i, unsigned lane, uint32_t address,
           unsigned bytes, Access access);
  void global(Wave &w, const Inst &i, unsigned lane, uint64_t address,
              unsigned bytes, Access access);
  void scalarAccess(Wave &w, const Inst &i, uint64_t address, unsigned bytes);
  /// Whether the words an LDS or scratch read gave lane l were defined.
  void loaded(Wave &w, unsigned row, unsigned lane, bool defined);

  void signal(Wave &w);
  void wait(Wave &w);
  void ended(Wave &w, const Inst &i);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace greta::sim

#endif
