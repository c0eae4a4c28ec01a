// Fp8.h: matrices of e4m3 with scales, as safetensors have them. In: rows of a
// weight, wherever they lie in the file's matrix. Out: rows of floats, or
// packed as greta.dequant's "e4m3" takes them, with scales for each row.
#ifndef GRETA_LLM_FP8_H
#define GRETA_LLM_FP8_H

#include "model/Formats.h"

#include <map>

namespace greta::llm {

// A matrix in a file, whose rows lie one behind the other, and its scales,
// row-major: one for each block of so many rows and columns.
struct Fp8Matrix {
  const uint8_t *numbers = nullptr, *scales = nullptr;
  int64_t columns = 0;
  int64_t blockRows = 0, blockColumns = 0;
  Format scaleFormat = Format::F32; // of floats
};

// The matrices of a model by their numbers' addresses. A weight may be rows of
// a matrix, parts of several, or some of its columns; the address of a number
// says its scale in all of them.
class Fp8Matrices {
public:
  void add(const Fp8Matrix &matrix) { matrices[matrix.numbers] = matrix; }
  const Fp8Matrix &of(const uint8_t *number) const {
    return std::prev(matrices.upper_bound(number))->second;
  }

private:
  std::map<const uint8_t *, Fp8Matrix> matrices;
};

// The largest group of columns that never has two scales and divides rows; 0:
// there is none that greta.dequant takes.
int64_t fp8Group(const Stored &stored);

// A row of the file as f32 or packed. The result is what is wrong with its
// numbers, or null.
const char *expandFp8(const Stored &stored, size_t row, float *to);
const char *packFp8(const Stored &stored, size_t row, const PackedRow &to);

} // namespace greta::llm
#endif
