//===- Structure.cpp - Triton IR without branches and calls ---------------===//
//
// A `return` in the middle of a kernel, or of a function that is mapped over a
// block, leaves blocks and branches, which become scf.if. Then every function
// is one block, and inlining a call is copying it. Calls may pass descriptors,
// so they are gone before ops are converted.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/Structure.h"
#include "TritonToTile.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace greta;
using namespace greta::triton;

/// Copies a callee to its call. Its own calls are inlined in turn.
static LogicalResult inlineCall(CallOp call, SymbolTable &symbols,
                                SmallVectorImpl<Operation *> &callers) {
  auto callee = symbols.lookup<FuncOp>(call.getCallee());
  if (!callee || callee.isExternal())
    return call.emitOpError("calls '")
           << call.getCallee() << "', which this text does not define";
  if (callee.getFunctionType() != FunctionType::get(call.getContext(),
                                                    call.getOperandTypes(),
                                                    call.getResultTypes()))
    return call.emitOpError("calls '")
           << call.getCallee() << "' with other types than it has";
  if (llvm::is_contained(callers, callee))
    return call.emitOpError("calls '")
           << call.getCallee()
           << "', which calls this: kernels have no stack, write it as a loop";
  OpBuilder builder(call);
  IRMapping mapping;
  mapping.map(callee.getArguments(), call.getOperands());
  SmallVector<CallOp> inner;
  Block &body = callee.getBody().front();
  for (Operation &op : body.without_terminator()) {
    Operation *copy = builder.clone(op, mapping);
    copy->walk([&](Operation *nested) {
      nested->setLoc(CallSiteLoc::get(nested->getLoc(), call.getLoc()));
      if (auto nestedCall = dyn_cast<CallOp>(nested))
        inner.push_back(nestedCall);
    });
  }
  for (auto [result, value] :
       llvm::zip(call.getResults(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(mapping.lookupOrDefault(value));
  call.erase();
  callers.push_back(callee);
  for (CallOp nested : inner)
    if (failed(inlineCall(nested, symbols, callers)))
      return failure();
  callers.pop_back();
  return success();
}

LogicalResult triton::structureFunctions(ModuleOp module) {
  WalkResult structured = module.walk([](Operation *op) {
    bool hasBranches = isa<FuncOp, MapElementwiseOp>(op);
    return WalkResult(hasBranches ? tile::structureBranches(op->getRegion(0))
                                  : success());
  });
  if (structured.wasInterrupted())
    return failure();
  SymbolTable symbols(module);
  for (auto func : module.getOps<FuncOp>()) {
    if (!func.isPublic() || func.isExternal())
      continue;
    SmallVector<CallOp> calls;
    func.walk([&](CallOp call) { calls.push_back(call); });
    SmallVector<Operation *> callers = {func};
    for (CallOp call : calls)
      if (failed(inlineCall(call, symbols, callers)))
        return failure();
  }
  return success();
}
