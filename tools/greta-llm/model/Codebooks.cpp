// Codebooks.cpp: GGUF's formats that greta.dequant has no form of: rows of
// tables with signs, numbers to the base of 3, and NVFP4. In: a block's
// bytes. Out: its weights as f32. The specification is the gguf package's
// quants.py.
#include "model/Formats.h"

#include <cmath>
#include <cstring>

namespace greta::llm {
namespace {
#include "model/Codebooks.inc"

uint16_t half(const uint8_t *at) {
  return static_cast<uint16_t>(at[0] | at[1] << 8);
}

uint32_t word(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, 4);
  return value;
}

int nibble(const uint8_t *at, int number) {
  return at[number / 2] >> number % 2 * 4 & 15;
}

// A table: its entries, the bits of a value in one, and what these stand for.
struct Table {
  const uint16_t *entries;
  int bits;
  int8_t values[8];

  // An entry's values, times a scale, those that have a bit in `signs`
  // negative.
  float *expand(int entry, uint32_t signs, float scale, float *to,
                float delta = 0) const {
    int mask = (1 << bits) - 1, count = bits == 2 ? 8 : 4;
    for (int i = 0; i < count; ++i) {
      float value =
          scale *
          (static_cast<float>(values[entries[entry] >> bits * i & mask]) +
           delta);
      *to++ = signs >> i & 1 ? -value : value;
    }
    return to;
  }
};
constexpr Table tableOfIQ2XXS = {gridOfIQ2XXS, 2, {8, 25, 43}},
                tableOfIQ2XS = {gridOfIQ2XS, 2, {8, 25, 43}},
                tableOfIQ2S = {gridOfIQ2S, 2, {8, 25, 43}},
                tableOfIQ3XXS = {gridOfIQ3XXS,
                                 3,
                                 {4, 12, 20, 28, 36, 44, 52, 62}},
                tableOfIQ3S = {gridOfIQ3S, 3, {1, 3, 5, 7, 9, 11, 13, 15}},
                tableOfIQ1 = {gridOfIQ1, 2, {-1, 0, 1}};

// Seven of eight signs are stored: the number of negative ones is even.
uint32_t withParity(uint32_t seven) {
  seven &= 127;
  uint32_t odd = seven ^ seven >> 4;
  odd ^= odd >> 2;
  odd ^= odd >> 1;
  return seven | (odd & 1) << 7;
}

float scaleAndHalf(float scale, int number) {
  return scale * (0.5f + static_cast<float>(number));
}

void expandIQ2XXS(const uint8_t *from, float *to) {
  float scale = fromF16(half(from)) * 0.25f;
  for (int group = 0; group < 8; ++group) {
    const uint8_t *at = from + 2 + group * 8;
    uint32_t rest = word(at + 4);
    for (int i = 0; i < 4; ++i)
      to = tableOfIQ2XXS.expand(at[i], withParity(rest >> 7 * i),
                                scaleAndHalf(scale, rest >> 28), to);
  }
}

void expandIQ2XS(const uint8_t *from, float *to) {
  float scale = fromF16(half(from)) * 0.25f;
  for (int i = 0; i < 32; ++i) {
    int entry = half(from + 2 + 2 * i);
    to = tableOfIQ2XS.expand(entry & 511,
                             withParity(static_cast<uint32_t>(entry >> 9)),
                             scaleAndHalf(scale, nibble(from + 66, i / 2)), to);
  }
}

void expandIQ2S(const uint8_t *from, float *to) {
  float scale = fromF16(half(from)) * 0.25f;
  for (int i = 0; i < 32; ++i)
    to = tableOfIQ2S.expand(
        from[2 + i] | (from[66 + i / 4] >> i % 4 * 2 & 3) << 8, from[34 + i],
        scaleAndHalf(scale, nibble(from + 74, i / 2)), to);
}

void expandIQ3XXS(const uint8_t *from, float *to) {
  float scale = fromF16(half(from)) * 0.5f;
  for (int i = 0; i < 64; ++i) {
    uint32_t rest = word(from + 66 + i / 8 * 4);
    uint32_t signs = withParity(rest >> 7 * (i % 8 / 2));
    to = tableOfIQ3XXS.expand(from[2 + i], signs >> i % 2 * 4,
                              scaleAndHalf(scale, rest >> 28), to);
  }
}

void expandIQ3S(const uint8_t *from, float *to) {
  float scale = fromF16(half(from));
  for (int i = 0; i < 64; ++i)
    to = tableOfIQ3S.expand(
        from[2 + i] | (from[66 + i / 8] >> i % 8 & 1) << 8,
        static_cast<uint32_t>(from[74 + i / 2] >> i % 2 * 4),
        scale * static_cast<float>(1 + 2 * nibble(from + 106, i / 8)), to);
}

void expandIQ1S(const uint8_t *from, float *to) {
  float scale = fromF16(half(from));
  for (int i = 0; i < 32; ++i) {
    int rest = half(from + 34 + i / 4 * 2);
    to = tableOfIQ1.expand(from[2 + i] | (rest >> i % 4 * 3 & 7) << 8, 0,
                           scale * static_cast<float>(2 * (rest >> 12 & 7) + 1),
                           to, rest & 0x8000 ? -0.125f : 0.125f);
  }
}

void expandIQ1M(const uint8_t *from, float *to) {
  const uint8_t *scales = from + 48; // the upper four bits are the block's
  int bits = 0;
  for (int i = 0; i < 4; ++i)
    bits |= half(scales + 2 * i) >> 12 << 4 * i;
  float scale = fromF16(static_cast<uint16_t>(bits));
  for (int i = 0; i < 32; ++i) {
    int rest = nibble(from + 32, i);
    int each = half(scales + i / 8 * 2) >> i / 2 % 4 * 3 & 7;
    to = tableOfIQ1.expand(from[i] | (rest & 7) << 8, 0,
                           scale * static_cast<float>(2 * each + 1), to,
                           rest & 8 ? -0.125f : 0.125f);
  }
}

// Five weights in a byte, or four: b 3^n is a fraction of 256 whose upper digit
// to the base of 3 is weight n.
float *expandTernary(const uint8_t *from, int bytes, int digits, float scale,
                     float *to) {
  for (int digit = 0, power = 1; digit < digits; ++digit, power *= 3)
    for (int i = 0; i < bytes; ++i) {
      int fraction = from[i] * power & 255;
      *to++ = scale * static_cast<float>((fraction * 3 >> 8) - 1);
    }
  return to;
}

void expandTQ1(const uint8_t *from, float *to) {
  float scale = fromF16(half(from + 52));
  to = expandTernary(from, 32, 5, scale, to);
  to = expandTernary(from + 32, 16, 5, scale, to);
  expandTernary(from + 48, 4, 4, scale, to);
}

void expandTQ2(const uint8_t *from, float *to) {
  float scale = fromF16(half(from + 64));
  for (int i = 0; i < 256; ++i)
    to[i] =
        scale * static_cast<float>(
                    (from[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3) - 1);
}

void expandNVFP4(const uint8_t *from, float *to) {
  for (int group = 0; group < 4; ++group) {
    int exponent = from[group] >> 3 & 15, mantissa = from[group] & 7;
    float scale = exponent ? std::ldexp(8.0f + static_cast<float>(mantissa),
                                        exponent - 10)
                           : std::ldexp(static_cast<float>(mantissa), -9);
    if (from[group] == 127)
      scale = 0;
    for (int i = 0; i < 16; ++i)
      to[group * 16 + i] =
          scale *
          fromF16(
              codesOfE2M1[from[4 + group * 8 + i % 8] >> (i < 8 ? 0 : 4) & 15]);
  }
}

// A bit is a sign; two bits are -1 to 2.
void expandQ1(const uint8_t *from, float *to) {
  float scale = fromF16(half(from));
  for (int i = 0; i < 128; ++i)
    to[i] = from[2 + i / 8] >> i % 8 & 1 ? scale : -scale;
}

void expandQ2(const uint8_t *from, float *to) {
  float scale = fromF16(half(from));
  for (int i = 0; i < 64; ++i)
    to[i] = scale * static_cast<float>((from[2 + i / 4] >> i % 4 * 2 & 3) - 1);
}
} // namespace

void expandCodebook(Format format, const uint8_t *from, float *to) {
  switch (format) {
  case Format::IQ1_S:
    return expandIQ1S(from, to);
  case Format::IQ1_M:
    return expandIQ1M(from, to);
  case Format::IQ2_XXS:
    return expandIQ2XXS(from, to);
  case Format::IQ2_XS:
    return expandIQ2XS(from, to);
  case Format::IQ2_S:
    return expandIQ2S(from, to);
  case Format::IQ3_XXS:
    return expandIQ3XXS(from, to);
  case Format::IQ3_S:
    return expandIQ3S(from, to);
  case Format::TQ1_0:
    return expandTQ1(from, to);
  case Format::TQ2_0:
    return expandTQ2(from, to);
  case Format::NVFP4:
    return expandNVFP4(from, to);
  case Format::Q1_0:
    return expandQ1(from, to);
  case Format::Q2_0:
    return expandQ2(from, to);
  default:
    return;
  }
}

} // namespace greta::llm
