// GEMMs of several groups in one launch: group g has the rows first[g] to first[g + 1] of A and a B of its own. Which rows these are the device alone knows:
// a program goes over the tiles of its group.
greta_tile.func @grouped_matmul_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %first: !greta_tile.ptr<i32>, %c: !greta_tile.ptr<f16>, %n: i32)
    attributes {waves = 2 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c48 = arith.constant 48 : i32
  %x = greta_tile.program_id 0
  %group = greta_tile.program_id 1
  %column = arith.muli %x, %c32 : i32
  %place = greta_tile.ptr_add %first, %group : !greta_tile.ptr<i32>, i32
  %next_place = greta_tile.ptr_add %place, %one : !greta_tile.ptr<i32>, i32
  %begin = greta_tile.load_scattered %place : !greta_tile.ptr<i32> -> i32
  %end = greta_tile.load_scattered %next_place : !greta_tile.ptr<i32> -> i32
  %size = arith.muli %n, %c48 : i32
  %offset = arith.muli %group, %size : i32
  %weights = greta_tile.ptr_add %b, %offset : !greta_tile.ptr<f16>, i32
  scf.for %row = %begin to %end step %c32 : i32 {
    %none = arith.constant dense<0.0> : tensor<32x32xf32>
    %c16 = arith.constant 16 : i32
    %sum = scf.for %at = %zero to %c48 step %c16 iter_args(%acc = %none) -> (tensor<32x32xf32>) : i32 {
      %left = greta_tile.load %a[%row, %at] strides [48, 1] bounds [0] (%end) : !greta_tile.ptr<f16> -> tensor<32x16xf16>
      %right = greta_tile.load %weights[%at, %column] strides [-9223372036854775808, 1] (%n) bounds [1] (%n) : !greta_tile.ptr<f16> -> tensor<16x32xf16>
      %next = greta_tile.dot %left, %right, %acc : tensor<32x16xf16>, tensor<16x32xf16> -> tensor<32x32xf32>
      scf.yield %next : tensor<32x32xf32>
    }
    %result = arith.truncf %sum : tensor<32x32xf32> to tensor<32x32xf16>
    greta_tile.store %result, %c[%row, %column] strides [-9223372036854775808, 1] (%n) bounds [0, 1] (%end, %n) : tensor<32x32xf16> -> !greta_tile.ptr<f16>
  }
  greta_tile.return
}

func.func @grouped_matmul(%a: tensor<?x48xf16>, %b: tensor<?x48x?xf16>, %first: tensor<?xi32>) -> tensor<?x?xf16> {
  %0 = greta_tile.launch @grouped_matmul_kernel grid affine_map<()[m, groups, n, ends] -> (n ceildiv 32, groups)> scalars affine_map<()[m, groups, n, ends] -> (n)>
       (%a, %b, %first) shapes [affine_map<()[m, groups, n, ends] -> (m, n)>] : (tensor<?x48xf16>, tensor<?x48x?xf16>, tensor<?xi32>) -> tensor<?x?xf16>
  return %0 : tensor<?x?xf16>
}
