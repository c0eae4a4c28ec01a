// The GEMM of Triton's tutorial: blocks of pointers that step along K, masks at the ends. Tiles of 32 x 32, 16 of K at a time.
greta_tile.func @matmul_pointers_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %c: !greta_tile.ptr<f16>, %m: i32, %n: i32, %k: i32)
    attributes {waves = 2 : i32} {
  %zero = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %x = greta_tile.program_id 0
  %y = greta_tile.program_id 1
  %row = arith.muli %y, %c32 : i32
  %column = arith.muli %x, %c32 : i32
  %rows = greta_tile.splat %row : tensor<32x16xi32>
  %down = greta_tile.iota 0 : tensor<32x16xi32>
  %i = arith.addi %rows, %down : tensor<32x16xi32>
  %along = greta_tile.iota 1 : tensor<32x16xi32>
  %ks = greta_tile.splat %k : tensor<32x16xi32>
  %a_line = arith.muli %i, %ks : tensor<32x16xi32>
  %a_place = arith.addi %a_line, %along : tensor<32x16xi32>
  %a_first = greta_tile.ptr_add %a, %a_place : !greta_tile.ptr<f16>, tensor<32x16xi32>
  %ms = greta_tile.splat %m : tensor<32x16xi32>
  %is_row = arith.cmpi slt, %i, %ms : tensor<32x16xi32>
  %columns = greta_tile.splat %column : tensor<16x32xi32>
  %across = greta_tile.iota 1 : tensor<16x32xi32>
  %j = arith.addi %columns, %across : tensor<16x32xi32>
  %deep = greta_tile.iota 0 : tensor<16x32xi32>
  %ns = greta_tile.splat %n : tensor<16x32xi32>
  %b_line = arith.muli %deep, %ns : tensor<16x32xi32>
  %b_place = arith.addi %b_line, %j : tensor<16x32xi32>
  %b_first = greta_tile.ptr_add %b, %b_place : !greta_tile.ptr<f16>, tensor<16x32xi32>
  %is_column = arith.cmpi slt, %j, %ns : tensor<16x32xi32>
  %b_step = arith.muli %n, %c16 : i32
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %sum, %p, %q = scf.for %at = %zero to %k step %c16 iter_args(%acc = %none, %pa = %a_first, %pb = %b_first)
      -> (tensor<32x32xf32>, tensor<32x16x!greta_tile.ptr<f16>>, tensor<16x32x!greta_tile.ptr<f16>>) : i32 {
    %left = arith.subi %k, %at : i32
    %a_left = greta_tile.splat %left : tensor<32x16xi32>
    %a_in = arith.cmpi slt, %along, %a_left : tensor<32x16xi32>
    %a_mask = arith.andi %a_in, %is_row : tensor<32x16xi1>
    %b_left = greta_tile.splat %left : tensor<16x32xi32>
    %b_in = arith.cmpi slt, %deep, %b_left : tensor<16x32xi32>
    %b_mask = arith.andi %b_in, %is_column : tensor<16x32xi1>
    %av = greta_tile.load_scattered %pa mask %a_mask : tensor<32x16x!greta_tile.ptr<f16>> -> tensor<32x16xf16>
    %bv = greta_tile.load_scattered %pb mask %b_mask : tensor<16x32x!greta_tile.ptr<f16>> -> tensor<16x32xf16>
    %next = greta_tile.dot %av, %bv, %acc : tensor<32x16xf16>, tensor<16x32xf16> -> tensor<32x32xf32>
    %pa_next = greta_tile.ptr_add %pa, %c16 : tensor<32x16x!greta_tile.ptr<f16>>, i32
    %pb_next = greta_tile.ptr_add %pb, %b_step : tensor<16x32x!greta_tile.ptr<f16>>, i32
    scf.yield %next, %pa_next, %pb_next : tensor<32x32xf32>, tensor<32x16x!greta_tile.ptr<f16>>, tensor<16x32x!greta_tile.ptr<f16>>
  }
  %result = arith.truncf %sum : tensor<32x32xf32> to tensor<32x32xf16>
  greta_tile.store %result, %c[%row, %column] strides [-9223372036854775808, 1] (%n) bounds [0, 1] (%m, %n) : tensor<32x32xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

func.func @matmul_pointers(%a: tensor<?x?xf16>, %b: tensor<?x?xf16> {greta.shape = affine_map<()[m, k, n] -> (k, n)>}) -> tensor<?x?xf16> {
  %0 = greta_tile.launch @matmul_pointers_kernel grid affine_map<()[m, k, n] -> (n ceildiv 32, m ceildiv 32)> scalars affine_map<()[m, k, n] -> (m, n, k)> (%a, %b)
       shapes [affine_map<()[m, k, n] -> (m, n)>] : (tensor<?x?xf16>, tensor<?x?xf16>) -> tensor<?x?xf16>
  return %0 : tensor<?x?xf16>
}
