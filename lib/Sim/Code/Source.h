//===- Source.h - what a code object says about its source ------*- C++ -*-===//
//
// In: a code object that was compiled with line tables. Out: the line of each
// instruction, and through which arguments of the kernel it reaches memory (the
// constant and the section of AccessNotes.h).
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_SOURCE_H
#define GRETA_SIM_SOURCE_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/DebugInfo/DWARF/DWARFContext.h"
#include "llvm/Object/ObjectFile.h"

namespace greta::sim {

/// Describes an access in the source and the arguments that it reaches.
struct SourceAccess {
  llvm::DILineInfo place;
  llvm::SmallVector<unsigned, 2> arguments;
  bool elsewhere = false; ///< e.g. a pointer loaded from memory
};

class Source {
public:
  /// Returns null if the code object has no line table. `accesses` is the text
  /// of greta.accesses.
  static std::unique_ptr<Source>
  read(std::unique_ptr<llvm::MemoryBuffer> bytes,
       std::unique_ptr<llvm::object::ObjectFile> object,
       llvm::StringRef accesses);

  /// Returns the source line of an instruction; Line 0: unknown.
  llvm::DILineInfo place(uint64_t address);
  /// Returns the line of the source, if it can be read, with a caret below.
  static std::string excerpt(const llvm::DILineInfo &at);
  /// Returns "k.py:12", or "" if the line is unknown.
  std::string shortPlace(uint64_t address);
  /// Returns null if the access is unknown.
  const SourceAccess *access(uint64_t address, bool write);

private:
  Source() = default;
  void readAccesses(llvm::StringRef text);
  void readAddresses(const llvm::object::SectionRef &section);
  void readRows();

  std::unique_ptr<llvm::MemoryBuffer> bytes;
  std::unique_ptr<llvm::object::ObjectFile> object;
  std::unique_ptr<llvm::DWARFContext> lines;
  std::vector<SourceAccess> accesses;
  llvm::DenseMap<uint64_t, const SourceAccess *> byAddress;
  /// Has by address what instructions do that their places do not.
  llvm::DenseMap<uint64_t, uint32_t> doesElse;
  llvm::DenseSet<uint64_t> beginsRow; ///< addresses of the line table's rows
};

} // namespace greta::sim

#endif
