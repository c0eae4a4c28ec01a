// Rows of a table, as an index says: pointers from a block of loaded indices, offsets of 64 bits, the last block of rows and columns masked.
greta_tile.func @gather_rows_kernel(%table: !greta_tile.ptr<f32>, %index: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<f32>, %rows: i32, %columns: i32)
    attributes {waves = 4 : i32} {
  %sixteen = arith.constant 16 : i32
  %pid = greta_tile.program_id 0
  %first = arith.muli %pid, %sixteen : i32
  %iota = greta_tile.iota 0 : tensor<16xi32>
  %firsts = greta_tile.splat %first : tensor<16xi32>
  %row = arith.addi %firsts, %iota : tensor<16xi32>
  %rowEnd = greta_tile.splat %rows : tensor<16xi32>
  %isRow = arith.cmpi slt, %row, %rowEnd : tensor<16xi32>
  %ip = greta_tile.ptr_add %index, %row : !greta_tile.ptr<i32>, tensor<16xi32>
  %from = greta_tile.load_scattered %ip mask %isRow : tensor<16x!greta_tile.ptr<i32>> -> tensor<16xi32>

  %wide = arith.extsi %columns : i32 to i64
  %stride = greta_tile.splat %wide : tensor<16xi64>
  %from64 = arith.extsi %from : tensor<16xi32> to tensor<16xi64>
  %start = arith.muli %from64, %stride : tensor<16xi64>
  %rowPtr = greta_tile.ptr_add %table, %start : !greta_tile.ptr<f32>, tensor<16xi64>
  %rowPtr1 = greta_tile.reshape %rowPtr : tensor<16x!greta_tile.ptr<f32>> -> tensor<16x1x!greta_tile.ptr<f32>>
  %rowPtrs = greta_tile.broadcast %rowPtr1 : tensor<16x1x!greta_tile.ptr<f32>> -> tensor<16x64x!greta_tile.ptr<f32>>
  %column = greta_tile.iota 1 : tensor<16x64xi32>
  %columnEnd = greta_tile.splat %columns : tensor<16x64xi32>
  %isColumn = arith.cmpi slt, %column, %columnEnd : tensor<16x64xi32>
  %isRow1 = greta_tile.reshape %isRow : tensor<16xi1> -> tensor<16x1xi1>
  %isRows = greta_tile.broadcast %isRow1 : tensor<16x1xi1> -> tensor<16x64xi1>
  %mask = arith.andi %isRows, %isColumn : tensor<16x64xi1>
  %p = greta_tile.ptr_add %rowPtrs, %column : tensor<16x64x!greta_tile.ptr<f32>>, tensor<16x64xi32>
  %v = greta_tile.load_scattered %p mask %mask : tensor<16x64x!greta_tile.ptr<f32>> -> tensor<16x64xf32>

  %row1 = greta_tile.reshape %row : tensor<16xi32> -> tensor<16x1xi32>
  %stride1 = greta_tile.splat %columns : tensor<16x1xi32>
  %to1 = arith.muli %row1, %stride1 : tensor<16x1xi32>
  %to = greta_tile.broadcast %to1 : tensor<16x1xi32> -> tensor<16x64xi32>
  %offset = arith.addi %to, %column : tensor<16x64xi32>
  %q = greta_tile.ptr_add %y, %offset : !greta_tile.ptr<f32>, tensor<16x64xi32>
  greta_tile.store_scattered %v, %q mask %mask : tensor<16x64xf32> -> tensor<16x64x!greta_tile.ptr<f32>>
  greta_tile.return
}

// Symbols: rows and columns of the table, rows of the result.
func.func @gather_rows(%table: tensor<?x?xf32>, %index: tensor<?xi32> {greta.shape = affine_map<()[d, b, a] -> (a)>}) -> tensor<?x?xf32> {
  %0 = greta_tile.launch @gather_rows_kernel grid affine_map<()[d, b, a] -> (a ceildiv 16)> scalars affine_map<()[d, b, a] -> (a, b)> (%table, %index)
       shapes [affine_map<()[d, b, a] -> (a, b)>] : (tensor<?x?xf32>, tensor<?xi32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
