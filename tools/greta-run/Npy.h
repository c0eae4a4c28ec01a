// Npy.h: reads and writes NumPy's .npy files (format versions 1 to 3,
// little-endian, C order). Debian has no library that knows 16-bit floats, and
// the format is a line of text in front of the numbers.
#ifndef GRETA_RUN_NPY_H
#define GRETA_RUN_NPY_H

#include "Tensor.h"

namespace greta_run {

struct NpyHeader {
  std::string DType; // f32 f16 f64 i8 i32, and u8, u16 for types that NumPy
                     // does not have
  std::vector<int64_t> Shape;
  size_t DataOffset = 0;
};

// Throws std::runtime_error with the path and what is wrong. The data's size is
// checked against the shape.
NpyHeader readNpyHeader(const std::string &Path);
std::vector<uint8_t> readNpyData(const std::string &Path,
                                 const NpyHeader &Header);

// The file's bytes for a tensor. bf16 is stored as uint16, 8-bit floats and
// packed i4 as uint8.
std::vector<uint8_t> npyFile(const HostTensor &T);

} // namespace greta_run
#endif
