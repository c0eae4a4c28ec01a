//===- DebugOps.td - what a program says about itself ---------------------===//
#ifndef GRETATILE_DEBUGOPS_TD
#define GRETATILE_DEBUGOPS_TD

include "GretaTile/OpBase.td"

def GretaTile_LogResource : Resource<"::greta::tile::LogResource">;

/// Values that a line can show.
def PrintableLike : AnyTypeOf<[AnyScalar, GretaTile_PtrType, AnyBlock]>;

def GretaTile_PrintOp : GretaTile_Op<"print", [MemoryEffects<[MemWrite<GretaTile_LogResource>]>]> {
  let summary = "Prints values when the launch has ended";
  let description = [{
    Each element is a line of the launch's standard output, behind the program's ids, the element's index and `prefix`; without operands the prefix is one
    line of the program. `hex` shows bits; integers are signed but for those that `unsigned` numbers. A launch that prints waits for its end.

    ```mlir
    greta_tile.print " x is: " %x : tensor<4x16xf32>          // pid (2, 0, 0) idx (3, 15) x is: 0.5
    greta_tile.print " range " %a, %b hex : i32, i32          // pid (2, 0, 0) idx () range (operand 0) 0x0000001f
    ```
  }];
  let arguments = (ins StrAttr:$prefix, Variadic<PrintableLike>:$values, UnitAttr:$hex, OptionalAttr<DenseI64ArrayAttr>:$unsignedValues);
  let assemblyFormat = "$prefix ($values^)? (`hex` $hex^)? (`unsigned` $unsignedValues^)? attr-dict (`:` type($values)^)?";
  let hasVerifier = 1;
}

def GretaTile_AssertOp : GretaTile_Op<"assert", [MemoryEffects<[MemWrite<GretaTile_LogResource>]>]> {
  let summary = "Fails the launch where a condition does not hold";
  let description = [{
    The program goes on; when the launch has ended it is an error, with the message, the program's ids, the index of the first element that is false, and the
    place in the source. Whoever waits for the launch next is told.

    `greta_tile.assert %inside, "index out of bounds" : tensor<128xi1>`
  }];
  let arguments = (ins MaskLike:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
}

#endif
