//===- Programs.h - what programs of a launch do to memory ------*- C++ -*-===//
//
// A launch with CheckPrograms has one checker. Its workgroups run one after
// another, or take turns if they are resident. The checker sees every access to
// global memory. It reports
//
//   bounds   an access through an argument that leaves that argument's tensor,
//            wherever it lands. The code object says through which arguments
//            an instruction reaches memory (Source.h); if it does not, an
//            access has to stay in one tensor, or in memory outside of all.
//   races    a program changes a word that another one wrote or read, or reads
//            what another one changed, and no atomic orders the two. An atomic
//            publishes what its program did so far, and lets a program that
//            takes its result know what was published there. Programs that
//            write the same value do not race, nor do atomics with reads.
//
// Region::defined says which bytes were never written; Checks.cpp follows them.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_PROGRAMS_H
#define GRETA_SIM_PROGRAMS_H

#include "Checks/Checks.h"
#include "Code/Source.h"
#include "greta/Sim/Simulator.h"
#include "llvm/ADT/DenseMap.h"
#include <array>
#include <map>
#include <unordered_map>

namespace greta::sim {

class ProgramChecker {
public:
  ProgramChecker(const MemoryMap &memory, Source *source,
                 llvm::ArrayRef<ArgumentExtent> arguments);

  /// Begins a program, which runs from here on. `othersGoOn`: the one before it
  /// may be resumed.
  void begin(const uint32_t (&id)[3], uint32_t number, bool othersGoOn);
  /// Resumes a program that began before.
  void resume(uint32_t number);
  /// Whether a buffer access reaches the wave's scratch memory, as gfx90a's do
  /// for registers that are spilled. Programs use the same one after another,
  /// and the instruction may have the line of the one behind it.
  static bool isScratch(const Wave &w, const Inst &i, uint64_t address);
  /// Both return false after a fault.
  bool inBounds(Wave &w, const Inst &i, int lane, uint64_t address,
                unsigned bytes, bool write);
  bool inOrder(Wave &w, const Inst &i, int lane, uint64_t address,
               unsigned bytes, Access kind);
  /// Returns "element 5 of 'x'", or the address.
  std::string describe(uint64_t address) const;
  std::string place(const Inst &i) const;
  /// Returns the memory that all programs have used until now.
  MemoryUse touched() const;

private:
  /// The latest interval of each other program that is ordered before this one.
  /// Atomics end intervals.
  using Clock = llvm::DenseMap<uint32_t, uint32_t>;
  struct Event {
    uint32_t program = 0, interval = 0; ///< 0: there was none
    uint32_t instruction = 0;
  };
  /// Keeps the latest accesses to a word, or to a byte of a split word.
  struct Word {
    Event write, read, otherRead; ///< there are up to two readers
    bool changed = false;         ///< the write changed the value
    bool atomic = false;
    bool stored = false; ///< a plain store wrote it
    bool split = false;  ///< bytes are tracked one by one
  };
  struct Published {
    Clock clock;
    uint32_t knownTo = ~0u; ///< a program that is ordered behind all of it
  };

  bool touch(Wave &w, const Inst &i, int lane, uint64_t address, Word &word,
             Access kind);
  bool isOrdered(const Event &event) const;
  void synchronize(const Inst &i, uint64_t address, Access kind);
  const ArgumentExtent *nearest(llvm::ArrayRef<unsigned> among,
                                uint64_t address) const;
  std::string nameOf(uint32_t program) const;

  const MemoryMap &memory;
  Source *source;
  llvm::ArrayRef<ArgumentExtent> arguments;
  std::vector<unsigned> all; ///< indices of tensor arguments
  std::unordered_map<uint64_t, std::array<Word, 64>> pages; ///< of 256 bytes
  std::unordered_map<uint64_t, std::array<Word, 4>> bytes;  ///< of split words
  std::unordered_map<uint64_t, Published> published;        ///< by address
  std::vector<std::array<uint32_t, 3>> ids;                 ///< by program
  uint32_t current = 0, interval = 1;
  Clock known;
  std::map<uint32_t, std::pair<uint32_t, Clock>>
      paused; ///< interval and clock by program
};

} // namespace greta::sim

#endif
