//===- GretaKernel.td - what greta-fuse makes of a function ---------------===//
#ifndef GRETA_KERNEL_TD
#define GRETA_KERNEL_TD

include "Greta/GretaDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Greta_ScheduleAttr : AttrDef<Greta_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "How a kernel's workgroups cover its spaces";
  let description = [{
    `block_size` and `wave_size` in threads, `grid_limit` where one axis of the grid takes no more workgroups than that, and `spaces`, the entries of each region.
    Kernels that are block programs (attention, updates of a KV cache) have `waves` in place of `block_size` and `wave_size`. An entry that is absent has its least value.

    | entry of a space | meaning |
    |---|---|
    | `rows` | rows per workgroup, for every group of row dimensions; absent when the space is `flat` |
    | `columns` | extent of a block along the columns (of a pair's half, with rope) |
    | `flat` | the whole space is one row |
    | `loop` | the workgroup goes over the columns in several blocks; without it, every block of columns has its own workgroup. With it, attention and its gradients keep their own rows (queries, or keys and values) in shared memory in place of registers, and one loop goes over all rows that these meet |
    | `depth` | for a GEMM: extent of a block along K; for attention: keys of a tile |
    | `run`, `unroll` | for a skinny GEMM: elements along K in a lane, and blocks per iteration of the loop |
    | `pipeline` | for a GEMM: how its loop over K moves its operands (`#greta_tile.pipeline`) |
    | `group` | for a GEMM: how many rows of blocks neighbouring workgroups share |
    | `chiplets` | for a GEMM: how many chiplets workgroups are dealt to in turn; each gets a contiguous part of the blocks |
    | `split` | for a GEMM with few blocks and a long K: ranges of K with workgroups of their own, the last of which at a block adds them up |
    | `unroll`, `split` | for attention: tiles of keys per iteration, for each of which there are waves; how many workgroups are wanted in all, which share the keys |
    | `matrix` | for a GEMM: the target's instruction with its layouts (`#greta_tile.matrix`); without it, SIMT FMAs |

    `#greta.schedule<block_size = 256, spaces = [{columns = 64, rows = [64]} ], wave_size = 64>`
  }];
  let parameters = (ins AttrParameter<"::greta::Schedule", "the entries", "const ::greta::Schedule &">:$value);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Greta_KernelOp : Op<Greta_Dialect, "kernel", [IsolatedFromAbove, Pure]> {
  let summary = "Regions that share a launch and become one kernel";
  let description = [{
    Each region is one *space*: everything in it is computed for the same index space, the shape of its results. The regions
    do not depend on each other; their workgroups follow one another in the kernel's grid. All regions have one block whose
    arguments are the operands; the op's results are what the regions yield, in order.

    `shapes` gives the shape of every operand and result over the symbols of the function (`greta.symbols`).
    If `views` has a map for an operand, the regions see a view of its buffer: the argument has another type, whose shape `shapes` gives, and
    the map's results are how many elements of the buffer its neighbours along each dimension are apart, and where its first one is. `unit` stands for an
    operand that is taken as it is.
    `schedule` is what `greta-configure` chose.

    ```mlir
    %0 = greta.kernel(%x, %w) {shapes = [affine_map<()[s0] -> (s0, 64)>, affine_map<()[s0] -> (64)>, affine_map<()[s0] -> (s0, 64)>]}
        : (tensor<?x64xf16>, tensor<64xf16>) -> tensor<?x64xf16> ({
    ^bb0(%a: tensor<?x64xf16>, %b: tensor<64xf16>):
      %1 = greta.rms_norm %a, %b {eps = 1.0e-5 : f32} : tensor<?x64xf16>, tensor<64xf16> -> tensor<?x64xf16>
      greta.yield %1 : tensor<?x64xf16>
    })
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, AffineMapArrayAttr:$shapes, OptionalAttr<ArrayAttr>:$views,
                       OptionalAttr<Greta_ScheduleAttr>:$schedule);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region VariadicRegion<SizedRegion<1>>:$spaces);
  let assemblyFormat = [{
    `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs) ` ` `(` $spaces `)`
  }];
  let extraClassDeclaration = [{
    /// Strides and offset of what the regions see of an operand; null where that is the operand.
    ::mlir::AffineMap getView(unsigned input);
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Greta_YieldOp : Op<Greta_Dialect, "yield", [Pure, Terminator, ParentOneOf<["KernelOp", "ReduceRowsOp"]>]> {
  let summary = "Results of one space of a kernel, or of a combination of elements";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Greta_BroadcastOp : Op<Greta_Dialect, "broadcast", [Pure]> {
  let summary = "Repeats a tensor along new dimensions";
  let description = [{
    Dimension `i` of the operand is dimension `dims[i]` of the result; along the others it repeats. With all dimensions named
    it is a copy. Made by `greta-fuse` from `linalg.broadcast`, `linalg.fill` and `tensor.splat`: unlike them it needs no
    tensor to write to, whose sizes would have to be known inside of a kernel.

    `greta.broadcast %w dims [1] : tensor<4096xf16> -> tensor<?x4096xf16>`
  }];
  let arguments = (ins AnyRankedTensor:$value, DenseI64ArrayAttr:$dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value `dims` $dims attr-dict `:` type($value) `->` type($result)";
  let extraClassDeclaration = [{
    /// Nothing repeats.
    bool isCopy() { return getValue().getType() == getType(); }
  }];
  let hasVerifier = 1;
}

def Greta_HeadsOp : Op<Greta_Dialect, "heads", [Pure]> {
  let summary = "The columns of a product as heads";
  let description = [{
    `[T, H * D]` as `[T, H, D]`, the same elements. Made by `greta-fuse` from `tensor.expand_shape` where rope follows a product: the
    view then lies inside of the kernel.

    `greta.heads %0 : tensor<?x4096xf16> -> tensor<?x32x128xf16>`
  }];
  let arguments = (ins AnyRankedTensor:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Greta_ReduceRowsOp : Op<Greta_Dialect, "reduce_rows", [IsolatedFromAbove, RecursiveMemoryEffects, SingleBlock]> {
  let summary = "Combines the elements of each row";
  let description = [{
    Takes one or several tensors of a shape `[.., D]`, of f32, i32 or i1, to one number each for every row, `[..]`. The region combines two elements of each tensor,
    `(x0, .., xn, y0, .., yn)`, by ops of arith and math with results of these types that are defined for any operands. It is associative and commutative: elements are combined in an order of the compiler's choice, the same at
    every launch. Nothing can check that.

    `greta-fuse` makes it of `linalg.reduce` along the last dimension, whose inits it combines with the rows' numbers behind it, unless they change nothing, and of ops that are reductions and elementwise work: `greta.quantize_rows` is the maximum of `math.absf` and what divides by it.

    ```mlir
    %max, %at = greta.reduce_rows %x, %i : (tensor<?x64xf32>, tensor<?x64xi32>) -> (tensor<?xf32>, tensor<?xi32>) {
    ^bb0(%a: f32, %ia: i32, %b: f32, %ib: i32):
      %greater = arith.cmpf ogt, %a, %b : f32
      %equal = arith.cmpf oeq, %a, %b : f32
      %before = arith.cmpi slt, %ia, %ib : i32
      %first = arith.andi %equal, %before : i1
      %isA = arith.ori %greater, %first : i1
      %v = arith.select %isA, %a, %b : f32
      %k = arith.select %isA, %ia, %ib : i32
      greta.yield %v, %k : f32, i32
    }
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$combiner);
  let assemblyFormat = "$values attr-dict `:` functional-type($values, $results) $combiner";
  let extraClassDeclaration = [{
    /// For each tensor the element that changes nothing in a combination; empty where the region is not one op for each tensor that has such an element.
    ::llvm::SmallVector<::mlir::TypedAttr> neutralElements();

    /// Clones the region for `x` and `y`, one scalar or tensor for each of its values, all of one shape; returns its results.
    ::llvm::SmallVector<::mlir::Value> combine(::mlir::OpBuilder &builder, ::mlir::ValueRange x, ::mlir::ValueRange y);
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

#endif
