//===- Passes.td - passes on the greta dialect -----------------------------===//
#ifndef GRETA_TRANSFORMS_PASSES_TD
#define GRETA_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

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
                           "::mlir::tensor::TensorDialect"];
}

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

def GretaWidenProductsPass : Pass<"greta-widen-products", "::mlir::func::FuncOp"> {
  let summary = "Products of 8-bit floats that the target has no instruction for become products of f16";
  let description = [{
    Every 8-bit float is a number of f16, too, so that nothing is lost. Products of few rows stay as they are: they widen what they load in any case.

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
    with the elementwise work, swiglu and rope on their results. Spaces that depend on the same kernels share a launch. Constants, broadcasts and cheap elementwise work
    are repeated where they are used. Sets `greta.symbols` and `greta.shapes`, as `greta-annotate-shapes` does. An op that has no
    place in a kernel is an error.

    ```mlir
    func.func @f(%x: tensor<?x64xf16>, %r: tensor<?x64xf16>, %w: tensor<64xf16>) -> tensor<?x64xf16> {
      %0 = arith.addf %x, %r : tensor<?x64xf16>
      %1 = greta.rms_norm %0, %w {eps = 1.0e-5 : f32} : tensor<?x64xf16>, tensor<64xf16> -> tensor<?x64xf16>
      return %1 : tensor<?x64xf16>
    }
    // becomes one greta.kernel(%x, %r, %w) with both ops in its region
    ```
  }];
  let dependentDialects = ["::greta::GretaDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def GretaConfigurePass : Pass<"greta-configure", "::mlir::func::FuncOp"> {
  let summary = "Choose the tile configuration of every kernel for a target";
  let description = [{
    Sets the attribute `config` of every `greta.kernel`: `block_size` and `wave_size` in threads, `grid_limit` when one axis of
    the grid takes no more workgroups than that, and `spaces`, an array with a dictionary per region:

    | entry | meaning |
    |---|---|
    | `rows` | rows per workgroup, for every group of row dimensions; absent when the space is `flat` |
    | `columns` | extent of a block along the columns (of a pair's half, with rope) |
    | `flat` | the whole space is one row |
    | `loop` | the workgroup goes over the columns in several blocks; without it, every block of columns has its own workgroup |
    | `depth` | for a product: extent of a block along K |
    | `run`, `unroll` | for a product with few rows: elements along K in a lane, and blocks per turn of the loop |
    | `pipeline` | for a product: how its loop over K moves its operands (`#greta_tile.pipeline`) |
    | `group` | for a product: how many rows of blocks neighbouring workgroups share |
    | `chiplets` | for a product: how many chiplets workgroups are dealt to in turn; each gets a contiguous part of the blocks |
    | `matrix` | for a product: the target's instruction with its layouts (`#greta_tile.matrix`); without it, multiply-adds |

    Only rows of the target table are asked, no names. A configuration that is already there stays. The attribute `greta.config` of a
    `greta.matmul` overrides parts of the choice: with matrix instructions `{tile = [256, 256, 32], waves = 8, stages = 2,
    slice = 16, group = 8, instruction = [32, 32, 8], split = 4, opaque, direct}`, where `opaque` takes a device's layouts of cooperative matrices for unknown, and `direct`
    loads blocks straight to shared memory; for few rows `{tile = [1, 16, 256], waves = 8, run = 8, unroll = 4, split = 2}`; where the target has no instruction `{tile = [64, 64, 16], waves = 8, split = 2}`.
    A dictionary in it is for the targets of its name: `{waves = 4, gfx942 = {waves = 8}, "vulkan:nvidia" = {tile = [160, 160, 64]}}`. A
    product without it gets what the tuning database has for it, where that fits; a remark says where it does not.

    A product whose blocks are far fewer than the compute units, with a long K, is split: its kernel becomes one that computes the products
    of `split` ranges of K (`greta.matmul` with `split`), and one that adds them up and goes on (`greta.sum_parts`).
  }];
  let options = [Option<"target", "target", "std::string", [{""}], "name or alias of a row of the target table">,
                 Option<"file", "tuning", "std::string", [{""}], "tuning database (docs/tuning.md)">,
                 Option<"matrix", "matrix", "bool", "true", "use the target's matrix instructions">];
  let dependentDialects = ["::greta::tile::GretaTileDialect"];
}

#endif
