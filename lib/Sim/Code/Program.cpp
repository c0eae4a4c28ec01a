//===- Program.cpp - the decoded text of a code object --------------------===//
#include "Code/Program.h"
#include "Code/DecodingGuard.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"

using namespace greta::sim;
using namespace llvm;

Program::Program(const Chip &chip, ArrayRef<uint8_t> text, uint32_t base)
    : target(chip), bytes(text), base(base) {}
Program::~Program() = default;

Error Program::prepare(bool wave32) {
  if (ready && this->wave32 == wave32)
    return Error::success();
  this->wave32 = wave32;
  insts.clear();
  inner.clear();
  problems.clear();
  auto decoder = Decoder::create(target, wave32);
  if (!decoder)
    return decoder.takeError();
  index.assign(bytes.size() / 4 + 1, -1);
  insts.reserve(bytes.size() / 6);
  Binder binder(*this);
  DecodingGuard guard;
  std::string line;
  for (uint64_t at = 0; at + 4 <= bytes.size();) {
    unsigned size = (*decoder)->decode(bytes.slice(at), base + at, line);
    index[at / 4] = int32_t(insts.size());
    insts.push_back(binder.bind(line, uint32_t(base + at), size ? size : 4));
    at += size ? (size + 3) / 4 * 4 : 4;
  }
  // This instruction is reached by running off the end of the text.
  insts.push_back(binder.bind("", uint32_t(base + bytes.size()), 4));
  for (Inst &i : insts)
    if (i.unit == Unit::Branch)
      i.imm = indexOf(uint64_t(i.imm2));
  ready = true;
  return Error::success();
}

std::string Program::text(const Inst &i) const {
  auto decoder = Decoder::create(target, wave32);
  std::string line;
  DecodingGuard guard;
  if (!decoder)
    return toString(decoder.takeError());
  uint64_t at = i.address - base;
  if (at >= bytes.size())
    return "(the end of the code)";
  if (!(*decoder)->decode(bytes.slice(at), i.address, line))
    return "(undecodable) 0x" +
           utohexstr(support::endian::read32le(&bytes[at]));
  std::string out;
  for (char c : StringRef(line).trim())
    out += c == '\t' ? ' ' : c;
  return out;
}
