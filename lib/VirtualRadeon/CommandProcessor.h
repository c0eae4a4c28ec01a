//===- CommandProcessor.h - works through packets ---------------*- C++ -*-===//
//
// One ring's command processor: it reads PM4 packets from memory, keeps the
// registers that compute dispatches read, and executes. Graphics state goes by;
// drawing is an error.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_VIRTUALRADEON_COMMANDPROCESSOR_H
#define GRETA_VIRTUALRADEON_COMMANDPROCESSOR_H

#include "Radeon.h"
#include "llvm/Support/Error.h"
#include <array>

namespace greta::radeon {

/// The places of compute's registers among the persistent ones, in dwords.
constexpr unsigned ShBegin = 0xb000 / 4, ShEnd = 0xc000 / 4;

class CommandProcessor {
public:
  explicit CommandProcessor(Machine &machine) : machine(machine) {}

  /// The packets at an address, and those that they lead to.
  llvm::Error run(uint64_t address, uint32_t dwords);

private:
  using Words = llvm::ArrayRef<uint32_t>;
  struct Stream {
    uint64_t address;
    uint32_t dwords;
  };

  llvm::Error stream(Stream s, unsigned depth);
  llvm::Error packet(unsigned opcode, uint32_t header, Words body);
  llvm::Error setRegisters(unsigned opcode, uint32_t header, Words body);
  void setRegister(unsigned index, uint32_t value);
  llvm::Error loadRegisters(Words body);
  llvm::Error writeData(Words body);
  llvm::Error copyData(Words body);
  llvm::Error dmaData(Words body);
  llvm::Error releaseMemory(Words body);
  llvm::Error waitMemory(Words body);
  llvm::Error atomic(Words body);
  llvm::Error predicate(Words body);
  llvm::Error event(Words body);

  // Dispatch.cpp
  llvm::Error dispatch(const uint32_t size[3], uint32_t initiator);
  struct Piece {
    uint32_t first[3];
    sim::Dim3 grid, block;
  };
  llvm::Error launch(const Piece &piece, uint32_t initiator);
  llvm::Expected<const sim::Kernel *> kernel(bool wave32);
  uint32_t reg(unsigned address) const { return sh[address / 4 - ShBegin]; }

  /// Memory of the card, or an error that says for what.
  llvm::Expected<uint8_t *> memory(uint64_t address, uint64_t bytes,
                                   const char *what);
  llvm::Error copy(uint64_t to, uint64_t from, uint64_t bytes);

  Machine &machine;
  std::array<uint32_t, ShEnd - ShBegin> sh = {};
  uint64_t indirectBase = 0;
  bool predicated = false; ///< packets with the predicate bit are left out
  // The state of the stream that is read.
  uint32_t skip = 0;      ///< dwords that COND_EXEC leaves out
  Stream next = {0, 0};   ///< where INDIRECT_BUFFER goes on
  bool isChained = false; ///< and does not come back
  bool isCalled = false;
};

} // namespace greta::radeon

#endif
