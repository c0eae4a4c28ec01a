// Softmax of rows of 1000 elements, a workgroup to each.
greta_tile.func @softmax_kernel(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %columns = arith.constant 1000 : i32
  %row = greta_tile.program_id 0
  %outside = arith.constant 0xFF800000 : f32
  %v = greta_tile.load %x[%row, %zero] strides [1000, 1] bounds [1] (%columns) other %outside : f32 align 4 : !greta_tile.ptr<f32> -> tensor<1x1024xf32>
  %line = greta_tile.reshape %v : tensor<1x1024xf32> -> tensor<1024xf32>
  %largest = greta_tile.reduce {arith.maximumf} %line axis 0 : tensor<1024xf32> -> f32
  %shift = greta_tile.splat %largest : tensor<1024xf32>
  %less = arith.subf %line, %shift : tensor<1024xf32>
  %power = math.exp %less : tensor<1024xf32>
  %sum = greta_tile.reduce {arith.addf} %power axis 0 : tensor<1024xf32> -> f32
  %one = arith.constant 1.0 : f32
  %scale = arith.divf %one, %sum : f32
  %scales = greta_tile.splat %scale : tensor<1024xf32>
  %result = arith.mulf %power, %scales : tensor<1024xf32>
  %block = greta_tile.reshape %result : tensor<1024xf32> -> tensor<1x1024xf32>
  greta_tile.store %block, %y[%row, %zero] strides [1000, 1] bounds [1] (%columns) align 4 : tensor<1x1024xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @softmax(%x: tensor<?x1000xf32>) -> tensor<?x1000xf32> {
  %0 = greta_tile.launch @softmax_kernel grid affine_map<()[rows] -> (rows)> scalars affine_map<()[rows] -> ()> (%x) shapes [affine_map<()[rows] -> (rows, 1000)>]
       : (tensor<?x1000xf32>) -> tensor<?x1000xf32>
  return %0 : tensor<?x1000xf32>
}
