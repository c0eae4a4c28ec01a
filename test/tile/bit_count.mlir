// How many bits of each number are set, of 100 numbers by lanes of which some have none.
greta_tile.func @bit_count_kernel(%x: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>) attributes {waves = 2 : i32} {
  %zero = arith.constant 0 : i32
  %id = greta_tile.program_id 0
  %v = greta_tile.load %x[%id, %zero] strides [100, 1] bounds [] : !greta_tile.ptr<i32> -> tensor<1x100xi32>
  %bits = math.ctpop %v : tensor<1x100xi32>
  greta_tile.store %bits, %y[%id, %zero] strides [100, 1] bounds [] : tensor<1x100xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}

func.func @bit_count(%x: tensor<?x100xi32>) -> tensor<?x100xi32> {
  %0 = greta_tile.launch @bit_count_kernel grid affine_map<()[n] -> (n)> scalars affine_map<()[n] -> ()> (%x) shapes [affine_map<()[n] -> (n, 100)>]
       : (tensor<?x100xi32>) -> tensor<?x100xi32>
  return %0 : tensor<?x100xi32>
}
