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

size_t tensorBytes(const std::string &DType,
                   const std::vector<int64_t> &Shape) {
  int64_t Bits = bitsOf(DType);
  bool Overflow = false;
  for (int64_t Dim : Shape)
    Overflow |= __builtin_mul_overflow(Bits, Dim, &Bits);
  if (Overflow || Bits > INT64_MAX - 7)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "a tensor of shape ", shapeText(Shape),
         " and type ", DType, " is larger than the address space");
  return static_cast<size_t>((Bits + 7) / 8);
}

std::string shapeText(const std::vector<int64_t> &Shape) {
  if (Shape.empty())
    return "scalar";
  std::string Text;
  for (int64_t Dim : Shape)
    Text += (Text.empty() ? "" : "x") + std::to_string(Dim);
  return Text;
}

} // namespace greta::rt
