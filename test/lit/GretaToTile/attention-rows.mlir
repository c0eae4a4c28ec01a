// Sequences with numbers of rows of their own: slots for the worst case, a search for the slot's sequence, tiles that begin where sequences do, and only workgroups with rows go on. A tile has all heads that read the same keys.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --cse %s | FileCheck %s

// CHECK: #[[GRID:.*]] = affine_map<()[s0, s1, s2, s3] -> ((s0 floordiv 64 + s2 + 1) * 2)>
// CHECK-LABEL: greta_tile.func @rows_0(
// CHECK-SAME: %[[Q:arg0]]: !greta_tile.ptr<f16>, {{.*}}, %[[LENGTHS:arg4]]: !greta_tile.ptr<i32>, %[[BEGINS:arg5]]: !greta_tile.ptr<i32>
// CHECK: %[[FOUND:.*]]:2 = scf.for {{.*}} -> (i32, i32)
// CHECK-COUNT-15: greta_tile.load_scattered %{{.*}} : !greta_tile.ptr<i32> -> i32
// CHECK: scf.yield
// CHECK: %[[SEQUENCE:.*]] = arith.minsi %[[FOUND]]#0, %[[COUNT:.*]] : i32
// CHECK: %[[ISONE:.*]] = arith.cmpi slt, %[[SEQUENCE]], %[[COUNT]] : i32
// CHECK: %[[BEGIN:.*]] = greta_tile.load_scattered
// CHECK: greta_tile.load_scattered
// CHECK: %[[NATURAL:.*]] = arith.maxsi %[[BEGIN]], %c0_i32
// CHECK: %[[FIRST:.*]] = arith.select %{{.*}}, %c0_i32, %[[NATURAL]] : i32
// CHECK: %[[ROWS:.*]] = arith.subi %{{.*}}, %[[FIRST]] : i32
// CHECK: scf.if
// CHECK: %[[WIDE:.*]] = arith.extsi %[[FIRST]] : i32 to i64
// CHECK: %[[MOVE:.*]] = arith.muli %[[WIDE]], %c512_i64 : i64
// CHECK: %[[ROW:.*]] = greta_tile.ptr_add %{{.*}}, %[[MOVE]]
// CHECK: greta_tile.load_scattered %{{.*}} mask %[[ISONE]] : !greta_tile.ptr<i32> -> i32
// CHECK: greta_tile.load %[[ROW]]{{.*}} strides [64, 512, 1] bounds [1](%[[ROWS]]) : <f16> -> tensor<4x64x64xf16>
// CHECK: greta_tile.store {{.*}} strides [64, 512, 1] bounds [1](%[[ROWS]]) : tensor<4x64x64xf16>
func.func @rows(%q: tensor<?x8x64xf16>, %k: tensor<?x16x2x64xf16>, %v: tensor<?x16x2x64xf16>, %t: tensor<?x?xi32>, %l: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?x8x64xf16> {
  %0 = greta.paged_attention %q, %k, %v, %t, %l begins(%b) : tensor<?x8x64xf16>, tensor<?x16x2x64xf16>, tensor<?x16x2x64xf16>, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x8x64xf16>
  return %0 : tensor<?x8x64xf16>
}

// -----

// The tile is that of many rows, however few a launch has; what their numbers are is asserted once.
// CHECK-LABEL: greta_tile.func @few_0(
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
// CHECK: scf.if %[[FIRST]]
// CHECK: greta_tile.assert %{{.*}}, "paged_attention: 'begins' do not ascend from 0, or are beyond the rows" : i1
// CHECK: greta_tile.load {{.*}} -> tensor<4x64x64xf16>
func.func @few(%q: tensor<2x8x64xf16>, %k: tensor<?x16x2x64xf16>, %t: tensor<2x?xi32>, %l: tensor<2xi32>, %b: tensor<3xi32>) -> tensor<2x8x64xf16> attributes {greta.checked} {
  %0 = greta.paged_attention %q, %k, %k, %t, %l begins(%b) : tensor<2x8x64xf16>, tensor<?x16x2x64xf16>, tensor<?x16x2x64xf16>, tensor<2x?xi32>, tensor<2xi32>, tensor<3xi32> -> tensor<2x8x64xf16>
  return %0 : tensor<2x8x64xf16>
}
