//===- Tile.td - passes on block programs --------------------------------===//
#ifndef GRETA_PASSES_TILE_TD
#define GRETA_PASSES_TILE_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Block programs (lib/Tile)
//===----------------------------------------------------------------------===//

def GretaTileStructurePass : Pass<"greta-tile-structure", "::mlir::ModuleOp"> {
  let summary = "Branches of kernels and of their helpers become scf";
  let description = [{
    In front of inlining: a `cf` branch to a block that returns is an early return.

    ```mlir
    cf.cond_br %c, ^done, ^rest
    ^rest: greta_tile.store ..; cf.br ^done
    ^done: greta_tile.return
    // becomes
    scf.if %c { } else { greta_tile.store .. }
    greta_tile.return
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect", "::mlir::scf::SCFDialect",
                           "::mlir::ub::UBDialect"];
}

def GretaTileExplicitArgumentsPass : Pass<"greta-tile-explicit-arguments", "::mlir::ModuleOp"> {
  let summary = "Makes arguments of the values that a kernel reads beside its arguments";
  let description = [{
    Kernels and the launches that run them change together. `num_programs` is a scalar that the launch computes. The log, which prints and assertions
    write to, is a further result of the launch, which nobody uses: word 0 counts the words behind it that are taken, and each print or assertion that fails takes some,
    `[site, program ids, values ..]`, if there are so many left. The kernel's `greta_tile.log`, which the manifest has, says what a site is. Scalars that
    are not i32, i64 or f32 come as their bits in one of these.

    ```mlir
    %n = greta_tile.num_programs 0
    greta_tile.assert %c, "out of bounds" : i1
    greta_tile.launch @k grid affine_map<()[d0] -> (d0 ceildiv 64)> scalars affine_map<()[d0] -> ()> (%x) ..
    // becomes
    greta_tile.func @k(%x: !greta_tile.ptr<f32>, .., %log: !greta_tile.ptr<i32>, %n: i32) ..
    scf.if %failed { %place = greta_tile.atomic_rmw add relaxed device %log, %words ..; scf.if %fits { greta_tile.store_scattered .. } }
    greta_tile.launch @k grid affine_map<()[d0] -> (d0 ceildiv 64)> scalars affine_map<()[d0] -> (d0 ceildiv 64)> (%x) ..
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def GretaTileSetTargetPass : Pass<"greta-tile-set-target", "::greta::tile::FuncOp"> {
  let summary = "Give a block program the waves and matrix instructions of a target";
  let description = [{
    A kernel without `wave_size` gets the target's; where waves cannot exchange values (`vulkan:portable`), lanes take the place of
    waves, 32 for each, and waves of fewer than 32 lanes (`vulkan:lavapipe`) are more where blocks are large, until a lane has 64 elements or there are 32 lanes for each. Its dots without `matrix` get the instruction for their types whose tiles make up the block, and stay SIMT FMAs where the target has none.

    ```mlir
    greta_tile.func @k(..) attributes {waves = 4 : i32} { %d = greta_tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32> .. }
    // with target=gfx942
    greta_tile.func @k(..) attributes {wave_size = 64 : i32, waves = 4 : i32} { %d = greta_tile.dot .. {matrix = #greta_tile.matrix<"mfma.f32.32x32x8f16", ..>} .. }
    ```
  }];
  let options = [Option<"target", "target", "std::string", "", "a row of the target table">,
                 Option<"matrix", "matrix", "bool", "true", "whether to use matrix instructions">];
}

def GretaTilePromiseArgumentsPass : Pass<"greta-tile-promise-arguments", "::mlir::ModuleOp"> {
  let summary = "Tell kernels what their launches keep";
  let description = [{
    Arguments get `greta.divisibility` where all launches of the kernel keep it: buffers are at multiples of 16 bytes, scalars are
    expressions with known divisors. Promises of a kernel's author stay.

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

def GretaTileAssignLayoutsPass : Pass<"greta-tile-assign-layouts", "::greta::tile::FuncOp"> {
  let summary = "Give every block tensor of a kernel a layout";
  let options = [Option<"target", "target", "std::string", /*default=*/"\"\"", "name or alias in the target table; none: one without transposed loads">];
  let description = [{
    Accumulators of dots have their instruction's layout, contracts and then the largest blocks without a layout one that the accesses,
    reductions and GEMMs around them ask for. From these, layouts go on to operands and results of ops that need no data to move
    (`LayoutTransferOpInterface`, elementwise ops) and around loops. If an op finds its operands in other layouts,
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

def GretaTileInductionsPass : Pass<"greta-tile-inductions", "::greta::tile::FuncOp"> {
  let summary = "Compute what loops carry from the iteration's number";
  let description = [{
    Carried integers and pointers that advance by the same amount each iteration, and whose last value nobody needs, follow from the iteration's number instead; a loop over blocks of a
    fixed size counts their elements, so that what is known of its counter is known of the elements.

    ```mlir
    scf.for %i = %c0 to %blocks step %c1 iter_args(%p = %x) { %at = arith.muli %i, %c32; ..; %n = greta_tile.ptr_add %p, %c32; scf.yield %n }   // %blocks = (%n + 31) / 32
    // becomes, canonicalised
    scf.for %at = %c0 to %n step %c32 { %p = greta_tile.ptr_add %x, %at; .. }
    ```
  }];
  let dependentDialects = ["::greta::tile::GretaTileDialect", "::mlir::arith::ArithDialect"];
}

def GretaTileMoveInvariantsPass : Pass<"greta-tile-move-invariants", "::greta::tile::FuncOp"> {
  let summary = "Compute in front of loops what is the same in each iteration";
  let description = [{
    MLIR's loop-invariant code motion, but for the places of elements (`greta_tile.iota`) that nothing takes along: a lane has them from its number, and drivers
    would keep them in registers for the whole loop.

    ```mlir
    scf.for %k { %i = greta_tile.iota 0; %f = arith.sitofp %i; %j = greta_tile.iota 1; %n = arith.addi %j, %k; .. }
    // becomes
    %i = greta_tile.iota 0; %f = arith.sitofp %i; scf.for %k { %j = greta_tile.iota 1; %n = arith.addi %j, %k; .. }
    ```
  }];
}

def GretaTileSplitLoopsPass : Pass<"greta-tile-split-loops", "::greta::tile::FuncOp"> {
  let summary = "Loops whose first iterations need no masks have a loop for these";
  let description = [{
    A comparison of a block that holds for all elements up to some iteration, which is known before the loop, is true in a loop of its own, and so are masks and
    selections that consist of such comparisons; the iterations that are left have them. In the first loop the maximum of products with a positive number is the maximum's product, and a
    number whose sign nobody knows is asked in front of it. Innermost loops with dots that count up from no negative number are split, if these selections are at least a sixteenth of what they compute in floats.

    ```mlir
    scf.for %k = %c0 to %n step %c64 { %i = iota 0 + splat %k; %m = arith.cmpi slt, %i, splat %n; %x = arith.select %m, %y, %z; .. }
    // becomes, canonicalised
    scf.for %k = %c0 to %whole step %c64 { .. %y .. }   // %whole = %n / 64 * 64, where no %n is negative
    scf.for %k = %whole to %n step %c64 { .. %x .. }
    ```
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"\"", "row of the target table">];
  let dependentDialects = ["::greta::tile::GretaTileDialect", "::mlir::arith::ArithDialect"];
}

def GretaTileRaiseAccessesPass : Pass<"greta-tile-raise-accesses", "::greta::tile::FuncOp"> {
  let summary = "Accesses through blocks of pointers become strided ones";
  let description = [{
    Addresses have to be sums of one pointer, uniform values, and for each dimension its index times a stride that is known not to be negative. Masks have
    to be bounds of indices, above or below (`>= 0`, unsigned comparisons: `nonnegative`), and conditions of the whole block, which become bounds. Then a mask of rows leaves accesses along a row as wide as they are, and one base serves all lanes. Loads are raised where the
    kernel does not write what they load and a loop takes them for its dots, or their argument is `greta.readonly`; stores are raised in kernels with dots.
    On a target whose loads have no masks a load that may begin outside of its bounds is raised if its loop may be left out there, which then stands in a branch; a
    stride of unknown sign makes accesses `wide` there. Loads of dots that become multiply-adds stay, and so do wide ones without a mask.

    ```mlir
    %v = greta_tile.load_scattered %p mask %m    // %p = %x + (%first + iota 0) * %stride + iota 1, %m: %first + iota 0 < %rows
    // becomes
    %v = greta_tile.load %x[%first, %c0] strides [?, 1] (%stride) bounds [0] (%rows)
    ```
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"\"", "row of the target table">];
  let dependentDialects = ["::greta::tile::GretaTileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def GretaTileSchedulePass : Pass<"greta-tile-schedule", "::greta::tile::FuncOp"> {
  let summary = "Choose how loops over K move their operands";
  let description = [{
    A loop that multiplies loaded blocks into carried accumulators, and has no `greta_tile.pipeline`, gets the one that greta-configure's model finds fastest
    for a GEMM with the loop's blocks as its tile: stages, slices, loads straight to shared memory. A loop of one dot has one stage where that has room for twice the waves, more would leave at most two on a SIMD, and those do not keep the unit busy by the model;
    where loops have one stage (`TileFacts::stagesOfLoop`), it has two if these leave as many waves, two on a SIMD at most.
    If drivers load matrices whole, the slices are iterations of a loop of their own, and the model takes the shortest ones. Dots of few rows that have no instruction, and whose operands are strided loads, get the one that takes operands from registers, where
    the target has it, and their loop no stages.

    ```mlir
    scf.for %k iter_args(%c) { %a = load; %b = load; %d = dot %a, %b, %c }
    // becomes
    scf.for %k iter_args(%c) { .. } {greta_tile.pipeline = #greta_tile.pipeline<stages = 2, slice = 16>}
    ```
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"host\"", "row of the target table">,
                 Option<"matrix", "matrix", "bool", "true", "whether to use matrix instructions">];
}

def GretaTilePipelinePass : Pass<"greta-tile-pipeline", "::greta::tile::FuncOp"> {
  let summary = "Keep what a loop loads for its dots in flight";
  let description = [{
    Blocks that a loop loads for its dots go through locals in shared memory, after elementwise work on them; the loads run ahead of the iteration that
    multiplies them, under whatever else the body computes. Beyond the end they load the last iteration's blocks again, so that the body has no branch. The attribute
    `greta_tile.pipeline` says how; loops without it are pipelined as the target's shared memory allows, if they write no memory. Numbers that addresses of
    loads follow from, like entries of a table of pages, are loaded one iteration before those.

    ```mlir
    scf.for %k iter_args(%c) { %a = load; %b = load; %x = convert_layout %a; %y = convert_layout %b; dot %x, %y, %c }
    // becomes, with one stage
    scf.for %k iter_args(%c, %a, %b) {
      local_store %a; local_store %b
      %a1 = load; %b1 = load           // of the next iteration
      scf.for %s iter_args(%d) { %x = local_load; %y = local_load; dot %x, %y, %d }
    }
    ```
  }];
  let dependentDialects = ["::greta::tile::GretaTileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"host\"",
                        "row of the target table; for the host only loops with the attribute are pipelined">];
}

#endif
