// Vector add through pointers with masks, between numbers that stay as they are: what is masked off is not touched.
greta_tile.func @guard_kernel(%y: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
  %block = arith.constant 1024 : i32
  %pid = greta_tile.program_id 0
  %first = arith.muli %pid, %block : i32
  %firsts = greta_tile.splat %first : tensor<1024xi32>
  %iota = greta_tile.iota 0 : tensor<1024xi32>
  %i = arith.addi %firsts, %iota : tensor<1024xi32>
  %end = greta_tile.splat %n : tensor<1024xi32>
  %mask = arith.cmpi slt, %i, %end : tensor<1024xi32>
  %guard = arith.constant dense<-1.0> : tensor<1024xf32>
  %p = greta_tile.ptr_add %y, %i : !greta_tile.ptr<f32>, tensor<1024xi32>
  greta_tile.store_scattered %guard, %p mask %mask : tensor<1024xf32> -> tensor<1024x!greta_tile.ptr<f32>>
  greta_tile.return
}

greta_tile.func @guarded_add_kernel(%a: !greta_tile.ptr<f32>, %b: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
  %block = arith.constant 1024 : i32
  %band = arith.constant 32 : i64
  %pid = greta_tile.program_id 0
  %first = arith.muli %pid, %block : i32
  %firsts = greta_tile.splat %first : tensor<1024xi32>
  %iota = greta_tile.iota 0 : tensor<1024xi32>
  %i = arith.addi %firsts, %iota : tensor<1024xi32>
  %end = greta_tile.splat %n : tensor<1024xi32>
  %mask = arith.cmpi slt, %i, %end : tensor<1024xi32>
  %ap = greta_tile.ptr_add %a, %i : !greta_tile.ptr<f32>, tensor<1024xi32>
  %bp = greta_tile.ptr_add %b, %i : !greta_tile.ptr<f32>, tensor<1024xi32>
  %x = greta_tile.load_scattered %ap mask %mask : tensor<1024x!greta_tile.ptr<f32>> -> tensor<1024xf32>
  %z = greta_tile.load_scattered %bp mask %mask : tensor<1024x!greta_tile.ptr<f32>> -> tensor<1024xf32>
  %sum = arith.addf %x, %z : tensor<1024xf32>
  %inner = greta_tile.ptr_add %y, %band : !greta_tile.ptr<f32>, i64
  %yp = greta_tile.ptr_add %inner, %i : !greta_tile.ptr<f32>, tensor<1024xi32>
  greta_tile.store_scattered %sum, %yp mask %mask : tensor<1024xf32> -> tensor<1024x!greta_tile.ptr<f32>>
  greta_tile.return
}

func.func @guarded_add(%a: tensor<?xf32>, %b: tensor<?xf32> {greta.shape = affine_map<()[n] -> (n)>}) -> tensor<?xf32> {
  %0 = greta_tile.launch @guard_kernel grid affine_map<()[n] -> ((n + 64) ceildiv 1024)> scalars affine_map<()[n] -> (n + 64)> ()
       shapes [affine_map<()[n] -> (n + 64)>] : () -> tensor<?xf32>
  greta_tile.launch @guarded_add_kernel grid affine_map<()[n] -> (n ceildiv 1024)> scalars affine_map<()[n] -> (n)> (%a, %b, %0) shapes []
       : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> ()
  return %0 : tensor<?xf32>
}
