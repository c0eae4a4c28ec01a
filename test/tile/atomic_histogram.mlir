// How often each of sixteen numbers occurs, by atomics at addresses that the data say.
greta_tile.func @no_counts_kernel(%y: !greta_tile.ptr<i32>) attributes {waves = 1 : i32} {
  %zero = arith.constant dense<0> : tensor<16xi32>
  %iota = greta_tile.iota 0 : tensor<16xi32>
  %p = greta_tile.ptr_add %y, %iota : !greta_tile.ptr<i32>, tensor<16xi32>
  greta_tile.store_scattered %zero, %p : tensor<16xi32> -> tensor<16x!greta_tile.ptr<i32>>
  greta_tile.return
}

greta_tile.func @atomic_histogram_kernel(%x: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>, %n: i32) attributes {waves = 2 : i32} {
  %c = arith.constant 512 : i32
  %pid = greta_tile.program_id 0
  %first = arith.muli %pid, %c : i32
  %firsts = greta_tile.splat %first : tensor<512xi32>
  %iota = greta_tile.iota 0 : tensor<512xi32>
  %i = arith.addi %firsts, %iota : tensor<512xi32>
  %end = greta_tile.splat %n : tensor<512xi32>
  %mask = arith.cmpi slt, %i, %end : tensor<512xi32>
  %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<i32>, tensor<512xi32>
  %v = greta_tile.load_scattered %p mask %mask : tensor<512x!greta_tile.ptr<i32>> -> tensor<512xi32>
  %q = greta_tile.ptr_add %y, %v : !greta_tile.ptr<i32>, tensor<512xi32>
  %one = arith.constant dense<1> : tensor<512xi32>
  %old = greta_tile.atomic_rmw add relaxed device %q, %one mask %mask : tensor<512x!greta_tile.ptr<i32>> -> tensor<512xi32>
  greta_tile.return
}

func.func @atomic_histogram(%x: tensor<?xi32>) -> tensor<16xi32> {
  %0 = greta_tile.launch @no_counts_kernel grid affine_map<()[n] -> (1)> scalars affine_map<()[n] -> ()> () shapes [affine_map<()[n] -> (16)>]
       : () -> tensor<16xi32>
  greta_tile.launch @atomic_histogram_kernel grid affine_map<()[n] -> (n ceildiv 512)> scalars affine_map<()[n] -> (n)> (%x, %0) shapes []
       : (tensor<?xi32>, tensor<16xi32>) -> ()
  return %0 : tensor<16xi32>
}
