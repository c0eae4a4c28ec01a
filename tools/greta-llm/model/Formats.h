// Formats.h: how the numbers of a weight lie in a model file, and the two forms
// that devices get: rows of a floating-point type, or packed as greta.dequant
// takes them.
#ifndef GRETA_LLM_FORMATS_H
#define GRETA_LLM_FORMATS_H

#include "greta/Interface/WeightFormats.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace greta::llm {

enum class Format {
  F32,
  F16,
  BF16,
  Q8_0,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q4_K,
  Q5_K,
  Q6_K,
  Q2_K,
  Q3_K,
  IQ4_NL,
  IQ4_XS,
  MXFP4,
  // These are expanded (Codebooks.cpp).
  IQ1_S,
  IQ1_M,
  IQ2_XXS,
  IQ2_XS,
  IQ2_S,
  IQ3_XXS,
  IQ3_S,
  TQ1_0,
  TQ2_0,
  NVFP4,
  Q1_0,
  Q2_0,
  // Numbers and what belongs to them are tensors of their own.
  Int4,
  F8_E4M3
};

// Elements that are stored together, and their bytes.
struct FormatInfo {
  Format format;
  const char *name;
  uint32_t gguf; // its number in GGUF files
  int64_t block;
  size_t bytes;
  const char *packed; // the format of greta.dequant that holds it, or null
  int64_t group;      // of that; 0: weights' shapes decide
};
const FormatInfo &infoOf(Format format);
const FormatInfo *findFormat(const std::string &name);
const FormatInfo *findGgufFormat(uint32_t number);
// By the name that safetensors have: F32, F16, BF16.
const FormatInfo *findFloats(const std::string &dtype);
// Whether files have it, in numbers or in blocks that stay packed: not those
// that are expanded when they are loaded.
bool staysAsItIs(const FormatInfo &info);
// The names of all formats of one tensor, for people, or of those that stay.
std::string fileFormats(bool onlyThatStay = false);

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

class Fp8Matrices; // Fp8.h

// How a file orders the rows of a head of queries or keys. Functions turn pairs
// that are half a head apart, and all of them, some by an angle of 0; so pairs
// that are neighbours in the file, and a part of a head that has no rope, are
// put into that order, of queries as of keys, which leaves their products.
struct HeadOrder {
  int64_t size = 0; // 0: the order is that of the functions
  int64_t rotated = 0;
  bool areNeighbours = false;

  // The row of the file that functions take as this one.
  size_t inFile(size_t row) const {
    size_t group = static_cast<size_t>(size);
    if (!group)
      return row;
    size_t within = row % group, half = group / 2, side = within / half,
           pair = within % half, turned = static_cast<size_t>(rotated) / 2,
           from;
    if (pair >= turned)
      from = 2 * pair + side;
    else
      from = areNeighbours ? 2 * pair + side : pair + side * turned;
    return row - within + from;
  }
};

// A tensor of a model file, row-major, the outermost dimension first. Without
// data it is random, with a deviation that keeps activations of size one.
struct Stored {
  Format format = Format::F32;
  std::vector<int64_t> shape;
  const uint8_t *data = nullptr;
  Grouped grouped = {}; // of Int4
  // The weight's matrices, one for each of the outermost dimension, if they do
  // not lie one behind the other.
  std::vector<const uint8_t *> parts = {};
  // Bytes from one row to the next, and from one number of a row to the next,
  // where there are others between them; 0: there are none.
  size_t rowStride = 0, columnStride = 0;
  // MXFP4 whose scales lie apart; its blocks are 16 bytes, of neighbours.
  const uint8_t *scales = nullptr;
  // The scales of F8_E4M3.
  std::shared_ptr<const Fp8Matrices> fp8 = {};
  HeadOrder headOrder = {};
  // Numbers are those of the file and one.
  bool isLessOne = false;

  int64_t rows() const {
    int64_t count = 1;
    for (size_t dim = 0; dim + 1 < shape.size(); ++dim)
      count *= shape[dim];
    return count;
  }
  int64_t columns() const { return shape.back(); }
  size_t rowBytes() const {
    const FormatInfo &info = infoOf(format);
    return static_cast<size_t>(columns() / info.block) * info.bytes;
  }
  // Rows that lie one behind the other.
  size_t rowsOfPart() const {
    size_t all = static_cast<size_t>(rows());
    return parts.empty() ? all : all / parts.size();
  }
  const uint8_t *row(size_t number) const {
    size_t within = rowsOfPart();
    return (parts.empty() ? data : parts[number / within]) +
           number % within * (rowStride ? rowStride : rowBytes());
  }
  // Rows lie one behind the other as the format says.
  bool isPlain() const { return !rowStride && !columnStride && !scales; }
};

enum class Element { F32, F16, BF16 };
const char *nameOf(Element element);
Element elementNamed(const std::string &name);
size_t bytesOf(Element element);

constexpr float largestF16 = 65504;
uint16_t toF16(float value);
float fromF16(uint16_t bits);
uint16_t toBF16(float value);
float fromBF16(uint16_t bits);

// A row as its format says: where it is in the file, or put together in `room`.
const uint8_t *wholeRow(const Stored &stored, size_t number,
                        std::vector<uint8_t> &room);

// One row as f32, and in the element type asked for, rounded to nearest even.
void expandRow(Format format, const uint8_t *row, int64_t columns, float *to);
// The same of a block of a format that is not packed.
void expandCodebook(Format format, const uint8_t *from, float *to);
void store(const float *from, int64_t count, Element element, uint8_t *to);
// Finite numbers that f16 does not have become its largest.
void limitToF16(float *numbers, int64_t count);

// An operand of greta.dequant for a weight [N, K]: so many columns of an
// element type, under the weight's name with a suffix.
struct PackedPart {
  const char *suffix, *dtype;
  int64_t columns;
  size_t rowBytes;
};
std::vector<PackedPart> packedParts(Format format, int64_t columns,
                                    int64_t group);
// A row's bytes of each part.
using PackedRow = std::vector<uint8_t *>;

// How a format of blocks is held; null for Int4, formats without blocks, and
// those that are expanded.
// Scales and minima that the file has as products, those of K formats, are
// rounded to f16; all else is exact.
inline const WeightFormat *packedFormat(Format format) {
  const char *name = infoOf(format).packed;
  return name ? findWeightFormat(name) : nullptr;
}
// Returns the format in which functions take a matrix: an interleaved one, if
// there is one and the matrix, or each expert's, has an even number of rows.
const WeightFormat *heldFormat(const Stored &stored);
// Packs a row as the format `as` has it (null: packedFormat's has it).
// False: a number of MXFP4 is beyond f16. Scales below 2^-24 become 0. In all
// other formats no finite group has numbers beyond f16: its minimum becomes the
// largest number of f16, and its scale one with which no number is beyond it.
// A group whose ends are a little too large so moves by no more than that.
bool packRow(Format format, const uint8_t *row, int64_t columns,
             const PackedRow &to, const WeightFormat *as = nullptr);
// Interleaves two rows of a part (words, scales or minima), which lie one
// behind the other, in their place; a row stands for `columns` weights.
void interleave(const PackedPart &part, int64_t columns, uint8_t *rows);

// Row n of an Int4 tensor, as f32 or packed. It can be packed if groups are of
// 32, 64 or 128 neighbours, and zeros from 0 to 15.
void expandGrouped(const Stored &stored, int64_t n, float *to);
bool canPackGrouped(const Stored &stored);
void packGrouped(const Stored &stored, int64_t n, const PackedRow &to);

} // namespace greta::llm
#endif
