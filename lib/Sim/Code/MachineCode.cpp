//===- MachineCode.cpp - code without a code object -----------------------===//
//
// Drivers with a compiler of their own put code into memory and tell the
// command processor its address and resources in registers. Comes in: such a
// piece of memory and those registers; goes out: a module of one kernel, which
// is launched like one of a code object.
//
//===----------------------------------------------------------------------===//
#include "Chip.h"
#include "Code/CodeObject.h"
#include "Code/Program.h"
#include "Code/Source.h"
#include "greta/Sim/Simulator.h"
#include "llvm/Support/Endian.h"

using namespace greta::sim;
using namespace llvm;
using support::endian::read32le;

/// No program executes s_code_end. Compilers pad code with it up to the end of
/// what instruction prefetch may reach, so a run of it is no literal.
static constexpr uint32_t CodeEnd = 0xbf9f0000;
static constexpr unsigned CodeEndRun = 4;

static uint64_t textBytes(ArrayRef<uint8_t> memory) {
  uint64_t bytes = std::min<uint64_t>(memory.size(), LargestObject) & ~3ull;
  unsigned run = 0;
  for (uint64_t at = 0; at < bytes; at += 4) {
    run = read32le(&memory[at]) == CodeEnd ? run + 1 : 0;
    if (run == CodeEndRun)
      return at + 4 - 4 * CodeEndRun;
  }
  return bytes;
}

ArrayRef<uint8_t> Module::text() const {
  const uint8_t *from = copy.empty() ? image : copy.data();
  return {from + textBegin, size_t(textEnd - textBegin)};
}

Expected<std::shared_ptr<Module>> Device::load(const MachineCode &code) {
  const Chip &chip = *findChip(chipName);
  if (code.entry % 4)
    return createStringError("machine code: its entry is misaligned");
  if (code.wave32 && chip.isGfx9())
    return createStringError("machine code: it wants wave32, which %s does "
                             "not have",
                             chip.name);
  uint64_t bytes = textBytes(code.memory);
  if (!bytes)
    return createStringError("machine code: there is none at its entry");
  std::shared_ptr<Module> m(new Module());
  m->chipName = chipName;
  m->copy.assign(code.memory.begin(), code.memory.begin() + bytes);
  m->base = code.entry;
  m->textEnd = bytes;
  Kernel k;
  k.rsrc1 = code.rsrc1;
  k.rsrc2 = code.rsrc2;
  k.rsrc3 = code.rsrc3;
  k.data.name = code.name;
  k.data.ldsBytes = (code.rsrc2 >> 15 & 0x1ff) * 512;
  k.data.scratchBytes = code.scratchBytes;
  k.data.waveSize = code.wave32 ? 32 : 64;
  k.data.vgprs = requestedVgprs(chip, code.rsrc1, code.wave32);
  k.owner = m.get();
  m->all.push_back(std::move(k));
  m->code = std::make_unique<Program>(chip, m->copy, 0);
  return m;
}
