//===- Decoder.cpp - machine code to split assembly lines -----------------===//
#include "Code/DecodingGuard.h"
#include "Code/Program.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"
#include <mutex>

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUDisassembler();
}

using namespace greta::sim;
using namespace llvm;

struct Decoder::State {
  static Expected<std::unique_ptr<State>> make(const Chip &chip, bool wave32);
  /// Returns the bytes consumed and writes the line; 0 when undecodable.
  unsigned disassemble(ArrayRef<uint8_t> bytes, uint64_t address,
                       std::string &line);

  bool wave32;
  std::unique_ptr<MCRegisterInfo> registers;
  std::unique_ptr<MCAsmInfo> assembly;
  std::unique_ptr<MCInstrInfo> instructions;
  std::unique_ptr<MCSubtargetInfo> subtarget;
  std::unique_ptr<MCContext> context;
  std::unique_ptr<MCDisassembler> disassembler;
  std::unique_ptr<MCInstPrinter> printer;
};

static std::mutex &guarding() {
  static std::mutex one;
  return one;
}

DecodingGuard::DecodingGuard() : lock(guarding()) {
  CrashRecoveryContext::Enable();
}

DecodingGuard::~DecodingGuard() { CrashRecoveryContext::Disable(); }

bool DecodingGuard::survives(function_ref<void()> work) {
  CrashRecoveryContext recovery;
  return recovery.RunSafely(work);
}

Decoder::Decoder(const Chip &chip) : chip(chip) {}
Decoder::~Decoder() = default;

Expected<std::unique_ptr<Decoder>> Decoder::create(const Chip &chip,
                                                   bool wave32) {
  auto state = State::make(chip, wave32);
  if (!state)
    return state.takeError();
  std::unique_ptr<Decoder> d(new Decoder(chip));
  d->state = std::move(*state);
  return std::move(d);
}

Expected<std::unique_ptr<Decoder::State>> Decoder::State::make(const Chip &chip,
                                                               bool wave32) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
  });
  Triple triple("amdgcn-amd-amdhsa");
  std::string message;
  const Target *target = TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return createStringError("this LLVM has no AMDGPU target: " + message);
  auto made = std::make_unique<State>();
  State &s = *made;
  s.wave32 = wave32;
  MCTargetOptions options;
  s.registers.reset(target->createMCRegInfo(triple));
  s.assembly.reset(target->createMCAsmInfo(*s.registers, triple, options));
  s.instructions.reset(target->createMCInstrInfo());
  std::string features;
  if (!chip.isGfx9())
    features = wave32 ? "+wavefrontsize32" : "+wavefrontsize64";
  // Real 16-bit registers decode both styles of 16-bit code.
  if (chip.isGfx11Plus())
    features += ",+real-true16";
  s.subtarget.reset(target->createMCSubtargetInfo(triple, chip.name, features));
  if (!s.registers || !s.assembly || !s.instructions || !s.subtarget)
    return createStringError("LLVM's AMDGPU target is incomplete");
  s.context = std::make_unique<MCContext>(triple, s.assembly.get(),
                                          s.registers.get(), s.subtarget.get());
  s.disassembler.reset(target->createMCDisassembler(*s.subtarget, *s.context));
  s.printer.reset(
      target->createMCInstPrinter(triple, s.assembly->getAssemblerDialect(),
                                  *s.assembly, *s.instructions, *s.registers));
  if (!s.disassembler || !s.printer)
    return createStringError("LLVM was built without the AMDGPU disassembler");
  return std::move(made);
}

unsigned Decoder::State::disassemble(ArrayRef<uint8_t> bytes, uint64_t address,
                                     std::string &line) {
  MCInst inst;
  // A printer that asks for an operand too many finds an invalid one, not what
  // the stack held before.
  for (int i = 0; i < 16; ++i)
    inst.addOperand(MCOperand());
  inst.clear();
  uint64_t size = 0;
  if (disassembler->getInstruction(inst, size, bytes, address, nulls()) !=
      MCDisassembler::Success)
    return 0;
  raw_string_ostream os(line);
  printer->printInst(&inst, address, "", *subtarget, os);
  return unsigned(size);
}

/// LLVM has undefined behaviour for some encodings that no assembler makes:
/// SDWA selectors that do not exist (the printer) and literal constants that
/// are not allowed (the decoder). `bytes` has at least 8.
static bool undefinedInLLVM(const Chip &chip, ArrayRef<uint8_t> bytes) {
  constexpr uint32_t Literal = 0xff;
  const uint32_t words[2] = {support::endian::read32le(bytes.data()),
                             support::endian::read32le(bytes.data() + 4)};
  auto field = [&](unsigned word, unsigned at, unsigned bits) {
    return words[word] >> at & ((1u << bits) - 1);
  };
  if (chip.isGfx12()) // barrier instructions of SOP1
    return field(0, 23, 9) == 0x17d && field(0, 8, 8) >= 0x4e &&
           field(0, 8, 8) <= 0x53 && field(0, 0, 8) == Literal;
  if (chip.isGfx11Plus())
    return false;
  unsigned encoding = field(0, 26, 6);
  if (chip.isGfx9() &&
      encoding == 0x34) { // VOP3; comparisons and v_readlane write scalars
    unsigned op = field(0, 16, 10);
    return field(1, 0, 9) == Literal || field(1, 9, 9) == Literal ||
           field(1, 18, 9) == Literal ||
           ((op < 0x100 || op == 0x289) && field(0, 0, 8) == Literal);
  }
  if (encoding == 0x38 || encoding == 0x3a) // MUBUF and MTBUF: soffset
    return field(1, 24, 8) == Literal;
  constexpr uint32_t Sdwa = 0xf9;
  if (field(0, 31, 1) || field(0, 0, 9) != Sdwa) // VOP1, VOP2 and VOPC
    return false;
  // dst_sel, src0_sel and src1_sel have 7 values, and dst_unused has 3.
  bool compare = field(0, 25, 7) == 0x3e, one = field(0, 25, 7) == 0x3f;
  return (!compare && (field(1, 8, 3) == 7 || field(1, 11, 2) == 3)) ||
         field(1, 16, 3) == 7 || (!one && field(1, 24, 3) == 7);
}

/// LLVM takes the constant 0xff of v_fmamk_f16 and v_fmaak_f16 with 16-bit
/// registers for the encoding that says "a literal constant" and goes astray.
static bool isMistakenForLiteral(const Chip &chip, ArrayRef<uint8_t> bytes) {
  uint32_t opcode = support::endian::read32le(bytes.data()) >> 25;
  return chip.isGfx11Plus() && (opcode == 0x37 || opcode == 0x38) &&
         support::endian::read32le(bytes.data() + 4) == 0xff;
}

/// LLVM takes the literal constant of a mixed-precision multiply-add for a half
/// and prints 16 bits of it, though an operand that is a float has all 32. The
/// operands it stands in are written anew from the encoding.
static void restoreMixedLiteral(ArrayRef<uint8_t> bytes, std::string &line) {
  StringRef text = StringRef(line).ltrim();
  constexpr unsigned Literal = 0xff;
  if (bytes.size() != 12 ||
      !(text.starts_with("v_fma_mix") || text.starts_with("v_mad_mix")) ||
      text.split(' ').first.ends_with("_dpp"))
    return;
  uint32_t low = support::endian::read32le(bytes.data()),
           high = support::endian::read32le(bytes.data() + 4);
  std::string literal =
      "0x" + utohexstr(support::endian::read32le(bytes.data() + 8),
                       /*LowerCase=*/true);
  SmallVector<StringRef, 4> operands; // the first is the destination
  text.split(operands, ", ", /*MaxSplit=*/3);
  std::string made;
  for (auto [at, operand] : enumerate(operands)) {
    made += at ? ", " : "";
    if (at == 0 || (high >> (9 * (at - 1)) & 0x1ff) != Literal) {
      made += operand;
      continue;
    }
    bool isNegative = high >> (28 + at) & 1, isAbsolute = low >> (7 + at) & 1;
    made += isAbsolute   ? (isNegative ? "-|" : "|") + literal + "|"
            : isNegative ? "neg(" + literal + ")"
                         : literal;
    if (at == 3) // the rest follows the last operand
      made += operand.drop_front(std::min(operand.find(' '), operand.size()));
  }
  line = made;
}

/// RDNA 2's comparisons take data-parallel primitives, as the manual says, and
/// ACO uses them; LLVM has none. Comes in: the comparison's text, made of its
/// plain encoding, and the dword of the primitive; goes out: the text with it.
static std::string withPrimitive(StringRef plain, unsigned encoding,
                                 uint32_t dpp) {
  if (encoding != 0xfa) { // DPP8; 0xea reads inactive lanes as well
    std::string line = plain.rtrim().str() + " dpp8:[";
    for (unsigned k = 0; k < 8; ++k)
      line += (k ? "," : "") + std::to_string(dpp >> (8 + 3 * k) & 7);
    return line + (encoding == 0xea ? "] fi:1" : "]");
  }
  SmallVector<StringRef, 3> operands; // v_cmp vcc, src0, src1
  plain.rtrim().split(operands, ", ", /*MaxSplit=*/2);
  auto operand = [&](StringRef text, unsigned bit) {
    std::string s = text.str();
    if (dpp >> (bit + 1) & 1)
      s = "|" + s + "|";
    return dpp >> bit & 1 ? "-" + s : s;
  };
  std::string line = operands.front().str();
  if (operands.size() == 3)
    line += ", " + operand(operands[1], 20);
  else if (operands.size() == 2) { // v_cmpx src0, src1
    auto [name, source] = operands.front().rsplit(' ');
    line = (name + " " + operand(source, 20)).str();
  }
  line += ", " + operand(operands.back(), 22);
  unsigned control = dpp >> 8 & 0x1ff, n = control & 15;
  static const char *const shifts[] = {"row_shl:", "row_shr:", "row_ror:"};
  if (control < 0x100)
    line += formatv(" quad_perm:[{0},{1},{2},{3}]", control & 3,
                    control >> 2 & 3, control >> 4 & 3, control >> 6)
                .str();
  else if (control > 0x100 && control < 0x130 && n)
    line += (Twine(" ") + shifts[control >> 4 & 3] + Twine(n)).str();
  else if (control == 0x140 || control == 0x141)
    line += control & 1 ? " row_half_mirror" : " row_mirror";
  else if (control >= 0x150 && control < 0x170)
    line +=
        ((control < 0x160 ? " row_share:" : " row_xmask:") + Twine(n)).str();
  else
    return "";
  line += formatv(" row_mask:{0:x} bank_mask:{1:x}", dpp >> 28, dpp >> 24 & 15)
              .str();
  line += dpp >> 19 & 1 ? " bound_ctrl:1" : "";
  line += dpp >> 18 & 1 ? " fi:1" : "";
  return line;
}

unsigned Decoder::decodeComparison(ArrayRef<uint8_t> bytes, uint64_t address,
                                   std::string &line) {
  uint32_t word = support::endian::read32le(bytes.data()),
           dpp = support::endian::read32le(bytes.data() + 4);
  unsigned encoding = word & 0x1ff;
  if (!chip.isGfx10() || word >> 25 != 0x3e ||
      (encoding != 0xfa && encoding != 0xe9 && encoding != 0xea))
    return 0;
  uint8_t plain[16] = {};
  support::endian::write32le(plain, (word & ~0x1ffu) | 0x100 | (dpp & 0xff));
  std::string text;
  if (state->disassemble(plain, address, text) != 4)
    return 0;
  line = withPrimitive(text, encoding, dpp);
  return line.empty() ? 0 : 8;
}

unsigned Decoder::decode(ArrayRef<uint8_t> bytes, uint64_t address,
                         std::string &line) {
  line.clear();
  // LLVM also has undefined behaviour for a literal constant that is cut off.
  // It reads zeros here, and the size is checked afterwards.
  uint8_t padded[16] = {};
  ArrayRef<uint8_t> from = bytes;
  if (bytes.size() < sizeof(padded)) {
    llvm::copy(bytes, padded);
    from = padded;
  }
  if (undefinedInLLVM(chip, from))
    return 0;
  // The constant is replaced until it is printed.
  uint8_t changed[8];
  bool isChanged = isMistakenForLiteral(chip, from);
  if (isChanged) {
    llvm::copy(from.take_front(8), changed);
    changed[4] = 0xfe;
    from = changed;
  }
  unsigned size = 0;
  std::string text;
  if (!DecodingGuard::survives(
          [&] { size = state->disassemble(from, address, text); })) {
    // LLVM's state is left alone, since the fault interrupted its use.
    State *faulted = state.release();
    state = cantFail(State::make(chip, faulted->wave32));
    return 0;
  }
  if (!size && bytes.size() >= 8)
    return decodeComparison(bytes, address, line);
  if (!size || size > bytes.size())
    return 0;
  line = std::move(text);
  for (size_t at = 0; isChanged; at += 4) {
    at = line.find("0xfe", at);
    if (at == std::string::npos)
      break;
    line.replace(at, 4, "0xff");
  }
  restoreMixedLiteral(from.take_front(size), line);
  // ds_swizzle's symbolic pattern leaves bits out, so the number replaces it.
  size_t pattern = line.find("swizzle(");
  if (pattern != std::string::npos)
    line.replace(pattern, line.find(')', pattern) + 1 - pattern,
                 std::to_string(support::endian::read16le(from.data())));
  return size;
}

/// Splits at `separator` outside brackets, parentheses and quotes.
static void splitTop(StringRef text, char separator,
                     SmallVectorImpl<StringRef> &out) {
  int depth = 0;
  size_t start = 0;
  for (size_t k = 0; k < text.size(); ++k) {
    char c = text[k];
    depth += (c == '[' || c == '(') - (c == ']' || c == ')');
    if (c == separator && depth == 0) {
      out.push_back(text.slice(start, k).trim());
      start = k + 1;
    }
  }
  out.push_back(text.substr(start).trim());
}

ParsedInst greta::sim::parseAssembly(StringRef line) {
  ParsedInst p;
  line = line.ltrim();
  line = line.split("//").first.rtrim();
  size_t space = line.find_first_of(" \t");
  p.mnemonic = line.substr(0, space);
  if (space == StringRef::npos)
    return p;
  SmallVector<StringRef, 8> commas, words;
  splitTop(line.substr(space).trim(), ',', commas);
  for (size_t k = 0; k < commas.size(); ++k) {
    // Modifiers follow the last operand, separated by spaces; the printer also
    // puts them after commas in a few places.
    words.clear();
    splitTop(commas[k], ' ', words);
    for (size_t w = 0; w < words.size(); ++w) {
      StringRef word = words[w];
      if (word.empty() || word == "&" || word == "|")
        continue;
      size_t colon = word.find_first_of(":([");
      if (colon != StringRef::npos && word[colon] == ':' && colon > 0) {
        p.modifiers.push_back({word.substr(0, colon), word.substr(colon + 1)});
      } else if (colon != StringRef::npos && word[colon] == '(' &&
                 llvm::isAlpha(word[0]) && !word.starts_with("lit") &&
                 !word.starts_with("neg") && !word.starts_with("abs") &&
                 !word.starts_with("sext")) {
        p.modifiers.push_back(
            {word.substr(0, colon), word.substr(colon + 1).drop_back()});
      } else if (w == 0) {
        p.operands.push_back(word);
      } else {
        p.modifiers.push_back({word, StringRef()});
      }
    }
  }
  return p;
}
