// Fp8.cpp: see Fp8.h.
#include "model/Fp8.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace greta::llm {
namespace {

constexpr char fp8NotFinite[] =
    "has numbers or scales of fp8 that are not finite";
constexpr char fp8TooLarge[] =
    "has numbers beyond 65504, which f16 does not have";
constexpr int fp8NaN = 0x7f; // the bits without the sign

// OFP8's e4m3: an exponent of four bits, plus 7, and no infinity.
constexpr std::array<float, 256> makeFp8Numbers() {
  std::array<float, 256> numbers = {};
  for (size_t bits = 0; bits < numbers.size(); ++bits) {
    size_t exponent = bits >> 3 & 15, mantissa = bits & 7;
    float unit = 0x1p-9f; // of denormal numbers, and of the exponent 1
    for (size_t i = 1; i < exponent; ++i)
      unit *= 2;
    float value = static_cast<float>(mantissa + (exponent ? 8 : 0)) * unit;
    if ((bits & fp8NaN) == fp8NaN)
      value = std::numeric_limits<float>::quiet_NaN();
    numbers[bits] = bits & 128 ? -value : value;
  }
  return numbers;
}

constexpr std::array<float, 256> fp8Numbers = makeFp8Numbers();

// The numbers of a row, one after another, with the scale of each.
class Fp8Row {
public:
  Fp8Row(const Stored &stored, size_t row)
      : at(stored.row(row)), matrix(stored.fp8->of(at)),
        step(stored.columnStride ? stored.columnStride : 1),
        scalesOfRow((matrix.columns + matrix.blockColumns - 1) /
                    matrix.blockColumns),
        left(stored.columns()) {
    place();
  }
  // The next numbers that have one scale; none at the row's end.
  int64_t run() const {
    if (step > 1) // the next one is in another row of the matrix
      return std::min<int64_t>(left, 1);
    return std::min(left, matrix.blockColumns - column % matrix.blockColumns);
  }
  float scale() const {
    const FormatInfo &info = infoOf(matrix.scaleFormat);
    int64_t block =
        row / matrix.blockRows * scalesOfRow + column / matrix.blockColumns;
    float scale;
    expandRow(matrix.scaleFormat,
              matrix.scales + static_cast<size_t>(block) * info.bytes, 1,
              &scale);
    return scale;
  }
  const uint8_t *numbers() const { return at; }
  void skip(int64_t count) {
    at += static_cast<size_t>(count) * step;
    left -= count;
    if (left)
      place();
  }

private:
  void place() {
    int64_t number = at - matrix.numbers;
    row = number / matrix.columns;
    column = number % matrix.columns;
  }

  const uint8_t *at;
  const Fp8Matrix &matrix;
  size_t step;
  int64_t scalesOfRow, left, row = 0, column = 0;
};

} // namespace

int64_t fp8Group(const Stored &stored) {
  if (stored.columnStride)
    return 0;
  int64_t block = stored.fp8->of(stored.row(0)).blockColumns;
  for (int64_t group : {128, 64, 32})
    if (stored.columns() % group == 0 && block % group == 0)
      return group;
  return 0;
}

const char *expandFp8(const Stored &stored, size_t row, float *to) {
  bool areFinite = true;
  Fp8Row from(stored, row);
  while (int64_t count = from.run()) {
    float scale = from.scale();
    for (int64_t i = 0; i < count; ++i) {
      *to = fp8Numbers[from.numbers()[i]] * scale;
      areFinite &= std::isfinite(*to++);
    }
    from.skip(count);
  }
  return areFinite ? nullptr : fp8NotFinite;
}

const char *packFp8(const Stored &stored, size_t row, const PackedRow &to) {
  int64_t group = fp8Group(stored);
  Fp8Row from(stored, row);
  memcpy(to[0], from.numbers(), static_cast<size_t>(stored.columns()));
  for (uint8_t *scales = to[1]; from.run(); scales += 4) {
    float scale = from.scale();
    int largest = 0; // numbers are in the order of their bits
    for (int64_t i = 0; i < group; ++i)
      largest = std::max(largest, from.numbers()[i] & fp8NaN);
    if (largest == fp8NaN || !std::isfinite(scale))
      return fp8NotFinite;
    if (std::abs(fp8Numbers[static_cast<size_t>(largest)] * scale) > largestF16)
      return fp8TooLarge;
    memcpy(scales, &scale, 4);
    from.skip(group);
  }
  return nullptr;
}

} // namespace greta::llm
