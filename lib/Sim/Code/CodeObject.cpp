//===- CodeObject.cpp - loads an AMD code object --------------------------===//
//
// ELF segments go to memory at their virtual addresses, dynamic relocations are
// applied, kernels are read from the kernel descriptors and the metadata note.
// Every offset and size in the file is checked before use.
//
//===----------------------------------------------------------------------===//
#include "Code/CodeObject.h"
#include "Chip.h"
#include "Code/Program.h"
#include "Code/Source.h"
#include "Memory.h"
#include "greta/Interface/AccessNotes.h"
#include "greta/Sim/Simulator.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace greta::sim;
using namespace llvm;
using namespace llvm::object;
using support::endian::read16le;
using support::endian::read32le;
using support::endian::read64le;

template <class... A> static Error bad(const char *format, A... a) {
  return createStringError(std::errc::invalid_argument, format, a...);
}

/// Names appear in reports, so they may not break lines or move the cursor.
static bool isPrintable(StringRef name) {
  return all_of(name, [](char c) { return uint8_t(c) >= ' ' && c != 0x7f; });
}
static Error badName() {
  return bad("code object: a name has unprintable characters");
}

namespace greta::sim {
struct Loader {
  Module &m;
  const ELFFile<ELF64LE> &elf;
  MemoryMap &memory;

  Error segments();
  Error relocations();
  Error metadata(msgpack::Document &doc, bool &found);
  Error kernel(msgpack::MapDocNode node);
  Error symbols();
  Error run();
};
} // namespace greta::sim

Error Loader::segments() {
  auto headers = elf.program_headers();
  if (!headers)
    return headers.takeError();
  uint64_t end = 0;
  for (const auto &h : *headers) {
    if (h.p_type != ELF::PT_LOAD)
      continue;
    if (h.p_filesz > h.p_memsz || h.p_offset > elf.getBufSize() ||
        h.p_filesz > elf.getBufSize() - h.p_offset)
      return bad("code object: a segment lies outside the file");
    if (h.p_vaddr > LargestObject || h.p_memsz > LargestObject - h.p_vaddr)
      return bad("code object: a segment ends beyond 256 MiB");
    end = std::max<uint64_t>(end, h.p_vaddr + h.p_memsz);
  }
  if (!end)
    return bad("code object: it has no loadable segment");
  m.image = static_cast<uint8_t *>(memory.allocate(end, /*code=*/true));
  if (!m.image)
    return bad("code object: out of memory");
  m.imageBytes = end;
  m.base = reinterpret_cast<uint64_t>(m.image);
  std::memset(m.image, 0, end);
  for (const auto &h : *headers) {
    if (h.p_type != ELF::PT_LOAD)
      continue;
    std::memcpy(m.image + h.p_vaddr, elf.base() + h.p_offset, h.p_filesz);
    if ((h.p_flags & ELF::PF_X) && h.p_memsz) {
      if (m.textEnd)
        return bad("code object: it has two executable segments");
      if (h.p_vaddr % 4)
        return bad("code object: the text is misaligned");
      m.textBegin = h.p_vaddr;
      m.textEnd = h.p_vaddr + h.p_filesz;
    }
  }
  return Error::success();
}

Error Loader::relocations() {
  auto sections = elf.sections();
  if (!sections)
    return sections.takeError();
  uint64_t base = reinterpret_cast<uint64_t>(m.image);
  for (const auto &s : *sections) {
    if (s.sh_type != ELF::SHT_RELA || !(s.sh_flags & ELF::SHF_ALLOC))
      continue;
    auto relas = elf.relas(s);
    if (!relas)
      return relas.takeError();
    auto symtab = elf.getSection(s.sh_link);
    if (!symtab)
      return symtab.takeError();
    for (const auto &r : *relas) {
      unsigned type = r.getType(false);
      uint64_t value = base + uint64_t(r.r_addend);
      if (type != ELF::R_AMDGPU_RELATIVE64) {
        auto symbol = elf.getRelocationSymbol(r, *symtab);
        if (!symbol)
          return symbol.takeError();
        if (!*symbol || (*symbol)->st_shndx == ELF::SHN_UNDEF)
          return bad("code object: it has an undefined symbol");
        value += (*symbol)->st_value;
      }
      bool wide =
          type == ELF::R_AMDGPU_ABS64 || type == ELF::R_AMDGPU_RELATIVE64;
      if (!wide && type != ELF::R_AMDGPU_ABS32)
        return bad("code object: relocation type %u is not supported", type);
      if (r.r_offset > m.imageBytes ||
          m.imageBytes - r.r_offset < (wide ? 8 : 4))
        return bad("code object: a relocation lies outside the image");
      if (wide)
        support::endian::write64le(m.image + r.r_offset, value);
      else
        support::endian::write32le(m.image + r.r_offset, uint32_t(value));
    }
  }
  return Error::success();
}

Error Loader::symbols() {
  auto sections = elf.sections();
  if (!sections)
    return sections.takeError();
  for (const auto &s : *sections) {
    if (s.sh_type != ELF::SHT_DYNSYM)
      continue;
    auto names = elf.getStringTableForSymtab(s);
    if (!names)
      return names.takeError();
    auto list = elf.symbols(&s);
    if (!list)
      return list.takeError();
    for (const auto &symbol : *list) {
      auto name = symbol.getName(*names);
      if (!name)
        return name.takeError();
      if (name->empty() || symbol.st_shndx == ELF::SHN_UNDEF)
        continue;
      if (!isPrintable(*name))
        return badName();
      if (symbol.st_value > m.imageBytes ||
          symbol.st_size > m.imageBytes - symbol.st_value)
        return bad("code object: symbol '%s' lies outside the image",
                   name->str().c_str());
      m.symbols.push_back({name->str(), symbol.st_value, symbol.st_size});
    }
  }
  return Error::success();
}

/// Reads integer or string members that may be absent.
static uint64_t number(msgpack::MapDocNode map, StringRef key) {
  auto it = map.find(key);
  if (it == map.end())
    return 0;
  if (it->second.getKind() == msgpack::Type::UInt)
    return it->second.getUInt();
  if (it->second.getKind() == msgpack::Type::Int)
    return uint64_t(it->second.getInt());
  return 0;
}
static StringRef text(msgpack::MapDocNode map, StringRef key) {
  auto it = map.find(key);
  if (it == map.end() || it->second.getKind() != msgpack::Type::String)
    return "";
  return it->second.getString();
}

Error Loader::kernel(msgpack::MapDocNode node) {
  Kernel k;
  KernelInfo &info = k.data;
  info.name = text(node, ".name").str();
  std::string symbol = text(node, ".symbol").str();
  if (symbol.empty())
    symbol = info.name + ".kd";
  if (!isPrintable(info.name) || !isPrintable(symbol))
    return badName();
  const Module::Symbol *descriptor = nullptr;
  for (const Module::Symbol &s : m.symbols)
    if (s.name == symbol)
      descriptor = &s;
  if (info.name.empty() || !descriptor)
    return bad("code object: kernel '%s' has no descriptor '%s'",
               info.name.c_str(), symbol.c_str());
  if (descriptor->offset > m.imageBytes ||
      m.imageBytes - descriptor->offset < 64)
    return bad(
        "code object: the descriptor of kernel '%s' is outside the image",
        info.name.c_str());
  const uint8_t *d = m.image + descriptor->offset;
  info.ldsBytes = read32le(d);
  info.scratchBytes = read32le(d + 4);
  // Zero means unspecified: AMD's assembly states the size in its metadata
  // only.
  info.kernargBytes = read32le(d + 8);
  if (!info.kernargBytes)
    info.kernargBytes = uint32_t(
        std::min<uint64_t>(number(node, ".kernarg_segment_size"), UINT32_MAX));
  k.entry = descriptor->offset + read64le(d + 16);
  k.rsrc3 = read32le(d + 44);
  k.rsrc1 = read32le(d + 48);
  k.rsrc2 = read32le(d + 52);
  k.properties = read16le(d + 56);
  k.preload = read16le(d + 58);
  if (k.entry < m.textBegin || k.entry >= m.textEnd || k.entry % 4)
    return bad("code object: the entry of kernel '%s' is outside its text",
               info.name.c_str());
  if (info.ldsBytes > (1u << 20) || info.scratchBytes > (1u << 22) ||
      info.kernargBytes > (1u << 16))
    return bad("code object: kernel '%s' asks for impossible amounts of memory",
               info.name.c_str());
  bool wave32 = k.properties & 0x400;
  const Chip &chip = *findChip(m.chipName);
  if (wave32 && chip.isGfx9())
    return bad("code object: kernel '%s' wants wave32, which %s does not have",
               info.name.c_str(), chip.name);
  info.waveSize = wave32 ? 32 : 64;
  uint64_t size = number(node, ".max_flat_workgroup_size");
  info.maxWorkgroupSize = size && size <= 1024 ? uint32_t(size) : 1024;
  info.vgprs = uint32_t(number(node, ".vgpr_count"));
  info.agprs = uint32_t(number(node, ".agpr_count"));
  info.sgprs = uint32_t(number(node, ".sgpr_count"));
  info.vgprSpills = uint32_t(number(node, ".vgpr_spill_count"));
  info.sgprSpills = uint32_t(number(node, ".sgpr_spill_count"));
  auto args = node.find(".args");
  if (args != node.end()) {
    if (!args->second.isArray())
      return bad("code object: the arguments of kernel '%s' are not a list",
                 info.name.c_str());
    for (msgpack::DocNode &a : args->second.getArray()) {
      if (!a.isMap())
        return bad("code object: an argument of kernel '%s' is not a map",
                   info.name.c_str());
      KernelArgument arg;
      arg.name = text(a.getMap(), ".name").str();
      arg.kind = text(a.getMap(), ".value_kind").str();
      uint64_t offset = number(a.getMap(), ".offset");
      uint64_t bytes = number(a.getMap(), ".size");
      if (bytes > info.kernargBytes || offset > info.kernargBytes - bytes)
        return bad("code object: an argument of kernel '%s' lies outside its "
                   "%u bytes of arguments",
                   info.name.c_str(), info.kernargBytes);
      arg.offset = uint32_t(offset);
      arg.size = uint32_t(bytes);
      if (!StringRef(arg.kind).starts_with("hidden_"))
        info.explicitKernargBytes =
            std::max(info.explicitKernargBytes, arg.offset + arg.size);
      info.args.push_back(std::move(arg));
    }
  }
  m.all.push_back(std::move(k));
  return Error::success();
}

Error Loader::metadata(msgpack::Document &doc, bool &found) {
  auto headers = elf.program_headers();
  if (!headers)
    return headers.takeError();
  for (const auto &h : *headers) {
    if (h.p_type != ELF::PT_NOTE)
      continue;
    Error error = Error::success();
    for (auto note : elf.notes(h, error)) {
      if (note.getName() != "AMDGPU" ||
          note.getType() != ELF::NT_AMDGPU_METADATA)
        continue;
      StringRef blob = note.getDescAsStringRef(4);
      if (Error e = checkMsgPack(blob))
        return e;
      if (!doc.readFromBlob(blob, false))
        return bad("code object: its metadata is not MessagePack");
      found = true;
    }
    if (error)
      return error;
  }
  return Error::success();
}

Error Loader::run() {
  if (Error e = segments())
    return e;
  if (!m.textEnd)
    return bad("code object: it has no executable segment");
  if (Error e = symbols())
    return e;
  if (Error e = relocations())
    return e;
  msgpack::Document doc;
  bool found = false;
  if (Error e = metadata(doc, found))
    return e;
  if (!found)
    return bad("code object: it has no AMDGPU metadata note (code object v5 or "
               "v6 needed)");
  if (!doc.getRoot().isMap())
    return bad("code object: its metadata is not a map");
  msgpack::MapDocNode root = doc.getRoot().getMap();
  auto kernels = root.find("amdhsa.kernels");
  if (kernels != root.end()) {
    if (!kernels->second.isArray())
      return bad("code object: amdhsa.kernels is not a list");
    for (msgpack::DocNode &k : kernels->second.getArray()) {
      if (!k.isMap())
        return bad("code object: a kernel's metadata is not a map");
      if (Error e = kernel(k.getMap()))
        return e;
    }
  }
  for (Kernel &k : m.all)
    k.owner = &m;
  return Error::success();
}

Module::Module() = default;
Module::~Module() = default;

const Kernel *Module::find(StringRef name) const {
  for (const Kernel &k : all)
    if (k.data.name == name)
      return &k;
  return nullptr;
}

Expected<std::pair<void *, uint64_t>> Module::global(StringRef name) const {
  for (const Symbol &s : symbols)
    if (s.name == name)
      return std::pair<void *, uint64_t>(image + s.offset, s.size);
  return bad("the code object has no symbol '%s'", name.str().c_str());
}

Expected<uint64_t> greta::sim::objectBytes(ArrayRef<uint8_t> header) {
  if (header.size() < ObjectHeaderBytes)
    return bad("code object: its header is cut short");
  const uint8_t *p = header.data();
  if (std::memcmp(p, ELF::ElfMagic, 4) || p[ELF::EI_CLASS] != ELF::ELFCLASS64)
    return ObjectHeaderBytes;
  // The program and section headers have an offset, entry size and number.
  uint64_t bytes = ObjectHeaderBytes;
  for (auto [offset, size] : {std::pair{0x20, 0x36}, std::pair{0x28, 0x3a}}) {
    uint64_t at = read64le(p + offset),
             length = uint64_t(read16le(p + size)) * read16le(p + size + 2);
    if (at > LargestObject || length > LargestObject - at)
      return bad("code object: its headers lie beyond 256 MiB");
    bytes = std::max(bytes, at + length);
  }
  return bytes;
}

Expected<StringRef> greta::sim::chipOfCodeObject(ArrayRef<uint8_t> hsaco) {
  // LLVM's own accessor has undefined behaviour for machines it does not know.
  if (hsaco.size() < 64 || std::memcmp(hsaco.data(), ELF::ElfMagic, 4) ||
      hsaco[ELF::EI_CLASS] != ELF::ELFCLASS64 ||
      read16le(&hsaco[18]) != ELF::EM_AMDGPU)
    return bad("this is not an AMDGPU code object");
  uint32_t machine = read32le(&hsaco[48]) & ELF::EF_AMDGPU_MACH;
  for (const Chip &c : chips())
    if (c.elfMachine == machine)
      return c.name;
  return bad("the code object is for a chip the simulator does not have "
             "(machine 0x%x)",
             machine);
}

Expected<std::shared_ptr<Module>> Device::load(ArrayRef<uint8_t> hsaco) {
  StringRef data(reinterpret_cast<const char *>(hsaco.data()), hsaco.size());
  if (data.starts_with("CCOB") || data.starts_with("__CLANG_OFFLOAD_BUNDLE__"))
    return bad("this is a bundle of code objects; unbundle it first "
               "(clang-offload-bundler --unbundle)");
  if (!data.starts_with("\x7f"
                        "ELF"))
    return bad("this is not a code object (no ELF header)");
  // LLVM reads headers in place, so it gets an aligned copy.
  auto buffer = MemoryBuffer::getMemBufferCopy(data, "code object");
  auto object = ObjectFile::createELFObjectFile(buffer->getMemBufferRef());
  if (!object)
    return object.takeError();
  auto *elf = dyn_cast<ELF64LEObjectFile>(object->get());
  if (!elf || elf->getELFFile().getHeader().e_machine != ELF::EM_AMDGPU)
    return bad("this ELF file is not an AMDGPU code object");
  if (elf->getELFFile().getHeader().e_type != ELF::ET_DYN)
    return bad("this AMDGPU object is not linked (ld.lld -shared)");
  auto cpu = chipOfCodeObject(hsaco);
  if (!cpu)
    return cpu.takeError();
  if (*cpu != chipName)
    return bad("the code object is for %s, this device is %s",
               cpu->str().c_str(), chipName.c_str());
  std::shared_ptr<Module> m(new Module(), [this](Module *m) {
    if (m->image) {
      std::lock_guard<std::mutex> lock(memory->mutex());
      memory->release(m->image);
    }
    delete m;
  });
  m->chipName = chipName;
  std::lock_guard<std::mutex> lock(memory->mutex());
  Loader loader{*m, elf->getELFFile(), *memory};
  Error e = loader.run();
  if (e) {
    // The deleter takes the lock, so the image is freed here.
    if (m->image)
      memory->release(m->image);
    m->image = nullptr;
    return std::move(e);
  }
  StringRef accesses;
  auto note = m->global(greta::accesses::notesName);
  if (note)
    accesses = StringRef(static_cast<char *>(note->first), note->second);
  else
    consumeError(note.takeError());
  m->lines = Source::read(std::move(buffer), std::move(*object), accesses);
  m->code = std::make_unique<Program>(
      *findChip(chipName),
      ArrayRef<uint8_t>(m->image + m->textBegin, m->textEnd - m->textBegin),
      uint32_t(m->textBegin));
  return m;
}
