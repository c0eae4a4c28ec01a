//===- InitialState.cpp - registers and memory that waves begin with ------===//
//
// Does the work of the command processor: argument segment with the hidden
// arguments, dispatch packet, initial registers by the kernel descriptor.
//
//===----------------------------------------------------------------------===//
#include "Checks/Checks.h"
#include "Launch.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"

using namespace greta::sim;
using namespace llvm;
using support::endian::write16le;
using support::endian::write32le;
using support::endian::write64le;

void Launch::fillHidden(const KernelArgument &a, uint8_t *p) {
  StringRef kind = a.kind;
  const Dim3 &g = config.grid, &b = config.block;
  auto put = [&](uint64_t x) {
    uint8_t bytes[8];
    write64le(bytes, x);
    std::memcpy(p, bytes, std::min<uint32_t>(a.size, 8));
  };
  unsigned dims = g.z * b.z > 1 ? 3 : g.y * b.y > 1 ? 2 : 1;
  put(StringSwitch<uint64_t>(kind)
          .Case("hidden_block_count_x", g.x)
          .Case("hidden_block_count_y", g.y)
          .Case("hidden_block_count_z", g.z)
          .Case("hidden_group_size_x", b.x)
          .Case("hidden_group_size_y", b.y)
          .Case("hidden_group_size_z", b.z)
          .Case("hidden_grid_dims", dims)
          .Case("hidden_private_base", PrivateAperture >> 32)
          .Case("hidden_shared_base", SharedAperture >> 32)
          .Case("hidden_dynamic_lds_size", config.dynamicLds)
          .Default(0));
}

void Launch::fillArguments() {
  // A kernel without arguments has no bytes, not even their address.
  llvm::copy(config.kernarg, arguments);
  for (const KernelArgument &a : info.args)
    if (StringRef(a.kind).starts_with("hidden_"))
      fillHidden(a, arguments + a.offset);
  // hsa_kernel_dispatch_packet_t.
  uint8_t *p = packet;
  const Dim3 &g = config.grid, &b = config.block;
  write16le(p + 2, 3);
  write16le(p + 4, uint16_t(b.x));
  write16le(p + 6, uint16_t(b.y));
  write16le(p + 8, uint16_t(b.z));
  write32le(p + 12, g.x * b.x);
  write32le(p + 16, g.y * b.y);
  write32le(p + 20, g.z * b.z);
  write32le(p + 24, info.scratchBytes);
  write32le(p + 28, ldsBytes);
  write64le(p + 40, reinterpret_cast<uint64_t>(arguments));
}

void Launch::startWave(Workgroup &g, unsigned worker, unsigned index,
                       uint8_t *memory) {
  Wave &w = g.waves[index];
  auto *rows = w.v;
  Checker *checker = w.checker;
  LaunchStats *stats = w.stats;
  GroupTrace *timeline = w.timeline;
  w = Wave();
  w.v = rows;
  w.checker = checker;
  w.stats = stats;
  w.timeline = timeline;
  w.wg = &g;
  w.id = index;
  w.chip = &chip;
  w.program = kernel.module().program();
  w.wave32 = wave32;
  w.lanes = uint8_t(info.waveSize);
  w.fullMask = wave32 ? 0xffffffffu : ~uint64_t(0);
  w.budget = config.instructionBudget;
  w.pc = entryIndex;
  w.scratch = memory;
  w.state = RunState::Running;
  w.mode = kernel.rsrc1 >> 12 & 0xff;
  w.mode |= (kernel.rsrc1 >> 21 & 1) << 8 | (kernel.rsrc1 >> 23 & 1) << 9;
  w.mode |= (kernel.rsrc1 >> 26 & 1) << 23; // FP16_OVFL
  w.applyMode();

  setWorkItems(w);
  setScalars(w, g, worker, index, memory);
}

/// Sets the lanes' ids in vector registers, and which lanes there are.
void Launch::setWorkItems(Wave &w) {
  Checker *checker = w.checker;
  uint32_t items = uint32_t(config.block.count());
  uint32_t first = w.id * w.lanes;
  uint32_t count = std::min<uint32_t>(items - first, w.lanes);
  // ENABLE_VGPR_WORKITEM_ID says which of y and z there are beside x. If all
  // share one register the others are zeros, as LLVM masks nothing then.
  unsigned dims = 1 + std::min(kernel.rsrc2 >> 11 & 3, 2u);
  bool packed = !chip.isGfx10();
  for (unsigned l = 0; l < count; ++l) {
    uint32_t id = first + l, word = 0;
    for (unsigned d = 0; d < dims; ++d) {
      uint32_t size = d == 0 ? config.block.x : config.block.y;
      uint32_t at = d == 2 ? id : id % size;
      id /= size;
      word |= at << 10 * d;
      if (!packed)
        w.v[d][l] = at;
    }
    if (packed)
      w.v[0][l] = word;
  }
  w.setExec(count == 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1);
  for (unsigned r = 0; checker && r < (packed ? 1 : dims); ++r)
    checker->defineVector(w, r);
}

/// Sets scalar registers as the descriptor asks for them.
void Launch::setScalars(Wave &w, const Workgroup &g, unsigned worker,
                        unsigned index, uint8_t *memory) {
  Checker *checker = w.checker;
  w.s[slot::SharedBase + 1] = uint32_t(SharedAperture >> 32);
  w.s[slot::PrivateBase + 1] = uint32_t(PrivateAperture >> 32);
  w.s[slot::SharedLimit] = w.s[slot::PrivateLimit] = ~0u;
  w.s[slot::SharedLimit + 1] = uint32_t(SharedAperture >> 32);
  w.s[slot::PrivateLimit + 1] = uint32_t(PrivateAperture >> 32);

  // User SGPRs are in the order of the descriptor's bits.
  unsigned n = 0;
  auto put = [&](uint32_t x) {
    if (n < 100)
      w.s[n] = x;
    ++n;
  };
  auto put64 = [&](uint64_t x) {
    put(uint32_t(x));
    put(uint32_t(x >> 32));
  };
  uint64_t scratchBase = reinterpret_cast<uint64_t>(memory);
  if (kernel.properties & 1) {
    put(uint32_t(scratchBase));
    put(uint32_t(scratchBase >> 32) | 1u << 31); // swizzled
    put(~0u);
    // It has 4-byte elements, a wave's stride, add tid; gfx10's has no bounds.
    put((chip.isGfx9() ? 1u << 19 : 2u << 28) | (wave32 ? 2u : 3u) << 21 |
        1u << 23);
  }
  if (kernel.properties & 2)
    put64(reinterpret_cast<uint64_t>(packet));
  if (kernel.properties & 4)
    put64(reinterpret_cast<uint64_t>(packet)); // no queue: a readable address
  if (kernel.properties & 8)
    put64(reinterpret_cast<uint64_t>(arguments));
  if (kernel.properties & 16)
    put64(1);
  if (kernel.properties & 32)
    put64(scratchBase);
  if (kernel.properties & 64)
    put(info.scratchBytes);
  // Arguments are preloaded here, and again by the code's own prologue.
  unsigned preload = kernel.preload & 0x7f, from = kernel.preload >> 7;
  for (unsigned k = 0; k < preload; ++k) {
    uint32_t x = 0;
    if ((from + k + 1) * 4 <= info.kernargBytes)
      std::memcpy(&x, arguments + (from + k) * 4, 4);
    put(x);
  }
  for (uint32_t x : config.userSgprs)
    put(x);
  n = std::max<unsigned>(n, kernel.rsrc2 >> 1 & 31);
  bool enabled[3];
  for (unsigned d = 0; d < 3; ++d) {
    enabled[d] = kernel.rsrc2 >> (7 + d) & 1;
    if (enabled[d] && !chip.architectedIds)
      put(g.id[d]);
  }
  if (kernel.rsrc2 >> 10 & 1)
    put(workgroupInfo(index));
  // The wave's scratch offset: HSA's descriptor has the wave's own base, other
  // drivers have one base for all waves.
  if ((kernel.rsrc2 & 1) && !chip.archFlatScratch)
    put(config.userSgprs.empty() ? 0
                                 : (worker * wavesPerGroup + index) *
                                       info.scratchBytes * info.waveSize);
  bool hasYZ = enabled[1] || enabled[2];
  if (chip.architectedIds) {
    w.s[slot::TTMP + 9] = g.id[0];
    if (hasYZ)
      w.s[slot::TTMP + 7] = g.id[1] | g.id[2] << 16;
    w.s[slot::TTMP + 8] = index << 25 | uint32_t(hasYZ) << 30;
  }
  if (checker) {
    checker->defineScalar(w, 0, std::min(n, 106u));
    checker->defineScalar(w, slot::TTMP, 16);
    if (chip.architectedIds && !hasYZ)
      checker->undefineScalar(w, slot::TTMP + 7);
  }
}

/// Returns TG_SIZE, LLVM's workgroup info: bits 0-5 count the workgroup's
/// waves, bit 31 says whether this is the first. RDNA 2 and 3, CDNA 3 and 4
/// (the ISA manuals' tables of a compute wave's SGPRs; Mesa for RDNA 2) have
/// the wave's number in bits 20-24. Before, the ordered-append term in bits
/// 6-16 counts the waves, as in Mesa; RDNA 4 has the number in TTMP8 alone.
uint32_t Launch::workgroupInfo(unsigned wave) const {
  uint32_t size = wavesPerGroup & 63;
  if (chip.isGfx12())
    return size;
  unsigned at = chip.family == Family::GFX90A ? 6 : 20;
  return uint32_t(wave == 0) << 31 | wave << at | size;
}
