// CodeObjectTest.cpp: which AMD code objects reach a driver. The fixture
// passes; each row changes it, or the manifest, and is refused with what is
// wrong.
#include "hip/CodeObject.h"
#include "Error.h"
#include "TestPackage.h"

#include <cstring>
#include <elf.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace greta::rt;
using namespace greta_test;

namespace {

KernelDecl scale() {
  KernelDecl K;
  K.File = "objects/scale.gfx942.hsaco";
  K.Entry = "scale";
  K.Block = {64, 1, 1};
  K.Args.resize(3);
  K.Args[2].Which = KernelArg::I32;
  return K;
}

std::string complaint(const Bytes &Data, const KernelDecl &K = scale(),
                      const char *Arch = "gfx942") {
  try {
    hip::checkCodeObject(Data, K, Arch);
    return "";
  } catch (const Error &E) {
    EXPECT_EQ(E.code(), GRETA_ERROR_BAD_PACKAGE) << E.what();
    EXPECT_EQ(std::string(E.what()).find('\n'), std::string::npos);
    return E.what();
  }
}

void expectSays(const std::string &Got, const std::string &Says) {
  EXPECT_NE(Got.find(Says), std::string::npos)
      << "wanted '" << Says << "', got '" << Got << "'";
}

class CodeObject : public testing::Test {
protected:
  void SetUp() override {
    if (!std::filesystem::exists(GRETA_TEST_FIXTURES "/scale.gfx942.hsaco"))
      GTEST_SKIP() << "this build's compiler has no AMDGPU target";
    Good = fixture("scale.gfx942.hsaco");
  }
  // The offset of a text in the file's metadata, or of a symbol's name.
  size_t find(const std::string &Text) {
    auto At = std::search(Good.begin(), Good.end(), Text.begin(), Text.end());
    EXPECT_NE(At, Good.end()) << Text;
    return size_t(At - Good.begin());
  }
  Elf64_Ehdr header() {
    Elf64_Ehdr H;
    memcpy(&H, Good.data(), sizeof(H));
    return H;
  }
  template <typename T> Bytes with(size_t At, T Value) {
    Bytes Bad = Good;
    memcpy(&Bad[At], &Value, sizeof(T));
    return Bad;
  }
  // The file offset of the first program or section header of a type.
  size_t segment(uint32_t Type) {
    for (unsigned I = 0; I < header().e_phnum; ++I) {
      size_t At = header().e_phoff + I * sizeof(Elf64_Phdr);
      if (!memcmp(&Good[At], &Type, 4))
        return At;
    }
    ADD_FAILURE() << "no segment " << Type;
    return 0;
  }
  size_t section(uint32_t Type) {
    for (unsigned I = 0; I < header().e_shnum; ++I) {
      size_t At = header().e_shoff + I * sizeof(Elf64_Shdr);
      if (!memcmp(&Good[At + 4], &Type, 4))
        return At;
    }
    ADD_FAILURE() << "no section " << Type;
    return 0;
  }
  uint64_t read(size_t At) {
    uint64_t V;
    memcpy(&V, &Good[At], 8);
    return V;
  }
  // The contents of a section begin here.
  size_t contents(uint32_t Type) {
    return read(section(Type) + offsetof(Elf64_Shdr, sh_offset));
  }
  Bytes Good;
};

TEST_F(CodeObject, TakesTheFixture) { EXPECT_EQ(complaint(Good), ""); }

TEST_F(CodeObject, RefusesEveryTruncation) {
  for (size_t N = 0; N < Good.size(); N += N < 200 ? 1 : 37)
    EXPECT_NE(complaint(Bytes(Good.begin(), Good.begin() + long(N))), "") << N;
}

TEST_F(CodeObject, RefusesDamagedHeaders) {
  uint64_t Huge = UINT64_MAX - 8;
#define HEADER(Member) offsetof(Elf64_Ehdr, Member)
#define SEGMENT(Type, Member) segment(Type) + offsetof(Elf64_Phdr, Member)
#define SECTION(Type, Member) section(Type) + offsetof(Elf64_Shdr, Member)
  expectSays(complaint(with<uint8_t>(EI_CLASS, ELFCLASS32)), "not ELF of 64");
  expectSays(complaint(with<uint8_t>(EI_OSABI, 0)), "not an AMD code object");
  expectSays(complaint(with<uint16_t>(HEADER(e_machine), EM_X86_64)),
             "not an AMD code object");
  expectSays(complaint(with<uint16_t>(HEADER(e_type), ET_EXEC)),
             "not a shared object");
  expectSays(complaint(with<uint32_t>(HEADER(e_flags), 0x41)),
             "for machine 65");
  expectSays(complaint(with(HEADER(e_phoff), Huge)), "the program headers");
  expectSays(complaint(with<uint16_t>(HEADER(e_phnum), 0)), "no segments");
  expectSays(complaint(with(HEADER(e_shoff), Huge)), "the section headers");
  expectSays(complaint(with<uint16_t>(HEADER(e_shnum), 0)), "no sections");
  expectSays(complaint(with<uint16_t>(HEADER(e_shstrndx), 999)),
             "no section of section names");
  expectSays(complaint(with(SEGMENT(PT_LOAD, p_filesz), Huge)), "a segment of");
  expectSays(complaint(with(SEGMENT(PT_LOAD, p_vaddr), Huge)), "too large");
  expectSays(complaint(with<uint64_t>(SEGMENT(PT_LOAD, p_memsz), 1)),
             "smaller than its bytes");
  expectSays(complaint(with<uint64_t>(SEGMENT(PT_LOAD, p_memsz), 1 << 20)),
             "overlap");
  expectSays(complaint(with<uint64_t>(SEGMENT(PT_LOAD, p_align), 3)),
             "not aligned");
  expectSays(complaint(with<uint32_t>(SEGMENT(PT_LOAD, p_flags), 7)),
             "to write and to execute");
  expectSays(complaint(with(SECTION(SHT_DYNSYM, sh_offset), Huge)),
             "a section of");
  expectSays(complaint(with<uint32_t>(SECTION(SHT_DYNSYM, sh_link), 999)),
             "linked to one that is not there");
  expectSays(complaint(with<uint64_t>(SECTION(SHT_DYNSYM, sh_entsize), 7)),
             "a symbol table");
  expectSays(complaint(with<uint32_t>(SECTION(SHT_DYNSYM, sh_name), 1 << 30)),
             "a name beyond");
  expectSays(complaint(with<uint32_t>(SECTION(SHT_NOTE, sh_type), SHT_RELA)),
             "a section of type 4");
#undef HEADER
#undef SEGMENT
#undef SECTION
}

TEST_F(CodeObject, RefusesDamagedTables) {
  size_t Note = contents(SHT_NOTE), Symbols = contents(SHT_DYNSYM),
         Dynamic = contents(SHT_DYNAMIC), Hash = contents(SHT_HASH),
         Gnu = contents(SHT_GNU_HASH);
  expectSays(complaint(with<uint32_t>(Note, UINT32_MAX)), "longer than its");
  expectSays(complaint(with<uint32_t>(Note + 4, UINT32_MAX)), "longer than");
  expectSays(complaint(with<uint32_t>(Note + 8, 7)), "no metadata");
  expectSays(complaint(with<uint32_t>(Symbols + 24, UINT32_MAX)), "a name");
  expectSays(complaint(with<uint16_t>(Symbols + 24 + 6, 99)), "of no section");
  expectSays(complaint(with(Symbols + 24 + 8, UINT64_MAX)),
             "beyond its section");
  expectSays(complaint(with<uint64_t>(Dynamic, DT_NEEDED)), "entry 1 of");
  expectSays(complaint(with<uint64_t>(Dynamic, DT_RELA)), "entry 7 of");
  expectSays(complaint(with<uint64_t>(Dynamic + 8, 64)), "does not fit");
  expectSays(complaint(with<uint32_t>(Hash, UINT32_MAX)), "strange size");
  expectSays(complaint(with<uint32_t>(Hash + 8, UINT32_MAX)), "bad chain");
  // A chain that never ends.
  uint64_t Buckets = read(Hash) & UINT32_MAX;
  Bytes Loop = with<uint32_t>(Hash + 8, 1);
  uint32_t One = 1;
  memcpy(&Loop[Hash + 8 + 4 * (Buckets + 1)], &One, 4);
  expectSays(complaint(Loop), "bad chain");
  expectSays(complaint(with<uint32_t>(Gnu + 8, 0)), "strange size");
  expectSays(complaint(with<uint32_t>(Gnu + 24, 77)), "bad bucket");
  // Metadata: 100,000 lists, one in the other, do not recurse.
  Bytes Deep = Good;
  uint32_t Size = uint32_t(read(Note + 4) & UINT32_MAX);
  std::fill_n(Deep.begin() + long(Note) + 20, Size, uint8_t(0x91));
  expectSays(complaint(Deep), "nested too deeply");
}

// A driver may take either of two with one name.
TEST_F(CodeObject, RefusesTwoOfOneName) {
  size_t Symbols = contents(SHT_DYNSYM), Note = contents(SHT_NOTE);
  auto Name = uint32_t(read(Symbols + 2 * 24));
  expectSays(complaint(with<uint32_t>(Symbols + 24, Name)),
             "two kernel descriptors 'scale.kd'");
  auto Size = uint32_t(read(Note + 4) & UINT32_MAX);
  using nlohmann::json;
  json Kernel = {{".name", "scale"}, {".symbol", "scale.kd"}};
  json Other = {{".name", "other"}, {".symbol", "scale.kd"}};
  const struct {
    json Kernels;
    const char *Says;
  } Cases[] = {{{Kernel, Kernel}, "two kernels 'scale'"},
               {{Kernel, Other}, "'scale' has another name"}};
  for (const auto &C : Cases) {
    json Metadata = {{"amdhsa.target", "amdgcn-amd-amdhsa--gfx942"},
                     {"amdhsa.kernels", C.Kernels},
                     {"filler", std::string(256, ' ')}};
    size_t Filler = 256 + Size - json::to_msgpack(Metadata).size();
    Metadata["filler"] = std::string(Filler, ' ');
    Bytes Two = Good, Packed = json::to_msgpack(Metadata);
    ASSERT_EQ(Packed.size(), Size);
    std::copy(Packed.begin(), Packed.end(), Two.begin() + long(Note) + 20);
    expectSays(complaint(Two), C.Says);
  }
}

// The descriptor of `scale`, its file offset.
TEST_F(CodeObject, RefusesWrongDescriptors) {
  size_t Symbols = contents(SHT_DYNSYM);
  size_t At = read(Symbols + 2 * 24 + 8); // offsets are addresses there
  expectSays(complaint(with<uint32_t>(At, 4)), ".group_segment_fixed_size");
  expectSays(complaint(with<uint32_t>(At + 4, 16)),
             ".private_segment_fixed_size");
  expectSays(complaint(with<uint32_t>(At + 8, 8)), ".kernarg_segment_size");
  expectSays(complaint(with<int64_t>(At + 16, INT64_MIN)), "the kernel's code");
  expectSays(complaint(with<int64_t>(At + 16, 0)), "the kernel's code");
  expectSays(complaint(with<uint16_t>(At + 56, 1 << 10)), ".wavefront_size");
  expectSays(complaint(with<uint64_t>(Symbols + 2 * 24 + 16, 32)),
             "no object of 64 bytes");
}

TEST_F(CodeObject, IsTheManifests) {
  KernelDecl K = scale();
  K.Entry = "other";
  expectSays(complaint(Good, K), "no kernel 'other'");
  K = scale();
  K.Args.pop_back();
  expectSays(complaint(Good, K), "argument 2 of 4 bytes at offset 16");
  K = scale();
  K.Args.resize(4);
  expectSays(complaint(Good, K), "room for 20 bytes");
  K = scale();
  K.Args[2].Which = KernelArg::Arg;
  expectSays(complaint(Good, K), "room for 20 bytes");
  K = scale();
  K.Args[1].Which = KernelArg::I32;
  expectSays(complaint(Good, K), "argument 1 of 8 bytes at offset 8");
  K = scale();
  K.LdsBytes = 8;
  expectSays(complaint(Good, K), ".group_segment_fixed_size is 0");
  K = scale();
  K.Block = {128, 1, 1};
  expectSays(complaint(Good, K), "at most 64 work-items");
  K.Block = {32, 2, 1};
  expectSays(complaint(Good, K), "another workgroup size");
  expectSays(complaint(Good, scale(), "gfx90a"),
             "for machine 76, gfx90a is 63");
  Bytes Other = Good;
  Other[find("--gfx942") + 7] = '0';
  expectSays(complaint(Other), "compiled for 'amdgcn-amd-amdhsa--gfx940'");
}

} // namespace
