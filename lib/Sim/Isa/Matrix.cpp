//===- Matrix.cpp - operand planes and the row kernel ---------------------===//
//
// The loops here are compiled twice on x86-64, for AVX2 with FMA and for the
// baseline; the loader picks. Both give the same bits: every fma is one
// rounding.
//
//===----------------------------------------------------------------------===//
#include "Isa/Matrix.h"
#include "Isa/Fp8.h"

#if defined(__x86_64__)
#define GRETA_CLONES __attribute__((target_clones("arch=haswell", "default")))
#else
#define GRETA_CLONES
#endif

using namespace greta::sim;
using namespace greta::sim::matrix;

const uint16_t matrix::zeroOffsets[64] = {};

namespace {

template <class T, unsigned N>
using Vec __attribute__((ext_vector_type(N))) = T;

template <class V> __attribute__((always_inline)) inline V load(const void *p) {
  V v;
  std::memcpy(&v, p, sizeof(V));
  return v;
}
template <class V>
__attribute__((always_inline)) inline void store(void *p, V v) {
  std::memcpy(p, &v, sizeof(V));
}

using F8 = Vec<float, 8>;
using U8 = Vec<uint32_t, 8>;
using I8 = Vec<int32_t, 8>;

/// Runs `convert` on eight lanes at a time of every element.
template <unsigned Bits, class Fn>
__attribute__((always_inline)) inline void
eachElement(const Row *rows, unsigned items, Plane *out, Fn convert) {
  constexpr unsigned perWord = 32 / Bits;
  for (unsigned e = 0; e < items; ++e) {
    const uint32_t *row = rows[e / perWord];
    unsigned shift = e % perWord * Bits;
    for (unsigned l = 0; l < MaxLanes; l += 8)
      store(&out[e][l], convert(load<U8>(row + l) >> shift));
  }
}

GRETA_CLONES void decodeF16(const Row *rows, unsigned items, bool flush,
                            Plane *out) {
  eachElement<16>(rows, items, out, [flush](U8 u) {
    u &= 0xffff;
    if (flush)
      u = (u & 0x7c00) == 0 ? u & 0x8000 : u;
    auto h = __builtin_convertvector(u, Vec<uint16_t, 8>);
    return __builtin_convertvector(llvm::bit_cast<Vec<_Float16, 8>>(h), F8);
  });
}
GRETA_CLONES void decodeBf16(const Row *rows, unsigned items, Plane *out) {
  eachElement<16>(rows, items, out,
                  [](U8 u) { return llvm::bit_cast<F8>(u << 16); });
}
GRETA_CLONES void decodeI8(const Row *rows, unsigned items, Plane *out) {
  eachElement<8>(rows, items, out, [](U8 u) {
    return __builtin_convertvector(llvm::bit_cast<I8>(u << 24) >> 24, F8);
  });
}
GRETA_CLONES void decodeU8(const Row *rows, unsigned items, Plane *out) {
  eachElement<8>(rows, items, out, [](U8 u) {
    return __builtin_convertvector(llvm::bit_cast<I8>(u & 0xff), F8);
  });
}
GRETA_CLONES void decodeI4(const Row *rows, unsigned items, Plane *out) {
  eachElement<4>(rows, items, out, [](U8 u) {
    return __builtin_convertvector(llvm::bit_cast<I8>(u << 28) >> 28, F8);
  });
}
GRETA_CLONES void decodeU4(const Row *rows, unsigned items, Plane *out) {
  eachElement<4>(rows, items, out, [](U8 u) {
    return __builtin_convertvector(llvm::bit_cast<I8>(u & 15), F8);
  });
}

/// Decodes formats of at most 8 bits by a table of all codes.
GRETA_CLONES void decodeTable(const Row *rows, unsigned items, unsigned bits,
                              const float *values, Plane *out) {
  uint32_t mask = (1u << bits) - 1;
  for (unsigned e = 0; e < items; ++e) {
    unsigned at = e * bits, word = at / 32, shift = at % 32;
    const uint32_t *low = rows[word];
    // Six-bit codes may cross into the next word.
    const uint32_t *high = shift + bits > 32 ? rows[word + 1] : nullptr;
    for (unsigned l = 0; l < MaxLanes; ++l) {
      uint32_t u = low[l] >> shift;
      if (high)
        u |= high[l] << (32 - shift);
      out[e][l] = values[u & mask];
    }
  }
}

template <unsigned N, unsigned R, bool Int>
__attribute__((always_inline)) inline void tile(const Product &p, unsigned i,
                                                bool saturate) {
  constexpr unsigned W = N < 8 ? N : 8, V = N / W;
  using F = Vec<float, W>;
  using U = Vec<uint32_t, W>;
  using I = Vec<int32_t, W>;
  F acc[R][V];
  for (unsigned r = 0; r < R; ++r)
    for (unsigned v = 0; v < V; ++v)
      acc[r][v] = Int ? F(0.f) : load<F>(p.c + p.cOff[i + r] + v * W);
  for (unsigned k = 0; k < p.depth; ++k) {
    const float *a = p.a + p.aOff[k] + i, *b = p.b + p.bOff[k];
    F row[V];
    for (unsigned v = 0; v < V; ++v)
      row[v] = load<F>(b + v * W);
    for (unsigned r = 0; r < R; ++r)
      for (unsigned v = 0; v < V; ++v)
        acc[r][v] = __builtin_elementwise_fma(F(a[r]), row[v], acc[r][v]);
  }
  for (unsigned r = 0; r < R; ++r)
    for (unsigned v = 0; v < V; ++v) {
      uint32_t *d = p.d + p.dOff[i + r] + v * W;
      if constexpr (Int) {
        I sum = __builtin_convertvector(acc[r][v], I);
        const uint32_t *c = p.c + p.cOff[i + r] + v * W;
        if (saturate)
          store(d, __builtin_elementwise_add_sat(sum, load<I>(c)));
        else
          store(d, llvm::bit_cast<U>(sum) + load<U>(c));
      } else {
        store(d, acc[r][v]);
      }
    }
}

template <unsigned N, bool Int>
__attribute__((always_inline)) inline void rows(const Product &p,
                                                bool saturate) {
  // Eight accumulator vectors fill the registers without spilling.
  constexpr unsigned R = N == 32 ? 2 : 4;
  unsigned i = 0;
  for (; i + R <= p.rows; i += R)
    tile<N, R, Int>(p, i, saturate);
  for (; i < p.rows; ++i)
    tile<N, 1, Int>(p, i, saturate);
}

template <bool Int>
__attribute__((always_inline)) inline void dispatch(const Product &p,
                                                    bool saturate) {
  if (p.n == 32)
    rows<32, Int>(p, saturate);
  else if (p.n == 16)
    rows<16, Int>(p, saturate);
  else
    rows<4, Int>(p, saturate);
}

} // namespace

GRETA_CLONES static void runF32(const Product &p) { dispatch<false>(p, false); }
GRETA_CLONES static void runI32(const Product &p, bool saturate) {
  dispatch<true>(p, saturate);
}
void matrix::multiplyF32(const Product &p) { runF32(p); }
void matrix::multiplyI32(const Product &p, bool saturate) {
  runI32(p, saturate);
}

void matrix::decode(Elem e, const Row *rows, unsigned items, DecodeOptions o,
                    Plane *out) {
  switch (e) {
  case Elem::F64:
    return; // Mfma.cpp handles pairs of words
  case Elem::F32:
    std::memcpy(out, rows, items * sizeof(Plane));
    break;
  case Elem::XF32:
    for (unsigned k = 0; k < items; ++k)
      for (unsigned l = 0; l < MaxLanes; ++l)
        out[k][l] = llvm::bit_cast<float>(rows[k][l] & 0xffffe000u);
    break;
  case Elem::F16:
    decodeF16(rows, items, o.flushF16, out);
    break;
  case Elem::BF16:
    decodeBf16(rows, items, out);
    break;
  case Elem::FP8:
  case Elem::BF8:
    decodeTable(rows, items, 8, fp8Values(e == Elem::BF8, o.fnuz), out);
    break;
  case Elem::FP6:
  case Elem::BF6:
    decodeTable(rows, items, 6, fp6Values(e == Elem::BF6), out);
    break;
  case Elem::FP4:
    decodeTable(rows, items, 4, fp4Values(), out);
    break;
  case Elem::I8:
    decodeI8(rows, items, out);
    break;
  case Elem::U8:
    decodeU8(rows, items, out);
    break;
  case Elem::I4:
    decodeI4(rows, items, out);
    break;
  case Elem::U4:
    decodeU4(rows, items, out);
    break;
  }
  for (unsigned k = 0; k < items; ++k)
    if (k % 2 ? o.negOdd : o.negEven)
      for (float &x : out[k])
        x = -x;
}

Accumulator::Accumulator(const Wave &w, const Operand &c, const Operand &d,
                         unsigned words, Row *copy)
    : constant(!c.isVgpr()) {
  if (constant) {
    base = c.splat;
    return;
  }
  base = w.v[c.index];
  bool overlaps = c.index < d.index + words && d.index < c.index + words;
  if (overlaps && c.index != d.index) {
    std::memcpy(copy, base, words * sizeof(Row));
    base = copy[0];
  }
}
