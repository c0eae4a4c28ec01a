// Tensor.h: a tensor on the host: its numbers as the device sees them, where
// they come from, and how two are compared.
#ifndef GRETA_RUN_TENSOR_H
#define GRETA_RUN_TENSOR_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace greta_run {

struct HostTensor {
  std::string DType; // the manifest's names, and f64 (expectations only)
  std::vector<int64_t> Shape;
  std::vector<uint8_t> Bytes;
  int64_t elements() const;
};

// Bits of one element; 0 when the name is unknown.
unsigned bitsOf(const std::string &DType);
std::string shapeText(const std::vector<int64_t> &Shape);
size_t bytesOf(const std::string &DType, const std::vector<int64_t> &Shape);

// An input that --input names: shape and type at once, the numbers when asked
// for, so that a shape that is wrong or too large is found before gigabytes of
// random numbers are made.
struct Input {
  std::string Text, DType;
  bool IsScalar = false; // an argument's value
  std::vector<int64_t> Shape;
  std::function<std::vector<uint8_t>()> Make;
};

// x.npy | bf16:x.npy | 4096xf16:random:7[:SIGMA] | 8xi32:random:7[:LO:HI] |
// 3xf32:value:1.5 | 3xf32:zeros | i32:1003 | i1:1 | bf16:0.5, a scalar
Input parseInput(const std::string &Text);

// A tensor's elements as doubles; i4 counts nibbles.
class Elements {
public:
  explicit Elements(const HostTensor &T);
  double operator[](int64_t Index) const;

private:
  enum { F64, F32, I64, I32, I16, I8, I4, Small } Kind;
  const uint8_t *Bytes;
  size_t Width;
  std::vector<float> Table; // of Small
};

// docs/internals/numerics.md: a result with fewer columns than these counts as
// one row. The rule is a product's; a package does not say what made a result,
// so here it holds for all.
constexpr int64_t FewColumns = 32;

struct Difference {
  double MaxAbs = 0;         // of all elements
  double RowEuclidean = 0;   // worst row: |got - want| / |want|
  double RowMaximum = 0;     // worst row: max|got - want| / max|want|
  int64_t Outside = 0;       // elements outside atol + rtol * |want|
  int64_t FirstOutside = -1; // the first of them
};
// NaN agrees with NaN and an infinity with that of its sign; one that the other
// side does not have makes every measure infinite.
Difference compare(const HostTensor &Got, const HostTensor &Want, double Rtol,
                   double Atol);

} // namespace greta_run
#endif
