//===- Assembler.cpp - see the header -------------------------------------===//
#include "Assembler.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/MC/MCAsmBackend.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCCodeEmitter.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCObjectFileInfo.h"
#include "llvm/MC/MCObjectWriter.h"
#include "llvm/MC/MCParser/MCAsmParser.h"
#include "llvm/MC/MCParser/MCTargetAsmParser.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCStreamer.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <functional>
#include <set>

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUAsmParser();
}

using namespace llvm;

namespace {

struct Assembler {
  Triple triple{"amdgcn-amd-amdhsa"};
  MCTargetOptions options;
  const Target *target;
  std::unique_ptr<MCRegisterInfo> registers;
  std::unique_ptr<MCAsmInfo> info;
  std::unique_ptr<MCInstrInfo> instructions;
  std::unique_ptr<MCSubtargetInfo> subtarget;

  Assembler(const char *chip, bool wave32) {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmParser();
    std::string message;
    target = TargetRegistry::lookupTarget(triple, message);
    registers.reset(target->createMCRegInfo(triple));
    info.reset(target->createMCAsmInfo(*registers, triple, options));
    instructions.reset(target->createMCInstrInfo());
    subtarget.reset(
        target->createMCSubtargetInfo(triple, chip,
                                      StringRef(chip).starts_with("gfx9") ? ""
                                      : wave32 ? "+wavefrontsize32"
                                               : "+wavefrontsize64"));
  }

  /// The object file; `diagnose` gets line and message of each error.
  SmallString<0>
  run(const std::string &source,
      std::function<void(unsigned, StringRef)> diagnose = nullptr) {
    SourceMgr sources;
    sources.AddNewSourceBuffer(MemoryBuffer::getMemBuffer(source), SMLoc());
    if (diagnose)
      sources.setDiagHandler(
          [](const SMDiagnostic &d, void *context) {
            (*static_cast<decltype(diagnose) *>(context))(
                unsigned(d.getLineNo()), d.getMessage());
          },
          &diagnose);
    MCContext context(triple, info.get(), registers.get(), subtarget.get(),
                      &sources);
    std::unique_ptr<MCObjectFileInfo> files(
        target->createMCObjectFileInfo(context, /*PIC=*/true));
    context.setObjectFileInfo(files.get());
    SmallString<0> object;
    raw_svector_ostream os(object);
    std::unique_ptr<MCAsmBackend> backend(
        target->createMCAsmBackend(*subtarget, *registers, options));
    auto writer = backend->createObjectWriter(os);
    std::unique_ptr<MCStreamer> streamer(target->createMCObjectStreamer(
        triple, context, std::move(backend), std::move(writer),
        std::unique_ptr<MCCodeEmitter>(
            target->createMCCodeEmitter(*instructions, context)),
        *subtarget));
    std::unique_ptr<MCAsmParser> parser(
        createMCAsmParser(sources, context, *streamer, *info));
    std::unique_ptr<MCTargetAsmParser> targetParser(
        target->createMCAsmParser(*subtarget, *parser, *instructions, options));
    parser->setTargetParser(*targetParser);
    bool failed = parser->Run(false);
    if (!diagnose)
      EXPECT_FALSE(failed) << source << ": does not assemble";
    return object;
  }
};

} // namespace

std::vector<uint8_t> greta::sim::test::assemble(const char *chip, bool wave32,
                                                const std::string &source) {
  SmallString<0> object = Assembler(chip, wave32).run(source);
  auto file = cantFail(
      object::ObjectFile::createObjectFile(MemoryBufferRef(object, "test")));
  for (const object::SectionRef &s : file->sections())
    if (cantFail(s.getName()) == ".text") {
      StringRef bytes = cantFail(s.getContents());
      return {bytes.begin(), bytes.end()};
    }
  return {};
}

std::vector<std::string>
greta::sim::test::assembling(const char *chip, bool wave32,
                             const std::vector<std::string> &lines) {
  std::string source;
  for (const std::string &line : lines)
    source += line + "\n";
  std::vector<bool> bad(lines.size());
  Assembler(chip, wave32).run(source, [&](unsigned line, StringRef) {
    if (line && line <= lines.size())
      bad[line - 1] = true;
  });
  std::vector<std::string> good;
  for (size_t k = 0; k < lines.size(); ++k)
    if (!bad[k])
      good.push_back(lines[k]);
  return good;
}

std::vector<std::string> greta::sim::test::mnemonics(const char *chip) {
  Assembler a(chip, true);
  std::unique_ptr<MCInstPrinter> printer(a.target->createMCInstPrinter(
      a.triple, 0, *a.info, *a.instructions, *a.registers));
  std::set<std::string> all;
  for (unsigned k = 0; k < a.instructions->getNumOpcodes(); ++k) {
    if (a.instructions->get(k).isPseudo())
      continue;
    MCInst inst;
    inst.setOpcode(k);
    if (const char *text = printer->getMnemonic(inst).first)
      all.insert(StringRef(text).split(' ').first.split('\t').first.str());
  }
  std::vector<std::string> lines(all.begin(), all.end());
  std::string source;
  for (const std::string &line : lines)
    source += line + "\n";
  std::vector<bool> absent(lines.size());
  a.run(source, [&](unsigned line, StringRef message) {
    if (line && line <= lines.size() &&
        (message.contains("not supported") ||
         message.contains("invalid instruction")))
      absent[line - 1] = true;
  });
  std::set<std::string> names;
  for (size_t k = 0; k < lines.size(); ++k) {
    StringRef name = lines[k];
    while (name.consume_back("_e64") || name.consume_back("_e32") ||
           name.consume_back("_dpp") || name.consume_back("_sdwa"))
      ;
    if (!absent[k])
      names.insert(name.str());
  }
  return {names.begin(), names.end()};
}
