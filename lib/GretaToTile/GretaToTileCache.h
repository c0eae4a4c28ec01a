//===- GretaToTileCache.h - results that are new rows of a cache -*- C++
//-*-===//
#ifndef GRETA_LIB_GRETATOTILE_GRETATOTILECACHE_H
#define GRETA_LIB_GRETATOTILE_GRETATOTILECACHE_H

#include "GretaToTile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace greta {

/// A kernel that only moves another's result into a paged cache.
struct CacheUpdate {
  KernelOp kernel;
  mlir::OpResult rows; // of the other kernel
  mlir::Value moved;   // the same, seen through views
  mlir::Value cache, slots;
  mlir::AffineExpr count; // of the cache's rows
};

/// The updates whose rows are a GEMM's or rope's, which can store them itself.
llvm::SmallVector<CacheUpdate> findCacheUpdates(mlir::func::FuncOp function);

} // namespace greta

#endif
