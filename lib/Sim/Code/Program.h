//===- Program.h - the decoded text of a code object ------------*- C++ -*-===//
#ifndef GRETA_SIM_PROGRAM_H
#define GRETA_SIM_PROGRAM_H

#include "Chip.h"
#include "Isa/Inst.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace greta::sim {

/// Holds one line of assembly, split. The strings point into the line.
struct ParsedInst {
  llvm::StringRef mnemonic;
  llvm::SmallVector<llvm::StringRef, 8> operands;
  /// Holds name:value and name(value) modifiers, and bare words with no value.
  llvm::SmallVector<std::pair<llvm::StringRef, llvm::StringRef>, 8> modifiers;

  const llvm::StringRef *modifier(llvm::StringRef name) const {
    for (auto &m : modifiers)
      if (m.first == name)
        return &m.second;
    return nullptr;
  }
};
ParsedInst parseAssembly(llvm::StringRef line);

/// Wraps LLVM's disassembler for one chip and wave size.
class Decoder {
public:
  static llvm::Expected<std::unique_ptr<Decoder>> create(const Chip &chip,
                                                         bool wave32);
  ~Decoder();
  /// Returns the bytes consumed, 0 when undecodable, and writes the assembly.
  unsigned decode(llvm::ArrayRef<uint8_t> bytes, uint64_t address,
                  std::string &line);

private:
  explicit Decoder(const Chip &chip);
  /// Decodes RDNA 2's comparisons with data-parallel primitives.
  unsigned decodeComparison(llvm::ArrayRef<uint8_t> bytes, uint64_t address,
                            std::string &line);
  struct State;
  const Chip &chip;
  std::unique_ptr<State> state;
};

/// Decodes and binds a code object's text per wave size, on first use.
class Program {
public:
  Program(const Chip &chip, llvm::ArrayRef<uint8_t> text, uint32_t base);
  ~Program();

  llvm::Error prepare(bool wave32);
  const Inst *code() const { return insts.data(); }
  uint32_t size() const { return uint32_t(insts.size()); }
  /// Returns the instruction's index at a byte offset of the image, or -1.
  int64_t indexOf(uint64_t offset) const {
    uint64_t k = (offset - base) / 4;
    return offset < base || offset % 4 || k >= index.size() ? -1 : index[k];
  }
  const Chip &chip() const { return target; }
  bool isWave32() const { return wave32; }
  /// Returns an instruction's assembly text, for reports and traces.
  std::string text(const Inst &i) const;
  /// Returns the part of an instruction that the simulator does not know.
  std::string problem(const Inst &i) const {
    return problems.lookup(i.address);
  }

private:
  friend class Binder;
  const Chip &target;
  llvm::ArrayRef<uint8_t> bytes;
  uint32_t base;
  bool ready = false, wave32 = false;
  std::vector<Inst> insts;
  std::deque<Inst>
      inner; ///< the instructions of wrappers; addresses are stable
  std::vector<int32_t> index;
  std::map<uint64_t, const uint32_t *> constants;
  std::deque<std::vector<uint32_t>> constantRows;
  llvm::DenseMap<uint32_t, std::string> problems; ///< by address
};

/// Binds one parsed instruction. If that fails, the result's handler reports it
/// when executed.
class Binder {
public:
  Binder(Program &p) : program(p) {}
  Inst bind(llvm::StringRef line, uint32_t address, unsigned bytes);

private:
  bool bindParsed(const ParsedInst &p, Inst &i);
  bool bindResults(const ParsedInst &p, llvm::StringRef types, unsigned &at,
                   Inst &i);
  bool bindSources(const ParsedInst &p, llvm::StringRef types, bool sdwa,
                   unsigned &at, unsigned &n, Inst &i);
  bool unknownOperand(llvm::StringRef text);
  bool operand(llvm::StringRef text, char type, Operand &o);
  bool registerOperand(llvm::StringRef text, Operand &o);
  void constant(Operand &o, uint64_t value);
  bool modifiers(const ParsedInst &p, Inst &i);
  bool vopd(llvm::StringRef line, Inst &i);
  Inst &keep(const Inst &i);
  void wrapDpp(Inst &i);
  void wrapIndexed(Inst &i);
  void wrapSdwa(Inst &i);
  Program &program;
  std::string problem;   ///< unsupported part of the current instruction
  bool indexing = false; ///< between s_set_gpr_idx_on and _off
};

/// Returns the row of a mnemonic without encoding suffix, or null.
const OpInfo *findOp(llvm::StringRef name);
/// Parses a decimal or 0x hexadecimal number with a sign.
bool parseInt(llvm::StringRef text, int64_t &value);
/// Returns every instruction that the simulator has, in no order.
std::vector<const OpInfo *> allOps();

} // namespace greta::sim

#endif
