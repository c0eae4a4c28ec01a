// Expr.cpp: parsing and checked evaluation of manifest expressions.
#include "Expr.h"
#include "Error.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace greta::rt {
namespace {
// A manifest is untrusted: the bounds keep a hostile one from exhausting stack
// or memory.
constexpr unsigned maxDepth = 32;
constexpr size_t maxNodes = 1024;
} // namespace

Expr Expr::parse(const nlohmann::json &J,
                 const std::vector<std::string> &Symbols,
                 const std::string &Where) {
  Expr E;
  E.parseNode(J, Symbols, Where, 0, /*IsAddend=*/false);
  return E;
}

uint32_t Expr::parseNode(const nlohmann::json &J,
                         const std::vector<std::string> &Symbols,
                         const std::string &Where, unsigned Depth,
                         bool IsAddend) {
  if (Depth > maxDepth || Nodes.size() >= maxNodes)
    fail(GRETA_ERROR_BAD_PACKAGE, Where, ": expression nested too deeply");
  Node N{Op::Constant};
  if (J.is_number_integer()) {
    if (J.is_number_unsigned() && J.get<uint64_t>() > INT64_MAX)
      fail(GRETA_ERROR_BAD_PACKAGE, Where, ": integer out of range");
    N.Value = J.get<int64_t>();
    if (N.Value < 0 && !IsAddend)
      fail(GRETA_ERROR_BAD_PACKAGE, Where, ": negative integer ", N.Value);
  } else if (J.is_string()) {
    const auto &Name = J.get_ref<const std::string &>();
    auto It = std::find(Symbols.begin(), Symbols.end(), Name);
    if (It == Symbols.end())
      fail(GRETA_ERROR_BAD_PACKAGE, Where, ": unknown symbol '",
           printable(Name), "'");
    N.Kind = Op::Symbol;
    N.Value = It - Symbols.begin();
  } else if (J.is_array() && J.size() == 3 && J[0].is_string()) {
    const auto &Name = J[0].get_ref<const std::string &>();
    if (Name == "+")
      N.Kind = Op::Add;
    else if (Name == "*")
      N.Kind = Op::Mul;
    else if (Name == "floordiv")
      N.Kind = Op::FloorDiv;
    else if (Name == "ceildiv")
      N.Kind = Op::CeilDiv;
    else if (Name == "mod")
      N.Kind = Op::Mod;
    else
      fail(GRETA_ERROR_BAD_PACKAGE, Where, ": unknown operator '",
           printable(Name), "' (one of + * floordiv ceildiv mod)");
    N.A = parseNode(J[1], Symbols, Where, Depth + 1, N.Kind == Op::Add);
    N.B = parseNode(J[2], Symbols, Where, Depth + 1, N.Kind == Op::Add);
  } else {
    fail(GRETA_ERROR_BAD_PACKAGE, Where,
         ": not an expression (an integer, a symbol or [op, a, b])");
  }
  Nodes.push_back(N);
  return static_cast<uint32_t>(Nodes.size() - 1);
}

int64_t Expr::evaluate(uint32_t Index,
                       const std::vector<int64_t> &Values) const {
  const Node &N = Nodes[Index];
  if (N.Kind == Op::Constant)
    return N.Value;
  int64_t A = 0, B = 0, R = 0;
  if (N.Kind > Op::Symbol) {
    A = evaluate(N.A, Values);
    B = evaluate(N.B, Values);
  }
  bool Overflow = false;
  switch (N.Kind) {
  case Op::Constant:
    break;
  case Op::Symbol:
    R = Values.at(static_cast<size_t>(N.Value));
    break;
  case Op::Add:
    Overflow = __builtin_add_overflow(A, B, &R);
    break;
  case Op::Mul:
    Overflow = __builtin_mul_overflow(A, B, &R);
    break;
  case Op::FloorDiv:
  case Op::CeilDiv:
  case Op::Mod:
    if (B == 0)
      fail(GRETA_ERROR_INVALID_ARGUMENT,
           "division by zero in a manifest expression");
    // The operands are never negative, so C++'s truncation is the floor.
    R = N.Kind == Op::Mod ? A % B
                          : A / B + (N.Kind == Op::CeilDiv && A % B != 0);
    break;
  }
  if (Overflow)
    fail(GRETA_ERROR_INVALID_ARGUMENT,
         "64-bit overflow in a manifest expression (", A, " and ", B, ")");
  if (R < 0)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "negative value ", R,
         " in a manifest expression");
  return R;
}

} // namespace greta::rt
