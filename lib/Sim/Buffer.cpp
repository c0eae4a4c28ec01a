//===- Buffer.cpp - buffer loads, stores and atomics ----------------------===//
//
// A buffer resource is four scalars: base, stride, records, flags. Accesses out
// of its range read zero and write nothing; accesses in range must lie in an
// allocation like any other. Swizzled buffers with the thread id in the index
// are how gfx90a reaches scratch.
//
//===----------------------------------------------------------------------===//
#include "Atomic.h"
#include "Checks.h"
#include "Stats.h"
#include "Wave.h"

using namespace greta::sim;

namespace {

using u32 = uint32_t;
using u64 = uint64_t;

enum : u32 { BytesMask = 0xff, Sign = 0x100, High = 0x200, Low = 0x400 };

struct Resource {
  u64 base, stride, records;
  bool addTid, swizzle;
  unsigned elementBytes, indexStride;
  bool raw;

  Resource(const Wave &w, const Operand &o) {
    const u32 *r = &w.s[o.index];
    base = u64(r[1] & 0xffff) << 32 | r[0];
    stride = r[1] >> 16 & 0x3fff;
    records = r[2];
    addTid = r[3] >> 23 & 1;
    swizzle = r[1] >> 31 & 1;
    elementBytes = 2u << (r[3] >> 19 & 3);
    indexStride = 8u << (r[3] >> 21 & 3);
    raw = false;
    if (!w.chip->isGfx9()) { // gfx11: swizzle is two bits with the element size
      unsigned mode = r[1] >> 30 & 3;
      swizzle = mode;
      elementBytes = mode == 3 ? 16 : mode == 2 ? 8 : 4;
    }
  }
};

struct Lanes {
  u64 address[MaxLanes];
  uint64_t inRange = 0; ///< lanes whose whole access is inside the records
  uint64_t records[MaxLanes]; ///< bytes left from the offset, for partial reads
};

/// Sources by position: address (or none), resource, scalar offset.
void addresses(Wave &w, const Inst &i, const Operand &va, const Operand &rsrc,
               const Operand &soff, unsigned bytes, Lanes &out) {
  Resource r(w, rsrc);
  u32 so = w.scalar(soff);
  const u32 *index = nullptr, *offset = nullptr;
  if (va.isVgpr()) {
    const u32 *p = w.v[va.index];
    if (i.has(IdxEn)) {
      index = p;
      if (i.has(OffEn))
        offset = p + MaxLanes;
    } else if (i.has(OffEn)) {
      offset = p;
    }
  }
  for (unsigned l = 0; l < w.lanes; ++l) {
    u64 idx = (index ? index[l] : 0) + (r.addTid ? l : 0);
    u64 off = u64(i.imm) + (offset ? offset[l] : 0);
    bool in;
    u64 where;
    u64 left = 0;
    if (r.swizzle && (r.addTid || r.stride)) {
      u64 stride = r.stride ? r.stride : r.elementBytes;
      if (r.addTid && !r.stride)
        stride = 0;
      where = r.base + so + idx / r.indexStride * stride * r.indexStride +
              off / r.elementBytes * r.elementBytes * r.indexStride +
              idx % r.indexStride * r.elementBytes + off % r.elementBytes;
      in = true;
      left = bytes;
    } else {
      where = r.base + so + idx * r.stride + off;
      if (r.stride && index) {
        in = idx < r.records && off + bytes <= r.stride;
        left = in ? bytes : 0;
      } else {
        u64 limit =
            r.stride && w.chip->isGfx9() ? r.records * r.stride : r.records;
        // Range checking sees the offset without the scalar one on gfx9+.
        in = off + bytes <= limit;
        left = off < limit ? limit - off : 0;
      }
    }
    out.address[l] = where;
    out.records[l] = left;
    out.inRange |= u64(in) << l;
  }
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

uint8_t *locate(Wave &w, const Inst &i, u64 a, unsigned bytes, unsigned l,
                Access access) {
  uint8_t *p = w.global(i, a, bytes, int(l), access != Access::Read);
  if (p && w.checker)
    w.checker->global(w, i, l, a, bytes, access);
  return p;
}

/// Whether an access is to a wave's own swizzled scratch, where the words of
/// one work item are a wave apart.
bool scatter(const Wave &w, const Operand &rsrc) {
  Resource r(w, rsrc);
  return r.swizzle && r.addTid;
}

void load(Wave &w, const Inst &i) {
  unsigned bytes = i.param & BytesMask;
  Lanes a;
  // Direct-to-LDS forms have no destination operand.
  addresses(w, i, i.src[0], i.src[1], i.src[2], bytes, a);
  if (w.stats)
    countGlobal(w, a.address, bytes, false);
  bool toLds = i.has(ToLds), spread = scatter(w, i.src[1]);
  unsigned step = spread ? 4u * w.lanes : 4u;
  for (u64 m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    u32 x[4] = {};
    bool in = a.inRange >> l & 1;
    if (bytes >= 4 && !spread && in) {
      uint8_t *p = locate(w, i, a.address[l], bytes, l, Access::Read);
      if (!p)
        return;
      std::memcpy(x, p, bytes);
    } else if (bytes >= 4) {
      for (unsigned k = 0; k < bytes / 4; ++k) {
        if (!in && a.records[l] < 4 * k + 4)
          continue;
        uint8_t *p = locate(w, i, a.address[l] + k * step, 4, l, Access::Read);
        if (!p)
          return;
        std::memcpy(&x[k], p, 4);
      }
    } else {
      if (in) {
        uint8_t *p = locate(w, i, a.address[l], bytes, l, Access::Read);
        if (!p)
          return;
        std::memcpy(x, p, bytes);
      }
      x[0] = widen(x[0], i.param, toLds ? 0 : w.v[i.dst[0].index][l]);
    }
    unsigned words = bytes < 4 ? 1 : bytes / 4;
    if (!toLds) {
      for (unsigned k = 0; k < words; ++k)
        w.v[i.dst[0].index + k][l] = x[k];
      continue;
    }
    u32 at = (w.s[slot::M0] & 0x3ffff) + u32(i.imm) + l * 4 * words;
    uint8_t *q = w.lds(i, at, 4 * words, int(l));
    if (!q)
      return;
    std::memcpy(q, x, 4 * words);
    if (w.checker)
      w.checker->lds(w, i, l, at, 4 * words, Access::Write);
  }
}

/// Sources: data, address, resource, scalar offset.
void store(Wave &w, const Inst &i) {
  unsigned bytes = i.param & BytesMask;
  alignas(32) u32 t[4][MaxLanes];
  Lanes a;
  addresses(w, i, i.src[1], i.src[2], i.src[3], bytes, a);
  if (w.stats)
    countGlobal(w, a.address, bytes, true);
  const u32 *data = w.rows(i.src[0], bytes < 4 ? 1 : bytes / 4, t[0]);
  bool spread = scatter(w, i.src[2]);
  unsigned step = spread ? 4u * w.lanes : 4u;
  for (u64 m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    bool in = a.inRange >> l & 1;
    if (bytes < 4) {
      if (!in)
        continue;
      u32 x = i.param & High ? data[l] >> 16 : data[l];
      uint8_t *p = locate(w, i, a.address[l], bytes, l, Access::Write);
      if (!p)
        return;
      std::memcpy(p, &x, bytes);
      continue;
    }
    for (unsigned k = 0; k < bytes / 4; ++k) {
      if (!in && a.records[l] < 4 * k + 4)
        continue;
      uint8_t *p = locate(w, i, a.address[l] + k * step, 4, l, Access::Write);
      if (!p)
        return;
      std::memcpy(p, &data[k * MaxLanes + l], 4);
    }
  }
}

template <class T> void atomicT(Wave &w, const Inst &i) {
  constexpr unsigned words = sizeof(T) / 4;
  alignas(32) u32 t[4][MaxLanes];
  Lanes a;
  addresses(w, i, i.src[1], i.src[2], i.src[3], sizeof(T), a);
  u32 op = i.param & AtomicOpMask;
  bool cas = op == AtomicCmpSwap;
  const u32 *data = w.rows(i.src[0], cas ? 2 * words : words, t[0]);
  u32(*d)[MaxLanes] = &w.v[i.src[0].index];
  for (u64 m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    auto word = [&](unsigned k) {
      T r = data[k * words * MaxLanes + l];
      if constexpr (words == 2)
        r |= T(data[(k * words + 1) * MaxLanes + l]) << 32;
      return r;
    };
    T old = 0;
    if (a.inRange >> l & 1) {
      if (a.address[l] % sizeof(T))
        return w.fault(
            i, "misaligned atomic at 0x" + llvm::Twine::utohexstr(a.address[l]),
            int(l));
      uint8_t *p = locate(w, i, a.address[l], sizeof(T), l, Access::Atomic);
      if (!p)
        return;
      old = atomicRun<T>(op, p, word(0), cas ? word(1) : T(0));
    }
    if (i.has(Return)) { // the data register receives the old value
      d[0][l] = u32(old);
      if constexpr (words == 2)
        d[1][l] = u32(u64(old) >> 32);
    }
  }
}
void atomic(Wave &w, const Inst &i) {
  if (i.param & Atomic64)
    atomicT<u64>(w, i);
  else
    atomicT<u32>(w, i);
}

#define LOAD(name, param)                                                      \
  {"buffer_load_" name, load, "r=rri", param, 0, Unit::Buffer}
#define STORE(name, param)                                                     \
  {"buffer_store_" name, store, "=rrri", param, 0, Unit::Buffer}
#define ATOMIC(name, op)                                                       \
  {"buffer_atomic_" name, atomic, "=rrri", op, 0, Unit::Buffer}

const OpInfo table[] = {
#include "MemoryOps.def"
};

} // namespace

OpTable greta::sim::bufferOps() { return table; }
