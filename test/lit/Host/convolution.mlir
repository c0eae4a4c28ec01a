// A convolution is one loop nest that reads the image at computed places, zero outside, then bias and rounding.
// RUN: greta-opt %s --greta-decompose --canonicalize --cse | FileCheck %s --implicit-check-not="= greta."

// CHECK-LABEL: func.func @conv(
// CHECK: linalg.fill
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]
// CHECK: arith.cmpi ult
// CHECK: tensor.extract
// CHECK: arith.select
// CHECK: linalg.generic
// CHECK: arith.addf
// CHECK: arith.truncf
func.func @conv(%x: tensor<?x8x8x32xf16>, %w: tensor<16x3x3x8xf16>, %b: tensor<16xf32>) -> tensor<?x4x4x16xf16> {
  %0 = greta.conv2d %x, %w, %b {padding = [1, 1, 1, 1], strides = [2, 2], groups = 4} : tensor<?x8x8x32xf16>, tensor<16x3x3x8xf16>, tensor<16xf32> -> tensor<?x4x4x16xf16>
  return %0 : tensor<?x4x4x16xf16>
}

// Images that may have no rows have no element to read in place of one that is outside.
// CHECK-LABEL: func.func @empty(
// CHECK: arith.cmpi ult
// CHECK-NOT: tensor.extract
// CHECK: scf.if
// CHECK-NEXT: tensor.extract
func.func @empty(%x: tensor<1x?x8x4xf16>, %w: tensor<8x1x1x4xf16>) -> tensor<1x?x8x8xf16> {
  %0 = greta.conv2d %x, %w {padding = [1, 0, 1, 0]} : tensor<1x?x8x4xf16>, tensor<8x1x1x4xf16> -> tensor<1x?x8x8xf16>
  return %0 : tensor<1x?x8x8xf16>
}

// The matrix of a convolution's GEMM, which only exists here.
// CHECK-LABEL: func.func @patches(
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]
// CHECK: tensor.extract
func.func @patches(%x: tensor<2x8x8x4xf16>) -> tensor<72x36xf16> {
  %0 = greta.patches %x {kernel = [3, 3], strides = [1, 1], padding = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x8x8x4xf16> -> tensor<72x36xf16>
  return %0 : tensor<72x36xf16>
}

// CHECK-LABEL: func.func @patches_first(
// CHECK: tensor.dim %arg0, %c0
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel"]
// CHECK: tensor.extract
func.func @patches_first(%x: tensor<?x8x6x6xf16>) -> tensor<?x2x36x16xf16> {
  %0 = greta.patches %x {kernel = [3, 3], strides = [1, 1], padding = [0, 0, 0, 0], dilations = [1, 1], layout = "nchw"} : tensor<?x8x6x6xf16> -> tensor<?x2x36x16xf16>
  return %0 : tensor<?x2x36x16xf16>
}
