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
      local_store %a; local_store %b
      %a1 = load; %b1 = load           // of the next block
      scf.for %s iter_args(%d) { %x = local_load; %y = local_load; dot %x, %y, %d }
    }
    ```
  }];
  let dependentDialects = ["::greta::tile::GretaTileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def GretaTilePromiseArgumentsPass : Pass<"greta-tile-promise-arguments", "::mlir::ModuleOp"> {
  let summary = "Tell kernels what their launches keep";
  let description = [{
    Arguments get `greta.divisibility` where all launches of the kernel keep it: buffers are at multiples of 16 bytes, scalars are
    expressions with known divisors. What a kernel's author has promised stays.

    ```mlir
    greta_tile.launch @k grid .. scalars affine_map<()[n] -> (n * 8)> (%x) ..
    greta_tile.func @k(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %n: i32 {greta.divisibility = 8 : i64})
    ```
  }];
}

def GretaTilePrintFactsPass : Pass<"greta-tile-print-facts", "::greta::tile::FuncOp"> {
  let summary = "Say what is known of every integer and pointer";
  let description = [{
    A remark at every op with results and every argument, for tests and to see why an access is as narrow as it is: what
    `include/greta/Tile/Facts.h` has of it.

    ```mlir
    %i = greta_tile.iota 0 : tensor<64xi32>   // remark: contiguity [64], divisibility [any], constancy [1], range [0, 63]
    ```
  }];
}

def GretaTileBarriersPass : Pass<"greta-tile-barriers", "::greta::tile::FuncOp"> {
  let summary = "Put the lanes' accesses to shared memory in order";
  let description = [{
    Takes one lane's program (`greta-tile-distribute`) and inserts the fewest `greta_tile.barrier`s that order what lanes read and write: between an
    access and one that may meet it in the same stage of the same array, or in bytes that two arrays share (`greta-tile-plan-memory`), around loops
    too. Barriers that stand there count. For `ptr_load_shared` the barrier before what it has loaded is used waits, and leaves in flight what
    was issued later.

    ```mlir
    scf.for %i {
      shared_store %v, %a[%lane]; %w = shared_load %a[%other]
    }
    // becomes
    scf.for %i {
      barrier; shared_store %v, %a[%lane]; barrier; %w = shared_load %a[%other]
    }
    ```
  }];
  let dependentDialects = ["::greta::tile::GretaTileDialect"];
}

def GretaTilePlanMemoryPass : Pass<"greta-tile-plan-memory", "::greta::tile::FuncOp"> {
  let summary = "Give every array in shared memory its place";
  let description = [{
    Sets the `offset` of every `shared_alloc` of a kernel with barriers. Arrays that are not in use together share bytes (on Vulkan those of one element
    type) where a barrier orders their uses anyway; also where none does, if more workgroups fit on a compute unit then:
    `greta-tile-barriers` runs again behind this pass. Fails where the target's workgroups have less shared memory than the kernel needs.
  }];
  let dependentDialects = ["::greta::tile::GretaTileDialect"];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"host\"", "row of the target table, for example gfx942">];
}

def GretaTileInterleavePass : Pass<"greta-tile-interleave", "::greta::tile::FuncOp"> {
  let summary = "Order what one lane of a GEMM does between two barriers";
  let description = [{
    Fragments of A are loaded just before their first product. Every `greta_tile.schedule` is replaced by `schedule_group`s that say how the accesses
    and products before it alternate.
  }];
  let dependentDialects = ["::greta::tile::GretaTileDialect"];
}

#endif
