//===- Passes.td - passes on block programs -------------------------------===//
#ifndef GRETA_TILE_PASSES_TD
#define GRETA_TILE_PASSES_TD

include "mlir/Pass/PassBase.td"

def GretaTileSetTargetPass : Pass<"greta-tile-set-target", "::greta::tile::FuncOp"> {
  let summary = "Give a block program the waves and matrix instructions of a target";
  let description = [{
    A kernel without `wave_size` gets the target's; where waves cannot exchange values (`vulkan:portable`), lanes take the place of
    waves, 32 for each. Its dots without `matrix` get the instruction for their types whose tiles make up the block, and stay multiply-adds where the target has none.

    ```mlir
    greta_tile.func @k(..) attributes {waves = 4 : i32} { %d = greta_tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32> .. }
    // with target=gfx942
    greta_tile.func @k(..) attributes {wave_size = 64 : i32, waves = 4 : i32} { %d = greta_tile.dot .. {matrix = #greta_tile.matrix<"mfma.f32.32x32x8f16", ..>} .. }
    ```
  }];
  let options = [Option<"target", "target", "std::string", "", "a row of the target table">,
                 Option<"matrix", "matrix", "bool", "true", "whether to use matrix instructions">];
}

def GretaTileAssignLayoutsPass : Pass<"greta-tile-assign-layouts", "::greta::tile::FuncOp"> {
  let summary = "Give every block tensor of a kernel a layout";
  let description = [{
    Accumulators of dots have their instruction's layout, contracts and then the largest blocks without a layout one that the accesses,
    reductions and products around them ask for. From these, layouts go on to operands and results of ops that need no data to move
    (`LayoutTransferOpInterface`, elementwise ops) and around loops. Where an op finds its operands in other layouts,
    `greta_tile.convert_layout` is inserted: at the operands of dots, and nowhere in kernels without them.

    ```mlir
    %x = greta_tile.load %p[%r, %z] strides [256, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<1x256xf32>
    %s = greta_tile.reduce add %x dim 1 : tensor<1x256xf32> -> tensor<1x1xf32>
    // with 64 lanes: four neighbours in a lane's registers, lanes side by side; the sum is in every lane
    %x = ... -> tensor<1x256xf32, #greta_tile.layout<{reg = [[0, 1], [0, 2]], lane = [[0, 4], .., [0, 128]], wave = [], rep = [1, 1]}>>
    %s = ... -> tensor<1x1xf32, #greta_tile.layout<{reg = [], lane = [[0, 0], .., [0, 0]], wave = [], rep = [1, 1]}>>
    ```
  }];
  let dependentDialects = ["::greta::tile::GretaTileDialect"];
}

def GretaTilePipelinePass : Pass<"greta-tile-pipeline", "::greta::tile::FuncOp"> {
  let summary = "Keep the blocks of a loop over K in flight";
  let description = [{
    For loops with the attribute `greta_tile.pipeline` whose body loads blocks, computes on them and multiplies them into carried
    accumulators: the blocks go through locals in shared memory, the loads run ahead of the products, and beyond the end they load the
    last block again, so that the body has no branch.

    ```mlir
    scf.for %k iter_args(%c) { %a = load; %b = load; %x = convert_layout %a; %y = convert_layout %b; dot %x, %y, %c }
    // becomes, with one stage
    scf.for %k iter_args(%c, %a, %b) {
      barrier; local_store %a; local_store %b; barrier
      %a1 = load; %b1 = load           // of the next block
      scf.for %s iter_args(%d) { %x = local_load; %y = local_load; dot %x, %y, %d }
    }
    ```
  }];
  let dependentDialects = ["::greta::tile::GretaTileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif
