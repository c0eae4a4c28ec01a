// A GEMM as in Triton's tutorial, from blocks of pointers that step along K under masks, and greta.matmul at the same tile: 128 x 128, 64 of K at a time, eight waves, workgroups in
// groups of eight rows of tiles. docs/benchmarks/large_gemms.py measures both: A is [M, K], B [N, K].
greta_tile.func @pointers_kernel(%a: !greta_tile.ptr<f16> {greta.pointer_range}, %b: !greta_tile.ptr<f16> {greta.pointer_range}, %c: !greta_tile.ptr<f16> {greta.pointer_range}, %m: i32 {greta.divisibility = 16 : i64}, %n: i32 {greta.divisibility = 16 : i64}, %k: i32 {greta.divisibility = 16 : i64}) attributes {waves = 8 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c63 = arith.constant 63 : i32
  %c64 = arith.constant 64 : i32
  %c127 = arith.constant 127 : i32
  %c128 = arith.constant 128 : i32
  %program = greta_tile.program_id 0
  %wider = arith.addi %n, %c127 : i32
  %across = arith.divsi %wider, %c128 : i32
  %longer = arith.addi %m, %c127 : i32
  %down = arith.divsi %longer, %c128 : i32
  %group_size = arith.muli %across, %c8 : i32
  %group = arith.divsi %program, %group_size : i32
  %first = arith.muli %group, %c8 : i32
  %left_down = arith.subi %down, %first : i32
  %height = arith.minsi %left_down, %c8 : i32
  %in_group = arith.remsi %program, %group_size : i32
  %in_column = arith.remsi %in_group, %height : i32
  %pm = arith.addi %first, %in_column : i32
  %pn = arith.divsi %in_group, %height : i32
  %row = arith.muli %pm, %c128 : i32
  %column = arith.muli %pn, %c128 : i32
  // Rows and columns of this tile, and beyond the last from the first on again.
  %i128 = greta_tile.iota 0 : tensor<128xi32>
  %i64 = greta_tile.iota 0 : tensor<64xi32>
  %row_s = greta_tile.splat %row : tensor<128xi32>
  %column_s = greta_tile.splat %column : tensor<128xi32>
  %m_s = greta_tile.splat %m : tensor<128xi32>
  %n_s = greta_tile.splat %n : tensor<128xi32>
  %rows = arith.addi %row_s, %i128 : tensor<128xi32>
  %columns = arith.addi %column_s, %i128 : tensor<128xi32>
  %rows_in = arith.remsi %rows, %m_s : tensor<128xi32>
  %columns_in = arith.remsi %columns, %n_s : tensor<128xi32>
  %k_s = greta_tile.splat %k : tensor<128x1xi32>
  %rows_down = greta_tile.reshape %rows_in : tensor<128xi32> -> tensor<128x1xi32>
  %a_rows = arith.muli %rows_down, %k_s : tensor<128x1xi32>
  %a_line = greta_tile.ptr_add %a, %a_rows : !greta_tile.ptr<f16>, tensor<128x1xi32>
  %a_lines = greta_tile.broadcast %a_line : tensor<128x1x!greta_tile.ptr<f16>> -> tensor<128x64x!greta_tile.ptr<f16>>
  %depth_right = greta_tile.reshape %i64 : tensor<64xi32> -> tensor<1x64xi32>
  %depths_right = greta_tile.broadcast %depth_right : tensor<1x64xi32> -> tensor<128x64xi32>
  %a_first = greta_tile.ptr_add %a_lines, %depths_right : tensor<128x64x!greta_tile.ptr<f16>>, tensor<128x64xi32>
  %depth_down = greta_tile.reshape %i64 : tensor<64xi32> -> tensor<64x1xi32>
  %k_right = greta_tile.splat %k : tensor<1x128xi32>
  %columns_right = greta_tile.reshape %columns_in : tensor<128xi32> -> tensor<1x128xi32>
  %b_columns = arith.muli %columns_right, %k_right : tensor<1x128xi32>
  %b_line = greta_tile.ptr_add %b, %b_columns : !greta_tile.ptr<f16>, tensor<1x128xi32>
  %b_lines = greta_tile.broadcast %b_line : tensor<1x128x!greta_tile.ptr<f16>> -> tensor<64x128x!greta_tile.ptr<f16>>
  %depths_down = greta_tile.broadcast %depth_down : tensor<64x1xi32> -> tensor<64x128xi32>
  %b_first = greta_tile.ptr_add %b_lines, %depths_down : tensor<64x128x!greta_tile.ptr<f16>>, tensor<64x128xi32>
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %step_a = arith.constant dense<64> : tensor<128x64xi32>
  %step_b = arith.constant dense<64> : tensor<64x128xi32>
  %deeper = arith.addi %k, %c63 : i32
  %turns = arith.divsi %deeper, %c64 : i32
  %sum, %pa_end, %pb_end = scf.for %turn = %zero to %turns step %one iter_args(%acc = %none, %pa = %a_first, %pb = %b_first) -> (tensor<128x128xf32>, tensor<128x64x!greta_tile.ptr<f16>>, tensor<64x128x!greta_tile.ptr<f16>>) : i32 {
    %done = arith.muli %turn, %c64 : i32
    %left = arith.subi %k, %done : i32
    %left_right = greta_tile.splat %left : tensor<1x64xi32>
    %in_right = arith.cmpi slt, %depth_right, %left_right : tensor<1x64xi32>
    %a_mask = greta_tile.broadcast %in_right : tensor<1x64xi1> -> tensor<128x64xi1>
    %left_down_k = greta_tile.splat %left : tensor<64x1xi32>
    %in_down = arith.cmpi slt, %depth_down, %left_down_k : tensor<64x1xi32>
    %b_mask = greta_tile.broadcast %in_down : tensor<64x1xi1> -> tensor<64x128xi1>
    %x = greta_tile.load_scattered %pa mask %a_mask : tensor<128x64x!greta_tile.ptr<f16>> -> tensor<128x64xf16>
    %y = greta_tile.load_scattered %pb mask %b_mask : tensor<64x128x!greta_tile.ptr<f16>> -> tensor<64x128xf16>
    %next = greta_tile.dot %x, %y, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    %pa_next = greta_tile.ptr_add %pa, %step_a : tensor<128x64x!greta_tile.ptr<f16>>, tensor<128x64xi32>
    %pb_next = greta_tile.ptr_add %pb, %step_b : tensor<64x128x!greta_tile.ptr<f16>>, tensor<64x128xi32>
    scf.yield %next, %pa_next, %pb_next : tensor<128x128xf32>, tensor<128x64x!greta_tile.ptr<f16>>, tensor<64x128x!greta_tile.ptr<f16>>
  }
  %result = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xf16>
  %rows_of_c = greta_tile.reshape %rows : tensor<128xi32> -> tensor<128x1xi32>
  %n_of_c = greta_tile.splat %n : tensor<128x1xi32>
  %c_rows = arith.muli %rows_of_c, %n_of_c : tensor<128x1xi32>
  %c_line = greta_tile.ptr_add %c, %c_rows : !greta_tile.ptr<f16>, tensor<128x1xi32>
  %c_lines = greta_tile.broadcast %c_line : tensor<128x1x!greta_tile.ptr<f16>> -> tensor<128x128x!greta_tile.ptr<f16>>
  %columns_of_c = greta_tile.reshape %columns : tensor<128xi32> -> tensor<1x128xi32>
  %c_columns = greta_tile.broadcast %columns_of_c : tensor<1x128xi32> -> tensor<128x128xi32>
  %c_all = greta_tile.ptr_add %c_lines, %c_columns : tensor<128x128x!greta_tile.ptr<f16>>, tensor<128x128xi32>
  %m_down = greta_tile.splat %m : tensor<128x1xi32>
  %in_rows = arith.cmpi slt, %rows_of_c, %m_down : tensor<128x1xi32>
  %n_right = greta_tile.splat %n : tensor<1x128xi32>
  %in_columns = arith.cmpi slt, %columns_of_c, %n_right : tensor<1x128xi32>
  %all_rows = greta_tile.broadcast %in_rows : tensor<128x1xi1> -> tensor<128x128xi1>
  %all_columns = greta_tile.broadcast %in_columns : tensor<1x128xi1> -> tensor<128x128xi1>
  %c_mask = arith.andi %all_rows, %all_columns : tensor<128x128xi1>
  greta_tile.store_scattered %result, %c_all mask %c_mask : tensor<128x128xf16> -> tensor<128x128x!greta_tile.ptr<f16>>
  greta_tile.return
}

func.func @f16_4096x4096x4096__pointers(%a: tensor<4096x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %0 = greta_tile.launch @pointers_kernel grid affine_map<()[] -> (1024)> scalars affine_map<()[] -> (4096, 4096, 4096)> (%a, %b)
       shapes [affine_map<()[] -> (4096, 4096)>] : (tensor<4096x4096xf16>, tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
  return %0 : tensor<4096x4096xf16>
}

func.func @f16_4096x4096x4096__same_tile(%a: tensor<4096x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {instruction = [16, 8, 16], tile = [128, 128, 64], waves = 8, stages = 1, slice = 16, group = 8, split = 1}} : tensor<4096x4096xf16>, tensor<4096x4096xf16> -> tensor<4096x4096xf16>
  return %0 : tensor<4096x4096xf16>
}
