// Products of a batch that are too many for a lane to have one after another: a loop over K takes its operands from shared memory, A as it is loaded, B as
// differences of what is.
greta_tile.func @long_dot_kernel(%a: !greta_tile.ptr<f32>, %b: !greta_tile.ptr<f32>, %c: !greta_tile.ptr<f32>, %batch: i32) attributes {waves = 2 : i32} {
  %zero = arith.constant 0 : i32
  %two = arith.constant 2 : i32
  %pid = greta_tile.program_id 0
  %first = arith.muli %pid, %two : i32
  %x = greta_tile.load %a[%first, %zero, %zero] strides [2560, 80, 1] bounds [0] (%batch) : !greta_tile.ptr<f32> -> tensor<2x32x80xf32>
  %y = greta_tile.load %b[%first, %zero, %zero] strides [5120, 64, 1] bounds [0] (%batch) : !greta_tile.ptr<f32> -> tensor<2x80x64xf32>
  %one = arith.constant dense<1.0> : tensor<2x80x64xf32>
  %z = arith.subf %y, %one : tensor<2x80x64xf32>
  %none = arith.constant dense<2.0> : tensor<2x32x64xf32>
  %d = greta_tile.dot %x, %z, %none : tensor<2x32x80xf32>, tensor<2x80x64xf32> -> tensor<2x32x64xf32>
  greta_tile.store %d, %c[%first, %zero, %zero] strides [2048, 64, 1] bounds [0] (%batch) : tensor<2x32x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @long_dot(%a: tensor<?x32x80xf32>, %b: tensor<?x80x64xf32> {greta.shape = affine_map<()[n] -> (n, 80, 64)>}) -> tensor<?x32x64xf32> {
  %0 = greta_tile.launch @long_dot_kernel grid affine_map<()[n] -> (n ceildiv 2)> scalars affine_map<()[n] -> (n)> (%a, %b) shapes [affine_map<()[n] -> (n, 32, 64)>]
       : (tensor<?x32x80xf32>, tensor<?x80x64xf32>) -> tensor<?x32x64xf32>
  return %0 : tensor<?x32x64xf32>
}
