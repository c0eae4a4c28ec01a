//===- Launch.cpp - functions that launch Triton's kernels ----------------===//
//
// A kernel k gets a function k with its arguments: pointers are tensors of any
// length, and the results are those tensors that it writes to, in place. The
// grid is over the function's symbols, the tensors' lengths and the integers:
//
//   func.func @k(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: i32)
//       -> tensor<?xf32>
//   symbols:         x              y                  n
//
//===----------------------------------------------------------------------===//

#include "TritonToTile.h"
#include "greta/Interface/Launches.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace greta;
using namespace greta::triton;

/// Whether the kernel stores through a pointer, or through one that ops, loops
/// and ifs make of it.
static bool isWritten(Value pointer) {
  llvm::SetVector<Value> reached;
  auto reach = [&](ValueRange values) {
    for (Value value : values)
      if (isa<tile::PtrType>(getElementTypeOrSelf(value.getType())))
        reached.insert(value);
  };
  reached.insert(pointer);
  for (size_t i = 0; i < reached.size(); ++i)
    for (Operation *user : reached[i].getUsers()) {
      // As an integer nobody knows where it goes.
      if (isa<tile::StoreScatteredOp, tile::AtomicRmwOp, tile::AtomicCasOp,
              tile::PtrToIntOp>(user))
        return true;
      SmallVector<Operation *, 2> receivers = {user};
      if (user->hasTrait<OpTrait::IsTerminator>())
        receivers.push_back(user->getParentOp());
      for (Operation *receiver : receivers) {
        reach(receiver->getResults());
        for (Region &region : receiver->getRegions())
          for (Block &block : region)
            reach(block.getArguments());
      }
    }
  return false;
}

/// Whether numbers that a kernel loads through this pointer become pointers.
static bool holdsAddresses(Value pointer) {
  llvm::SetVector<Value> reached; // pointers, and numbers that were loaded
  reached.insert(pointer);
  for (size_t i = 0; i < reached.size(); ++i) {
    bool isPointer =
        isa<tile::PtrType>(getElementTypeOrSelf(reached[i].getType()));
    auto reach = [&](ValueRange values) {
      for (Value value : values) {
        Type element = getElementTypeOrSelf(value.getType());
        if (isPointer ? isa<tile::PtrType>(element) : element.isInteger(64))
          reached.insert(value);
      }
    };
    for (Operation *user : reached[i].getUsers()) {
      if (!isPointer && isa<tile::IntToPtrOp>(user))
        return true;
      if (auto load = dyn_cast<tile::LoadScatteredOp>(user)) {
        if (isPointer &&
            getElementTypeOrSelf(load.getResult().getType()).isInteger(64))
          reached.insert(load.getResult());
        continue;
      }
      reach(user->getResults());
      if (user->hasTrait<OpTrait::IsTerminator>())
        reach(user->getParentOp()->getResults());
      for (Operation *receiver : {user, user->getParentOp()})
        if (isa<LoopLikeOpInterface>(receiver))
          for (Region &region : receiver->getRegions())
            reach(region.getArguments());
    }
  }
  return false;
}

/// Returns a different name for each of the function's arguments, which affine
/// maps may use.
static SmallVector<std::string> nameArguments(ArrayRef<BlockArgument> all) {
  SmallVector<std::string> names;
  for (BlockArgument argument : all) {
    std::string name = sourceName(argument);
    for (char &c : name)
      if (!llvm::isAlnum(c))
        c = '_';
    std::string once = name;
    for (unsigned n = 1; llvm::is_contained(names, once); ++n)
      once = name + "_" + std::to_string(n);
    names.push_back(once);
  }
  return names;
}

/// Returns the reason why no launch can have this grid; "": there is none.
static StringRef whyNever(AffineMap grid) {
  StringRef why;
  for (AffineExpr number : grid.getResults()) {
    auto constant = dyn_cast<AffineConstantExpr>(number);
    if (constant && constant.getValue() < 0)
      why = "a number of programs is negative";
    number.walk([&](AffineExpr part) {
      auto quotient = dyn_cast<AffineBinaryOpExpr>(part);
      if (!quotient || part.getKind() == AffineExprKind::Add ||
          part.getKind() == AffineExprKind::Mul)
        return;
      auto by = dyn_cast<AffineConstantExpr>(quotient.getRHS());
      if (by && by.getValue() <= 0)
        why = "it divides by a number that is not positive";
    });
  }
  return why;
}

/// Parses a grid: one to three expressions over the symbols.
static FailureOr<AffineMap> parseGrid(tile::FuncOp kernel, StringRef grid,
                                      ArrayRef<std::string> symbols) {
  std::string reason, list = llvm::join(symbols, ", ");
  Attribute attr;
  {
    ScopedDiagnosticHandler handler(kernel.getContext(),
                                    [&](Diagnostic &diagnostic) {
                                      reason = diagnostic.str();
                                      return success();
                                    });
    attr =
        parseAttribute(("affine_map<()[" + list + "] -> (" + grid + ")>").str(),
                       kernel.getContext());
  }
  auto map = dyn_cast_or_null<AffineMapAttr>(attr);
  if (map)
    reason = whyNever(map.getValue());
  if (!map || !map.getValue().getNumResults() ||
      map.getValue().getNumResults() > 3 || !reason.empty())
    return kernel.emitError("grid '")
           << grid << "' is not one to three numbers of programs, such as \""
           << (symbols.empty() ? "4" : symbols.back())
           << " ceildiv 64, 2\", over " << list << (reason.empty() ? "" : ": ")
           << reason;
  return map.getValue();
}

LogicalResult triton::addLaunch(tile::FuncOp kernel, StringRef name,
                                StringRef grid) {
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  b.setInsertionPointAfter(kernel);
  ArrayRef<BlockArgument> arguments = kernel.getArguments();
  SmallVector<std::string> names = nameArguments(arguments), symbols;
  SmallVector<Type> types, results;
  SmallVector<int64_t> tied;
  // Who stores nothing may print: then all is as it was.
  bool storesNothing = llvm::none_of(arguments, isWritten);
  for (BlockArgument argument : arguments) {
    unsigned number = argument.getArgNumber();
    Type type = argument.getType();
    if (auto pointer = dyn_cast<tile::PtrType>(type)) {
      type = RankedTensorType::get({ShapedType::kDynamic},
                                   pointer.getElementType());
      if (storesNothing || isWritten(argument)) {
        tied.push_back(number);
        results.push_back(type);
      }
    }
    types.push_back(type);
    if (!isa<FloatType>(type))
      symbols.push_back(names[number]);
  }
  size_t numOperands = types.size();
  std::string own;
  if (grid.empty()) {
    for (const char *axis : {"grid_x", "grid_y", "grid_z"}) {
      types.push_back(b.getI32Type());
      names.push_back(axis);
      symbols.push_back(axis);
    }
    own = llvm::join(ArrayRef(symbols).take_back(3), ", ");
    grid = own;
  }
  FailureOr<AffineMap> map = parseGrid(kernel, grid, symbols);
  if (failed(map))
    return failure();
  auto func = func::FuncOp::create(b, name, b.getFunctionType(types, results));
  for (auto [number, argument] : llvm::enumerate(names))
    func.setArgAttr(number, "greta.name", b.getStringAttr(argument));
  // Triton's pointers may point to anything, also to the same.
  func->setAttr(inPlaceName, b.getUnitAttr());
  for (BlockArgument argument : arguments)
    if (auto pointer = dyn_cast<tile::PtrType>(argument.getType())) {
      unsigned number = argument.getArgNumber();
      auto promised =
          kernel.getArgAttrOfType<IntegerAttr>(number, tile::divisibilityName);
      int64_t bytes =
          llvm::divideCeil(pointer.getElementType().getIntOrFloatBitWidth(), 8);
      func.setArgAttr(
          number, tile::divisibilityName,
          b.getI64IntegerAttr(promised ? std::max(promised.getInt(), bytes)
                                       : bytes));
      if (kernel.getArgAttr(number, tile::pointerRangeName))
        func.setArgAttr(number, tile::pointerRangeName, b.getUnitAttr());
      if (holdsAddresses(argument))
        func.setArgAttr(number, addressesName, b.getUnitAttr());
    }
  Block *body = func.addEntryBlock();
  b.setInsertionPointToEnd(body);
  auto launch = tile::LaunchOp::create(
      b, results, FlatSymbolRefAttr::get(kernel.getSymNameAttr()),
      ValueRange(body->getArguments()).take_front(numOperands),
      AffineMapAttr::get(*map),
      AffineMapAttr::get(AffineMap::get(0, symbols.size(), b.getContext())),
      b.getDenseI64ArrayAttr(tied), /*zeroed=*/nullptr, b.getArrayAttr({}),
      DictionaryAttr(), /*by_rows=*/nullptr);
  func::ReturnOp::create(b, launch.getResults());
  return success();
}
