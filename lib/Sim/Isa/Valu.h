//===- Valu.h - lane-wise instructions from scalar functions ----*- C++ -*-===//
//
// A vector instruction is a plain function on one lane's values, such as
//   float add(float a, float b)
// and valu<add> is its handler: it fetches the sources as rows of lanes,
// applies the source modifiers the types allow, runs the function over all
// lanes in a loop the compiler vectorises, and merges under EXEC. The operand
// types of the instruction table come from the function's signature.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_VALU_H
#define GRETA_SIM_VALU_H

#include "Isa/Float.h"
#include "Wave.h"
#include "llvm/ADT/bit.h"
#include <type_traits>
#include <utility>

#if defined(__clang__)
#define GRETA_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define GRETA_LANES _Pragma("GCC ivdep")
#endif

namespace greta::sim {

struct Half {
  uint16_t bits;
};
struct BHalf {
  uint16_t bits;
};
/// Holds two 16-bit values in a word.
struct Pair {
  uint32_t bits;
};

template <class T> struct LaneType;
template <> struct LaneType<uint32_t> {
  static constexpr char letter = 'i';
  static constexpr unsigned words = 1;
  static uint32_t load(const uint32_t *p, unsigned l) { return p[l]; }
  static void store(uint32_t *p, unsigned l, uint32_t x) { p[l] = x; }
};
template <> struct LaneType<int32_t> {
  static constexpr char letter = 'i';
  static constexpr unsigned words = 1;
  static int32_t load(const uint32_t *p, unsigned l) { return int32_t(p[l]); }
  static void store(uint32_t *p, unsigned l, int32_t x) { p[l] = uint32_t(x); }
};
template <> struct LaneType<float> {
  static constexpr char letter = 'f';
  static constexpr unsigned words = 1;
  static float load(const uint32_t *p, unsigned l) {
    return llvm::bit_cast<float>(p[l]);
  }
  static void store(uint32_t *p, unsigned l, float x) {
    p[l] = llvm::bit_cast<uint32_t>(x);
  }
};
template <> struct LaneType<Pair> {
  static constexpr char letter = 'p';
  static constexpr unsigned words = 1;
  static Pair load(const uint32_t *p, unsigned l) { return {p[l]}; }
  static void store(uint32_t *p, unsigned l, Pair x) { p[l] = x.bits; }
};
template <> struct LaneType<uint16_t> {
  static constexpr char letter = 's';
  static constexpr unsigned words = 1;
  static uint16_t load(const uint32_t *p, unsigned l) { return uint16_t(p[l]); }
  static void store(uint32_t *p, unsigned l, uint16_t x) { p[l] = x; }
};
template <> struct LaneType<int16_t> {
  static constexpr char letter = 's';
  static constexpr unsigned words = 1;
  static int16_t load(const uint32_t *p, unsigned l) { return int16_t(p[l]); }
  static void store(uint32_t *p, unsigned l, int16_t x) { p[l] = uint16_t(x); }
};
template <> struct LaneType<Half> {
  static constexpr char letter = 'h';
  static constexpr unsigned words = 1;
  static Half load(const uint32_t *p, unsigned l) { return {uint16_t(p[l])}; }
  static void store(uint32_t *p, unsigned l, Half x) { p[l] = x.bits; }
};
template <> struct LaneType<BHalf> {
  static constexpr char letter = 'y';
  static constexpr unsigned words = 1;
  static BHalf load(const uint32_t *p, unsigned l) { return {uint16_t(p[l])}; }
  static void store(uint32_t *p, unsigned l, BHalf x) { p[l] = x.bits; }
};
template <> struct LaneType<uint64_t> {
  static constexpr char letter = 'l';
  static constexpr unsigned words = 2;
  static uint64_t load(const uint32_t *p, unsigned l) {
    return uint64_t(p[MaxLanes + l]) << 32 | p[l];
  }
  static void store(uint32_t *p, unsigned l, uint64_t x) {
    p[l] = uint32_t(x);
    p[MaxLanes + l] = uint32_t(x >> 32);
  }
};
template <> struct LaneType<int64_t> {
  static constexpr char letter = 'l';
  static constexpr unsigned words = 2;
  static int64_t load(const uint32_t *p, unsigned l) {
    return int64_t(LaneType<uint64_t>::load(p, l));
  }
  static void store(uint32_t *p, unsigned l, int64_t x) {
    LaneType<uint64_t>::store(p, l, uint64_t(x));
  }
};
template <> struct LaneType<double> {
  static constexpr char letter = 'D';
  static constexpr unsigned words = 2;
  static double load(const uint32_t *p, unsigned l) {
    return llvm::bit_cast<double>(LaneType<uint64_t>::load(p, l));
  }
  static void store(uint32_t *p, unsigned l, double x) {
    LaneType<uint64_t>::store(p, l, llvm::bit_cast<uint64_t>(x));
  }
};

template <class T> constexpr bool isFloatType() {
  return std::is_same_v<T, float> || std::is_same_v<T, double> ||
         std::is_same_v<T, Half> || std::is_same_v<T, BHalf>;
}
template <class T> constexpr bool is16() {
  return std::is_same_v<T, Half> || std::is_same_v<T, BHalf> ||
         std::is_same_v<T, uint16_t> || std::is_same_v<T, int16_t>;
}

/// Returns the radians of the fraction of so many turns; infinities have none.
inline double angle(double turns) {
  return std::remainder(turns, 1.) * 6.283185307179586477;
}

/// MODE's denormal bits of f64 and f16. The host flushes f64 (and f32); f16 is
/// computed in f32, where f16's denormals are normal numbers.
enum DenormalMode : uint32_t {
  Denormals32Out = 0x20,
  Denormals16In = 0x40,
  Denormals16Out = 0x80
};
inline void flushHalves(uint32_t *rows) {
  for (unsigned l = 0; l < MaxLanes; ++l)
    rows[l] = rows[l] & 0x7c00 ? rows[l] : rows[l] & 0xffff8000;
}

/// Returns the rows of a source with its modifiers applied, for lane type T.
template <class T>
inline const uint32_t *fetch(const Wave &w, const Operand &o, uint32_t *tmp) {
  constexpr unsigned words = LaneType<T>::words;
  const uint32_t *p = w.rows(o, words, tmp);
  if constexpr (is16<T>()) {
    if (o.hi) {
      GRETA_LANES
      for (unsigned l = 0; l < MaxLanes; ++l)
        tmp[l] = p[l] >> 16;
      p = tmp;
    }
  }
  if constexpr (std::is_same_v<T, Half>) {
    if (LLVM_UNLIKELY(!(w.mode & Denormals16In))) {
      if (p != tmp)
        std::memcpy(tmp, p, sizeof(uint32_t) * MaxLanes);
      flushHalves(tmp);
      p = tmp;
    }
  }
  if constexpr (isFloatType<T>()) {
    if (o.neg || o.abs) {
      constexpr uint32_t sign = is16<T>() ? 0x8000u : 0x80000000u;
      uint32_t keep = o.abs ? ~sign : ~0u, flip = o.neg ? sign : 0u;
      constexpr unsigned top = (words - 1) * MaxLanes;
      if constexpr (words == 2)
        if (p != tmp)
          std::memcpy(tmp, p, sizeof(uint32_t) * MaxLanes);
      for (unsigned l = 0; l < MaxLanes; ++l)
        tmp[top + l] = (p[top + l] & keep) ^ flip;
      p = tmp;
    }
  } else if constexpr (words == 1 && !is16<T>() && !std::is_same_v<T, Pair>) {
    // Bit operations of f32-typed instructions such as v_cndmask take
    // modifiers.
    if (o.neg || o.abs) {
      uint32_t keep = o.abs ? 0x7fffffffu : ~0u,
               flip = o.neg ? 0x80000000u : 0u;
      for (unsigned l = 0; l < MaxLanes; ++l)
        tmp[l] = (p[l] & keep) ^ flip;
      p = tmp;
    }
  }
  return p;
}

/// Writes `words` computed rows under EXEC; 16-bit results keep the other half
/// where the chip does.
inline void writeRows(Wave &w, uint32_t *dst, const uint32_t *src,
                      unsigned words) {
  for (unsigned k = 0; k < words; ++k, dst += MaxLanes, src += MaxLanes) {
    if (w.execFull) {
      std::memcpy(dst, src, sizeof(uint32_t) * w.lanes);
    } else {
      const uint32_t *m = w.laneMask;
      for (unsigned l = 0; l < MaxLanes; ++l)
        dst[l] = (src[l] & m[l]) | (dst[l] & ~m[l]);
    }
  }
}

/// Merges 16-bit results (in the low halves of src, destroyed) into dst.
void writeHalves(Wave &w, const Inst &i, uint32_t *dst, uint32_t *src);

/// Scales and clamps a float result.
template <class T> inline T outputModified(const Wave &w, const Inst &i, T x) {
  // Scaling is ignored if MODE keeps denormals.
  uint32_t denormals =
      std::is_same_v<T, float> ? Denormals32Out : Denormals16Out;
  return applyOutput(x, w.mode & denormals ? 0 : i.omod, i.has(Clamp),
                     w.dx10Clamp);
}
template <class T>
inline void outputModifiers(const Wave &w, const Inst &i, uint32_t *rows) {
  if constexpr (isFloatType<T>())
    for (unsigned l = 0; l < w.lanes; ++l)
      LaneType<T>::store(rows, l,
                         outputModified(w, i, LaneType<T>::load(rows, l)));
}

template <class... A> constexpr bool anyDouble() {
  return (std::is_same_v<A, double> || ...);
}
template <class... A> constexpr bool anyHalf() {
  return (std::is_same_v<A, Half> || ...);
}

template <auto F, class R, class... A, size_t... Is>
inline void valuRun(Wave &w, const Inst &i, R (*)(A...),
                    std::index_sequence<Is...>) {
  alignas(32) uint32_t tmp[sizeof...(A) ? sizeof...(A) : 1][2 * MaxLanes];
  const uint32_t *src[] = {fetch<A>(w, i.src[Is], tmp[Is])..., nullptr};
  (void)src;
  alignas(32) uint32_t out[2 * MaxLanes];
  uint32_t *dst = w.v[i.dst[0].index];
  constexpr unsigned words = LaneType<R>::words;
  bool direct = w.execFull && !is16<R>();
  uint32_t *to = direct ? dst : out;
  FpScope scope(w, anyDouble<R, A...>() || anyHalf<R, A...>());
  unsigned n = w.lanes;
  GRETA_LANES
  for (unsigned l = 0; l < n; ++l)
    LaneType<R>::store(to, l, F(LaneType<A>::load(src[Is], l)...));
  if (isFloatType<R>() && (i.omod || i.has(Clamp)))
    outputModifiers<R>(w, i, to);
  if constexpr (std::is_same_v<R, Half>)
    if (LLVM_UNLIKELY(!(w.mode & Denormals16Out)))
      flushHalves(to);
  if constexpr (is16<R>())
    writeHalves(w, i, dst, out);
  else if (!direct)
    writeRows(w, dst, out, words);
}

template <class F> struct Traits;
template <class R, class... A> struct Traits<R (*)(A...)> {
  using Seq = std::index_sequence_for<A...>;
  static constexpr char types[] = {LaneType<R>::letter, '=',
                                   LaneType<A>::letter..., 0};
  static constexpr bool half = is16<R>();
};

template <auto F> void valu(Wave &w, const Inst &i) {
  valuRun<F>(w, i, F, typename Traits<decltype(F)>::Seq{});
}
template <auto F>
constexpr OpInfo valuOp(const char *name, uint32_t flags = 0,
                        Unit unit = Unit::Valu) {
  using T = Traits<decltype(F)>;
  return {name, valu<F>, T::types, 0, flags | (T::half ? Result16 : 0), unit};
}

/// Packs the results of a comparison; bit l of the mask is lane l's.
inline uint64_t packMask(const uint8_t *c, unsigned lanes) {
  uint64_t m = 0;
  for (unsigned l = 0; l < lanes; l += 8) {
    uint64_t x;
    std::memcpy(&x, c + l, 8);
    m |= ((x * 0x0102040810204080ull) >> 56) << l;
  }
  return m;
}

void writeCompare(Wave &w, const Inst &i, uint64_t mask);

template <auto F, class... A, size_t... Is>
inline void compareRun(Wave &w, const Inst &i, bool (*)(A...),
                       std::index_sequence<Is...>) {
  alignas(32) uint32_t tmp[sizeof...(A)][2 * MaxLanes];
  const uint32_t *src[] = {fetch<A>(w, i.src[Is], tmp[Is])...};
  alignas(32) uint8_t c[MaxLanes];
  FpScope scope(w, anyDouble<A...>() || anyHalf<A...>());
  unsigned n = w.lanes;
  GRETA_LANES
  for (unsigned l = 0; l < n; ++l)
    c[l] = F(LaneType<A>::load(src[Is], l)...);
  writeCompare(w, i, packMask(c, n) & w.exec);
}
template <class R, class... A> struct Traits2;
template <auto F> void compare(Wave &w, const Inst &i) {
  compareRun<F>(w, i, F, typename Traits<decltype(F)>::Seq{});
}

} // namespace greta::sim

#endif
