//===- Log.h - prints and assertions of a kernel ----------------*- C++ -*-===//
#ifndef GRETA_LIB_TILE_ARGUMENTS_LOG_H
#define GRETA_LIB_TILE_ARGUMENTS_LOG_H

#include "GretaTile/GretaTile.h"

namespace greta::tile {

/// Whether a kernel prints or asserts.
bool hasLog(FuncOp kernel);

/// Returns the 32-bit words of a kernel's log: 1 MiB if it prints, else 16 KiB,
/// as every stream and graph has one, and the first failures are enough.
int64_t logWordsOf(FuncOp kernel);

/// Replaces prints and assertions by stores to `log`, and says in the kernel's
/// `greta_tile.log` what they leave there.
mlir::LogicalResult expandLog(FuncOp kernel, mlir::Value log);

} // namespace greta::tile

#endif
