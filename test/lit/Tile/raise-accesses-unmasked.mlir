// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=vulkan:nvidia},greta-tile-raise-accesses{target=vulkan:nvidia},canonicalize,cse))' | FileCheck %s

// Loads have no masks here. Nothing is stored unless the rows begin below %m, so that the loop stands in a branch; the columns begin below %k by the loop's counter. A stride
// of unknown sign makes an access wide.
// CHECK-LABEL: @rows_of_stores(
// CHECK-SAME: %[[A:[^ ]*]]: !greta_tile.ptr<f16>, %{{[^ ]*}}: !greta_tile.ptr<f16>, %[[C:[^ ]*]]: !greta_tile.ptr<f32>, %[[M:[^ ]*]]: i32, %[[K:[^ ]*]]: i32, %[[S:[^ ]*]]: i32
// CHECK: %[[FIRST:.*]] = arith.muli
// CHECK: %[[SOME:.*]] = arith.cmpi slt, %[[FIRST]], %[[M]]
// CHECK: %[[SUM:.*]] = scf.if %[[SOME]]
// CHECK: scf.for
// CHECK: greta_tile.load %[[A]][%[[FIRST]], %{{.*}}] strides [-9223372036854775808, 1](%[[S]]) bounds [0, 1](%[[M]], %[[K]]) wide
// CHECK-NOT: greta_tile.load_scattered
// CHECK: greta_tile.dot
// CHECK: } else {
// CHECK-NEXT: scf.yield %cst
// CHECK: greta_tile.store %[[SUM]], %[[C]][%[[FIRST]], %c0_i32] strides [32, 1] bounds [0](%[[M]]) :
greta_tile.func @rows_of_stores(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %c: !greta_tile.ptr<f32>, %m: i32, %k: i32, %stride: i32) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %pid = greta_tile.program_id 0
  %first = arith.muli %pid, %c32 : i32
  %first_s = greta_tile.splat %first : tensor<32x1xi32>
  %i = greta_tile.iota 0 : tensor<32x1xi32>
  %row = arith.addi %first_s, %i : tensor<32x1xi32>
  %m_s = greta_tile.splat %m : tensor<32x1xi32>
  %inside = arith.cmpi slt, %row, %m_s : tensor<32x1xi32>
  %rows_inside = greta_tile.broadcast %inside : tensor<32x1xi1> -> tensor<32x32xi1>
  %stride_s = greta_tile.splat %stride : tensor<32x1xi32>
  %starts = arith.muli %row, %stride_s : tensor<32x1xi32>
  %starts_all = greta_tile.broadcast %starts : tensor<32x1xi32> -> tensor<32x32xi32>
  %j = greta_tile.iota 1 : tensor<32x32xi32>
  %down = greta_tile.iota 0 : tensor<32x32xi32>
  %wide = arith.constant dense<32> : tensor<32x32xi32>
  %sum = scf.for %at = %c0 to %k step %c32 iter_args(%total = %zero) -> (tensor<32x32xf32>) : i32 {
    %at_s = greta_tile.splat %at : tensor<32x32xi32>
    %column = arith.addi %at_s, %j : tensor<32x32xi32>
    %k_s = greta_tile.splat %k : tensor<32x32xi32>
    %columns_inside = arith.cmpi slt, %column, %k_s : tensor<32x32xi32>
    %mask = arith.andi %rows_inside, %columns_inside : tensor<32x32xi1>
    %place = arith.addi %starts_all, %column : tensor<32x32xi32>
    %p = greta_tile.ptr_add %a, %place : !greta_tile.ptr<f16>, tensor<32x32xi32>
    %x = greta_tile.load_scattered %p mask %mask : tensor<32x32x!greta_tile.ptr<f16>> -> tensor<32x32xf16>
    %depth = arith.addi %at_s, %down : tensor<32x32xi32>
    %lines = arith.muli %depth, %wide : tensor<32x32xi32>
    %line = arith.addi %lines, %j : tensor<32x32xi32>
    %q = greta_tile.ptr_add %b, %line : !greta_tile.ptr<f16>, tensor<32x32xi32>
    %y = greta_tile.load_scattered %q : tensor<32x32x!greta_tile.ptr<f16>> -> tensor<32x32xf16>
    %next = greta_tile.dot %x, %y, %total : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  %line_s = arith.constant dense<32> : tensor<32x1xi32>
  %c_lines = arith.muli %row, %line_s : tensor<32x1xi32>
  %c_all = greta_tile.broadcast %c_lines : tensor<32x1xi32> -> tensor<32x32xi32>
  %c_places = arith.addi %c_all, %j : tensor<32x32xi32>
  %r = greta_tile.ptr_add %c, %c_places : !greta_tile.ptr<f32>, tensor<32x32xi32>
  greta_tile.store_scattered %sum, %r mask %rows_inside : tensor<32x32xf32> -> tensor<32x32x!greta_tile.ptr<f32>>
  greta_tile.return
}

// All rows are stored, so that the loop has to run for those beyond %m, too: its loads of rows stay as they are.
// CHECK-LABEL: @all_rows(
// CHECK-NOT: scf.if
// CHECK: greta_tile.load_scattered {{.*}} mask
// CHECK: greta_tile.load %{{.*}} strides [32, 1] bounds []
// CHECK: greta_tile.store %{{.*}} strides [32, 1] bounds [] :
greta_tile.func @all_rows(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %c: !greta_tile.ptr<f32>, %m: i32, %k: i32, %stride: i32) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %pid = greta_tile.program_id 0
  %first = arith.muli %pid, %c32 : i32
  %first_s = greta_tile.splat %first : tensor<32x1xi32>
  %i = greta_tile.iota 0 : tensor<32x1xi32>
  %row = arith.addi %first_s, %i : tensor<32x1xi32>
  %m_s = greta_tile.splat %m : tensor<32x1xi32>
  %inside = arith.cmpi slt, %row, %m_s : tensor<32x1xi32>
  %rows_inside = greta_tile.broadcast %inside : tensor<32x1xi1> -> tensor<32x32xi1>
  %stride_s = greta_tile.splat %stride : tensor<32x1xi32>
  %starts = arith.muli %row, %stride_s : tensor<32x1xi32>
  %starts_all = greta_tile.broadcast %starts : tensor<32x1xi32> -> tensor<32x32xi32>
  %j = greta_tile.iota 1 : tensor<32x32xi32>
  %down = greta_tile.iota 0 : tensor<32x32xi32>
  %wide = arith.constant dense<32> : tensor<32x32xi32>
  %sum = scf.for %at = %c0 to %k step %c32 iter_args(%total = %zero) -> (tensor<32x32xf32>) : i32 {
    %at_s = greta_tile.splat %at : tensor<32x32xi32>
    %column = arith.addi %at_s, %j : tensor<32x32xi32>
    %k_s = greta_tile.splat %k : tensor<32x32xi32>
    %columns_inside = arith.cmpi slt, %column, %k_s : tensor<32x32xi32>
    %mask = arith.andi %rows_inside, %columns_inside : tensor<32x32xi1>
    %place = arith.addi %starts_all, %column : tensor<32x32xi32>
    %p = greta_tile.ptr_add %a, %place : !greta_tile.ptr<f16>, tensor<32x32xi32>
    %x = greta_tile.load_scattered %p mask %mask : tensor<32x32x!greta_tile.ptr<f16>> -> tensor<32x32xf16>
    %depth = arith.addi %at_s, %down : tensor<32x32xi32>
    %lines = arith.muli %depth, %wide : tensor<32x32xi32>
    %line = arith.addi %lines, %j : tensor<32x32xi32>
    %q = greta_tile.ptr_add %b, %line : !greta_tile.ptr<f16>, tensor<32x32xi32>
    %y = greta_tile.load_scattered %q : tensor<32x32x!greta_tile.ptr<f16>> -> tensor<32x32xf16>
    %next = greta_tile.dot %x, %y, %total : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  %line_s = arith.constant dense<32> : tensor<32x1xi32>
  %c_lines = arith.muli %row, %line_s : tensor<32x1xi32>
  %c_all = greta_tile.broadcast %c_lines : tensor<32x1xi32> -> tensor<32x32xi32>
  %c_places = arith.addi %c_all, %j : tensor<32x32xi32>
  %r = greta_tile.ptr_add %c, %c_places : !greta_tile.ptr<f32>, tensor<32x32xi32>
  greta_tile.store_scattered %sum, %r : tensor<32x32xf32> -> tensor<32x32x!greta_tile.ptr<f32>>
  greta_tile.return
}
