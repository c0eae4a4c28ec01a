// Sums up to each element and from it on, of rows of 1000 elements over four waves; side by side.
greta_tile.func @cumulative_sum_kernel(%x: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>) attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %columns = arith.constant 1000 : i32
  %row = greta_tile.program_id 0
  %v = greta_tile.load %x[%row, %zero] strides [1000, 1] bounds [1] (%columns) : !greta_tile.ptr<i32> -> tensor<1x1024xi32>
  %line = greta_tile.reshape %v : tensor<1x1024xi32> -> tensor<1024xi32>
  %up = greta_tile.scan {arith.addi} %line axis 0 : tensor<1024xi32>
  %down = greta_tile.scan {arith.addi} %line axis 0 reverse : tensor<1024xi32>
  %both = greta_tile.join %up, %down : tensor<1024xi32> -> tensor<1024x2xi32>
  %block = greta_tile.reshape %both : tensor<1024x2xi32> -> tensor<1x1024x2xi32>
  greta_tile.store %block, %y[%row, %zero, %zero] strides [2000, 2, 1] bounds [1] (%columns) : tensor<1x1024x2xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}

func.func @cumulative_sum(%x: tensor<?x1000xi32>) -> tensor<?x1000x2xi32> {
  %0 = greta_tile.launch @cumulative_sum_kernel grid affine_map<()[rows] -> (rows)> scalars affine_map<()[rows] -> ()> (%x)
       shapes [affine_map<()[rows] -> (rows, 1000, 2)>] : (tensor<?x1000xi32>) -> tensor<?x1000x2xi32>
  return %0 : tensor<?x1000x2xi32>
}
