// y becomes alpha x + y in its first n elements, in place; arguments are in any order.
greta_tile.func @axpy_kernel(%alpha: f32, %x: !greta_tile.ptr<f32>, %n: i32, %y: !greta_tile.ptr<f32>) attributes {waves = 1 : i32} {
  %c128 = arith.constant 128 : i32
  %pid = greta_tile.program_id 0
  %start = arith.muli %pid, %c128 : i32
  %a = greta_tile.load %x[%start] strides [1] bounds [0] (%n) : !greta_tile.ptr<f32> -> tensor<128xf32>
  %b = greta_tile.load %y[%start] strides [1] bounds [0] (%n) : !greta_tile.ptr<f32> -> tensor<128xf32>
  %alphas = greta_tile.splat %alpha : tensor<128xf32>
  %scaled = arith.mulf %alphas, %a : tensor<128xf32>
  %sum = arith.addf %scaled, %b : tensor<128xf32>
  greta_tile.store %sum, %y[%start] strides [1] bounds [0] (%n) : tensor<128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @axpy(%alpha: f32, %x: tensor<?xf32>, %n: i32, %y: tensor<?xf32> {greta.shape = affine_map<()[size, n] -> (size)>}) -> tensor<?xf32> {
  %0 = greta_tile.launch @axpy_kernel grid affine_map<()[size, n] -> (n ceildiv 128)> scalars affine_map<() -> ()> (%alpha, %x, %n, %y) tied [3] shapes []
       : (f32, tensor<?xf32>, i32, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
