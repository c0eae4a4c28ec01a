//===- Wmma.cpp - matrix instructions of gfx11 and gfx12 ------------------===//
//
// 16x16 products of one wave of 32 or 64 lanes.
//   gfx11 A, B: row or column = lane % 16, every lane holds all of K
//         D: row = rows * r + lane / 16 where rows = lanes / 16
//   gfx12 A, B: k = perLane * (lane / 16) + element
//         D: row = 8 * (lane / 16) + r with 32 lanes, 4 * (lane / 16) + r with
//         64
// 16-bit results: gfx11 one to a register (op_sel picks the half), gfx12
// packed.
//
//===----------------------------------------------------------------------===//
#include "Matrix.h"

using namespace greta::sim;

namespace {

using u32 = uint32_t;

struct Kind {
  uint8_t k;
  Format a, b, c; ///< c: F32, F16, BF16 or I8 for i32
};

template <class T>
void gather(const Wave &w, const Inst &i, unsigned which, Format f, unsigned k,
            T *out) {
  bool gfx12 = w.chip->isGfx12();
  unsigned groups = w.lanes / 16, perLane = gfx12 ? k / groups : k;
  alignas(32) T part[32 * MaxLanes];
  unpack(w, i.src[which], f, perLane, part);
  bool negLow = i.negLo >> which & 1, negHigh = i.negHi >> which & 1;
  bool flip =
      std::is_same_v<T, float> && bitsOf(f) == 16 && (negLow || negHigh);
  for (unsigned kk = 0; kk < k; ++kk) {
    unsigned g = gfx12 ? kk / perLane : 0, e = gfx12 ? kk % perLane : kk;
    T sign = flip && (kk & 1 ? negHigh : negLow) ? T(-1) : T(1);
    for (unsigned n = 0; n < 16; ++n)
      out[kk * 16 + n] = part[e * MaxLanes + g * 16 + n] * sign;
  }
}

/// Where row group h, register r of the accumulator lies.
unsigned rowOf(const Wave &w, unsigned r, unsigned h) {
  unsigned groups = w.lanes / 16;
  return w.chip->isGfx12() ? 16 / groups * h + r : groups * r + h;
}

template <class T>
void product(Wave &w, T *acc, const T *a, const T *b, unsigned k, unsigned r) {
  unsigned row[4];
  for (unsigned h = 0; h < w.lanes / 16u; ++h)
    row[h] = rowOf(w, r, h);
  if (w.wave32)
    accumulate<T, 16, 2>(acc, a, 16, b, 16, k, row);
  else
    accumulate<T, 16, 4>(acc, a, 16, b, 16, k, row);
}

void store(Wave &w, unsigned row, const void *acc) {
  std::memcpy(w.v[row], acc, 4u * w.lanes);
}

void floats(Wave &w, const Inst &i, const Kind &kind) {
  alignas(32) float a[16 * 32], b[16 * 32];
  gather(w, i, 0, kind.a, kind.k, a);
  gather(w, i, 1, kind.b, kind.k, b);
  unsigned count = 256 / w.lanes; // rows of a lane
  bool narrow = kind.c != Format::F32, packed = narrow && w.chip->isGfx12();
  bool negC = i.negLo & 4, absC = i.negHi & 4;
  bool bf = kind.c == Format::BF16;
  unsigned half = !packed && (i.opSel & 4) ? 16 : 0;
  for (unsigned r = 0; r < count; ++r) {
    alignas(32) u32 raw[MaxLanes];
    alignas(32) float acc[MaxLanes];
    loadAcc(w, i.src[2], packed ? r / 2 : r, raw);
    unsigned shift = packed ? 16 * (r & 1) : half;
    // An inline constant has its value in the low half only.
    if (!i.src[2].isVgpr())
      shift = 0;
    for (unsigned l = 0; l < MaxLanes; ++l) {
      uint16_t h = uint16_t(raw[l] >> shift);
      float c = !narrow ? llvm::bit_cast<float>(raw[l])
                : bf    ? bf16ToFloat(h)
                        : halfToFloat(h);
      c = absC ? std::fabs(c) : c;
      acc[l] = negC ? -c : c;
    }
    product(w, acc, a, b, kind.k, r);
    if (!narrow) {
      store(w, i.dst[0].index + r, acc);
      continue;
    }
    u32 *d = w.v[i.dst[0].index + (packed ? r / 2 : r)];
    for (unsigned l = 0; l < w.lanes; ++l) {
      u32 h = bf ? floatToBf16(acc[l]) : floatToHalf(acc[l]);
      unsigned to = packed ? 16 * (r & 1) : half;
      d[l] = (d[l] & ~(0xffffu << to)) | h << to;
    }
  }
}

void integers(Wave &w, const Inst &i, const Kind &kind) {
  alignas(32) int32_t a[16 * 32], b[16 * 32];
  auto format = [&](unsigned which, Format f) {
    bool sign = i.negLo >> which & 1;
    return bitsOf(f) == 8 ? (sign ? Format::I8 : Format::U8)
                          : (sign ? Format::I4 : Format::U4);
  };
  gather(w, i, 0, format(0, kind.a), kind.k, a);
  gather(w, i, 1, format(1, kind.b), kind.k, b);
  for (unsigned r = 0; r < 256u / w.lanes; ++r) {
    alignas(32) int32_t c[MaxLanes], acc[MaxLanes] = {};
    loadAcc(w, i.src[2], r, reinterpret_cast<u32 *>(c));
    product(w, acc, a, b, kind.k, r);
    for (unsigned l = 0; l < MaxLanes; ++l) {
      int64_t x = int64_t(acc[l]) + c[l];
      acc[l] = !i.has(Clamp)   ? int32_t(u32(x))
               : x > INT32_MAX ? INT32_MAX
               : x < INT32_MIN ? INT32_MIN
                               : int32_t(x);
    }
    store(w, i.dst[0].index + r, acc);
  }
}

const Kind kinds[] = {
    {16, Format::F16, Format::F16, Format::F32},
    {16, Format::BF16, Format::BF16, Format::F32},
    {16, Format::F16, Format::F16, Format::F16},
    {16, Format::BF16, Format::BF16, Format::BF16},
    {16, Format::I8, Format::I8, Format::I8},
    {16, Format::I4, Format::I4, Format::I8},
    {32, Format::I4, Format::I4, Format::I8},
    {16, Format::FP8, Format::FP8, Format::F32},
    {16, Format::FP8, Format::BF8, Format::F32},
    {16, Format::BF8, Format::FP8, Format::F32},
    {16, Format::BF8, Format::BF8, Format::F32},
};
void wmmaFloat(Wave &w, const Inst &i) { floats(w, i, kinds[i.param]); }
void wmmaInt(Wave &w, const Inst &i) { integers(w, i, kinds[i.param]); }

#define F(name, types, kind)                                                   \
  {"v_wmma_" name, wmmaFloat, types, kind, CrossLane | Pk16, Unit::Matrix}
#define I(name, kind)                                                          \
  {"v_wmma_" name, wmmaInt, "r=rri", kind, CrossLane | Pk16, Unit::Matrix}
const OpInfo table[] = {
    F("f32_16x16x16_f16", "r=rrf", 0),
    F("f32_16x16x16_bf16", "r=rrf", 1),
    F("f16_16x16x16_f16", "r=rrp", 2),
    F("bf16_16x16x16_bf16", "r=rry", 3),
    F("f32_16x16x16_fp8_fp8", "r=rrf", 7),
    F("f32_16x16x16_fp8_bf8", "r=rrf", 8),
    F("f32_16x16x16_bf8_fp8", "r=rrf", 9),
    F("f32_16x16x16_bf8_bf8", "r=rrf", 10),
    I("i32_16x16x16_iu8", 4),
    I("i32_16x16x16_iu4", 5),
    I("i32_16x16x32_iu4", 6),
};

} // namespace

OpTable greta::sim::wmmaOps() { return table; }
