// A GEMM of f16 with tiles of 64 x 64 and 32 of K at a time; A is [M, K], B [K, N], and nothing divides any of them.
greta_tile.func @matmul_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %c: !greta_tile.ptr<f16>, %m: i32, %n: i32, %k: i32) attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %x = greta_tile.program_id 0
  %y = greta_tile.program_id 1
  %row = arith.muli %y, %c64 : i32
  %column = arith.muli %x, %c64 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %at = %zero to %k step %c32 iter_args(%acc = %none) -> (tensor<64x64xf32>) : i32 {
    %left = greta_tile.load %a[%row, %at] strides [-9223372036854775808, 1] (%k) bounds [0, 1] (%m, %k) align 2 : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %right = greta_tile.load %b[%at, %column] strides [-9223372036854775808, 1] (%n) bounds [0, 1] (%k, %n) align 2 : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %next = greta_tile.dot %left, %right, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %result = arith.truncf %sum : tensor<64x64xf32> to tensor<64x64xf16>
  greta_tile.store %result, %c[%row, %column] strides [-9223372036854775808, 1] (%n) bounds [0, 1] (%m, %n) align 2 : tensor<64x64xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// Symbols: M, K, N.
func.func @matmul(%a: tensor<?x?xf16>, %b: tensor<?x?xf16> {greta.shape = affine_map<()[m, k, n] -> (k, n)>}) -> tensor<?x?xf16> {
  %0 = greta_tile.launch @matmul_kernel grid affine_map<()[m, k, n] -> (n ceildiv 64, m ceildiv 64)> scalars affine_map<()[m, k, n] -> (m, n, k)> (%a, %b)
       shapes [affine_map<()[m, k, n] -> (m, n)>] : (tensor<?x?xf16>, tensor<?x?xf16>) -> tensor<?x?xf16>
  return %0 : tensor<?x?xf16>
}
