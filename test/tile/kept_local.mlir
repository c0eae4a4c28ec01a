// In each iteration y gains four times the block that the first iteration stored in shared memory, and blocks of z with their transposes, which pass through shared memory, too.
greta_tile.func @kept_local_kernel(%x: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %kept = greta_tile.local_alloc : <1 x tensor<32x32xf32>, <dim = 1, stride = 32, vector = 4, rows = 1, phases = 1>>
  %a = greta_tile.load %x[%c0, %c0] strides [32, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<32x32xf32>
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%before = %none) -> (tensor<32x32xf32>) : i32 {
    %first = arith.cmpi eq, %i, %c0 : i32
    scf.if %first {
      greta_tile.local_store %a, %kept[%c0] : tensor<32x32xf32> -> <1 x tensor<32x32xf32>, <dim = 1, stride = 32, vector = 4, rows = 1, phases = 1>>
    }
    %inner = scf.for %j = %c0 to %c4 step %c1 iter_args(%in = %before) -> (tensor<32x32xf32>) : i32 {
      %v = greta_tile.local_load %kept[%c0] [%c0, %c0] : <1 x tensor<32x32xf32>, <dim = 1, stride = 32, vector = 4, rows = 1, phases = 1>> -> tensor<32x32xf32>
      %o = arith.addf %in, %v : tensor<32x32xf32>
      scf.yield %o : tensor<32x32xf32>
    }
    %outer = scf.for %j = %c0 to %c4 step %c1 iter_args(%in = %inner) -> (tensor<32x32xf32>) : i32 {
      %ij = arith.addi %i, %j : i32
      %row = arith.muli %ij, %c4 : i32
      %q = greta_tile.load %z[%row, %c0] strides [32, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<32x32xf32>
      %t = greta_tile.trans %q [1, 0] : tensor<32x32xf32> -> tensor<32x32xf32>
      %with_t = arith.addf %in, %t : tensor<32x32xf32>
      %with_q = arith.addf %with_t, %q : tensor<32x32xf32>
      scf.yield %with_q : tensor<32x32xf32>
    }
    scf.yield %outer : tensor<32x32xf32>
  }
  greta_tile.store %sum, %y[%c0, %c0] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
func.func @kept_local(%x: tensor<32x32xf32>, %z: tensor<64x32xf32>) -> tensor<32x32xf32> {
  %0 = greta_tile.launch @kept_local_kernel grid affine_map<() -> (1)> scalars affine_map<() -> (3)> (%x, %z) shapes [affine_map<() -> (32, 32)>] : (tensor<32x32xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
