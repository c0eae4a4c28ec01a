//===- Symbols.h - the dynamic dimensions of a function ---------*- C++ -*-===//
//
// Which dynamic dimensions of a function are equal, and which of them its
// arguments define. Every shape becomes a map over the function's symbols:
//
//   func @f(%x: tensor<?x64xf16>, %r: tensor<?x64xf16>) -> tensor<?x64xf16>
//   (x + r)      symbol s0 is dimension 0 of argument 0; all shapes (s0, 64)
//
// On the function this is
//   greta.symbols = [[0, 0]]                       symbol k is [argument, dim]
//   greta.shapes  = [["d0", 64], ["d0", 64], ["d0", 64]]   arguments, results
// where an extent is an integer, a symbol's name, or [op, a, b] with op one of
// "+", "*", "floordiv", "ceildiv", "mod", as in the package's manifest.
//
// If no op says so, an argument's attribute greta.shape, a map over the
// symbols, says what its extents are: the function's caller is held to it.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_FUSE_SYMBOLS_H
#define GRETA_FUSE_SYMBOLS_H

#include "GretaTile/GretaTile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace greta {

class ShapeAnalysis {
public:
  explicit ShapeAnalysis(mlir::func::FuncOp function) : function(function) {}

  /// Looks at the whole function. Extents that cannot be equal get a
  /// diagnostic.
  mlir::LogicalResult run();

  /// The shape of a tensor over the symbols, or null when some extent follows
  /// from no argument.
  mlir::AffineMap shapeOf(mlir::Value tensor);

  /// [[argument, dim], ...]; an integer scalar is [argument].
  mlir::ArrayAttr symbols();

  /// Whether an extent was left out because its expression is too large.
  bool hasLargeExtent() const { return isLarge; }

private:
  /// A class of equal extents; what defines it is kept by the leader.
  struct Extent {
    unsigned parent;
    std::optional<int64_t> size;
    std::optional<unsigned> symbol;
    /// An expression over other extents: kind, left, right.
    std::optional<std::tuple<mlir::AffineExprKind, unsigned, unsigned>> derived;
    /// The source's expression for it, over the symbols themselves.
    mlir::AffineExpr stated;
    bool visiting = false;
  };

  unsigned fresh();
  unsigned constant(int64_t size);
  unsigned leader(unsigned id);
  unsigned extent(mlir::Value tensor, int64_t dim);
  unsigned index(mlir::Value value);
  /// Says that extents are equal; with a diagnostic at the op that is visited
  /// where they cannot be.
  void unify(unsigned a, unsigned b);
  void unify(mlir::Value a, int64_t dim, mlir::Value b, int64_t otherDim) {
    unify(extent(a, dim), extent(b, otherDim));
  }
  void unifyShapes(mlir::Value a, mlir::Value b);
  void visit(mlir::Operation *op);
  void visitGretaOp(mlir::Operation *op);
  void visitAttention(mlir::Operation *op);
  void visitLaunch(tile::LaunchOp launch);
  mlir::LogicalResult readShapes();
  void state(mlir::Value tensor, mlir::AffineMap shape);
  void visitReshape(mlir::Value whole, mlir::Value parts,
                    llvm::ArrayRef<llvm::SmallVector<int64_t, 2>>);
  mlir::AffineExpr expression(unsigned id);
  mlir::AffineExpr
  expression(unsigned id, llvm::DenseMap<unsigned, mlir::AffineExpr> &known);

  mlir::func::FuncOp function;
  mlir::Operation *visited = nullptr;
  bool isConsistent = true, isLarge = false;
  std::vector<Extent> extents;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, unsigned> ids;
  /// The argument of each symbol, and which of its dimensions; none: its value.
  llvm::SmallVector<std::pair<unsigned, std::optional<unsigned>>> definitions;
  unsigned statedSymbols = 0; // that shapes in the source are over
};

/// Sets greta.symbols and greta.shapes; a result whose shape follows from no
/// argument gets a diagnostic.
mlir::LogicalResult attachSymbols(mlir::func::FuncOp function,
                                  ShapeAnalysis &analysis);

/// "+", "*", "mod", "floordiv" or "ceildiv", of an expression of two others.
llvm::StringRef operatorName(mlir::AffineExpr expr);

/// A shape as an attribute in the form of greta.shapes.
mlir::ArrayAttr shapeAttribute(mlir::AffineMap shape);

} // namespace greta

#endif
