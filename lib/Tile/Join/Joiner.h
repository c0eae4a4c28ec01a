//===- Joiner.h - launches in a row become one ------------------*- C++ -*-===//
//
// In: launches of a function, one after another, at the lane level. Out: one
// launch of one kernel, whose arguments are the tensors and integers of all of
// them, and a word that counts workgroups. Its derived classes say what the
// kernel does with their bodies, its phases: greta-tile-join and
// greta-tile-tail.
//
//===----------------------------------------------------------------------===//

#ifndef GRETA_TILE_JOIN_JOINER_H
#define GRETA_TILE_JOIN_JOINER_H

#include "GretaTile/GretaTile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"

namespace greta {

/// Returns the workgroups of a launch; none: they are not constant, or too
/// many.
std::optional<int64_t> workgroupsOf(tile::LaunchOp launch);

/// Returns the number of iterations of a body's loops. A loop whose number is
/// not known counts as one.
uint64_t iterationsOf(mlir::Block &body);

/// Erases the kernels that nobody launches any more.
void eraseUnlaunched(mlir::ModuleOp module);

/// Launches that become one.
class Joiner {
public:
  /// `isResident`: the joined kernel's workgroups wait for each other, so that
  /// its last scalar says whether a launch is a trial.
  Joiner(mlir::SymbolTable &symbols, bool isResident)
      : symbols(symbols), isResident(isResident) {}
  virtual ~Joiner() = default;

  /// Adds a launch if it can follow those that are here, and returns whether it
  /// did.
  bool take(tile::LaunchOp launch);
  size_t size() const { return launches.size(); }
  /// Puts one launch of the kernel `name` in place of those that are here.
  void join(llvm::StringRef name);

protected:
  /// A phase reads or writes a tensor's memory.
  struct Use {
    mlir::Value memory; // the first value that has it
    bool isWritten;
  };

  /// The joined launch but for operands, results and scalars.
  struct Form {
    mlir::AffineMap grid;
    llvm::SmallVector<mlir::NamedAttribute> config;
  };

  /// Whether the derived class wants a launch that could follow.
  virtual bool admits(tile::LaunchOp launch) = 0;
  virtual void emitPhases(tile::FuncOp kernel) = 0;
  virtual Form formOf(tile::FuncOp kernel) = 0;

  tile::FuncOp kernelOf(tile::LaunchOp launch) {
    return symbols.lookup<tile::FuncOp>(launch.getKernel());
  }
  /// The arguments of the launch's kernel but for scalars.
  llvm::SmallVector<Use> usesOf(tile::LaunchOp launch);
  mlir::Value counterOf(tile::FuncOp kernel) {
    return kernel.getBody().getArgument(memories.size());
  }
  /// Emits the body of a launch's kernel, for the workgroup that `idsOf` gives,
  /// called behind what the body needs in the kernel's entry block.
  using Ids =
      llvm::function_ref<llvm::SmallVector<mlir::Value, 3>(tile::LaunchOp)>;
  void emitPhase(unsigned number, tile::FuncOp kernel,
                 mlir::ImplicitLocOpBuilder &b, Ids idsOf);

  llvm::SmallVector<tile::LaunchOp> launches;

private:
  struct Argument {
    mlir::Value passed; // an operand, or the result that is made here
    mlir::Type type;    // of the kernel's argument
    bool isMade = false, isWritten = false;
    std::optional<unsigned> tied; // the last result in an operand's memory
    llvm::SmallVector<std::pair<tile::FuncOp, unsigned>> uses; // by phases
  };

  bool canFollow(tile::LaunchOp launch);
  void collect();
  void collectScalars(tile::LaunchOp launch,
                      llvm::SmallVectorImpl<unsigned> &places);
  tile::FuncOp createKernel(llvm::StringRef name);
  void setAttributes(tile::FuncOp kernel);
  tile::LaunchOp createLaunch(tile::FuncOp kernel);
  void replaceLaunches(tile::LaunchOp joined);

  mlir::SymbolTable &symbols;
  bool isResident;
  llvm::MapVector<mlir::Value, Argument> memories;  // by their first value
  llvm::SmallVector<mlir::Value> operands, results; // memories as passed
  llvm::SmallVector<std::pair<mlir::AffineExpr, Argument>> scalars;
  llvm::SmallVector<llvm::SmallVector<unsigned>> places; // of arguments
};

} // namespace greta

#endif
