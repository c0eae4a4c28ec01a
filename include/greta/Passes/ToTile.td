//===- ToTile.td - passes from fused ops and Triton's IR to blocks -------===//
#ifndef GRETA_PASSES_TOTILE_TD
#define GRETA_PASSES_TOTILE_TD

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

#endif
