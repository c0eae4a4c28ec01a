// Elf.h: a reader of 64-bit little-endian ELF files that trusts nothing.
// Opening one checks its header and segments; readTables checks that sections,
// symbols, notes, the dynamic table and the hash tables lie inside the file and
// point inside each other, for files that have nothing but what AMD code
// objects have.
#ifndef GRETA_RUNTIME_ELF_H
#define GRETA_RUNTIME_ELF_H

#include <cstring>
#include <elf.h>
#include <functional>
#include <string>
#include <vector>

namespace greta::rt {

class ElfFile {
public:
  // Throws Error(GRETA_ERROR_BAD_PACKAGE), whose message begins with `Name`.
  ElfFile(const std::vector<uint8_t> &Bytes, std::string Name);
  void readTables();

  struct Symbol {
    std::string Name;
    Elf64_Sym Entry;
  };
  Elf64_Ehdr Header;
  std::vector<Elf64_Phdr> Segments;
  std::vector<Symbol> Symbols; // of the dynamic table

  [[noreturn]] void bad(const std::string &What) const;
  void need(bool Holds, const char *What) const {
    if (!Holds)
      bad(What);
  }
  // Returns `Size` bytes at an address, from a segment with these flags.
  const uint8_t *loaded(uint64_t Address, uint64_t Size, uint32_t Flags,
                        const char *What) const;
  // Calls `F` with every note: its owner, type and description.
  using Visitor = std::function<void(const std::string &Owner, uint32_t Type,
                                     const uint8_t *Data, size_t Size)>;
  void notes(const Visitor &F) const;

private:
  // Copies a value from an offset, as nothing there is aligned.
  template <typename T> T at(uint64_t Offset, const char *What) const {
    T Value;
    memcpy(&Value, range(Offset, sizeof(T), What), sizeof(T));
    return Value;
  }
  const uint8_t *range(uint64_t Offset, uint64_t Size, const char *What) const;
  // Returns the string at an offset of a section of strings.
  std::string string(const Elf64_Shdr &Strings, uint64_t Offset) const;
  void readHeader();
  void readSegments();
  void readSections();
  void checkSection(const Elf64_Shdr &S);
  void checkSymbols(const Elf64_Shdr &S);
  void checkHash(const Elf64_Shdr &S) const;
  void checkGnuHash(const Elf64_Shdr &S) const;
  void checkDynamic() const;
  uint64_t symbolCount(const Elf64_Shdr &S) const {
    return Sections[S.sh_link].sh_size / sizeof(Elf64_Sym);
  }

  const std::vector<uint8_t> &Bytes;
  std::string Name;
  std::vector<Elf64_Shdr> Sections;
};

} // namespace greta::rt
#endif
