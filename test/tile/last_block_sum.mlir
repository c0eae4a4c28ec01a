// A sum in one launch: each workgroup stores its part and takes a ticket; who has the last one adds up the parts, which the others have released.
greta_tile.func @no_tickets_kernel(%parts: !greta_tile.ptr<i32>, %count: !greta_tile.ptr<i32>) attributes {waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  greta_tile.store_scattered %zero, %count : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}

greta_tile.func @last_block_sum_kernel(%x: !greta_tile.ptr<i32>, %parts: !greta_tile.ptr<i32>, %count: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>,
                                       %n: i32, %programs: i32) attributes {waves = 4 : i32} {
  %one = arith.constant 1 : i32
  %c = arith.constant 256 : i32
  %pid = greta_tile.program_id 0
  %first = arith.muli %pid, %c : i32
  %firsts = greta_tile.splat %first : tensor<256xi32>
  %iota = greta_tile.iota 0 : tensor<256xi32>
  %i = arith.addi %firsts, %iota : tensor<256xi32>
  %end = greta_tile.splat %n : tensor<256xi32>
  %mask = arith.cmpi slt, %i, %end : tensor<256xi32>
  %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<i32>, tensor<256xi32>
  %v = greta_tile.load_scattered %p mask %mask : tensor<256x!greta_tile.ptr<i32>> -> tensor<256xi32>
  %part = greta_tile.reduce {arith.addi} %v axis 0 : tensor<256xi32> -> i32
  %mine = greta_tile.ptr_add %parts, %pid : !greta_tile.ptr<i32>, i32
  greta_tile.store_scattered %part, %mine : i32 -> !greta_tile.ptr<i32>
  %ticket = greta_tile.atomic_rmw add acq_rel device %count, %one : !greta_tile.ptr<i32> -> i32
  %last = arith.subi %programs, %one : i32
  %isLast = arith.cmpi eq, %ticket, %last : i32
  scf.if %isLast {
    %all = greta_tile.splat %programs : tensor<256xi32>
    %j = greta_tile.iota 0 : tensor<256xi32>
    %isPart = arith.cmpi slt, %j, %all : tensor<256xi32>
    %q = greta_tile.ptr_add %parts, %j : !greta_tile.ptr<i32>, tensor<256xi32>
    %w = greta_tile.load_scattered %q mask %isPart : tensor<256x!greta_tile.ptr<i32>> -> tensor<256xi32>
    %sum = greta_tile.reduce {arith.addi} %w axis 0 : tensor<256xi32> -> i32
    greta_tile.store_scattered %sum, %y : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}

func.func @last_block_sum(%x: tensor<?xi32>) -> tensor<1xi32> {
  %parts, %count = greta_tile.launch @no_tickets_kernel grid affine_map<()[n] -> (1)> scalars affine_map<()[n] -> ()> ()
       shapes [affine_map<()[n] -> (n ceildiv 256)>, affine_map<()[n] -> (1)>] : () -> (tensor<?xi32>, tensor<1xi32>)
  %0 = greta_tile.launch @last_block_sum_kernel grid affine_map<()[n] -> (n ceildiv 256)> scalars affine_map<()[n] -> (n, n ceildiv 256)>
       (%x, %parts, %count) shapes [affine_map<()[n] -> (1)>] : (tensor<?xi32>, tensor<?xi32>, tensor<1xi32>) -> tensor<1xi32>
  return %0 : tensor<1xi32>
}
