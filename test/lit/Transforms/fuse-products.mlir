// What goes into a product's kernel behind it, and the one loop of two products.
// RUN: greta-opt --split-input-file --greta-fuse %s | FileCheck %s
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --greta-to-tile %s | FileCheck %s --check-prefix=TILE

// Two products of one A: A is loaded once for both.
// CHECK-LABEL: func.func @pair
// CHECK: greta.kernel(%arg0, %arg1, %arg2)
// CHECK: greta.matmul
// CHECK: greta.matmul
// CHECK: greta.swiglu
// CHECK-NOT: greta.kernel
// TILE-LABEL: greta_tile.func @pair_0
// TILE: scf.for {{.*}} iter_args(%[[SUM0:.*]] = %{{.*}}, %[[SUM1:.*]] = %{{.*}})
// TILE: %[[A:.*]] = greta_tile.load %arg0
// TILE: %[[G:.*]] = greta_tile.load %arg1
// TILE: %[[NEXT0:.*]] = greta_tile.dot %[[A]], %[[G]], %[[SUM0]]
// TILE: %[[U:.*]] = greta_tile.load %arg2
// TILE: %[[NEXT1:.*]] = greta_tile.dot %[[A]], %[[U]], %[[SUM1]]
// TILE: scf.yield %[[NEXT0]], %[[NEXT1]]
func.func @pair(%x: tensor<?x64xf16>, %g: tensor<128x64xf16>, %u: tensor<128x64xf16>) -> tensor<?x128xf16> {
  %0 = greta.matmul %x, %g {transpose_b} : tensor<?x64xf16>, tensor<128x64xf16> -> tensor<?x128xf16>
  %1 = greta.matmul %x, %u {transpose_b} : tensor<?x64xf16>, tensor<128x64xf16> -> tensor<?x128xf16>
  %2 = greta.swiglu %0, %1 : tensor<?x128xf16>, tensor<?x128xf16> -> tensor<?x128xf16>
  return %2 : tensor<?x128xf16>
}

// -----

// With few rows too, also of packed weights.
// CHECK-LABEL: func.func @packed
// CHECK: greta.kernel
// CHECK-COUNT-2: greta.dequant
// CHECK-COUNT-2: greta.matmul
// CHECK-NOT: greta.kernel
// TILE-LABEL: greta_tile.func @packed_0
// TILE: greta_tile.contract_packed %[[A:[^,]*]],
// TILE-NEXT: greta_tile.contract_packed %[[A]],
func.func @packed(%x: tensor<2x64xf16>, %q: tensor<32x8xi32>, %s: tensor<32x2xf16>, %z: tensor<32x1xi32>,
                  %r: tensor<32x8xi32>, %t: tensor<32x2xf16>, %y: tensor<32x1xi32>) -> tensor<2x32xf16> {
  %g = greta.dequant %q, %s, %z {group = 32} : tensor<32x8xi32>, tensor<32x2xf16>, tensor<32x1xi32> -> tensor<32x64xf16>
  %u = greta.dequant %r, %t, %y {group = 32} : tensor<32x8xi32>, tensor<32x2xf16>, tensor<32x1xi32> -> tensor<32x64xf16>
  %0 = greta.matmul %x, %g {transpose_b} : tensor<2x64xf16>, tensor<32x64xf16> -> tensor<2x32xf16>
  %1 = greta.matmul %x, %u {transpose_b} : tensor<2x64xf16>, tensor<32x64xf16> -> tensor<2x32xf16>
  %2 = greta.swiglu %0, %1 : tensor<2x32xf16>, tensor<2x32xf16> -> tensor<2x32xf16>
  return %2 : tensor<2x32xf16>
}

// -----

// Two at most, of the same A and alike.
// CHECK-LABEL: func.func @three
// CHECK-COUNT-2: greta.kernel
// CHECK-NOT: greta.kernel
// CHECK-LABEL: func.func @other
// CHECK-COUNT-2: greta.kernel
// CHECK-NOT: greta.kernel
// CHECK-LABEL: func.func @differ
// CHECK-COUNT-2: greta.kernel
// CHECK-NOT: greta.kernel
func.func @three(%x: tensor<32x32xf16>, %b: tensor<32x32xf16>, %c: tensor<32x32xf16>, %d: tensor<32x32xf16>) -> tensor<32x32xf16> {
  %0 = greta.matmul %x, %b : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf16>
  %1 = greta.matmul %x, %c : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf16>
  %2 = greta.matmul %x, %d : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf16>
  %3 = arith.addf %0, %1 : tensor<32x32xf16>
  %4 = arith.addf %3, %2 : tensor<32x32xf16>
  return %4 : tensor<32x32xf16>
}
func.func @other(%x: tensor<32x32xf16>, %y: tensor<32x32xf16>, %b: tensor<32x32xf16>) -> tensor<32x32xf16> {
  %0 = greta.matmul %x, %b : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf16>
  %1 = greta.matmul %y, %b : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf16>
  %2 = arith.addf %0, %1 : tensor<32x32xf16>
  return %2 : tensor<32x32xf16>
}
func.func @differ(%x: tensor<32x32xf16>, %b: tensor<32x32xf16>) -> tensor<32x32xf16> {
  %0 = greta.matmul %x, %b : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf16>
  %1 = greta.matmul %x, %b {transpose_b} : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf16>
  %2 = arith.addf %0, %1 : tensor<32x32xf16>
  return %2 : tensor<32x32xf16>
}
