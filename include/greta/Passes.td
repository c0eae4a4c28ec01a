//===- Passes.td - the compiler's passes, in the order of the pipeline ----===//
#ifndef GRETA_PASSES_TD
#define GRETA_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Fused ops (lib/Fuse, lib/Configure, lib/GretaToTile)
//===----------------------------------------------------------------------===//

def GretaAnnotateShapesPass : Pass<"greta-annotate-shapes", "::mlir::func::FuncOp"> {
  let summary = "Find the dynamic dimensions that are equal and name them";
  let description = [{
    Sets `greta.symbols`, `[argument, dimension]` of every symbol, and `greta.shapes`, the shape of every argument and result
    over them. An extent is an integer, a symbol's name `"d0"`, or `[op, a, b]`.

    ```mlir
    func.func @f(%x: tensor<?x64xf16>, %r: tensor<?x64xf16>) -> tensor<?x64xf16> { arith.addf %x, %r ... }
    // gets {greta.symbols = [[0, 0]], greta.shapes = [["d0", 64], ["d0", 64], ["d0", 64]]}
    ```
  }];
}

def GretaWidenGemmsPass : Pass<"greta-widen-gemms", "::mlir::func::FuncOp"> {
  let summary = "GEMMs of 8-bit floats that the target has no instruction for become GEMMs of f16";
  let description = [{
    Every 8-bit float is a number of f16, too, so that nothing is lost. Skinny GEMMs stay as they are: they widen what they load in any case.

    ```mlir
    %0 = greta.matmul %a, %b : tensor<?x64xf8E4M3FN>, tensor<64x32xf8E5M2> -> tensor<?x32xbf16>
    // becomes
    %1 = arith.extf %a : tensor<?x64xf8E4M3FN> to tensor<?x64xf16>
    %2 = arith.extf %b : tensor<64x32xf8E5M2> to tensor<64x32xf16>
    %3 = greta.matmul %1, %2 : tensor<?x64xf16>, tensor<64x32xf16> -> tensor<?x32xf32>
    %0 = arith.truncf %3 : tensor<?x32xf32> to tensor<?x32xbf16>
    ```
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"\"", "row of the target table, for example gfx942">,
                 Option<"matrix", "matrix", "bool", /*default=*/"true", "use the target's matrix instructions">];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def GretaFusePass : Pass<"greta-fuse", "::mlir::func::FuncOp"> {
  let summary = "Group the ops of a function into kernels";
  let description = [{
    Replaces the body of a function by `greta.kernel` ops and views (`tensor.expand_shape`, `collapse_shape`) between them. Slices
    (`tensor.extract_slice`) are views of the kernels' operands. A
    kernel has one region per index space: row ops and elementwise work of one shape; or a `greta.matmul`, or two of the same A,
    with the elementwise work, swiglu and rope on their results; or `greta.attention` with the elementwise work on its result. Spaces that depend on the same kernels share a launch. Constants, broadcasts and cheap elementwise work
    are repeated where they are used. Sets `greta.symbols` and `greta.shapes`, as `greta-annotate-shapes` does. An op that has no
    place in a kernel is an error.

    With `parts-of-heads` rope also joins a GEMM of 5 to 64 rows and packed weights, whose tiles are then parts of heads: a head's pairs of columns
    `[d, d + 8)` and `[D / 2 + d, D / 2 + d + 8)`, say. Without it rope has a kernel of its own there, because tiles of whole heads leave compute units idle.

    ```mlir
    func.func @f(%x: tensor<?x64xf16>, %r: tensor<?x64xf16>, %w: tensor<64xf16>) -> tensor<?x64xf16> {
      %0 = arith.addf %x, %r : tensor<?x64xf16>
      %1 = greta.rms_norm %0, %w {eps = 1.0e-5 : f32} : tensor<?x64xf16>, tensor<64xf16> -> tensor<?x64xf16>
      return %1 : tensor<?x64xf16>
    }
    // becomes one greta.kernel(%x, %r, %w) with both ops in its region
    ```
  }];
  let options = [Option<"partsOfHeads", "parts-of-heads", "bool", /*default=*/"false", "the target's tiles may be parts of heads">];
  let dependentDialects = ["::greta::GretaDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def GretaConfigurePass : Pass<"greta-configure", "::mlir::func::FuncOp"> {
  let summary = "Choose the schedule of every kernel for a target";
  let description = [{
    Sets the attribute `schedule` of every `greta.kernel` (`#greta.schedule`).

    Only rows of the target table are asked, no names. A schedule that is already there stays. The attribute `greta.config` of a
    `greta.matmul` overrides parts of the choice: with matrix instructions `{tile = [256, 256, 32], waves = 8, stages = 2,
    slice = 16, group = 8, instruction = [32, 32, 8], split = 4, opaque, direct}`, where `opaque` takes a device's layouts of cooperative matrices for unknown, and `direct`
    loads blocks straight to shared memory; for skinny GEMMs `{tile = [1, 16, 256], waves = 8, run = 8, unroll = 4, split = 2}`; where the target has no instruction `{tile = [64, 64, 16], waves = 8, split = 2}`.
    A dictionary in it is for the targets of its name: `{waves = 4, gfx942 = {waves = 8}, "vulkan:nvidia" = {tile = [160, 160, 64]}}`. A
    GEMM without it gets what the tuning database has for it, where that fits; a remark says where it does not.

  }];
  let options = [Option<"target", "target", "std::string", [{""}], "name or alias of a row of the target table">,
                 Option<"file", "tuning", "std::string", [{""}], "tuning database (docs/guide/tuning.md)">,
                 Option<"matrix", "matrix", "bool", "true", "use the target's matrix instructions">,
                 Option<"spareRegisters", "spare-registers", "int64_t", "0", "registers of a lane that tiles of GEMMs and attention leave free">];
  let dependentDialects = ["::greta::tile::GretaTileDialect"];
}

def GretaToTilePass : Pass<"greta-to-tile", "::mlir::ModuleOp"> {
  let summary = "Configured kernels become programs on block tensors";
  let description = [{
    Every `greta.kernel` with a schedule (`greta-fuse`, `greta-configure`) becomes a `greta_tile.func`, what one workgroup does,
    and a `greta_tile.launch` in its place. The kernel is named after the function and its number in it.

    ```mlir
    %0 = greta.kernel(%x) {schedule = .., shapes = ..} ... { greta.softmax ... }   // one row of 256 per workgroup
    // becomes
    greta_tile.func @f_0(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {..} {
      %row = greta_tile.program_id 0
      %v = greta_tile.load %x[%row, %c0] strides [256, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<1x256xf32>
      %max = greta_tile.reduce max %v dim 1 : tensor<1x256xf32> -> tensor<1x1xf32>
      ...
    }
    %0 = greta_tile.launch @f_0 grid affine_map<()[s0] -> (s0)> scalars affine_map<()[s0] -> ()> (%x) ...
    ```
  }];
  let options = [Option<"units", "units", "int64_t", /*default=*/"0",
                        "how many workgroups run at a time, at least. If all of a split GEMM's do, several add up a large tile">];
  let dependentDialects = ["::greta::tile::GretaTileDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect"];
}

//===----------------------------------------------------------------------===//
// Triton IR (lib/TritonToTile)
//===----------------------------------------------------------------------===//

def TritonToTilePass : Pass<"triton-to-tile", "::mlir::ModuleOp"> {
  let summary = "Triton's kernels become block programs, and functions that launch them";
  let description = [{
    Takes the Triton IR that Triton 3.6 to 3.9 print. Each public `tt.func` becomes a `greta_tile.func`, op by op, and a function of its name and its
    arguments that launches it: pointers are tensors of any length, and those that the kernel writes to are results, too, in place. Branches
    out of a function become `scf.if`, calls are inlined, descriptors become pointers, microscaled dots become dots of what they unpack to.
    An op that no target can compute is an error at the kernel's source line.

    ```mlir
    tt.func public @copy(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32>, %n: i32) {
      %0 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
      %1 = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      ...
    }
    // with grid="n ceildiv 64"
    greta_tile.func @copy_0(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
      %0 = greta_tile.iota 0 : tensor<64xi32>
      %1 = greta_tile.splat %x : tensor<64x!greta_tile.ptr<f32>>
      ...
    }
    func.func @copy(%x: tensor<?xf32> {greta.divisibility = 16 : i64}, %y: tensor<?xf32> {greta.divisibility = 4 : i64}, %n: i32) -> tensor<?xf32>
        attributes {greta.in_place} {
      %0 = greta_tile.launch @copy_0 grid affine_map<()[x, y, n] -> (n ceildiv 64)> scalars affine_map<()[x, y, n] -> ()> (%x, %y, %n) tied [1] shapes []
           : (tensor<?xf32>, tensor<?xf32>, i32) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }
    ```
  }];
  let options = [
    Option<"grid", "grid", "std::string", /*default=*/"\"\"",
           "numbers of programs along x, y and z over the kernel's integers, for example \"n ceildiv 64, m\"; "
           "without it the function has arguments grid_x, grid_y and grid_z for them">,
    Option<"numWarps", "num-warps", "unsigned", /*default=*/"0",
           "waves of a program; 0: the text's ttg.num-warps, else 4">,
    Option<"numStages", "num-stages", "unsigned", /*default=*/"0",
           "K tiles at a time of loops that do not say it themselves (greta_tile.stages of the kernel); 0: the compiler chooses">];
  let dependentDialects = ["::greta::tile::GretaTileDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::func::FuncDialect", "::mlir::ub::UBDialect"];
}

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

//===----------------------------------------------------------------------===//
// From blocks to one lane's program (lib/Lane), its shared memory and order (lib/Tile)
//===----------------------------------------------------------------------===//

def GretaTileDistributePass : Pass<"greta-tile-distribute", "::mlir::ModuleOp"> {
  let summary = "Kernels on block tensors become one lane's program";
  let description = [{
    Every block tensor has a layout (`greta-tile-assign-layouts`). It becomes as many scalars as the layout has registers;
    loads and stores become lane accesses of up to 16 bytes, reductions and `convert_layout` shuffles and shared memory, in parts where a whole
    block is more than a workgroup of the target has.

    ```mlir
    %s = arith.addf %a, %b : tensor<1x64xf32, #l>      // #l: 32 lanes, 2 registers
    // becomes
    %s0 = arith.addf %a0, %b0 : f32
    %s1 = arith.addf %a1, %b1 : f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"host\"",
                        "row of the target table, which says how much shared memory there is and whether loads of a pipelined loop have masks">];
}

def GretaTileJoinPass : Pass<"greta-tile-join", "::mlir::ModuleOp"> {
  let summary = "Launches of a function in a row become one whose workgroups stay";
  let description = [{
    Takes the lane level. Launches with constant grids, workgroups of one size and no log become one `resident` launch of as many workgroups as run at a time. Its kernel has
    their bodies as phases, each a loop over its launch's grid, and a `greta_tile.grid_barrier` in front of a phase that touches what another since the last barrier wrote, or writes what
    another read. A load of memory that nobody writes is made a tile ahead, for the first tile in front of that barrier. The launch's last scalar is zero: it is no trial (`greta_tile.grid_barrier`). Functions whose arguments are memory
    (`greta.in_place`) stay as they are. Kernels that nobody launches any more are erased.
    A launch that would bring a lane's loops beyond `iterations` is not joined to those before it; a loop whose bounds are not constant counts once.

    ```mlir
    %0 = greta_tile.launch @a grid affine_map<() -> (768)> ..
    %1 = greta_tile.launch @b grid affine_map<() -> (264)> .. (%0)
    // becomes, with residents=132
    %0:3 = greta_tile.launch @f_joined0 grid affine_map<() -> (132)> scalars affine_map<() -> (0)> .. zeroed [2] .. resident
    greta_tile.func @f_joined0(..) ..  {
      scf.for %tile = program_id 0 to 768 step 132 { .. }
      greta_tile.grid_barrier %met until 132
      scf.for %tile = program_id 0 to 264 step 132 { .. }
      greta_tile.grid_barrier %met until 264 last
    }
    ```
  }];
  let options = [Option<"residents", "residents", "int64_t", /*default=*/"0", "workgroups that run at a time">,
                 Option<"iterations", "iterations", "int64_t", /*default=*/"0", "iterations of a lane's loops that the driver runs; 0: there is no limit">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def GretaTileTailPass : Pass<"greta-tile-tail", "::mlir::ModuleOp"> {
  let summary = "A launch of one workgroup is done by the last workgroup of the launch before it";
  let description = [{
    Takes the lane level. A launch of one workgroup that reads what the launch in front of it wrote becomes that one's tail: the workgroups count themselves in a word that
    holds zero before, and the last one goes on with the second kernel's work, so that nobody waits. Both have workgroups of one size, constant grids and no log, and the tail has no
    matrix products and up to 2 KB of shared memory, which fit beside the first kernel's. Functions whose arguments are memory (`greta.in_place`) stay as they are. Kernels that
    nobody launches any more are erased.

    ```mlir
    %0 = greta_tile.launch @gemm grid affine_map<() -> (512)> ..
    %1 = greta_tile.launch @norm grid affine_map<() -> (1)> .. (%0)
    // becomes
    %0:3 = greta_tile.launch @f_tail0 grid affine_map<() -> (512)> .. zeroed [2] ..
    ```
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"host\"", "row of the target table, for example gfx942">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def GretaTileCheckJoinedPass : Pass<"greta-tile-check-joined", "::mlir::ModuleOp"> {
  let summary = "Prove that kernels of resident launches wait for what comes, and for all that they need";
  let description = [{
    Takes the lane level, behind `greta-tile-join`, of which it knows nothing but the form. Fails unless, in each kernel of a `resident` launch,

    - barriers over the grid stand in the entry block, count on from one to the next by the launch's workgroups, in one word that nobody else touches, and only the last, at the end, is `last`:
      all workgroups come to all of them, so that every wait ends, and the next launch finds zero;
    - what touches other memory is a loop from `program_id 0` by the launch's workgroups to a constant, so that each tile is done once, and hands
      nothing to what is behind it; only loads of what nobody writes stand outside;
    - its last argument is an i32 without a use, for which the launch passes zero;
    - operands are memory of their own, none is written that the kernel promises only to read, and the counter is memory that the launch promises to hold zeros;
    - of two such loops between the same barriers neither writes through an argument that the other reads or writes;

    and unless kernels of other launches have no barriers over the grid.
  }];
}

def GretaTileCheckTailsPass : Pass<"greta-tile-check-tails", "::mlir::ModuleOp"> {
  let summary = "Prove that the last workgroup of a launch with a tail does it once, and sees what all wrote";
  let description = [{
    Takes the lane level, behind `greta-tile-tail`, of which it knows nothing but the form. Fails unless, in each kernel that a launch with `tail` in its configuration names, the entry
    block ends with these, and nothing else touches memory behind the first of them:

    - all lanes release to the device, and meet; the first lane releases, adds one to a word, tells the others through an array of its own what was there before, and acquires; all meet;
    - if that is the launch's workgroups but one, all lanes acquire, the first lane sets the word to zero, and the tail follows;

    and unless

    - the grid is constant, and the launch promises zeros in the word, which nobody else touches;
    - the tail takes nothing of before it that comes from memory, from the workgroup's number or from an array that is in use before it;
    - operands are memory of their own, and none is written that the kernel promises only to read.
  }];
}

def GretaTileBarriersPass : Pass<"greta-tile-barriers", "::greta::tile::FuncOp"> {
  let summary = "Put the lanes' accesses to shared memory in order";
  let description = [{
    Takes one lane's program (`greta-tile-distribute`) and inserts the fewest `greta_tile.barrier`s that order what lanes read and write: between an
    access and one that may meet it in the same stage of the same array, or in bytes that two arrays share (`greta-tile-plan-memory`), around loops
    too. Barriers that stand there count. For `ptr_load_shared` the barrier before what it has loaded is used waits, and leaves in flight what
    was issued later. On Vulkan a barrier in a loop stands in front of loads from global memory that are for the next iteration.

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
  let options = [Option<"target", "target", "std::string", /*default=*/"\"host\"", "row of the target table, for example gfx942">];
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
    Fragments of A are loaded just before their first GEMM. Every `greta_tile.schedule` is replaced by `schedule_group`s that say how the accesses
    and GEMMs before it alternate.
  }];
  let dependentDialects = ["::greta::tile::GretaTileDialect"];
}

def GretaTileExpandAtomicsPass : Pass<"greta-tile-expand-atomics", "::greta::tile::FuncOp"> {
  let summary = "Atomics that the target lacks become loops around those that it has";
  let description = [{
    Takes the lane level. `ptr_atomic_rmw fadd` of a type that the target's row does not add in memory, and `ptr_atomic_cas` of 16 bits, become a loop that
    replaces the word around the element by `ptr_atomic_cas` of 32 or 64 bits. `grid_barrier` becomes atomics, fences and barriers.

    ```mlir
    %old = greta_tile.ptr_atomic_rmw fadd device %p[%i], %v : !greta_tile.ptr<f64> -> f64
    // becomes
    %word = greta_tile.ptr_cast %p : !greta_tile.ptr<f64> -> !greta_tile.ptr<i64>
    %guess = greta_tile.ptr_atomic_rmw or device %word[%i], %c0 : !greta_tile.ptr<i64> -> i64
    %bits = scf.while (%seen = %guess) : (i64) -> i64 {
      %sum = arith.addf (arith.bitcast %seen), %v : f64
      %now = greta_tile.ptr_atomic_cas device %word[%i], %seen, (arith.bitcast %sum) : !greta_tile.ptr<i64> -> i64
      scf.condition(%now != %seen) %now : i64
    } do { ... }
    %old = arith.bitcast %bits : i64 to f64
    ```
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"\"", "row of the target table, for example gfx942">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def GretaExpandPass : Pass<"greta-expand"> {
  let summary = "Arithmetic that a target has no instructions for becomes what it has";
  let description = [{
    Conversions (`arith.extf`, `arith.truncf`) from and to f8E4M3FN, f8E5M2, f8E4M3FNUZ and f8E5M2FNUZ become the target's instructions, where its row says that it
    has that kind, else integer arithmetic; they round to the nearest, ties to even, and overflow to infinity, or to NaN in types without one. Other
    arithmetic on such types must have been widened before. In a kernel the types themselves become i8 then, as do its pointers.

    In a kernel also: functions of f16 and bf16 are computed in f32, and functions of the math dialect that the target lacks become polynomials and
    those that it has. Remainders of floats on Vulkan become divisions of integers, because Vulkan's own may be wrong by the divisor. Conversions of `vector<8xi4>` to f16 and `greta_tile.vector_dot` become arithmetic on pairs of f16. Arrays in shared memory become
    bytes on AMD, in SPIR-V vectors of words and scalars, and what indexes them counts those.

    ```mlir
    %1 = arith.extf %0 : f8E5M2 to f16
    // becomes
    %2 = arith.extui %0 : i8 to i16
    %3 = arith.shli %2, %c8 : i16
    %1 = arith.bitcast %3 : i16 to f16
    ```
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"host\"", "row of the target table, for example gfx942">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::ROCDL::ROCDLDialect"];
}

//===----------------------------------------------------------------------===//
// Emitters (lib/AMDGPU, lib/SPIRV)
//===----------------------------------------------------------------------===//

def GretaTileToROCDL : Pass<"greta-tile-to-rocdl", "::mlir::ModuleOp"> {
  let summary = "Kernels at the lane level become LLVM functions for an AMD chip";
  let description = [{
    Takes modules whose `greta_tile.func` kernels hold lane ops, scalars and small vectors only (what `greta-tile-distribute`
    leaves), and nothing that launches them. Each becomes an `llvm.func` with the AMDGPU kernel calling convention, the exact
    workgroup size and the chip in its attributes; shared memory becomes globals of address space 3. Functions of the math
    dialect become instructions or polynomials, never calls. A kernel whose `wave_size` is not the chip's, or that needs more
    LDS than a workgroup has, is an error.

    ```mlir
    %v = greta_tile.ptr_load %x[%i] align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
    // becomes
    %0 = llvm.shl %i, %one overflow<nuw> : i32
    %1 = llvm.zext %0 : i32 to i64
    %2 = llvm.getelementptr inbounds|nuw %x[%1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %v = llvm.load %2 {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf16>
    ```
  }];
  let options = [Option<"chip", "chip", "std::string", /*default=*/"\"\"", "AMD chip, for example gfx942">];
  let dependentDialects = ["::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect", "::mlir::ROCDL::ROCDLDialect"];
}

def GretaTileToSPIRV : Pass<"greta-tile-to-spirv", "::mlir::ModuleOp"> {
  let summary = "Kernels at the lane level become one spirv.module each";
  let description = [{
    Takes modules whose `greta_tile.func` kernels hold lane ops, scalars and small vectors only (what `greta-tile-distribute`
    leaves), and nothing that launches them. Each kernel is replaced by a `spirv.module` in the place where it stood: addressing through physical storage
    buffers, the arguments in one push-constant block (64-bit device addresses, then i32), LocalSize = `waves` x `wave_size`, an entry
    point of the kernel's name. Only the capabilities that the code needs are declared.

    ```mlir
    greta_tile.func @copy(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 64 : i32} {
      %i = greta_tile.wave_id
      %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
      greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
      greta_tile.return
    }
    ```
    becomes
    ```mlir
    spirv.module @copy PhysicalStorageBuffer64 GLSL450 requires #spirv.vce<v1.5, [Shader, Int64, PhysicalStorageBufferAddresses], []> {
      spirv.GlobalVariable @args : !spirv.ptr<!spirv.struct<(i64 [0], i64 [8]), Block>, PushConstant>
      ...
    ```
  }];
  let dependentDialects = ["::mlir::spirv::SPIRVDialect"];
}

//===----------------------------------------------------------------------===//
// The host (lib/Host)
//===----------------------------------------------------------------------===//

def GretaDecomposePass : Pass<"greta-decompose"> {
  let summary = "Replace greta ops by their definition in linalg, arith and math";
  let description = [{
    Every op of the `greta` dialect gives its definition through `DecomposableOpInterface`; this pass puts it in place. What
    comes out has no op of the dialect. It runs on any op, needs nothing before it, and is the first step of the `host` target.

    ```mlir
    %0 = greta.swiglu %gate, %up : tensor<4x8xf16>, tensor<4x8xf16> -> tensor<4x8xf16>
    // becomes
    %1 = tensor.empty() : tensor<4x8xf16>
    %2 = linalg.generic {..} ins(%gate, %up) outs(%1) { extf, extf, negf, exp, addf, divf, mulf, truncf }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

#endif
