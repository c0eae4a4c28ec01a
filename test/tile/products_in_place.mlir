// Products of blocks of K are added in memory, by turns to one of two blocks: an iteration reads what another has written, while the operands of its dot run ahead.
greta_tile.func @products_in_place_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %sums: !greta_tile.ptr<f32>, %k: i32) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  scf.for %i = %c0 to %k step %c32 : i32 {
    %x = greta_tile.load %a[%c0, %i] strides [-9223372036854775808, 1] (%k) bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %y = greta_tile.load %b[%i, %c0] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %block = arith.divsi %i, %c32 : i32
    %odd = arith.andi %block, %c1 : i32
    %row = arith.muli %odd, %c64 : i32
    %before = greta_tile.load %sums[%row, %c0] strides [64, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<64x64xf32>
    %d = greta_tile.dot %x, %y, %zero : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %after = arith.subf %d, %before : tensor<64x64xf32>
    greta_tile.store %after, %sums[%row, %c0] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  }
  greta_tile.return
}

func.func @products_in_place(%a: tensor<64x?xf16>, %b: tensor<?x64xf16>, %sums: tensor<128x64xf32>) -> tensor<128x64xf32> {
  %0 = greta_tile.launch @products_in_place_kernel grid affine_map<()[k, l] -> (1)> scalars affine_map<()[k, l] -> (k)> (%a, %b, %sums) tied [2] shapes []
       : (tensor<64x?xf16>, tensor<?x64xf16>, tensor<128x64xf32>) -> tensor<128x64xf32>
  return %0 : tensor<128x64xf32>
}
