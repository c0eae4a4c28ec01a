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

// -----

// Rope with norms of heads, in a kernel of its own, stores the cache's rows, too: tokens are rows of its space.
// CHECK-LABEL: greta_tile.func @turned_1(
// CHECK: greta_tile.split
// CHECK: greta_tile.store_scattered {{.*}} mask
// CHECK-LABEL: func.func @turned(
// CHECK: greta_tile.launch @turned_0
// CHECK: %[[UPDATED:.*]] = greta_tile.launch @turned_1 {{.*}} tied [
// CHECK-NOT: greta_tile.launch
// CHECK: return %[[UPDATED]]
func.func @turned(%x: tensor<3x256xf16>, %w: tensor<128x256xf16>, %g: tensor<64xf32>, %cos: tensor<3x32xf32>, %sin: tensor<3x32xf32>, %cache: tensor<?x16x2x64xf16>, %slots: tensor<3xi32>) -> tensor<?x16x2x64xf16> {
  %0 = greta.matmul %x, %w {transpose_b} : tensor<3x256xf16>, tensor<128x256xf16> -> tensor<3x128xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [3, 2, 64] : tensor<3x128xf16> into tensor<3x2x64xf16>
  %2 = greta.rms_norm %1, %g {eps = 1.0e-5 : f32} : tensor<3x2x64xf16>, tensor<64xf32> -> tensor<3x2x64xf16>
  %3 = greta.rope %2, %cos, %sin {style = "neox"} : tensor<3x2x64xf16>, tensor<3x32xf32>, tensor<3x32xf32> -> tensor<3x2x64xf16>
  %4 = greta.paged_kv_update %cache, %3, %slots : tensor<?x16x2x64xf16>, tensor<3x2x64xf16>, tensor<3xi32> -> tensor<?x16x2x64xf16>
  return %4 : tensor<?x16x2x64xf16>
}

// -----

// Norms without rope count all tokens' heads through.
// CHECK-LABEL: func.func @normed(
// CHECK: greta_tile.launch @normed_0
// CHECK: greta_tile.launch @normed_1
// CHECK: greta_tile.launch @normed_2 {{.*}} tied [0]
func.func @normed(%x: tensor<3x256xf16>, %w: tensor<128x256xf16>, %g: tensor<64xf32>, %cache: tensor<?x16x2x64xf16>, %slots: tensor<3xi32>) -> tensor<?x16x2x64xf16> {
  %0 = greta.matmul %x, %w {transpose_b} : tensor<3x256xf16>, tensor<128x256xf16> -> tensor<3x128xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [3, 2, 64] : tensor<3x128xf16> into tensor<3x2x64xf16>
  %2 = greta.rms_norm %1, %g {eps = 1.0e-5 : f32} : tensor<3x2x64xf16>, tensor<64xf32> -> tensor<3x2x64xf16>
  %3 = greta.paged_kv_update %cache, %2, %slots : tensor<?x16x2x64xf16>, tensor<3x2x64xf16>, tensor<3xi32> -> tensor<?x16x2x64xf16>
  return %3 : tensor<?x16x2x64xf16>
}

// -----

// Views may make several rows of a cache of one of a GEMM or of rope: they are moved by a kernel of their own.
// CHECK-LABEL: func.func @viewed(
// CHECK: greta_tile.launch @viewed_0
// CHECK: greta_tile.launch @viewed_1 {{.*}} tied [0]
func.func @viewed(%x: tensor<6x256xf16>, %w: tensor<128x256xf16>, %cache: tensor<?x16x1x64xf16>, %slots: tensor<12xi32>) -> tensor<?x16x1x64xf16> {
  %0 = greta.matmul %x, %w {transpose_b} : tensor<6x256xf16>, tensor<128x256xf16> -> tensor<6x128xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [6, 2, 64] : tensor<6x128xf16> into tensor<6x2x64xf16>
  %2 = tensor.collapse_shape %1 [[0, 1], [2]] : tensor<6x2x64xf16> into tensor<12x64xf16>
  %3 = tensor.expand_shape %2 [[0, 1], [2]] output_shape [12, 1, 64] : tensor<12x64xf16> into tensor<12x1x64xf16>
  %4 = greta.paged_kv_update %cache, %3, %slots : tensor<?x16x1x64xf16>, tensor<12x1x64xf16>, tensor<12xi32> -> tensor<?x16x1x64xf16>
  return %4 : tensor<?x16x1x64xf16>
}

// CHECK-LABEL: func.func @turnedandviewed(
// CHECK: greta_tile.launch @turnedandviewed_0
// CHECK: greta_tile.launch @turnedandviewed_1 {{.*}} tied [0]
func.func @turnedandviewed(%x: tensor<6x2x64xf16>, %cos: tensor<6x32xf32>, %sin: tensor<6x32xf32>, %cache: tensor<?x16x1x64xf16>, %slots: tensor<12xi32>) -> tensor<?x16x1x64xf16> {
  %0 = greta.rope %x, %cos, %sin {style = "neox"} : tensor<6x2x64xf16>, tensor<6x32xf32>, tensor<6x32xf32> -> tensor<6x2x64xf16>
  %1 = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<6x2x64xf16> into tensor<12x64xf16>
  %2 = tensor.expand_shape %1 [[0, 1], [2]] output_shape [12, 1, 64] : tensor<12x64xf16> into tensor<12x1x64xf16>
  %3 = greta.paged_kv_update %cache, %2, %slots : tensor<?x16x1x64xf16>, tensor<12x1x64xf16>, tensor<12xi32> -> tensor<?x16x1x64xf16>
  return %3 : tensor<?x16x1x64xf16>
}
