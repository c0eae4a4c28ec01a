// A program that prints its blocks and asserts that they are positive.
greta_tile.func @log_kernel(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>, %n: i32) attributes {waves = 1 : i32} {
  %c4 = arith.constant 4 : i32
  %zero = arith.constant 0 : i32
  %id = greta_tile.program_id 0
  %at = arith.muli %id, %c4 : i32
  %v = greta_tile.load %x[%at, %zero] strides [2, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<4x2xf16>
  greta_tile.print " begins"
  greta_tile.print " x = " %v : tensor<4x2xf16>
  %wide = arith.extsi %at : i32 to i64
  %small = arith.trunci %at : i32 to i8
  greta_tile.print " at " %at, %wide, %small unsigned [2] : i32, i64, i8
  greta_tile.print " bits " %v hex : tensor<4x2xf16>
  %none = arith.constant dense<0.0> : tensor<4x2xf16>
  %positive = arith.cmpf ogt, %v, %none : tensor<4x2xf16>
  greta_tile.assert %positive, "x must be positive" : tensor<4x2xi1>
  %few = arith.cmpi slt, %id, %c4 : i32
  greta_tile.assert %few, "few programs" : i1
  greta_tile.store %v, %y[%at, %zero] strides [2, 1] bounds [] : tensor<4x2xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

func.func @log(%x: tensor<?x2xf16>) -> tensor<?x2xf16> {
  %0 = greta_tile.launch @log_kernel grid affine_map<()[n] -> (n floordiv 4)> scalars affine_map<()[n] -> (n)> (%x) shapes [affine_map<()[n] -> (n, 2)>]
       : (tensor<?x2xf16>) -> tensor<?x2xf16>
  return %0 : tensor<?x2xf16>
}
