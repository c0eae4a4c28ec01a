//===- Passes.td - from Triton IR to block programs ----------------------===//
#ifndef GRETA_TRITONTOTILE_PASSES_TD
#define GRETA_TRITONTOTILE_PASSES_TD

include "mlir/Pass/PassBase.td"

def TritonToTilePass : Pass<"triton-to-tile", "::mlir::ModuleOp"> {
  let summary = "Triton's kernels become block programs, and functions that launch them";
  let description = [{
    Takes the Triton IR that Triton 3.6 to 3.9 print. Each public `tt.func` becomes a `greta_tile.func`, op by op, and a function of its name and its
    arguments that launches it: pointers are tensors of any length, and those that the kernel writes to are results, too, in place. Branches
    out of a function become `scf.if`, calls are inlined, descriptors become pointers, microscaled dots become dots of what they unpack to.
    What no target can compute is an error at the kernel's source line.

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
    func.func @copy(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: i32) -> tensor<?xf32> {
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
           "waves of a program; 0: the text's ttg.num-warps, else 4">];
  let dependentDialects = ["::greta::tile::GretaTileDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::func::FuncDialect", "::mlir::ub::UBDialect"];
}

#endif
