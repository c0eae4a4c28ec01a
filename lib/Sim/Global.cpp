//===- Global.cpp - global, flat and scratch memory -----------------------===//
//
// One set of handlers for the three segments: an address calculation gives each
// lane a 64-bit flat address or a scratch offset, and the access goes to
// memory, LDS or scratch by where that lies.
//
//===----------------------------------------------------------------------===//
#include "Atomic.h"
#include "Checks.h"
#include "Stats.h"
#include "Wave.h"

using namespace greta::sim;

uint8_t *Wave::globalSlow(const Inst &i, uint64_t address, unsigned bytes,
                          int lane, bool write) {
  const Region *r = wg->memory->find(address);
  if (r && r->size - (address - r->base) >= bytes && r->size) {
    lastRegion = r;
    return reinterpret_cast<uint8_t *>(address);
  }
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
enum : u32 {
  BytesMask = 0xff,
  Sign = 0x100,
  High = 0x200, ///< d16_hi: the high half
  Low = 0x400,  ///< d16: the low half, the other stays
};

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

/// Where a lane's bytes are; LDS for flat addresses in its aperture. Scratch is
/// not contiguous and handled by copyScratch. Loads and stores may have any
/// address: amdhsa runs waves in the unaligned access mode, and LLVM merges
/// accesses accordingly; atomics are checked.
template <Segment S>
uint8_t *locate(Wave &w, const Inst &i, u64 a, unsigned bytes, unsigned l,
                Access access) {
  if (S == FlatSegment && a - SharedAperture < (u64(1) << 32)) {
    uint8_t *p = w.lds(i, a - SharedAperture, bytes, int(l));
    if (p && w.checker)
      w.checker->lds(w, i, l, u32(a - SharedAperture), bytes, access);
    return p;
  }
  uint8_t *p = w.global(i, a, bytes, int(l), access != Access::Read);
  if (p && LLVM_UNLIKELY(w.checker != nullptr))
    w.checker->global(w, i, l, a, bytes, access);
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

u32 widen(u32 x, u32 param, u32 old) {
  if (param & Sign)
    x = (param & BytesMask) == 1 ? u32(int32_t(int8_t(x)))
                                 : u32(int32_t(int16_t(x)));
  if (param & Low)
    return (old & 0xffff0000) | (x & 0xffff);
  if (param & High)
    return (old & 0xffff) | x << 16;
  return x;
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
      uint8_t *p = locate<S>(w, i, a[l], bytes, l, Access::Write);
      if (!p)
        return;
      std::memcpy(p, x, bytes);
    }
  }
}

/// Sources: address, data, scalar base. The compare value follows the new one.
template <Segment S, class T> void atomicT(Wave &w, const Inst &i) {
  constexpr unsigned words = sizeof(T) / 4;
  alignas(32) u32 t[4][MaxLanes];
  u64 a[MaxLanes];
  addresses<S>(w, i, i.src[0], i.src[2], a);
  u32 op = i.param & AtomicOpMask;
  bool cas = op == AtomicCmpSwap;
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

/// Global to LDS: lane l's data goes to M0 + offset + l * size.
void loadToLds(Wave &w, const Inst &i) {
  u64 a[MaxLanes];
  Inst plain = i;
  addresses<Memory>(w, plain, i.src[0], i.src[1], a);
  unsigned bytes = i.param & BytesMask;
  unsigned pitch = bytes < 4 ? 4 : bytes;
  if (w.stats)
    countGlobal(w, a, bytes, false);
  u32 base = (w.s[slot::M0] & 0xffff) + u32(i.imm);
  if (w.chip->family == Family::GFX950)
    base = (w.s[slot::M0] & 0x3ffff) + u32(i.imm);
  for (u64 m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    const uint8_t *p = locate<Memory>(w, i, a[l], bytes, l, Access::Read);
    uint8_t *q = p ? w.lds(i, base + l * pitch, pitch, int(l)) : nullptr;
    if (!q)
      return;
    u32 x = 0;
    if (bytes < 4) {
      std::memcpy(&x, p, bytes);
      x = widen(x, i.param, 0);
      std::memcpy(q, &x, 4);
    } else {
      std::memcpy(q, p, bytes);
    }
    if (w.checker)
      w.checker->lds(w, i, l, base + l * pitch, pitch, Access::Write);
  }
}

/// gfx12: transposed global loads across groups of 16 or 32 lanes.
void loadTranspose(Wave &w, const Inst &i) {
  u64 a[MaxLanes];
  addresses<Memory>(w, i, i.src[0], i.src[1], a);
  unsigned bits = i.param >> 16, bytes = i.param & BytesMask;
  uint8_t raw[MaxLanes][16] = {};
  for (unsigned l = 0; l < w.lanes; ++l) {
    const uint8_t *p = locate<Memory>(w, i, a[l], bytes, l, Access::Read);
    if (!p)
      return;
    std::memcpy(raw[l], p, bytes);
  }
  // Each 16 lanes hold a matrix of 16 rows; lane l ends with column l of it.
  unsigned perLane = bytes * 8 / bits, esize = bits / 8;
  for (unsigned l = 0; l < w.lanes; ++l) {
    uint8_t out[16] = {};
    for (unsigned k = 0; k < perLane; ++k) {
      unsigned row = (l / 16) * perLane + k, column = l & 15;
      // Row r: lanes r * 16 / perLane ..., in order.
      unsigned from = row * 16 / perLane + column / perLane;
      std::memcpy(out + k * esize,
                  raw[from % w.lanes] + (column % perLane) * esize, esize);
    }
    for (unsigned k = 0; k < bytes / 4; ++k)
      std::memcpy(&w.v[i.dst[0].index + k][l], out + 4 * k, 4);
  }
}

#define SEG(prefix, seg, unit, name, fn, types, param)                         \
  {prefix name, fn<seg>, types, param, Optional, Unit::unit}
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
#define ATOMIC(name, op)                                                       \
  SEG("global_", Memory, Global, "atomic_" name, atomic, "?r=rrr", op),        \
      SEG("flat_", FlatSegment, Flat, "atomic_" name, atomic, "?r=rrr", op)

const OpInfo table[] = {
    ATOMIC("csub_u32", AtomicCsub),
    ATOMIC("sub_clamp_u32", AtomicCsub),
#include "MemoryOps.def"
    {"global_load_lds_ubyte", loadToLds, "=rr", 1, Optional, Unit::Global},
    {"global_load_lds_sbyte", loadToLds, "=rr", 1 | Sign, Optional,
     Unit::Global},
    {"global_load_lds_ushort", loadToLds, "=rr", 2, Optional, Unit::Global},
    {"global_load_lds_sshort", loadToLds, "=rr", 2 | Sign, Optional,
     Unit::Global},
    {"global_load_lds_dword", loadToLds, "=rr", 4, Optional, Unit::Global},
    {"global_load_lds_dwordx3", loadToLds, "=rr", 12, Optional, Unit::Global},
    {"global_load_lds_dwordx4", loadToLds, "=rr", 16, Optional, Unit::Global},
    {"global_load_tr_b64", loadTranspose, "r=rr", 8 | 8 << 16, Optional,
     Unit::Global},
    {"global_load_tr_b128", loadTranspose, "r=rr", 16 | 16 << 16, Optional,
     Unit::Global},
};

} // namespace

OpTable greta::sim::globalOps() { return table; }
