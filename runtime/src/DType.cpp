// DType.cpp: the table of element types.
#include "DType.h"
#include "Error.h"

namespace greta::rt {

unsigned bitsOf(const std::string &DType) {
  static const struct {
    const char *Name;
    unsigned Bits;
  } Table[] = {{"f32", 32},      {"f16", 16},       {"bf16", 16},
               {"f64", 64},      {"i8", 8},         {"i16", 16},
               {"i32", 32},      {"i64", 64},       {"i4", 4},
               {"f8e4m3fn", 8},  {"f8e4m3fnuz", 8}, {"f8e5m2", 8},
               {"f8e5m2fnuz", 8}};
  for (const auto &Row : Table)
    if (DType == Row.Name)
      return Row.Bits;
  return 0;
}

size_t tensorBytes(unsigned Bits, const int64_t *Shape, size_t Rank) {
  int64_t Sum = Bits;
  bool Overflow = false;
  for (size_t D = 0; D < Rank; ++D)
    Overflow |= __builtin_mul_overflow(Sum, Shape[D], &Sum);
  if (Overflow || Sum > INT64_MAX - 7)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "a tensor of shape ",
         shapeText(Shape, Rank), " and elements of ", Bits,
         " bits is larger than the address space");
  return static_cast<size_t>((Sum + 7) / 8);
}

size_t tensorBytes(const std::string &DType,
                   const std::vector<int64_t> &Shape) {
  return tensorBytes(bitsOf(DType), Shape.data(), Shape.size());
}

std::string shapeText(const int64_t *Shape, size_t Rank) {
  if (!Rank)
    return "scalar";
  std::string Text;
  for (size_t D = 0; D < Rank; ++D)
    Text += (D ? "x" : "") + std::to_string(Shape[D]);
  return Text;
}

std::string shapeText(const std::vector<int64_t> &Shape) {
  return shapeText(Shape.data(), Shape.size());
}

} // namespace greta::rt
