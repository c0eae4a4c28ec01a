// A grouped GEMM becomes a GEMM with offsets, and fuses as that does.
// RUN: greta-opt --split-input-file --greta-fuse %s | FileCheck %s

// Gate and up of one A and the same offsets go through one loop, and what follows is their epilogue.
// CHECK-LABEL: func.func @experts
// CHECK-COUNT-1: greta.kernel
// CHECK: greta.matmul %[[A:.*]], %{{.*}}, %[[O:.*]] {transpose_b}
// CHECK: greta.matmul %[[A]], %{{.*}}, %[[O]] {transpose_b}
// CHECK: greta.swiglu
// CHECK-NOT: greta.kernel
func.func @experts(%a: tensor<?x64xf16>, %g: tensor<8x32x64xf16>, %u: tensor<8x32x64xf16>, %o: tensor<9xi32>) -> tensor<?x32xf16> {
  %0 = greta.grouped_matmul %a, %g, %o {transpose_b} : tensor<?x64xf16>, tensor<8x32x64xf16>, tensor<9xi32> -> tensor<?x32xf16>
  %1 = greta.grouped_matmul %a, %u, %o {transpose_b} : tensor<?x64xf16>, tensor<8x32x64xf16>, tensor<9xi32> -> tensor<?x32xf16>
  %2 = greta.swiglu %0, %1 : tensor<?x32xf16>, tensor<?x32xf16> -> tensor<?x32xf16>
  return %2 : tensor<?x32xf16>
}

// -----

// Halves of one GEMM's columns are GEMMs of halves of every matrix.
// CHECK-LABEL: func.func @halves
// CHECK: greta.kernel{{.*}}views = [
// CHECK: greta.matmul %{{.*}}, %{{.*}}, %{{.*}} {transpose_b} : tensor<?x64xf16>, tensor<8x32x64xf16>
// CHECK: greta.matmul %{{.*}}, %{{.*}}, %{{.*}} {transpose_b} : tensor<?x64xf16>, tensor<8x32x64xf16>
// CHECK: greta.swiglu
// CHECK-NOT: greta.kernel
func.func @halves(%a: tensor<?x64xf16>, %b: tensor<8x64x64xf16>, %o: tensor<9xi32>) -> tensor<?x32xf16> {
  %0 = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<?x64xf16>, tensor<8x64x64xf16>, tensor<9xi32> -> tensor<?x64xf16>
  %c0 = arith.constant 0 : index
  %t = tensor.dim %a, %c0 : tensor<?x64xf16>
  %1 = tensor.extract_slice %0[0, 0] [%t, 32] [1, 1] : tensor<?x64xf16> to tensor<?x32xf16>
  %2 = tensor.extract_slice %0[0, 32] [%t, 32] [1, 1] : tensor<?x64xf16> to tensor<?x32xf16>
  %3 = greta.swiglu %1, %2 : tensor<?x32xf16>, tensor<?x32xf16> -> tensor<?x32xf16>
  return %3 : tensor<?x32xf16>
}

// -----

// Packed weights are read as greta.dequant has them, group below group.
// CHECK-LABEL: func.func @packed
// CHECK-COUNT-1: greta.kernel
// CHECK: %[[W:.*]] = greta.dequant
// CHECK: greta.matmul %{{.*}}, %[[W]], %{{.*}} {transpose_b} : tensor<?x64xf16>, tensor<256x64xf16>, tensor<9xi32>
// CHECK-NOT: greta.kernel
func.func @packed(%a: tensor<?x64xf16>, %q: tensor<256x8xi32>, %s: tensor<256x2xf16>, %o: tensor<9xi32>) -> tensor<?x32xf16> {
  %w = greta.dequant %q, %s {group = 32} : tensor<256x8xi32>, tensor<256x2xf16> -> tensor<256x64xf16>
  %b = tensor.expand_shape %w [[0, 1], [2]] output_shape [8, 32, 64] : tensor<256x64xf16> into tensor<8x32x64xf16>
  %0 = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<?x64xf16>, tensor<8x32x64xf16>, tensor<9xi32> -> tensor<?x32xf16>
  return %0 : tensor<?x32xf16>
}

// -----

// Offsets that are computed come from a kernel before; GEMMs of other offsets are not side by side.
// CHECK-LABEL: func.func @offsets
// CHECK: greta.kernel
// CHECK: greta.matmul
// CHECK: greta.kernel
// CHECK: arith.addi
// CHECK: greta.kernel
// CHECK: greta.matmul
func.func @offsets(%a: tensor<?x64xf16>, %b: tensor<8x64x32xf16>, %o: tensor<9xi32>, %p: tensor<9xi32>) -> (tensor<?x32xf16>, tensor<?x32xf16>) {
  %1 = arith.addi %o, %p : tensor<9xi32>
  %2 = greta.grouped_matmul %a, %b, %1 : tensor<?x64xf16>, tensor<8x64x32xf16>, tensor<9xi32> -> tensor<?x32xf16>
  %3 = greta.grouped_matmul %a, %b, %o : tensor<?x64xf16>, tensor<8x64x32xf16>, tensor<9xi32> -> tensor<?x32xf16>
  return %2, %3 : tensor<?x32xf16>, tensor<?x32xf16>
}
