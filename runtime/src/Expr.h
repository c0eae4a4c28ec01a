// Expr.h: the manifest's integer expressions over a function's symbols
// (docs/internals/package.md, "Expressions").
#ifndef GRETA_RUNTIME_EXPR_H
#define GRETA_RUNTIME_EXPR_H

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace greta::rt {

class Expr {
public:
  // Parses an integer, a symbol name or [op, a, b]; only integers that are
  // added may be negative. `Where` names the place in messages.
  static Expr parse(const nlohmann::json &J,
                    const std::vector<std::string> &Symbols,
                    const std::string &Where);

  // Evaluates with one value per symbol. Overflow, division by zero and a
  // negative result are errors.
  int64_t evaluate(const std::vector<int64_t> &Values) const {
    return evaluate(static_cast<uint32_t>(Nodes.size() - 1), Values);
  }

  bool isConstant() const {
    return Nodes.size() == 1 && Nodes[0].Kind == Op::Constant;
  }
  int64_t constant() const { return Nodes[0].Value; }
  // Returns whether both are written alike.
  bool operator==(const Expr &Other) const { return Nodes == Other.Nodes; }

  // Returns the symbol's index if the expression is one symbol, else -1.
  int symbol() const {
    return Nodes.size() == 1 && Nodes[0].Kind == Op::Symbol
               ? static_cast<int>(Nodes[0].Value)
               : -1;
  }

private:
  enum class Op : uint8_t {
    Constant,
    Symbol,
    Add,
    Mul,
    FloorDiv,
    CeilDiv,
    Mod
  };
  struct Node {
    Op Kind;
    int64_t Value = 0;     // the constant, or the symbol's index
    uint32_t A = 0, B = 0; // operands, earlier in Nodes
    bool operator==(const Node &O) const {
      return Kind == O.Kind && Value == O.Value && A == O.A && B == O.B;
    }
  };
  uint32_t parseNode(const nlohmann::json &J,
                     const std::vector<std::string> &Symbols,
                     const std::string &Where, unsigned Depth, bool IsAddend);
  // Evaluates one node; expressions are trees of bounded depth.
  int64_t evaluate(uint32_t Index, const std::vector<int64_t> &Values) const;

  std::vector<Node> Nodes; // operands first; the last is the root
};

} // namespace greta::rt
#endif
