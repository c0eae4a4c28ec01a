//===- Atomic.h - read-modify-write operations on memory --------*- C++ -*-===//
//
// Shared by LDS, global, flat and buffer atomics. Workgroups run on several
// threads, so every operation is a compare-and-swap loop on the host's memory.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_ATOMIC_H
#define GRETA_SIM_ATOMIC_H

#include "Isa/Float.h"
#include <cstdint>

namespace greta::sim {

enum AtomicOp : uint32_t {
  AtomicSwap,
  AtomicCmpSwap,
  AtomicAdd,
  AtomicSub,
  AtomicRsub,
  AtomicSmin,
  AtomicUmin,
  AtomicSmax,
  AtomicUmax,
  AtomicAnd,
  AtomicOr,
  AtomicXor,
  AtomicInc,
  AtomicDec,
  AtomicSubClamp, ///< subtract, zero below zero
  AtomicCondSub,  ///< subtract where that is not below zero
  AtomicAddF,
  AtomicMinF,
  AtomicMaxF,
  AtomicPkAddF16,
  AtomicPkAddBf16,
  AtomicMskor,
  AtomicCmpSwapF, ///< compares as floats
  AtomicWrap,     ///< old >= x ? old - x : old + second
  AtomicOpMask = 31,
  Atomic64 = 32, ///< two words
};

template <class T> T atomicApply(uint32_t op, T old, T x, T cmp) {
  using S = std::make_signed_t<T>;
  using Fp = std::conditional_t<sizeof(T) == 8, double, float>;
  auto f = [](T v) { return llvm::bit_cast<Fp>(v); };
  auto b = [](Fp v) { return llvm::bit_cast<T>(v); };
  switch (op & AtomicOpMask) {
  case AtomicSwap:
    return x;
  case AtomicCmpSwap:
    return old == cmp ? x : old;
  case AtomicCmpSwapF:
    return f(old) == f(cmp) ? x : old;
  case AtomicAdd:
    return old + x;
  case AtomicSub:
    return old - x;
  case AtomicRsub:
    return x - old;
  case AtomicSmin:
    return S(old) < S(x) ? old : x;
  case AtomicUmin:
    return old < x ? old : x;
  case AtomicSmax:
    return S(old) > S(x) ? old : x;
  case AtomicUmax:
    return old > x ? old : x;
  case AtomicAnd:
    return old & x;
  case AtomicOr:
    return old | x;
  case AtomicXor:
    return old ^ x;
  case AtomicInc:
    return old >= x ? 0 : old + 1;
  case AtomicDec:
    return old == 0 || old > x ? x : old - 1;
  case AtomicSubClamp:
    return old < x ? 0 : old - x;
  case AtomicCondSub:
    return old < x ? old : old - x;
  case AtomicAddF:
    return b(f(old) + f(x));
  case AtomicMinF:
  case AtomicMaxF: { // a NaN gives the other; -0 < +0
    Fp p = f(old), q = f(x);
    bool less = p < q || (p == q && std::signbit(p));
    return p != p                                                  ? x
           : q != q || less == ((op & AtomicOpMask) == AtomicMinF) ? old
                                                                   : x;
  }
  case AtomicMskor:
    return (old & ~x) | cmp;
  case AtomicWrap:
    return old >= x ? old - x : old + cmp;
  case AtomicPkAddF16: {
    uint32_t o = uint32_t(old), y = uint32_t(x);
    uint32_t lo =
        floatToHalf(halfToFloat(uint16_t(o)) + halfToFloat(uint16_t(y)));
    uint32_t hi = floatToHalf(halfToFloat(uint16_t(o >> 16)) +
                              halfToFloat(uint16_t(y >> 16)));
    return lo | hi << 16;
  }
  default: {
    uint32_t o = uint32_t(old), y = uint32_t(x);
    uint32_t lo =
        floatToBf16(bf16ToFloat(uint16_t(o)) + bf16ToFloat(uint16_t(y)));
    uint32_t hi = floatToBf16(bf16ToFloat(uint16_t(o >> 16)) +
                              bf16ToFloat(uint16_t(y >> 16)));
    return lo | hi << 16;
  }
  }
}

/// Returns whether an operation takes a new value and one to compare with.
inline bool isCompareSwap(uint32_t op) {
  return (op & AtomicOpMask) == AtomicCmpSwap ||
         (op & AtomicOpMask) == AtomicCmpSwapF;
}

/// p must be aligned to T (callers check).
template <class T> T atomicRun(uint32_t op, uint8_t *p, T x, T cmp) {
  T *at = reinterpret_cast<T *>(p);
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(at, &old, atomicApply<T>(op, old, x, cmp),
                                      true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    ;
  return old;
}

} // namespace greta::sim

#endif
