// A GEMM whose K is so many tiles of 32: every load has 16 bytes, so that targets may take the stages of shared memory in turn in one iteration. A number of tiles that no
// number of stages divides leaves some behind.
greta_tile.func @k_tiles_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %c: !greta_tile.ptr<f32>, %tiles: i32) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %k = arith.muli %tiles, %c32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %i = %c0 to %k step %c32 iter_args(%s = %none) -> (tensor<64x64xf32>) : i32 {
    %x = greta_tile.load %a[%c0, %i] strides [-9223372036854775808, 1] (%k) bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %y = greta_tile.load %b[%i, %c0] strides [1, -9223372036854775808] (%k) bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %x, %y, %s : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  greta_tile.store %sum, %c[%c0, %c0] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @k_tiles(%a: tensor<64x?x32xf16>, %b: tensor<64x?x32xf16> {greta.shape = affine_map<()[t] -> (64, t, 32)>}) -> tensor<64x64xf32> {
  %0 = greta_tile.launch @k_tiles_kernel grid affine_map<()[t] -> (1)> scalars affine_map<()[t] -> (t)> (%a, %b) shapes [affine_map<()[t] -> (64, 64)>]
      : (tensor<64x?x32xf16>, tensor<64x?x32xf16>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
