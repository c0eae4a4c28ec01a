// Each block is the one before times b, in one buffer: no load may run ahead of the store before it.
greta_tile.func @powers_kernel(%b: !greta_tile.ptr<f16>, %x: !greta_tile.ptr<f16>, %rows: i32) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %last = arith.subi %rows, %c64 : i32
  %y = greta_tile.load %b[%c0, %c0] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
  scf.for %row = %c0 to %last step %c64 : i32 {
    %v = greta_tile.load %x[%row, %c0] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
    %d = greta_tile.dot %v, %y, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
    %next = arith.addi %row, %c64 : i32
    greta_tile.store %h, %x[%next, %c0] strides [64, 1] bounds [] : tensor<64x64xf16> -> !greta_tile.ptr<f16>
  }
  greta_tile.return
}

func.func @powers(%b: tensor<64x64xf16>, %x: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %0 = greta_tile.launch @powers_kernel grid affine_map<()[rows] -> (1)> scalars affine_map<()[rows] -> (rows)> (%b, %x) tied [1] shapes []
       : (tensor<64x64xf16>, tensor<?x64xf16>) -> tensor<?x64xf16>
  return %0 : tensor<?x64xf16>
}
