//===- ExplicitArguments.cpp - greta-tile-explicit-arguments --------------===//
//
// In: kernels and the launches that run them. Out: the same, where a kernel
// reads nothing but its arguments, and these are pointers, i32, i64 and f32:
// the grid's extents are scalars of the launch, the log a result of it
// (Log.cpp), and other scalars come as their bits.
//
//===----------------------------------------------------------------------===//

#include "Log.h"
#include "greta/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILEEXPLICITARGUMENTSPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta::tile;

namespace {

/// A kernel with the launches that run it.
class Kernel {
public:
  Kernel(FuncOp kernel, SmallVector<LaunchOp> launches)
      : kernel(kernel), launches(std::move(launches)),
        b(kernel.getLoc(), kernel.getContext()) {}
  LogicalResult run();

private:
  LogicalResult addLog();
  LogicalResult addExtents();
  void passAsBits(BlockArgument argument);

  FuncOp kernel;
  SmallVector<LaunchOp> launches;
  ImplicitLocOpBuilder b;
};

} // namespace

/// The log is a tensor that a launch makes.
static LaunchOp withLog(LaunchOp launch, int64_t words) {
  ImplicitLocOpBuilder b(launch.getLoc(), launch);
  SmallVector<Type> types(launch.getResultTypes());
  types.push_back(RankedTensorType::get({words}, b.getI32Type()));
  SmallVector<Attribute> shapes(launch.getResultShapes().getValue());
  shapes.push_back(AffineMapAttr::get(
      AffineMap::get(0, launch.getGrid().getNumSymbols(),
                     b.getAffineConstantExpr(words), b.getContext())));
  DenseI64ArrayAttr tied = launch.getTiedAttr();
  if (tied) {
    SmallVector<int64_t> places(tied.asArrayRef());
    places.push_back(-1);
    tied = b.getDenseI64ArrayAttr(places);
  }
  auto made =
      LaunchOp::create(b, types, launch.getKernelAttr(), launch.getOperands(),
                       launch.getGridAttr(), launch.getScalarsAttr(), tied,
                       launch.getZeroedAttr(), b.getArrayAttr(shapes),
                       launch.getConfigAttr(), launch.getByRowsAttr());
  launch->replaceAllUsesWith(made->getResults().drop_back());
  launch.erase();
  return made;
}

LogicalResult Kernel::addLog() {
  // Behind the launch's results, in front of what it computes.
  unsigned place = kernel.getNumArguments();
  if (!launches.empty())
    place -= launches.front().getScalars().getNumResults();
  if (failed(kernel.insertArgument(place, PtrType::get(b.getI32Type()), {},
                                   kernel.getLoc())))
    return failure();
  for (LaunchOp &launch : launches)
    launch = withLog(launch, logWordsOf(kernel));
  return expandLog(kernel, kernel.getArgument(place));
}

LogicalResult Kernel::addExtents() {
  Value extents[3];
  SmallVector<NumProgramsOp> ops;
  kernel.walk([&](NumProgramsOp op) { ops.push_back(op); });
  for (NumProgramsOp op : ops) {
    unsigned axis = op.getAxis();
    if (!extents[axis]) {
      unsigned place = kernel.getNumArguments();
      auto attrs =
          b.getDictionaryAttr(b.getNamedAttr(nonNegativeName, b.getUnitAttr()));
      if (failed(kernel.insertArgument(place, b.getI32Type(), attrs,
                                       kernel.getLoc())))
        return failure();
      extents[axis] = kernel.getArgument(place);
      for (LaunchOp launch : launches) {
        AffineMap grid = launch.getGrid(), scalars = launch.getScalars();
        AffineExpr extent = axis < grid.getNumResults()
                                ? grid.getResult(axis)
                                : b.getAffineConstantExpr(1);
        launch.setScalars(
            scalars.insertResult(extent, scalars.getNumResults()));
      }
    }
    op.replaceAllUsesWith(extents[axis]);
    op.erase();
  }
  return success();
}

void Kernel::passAsBits(BlockArgument argument) {
  Type type = argument.getType(), passed = getPassedType(type);
  if (type == passed)
    return;
  argument.setType(passed);
  b.setInsertionPointToStart(argument.getOwner());
  Type bits = b.getIntegerType(type.getIntOrFloatBitWidth());
  Value value = argument;
  SmallPtrSet<Operation *, 2> casts;
  if (bits != passed) {
    value = arith::TruncIOp::create(b, bits, value);
    casts.insert(value.getDefiningOp());
  }
  if (bits != type) {
    value = arith::BitcastOp::create(b, type, value);
    casts.insert(value.getDefiningOp());
  }
  argument.replaceAllUsesExcept(value, casts);
}

LogicalResult Kernel::run() {
  if ((hasLog(kernel) && failed(addLog())) || failed(addExtents()))
    return failure();
  for (BlockArgument argument : kernel.getArguments())
    if (!isa<PtrType>(argument.getType()))
      passAsBits(argument);
  kernel.setFunctionType(
      b.getFunctionType(kernel.getBody().getArgumentTypes(), {}));
  return success();
}

namespace {
struct ExplicitArgumentsPass
    : greta::impl::GretaTileExplicitArgumentsPassBase<ExplicitArgumentsPass> {
  void runOnOperation() override {
    llvm::StringMap<SmallVector<LaunchOp>> launches;
    getOperation().walk([&](LaunchOp launch) {
      launches[launch.getKernel()].push_back(launch);
    });
    for (FuncOp kernel : getOperation().getOps<FuncOp>())
      if (failed(Kernel(kernel, launches.lookup(kernel.getSymName())).run()))
        return signalPassFailure();
  }
};
} // namespace
