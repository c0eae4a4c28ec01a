// How often 0 to 255, and of odd places 0 to 15, are among 1000 numbers; some are no such number.
greta_tile.func @histogram_kernel(%x: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>) attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %columns = arith.constant 1000 : i32
  %row = greta_tile.program_id 0
  %none = arith.constant -1 : i32
  %v = greta_tile.load %x[%row, %zero] strides [1000, 1] bounds [1] (%columns) other %none : i32 : !greta_tile.ptr<i32> -> tensor<1x1024xi32>
  %all = greta_tile.histogram %v : tensor<1x1024xi32> -> tensor<256xi32>
  %at = greta_tile.iota 1 : tensor<1x1024xi32>
  %odd = arith.trunci %at : tensor<1x1024xi32> to tensor<1x1024xi1>
  %few = greta_tile.histogram %v mask %odd : tensor<1x1024xi32>, tensor<1x1024xi1> -> tensor<16xi32>
  %rest = arith.constant dense<0> : tensor<16xi32>
  // 16, 32, .., 256 counters: the few, then zeros, then all.
  %c32 = greta_tile.cat %few, %rest axis 0 : tensor<16xi32> -> tensor<32xi32>
  %none32 = arith.constant dense<0> : tensor<32xi32>
  %c64 = greta_tile.cat %c32, %none32 axis 0 : tensor<32xi32> -> tensor<64xi32>
  %none64 = arith.constant dense<0> : tensor<64xi32>
  %c128 = greta_tile.cat %c64, %none64 axis 0 : tensor<64xi32> -> tensor<128xi32>
  %none128 = arith.constant dense<0> : tensor<128xi32>
  %c256 = greta_tile.cat %c128, %none128 axis 0 : tensor<128xi32> -> tensor<256xi32>
  %c512 = greta_tile.cat %c256, %all axis 0 : tensor<256xi32> -> tensor<512xi32>
  %block = greta_tile.reshape %c512 : tensor<512xi32> -> tensor<1x512xi32>
  greta_tile.store %block, %y[%row, %zero] strides [512, 1] bounds [] : tensor<1x512xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}

func.func @histogram(%x: tensor<?x1000xi32>) -> tensor<?x512xi32> {
  %0 = greta_tile.launch @histogram_kernel grid affine_map<()[rows] -> (rows)> scalars affine_map<()[rows] -> ()> (%x)
       shapes [affine_map<()[rows] -> (rows, 512)>] : (tensor<?x1000xi32>) -> tensor<?x512xi32>
  return %0 : tensor<?x512xi32>
}
