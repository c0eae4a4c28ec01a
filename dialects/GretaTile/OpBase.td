//===- OpBase.td - what the dialect's ops share -------------------------===//
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

def AnyBlock : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;
def FloatBlock : StaticShapeTensorOf<[AnyFloat]>;
def AnyScalar : AnyTypeOf<[AnyFloat, AnySignlessInteger]>;
def AnyLaneValue : AnyTypeOf<[AnyFloat, AnySignlessInteger, VectorOfRankAndType<[1], [AnyFloat, AnySignlessInteger]>]>;

#endif
