// A GEMM from blocks of pointers, whose masks bound rows and columns as well as K: strided accesses in disguise. Tiles are taken in groups of eight rows of them. A is [M, K],
// B [K, N], and nothing divides any of them.
greta_tile.func @matmul_masks_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %c: !greta_tile.ptr<f16>, %m: i32, %n: i32, %k: i32) attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c31 = arith.constant 31 : i32
  %c32 = arith.constant 32 : i32
  %c63 = arith.constant 63 : i32
  %c64 = arith.constant 64 : i32
  %program = greta_tile.program_id 0
  %wider = arith.addi %n, %c63 : i32
  %across = arith.divsi %wider, %c64 : i32
  %longer = arith.addi %m, %c63 : i32
  %down = arith.divsi %longer, %c64 : i32
  %group_size = arith.muli %across, %c8 : i32
  %group = arith.divsi %program, %group_size : i32
  %first = arith.muli %group, %c8 : i32
  %left_down = arith.subi %down, %first : i32
  %height = arith.minsi %left_down, %c8 : i32
  %in_group = arith.remsi %program, %group_size : i32
  %in_column = arith.remsi %in_group, %height : i32
  %pm = arith.addi %first, %in_column : i32
  %pn = arith.divsi %in_group, %height : i32
  %row = arith.muli %pm, %c64 : i32
  %column = arith.muli %pn, %c64 : i32
  %i64 = greta_tile.iota 0 : tensor<64xi32>
  %i32 = greta_tile.iota 0 : tensor<32xi32>
  %row_s = greta_tile.splat %row : tensor<64xi32>
  %column_s = greta_tile.splat %column : tensor<64xi32>
  %m_s = greta_tile.splat %m : tensor<64xi32>
  %n_s = greta_tile.splat %n : tensor<64xi32>
  %rows = arith.addi %row_s, %i64 : tensor<64xi32>
  %columns = arith.addi %column_s, %i64 : tensor<64xi32>
  %rows_ok = arith.cmpi slt, %rows, %m_s : tensor<64xi32>
  %rows_ok_down = greta_tile.reshape %rows_ok : tensor<64xi1> -> tensor<64x1xi1>
  %a_rows_ok = greta_tile.broadcast %rows_ok_down : tensor<64x1xi1> -> tensor<64x32xi1>
  %columns_ok = arith.cmpi slt, %columns, %n_s : tensor<64xi32>
  %columns_ok_right = greta_tile.reshape %columns_ok : tensor<64xi1> -> tensor<1x64xi1>
  %b_columns_ok = greta_tile.broadcast %columns_ok_right : tensor<1x64xi1> -> tensor<32x64xi1>
  %k_s = greta_tile.splat %k : tensor<64x1xi32>
  %rows_down = greta_tile.reshape %rows : tensor<64xi32> -> tensor<64x1xi32>
  %a_rows = arith.muli %rows_down, %k_s : tensor<64x1xi32>
  %a_line = greta_tile.ptr_add %a, %a_rows : !greta_tile.ptr<f16>, tensor<64x1xi32>
  %a_lines = greta_tile.broadcast %a_line : tensor<64x1x!greta_tile.ptr<f16>> -> tensor<64x32x!greta_tile.ptr<f16>>
  %depth_right = greta_tile.reshape %i32 : tensor<32xi32> -> tensor<1x32xi32>
  %depths_right = greta_tile.broadcast %depth_right : tensor<1x32xi32> -> tensor<64x32xi32>
  %a_first = greta_tile.ptr_add %a_lines, %depths_right : tensor<64x32x!greta_tile.ptr<f16>>, tensor<64x32xi32>
  %depth_down = greta_tile.reshape %i32 : tensor<32xi32> -> tensor<32x1xi32>
  %n_down = greta_tile.splat %n : tensor<32x1xi32>
  %b_rows = arith.muli %depth_down, %n_down : tensor<32x1xi32>
  %b_line = greta_tile.ptr_add %b, %b_rows : !greta_tile.ptr<f16>, tensor<32x1xi32>
  %b_lines = greta_tile.broadcast %b_line : tensor<32x1x!greta_tile.ptr<f16>> -> tensor<32x64x!greta_tile.ptr<f16>>
  %columns_right = greta_tile.reshape %columns : tensor<64xi32> -> tensor<1x64xi32>
  %b_columns = greta_tile.broadcast %columns_right : tensor<1x64xi32> -> tensor<32x64xi32>
  %b_first = greta_tile.ptr_add %b_lines, %b_columns : tensor<32x64x!greta_tile.ptr<f16>>, tensor<32x64xi32>
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %step_a = arith.constant dense<32> : tensor<64x32xi32>
  %n32 = arith.muli %n, %c32 : i32
  %step_b = greta_tile.splat %n32 : tensor<32x64xi32>
  %deeper = arith.addi %k, %c31 : i32
  %turns = arith.divsi %deeper, %c32 : i32
  %sum, %pa_end, %pb_end = scf.for %turn = %zero to %turns step %one iter_args(%acc = %none, %pa = %a_first, %pb = %b_first) -> (tensor<64x64xf32>, tensor<64x32x!greta_tile.ptr<f16>>, tensor<32x64x!greta_tile.ptr<f16>>) : i32 {
    %done = arith.muli %turn, %c32 : i32
    %left = arith.subi %k, %done : i32
    %left_right = greta_tile.splat %left : tensor<1x32xi32>
    %in_right = arith.cmpi slt, %depth_right, %left_right : tensor<1x32xi32>
    %a_mask = greta_tile.broadcast %in_right : tensor<1x32xi1> -> tensor<64x32xi1>
    %left_down_k = greta_tile.splat %left : tensor<32x1xi32>
    %in_down = arith.cmpi slt, %depth_down, %left_down_k : tensor<32x1xi32>
    %b_mask = greta_tile.broadcast %in_down : tensor<32x1xi1> -> tensor<32x64xi1>
    %a_inside = arith.andi %a_mask, %a_rows_ok : tensor<64x32xi1>
    %b_inside = arith.andi %b_mask, %b_columns_ok : tensor<32x64xi1>
    %x = greta_tile.load_scattered %pa mask %a_inside : tensor<64x32x!greta_tile.ptr<f16>> -> tensor<64x32xf16>
    %y = greta_tile.load_scattered %pb mask %b_inside : tensor<32x64x!greta_tile.ptr<f16>> -> tensor<32x64xf16>
    %next = greta_tile.dot %x, %y, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %pa_next = greta_tile.ptr_add %pa, %step_a : tensor<64x32x!greta_tile.ptr<f16>>, tensor<64x32xi32>
    %pb_next = greta_tile.ptr_add %pb, %step_b : tensor<32x64x!greta_tile.ptr<f16>>, tensor<32x64xi32>
    scf.yield %next, %pa_next, %pb_next : tensor<64x64xf32>, tensor<64x32x!greta_tile.ptr<f16>>, tensor<32x64x!greta_tile.ptr<f16>>
  }
  %result = arith.truncf %sum : tensor<64x64xf32> to tensor<64x64xf16>
  %rows_of_c = greta_tile.reshape %rows : tensor<64xi32> -> tensor<64x1xi32>
  %n_of_c = greta_tile.splat %n : tensor<64x1xi32>
  %c_rows = arith.muli %rows_of_c, %n_of_c : tensor<64x1xi32>
  %c_line = greta_tile.ptr_add %c, %c_rows : !greta_tile.ptr<f16>, tensor<64x1xi32>
  %c_lines = greta_tile.broadcast %c_line : tensor<64x1x!greta_tile.ptr<f16>> -> tensor<64x64x!greta_tile.ptr<f16>>
  %columns_of_c = greta_tile.reshape %columns : tensor<64xi32> -> tensor<1x64xi32>
  %c_columns = greta_tile.broadcast %columns_of_c : tensor<1x64xi32> -> tensor<64x64xi32>
  %c_all = greta_tile.ptr_add %c_lines, %c_columns : tensor<64x64x!greta_tile.ptr<f16>>, tensor<64x64xi32>
  %m_down = greta_tile.splat %m : tensor<64x1xi32>
  %in_rows = arith.cmpi slt, %rows_of_c, %m_down : tensor<64x1xi32>
  %n_right = greta_tile.splat %n : tensor<1x64xi32>
  %in_columns = arith.cmpi slt, %columns_of_c, %n_right : tensor<1x64xi32>
  %all_rows = greta_tile.broadcast %in_rows : tensor<64x1xi1> -> tensor<64x64xi1>
  %all_columns = greta_tile.broadcast %in_columns : tensor<1x64xi1> -> tensor<64x64xi1>
  %c_mask = arith.andi %all_rows, %all_columns : tensor<64x64xi1>
  greta_tile.store_scattered %result, %c_all mask %c_mask : tensor<64x64xf16> -> tensor<64x64x!greta_tile.ptr<f16>>
  greta_tile.return
}

// Symbols: M, K, N.
func.func @matmul_masks(%a: tensor<?x?xf16>, %b: tensor<?x?xf16> {greta.shape = affine_map<()[m, k, n] -> (k, n)>}) -> tensor<?x?xf16> {
  %0 = greta_tile.launch @matmul_masks_kernel grid affine_map<()[m, k, n] -> ((m ceildiv 64) * (n ceildiv 64))> scalars affine_map<()[m, k, n] -> (m, n, k)> (%a, %b)
       shapes [affine_map<()[m, k, n] -> (m, n)>] : (tensor<?x?xf16>, tensor<?x?xf16>) -> tensor<?x?xf16>
  return %0 : tensor<?x?xf16>
}
