//===- Buffer.cpp - buffer loads, stores and atomics ----------------------===//
//
// A buffer resource is four scalars: base, stride, records, flags. Accesses out
// of its range read zero and write nothing, word by word; accesses in range
// must lie in an allocation like any other. Swizzled buffers with the thread id
// in the index are how gfx90a reaches scratch.
//
//   linear     base + scalar offset + index * stride + offset
//   swizzled   elements of 2 to 16 bytes of `index stride` neighbours lie side
//              by side: base + scalar offset + (index / is * stride +
//              offset / es * es) * is + index % is * es + offset % es; gfx11
//              and later add the scalar offset to the offset first; gfx9 and
//              gfx11 choose the element size, gfx10 has 4 bytes (RDNA2 ISA 8.1)
//
// Out of range (AMD RDNA4 ISA 9.4.1):
//   stride 0   offset + bytes > records - scalar offset           OOB_SELECT 3
//   stride     index >= records, offset + bytes > stride                     0
//              index >= records                                              1
//              records == 0                                                  2
// gfx9 (Mesa's notes on NUM_RECORDS in si_make_buffer_descriptor; AMD's
// assembly in ROCm/aiter counts on both):
//   stride 0 or no index   offset + bytes > records - scalar offset
//   else                   index >= records; swizzled buffers also
//                          offset + bytes > stride
//
//===----------------------------------------------------------------------===//
#include "Checks/Checks.h"
#include "Isa/Atomic.h"
#include "Isa/VectorMemory.h"
#include "Timing/Stats.h"
#include "Wave.h"

using namespace greta::sim;

namespace {

using u32 = uint32_t;
using u64 = uint64_t;

struct Resource {
  u64 base, stride, records, elementBytes, indexStride;
  u32 scalarOffset;
  bool addTid, swizzle, gfx9, scalarFirst;
  bool hasIndex = false;
  unsigned outOfBounds = 0; ///< OOB_SELECT

  Resource(const Wave &w, const Inst &i, const Operand &o, const Operand &soff)
      : scalarOffset(w.scalar(soff)), gfx9(w.chip->isGfx9()),
        scalarFirst(w.chip->isGfx11Plus()) {
    const u32 *r = &w.s[o.index];
    auto field = [&](unsigned word, unsigned at, unsigned bits) {
      return r[word] >> at & ((1u << bits) - 1);
    };
    base = u64(r[1] & 0xffff) << 32 | r[0];
    stride = field(1, 16, 14);
    records = r[2];
    addTid = field(3, 23, 1);
    indexStride = 8u << field(3, 21, 2);
    hasIndex = i.has(IdxEn) || addTid;
    if (gfx9) {
      swizzle = r[1] >> 31;
      elementBytes = 2u << field(3, 19, 2);
      if (addTid) // the data format's bits
        stride |= field(3, 15, 4) << 14;
    } else { // on gfx11 swizzle tells the element size as well
      unsigned kind = field(1, 30, 2);
      swizzle = scalarFirst ? kind : kind >> 1;
      elementBytes = scalarFirst && kind == 3 ? 16 : 4;
      outOfBounds = field(3, 28, 2);
    }
  }

  u64 address(u64 index, u64 offset) const {
    if (!swizzle)
      return base + scalarOffset + index * stride + offset;
    u64 start = base;
    if (scalarFirst)
      offset = u32(offset + scalarOffset);
    else
      start += scalarOffset;
    return start +
           (index / indexStride * stride +
            offset / elementBytes * elementBytes) *
               indexStride +
           index % indexStride * elementBytes + offset % elementBytes;
  }

  bool inRange(u64 index, u64 offset, unsigned bytes) const {
    u64 left = records > scalarOffset ? records - scalarOffset : 0;
    if (gfx9)
      return stride == 0 || !hasIndex
                 ? offset + bytes <= left
                 : index < records && (!swizzle || offset + bytes <= stride);
    switch (outOfBounds) {
    case 0:
      return index < records && offset + bytes <= stride;
    case 1:
      return index < records;
    case 2:
      return records != 0;
    default:
      return swizzle && stride ? index < records && offset + bytes <= stride
                               : offset + bytes <= left;
    }
  }
};

struct Lanes {
  Resource resource;
  u64 address[MaxLanes], index[MaxLanes], offset[MaxLanes];
  u64 inRange = 0; ///< lanes whose whole access is inside the records
  /// Consecutive words are consecutive in memory, even across two elements.
  bool contiguous;
  u64 word(unsigned l, unsigned k) const {
    return contiguous ? address[l] + 4 * k
                      : resource.address(index[l], offset[l] + 4 * k);
  }
  bool wordInRange(unsigned l, unsigned k) const {
    return (inRange >> l & 1) ||
           resource.inRange(index[l], offset[l] + 4 * k, 4);
  }

  /// Takes sources by position: address (or none), resource, scalar offset.
  Lanes(Wave &w, const Inst &i, const Operand &va, const Operand &rsrc,
        const Operand &soff, unsigned bytes)
      : resource(w, i, rsrc, soff) {
    contiguous = !resource.swizzle || bytes <= resource.elementBytes;
    const u32 *indices = nullptr, *offsets = nullptr;
    if (va.isVgpr()) {
      const u32 *p = w.v[va.index];
      if (i.has(IdxEn)) {
        indices = p;
        p += MaxLanes;
      }
      if (i.has(OffEn))
        offsets = p;
    }
    for (unsigned l = 0; l < w.lanes; ++l) {
      index[l] = (indices ? indices[l] : 0) + u64(resource.addTid ? l : 0);
      offset[l] = u64(i.imm) + (offsets ? offsets[l] : 0);
      address[l] = resource.address(index[l], offset[l]);
      inRange |= u64(resource.inRange(index[l], offset[l], bytes)) << l;
    }
  }
};

uint8_t *locate(Wave &w, const Inst &i, u64 a, unsigned bytes, unsigned l,
                Access access, const void *stored = nullptr) {
  uint8_t *p = w.global(i, a, bytes, int(l), access != Access::Read);
  if (p && w.checker)
    w.checker->global(w, i, l, a, bytes, rewritten(access, p, stored, bytes));
  return p;
}

void load(Wave &w, const Inst &i) {
  unsigned bytes = i.param & BytesMask;
  // Direct-to-LDS forms have no destination operand.
  Lanes a(w, i, i.src[0], i.src[1], i.src[2], bytes);
  if (w.stats)
    countGlobal(w, a.address, bytes, false);
  bool toLds = i.has(ToLds), whole = a.contiguous;
  for (u64 m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    u32 x[4] = {};
    bool in = a.inRange >> l & 1;
    if (bytes >= 4 && whole && in) {
      uint8_t *p = locate(w, i, a.address[l], bytes, l, Access::Read);
      if (!p)
        return;
      std::memcpy(x, p, bytes);
    } else if (bytes >= 4) {
      for (unsigned k = 0; k < bytes / 4; ++k) {
        if (!a.wordInRange(l, k))
          continue;
        uint8_t *p = locate(w, i, a.word(l, k), 4, l, Access::Read);
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
  Lanes a(w, i, i.src[1], i.src[2], i.src[3], bytes);
  if (w.stats)
    countGlobal(w, a.address, bytes, true);
  const u32 *data = w.rows(i.src[0], bytes < 4 ? 1 : bytes / 4, t[0]);
  for (u64 m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    bool in = a.inRange >> l & 1;
    if (bytes < 4) {
      if (!in)
        continue;
      u32 x = i.param & High ? data[l] >> 16 : data[l];
      uint8_t *p = locate(w, i, a.address[l], bytes, l, Access::Write, &x);
      if (!p)
        return;
      std::memcpy(p, &x, bytes);
      continue;
    }
    for (unsigned k = 0; k < bytes / 4; ++k) {
      if (!a.wordInRange(l, k))
        continue;
      uint8_t *p = locate(w, i, a.word(l, k), 4, l, Access::Write,
                          &data[k * MaxLanes + l]);
      if (!p)
        return;
      std::memcpy(p, &data[k * MaxLanes + l], 4);
    }
  }
}

template <class T> void atomicT(Wave &w, const Inst &i) {
  constexpr unsigned words = sizeof(T) / 4;
  alignas(32) u32 t[4][MaxLanes];
  Lanes a(w, i, i.src[1], i.src[2], i.src[3], sizeof(T));
  u32 op = i.param & AtomicOpMask;
  bool cas = isCompareSwap(op);
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
        return w.fault(i,
                       "misaligned buffer atomic at 0x" +
                           llvm::Twine::utohexstr(a.address[l]),
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
  {"buffer_atomic_" name, atomic, "=rrri", op, Returns, Unit::Buffer}
#define NOT_FLAT_ATOMIC ATOMIC

const OpInfo table[] = {
#include "Isa/MemoryOps.def"
};

} // namespace

OpTable greta::sim::bufferOps() { return table; }
