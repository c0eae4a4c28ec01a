// Formats.h: how the numbers of a weight lie in a model file, and the two forms
// that devices get: rows of a floating-point type, or 4-bit words with a scale
// per group, which greta.dequant takes.
#ifndef GRETA_LLM_FORMATS_H
#define GRETA_LLM_FORMATS_H

#include <cstdint>
#include <string>
#include <vector>

namespace greta::llm {

enum class Format { F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q6_K };

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

// A tensor of a model file, row-major, the outermost dimension first. Without
// data it is random, with a deviation that keeps activations of size one.
struct Stored {
  Format format = Format::F32;
  std::vector<int64_t> shape;
  const uint8_t *data = nullptr;

  int64_t rows() const { return shape.size() > 1 ? shape.front() : 1; }
  int64_t columns() const { return shape.back(); }
  size_t rowBytes() const {
    const FormatInfo &info = infoOf(format);
    return static_cast<size_t>(columns() / info.block) * info.bytes;
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

// A Q4_0 row as greta.dequant's words (eight weights each, the lowest bits
// first) and f16 scales. The zero of every group is 8.
constexpr int64_t packedGroup = 32;
constexpr uint32_t packedZeros = 0x88888888;
void packRow(const uint8_t *row, int64_t columns, uint32_t *words,
             uint16_t *scales);

} // namespace greta::llm
#endif
