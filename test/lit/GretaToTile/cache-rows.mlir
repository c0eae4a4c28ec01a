// New rows of a paged cache that a GEMM computes, or rope of them: its kernel stores each row at its slot, and the caches are written in place.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --cse %s | FileCheck %s

// CHECK-LABEL: greta_tile.func @rows_0(
// CHECK-SAME: %[[CACHE:[a-z0-9]+]]: !greta_tile.ptr<f16>, %[[SLOTS:[a-z0-9]+]]: !greta_tile.ptr<i32>,
// CHECK: greta_tile.dot
// CHECK: %[[PLACES:.*]] = greta_tile.ptr_add %[[SLOTS]], %[[ROW:.*]] : {{.*}}, tensor<[[ROWS:.*]]x1xi32>
// CHECK: %[[SLOT:.*]] = greta_tile.load_scattered %[[PLACES]] mask %[[ISROW:.*]] : {{.*}} -> tensor<[[ROWS]]x1xi32>
// CHECK: %[[ISSLOT:.*]] = arith.cmpi ult, %[[SLOT]],
// CHECK: arith.andi %[[ISROW]], %[[ISSLOT]]
// CHECK: greta_tile.ptr_add %[[CACHE]],
// CHECK: greta_tile.store_scattered {{.*}} mask
// CHECK: %[[UPDATED:.*]] = greta_tile.launch @rows_0 {{.*}}(%arg0, %arg1, %arg2, %arg3) tied [2]
// CHECK-NOT: greta_tile.launch
// CHECK: return %[[UPDATED]]
func.func @rows(%x: tensor<?x256xf16>, %w: tensor<128x256xf16>, %cache: tensor<?x16x2x64xf16>, %slots: tensor<?xi32>) -> tensor<?x16x2x64xf16> {
  %0 = greta.matmul %x, %w {transpose_b} : tensor<?x256xf16>, tensor<128x256xf16> -> tensor<?x128xf16>
  %zero = arith.constant 0 : index
  %t = tensor.dim %x, %zero : tensor<?x256xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [%t, 2, 64] : tensor<?x128xf16> into tensor<?x2x64xf16>
  %2 = greta.paged_kv_update %cache, %1, %slots : tensor<?x16x2x64xf16>, tensor<?x2x64xf16>, tensor<?xi32> -> tensor<?x16x2x64xf16>
  return %2 : tensor<?x16x2x64xf16>
}

// -----

// Rows that somebody else wants too are moved by a kernel of their own.
// CHECK-LABEL: func.func @wanted
// CHECK: greta_tile.launch @wanted_0
// CHECK: greta_tile.launch @wanted_1 {{.*}} tied [0]
func.func @wanted(%x: tensor<?x256xf16>, %w: tensor<128x256xf16>, %cache: tensor<?x16x2x64xf16>, %slots: tensor<?xi32>) -> (tensor<?x128xf16>, tensor<?x16x2x64xf16>) {
  %0 = greta.matmul %x, %w {transpose_b} : tensor<?x256xf16>, tensor<128x256xf16> -> tensor<?x128xf16>
  %zero = arith.constant 0 : index
  %t = tensor.dim %x, %zero : tensor<?x256xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [%t, 2, 64] : tensor<?x128xf16> into tensor<?x2x64xf16>
  %2 = greta.paged_kv_update %cache, %1, %slots : tensor<?x16x2x64xf16>, tensor<?x2x64xf16>, tensor<?xi32> -> tensor<?x16x2x64xf16>
  return %0, %2 : tensor<?x128xf16>, tensor<?x16x2x64xf16>
}
