// The place of the largest of 500 elements in each of four rows, the first of equals.
greta_tile.func @argmax_kernel(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<i32>, %rows: i32) attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %four = arith.constant 4 : i32
  %columns = arith.constant 500 : i32
  %id = greta_tile.program_id 0
  %row = arith.muli %id, %four : i32
  %outside = arith.constant 0xFF800000 : f32
  %v = greta_tile.load %x[%row, %zero] strides [500, 1] bounds [0, 1] (%rows, %columns) other %outside : f32 : !greta_tile.ptr<f32> -> tensor<4x512xf32>
  %at = greta_tile.iota 1 : tensor<4x512xi32>
  %m, %i = greta_tile.reduce %v, %at axis 1 : tensor<4x512xf32>, tensor<4x512xi32> -> (tensor<4xf32>, tensor<4xi32>) {
  ^bb0(%a: f32, %ia: i32, %b: f32, %ib: i32):
    %greater = arith.cmpf ogt, %a, %b : f32
    %equal = arith.cmpf oeq, %a, %b : f32
    %before = arith.cmpi slt, %ia, %ib : i32
    %tie = arith.andi %equal, %before : i1
    %first = arith.ori %greater, %tie : i1
    %value = arith.select %first, %a, %b : f32
    %index = arith.select %first, %ia, %ib : i32
    greta_tile.yield %value, %index : f32, i32
  }
  greta_tile.store %i, %y[%row] strides [1] bounds [0] (%rows) : tensor<4xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}

func.func @argmax(%x: tensor<?x500xf32>) -> tensor<?xi32> {
  %0 = greta_tile.launch @argmax_kernel grid affine_map<()[rows] -> (rows ceildiv 4)> scalars affine_map<()[rows] -> (rows)> (%x)
       shapes [affine_map<()[rows] -> (rows)>] : (tensor<?x500xf32>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}
