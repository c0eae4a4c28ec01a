//===- Matrix.cpp - unpacking matrix operands -----------------------------===//
#include "Matrix.h"

using namespace greta::sim;

namespace {

/// Element e of a lane whose words are rows of `p`.
uint32_t raw(const uint32_t *p, unsigned e, unsigned bits, unsigned l) {
  unsigned at = e * bits, word = at / 32, shift = at % 32;
  uint32_t x = p[word * MaxLanes + l] >> shift;
  if (shift + bits > 32)
    x |= p[(word + 1) * MaxLanes + l] << (32 - shift);
  return bits == 32 ? x : x & ((1u << bits) - 1);
}

struct Fp8Table {
  float value[2][2][256]; // [fnuz][bf8]
  Fp8Table() {
    for (unsigned fnuz = 0; fnuz < 2; ++fnuz)
      for (unsigned bf8 = 0; bf8 < 2; ++bf8)
        for (unsigned x = 0; x < 256; ++x)
          value[fnuz][bf8][x] = fp8ToFloat(uint8_t(x), bf8, fnuz);
  }
};

} // namespace

void greta::sim::unpack(const Wave &w, const Operand &o, Format format,
                        unsigned count, float *out) {
  static const Fp8Table table;
  alignas(32) uint32_t splat[8 * MaxLanes];
  unsigned bits = bitsOf(format);
  const uint32_t *p = w.rows(o, (count * bits + 31) / 32, splat);
  for (unsigned e = 0; e < count; ++e, out += MaxLanes) {
    switch (format) {
    case Format::F32:
      std::memcpy(out, p + e * MaxLanes, 4 * MaxLanes);
      break;
    case Format::XF32:
      // 10 mantissa bits, rounded to nearest even.
      for (unsigned l = 0; l < MaxLanes; ++l) {
        uint32_t x = p[e * MaxLanes + l];
        x += 0xfff + (x >> 13 & 1);
        out[l] = llvm::bit_cast<float>(x & ~0x1fffu);
      }
      break;
    case Format::F16: {
      const uint32_t *q = p + e / 2 * MaxLanes;
      if (e & 1)
        for (unsigned l = 0; l < MaxLanes; ++l)
          out[l] = halfToFloat(uint16_t(q[l] >> 16));
      else
        for (unsigned l = 0; l < MaxLanes; ++l)
          out[l] = halfToFloat(uint16_t(q[l]));
      break;
    }
    case Format::BF16: {
      const uint32_t *q = p + e / 2 * MaxLanes;
      for (unsigned l = 0; l < MaxLanes; ++l)
        out[l] = llvm::bit_cast<float>(e & 1 ? q[l] & 0xffff0000 : q[l] << 16);
      break;
    }
    case Format::FP8:
    case Format::BF8: {
      const float *values = table.value[w.chip->fp8Fnuz][format == Format::BF8];
      for (unsigned l = 0; l < MaxLanes; ++l)
        out[l] = values[raw(p, e, 8, l)];
      break;
    }
    case Format::FP6:
    case Format::BF6:
      for (unsigned l = 0; l < MaxLanes; ++l)
        out[l] = fp6ToFloat(raw(p, e, 6, l), format == Format::BF6);
      break;
    default:
      for (unsigned l = 0; l < MaxLanes; ++l)
        out[l] = fp4ToFloat(raw(p, e, 4, l));
    }
  }
}

void greta::sim::unpack(const Wave &w, const Operand &o, Format format,
                        unsigned count, int32_t *out) {
  alignas(32) uint32_t splat[8 * MaxLanes];
  unsigned bits = bitsOf(format);
  const uint32_t *p = w.rows(o, (count * bits + 31) / 32, splat);
  bool sign = format == Format::I8 || format == Format::I4;
  for (unsigned e = 0; e < count; ++e, out += MaxLanes) {
    const uint32_t *q = p + e * bits / 32 * MaxLanes;
    unsigned shift = e * bits % 32, up = 32 - bits;
    for (unsigned l = 0; l < MaxLanes; ++l) {
      uint32_t x = q[l] >> shift << up;
      out[l] = sign ? int32_t(x) >> up : int32_t(x >> up);
    }
  }
}
