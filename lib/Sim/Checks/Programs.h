//===- Programs.h - what programs of a launch do to memory ------*- C++ -*-===//
//
// One for a launch with CheckPrograms, whose workgroups run one after another,
// or, if they are resident, in turns.
// In: every access to global memory. It reports
//
//   bounds   an access through an argument that leaves that argument's tensor,
//            wherever it lands. The code object says through which arguments an
// instruction reaches memory (Source.h); if it does not, an access stays in
// some tensor, or in memory of which none is
//            a part.
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

  /// A program begins, and runs.
  /// `othersGoOn`: the program before may be resumed.
  void begin(const uint32_t (&id)[3], uint32_t number, bool othersGoOn);
  /// One that began before runs on.
  void resume(uint32_t number);
  /// Both are false after a fault.
  bool inBounds(Wave &w, const Inst &i, int lane, uint64_t address,
                unsigned bytes, bool write);
  bool inOrder(Wave &w, const Inst &i, int lane, uint64_t address,
               unsigned bytes, Access kind);
  /// "element 5 of 'x'", or the address.
  std::string describe(uint64_t address) const;
  std::string place(const Inst &i) const;
  /// The memory that all programs that ran until now used.
  MemoryUse touched() const;

private:
  /// The number of each other program's intervals, which atomics end, that are
  /// ordered before this program.
  using Clock = llvm::DenseMap<uint32_t, uint32_t>;
  struct Event {
    uint32_t program = 0, interval = 0; ///< 0: there was none
    uint32_t instruction = 0;
  };
  /// The latest accesses to a word, or to a byte of a word that is used in
  /// parts.
  struct Word {
    Event write, read, otherRead; ///< the latest two readers
    bool changed = false;         ///< the write, what was there before
    bool atomic = false;
    bool stored = false; ///< some write was no atomic
    bool split = false;  ///< its bytes are on their own
  };
  struct Published {
    Clock clock;
    uint32_t knownTo = ~0u; ///< a program that knows all of it
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
  std::vector<unsigned> all; ///< arguments that are tensors
  std::unordered_map<uint64_t, std::array<Word, 64>> pages; ///< of 256 bytes
  std::unordered_map<uint64_t, std::array<Word, 4>> bytes;  ///< of split words
  std::unordered_map<uint64_t, Published> published;        ///< by address
  std::vector<std::array<uint32_t, 3>> ids;                 ///< by program
  uint32_t current = 0, interval = 1;
  Clock known;
  std::map<uint32_t, std::pair<uint32_t, Clock>> paused; ///< both, by program
};

} // namespace greta::sim

#endif
