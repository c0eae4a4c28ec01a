// Formats.h: how the numbers of a weight lie in a model file, and the two forms
// that devices get: rows of a floating-point type, or 4-bit words with a scale
// and maybe a zero or a minimum per group, which greta.dequant takes.
#ifndef GRETA_LLM_FORMATS_H
#define GRETA_LLM_FORMATS_H

#include <cstdint>
#include <string>
#include <vector>

namespace greta::llm {

enum class Format { F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q6_K, Int4 };

// Elements that are stored together, and their bytes.
struct FormatInfo {
  Format format;
  const char *name;
  uint32_t gguf; // its number in GGUF files
  int64_t block;
  size_t bytes;
};
const FormatInfo &infoOf(Format format);
const FormatInfo *findFormat(const std::string &name);
const FormatInfo *findGgufFormat(uint32_t number);

// A matrix [N, K] of 4-bit weights as AWQ and GPTQ files have it, transposed:
//
//   AWQ   words [K, N/8], zeros [K/group, N/8]: 0 2 4 6 1 3 5 7 of eight
//   columns GPTQ  words [K/8, N], zeros [K/group, N/8]: eight in their order
//
// scales [K/group, N] of f16; a weight is (q - zero - zeroOffset) * scale.
struct Grouped {
  const uint8_t *words = nullptr, *zeros = nullptr, *scales = nullptr;
  const uint8_t *groupOf = nullptr; // of each k, i32; null: k / group
  int64_t group = 0;
  bool isAwq = false;
  int zeroOffset = 0; // GPTQ's zeros are stored less one
};

// A tensor of a model file, row-major, the outermost dimension first. Without
// data it is random, with a deviation that keeps activations of size one.
struct Stored {
  Format format = Format::F32;
  std::vector<int64_t> shape;
  const uint8_t *data = nullptr;
  Grouped grouped = {}; // of Int4
  // Rows of queries and keys as llama's GGUF files have them: in each group of
  // so many rows, rope's pairs are neighbours, not a half apart. 0: they are
  // in the order of the functions.
  int64_t pairedRows = 0;

  int64_t rows() const { return shape.size() > 1 ? shape.front() : 1; }
  int64_t columns() const { return shape.back(); }
  size_t rowBytes() const {
    const FormatInfo &info = infoOf(format);
    return static_cast<size_t>(columns() / info.block) * info.bytes;
  }
  // The row of the file that functions take as this one.
  size_t rowInFile(size_t row) const {
    size_t group = static_cast<size_t>(pairedRows), half = group / 2;
    if (!group)
      return row;
    size_t within = row % group;
    return row - within + within % half * 2 + within / half;
  }
};

enum class Element { F32, F16, BF16 };
const char *nameOf(Element element);
size_t bytesOf(Element element);

uint16_t toF16(float value);
float fromF16(uint16_t bits);
uint16_t toBF16(float value);
float fromBF16(uint16_t bits);

// One row as f32, and in the element type asked for, rounded to nearest even.
void expandRow(Format format, const uint8_t *row, int64_t columns, float *to);
void store(const float *from, int64_t count, Element element, uint8_t *to);

// A row as greta.dequant takes it: words of eight weights, the lowest bits
// first, and per group an f16 scale. Some formats also have packed zeros, or an
// f16 minimum per group; without either every zero is 8.
struct PackedRow {
  uint32_t *words;
  uint16_t *scales;
  uint32_t *zeros;
  uint16_t *minima;
};
bool hasZeros(Format format);
bool hasMinima(Format format);

// A row of a GGUF format of 4 bits, in groups of 32. Scales and minima of Q4_K,
// which are products, are rounded to f16; all else is exact.
constexpr int64_t groupOfQ4 = 32;
bool canPackRow(Format format);
void packRow(Format format, const uint8_t *row, int64_t columns,
             const PackedRow &to);

// Row n of an Int4 tensor, as f32 or packed. It can be packed if groups are of
// 32, 64 or 128 neighbours, and zeros from 0 to 15.
void expandGrouped(const Stored &stored, int64_t n, float *to);
bool canPackGrouped(const Stored &stored);
void packGrouped(const Stored &stored, int64_t n, const PackedRow &to);

} // namespace greta::llm
#endif
