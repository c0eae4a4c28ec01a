//===- Global.cpp - global, flat and scratch memory -----------------------===//
//
// One set of handlers for the three segments: an address calculation gives each
// lane a 64-bit flat address or a scratch offset, and the access goes to
// memory, LDS or scratch by where that lies.
//
//===----------------------------------------------------------------------===//
#include "Checks/Checks.h"
#include "Isa/Atomic.h"
#include "Isa/VectorMemory.h"
#include "Timing/Stats.h"
#include "Wave.h"

using namespace greta::sim;

uint8_t *Wave::globalSlow(const Inst &i, uint64_t address, unsigned bytes,
                          int lane, bool write) {
  const Region *r = wg->memory->find(address);
  if (r && r->size - (address - r->base) >= bytes && r->size) {
    lastRegion = r;
    return reinterpret_cast<uint8_t *>(address);
  }
  if (checker &&
      checker->isBeyondArgument(*this, i, lane, address, bytes, write))
    return nullptr;
  std::string where;
  const Region *near = r ? r : wg->memory->nearest(address);
  if (near) {
    int64_t offset = int64_t(address - near->base);
    where = "; the nearest allocation has " + std::to_string(near->size) +
            " bytes and this is byte " + std::to_string(offset) + " of it";
  }
  fault(i,
        llvm::Twine(write ? "write" : "read") + " of " + llvm::Twine(bytes) +
            " bytes at 0x" + llvm::Twine::utohexstr(address) +
            " is out of bounds" + where,
        lane);
  return nullptr;
}

uint8_t *Wave::scratchWord(const Inst &i, uint64_t offset, int lane) {
  if (LLVM_UNLIKELY(offset >= wg->scratchBytes)) {
    fault(i,
          "scratch access at byte " + llvm::Twine(offset) +
              " is outside the work item's " + llvm::Twine(wg->scratchBytes) +
              " bytes",
          lane);
    return nullptr;
  }
  return scratch + (offset / 4 * lanes + unsigned(lane)) * 4 + (offset & 3);
}

namespace {

using u32 = uint32_t;
using u64 = uint64_t;

enum Segment { Memory, FlatSegment, ScratchSegment };

template <Segment S>
void addresses(const Wave &w, const Inst &i, const Operand &va,
               const Operand &sa, u64 *out) {
  unsigned n = w.lanes;
  if constexpr (S == ScratchSegment) {
    u32 base = u32(i.imm) + (sa.kind == Operand::Sgpr ? w.s[sa.index] : 0);
    const u32 *v = va.isVgpr() ? w.v[va.index] : nullptr;
    for (unsigned l = 0; l < n; ++l)
      out[l] = u32(base + (v ? v[l] : 0));
  } else if (sa.kind == Operand::Sgpr && sa.index != slot::Null) {
    u64 base = w.s64(sa.index) + u64(i.imm);
    const u32 *v = va.isVgpr() ? w.v[va.index] : nullptr;
    for (unsigned l = 0; l < n; ++l)
      out[l] = base + (v ? v[l] : 0);
  } else {
    const u32 *v = w.v[va.index];
    u64 offset = u64(i.imm);
    for (unsigned l = 0; l < n; ++l)
      out[l] = (u64(v[MaxLanes + l]) << 32 | v[l]) + offset;
  }
}

/// Returns the host's address of a lane's bytes, in the LDS for flat addresses
/// in its aperture. copyScratch handles scratch, which is not contiguous. Loads
/// and stores may have any address, as amdhsa runs waves in the unaligned
/// access mode and LLVM merges accesses accordingly; atomics are checked.
template <Segment S>
uint8_t *locate(Wave &w, const Inst &i, u64 a, unsigned bytes, unsigned l,
                Access access, const void *stored = nullptr) {
  if (S == FlatSegment && a - SharedAperture < (u64(1) << 32)) {
    uint8_t *p = w.lds(i, a - SharedAperture, bytes, int(l));
    if (p && w.checker)
      w.checker->lds(w, i, l, u32(a - SharedAperture), bytes, access);
    return p;
  }
  uint8_t *p = w.global(i, a, bytes, int(l), access != Access::Read);
  if (p && LLVM_UNLIKELY(w.checker != nullptr))
    w.checker->global(w, i, l, a, bytes, rewritten(access, p, stored, bytes));
  return p;
}

bool inScratch(Segment s, u64 a) {
  return s == ScratchSegment ||
         (s == FlatSegment && a - PrivateAperture < (u64(1) << 32));
}

/// Moves `bytes` between a lane's scratch and a buffer.
bool copyScratch(Wave &w, const Inst &i, u64 a, unsigned bytes, unsigned l,
                 uint8_t *buffer, bool store) {
  if (a >= PrivateAperture)
    a -= PrivateAperture;
  for (unsigned k = 0; k < bytes;) {
    unsigned part = std::min(bytes - k, 4 - unsigned((a + k) & 3));
    uint8_t *p = w.scratchWord(i, a + k, int(l));
    if (!p)
      return false;
    if (store)
      std::memcpy(p, buffer + k, part);
    else
      std::memcpy(buffer + k, p, part);
    k += part;
  }
  return true;
}

template <Segment S> void load(Wave &w, const Inst &i) {
  u64 a[MaxLanes];
  addresses<S>(w, i, i.src[0], i.src[1], a);
  unsigned bytes = i.param & BytesMask;
  u32(*d)[MaxLanes] = &w.v[i.dst[0].index];
  if (S == Memory && w.stats)
    countGlobal(w, a, bytes, false);
  for (u64 m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    uint8_t buffer[16];
    const uint8_t *p = buffer;
    if (inScratch(S, a[l])) {
      if (!copyScratch(w, i, a[l], bytes, l, buffer, false))
        return;
    } else if (!(p = locate<S>(w, i, a[l], bytes, l, Access::Read))) {
      return;
    }
    if (bytes >= 4) {
      for (unsigned k = 0; k < bytes / 4; ++k)
        std::memcpy(&d[k][l], p + 4 * k, 4);
    } else {
      u32 x = 0;
      std::memcpy(&x, p, bytes);
      d[0][l] = widen(x, i.param, d[0][l]);
    }
  }
}

template <Segment S> void store(Wave &w, const Inst &i) {
  alignas(32) u32 t[4][MaxLanes];
  u64 a[MaxLanes];
  addresses<S>(w, i, i.src[0], i.src[2], a);
  unsigned bytes = i.param & BytesMask;
  const u32 *data = w.rows(i.src[1], bytes < 4 ? 1 : bytes / 4, t[0]);
  if (S == Memory && w.stats)
    countGlobal(w, a, bytes, true);
  for (u64 m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    u32 x[4];
    for (unsigned k = 0; k < (bytes + 3) / 4; ++k)
      x[k] = data[k * MaxLanes + l];
    if (i.param & High)
      x[0] >>= 16;
    if (inScratch(S, a[l])) {
      if (!copyScratch(w, i, a[l], bytes, l, reinterpret_cast<uint8_t *>(x),
                       true))
        return;
    } else {
      uint8_t *p = locate<S>(w, i, a[l], bytes, l, Access::Write, x);
      if (!p)
        return;
      std::memcpy(p, x, bytes);
    }
  }
}

/// Takes address, data, scalar base. The compare value follows the new one.
template <Segment S, class T> void atomicT(Wave &w, const Inst &i) {
  constexpr unsigned words = sizeof(T) / 4;
  alignas(32) u32 t[4][MaxLanes];
  u64 a[MaxLanes];
  addresses<S>(w, i, i.src[0], i.src[2], a);
  u32 op = i.param & AtomicOpMask;
  bool cas = isCompareSwap(op);
  const u32 *data = w.rows(i.src[1], cas ? 2 * words : words, t[0]);
  if (S == Memory && w.stats)
    countGlobal(w, a, sizeof(T), true);
  for (u64 m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    auto word = [&](unsigned k) {
      T r = data[k * words * MaxLanes + l];
      if constexpr (words == 2)
        r |= T(data[(k * words + 1) * MaxLanes + l]) << 32;
      return r;
    };
    if (inScratch(S, a[l]))
      return w.fault(i, "atomic on scratch memory", int(l));
    if (a[l] % sizeof(T))
      return w.fault(
          i, "misaligned atomic at 0x" + llvm::Twine::utohexstr(a[l]), int(l));
    uint8_t *p = locate<S>(w, i, a[l], sizeof(T), l, Access::Atomic);
    if (!p)
      return;
    T old = atomicRun<T>(op, p, word(0), cas ? word(1) : T(0));
    if (i.dst[0]) {
      u32 *d = w.v[i.dst[0].index];
      d[l] = u32(old);
      if constexpr (words == 2)
        d[MaxLanes + l] = u32(u64(old) >> 32);
    }
  }
}
template <Segment S> void atomic(Wave &w, const Inst &i) {
  if (i.param & Atomic64)
    atomicT<S, u64>(w, i);
  else
    atomicT<S, u32>(w, i);
}

/// Loads to LDS: lane l's data goes to M0 + offset + l * size.
template <Segment S> void loadToLds(Wave &w, const Inst &i) {
  u64 a[MaxLanes];
  addresses<S>(w, i, i.src[0], i.src[1], a);
  unsigned bytes = i.param & BytesMask;
  unsigned pitch = bytes < 4 ? 4 : bytes;
  if (S == Memory && w.stats)
    countGlobal(w, a, bytes, false);
  u32 mask = w.chip->family == Family::GFX950 ? 0x3ffff : 0xffff;
  u32 base = (w.s[slot::M0] & mask) + u32(i.imm);
  for (u64 m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    uint8_t buffer[16];
    if (inScratch(S, a[l])) {
      if (!copyScratch(w, i, a[l], bytes, l, buffer, false))
        return;
    } else {
      const uint8_t *p = locate<S>(w, i, a[l], bytes, l, Access::Read);
      if (!p)
        return;
      std::memcpy(buffer, p, bytes);
    }
    uint8_t *q = w.lds(i, base + l * pitch, pitch, int(l));
    if (!q)
      return;
    if (bytes < 4) {
      u32 x = 0;
      std::memcpy(&x, buffer, bytes);
      x = widen(x, i.param, 0);
      std::memcpy(buffer, &x, 4);
    }
    std::memcpy(q, buffer, pitch);
    if (w.checker)
      w.checker->lds(w, i, l, base + l * pitch, pitch, Access::Write);
  }
}

/// gfx12's transposed loads: eight lanes hand each other elements. Lane l's
/// element j is element l % 8 of what was at the address of lane
///   16 bits  8 * (l / 8) + j
///   8 bits   16 * (l / 16) + 8 * (j / 4) + 4 * (l / 8 % 2) + j % 4
/// as measured on gfx1201 (and 16 bits on gfx1250) by several projects; nobody
/// published wave64's.
void loadTranspose(Wave &w, const Inst &i) {
  u64 a[MaxLanes];
  addresses<Memory>(w, i, i.src[0], i.src[1], a);
  unsigned bytes = i.param, esize = bytes / 8;
  if (!w.wave32)
    return w.fault(i, "what transposed loads do in wave64 is not documented");
  if (!w.execFull)
    return w.fault(i, "a transposed load needs all lanes active");
  if (w.stats)
    countGlobal(w, a, bytes, false);
  uint8_t raw[MaxLanes][16];
  for (unsigned l = 0; l < w.lanes; ++l) {
    const uint8_t *p = locate<Memory>(w, i, a[l], bytes, l, Access::Read);
    if (!p)
      return;
    std::memcpy(raw[l], p, bytes);
  }
  for (unsigned l = 0; l < w.lanes; ++l) {
    uint8_t out[16];
    for (unsigned j = 0; j < 8; ++j) {
      unsigned from = esize == 2
                          ? l / 8 * 8 + j
                          : l / 16 * 16 + j / 4 * 8 + l / 8 % 2 * 4 + j % 4;
      std::memcpy(out + j * esize, raw[from] + l % 8 * esize, esize);
    }
    for (unsigned k = 0; k < bytes / 4; ++k)
      std::memcpy(&w.v[i.dst[0].index + k][l], out + 4 * k, 4);
  }
}

/// Accesses the word at the scalar address + offset + 4 * lane. Sources: data
/// in stores, address.
template <bool Store> void addTid(Wave &w, const Inst &i) {
  const Operand &base = i.src[Store];
  u64 start = u64(i.imm) + (base.kind == Operand::Sgpr ? w.s64(base.index) : 0);
  alignas(32) u32 t[MaxLanes];
  const u32 *data = Store ? w.rows(i.src[0], 1, t) : nullptr;
  for (u64 m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    uint8_t *p = locate<Memory>(w, i, start + 4 * l, 4, l,
                                Store ? Access::Write : Access::Read);
    if (!p)
      return;
    if (Store)
      std::memcpy(p, &data[l], 4);
    else
      std::memcpy(&w.v[i.dst[0].index][l], p, 4);
  }
}

/// Moves up to 32 registers. Register k is at address + 4 * k, and takes part
/// when bit k of M0 is set.
template <Segment S, bool Store> void block(Wave &w, const Inst &i) {
  u64 a[MaxLanes];
  addresses<S>(w, i, i.src[0], i.src[Store ? 2 : 1], a);
  u32(*d)[MaxLanes] = &w.v[(Store ? i.src[1] : i.dst[0]).index];
  u32 registers = w.s[slot::M0];
  for (u64 m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    for (u32 r = registers; r; r &= r - 1) {
      unsigned k = unsigned(llvm::countr_zero(r));
      u64 at = a[l] + 4 * k;
      uint8_t *word = reinterpret_cast<uint8_t *>(&d[k][l]);
      if (inScratch(S, at)) {
        if (!copyScratch(w, i, at, 4, l, word, Store))
          return;
        continue;
      }
      uint8_t *p =
          locate<S>(w, i, at, 4, l, Store ? Access::Write : Access::Read);
      if (!p)
        return;
      std::memcpy(Store ? p : word, Store ? word : p, 4);
    }
  }
}

#define SEG(prefix, seg, unit, name, fn, types, param)                         \
  {prefix name, fn<seg>, types, param, Optional, Unit::unit}
#define ATOMIC_SEG(prefix, seg, unit, name, op)                                \
  {prefix name, atomic<seg>, "?r=rrr", op, Optional | Returns, Unit::unit}
#define LOAD(name, param)                                                      \
  SEG("global_", Memory, Global, "load_" name, load, "r=rr", param),           \
      SEG("flat_", FlatSegment, Flat, "load_" name, load, "r=rr", param),      \
      SEG("scratch_", ScratchSegment, Scratch, "load_" name, load, "r=rr",     \
          param)
#define STORE(name, param)                                                     \
  SEG("global_", Memory, Global, "store_" name, store, "=rrr", param),         \
      SEG("flat_", FlatSegment, Flat, "store_" name, store, "=rrr", param),    \
      SEG("scratch_", ScratchSegment, Scratch, "store_" name, store, "=rrr",   \
          param)
#define NOT_FLAT_ATOMIC(name, op)                                              \
  ATOMIC_SEG("global_", Memory, Global, "atomic_" name, op)
#define ATOMIC(name, op)                                                       \
  NOT_FLAT_ATOMIC(name, op),                                                   \
      ATOMIC_SEG("flat_", FlatSegment, Flat, "atomic_" name, op)

#define TO_LDS(name, param)                                                    \
  {"global_load_lds_" name,                                                    \
   loadToLds<Memory>,                                                          \
   "=rr",                                                                      \
   param,                                                                      \
   Optional,                                                                   \
   Unit::Global},                                                              \
  {                                                                            \
    "scratch_load_lds_" name, loadToLds<ScratchSegment>, "=rr", param,         \
        Optional, Unit::Scratch                                                \
  }

const OpInfo table[] = {
#include "Isa/MemoryOps.def"
    TO_LDS("ubyte", 1),
    TO_LDS("sbyte", 1 | Sign),
    TO_LDS("ushort", 2),
    TO_LDS("sshort", 2 | Sign),
    TO_LDS("dword", 4),
    {"global_load_lds_dwordx3", loadToLds<Memory>, "=rr", 12, Optional,
     Unit::Global},
    {"global_load_lds_dwordx4", loadToLds<Memory>, "=rr", 16, Optional,
     Unit::Global},
    {"global_load_tr_b64", loadTranspose, "r=rr", 8, Optional, Unit::Global},
    {"global_load_tr_b128", loadTranspose, "r=rr", 16, Optional, Unit::Global},
    {"global_load_dword_addtid", addTid<false>, "i=r", 0, 0, Unit::Global},
    {"global_store_dword_addtid", addTid<true>, "=ir", 0, 0, Unit::Global},
    {"global_load_addtid_b32", addTid<false>, "i=r", 0, 0, Unit::Global},
    {"global_store_addtid_b32", addTid<true>, "=ir", 0, 0, Unit::Global},
    {"global_load_block", block<Memory, false>, "r=rr", 0, Optional,
     Unit::Global},
    {"global_store_block", block<Memory, true>, "=rrr", 0, Optional,
     Unit::Global},
    {"scratch_load_block", block<ScratchSegment, false>, "r=rr", 0, Optional,
     Unit::Scratch},
    {"scratch_store_block", block<ScratchSegment, true>, "=rrr", 0, Optional,
     Unit::Scratch},
};

} // namespace

OpTable greta::sim::globalOps() { return table; }
