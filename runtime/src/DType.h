// DType.h: element types by the names the manifest uses, and the size of a
// tensor.
#ifndef GRETA_RUNTIME_DTYPE_H
#define GRETA_RUNTIME_DTYPE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace greta::rt {

// Returns the bits of one element, or 0 when the name is unknown.
unsigned bitsOf(const std::string &DType);

// Returns the bytes of a contiguous tensor of elements of `Bits`; i4 packs two
// elements a byte, low nibble first. Throws if it does not fit 63 bits.
size_t tensorBytes(unsigned Bits, const int64_t *Shape, size_t Rank);
size_t tensorBytes(const std::string &DType, const std::vector<int64_t> &Shape);

// Returns "4x4096", or "scalar" for rank 0.
std::string shapeText(const int64_t *Shape, size_t Rank);
std::string shapeText(const std::vector<int64_t> &Shape);

} // namespace greta::rt
#endif
