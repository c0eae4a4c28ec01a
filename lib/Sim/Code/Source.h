//===- Source.h - what a code object says about its source ------*- C++ -*-===//
//
// In: a code object that was compiled with line tables. Out: the line of each
// instruction, and through which arguments of the kernel it reaches memory (the
// constant greta.accesses and the section greta_access_pcs, which
// lib/AMDGPU/Hsaco.cpp makes).
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_SOURCE_H
#define GRETA_SIM_SOURCE_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/DebugInfo/DWARF/DWARFContext.h"
#include "llvm/Object/ObjectFile.h"

namespace greta::sim {

/// An access in the source, and the arguments that it reaches memory through.
struct SourceAccess {
  llvm::DILineInfo place;
  llvm::SmallVector<unsigned, 2> arguments;
  bool elsewhere = false; ///< a pointer that comes from memory, for example
};

class Source {
public:
  /// Null where the code object has no line table; `accesses` is the text of
  /// greta.accesses.
  static std::unique_ptr<Source>
  read(std::unique_ptr<llvm::MemoryBuffer> bytes,
       std::unique_ptr<llvm::object::ObjectFile> object,
       llvm::StringRef accesses);

  /// The source line of an instruction; Line 0: unknown.
  llvm::DILineInfo place(uint64_t address);
  /// The line of the source, if it can be read, with a caret below.
  static std::string excerpt(const llvm::DILineInfo &at);
  /// "k.py:12"; empty when nobody knows.
  std::string shortPlace(uint64_t address);
  /// Null when nobody knows.
  const SourceAccess *access(uint64_t address);

private:
  Source() = default;
  void readAccesses(llvm::StringRef text);
  void readAddresses(const llvm::object::SectionRef &section);

  std::unique_ptr<llvm::MemoryBuffer> bytes;
  std::unique_ptr<llvm::object::ObjectFile> object;
  std::unique_ptr<llvm::DWARFContext> lines;
  std::vector<SourceAccess> accesses;
  llvm::DenseMap<uint64_t, const SourceAccess *> byAddress;
};

} // namespace greta::sim

#endif
