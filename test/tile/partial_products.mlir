// The product of each block of K, stored on its own, and their sum: the loop stores what its loads do not read, so that these run ahead of the stores.
greta_tile.func @partial_products_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %parts: !greta_tile.ptr<f32>, %sum: !greta_tile.ptr<f32>, %k: i32) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %total = scf.for %i = %c0 to %k step %c32 iter_args(%t = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = greta_tile.load %a[%c0, %i] strides [-9223372036854775808, 1] (%k) bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %y = greta_tile.load %b[%i, %c0] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %x, %y, %zero : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %block = arith.divsi %i, %c32 : i32
    %row = arith.muli %block, %c64 : i32
    greta_tile.store %d, %parts[%row, %c0] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
    %n = arith.addf %t, %d : tensor<64x64xf32>
    scf.yield %n : tensor<64x64xf32>
  }
  greta_tile.store %total, %sum[%c0, %c0] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @partial_products(%a: tensor<64x?xf16>, %b: tensor<?x64xf16>) -> (tensor<?x64xf32>, tensor<64x64xf32>) {
  %0:2 = greta_tile.launch @partial_products_kernel grid affine_map<()[k, l] -> (1)> scalars affine_map<()[k, l] -> (k)> (%a, %b)
       shapes [affine_map<()[k, l] -> (2 * k, 64)>, affine_map<()[k, l] -> (64, 64)>] : (tensor<64x?xf16>, tensor<?x64xf16>) -> (tensor<?x64xf32>, tensor<64x64xf32>)
  return %0#0, %0#1 : tensor<?x64xf32>, tensor<64x64xf32>
}
