// A GEMM whose K is split over workgroups, each of which adds its sums to the result atomically.
greta_tile.func @zero_product_kernel(%c: !greta_tile.ptr<f32>, %size: i32) attributes {waves = 2 : i32} {
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %id = greta_tile.program_id 0
  %at = arith.muli %id, %c256 : i32
  greta_tile.store %zero, %c[%at] strides [1] bounds [0] (%size) : tensor<256xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

greta_tile.func @split_k_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %c: !greta_tile.ptr<f32>, %m: i32, %n: i32, %k: i32) attributes {waves = 2 : i32} {
  %zero = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %x = greta_tile.program_id 0
  %y = greta_tile.program_id 1
  %part = greta_tile.program_id 2
  %row = arith.muli %y, %c32 : i32
  %column = arith.muli %x, %c32 : i32
  // 64 of K is a part's, the last has fewer.
  %begin = arith.muli %part, %c64 : i32
  %whole = arith.addi %begin, %c64 : i32
  %end = arith.minsi %whole, %k : i32
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %sum = scf.for %at = %begin to %end step %c32 iter_args(%acc = %none) -> (tensor<32x32xf32>) : i32 {
    %left = greta_tile.load %a[%row, %at] strides [-9223372036854775808, 1] (%k) bounds [0, 1] (%m, %end) : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %right = greta_tile.load %b[%at, %column] strides [-9223372036854775808, 1] (%n) bounds [0, 1] (%end, %n) : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %next = greta_tile.dot %left, %right, %acc : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  %down = greta_tile.iota 0 : tensor<32x32xi32>
  %across = greta_tile.iota 1 : tensor<32x32xi32>
  %rows = greta_tile.splat %row : tensor<32x32xi32>
  %columns = greta_tile.splat %column : tensor<32x32xi32>
  %i = arith.addi %rows, %down : tensor<32x32xi32>
  %j = arith.addi %columns, %across : tensor<32x32xi32>
  %ms = greta_tile.splat %m : tensor<32x32xi32>
  %ns = greta_tile.splat %n : tensor<32x32xi32>
  %is_row = arith.cmpi slt, %i, %ms : tensor<32x32xi32>
  %is_column = arith.cmpi slt, %j, %ns : tensor<32x32xi32>
  %inside = arith.andi %is_row, %is_column : tensor<32x32xi1>
  %line = arith.muli %i, %ns : tensor<32x32xi32>
  %place = arith.addi %line, %j : tensor<32x32xi32>
  %p = greta_tile.ptr_add %c, %place : !greta_tile.ptr<f32>, tensor<32x32xi32>
  %old = greta_tile.atomic_rmw fadd relaxed device %p, %sum mask %inside : tensor<32x32x!greta_tile.ptr<f32>> -> tensor<32x32xf32>
  greta_tile.return
}

#grid = affine_map<()[m, k, n] -> (n ceildiv 32, m ceildiv 32, k ceildiv 64)>
func.func @split_k(%a: tensor<?x?xf16>, %b: tensor<?x?xf16> {greta.shape = affine_map<()[m, k, n] -> (k, n)>}) -> tensor<?x?xf32> {
  %0 = greta_tile.launch @zero_product_kernel grid affine_map<()[m, k, n] -> ((m * n) ceildiv 256)> scalars affine_map<()[m, k, n] -> (m * n)> ()
       shapes [affine_map<()[m, k, n] -> (m, n)>] : () -> tensor<?x?xf32>
  %1 = greta_tile.launch @split_k_kernel grid #grid scalars affine_map<()[m, k, n] -> (m, n, k)> (%a, %b, %0) tied [2] shapes []
       : (tensor<?x?xf16>, tensor<?x?xf16>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}
