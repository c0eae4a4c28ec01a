// A GEMM that reads A 128 columns behind where B is, from column 128 on, and no column beyond 384: the index of its loop is negative at first, and a program's own minimum later.
greta_tile.func @moved_columns_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %c: !greta_tile.ptr<f32>) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %c512 = arith.constant 512 : i32
  %begin = arith.constant 128 : i64
  %from = greta_tile.ptr_add %a, %begin : !greta_tile.ptr<f16>, i64
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %i = %c0 to %c512 step %c32 iter_args(%s = %none) -> (tensor<64x64xf32>) : i32 {
    %behind = arith.subi %i, %c128 : i32
    %column = arith.minsi %behind, %c256 : i32
    %x = greta_tile.load %from[%c0, %column] strides [512, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %y = greta_tile.load %b[%i, %c0] strides [1, 512] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %x, %y, %s : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  greta_tile.store %sum, %c[%c0, %c0] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @moved_columns(%a: tensor<64x512xf16>, %b: tensor<64x512xf16>) -> tensor<64x64xf32> {
  %0 = greta_tile.launch @moved_columns_kernel grid affine_map<()[] -> (1)> scalars affine_map<()[] -> ()> (%a, %b) shapes [affine_map<()[] -> (64, 64)>]
      : (tensor<64x512xf16>, tensor<64x512xf16>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
