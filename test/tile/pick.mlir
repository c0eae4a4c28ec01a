// Rows of 24 by their numbers, and then columns of these: two gathers along different axes, forty of 24 and eight of 32.
greta_tile.func @pick_kernel(%x: !greta_tile.ptr<f16>, %rows: !greta_tile.ptr<i32>, %columns: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<f16>) attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %id = greta_tile.program_id 0
  %v = greta_tile.load %x[%id, %zero, %zero] strides [768, 32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<1x24x32xf16>
  %r = greta_tile.load %rows[%id, %zero, %zero] strides [1280, 32, 1] bounds [] : !greta_tile.ptr<i32> -> tensor<1x40x32xi32>
  %c = greta_tile.load %columns[%id, %zero, %zero] strides [320, 8, 1] bounds [] : !greta_tile.ptr<i32> -> tensor<1x40x8xi32>
  %picked = greta_tile.gather %v[%r] axis 1 : tensor<1x24x32xf16>[tensor<1x40x32xi32>] -> tensor<1x40x32xf16>
  %again = greta_tile.gather %picked[%c] axis 2 : tensor<1x40x32xf16>[tensor<1x40x8xi32>] -> tensor<1x40x8xf16>
  greta_tile.store %again, %y[%id, %zero, %zero] strides [320, 8, 1] bounds [] : tensor<1x40x8xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

func.func @pick(%x: tensor<?x24x32xf16>, %rows: tensor<?x40x32xi32> {greta.shape = affine_map<()[n] -> (n, 40, 32)>},
                %columns: tensor<?x40x8xi32> {greta.shape = affine_map<()[n] -> (n, 40, 8)>}) -> tensor<?x40x8xf16> {
  %0 = greta_tile.launch @pick_kernel grid affine_map<()[n] -> (n)> scalars affine_map<()[n] -> ()> (%x, %rows, %columns) shapes [affine_map<()[n] -> (n, 40, 8)>]
       : (tensor<?x24x32xf16>, tensor<?x40x32xi32>, tensor<?x40x8xi32>) -> tensor<?x40x8xf16>
  return %0 : tensor<?x40x8xf16>
}
