//===- WeightFormats.h - how packed weights lie in words --------*- C++ -*-===//
//
// One row per format of greta.dequant. In: its name. Out: where the bits of a
// weight are, and what number they mean. Verifiers, definitions, blocks, lanes
// and greta-llm read the rows, so that a new format is a new row.
//
// The weights of a row of K are in words of 32 bits, `q`; formats of 5 and 6
// bits have the upper ones in words of their own, `high`. Weight e of a word of
// `q`, and weight e of a word of `high`, begin at the bit `placeOf(e, ..)`: in
// order, or in pairs, neighbours in the lower and the upper half. Pairs are
// what a register of two f16 becomes by one `and`: paired formats get
// neighbours from it.
//
// Interleaved formats store rows 2i and 2i + 1 of N together: words of 32
// weights of one, then of the other (`elementsOfRun`), so that 8 rows of 64
// weights lie in 4 of memory's lines in place of 8. Scales and minima take
// turns, too.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_INTERFACE_WEIGHTFORMATS_H
#define GRETA_INTERFACE_WEIGHTFORMATS_H

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace greta {

struct WeightFormat {
  /// The form of `zeros`: per group packed like 4-bit weights, or, of f16,
  /// minima; minima; or not there.
  enum class Zeros { None, Minima, Any };
  /// Per group an f16, an f32, or the exponent of a power of two plus 127, an
  /// i8.
  enum class Scale { F16, F32, E8M0 };

  std::string_view name;
  int bits;              // of a weight in a word of `q`
  int highBits = 0;      // of a weight in a word of `high`; 0: there is none
  bool isPaired = false; // the order of weights in words
  bool isInterleaved = false; // the order of rows
  bool isSigned = false;      // two's complement
  bool isE4M3 = false;        // a float of 8 bits, which is never NaN
  int zero = 0;               // what is subtracted where there are no zeros
  int leastGroup = 32;        // of weights along K that share a scale
  int scaleRows = 1;          // of N that share one
  Zeros zeros = Zeros::None;
  Scale scale = Scale::F16;
  /// The f16 that each weight stands for; null: it is a whole number.
  const uint16_t *codes = nullptr;

  constexpr WeightFormat(std::string_view name, int bits)
      : name(name), bits(bits) {}
  constexpr WeightFormat &paired(int bitsInHigh = 0) {
    isPaired = true;
    highBits = bitsInHigh;
    return *this;
  }
  constexpr WeightFormat &interleaved() {
    isInterleaved = true;
    return *this;
  }
  constexpr WeightFormat &twosComplement() {
    isSigned = true;
    return *this;
  }
  constexpr WeightFormat &e4m3() {
    isE4M3 = true;
    return *this;
  }
  constexpr WeightFormat &minus(int number) {
    zero = number;
    return *this;
  }
  constexpr WeightFormat &with(Zeros kind) {
    zeros = kind;
    return *this;
  }
  constexpr WeightFormat &with(Scale kind) {
    scale = kind;
    return *this;
  }
  constexpr WeightFormat &groupsFrom(int least) {
    leastGroup = least;
    return *this;
  }
  constexpr WeightFormat &acrossRows(int rows) {
    scaleRows = rows;
    return *this;
  }
  constexpr WeightFormat &coded(const uint16_t *numbers) {
    codes = numbers;
    return *this;
  }

  constexpr int allBits() const { return bits + highBits; }
  constexpr int perWord() const { return 32 / bits; }
  constexpr int perHigh() const { return highBits ? 32 / highBits : 0; }
  /// The first bit of weight `e` of a word of `q`, or with `highBits` of
  /// `high`.
  constexpr int placeOf(int e, int bits) const {
    return isPaired ? bits * (e / 2) + 16 * (e % 2) : bits * e;
  }
  /// The number of rows that are stored together. One of them has
  /// `elementsOfRun` elements, of `perElement` weights each, before the next's.
  constexpr int rowsTogether() const { return isInterleaved ? 2 : 1; }
  static constexpr int elementsOfRun(int perElement) {
    return std::max(1, 32 / perElement);
  }
  /// Weights that are unpacked together: whole words of everything.
  constexpr int unit() const { return std::max(perWord(), perHigh()); }
  /// The number that is added to a weight to make it natural, below 2^allBits.
  constexpr int offset() const { return isSigned ? 1 << (bits - 1) : 0; }
  /// The same of what is subtracted from it where there are no zeros.
  constexpr int fixedZero() const { return zero + offset(); }
  /// The negative power of two that a weight is multiplied by in sums of
  /// products of f16, as an exponent: weights are below an eighth, so that no
  /// sum of eight products overflows where A does not.
  constexpr int sumExponent() const {
    if (isE4M3)
      return -9 - 3;
    if (!codes)
      return -allBits() - 3;
    int largest = 0;
    for (int i = 0; i < 1 << bits; ++i)
      largest = std::max(largest, codes[i] & 0x7fff);
    return 15 - 3 - ((largest + 0x3ff) >> 10);
  }
};

/// f16: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; there is one zero.
inline constexpr uint16_t codesOfE2M1[] = {
    0x0000, 0x3800, 0x3c00, 0x3e00, 0x4000, 0x4200, 0x4400, 0x4600,
    0x0000, 0xb800, 0xbc00, 0xbe00, 0xc000, 0xc200, 0xc400, 0xc600};

/// T. Dettmers et al., "QLoRA", 2023, arXiv:2305.14314, appendix E, as f16.
inline constexpr uint16_t codesOfNF4[] = {
    0xbc00, 0xb992, 0xb833, 0xb652, 0xb48d, 0xb1ea, 0xadd4, 0x0000,
    0x2d18, 0x3126, 0x33e0, 0x3568, 0x370d, 0x3880, 0x39c9, 0x3c00};

/// The gguf package's quants.py, IQ4_NL: -127, -104, -83, -65, -49, -35, -22,
/// -10, 1, 13, 25, 38, 53, 69, 89, 113, as f16.
inline constexpr uint16_t codesOfIQ4NL[] = {
    0xd7f0, 0xd680, 0xd530, 0xd410, 0xd220, 0xd060, 0xcd80, 0xc900,
    0x3c00, 0x4a80, 0x4e40, 0x50c0, 0x52a0, 0x5450, 0x5590, 0x5710};

inline constexpr WeightFormat weightFormats[] = {
    WeightFormat("gptq4", 4).minus(8).with(WeightFormat::Zeros::Any),
    WeightFormat("q4_0", 4).minus(8),
    WeightFormat("q4_1", 4).with(WeightFormat::Zeros::Minima),
    WeightFormat("q4_k", 4).with(WeightFormat::Zeros::Minima),
    WeightFormat("q4_0_interleaved", 4).paired().interleaved().minus(8),
    WeightFormat("q4_1_interleaved", 4)
        .paired()
        .interleaved()
        .with(WeightFormat::Zeros::Minima),
    WeightFormat("q4_k_interleaved", 4)
        .paired()
        .interleaved()
        .with(WeightFormat::Zeros::Minima),
    WeightFormat("q5_0", 4).paired(1).minus(16),
    WeightFormat("q5_1", 4).paired(1).with(WeightFormat::Zeros::Minima),
    WeightFormat("q5_k", 4).paired(1).with(WeightFormat::Zeros::Minima),
    WeightFormat("q6_k", 4).paired(2).minus(32).groupsFrom(16),
    WeightFormat("q8_0", 8).twosComplement(),
    WeightFormat("q2_k", 4).with(WeightFormat::Zeros::Minima).groupsFrom(16),
    WeightFormat("q3_k", 4).minus(4).groupsFrom(16),
    WeightFormat("iq4_nl", 4).coded(codesOfIQ4NL),
    WeightFormat("mxfp4", 4).with(WeightFormat::Scale::E8M0).coded(codesOfE2M1),
    WeightFormat("nf4", 4).groupsFrom(64).coded(codesOfNF4),
    WeightFormat("e4m3", 8).e4m3().with(WeightFormat::Scale::F32),
    WeightFormat("e4m3_block", 8)
        .e4m3()
        .with(WeightFormat::Scale::F32)
        .acrossRows(128),
};

/// The largest number of weights that share a scale, in every format.
inline constexpr int largestGroup = 128;

/// Null: there is no such format.
inline const WeightFormat *findWeightFormat(std::string_view name) {
  for (const WeightFormat &format : weightFormats)
    if (format.name == name)
      return &format;
  return nullptr;
}

} // namespace greta

#endif
