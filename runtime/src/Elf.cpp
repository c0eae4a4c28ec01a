// Elf.cpp: see Elf.h.
#include "Elf.h"
#include "Error.h"

#include <algorithm>

namespace greta::rt {
namespace {
// Far more than lld writes for a kernel.
constexpr size_t maxSegments = 64, maxSections = 256, maxSymbols = 65536;
constexpr uint64_t maxLoaded = 1u << 30;
constexpr uint64_t page = 4096;

bool isPowerOfTwo(uint64_t V) { return V && !(V & (V - 1)); }
} // namespace

ElfFile::ElfFile(const std::vector<uint8_t> &Bytes, std::string Name)
    : Bytes(Bytes), Name(std::move(Name)) {
  readHeader();
  readSegments();
}

void ElfFile::readTables() {
  readSections();
  checkDynamic();
  notes([](const std::string &, uint32_t, const uint8_t *, size_t) {});
}

void ElfFile::bad(const std::string &What) const {
  fail(GRETA_ERROR_BAD_PACKAGE, Name, ": ", What);
}

const uint8_t *ElfFile::range(uint64_t Offset, uint64_t Size,
                              const char *What) const {
  if (Offset > Bytes.size() || Size > Bytes.size() - Offset)
    bad(concat(What, " of ", Size, " bytes at offset ", Offset,
               " leaves the file of ", Bytes.size()));
  return Bytes.data() + Offset;
}

std::string ElfFile::string(const Elf64_Shdr &Strings, uint64_t Offset) const {
  need(Offset < Strings.sh_size, "a name beyond its section of names");
  const char *Begin =
      reinterpret_cast<const char *>(Bytes.data()) + Strings.sh_offset + Offset;
  size_t Room = Strings.sh_size - Offset, Length = strnlen(Begin, Room);
  need(Length < Room, "a name without an end");
  return std::string(Begin, Length);
}

void ElfFile::readHeader() {
  need(Bytes.size() >= SELFMAG && !memcmp(Bytes.data(), ELFMAG, SELFMAG),
       "not an ELF file");
  Header = at<Elf64_Ehdr>(0, "the ELF header");
  need(Header.e_ident[EI_CLASS] == ELFCLASS64 &&
           Header.e_ident[EI_DATA] == ELFDATA2LSB &&
           Header.e_ident[EI_VERSION] == EV_CURRENT &&
           Header.e_version == EV_CURRENT,
       "not ELF of 64 bits, little-endian, version 1");
  need(Header.e_type == ET_DYN, "not a shared object");
  need(Header.e_ehsize == sizeof(Elf64_Ehdr) &&
           Header.e_phentsize == sizeof(Elf64_Phdr) &&
           Header.e_shentsize == sizeof(Elf64_Shdr),
       "headers of another size");
}

void ElfFile::readSegments() {
  need(Header.e_phnum > 0 && Header.e_phnum <= maxSegments,
       "no segments, or too many");
  uint64_t End = 0; // loaded bytes end here
  range(Header.e_phoff, Header.e_phnum * sizeof(Elf64_Phdr),
        "the program headers");
  for (unsigned I = 0; I < Header.e_phnum; ++I) {
    auto P = at<Elf64_Phdr>(Header.e_phoff + I * sizeof(Elf64_Phdr),
                            "a program header");
    range(P.p_offset, P.p_filesz, "a segment");
    need(P.p_vaddr <= maxLoaded && P.p_memsz <= maxLoaded - P.p_vaddr,
         "a segment's addresses are too large");
    if (P.p_type == PT_LOAD) {
      need(P.p_filesz <= P.p_memsz, "a segment smaller than its bytes");
      need(P.p_vaddr >= End, "segments that overlap or are out of order");
      need(isPowerOfTwo(P.p_align) && P.p_align >= page &&
               P.p_align <= maxLoaded &&
               P.p_vaddr % P.p_align == P.p_offset % P.p_align,
           "a segment that is not aligned");
      need((P.p_flags & (PF_W | PF_X)) != (PF_W | PF_X),
           "a segment to write and to execute");
      End = P.p_vaddr + P.p_memsz;
    }
    Segments.push_back(P);
  }
}

void ElfFile::readSections() {
  need(Header.e_shnum > 0 && Header.e_shnum <= maxSections,
       "no sections, or too many");
  range(Header.e_shoff, Header.e_shnum * sizeof(Elf64_Shdr),
        "the section headers");
  for (unsigned I = 0; I < Header.e_shnum; ++I) {
    auto S = at<Elf64_Shdr>(Header.e_shoff + I * sizeof(Elf64_Shdr),
                            "a section header");
    if (S.sh_type != SHT_NOBITS)
      range(S.sh_offset, S.sh_size, "a section");
    need(S.sh_link < Header.e_shnum,
         "a section linked to one that is not there");
    need(S.sh_addr <= maxLoaded && S.sh_size <= maxLoaded - S.sh_addr,
         "a section's addresses are too large");
    Sections.push_back(S);
  }
  need(Header.e_shstrndx < Header.e_shnum &&
           Sections[Header.e_shstrndx].sh_type == SHT_STRTAB,
       "no section of section names");
  for (const Elf64_Shdr &S : Sections) {
    string(Sections[Header.e_shstrndx], S.sh_name);
    checkSection(S);
  }
}

void ElfFile::checkSection(const Elf64_Shdr &S) {
  if ((S.sh_flags & SHF_ALLOC) && S.sh_type != SHT_NOBITS)
    need(loaded(S.sh_addr, S.sh_size, PF_R, "a section") ==
             Bytes.data() + S.sh_offset,
         "a section that is elsewhere in its segment");
  switch (S.sh_type) {
  case SHT_NULL:
  case SHT_PROGBITS:
  case SHT_STRTAB:
  case SHT_NOBITS:
    return;
  case SHT_NOTE:
  case SHT_DYNAMIC: {
    // Drivers find these by either header.
    uint32_t Segment = S.sh_type == SHT_NOTE ? PT_NOTE : PT_DYNAMIC;
    need(std::any_of(Segments.begin(), Segments.end(),
                     [&](const Elf64_Phdr &P) {
                       return P.p_type == Segment &&
                              P.p_offset == S.sh_offset &&
                              P.p_filesz == S.sh_size;
                     }),
         "notes or a dynamic table in a section that is no segment");
    return;
  }
  case SHT_DYNSYM:
  case SHT_SYMTAB:
    return checkSymbols(S);
  case SHT_HASH:
    return checkHash(S);
  case SHT_GNU_HASH:
    return checkGnuHash(S);
  default:
    bad(concat("a section of type ", S.sh_type,
               ", which GRETA's compiler does not write"));
  }
}

const uint8_t *ElfFile::loaded(uint64_t Address, uint64_t Size, uint32_t Flags,
                               const char *What) const {
  for (const Elf64_Phdr &P : Segments)
    if (P.p_type == PT_LOAD && (P.p_flags & Flags) == Flags &&
        Address >= P.p_vaddr && Address - P.p_vaddr <= P.p_filesz &&
        Size <= P.p_filesz - (Address - P.p_vaddr))
      return Bytes.data() + P.p_offset + (Address - P.p_vaddr);
  bad(concat(What, " of ", Size, " bytes at address ", Address,
             " is in no segment for it"));
}

void ElfFile::checkSymbols(const Elf64_Shdr &S) {
  const Elf64_Shdr &Strings = Sections[S.sh_link];
  need(S.sh_entsize == sizeof(Elf64_Sym) && Strings.sh_type == SHT_STRTAB &&
           S.sh_size % sizeof(Elf64_Sym) == 0 &&
           S.sh_size / sizeof(Elf64_Sym) <= maxSymbols,
       "a symbol table of a strange size, or without names");
  bool Dynamic = S.sh_type == SHT_DYNSYM;
  need(!Dynamic || Symbols.empty(), "a second dynamic symbol table");
  for (uint64_t I = 0; I < S.sh_size / sizeof(Elf64_Sym); ++I) {
    auto E = at<Elf64_Sym>(S.sh_offset + I * sizeof(Elf64_Sym), "a symbol");
    Symbol Entry = {string(Strings, E.st_name), E};
    if (E.st_shndx == SHN_UNDEF) {
      need(I == 0 && Entry.Name.empty(), "a symbol that is not defined");
    } else if (E.st_shndx < SHN_LORESERVE) {
      need(E.st_shndx < Sections.size(), "a symbol of no section");
      const Elf64_Shdr &In = Sections[E.st_shndx];
      need(E.st_value >= In.sh_addr && E.st_value - In.sh_addr <= In.sh_size &&
               E.st_size <= In.sh_size - (E.st_value - In.sh_addr),
           "a symbol beyond its section");
    } else {
      need(E.st_shndx == SHN_ABS, "a symbol of a special section");
    }
    if (Dynamic)
      Symbols.push_back(std::move(Entry));
  }
}

// Each symbol is in one chain, and every chain ends.
void ElfFile::checkHash(const Elf64_Shdr &S) const {
  need(Sections[S.sh_link].sh_type == SHT_DYNSYM && S.sh_size >= 8,
       "a hash table of no symbols");
  auto Word = [&](uint64_t I) {
    return at<uint32_t>(S.sh_offset + 4 * I, "a hash table");
  };
  uint64_t Buckets = Word(0), Chains = Word(1);
  need(S.sh_size == 4 * (2 + Buckets + Chains) && Chains == symbolCount(S),
       "a hash table of a strange size");
  uint64_t Seen = 0;
  for (uint64_t B = 0; B < Buckets; ++B)
    for (uint64_t I = Word(2 + B); I != 0; I = Word(2 + Buckets + I))
      need(I < Chains && ++Seen < Chains, "a hash table with a bad chain");
}

void ElfFile::checkGnuHash(const Elf64_Shdr &S) const {
  need(Sections[S.sh_link].sh_type == SHT_DYNSYM && S.sh_size >= 16,
       "a hash table of no symbols");
  auto Word = [&](uint64_t I) {
    return at<uint32_t>(S.sh_offset + 4 * I, "a hash table");
  };
  uint64_t Buckets = Word(0), First = Word(1), Bloom = Word(2),
           Count = symbolCount(S);
  need(isPowerOfTwo(Bloom) && Word(3) < 64 && First > 0 && First <= Count &&
           S.sh_size == 16 + 8 * Bloom + 4 * (Buckets + Count - First),
       "a hash table of a strange size");
  for (uint64_t B = 0; B < Buckets; ++B) {
    uint64_t I = Word(4 + 2 * Bloom + B);
    need(I == 0 || (I >= First && I < Count), "a hash table with a bad bucket");
  }
  // The last hash of a chain has its lowest bit set.
  need(First == Count ||
           (Word(4 + 2 * Bloom + Buckets + Count - First - 1) & 1),
       "a hash table whose last chain does not end");
}

void ElfFile::checkDynamic() const {
  const Elf64_Shdr *Table = nullptr;
  for (const Elf64_Shdr &S : Sections)
    if (S.sh_type == SHT_DYNSYM)
      Table = &S;
  need(Table, "no dynamic symbols");
  for (const Elf64_Phdr &P : Segments) {
    if (P.p_type != PT_DYNAMIC)
      continue;
    bool Ends = false;
    for (uint64_t I = 0; !Ends && I < P.p_filesz / sizeof(Elf64_Dyn); ++I) {
      auto D = at<Elf64_Dyn>(P.p_offset + I * sizeof(Elf64_Dyn),
                             "the dynamic table");
      auto Is = [&](uint64_t Want) {
        need(D.d_un.d_val == Want,
             "a dynamic table that does not fit its sections");
      };
      switch (D.d_tag) {
      case DT_NULL:
        Ends = true;
        break;
      case DT_SYMTAB:
        Is(Table->sh_addr);
        break;
      case DT_SYMENT:
        Is(sizeof(Elf64_Sym));
        break;
      case DT_STRTAB:
        Is(Sections[Table->sh_link].sh_addr);
        break;
      case DT_STRSZ:
        Is(Sections[Table->sh_link].sh_size);
        break;
      case DT_HASH:
      case DT_GNU_HASH: {
        uint32_t Type = D.d_tag == DT_HASH ? SHT_HASH : SHT_GNU_HASH;
        need(std::any_of(Sections.begin(), Sections.end(),
                         [&](const Elf64_Shdr &S) {
                           return S.sh_type == Type &&
                                  S.sh_addr == D.d_un.d_ptr;
                         }),
             "a hash table that is no section");
        break;
      }
      default: // the others load files or relocate addresses
        bad(concat("entry ", D.d_tag,
                   " of the dynamic table is none that "
                   "GRETA's compiler writes"));
      }
    }
    need(Ends, "a dynamic table without an end");
  }
}

void ElfFile::notes(const Visitor &F) const {
  auto Padded = [](uint64_t N) { return (N + 3) / 4 * 4; };
  for (const Elf64_Phdr &P : Segments) {
    if (P.p_type != PT_NOTE)
      continue;
    for (uint64_t Offset = 0; Offset < P.p_filesz;) {
      uint64_t Left = P.p_filesz - Offset;
      need(Left >= sizeof(Elf64_Nhdr), "a note that is cut short");
      auto N = at<Elf64_Nhdr>(P.p_offset + Offset, "a note");
      uint64_t Names = Padded(N.n_namesz), Data = Padded(N.n_descsz);
      need(Names + Data <= Left - sizeof(Elf64_Nhdr),
           "a note that is longer than its segment");
      const uint8_t *At =
          Bytes.data() + P.p_offset + Offset + sizeof(Elf64_Nhdr);
      const char *Owner = reinterpret_cast<const char *>(At);
      F(std::string(Owner, strnlen(Owner, N.n_namesz)), N.n_type, At + Names,
        N.n_descsz);
      Offset += sizeof(Elf64_Nhdr) + Names + Data;
    }
  }
}

} // namespace greta::rt
