// Layer norm of rows of 384 elements of f16 with weight and bias, four rows a workgroup, computed in f32.
greta_tile.func @layer_norm_kernel(%x: !greta_tile.ptr<f16>, %weight: !greta_tile.ptr<f16>, %bias: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>, %rows: i32)
    attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %columns = arith.constant 384 : i32
  %four = arith.constant 4 : i32
  %pid = greta_tile.program_id 0
  %row = arith.muli %pid, %four : i32
  %v = greta_tile.load %x[%row, %zero] strides [384, 1] bounds [0, 1] (%rows, %columns) align 2 : !greta_tile.ptr<f16> -> tensor<4x512xf16>
  %w = greta_tile.load %weight[%zero] strides [1] bounds [0] (%columns) align 2 : !greta_tile.ptr<f16> -> tensor<512xf16>
  %b = greta_tile.load %bias[%zero] strides [1] bounds [0] (%columns) align 2 : !greta_tile.ptr<f16> -> tensor<512xf16>
  %wide = arith.extf %v : tensor<4x512xf16> to tensor<4x512xf32>
  %sum = greta_tile.reduce {arith.addf} %wide axis 1 : tensor<4x512xf32> -> tensor<4xf32>
  %share = arith.constant dense<0x3B2AAAAB> : tensor<4xf32> // 1 / 384
  %mean = arith.mulf %sum, %share : tensor<4xf32>
  %mean1 = greta_tile.reshape %mean : tensor<4xf32> -> tensor<4x1xf32>
  %means = greta_tile.broadcast %mean1 : tensor<4x1xf32> -> tensor<4x512xf32>
  %off = arith.subf %wide, %means : tensor<4x512xf32>
  // Beyond the row there is nothing to be off.
  %at = greta_tile.iota 1 : tensor<4x512xi32>
  %end = arith.constant dense<384> : tensor<4x512xi32>
  %inside = arith.cmpi slt, %at, %end : tensor<4x512xi32>
  %none = arith.constant dense<0.0> : tensor<4x512xf32>
  %centred = arith.select %inside, %off, %none : tensor<4x512xi1>, tensor<4x512xf32>
  %square = arith.mulf %centred, %centred : tensor<4x512xf32>
  %squares = greta_tile.reduce {arith.addf} %square axis 1 : tensor<4x512xf32> -> tensor<4xf32>
  %variance = arith.mulf %squares, %share : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %safe = arith.addf %variance, %eps : tensor<4xf32>
  %deviation = math.rsqrt %safe : tensor<4xf32>
  %deviation1 = greta_tile.reshape %deviation : tensor<4xf32> -> tensor<4x1xf32>
  %scales = greta_tile.broadcast %deviation1 : tensor<4x1xf32> -> tensor<4x512xf32>
  %normal = arith.mulf %centred, %scales : tensor<4x512xf32>
  %w32 = arith.extf %w : tensor<512xf16> to tensor<512xf32>
  %w1 = greta_tile.reshape %w32 : tensor<512xf32> -> tensor<1x512xf32>
  %ws = greta_tile.broadcast %w1 : tensor<1x512xf32> -> tensor<4x512xf32>
  %b32 = arith.extf %b : tensor<512xf16> to tensor<512xf32>
  %b1 = greta_tile.reshape %b32 : tensor<512xf32> -> tensor<1x512xf32>
  %bs = greta_tile.broadcast %b1 : tensor<1x512xf32> -> tensor<4x512xf32>
  %weighted = arith.mulf %normal, %ws : tensor<4x512xf32>
  %moved = arith.addf %weighted, %bs : tensor<4x512xf32>
  %result = arith.truncf %moved : tensor<4x512xf32> to tensor<4x512xf16>
  greta_tile.store %result, %y[%row, %zero] strides [384, 1] bounds [0, 1] (%rows, %columns) align 2 : tensor<4x512xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

#n = affine_map<()[n] -> (n)>
func.func @layer_norm(%x: tensor<?x384xf16>, %weight: tensor<384xf16>, %bias: tensor<384xf16>) -> tensor<?x384xf16> {
  %0 = greta_tile.launch @layer_norm_kernel grid affine_map<()[n] -> (n ceildiv 4)> scalars #n (%x, %weight, %bias) shapes [affine_map<()[n] -> (n, 384)>]
       : (tensor<?x384xf16>, tensor<384xf16>, tensor<384xf16>) -> tensor<?x384xf16>
  return %0 : tensor<?x384xf16>
}
