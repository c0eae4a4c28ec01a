// CodeObject.cpp: see CodeObject.h. The layouts of the kernel descriptor and of
// the metadata are those of LLVM's "User Guide for AMDGPU Backend", code object
// versions 4 to 6.
#include "CodeObject.h"
#include "Elf.h"
#include "Error.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace greta::rt::hip {
namespace {
using nlohmann::json;

constexpr uint8_t osAbiHsa = 64, firstAbi = 2, lastAbi = 4;
constexpr uint32_t noteMetadata = 32;
constexpr uint64_t codeAlignment = 256;
constexpr size_t maxMetadata = 1u << 20;  // its tree is many times that
constexpr uint64_t maxScratch = 1u << 20; // bytes a lane
constexpr const char *triple = "amdgcn-amd-amdhsa--";

// EF_AMDGPU_MACH of the compiler's chips. Others are known by the metadata
// alone.
constexpr struct {
  const char *Chip;
  uint32_t Number;
} machines[] = {{"gfx90a", 0x3f},  {"gfx942", 0x4c},  {"gfx950", 0x4f},
                {"gfx1030", 0x36}, {"gfx1100", 0x41}, {"gfx1101", 0x46},
                {"gfx1102", 0x47}, {"gfx1103", 0x44}, {"gfx1150", 0x43},
                {"gfx1151", 0x4a}, {"gfx1200", 0x48}, {"gfx1201", 0x4e}};

// The 64 bytes of `<kernel>.kd`.
struct Descriptor {
  uint32_t LdsBytes, ScratchBytes, ArgumentBytes, Reserved0;
  int64_t CodeOffset; // from the descriptor
  uint8_t Reserved1[20];
  uint32_t Resources[3];
  uint16_t Properties, Preload;
  uint32_t Reserved2;
};
static_assert(sizeof(Descriptor) == 64);
constexpr uint16_t wave32 = 1 << 10;

// Refuses deep nesting before metadata becomes a tree, as the library's reader
// recurses.
struct DepthLimit : nlohmann::json_sax<json> {
  static constexpr int maxDepth = 8;
  int Depth = 0;
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(size_t) override { return ++Depth <= maxDepth; }
  bool key(string_t &) override { return true; }
  bool end_object() override { return Depth-- > 0; }
  bool start_array(size_t) override { return ++Depth <= maxDepth; }
  bool end_array() override { return Depth-- > 0; }
  bool parse_error(size_t, const std::string &,
                   const nlohmann::detail::exception &) override {
    return false;
  }
};

class Checker {
public:
  Checker(const std::vector<uint8_t> &Object, const KernelDecl &K,
          const std::string &Arch)
      : K(K), Arch(Arch), Elf(Object, "'" + K.File + "'") {}

  void run() {
    checkHeader();
    Elf.readTables();
    readMetadata();
    const json &Kernel = findKernel();
    checkSizes(Kernel, descriptor());
    checkArguments(Kernel);
  }

private:
  [[noreturn]] void bad(const std::string &What) const { Elf.bad(What); }

  void checkHeader() const {
    const Elf64_Ehdr &H = Elf.Header;
    if (H.e_machine != EM_AMDGPU || H.e_ident[EI_OSABI] != osAbiHsa ||
        H.e_ident[EI_ABIVERSION] < firstAbi ||
        H.e_ident[EI_ABIVERSION] > lastAbi)
      bad("not an AMD code object of version 4 to 6");
    for (const auto &Row : machines)
      if (Arch == Row.Chip && (H.e_flags & 0xff) != Row.Number)
        bad(concat("compiled for machine ", H.e_flags & 0xff, ", ", Arch,
                   " is ", Row.Number));
  }

  void readMetadata() {
    Elf.notes([&](const std::string &Owner, uint32_t Type, const uint8_t *Data,
                  size_t Size) {
      if (Owner != "AMDGPU" || Type != noteMetadata)
        return;
      if (!Metadata.is_null() || Size > maxMetadata)
        bad("two notes of metadata, or too much of it");
      DepthLimit Limit;
      if (!json::sax_parse(Data, Data + Size, &Limit,
                           json::input_format_t::msgpack))
        bad("its metadata is no MessagePack, or nested too deeply");
      Metadata = json::from_msgpack(Data, Data + Size);
    });
    if (!Metadata.is_object())
      bad("no metadata");
    std::string Target = text(Metadata, "amdhsa.target");
    if (Target.substr(0, Target.find(':')) != triple + Arch)
      bad("compiled for '" + printable(Target) + "', the variant is for " +
          Arch);
  }

  const json &member(const json &J, const char *Key) const {
    if (!J.is_object() || !J.contains(Key))
      bad(concat("its metadata has no ", Key));
    return J.at(Key);
  }
  std::string text(const json &J, const char *Key) const {
    const json &V = member(J, Key);
    if (!V.is_string())
      bad(concat("its metadata's ", Key, " is no text"));
    return V.get<std::string>();
  }
  uint64_t number(const json &J, const char *Key) const {
    const json &V = member(J, Key);
    if (!V.is_number_unsigned() || V.get<uint64_t>() > UINT32_MAX)
      bad(concat("its metadata's ", Key, " is no number of 32 bits"));
    return V.get<uint64_t>();
  }
  // Checks a number of the metadata that has to be the given one.
  void same(const json &J, const char *Key, uint64_t Want,
            const char *Whose) const {
    if (uint64_t Got = number(J, Key); Got != Want)
      bad(concat(Key, " is ", Got, ", ", Whose, " says ", Want));
  }

  // Finds the kernel; there has to be one, as drivers may take either of two.
  const json &findKernel() const {
    const json *Found = nullptr;
    for (const json &Kernel : member(Metadata, "amdhsa.kernels")) {
      bool Named = text(Kernel, ".name") == K.Entry;
      bool HasSymbol = text(Kernel, ".symbol") == K.Entry + ".kd";
      if (!Named && !HasSymbol)
        continue;
      if (Named != HasSymbol)
        bad("the descriptor of '" + K.Entry + "' has another name");
      if (Found)
        bad("two kernels '" + K.Entry + "'");
      Found = &Kernel;
    }
    if (!Found)
      bad("no kernel '" + K.Entry + "'");
    return *Found;
  }

  Descriptor descriptor() const {
    auto IsOurs = [&](const ElfFile::Symbol &S) {
      return S.Name == K.Entry + ".kd";
    };
    if (std::count_if(Elf.Symbols.begin(), Elf.Symbols.end(), IsOurs) > 1)
      bad("two kernel descriptors '" + K.Entry + ".kd'");
    for (const ElfFile::Symbol &S : Elf.Symbols) {
      if (!IsOurs(S))
        continue;
      uint64_t Address = S.Entry.st_value;
      if (ELF64_ST_TYPE(S.Entry.st_info) != STT_OBJECT ||
          S.Entry.st_size != sizeof(Descriptor) || Address % sizeof(Descriptor))
        bad("its kernel descriptor is no object of 64 bytes");
      Descriptor D;
      memcpy(&D, Elf.loaded(Address, sizeof(D), PF_R, "the kernel descriptor"),
             sizeof(D));
      uint64_t Code = Address + static_cast<uint64_t>(D.CodeOffset);
      Elf.loaded(Code, 4, PF_R | PF_X, "the kernel's code");
      if (Code % codeAlignment)
        bad("the kernel's code is not aligned");
      return D;
    }
    bad("no kernel descriptor '" + K.Entry + ".kd'");
  }

  void checkSizes(const json &Kernel, const Descriptor &D) const {
    same(Kernel, ".group_segment_fixed_size", D.LdsBytes, "the descriptor");
    same(Kernel, ".group_segment_fixed_size", K.LdsBytes, "the manifest");
    same(Kernel, ".private_segment_fixed_size", D.ScratchBytes,
         "the descriptor");
    if (D.ScratchBytes > maxScratch)
      bad(concat(D.ScratchBytes, " bytes of scratch a lane, the limit is ",
                 maxScratch));
    same(Kernel, ".kernarg_segment_size", D.ArgumentBytes, "the descriptor");
    same(Kernel, ".wavefront_size", D.Properties & wave32 ? 32 : 64,
         "the descriptor");
    uint64_t Threads = uint64_t(K.Block[0]) * K.Block[1] * K.Block[2];
    if (uint64_t Max = number(Kernel, ".max_flat_workgroup_size");
        Max < Threads)
      bad(concat("workgroups of at most ", Max,
                 " work-items, the manifest says ", Threads));
    if (Kernel.contains(".reqd_workgroup_size") &&
        Kernel.at(".reqd_workgroup_size") != json(K.Block))
      bad("another workgroup size than the manifest's");
  }

  // Compares the manifest's arguments; the compiler's hidden ones follow them.
  void checkArguments(const json &Kernel) const {
    std::vector<uint32_t> Offsets = argumentOffsets(K.Args);
    uint64_t Segment = number(Kernel, ".kernarg_segment_size");
    size_t Count = 0;
    if (Segment < Offsets.back())
      bad(concat("room for ", Segment, " bytes of arguments, the manifest has ",
                 Offsets.back()));
    if (!Kernel.contains(".args") && K.Args.empty())
      return;
    for (const json &A : member(Kernel, ".args")) {
      uint64_t Offset = number(A, ".offset"), Size = number(A, ".size");
      if (text(A, ".value_kind").compare(0, 7, "hidden_") == 0) {
        if (Offset < Offsets.back() || Offset + Size > Segment)
          bad("a hidden argument among the manifest's");
        continue;
      }
      if (Count >= K.Args.size() || Offset != Offsets[Count] ||
          Size != K.Args[Count].bytes())
        bad(concat("argument ", Count, " of ", Size, " bytes at offset ",
                   Offset, " is not the manifest's"));
      ++Count;
    }
    if (Count != K.Args.size())
      bad(concat(Count, " arguments, the manifest has ", K.Args.size()));
  }

  const KernelDecl &K;
  const std::string &Arch;
  ElfFile Elf;
  json Metadata;
};

} // namespace

void checkCodeObject(const std::vector<uint8_t> &Object, const KernelDecl &K,
                     const std::string &Arch) {
  Checker(Object, K, Arch).run();
}

} // namespace greta::rt::hip
