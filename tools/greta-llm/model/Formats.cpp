// Formats.cpp: see Formats.h. The block formats are those of ggml, whose
// specification is the gguf package's quants.py.
#include "model/Formats.h"

#include <cmath>
#include <cstring>

namespace greta::llm {

static const FormatInfo formats[] = {
    {Format::F32, "f32", 0, 1, 4},        {Format::F16, "f16", 1, 1, 2},
    {Format::Q4_0, "q4_0", 2, 32, 18},    {Format::Q4_1, "q4_1", 3, 32, 20},
    {Format::Q8_0, "q8_0", 8, 32, 34},    {Format::Q4_K, "q4_k", 12, 256, 144},
    {Format::Q6_K, "q6_k", 14, 256, 210}, {Format::BF16, "bf16", 30, 1, 2},
    {Format::Int4, "int4", ~0u, 8, 4},
};

const FormatInfo &infoOf(Format format) {
  for (const FormatInfo &info : formats)
    if (info.format == format)
      return info;
  return formats[0];
}

const FormatInfo *findFormat(const std::string &name) {
  for (const FormatInfo &info : formats)
    if (name == info.name)
      return &info;
  return nullptr;
}

const FormatInfo *findGgufFormat(uint32_t number) {
  // Int4 is in three tensors of safetensors, and has no number.
  for (const FormatInfo &info : formats)
    if (number == info.gguf && info.format != Format::Int4)
      return &info;
  return nullptr;
}

const char *nameOf(Element element) {
  return element == Element::F32   ? "f32"
         : element == Element::F16 ? "f16"
                                   : "bf16";
}

size_t bytesOf(Element element) { return element == Element::F32 ? 4 : 2; }

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static uint32_t bitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

static float floatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

float fromF16(uint16_t bits) {
  uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00) // infinity and NaN
    return floatOf(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  // Exact also for denormal numbers: a float with 112 less in its exponent.
  return floatOf(sign | bitsOf(floatOf(magnitude << 13) * 0x1p112f));
}

uint16_t toF16(float value) {
  uint32_t bits = bitsOf(value);
  uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) // rounds to 65536 or more
    return sign | 0x7c00u;
  if (magnitude < 0x38800000u) { // denormal: units of 2^-24
    float units = floatOf(magnitude) * 0x1p24f;
    return sign | static_cast<uint16_t>(std::nearbyint(units));
  }
  magnitude += 0xfffu + (magnitude >> 13 & 1);
  return sign | static_cast<uint16_t>((magnitude - 0x38000000u) >> 13);
}

float fromBF16(uint16_t bits) { return floatOf(uint32_t(bits) << 16); }

uint16_t toBF16(float value) {
  uint32_t bits = bitsOf(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static uint16_t word(const uint8_t *at) {
  return static_cast<uint16_t>(at[0] | at[1] << 8);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Scale and minimum of one of the eight groups of a Q4_K block: six bits each,
/// in twelve bytes.
static void groupOfQ4K(const uint8_t *packed, int group, float &scale,
                       float &minimum) {
  if (group < 4) {
    scale = packed[group] & 63;
    minimum = packed[group + 4] & 63;
    return;
  }
  scale = (packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4;
  minimum = (packed[group + 4] >> 4) | (packed[group] >> 6) << 4;
}

static void expandBlock(Format format, const uint8_t *from, float *to) {
  float scale = fromF16(word(from));
  switch (format) {
  case Format::F32:
    memcpy(to, from, 4);
    break;
  case Format::F16:
    *to = scale;
    break;
  case Format::BF16:
    *to = fromBF16(word(from));
    break;
  case Format::Q8_0:
    for (int i = 0; i < 32; ++i)
      to[i] = scale * static_cast<int8_t>(from[2 + i]);
    break;
  case Format::Q4_0:
    for (int i = 0; i < 16; ++i) {
      to[i] = scale * ((from[2 + i] & 15) - 8);
      to[i + 16] = scale * ((from[2 + i] >> 4) - 8);
    }
    break;
  case Format::Q4_1: {
    float minimum = fromF16(word(from + 2));
    for (int i = 0; i < 16; ++i) {
      to[i] = scale * (from[4 + i] & 15) + minimum;
      to[i + 16] = scale * (from[4 + i] >> 4) + minimum;
    }
    break;
  }
  case Format::Q4_K: {
    float minima = fromF16(word(from + 2));
    for (int group = 0; group < 8; ++group) {
      float each, minimum;
      groupOfQ4K(from + 4, group, each, minimum);
      const uint8_t *nibbles = from + 16 + group / 2 * 32;
      for (int i = 0; i < 32; ++i) {
        int q = group % 2 ? nibbles[i] >> 4 : nibbles[i] & 15;
        to[group * 32 + i] = scale * each * q - minima * minimum;
      }
    }
    break;
  }
  case Format::Int4: // in three tensors: expandGrouped
    break;
  case Format::Q6_K: {
    scale = fromF16(word(from + 208));
    for (int i = 0; i < 256; ++i) {
      // Halves of 128; in each, four rows of 32 whose low bits share 64 bytes
      // and whose high bits share 32.
      int half = i / 128, row = i % 128 / 32, column = i % 32;
      int low = from[half * 64 + row % 2 * 32 + column] >> (row / 2 * 4) & 15;
      int high = from[128 + half * 32 + column] >> (row * 2) & 3;
      int8_t each = static_cast<int8_t>(from[192 + i / 16]);
      to[i] = scale * each * ((low | high << 4) - 32);
    }
    break;
  }
  }
}

void expandRow(Format format, const uint8_t *row, int64_t columns, float *to) {
  const FormatInfo &info = infoOf(format);
  for (int64_t i = 0; i < columns; i += info.block, row += info.bytes)
    expandBlock(format, row, to + i);
}

void store(const float *from, int64_t count, Element element, uint8_t *to) {
  if (element == Element::F32) {
    memcpy(to, from, static_cast<size_t>(count) * 4);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits = element == Element::F16 ? toF16(from[i]) : toBF16(from[i]);
    memcpy(to + 2 * i, &bits, 2);
  }
}

bool hasZeros(Format format) { return format == Format::Int4; }

bool hasMinima(Format format) {
  return format == Format::Q4_1 || format == Format::Q4_K;
}

bool canPackRow(Format format) {
  return format == Format::Q4_0 || hasMinima(format);
}

/// 32 weights, of which `at(i)` is the i-th.
template <typename AtT> static void packWords(AtT at, uint32_t *words) {
  for (int i = 0; i < 4; ++i) {
    words[i] = 0;
    for (int j = 0; j < 8; ++j)
      words[i] |= static_cast<uint32_t>(at(i * 8 + j)) << 4 * j;
  }
}

/// A block of Q4_K, which is eight groups.
static void packBlockQ4K(const uint8_t *from, const PackedRow &to,
                         int64_t first) {
  float scale = fromF16(word(from)), minima = fromF16(word(from + 2));
  for (int group = 0; group < 8; ++group) {
    float each, minimum;
    groupOfQ4K(from + 4, group, each, minimum);
    to.scales[first + group] = toF16(scale * each);
    to.minima[first + group] = toF16(-minima * minimum);
    const uint8_t *nibbles = from + 16 + group / 2 * 32;
    int shift = group % 2 * 4;
    packWords([&](int i) { return nibbles[i] >> shift & 15; },
              to.words + (first + group) * 4);
  }
}

void packRow(Format format, const uint8_t *row, int64_t columns,
             const PackedRow &to) {
  const FormatInfo &info = infoOf(format);
  int64_t groups = columns / groupOfQ4, perBlock = info.block / groupOfQ4;
  for (int64_t group = 0; group < groups; group += perBlock) {
    if (format == Format::Q4_K) {
      packBlockQ4K(row, to, group);
    } else {
      to.scales[group] = word(row);
      if (format == Format::Q4_1)
        to.minima[group] = word(row + 2);
      const uint8_t *nibbles = row + info.bytes - 16;
      packWords([&](int i) { return nibbles[i % 16] >> (i < 16 ? 0 : 4) & 15; },
                to.words + group * 4);
    }
    row += info.bytes;
  }
}

//===----------------------------------------------------------------------===//
// AWQ and GPTQ
//===----------------------------------------------------------------------===//

// Files do not align their tensors.
static uint32_t wordAt(const uint8_t *words, int64_t i) {
  uint32_t value;
  memcpy(&value, words + 4 * i, 4);
  return value;
}

// Of eight neighbouring columns, the place of one in their word.
static int placeOf(bool isAwq, int64_t column) {
  int within = static_cast<int>(column % 8);
  return isAwq ? within / 2 + within % 2 * 4 : within;
}

namespace {
// One row of an Int4 tensor.
class GroupedRow {
public:
  GroupedRow(const Stored &stored, int64_t n)
      : g(stored.grouped), n(n), rows(stored.rows()),
        shift(4 * placeOf(g.isAwq, n)) {}
  int64_t groupOf(int64_t k) const {
    return g.groupOf ? wordAt(g.groupOf, k) : k / g.group;
  }
  int weight(int64_t k) const {
    return g.isAwq ? wordAt(g.words, k * (rows / 8) + n / 8) >> shift & 15
                   : wordAt(g.words, k / 8 * rows + n) >> k % 8 * 4 & 15;
  }
  int zero(int64_t group) const {
    int stored = wordAt(g.zeros, group * (rows / 8) + n / 8) >> shift & 15;
    return stored + g.zeroOffset;
  }
  uint16_t scale(int64_t group) const {
    return word(g.scales + 2 * (group * rows + n));
  }

private:
  const Grouped &g;
  int64_t n, rows;
  int shift;
};
} // namespace

void expandGrouped(const Stored &stored, int64_t n, float *to) {
  GroupedRow row(stored, n);
  for (int64_t k = 0; k < stored.columns(); ++k) {
    int64_t group = row.groupOf(k);
    to[k] = static_cast<float>(row.weight(k) - row.zero(group)) *
            fromF16(row.scale(group));
  }
}

bool canPackGrouped(const Stored &stored) {
  const Grouped &g = stored.grouped;
  if (g.groupOf || (g.group != 32 && g.group != 64 && g.group != 128))
    return false;
  // A zero of 16 has no room: 15 that is stored less one.
  int64_t words = stored.columns() / g.group * (stored.rows() / 8);
  for (int64_t i = 0; g.zeroOffset && i < words; ++i) {
    uint32_t zeros = wordAt(g.zeros, i);
    if (zeros & zeros >> 1 & zeros >> 2 & zeros >> 3 & 0x11111111)
      return false;
  }
  return true;
}

void packGrouped(const Stored &stored, int64_t n, const PackedRow &to) {
  GroupedRow row(stored, n);
  for (int64_t k = 0; k < stored.columns(); k += 32)
    packWords([&](int i) { return row.weight(k + i); }, to.words + k / 8);
  int64_t groups = stored.columns() / stored.grouped.group;
  for (int64_t group = 0; group < groups; ++group) {
    to.scales[group] = row.scale(group);
    if (group % 8 == 0)
      to.zeros[group / 8] = 0;
    to.zeros[group / 8] |= static_cast<uint32_t>(row.zero(group))
                           << group % 8 * 4;
  }
}

} // namespace greta::llm
