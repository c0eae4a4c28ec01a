// Reductions of rows by combinations without a neutral element that is known: what says that an element is there, and where nothing has to.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --cse %s | FileCheck %s

// Blocks are as long as rows: the region is all there is. The inits are combined with the rows' numbers behind it.
// CHECK-LABEL: greta_tile.func @whole_0
// CHECK: %[[R:.*]]:2 = greta_tile.reduce %{{.*}}, %{{.*}} axis 1 : tensor<64x64xf32>, tensor<64x64xi32> -> (tensor<64xf32>, tensor<64xi32>) {
// CHECK-NEXT: ^bb0(%[[B:.*]]: f32, %[[J:.*]]: i32, %[[A:.*]]: f32, %[[I:.*]]: i32):
// CHECK-NEXT: %[[LESS:.*]] = arith.cmpi slt, %[[I]], %[[J]] : i32
// CHECK-NEXT: %[[V:.*]] = arith.select %[[LESS]], %[[A]], %[[B]] : f32
// CHECK-NEXT: %[[L:.*]] = arith.minsi %[[I]], %[[J]] : i32
// CHECK-NEXT: greta_tile.yield %[[V]], %[[L]] : f32, i32
// CHECK: %[[VALUE:.*]] = greta_tile.reshape %[[R]]#0
// CHECK: %[[KEY:.*]] = greta_tile.reshape %[[R]]#1
// CHECK: %[[G:.*]] = greta_tile.load %arg2
// CHECK: %[[IS:.*]] = arith.cmpi slt, %[[KEY]], %[[G]]
// CHECK: %[[F:.*]] = greta_tile.load %arg3
// CHECK: arith.select %[[IS]], %[[VALUE]], %[[F]] : tensor<64x1xi1>, tensor<64x1xf32>
// CHECK: arith.minsi %[[KEY]], %[[G]] : tensor<64x1xi32>
func.func @whole(%x: tensor<?x64xf32>, %k: tensor<?x64xi32>, %f: tensor<?xf32>, %g: tensor<?xi32>) -> (tensor<?xf32>, tensor<?xi32>) {
  %0:2 = linalg.reduce ins(%x, %k : tensor<?x64xf32>, tensor<?x64xi32>) outs(%f, %g : tensor<?xf32>, tensor<?xi32>) dimensions = [1]
    (%a: f32, %i: i32, %b: f32, %j: i32) {
      %less = arith.cmpi slt, %i, %j : i32
      %v = arith.select %less, %a, %b : f32
      %l = arith.minsi %i, %j : i32
      linalg.yield %v, %l : f32, i32
    }
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32>
}

// -----

// Blocks are longer than rows. An element that is not there leaves the other as it is.
// CHECK-LABEL: greta_tile.func @padded_0
// CHECK: %[[COLUMN:.*]] = greta_tile.iota 1 : tensor<1x112xi32>
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[COLUMN]]
// CHECK: %[[MASK:.*]] = greta_tile.broadcast %[[INSIDE]]
// CHECK: %[[THERE:.*]] = arith.select %[[MASK]], %{{.*}}, %{{.*}} : tensor<64x112xi1>, tensor<64x112xi1>
// CHECK: greta_tile.reduce %{{.*}}, %{{.*}}, %[[THERE]] axis 1 : {{.*}} -> (tensor<64xf32>, tensor<64xi32>, tensor<64xi1>) {
// CHECK-NEXT: ^bb0(%[[B:.*]]: f32, %[[J:.*]]: i32, %[[ISB:.*]]: i1, %[[A:.*]]: f32, %[[I:.*]]: i32, %[[ISA:.*]]: i1):
// CHECK: %[[V:.*]] = arith.select %{{.*}}, %[[A]], %[[B]] : f32
// CHECK: %[[L:.*]] = arith.minsi %[[I]], %[[J]] : i32
// CHECK: %[[ORA:.*]] = arith.select %[[ISB]], %[[V]], %[[A]] : f32
// CHECK: %[[ORB:.*]] = arith.select %[[ISA]], %[[ORA]], %[[B]] : f32
// CHECK: %[[ORI:.*]] = arith.select %[[ISB]], %[[L]], %[[I]] : i32
// CHECK: %[[ORJ:.*]] = arith.select %[[ISA]], %[[ORI]], %[[J]] : i32
// CHECK: %[[IS:.*]] = arith.ori %[[ISB]], %[[ISA]] : i1
// CHECK: greta_tile.yield %[[ORB]], %[[ORJ]], %[[IS]] : f32, i32, i1
func.func @padded(%x: tensor<?x100xf32>, %k: tensor<?x100xi32>, %f: tensor<?xf32>, %g: tensor<?xi32>) -> (tensor<?xf32>, tensor<?xi32>) {
  %0:2 = linalg.reduce ins(%x, %k : tensor<?x100xf32>, tensor<?x100xi32>) outs(%f, %g : tensor<?xf32>, tensor<?xi32>) dimensions = [1]
    (%a: f32, %i: i32, %b: f32, %j: i32) {
      %less = arith.cmpi slt, %i, %j : i32
      %v = arith.select %less, %a, %b : f32
      %l = arith.minsi %i, %j : i32
      linalg.yield %v, %l : f32, i32
    }
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32>
}

// -----

// In pieces: the accumulators are of no element at first, each element of a block is there.
// CHECK-LABEL: greta_tile.func @looped_0
// CHECK: %[[NONE:.*]] = arith.constant dense<false> : tensor<1x16384xi1>
// CHECK: %[[LOOP:.*]]:3 = scf.for {{.*}} iter_args(%[[B:.*]] = %{{.*}}, %[[J:.*]] = %{{.*}}, %[[ISB:.*]] = %[[NONE]])
// CHECK: %[[ALL:.*]] = arith.constant dense<true> : tensor<1x16384xi1>
// CHECK: %[[L:.*]] = arith.minsi %{{.*}}, %[[J]] : tensor<1x16384xi32>
// CHECK: arith.select %[[ISB]], %[[L]]
// CHECK: arith.ori %[[ISB]], %[[ALL]]
// CHECK: scf.yield
// CHECK: greta_tile.reduce %[[LOOP]]#0, %[[LOOP]]#1, %[[LOOP]]#2 axis 1
func.func @looped(%x: tensor<?x65536xf32>, %k: tensor<?x65536xi32>, %f: tensor<?xf32>, %g: tensor<?xi32>) -> (tensor<?xf32>, tensor<?xi32>) {
  %0:2 = linalg.reduce ins(%x, %k : tensor<?x65536xf32>, tensor<?x65536xi32>) outs(%f, %g : tensor<?xf32>, tensor<?xi32>) dimensions = [1]
    (%a: f32, %i: i32, %b: f32, %j: i32) {
      %less = arith.cmpi slt, %i, %j : i32
      %v = arith.select %less, %a, %b : f32
      %l = arith.minsi %i, %j : i32
      linalg.yield %v, %l : f32, i32
    }
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32>
}

// -----

// Each of two numbers has a neutral element, which is zero of one, as loads have it beyond the row's end.
// CHECK-LABEL: greta_tile.func @apart_0
// CHECK: %[[X:.*]] = greta_tile.load %arg0{{.*}} other %{{.*}} : f32
// CHECK: %[[K:.*]] = greta_tile.load %arg1
// CHECK: %[[MOST:.*]] = arith.constant dense<2147483647> : tensor<64x112xi32>
// CHECK: %[[KEYS:.*]] = arith.select %{{.*}}, %[[K]], %[[MOST]] : tensor<64x112xi1>, tensor<64x112xi32>
// CHECK: greta_tile.reduce %[[X]], %[[KEYS]] axis 1 : tensor<64x112xf32>, tensor<64x112xi32> -> (tensor<64xf32>, tensor<64xi32>)
func.func @apart(%x: tensor<?x100xf32>, %k: tensor<?x100xi32>, %f: tensor<?xf32>, %g: tensor<?xi32>) -> (tensor<?xf32>, tensor<?xi32>) {
  %0:2 = linalg.reduce ins(%x, %k : tensor<?x100xf32>, tensor<?x100xi32>) outs(%f, %g : tensor<?xf32>, tensor<?xi32>) dimensions = [1]
    (%a: f32, %i: i32, %b: f32, %j: i32) {
      %v = arith.addf %a, %b : f32
      %l = arith.minsi %i, %j : i32
      linalg.yield %v, %l : f32, i32
    }
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32>
}
