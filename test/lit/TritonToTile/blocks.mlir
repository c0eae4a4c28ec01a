// RUN: greta-opt --triton-to-tile %s | FileCheck %s

// Blocks are made and moved by the op of the same meaning.

// CHECK-LABEL: greta_tile.func @blocks_0(
// CHECK: %[[V0:[a-z0-9_]+]] = greta_tile.program_id 1
// CHECK: %[[V1:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<32xi32>
// CHECK: %[[V2:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<32xi32>
// CHECK: %[[V3:[a-z0-9_]+]] = arith.constant dense<32> : tensor<32xi32>
// CHECK: %[[V4:[a-z0-9_]+]] = arith.addi %[[V2]], %[[V3]] : tensor<32xi32>
// CHECK: %[[V5:[a-z0-9_]+]] = greta_tile.splat %[[V6:[a-z0-9_]+]] : tensor<4x8xf32>
// CHECK: %[[V7:[a-z0-9_]+]] = greta_tile.reshape %[[V1]] : tensor<32xi32> -> tensor<32x1xi32>
// CHECK: %[[V8:[a-z0-9_]+]] = greta_tile.broadcast %[[V7]] : tensor<32x1xi32> -> tensor<32x4xi32>
// CHECK: %[[V9:[a-z0-9_]+]] = greta_tile.reshape %[[V8]] : tensor<32x4xi32> -> tensor<4x32xi32>
// CHECK: %[[V10:[a-z0-9_]+]] = greta_tile.trans %[[V5]] [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
// CHECK: %[[V11:[a-z0-9_]+]] = greta_tile.join %[[V1]], %[[V4]] : tensor<32xi32> -> tensor<32x2xi32>
// CHECK: %[[V12:[a-z0-9_]+]], %[[V13:[a-z0-9_]+]] = greta_tile.split %[[V11]] : tensor<32x2xi32> -> tensor<32xi32>
// CHECK: %[[V14:[a-z0-9_]+]] = greta_tile.cat %[[V12]], %[[V13]] axis 0 : tensor<32xi32> -> tensor<64xi32>
// CHECK: %[[V15:[a-z0-9_]+]] = arith.extsi %[[V1]] : tensor<32xi32> to tensor<32xi64>
// CHECK: %[[V16:[a-z0-9_]+]] = arith.trunci %[[V15]] : tensor<32xi64> to tensor<32xi32>
// CHECK: %[[V17:[a-z0-9_]+]] = greta_tile.gather %[[V4]][%[[V16]]] axis 0 : tensor<32xi32>[tensor<32xi32>] -> tensor<32xi32>
// CHECK: %[[V18:[a-z0-9_]+]] = arith.cmpi slt, %[[V1]], %[[V4]] : tensor<32xi32>
// CHECK: %[[V19:[a-z0-9_]+]] = greta_tile.histogram %[[V17]] mask %[[V18]] : tensor<32xi32>, tensor<32xi1> -> tensor<16xi32>
// CHECK: %[[V20:[a-z0-9_]+]] = greta_tile.reshape %[[V5]] : tensor<4x8xf32> -> tensor<32xf32>
// CHECK: %[[V21:[a-z0-9_]+]] = greta_tile.splat %[[V22:[a-z0-9_]+]] : tensor<32x!greta_tile.ptr<f32>>
// CHECK: %[[V23:[a-z0-9_]+]] = greta_tile.ptr_add %[[V21]], %[[V1]] : tensor<32x!greta_tile.ptr<f32>>, tensor<32xi32>
// CHECK: greta_tile.store_scattered %[[V20]], %[[V23]] : tensor<32xf32> -> tensor<32x!greta_tile.ptr<f32>>
// CHECK: greta_tile.return
tt.func public @blocks(%p: !tt.ptr<f32>, %n: i32, %x: f32) {
  %pid = tt.get_program_id y : i32
  %0 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %1 = tt.make_range {end = 64 : i32, start = 32 : i32} : tensor<32xi32>
  %2 = tt.splat %x : f32 -> tensor<4x8xf32>
  %3 = tt.expand_dims %0 {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %4 = tt.broadcast %3 : tensor<32x1xi32> -> tensor<32x4xi32>
  %5 = tt.reshape %4 allow_reorder : tensor<32x4xi32> -> tensor<4x32xi32>
  %6 = tt.trans %2 {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  %7 = tt.join %0, %1 : tensor<32xi32> -> tensor<32x2xi32>
  %8, %9 = tt.split %7 : tensor<32x2xi32> -> tensor<32xi32>
  %10 = tt.cat %8, %9 : tensor<32xi32> -> tensor<64xi32>
  %11 = arith.extsi %0 : tensor<32xi32> to tensor<32xi64>
  %12 = tt.gather %1[%11] {axis = 0 : i32} : (tensor<32xi32>, tensor<32xi64>) -> tensor<32xi32>
  %m = arith.cmpi slt, %0, %1 : tensor<32xi32>
  %13 = tt.histogram %12, %m : tensor<32xi32> -> tensor<16xi32>
  %14 = tt.reshape %2 : tensor<4x8xf32> -> tensor<32xf32>
  %15 = tt.splat %p : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %16 = tt.addptr %15, %0 : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  tt.store %16, %14 : tensor<32x!tt.ptr<f32>>
  tt.return
}

// Combiners take copies of the constants around them.
// CHECK-LABEL: greta_tile.func @combine_0(
// CHECK: %[[V0:[a-z0-9_]+]] = arith.constant 2.000000e+00 : f32
// CHECK: %[[V1:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<16xi32>
// CHECK: %[[V2:[a-z0-9_]+]] = greta_tile.splat %[[V3:[a-z0-9_]+]] : tensor<16x!greta_tile.ptr<f32>>
// CHECK: %[[V4:[a-z0-9_]+]] = greta_tile.ptr_add %[[V2]], %[[V1]] : tensor<16x!greta_tile.ptr<f32>>, tensor<16xi32>
// CHECK: %[[V5:[a-z0-9_]+]] = greta_tile.load_scattered %[[V4]] : tensor<16x!greta_tile.ptr<f32>> -> tensor<16xf32>
// CHECK: %[[V6:[a-z0-9_]+]] = greta_tile.reduce {arith.addf} %[[V5]] axis 0 : tensor<16xf32> -> f32
// CHECK: %[[V7:[a-z0-9_]+]]:2 = greta_tile.reduce %[[V5]], %[[V1]] axis 0 : tensor<16xf32>, tensor<16xi32> -> (f32, i32) {
// CHECK: ^bb0(%[[V8:[a-z0-9_]+]]: f32, %[[V9:[a-z0-9_]+]]: i32, %[[V10:[a-z0-9_]+]]: f32, %[[V11:[a-z0-9_]+]]: i32):
// CHECK: %[[V12:[a-z0-9_]+]] = arith.constant 2.000000e+00 : f32
// CHECK: %[[V13:[a-z0-9_]+]] = arith.mulf %[[V8]], %[[V12]] : f32
// CHECK: %[[V14:[a-z0-9_]+]] = arith.cmpf ogt, %[[V13]], %[[V10]] : f32
// CHECK: %[[V15:[a-z0-9_]+]] = arith.select %[[V14]], %[[V8]], %[[V10]] : f32
// CHECK: %[[V16:[a-z0-9_]+]] = arith.select %[[V14]], %[[V9]], %[[V11]] : i32
// CHECK: greta_tile.yield %[[V15]], %[[V16]] : f32, i32
// CHECK: %[[V17:[a-z0-9_]+]] = greta_tile.scan {arith.addf} %[[V5]] axis 0 reverse : tensor<16xf32>
// CHECK: %[[V18:[a-z0-9_]+]] = greta_tile.splat %[[V6]] : tensor<1xf32>
// CHECK: %[[V19:[a-z0-9_]+]] = greta_tile.reduce %[[V18]] axis 0 : tensor<1xf32> -> f32 {
// CHECK: ^bb0(%[[V8]]: f32, %[[V9]]: f32):
// CHECK: greta_tile.yield %[[V8]] : f32
// CHECK: %[[V20:[a-z0-9_]+]] = arith.cmpf olt, %[[V5]], %[[V17]] : tensor<16xf32>
// CHECK: %[[V21:[a-z0-9_]+]] = greta_tile.splat %[[V0]] : tensor<16xf32>
// CHECK: %[[V22:[a-z0-9_]+]] = arith.mulf %[[V5]], %[[V21]] : tensor<16xf32>
// CHECK: %[[V23:[a-z0-9_]+]] = arith.select %[[V20]], %[[V22]], %[[V17]] : tensor<16xi1>, tensor<16xf32>
// CHECK: %[[V24:[a-z0-9_]+]] = greta_tile.splat %[[V0]] : tensor<16xf32>
// CHECK: greta_tile.store_scattered %[[V23]], %[[V4]] : tensor<16xf32> -> tensor<16x!greta_tile.ptr<f32>>
// CHECK: greta_tile.store_scattered %[[V19]], %[[V3]] : f32 -> !greta_tile.ptr<f32>
// CHECK: greta_tile.return
tt.func public @combine(%p: !tt.ptr<f32>) {
  %two = arith.constant 2.0 : f32
  %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %q = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %at = tt.addptr %q, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %x = tt.load %at : tensor<16x!tt.ptr<f32>>
  %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<16xf32>) -> f32
  %best:2 = "tt.reduce"(%x, %i) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %ia: i32, %b: f32, %ib: i32):
    %t = arith.mulf %a, %two : f32
    %c = arith.cmpf ogt, %t, %b : f32
    %v = arith.select %c, %a, %b : f32
    %k = arith.select %c, %ia, %ib : i32
    tt.reduce.return %v, %k : f32, i32
  }) : (tensor<16xf32>, tensor<16xi32>) -> (f32, i32)
  %scan = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.scan.return %s : f32
  }) : (tensor<16xf32>) -> tensor<16xf32>
  %one = tt.splat %sum : f32 -> tensor<1xf32>
  %u = tt.unsplat %one : tensor<1xf32>
  %mapped:2 = "tt.map_elementwise"(%x, %scan) <{pack = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf olt, %a, %b : f32
    %r = scf.if %c -> (f32) {
      %d = arith.mulf %a, %two : f32
      scf.yield %d : f32
    } else {
      scf.yield %b : f32
    }
    tt.map_elementwise.return %r, %two : f32, f32
  }) : (tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
  tt.store %at, %mapped#0 : tensor<16x!tt.ptr<f32>>
  tt.store %p, %u : !tt.ptr<f32>
  tt.return
}
