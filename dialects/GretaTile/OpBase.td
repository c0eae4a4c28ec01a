//===- OpBase.td - what the dialect's ops share ---------------------------===//
#ifndef GRETATILE_OPBASE_TD
#define GRETATILE_OPBASE_TD

include "GretaTile/GretaTileDialect.td"
include "GretaTile/LayoutInterface.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"

class GretaTile_Op<string mnem, list<Trait> traits = []> : Op<GretaTile_Dialect, mnem, traits>;

/// Blocks of anything, and those that are computed with.
def AnyBlock : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger, GretaTile_PtrType]>;
def NumberBlock : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;
def FloatBlock : StaticShapeTensorOf<[AnyFloat]>;
def AnyScalar : AnyTypeOf<[AnyFloat, AnySignlessInteger]>;
/// A scalar or a block.
def NumberLike : AnyTypeOf<[AnyFloat, AnySignlessInteger, NumberBlock]>;
def PtrLike : AnyTypeOf<[GretaTile_PtrType, StaticShapeTensorOf<[GretaTile_PtrType]>]>;
def I64Like : AnyTypeOf<[I64, StaticShapeTensorOf<[I64]>]>;
def OffsetLike : AnyTypeOf<[I32, I64, StaticShapeTensorOf<[I32, I64]>]>;
def MaskLike : AnyTypeOf<[I1, StaticShapeTensorOf<[I1]>]>;
def AnyLaneValue : AnyTypeOf<[AnyFloat, AnySignlessInteger, VectorOfRankAndType<[1], [AnyFloat, AnySignlessInteger]>]>;

#endif
