// Blocks of 72 and 80 KiB that change their layout, which no workgroup has the shared memory for: they pass in parts. One is an operand of a dot,
// turned around; the other has 36 rows of 512 columns and becomes 512 rows of 36, whose sums are taken.
greta_tile.func @large_blocks_kernel(%x: !greta_tile.ptr<f32>, %w: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %sums: !greta_tile.ptr<f32>) attributes {waves = 16 : i32} {
  %zero = arith.constant 0 : i32
  %none = arith.constant dense<0.0> : tensor<320x4xf32>
  %id = greta_tile.program_id 0
  %first = arith.constant 64 : i32
  %row = arith.muli %id, %first : i32
  %a = greta_tile.load %x[%row, %zero] strides [320, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<64x320xf32>
  %turned = greta_tile.trans %a [1, 0] : tensor<64x320xf32> -> tensor<320x64xf32>
  %b = greta_tile.load %w[%zero, %zero] strides [4, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<64x4xf32>
  %product = greta_tile.dot %turned, %b, %none : tensor<320x64xf32>, tensor<64x4xf32> -> tensor<320x4xf32>
  %c320 = arith.constant 320 : i32
  %to = arith.muli %id, %c320 : i32
  greta_tile.store %product, %y[%to, %zero] strides [4, 1] bounds [] : tensor<320x4xf32> -> !greta_tile.ptr<f32>
  %c36 = arith.constant 36 : i32
  %from = arith.muli %id, %c36 : i32
  %c512 = arith.constant 512 : i32
  %line = arith.muli %id, %c512 : i32
  %columns = greta_tile.load %z[%zero, %from] strides [1, 512] bounds [] : !greta_tile.ptr<f32> -> tensor<512x36xf32>
  %wide = greta_tile.reshape %columns : tensor<512x36xf32> -> tensor<256x72xf32>
  %doubled = arith.addf %wide, %wide : tensor<256x72xf32>
  %lines = greta_tile.reshape %doubled : tensor<256x72xf32> -> tensor<512x36xf32>
  %sum = greta_tile.reduce {arith.addf} %lines axis 1 : tensor<512x36xf32> -> tensor<512xf32>
  greta_tile.store %sum, %sums[%line] strides [1] bounds [] : tensor<512xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @large_blocks(%x: tensor<?x64x320xf32>, %w: tensor<64x4xf32>, %z: tensor<?x36x512xf32>) -> (tensor<?x320x4xf32>, tensor<?x512xf32>) {
  %0:2 = greta_tile.launch @large_blocks_kernel grid affine_map<()[n] -> (n)> scalars affine_map<()[n] -> ()> (%x, %w, %z) shapes [affine_map<()[n] -> (n, 320, 4)>, affine_map<()[n] -> (n, 512)>]
       : (tensor<?x64x320xf32>, tensor<64x4xf32>, tensor<?x36x512xf32>) -> (tensor<?x320x4xf32>, tensor<?x512xf32>)
  return %0#0, %0#1 : tensor<?x320x4xf32>, tensor<?x512xf32>
}
