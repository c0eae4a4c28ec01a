// A workgroup of a grouped GEMM finds its rows in the offsets.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --canonicalize --cse %s | FileCheck %s

// Slots for the worst case. The last group whose slots begin before this one; its first row is at least 0, its end at most T, and the pointer of B moves to its matrix.
// CHECK-DAG: #[[SLOTS:.*]] = affine_map<()[s0] -> (s0 floordiv {{[0-9]+}} + 9)>
// CHECK-LABEL: greta_tile.func @tiles_0(%arg0: !greta_tile.ptr<f16>, %arg1: !greta_tile.ptr<f16>, %arg2: !greta_tile.ptr<i32>
// CHECK-COUNT-8: greta_tile.load_scattered
// CHECK: %[[GROUP:.*]] = arith.select %{{.*}}, %c8_i32
// CHECK: %[[HAS:.*]] = arith.cmpi sle, %[[GROUP]], %c7_i32
// CHECK: %[[MATRIX:.*]] = arith.minui %[[GROUP]], %c7_i32
// CHECK: %[[READ:.*]] = greta_tile.load_scattered
// CHECK: %[[LEAST:.*]] = arith.minsi %[[READ]], %[[T:.*]] : i32
// CHECK: %[[END:.*]] = arith.select %[[HAS]], %[[LEAST]], %[[T]]
// CHECK: arith.maxsi %{{.*}}, %c0_i32
// CHECK: %[[NATURAL:.*]] = arith.cmpi sge, %[[ROW:.*]], %c0_i32
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[ROW]], %[[END]]
// CHECK: %[[INSIDE:.*]] = arith.andi %[[NATURAL]], %[[BELOW]]
// CHECK: scf.if %[[INSIDE]]
// CHECK: arith.extsi %[[MATRIX]]
// CHECK: %[[B:.*]] = greta_tile.ptr_add %arg1
// CHECK: scf.if %[[HAS]]
// CHECK: scf.for
// CHECK: greta_tile.load %arg0[%[[ROW]], %{{.*}}] strides [256, 1] bounds [0](%[[END]]) clamp [0]
// CHECK: greta_tile.load %[[B]]
// CHECK: greta_tile.dot
// CHECK: greta_tile.store {{.*}} bounds [0](%[[END]])
// CHECK: greta_tile.launch @tiles_0 grid #[[SLOTS]]
func.func @tiles(%a: tensor<?x256xf16>, %b: tensor<8x128x256xf16>, %o: tensor<9xi32>) -> tensor<?x128xf16> {
  %0 = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<?x256xf16>, tensor<8x128x256xf16>, tensor<9xi32> -> tensor<?x128xf16>
  return %0 : tensor<?x128xf16>
}

// -----

// One row for most groups: a slot is a row, without bounds.
// CHECK-LABEL: greta_tile.func @rows_0
// CHECK-NOT: bounds [{{[0-9]}}
// CHECK: greta_tile.contract
// CHECK-NOT: bounds [{{[0-9]}}
// CHECK: greta_tile.launch
func.func @rows(%a: tensor<8x2048xf16>, %b: tensor<128x768x2048xf16>, %o: tensor<129xi32>) -> tensor<8x768xf16> {
  %0 = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<8x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<8x768xf16>
  return %0 : tensor<8x768xf16>
}
