// Sums over ranks stay between kernels, in the order of the source.
// RUN: greta-opt --split-input-file --greta-fuse %s | FileCheck %s

// The half of a layer: what is before the sum is the GEMM's epilogue, what is behind it a kernel with the norm.
// CHECK: #[[SHAPE:.*]] = affine_map<()[s0] -> (s0, 64)>
// CHECK-LABEL: func.func @layer
// CHECK: %[[K:.*]] = greta.kernel
// CHECK: greta.matmul
// CHECK: arith.addf
// CHECK: %[[S:.*]] = greta.all_reduce %[[K]] {shape = #[[SHAPE]]} : tensor<?x64xf32> -> tensor<?x64xf32>
// CHECK: greta.kernel(%[[S]]
// CHECK: greta.rms_norm
// CHECK-NOT: greta.kernel
func.func @layer(%a: tensor<?x32xf32>, %w: tensor<64x32xf32>, %r: tensor<?x64xf32>, %n: tensor<64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %0 = greta.matmul %a, %w {transpose_b} : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %1 = arith.addf %0, %r : tensor<?x64xf32>
  %2 = greta.all_reduce %1 : tensor<?x64xf32> -> tensor<?x64xf32>
  %3 = greta.rms_norm %2, %n {eps = 1.0e-5 : f32} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  return %2, %3 : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// All ranks sum in one order: the second operand is ready before the first.
// CHECK-LABEL: func.func @order
// CHECK: greta.all_reduce %{{.*}} {part_rows = 4 : i64, shape = #{{.*}}} : tensor<8x4xf16>
// CHECK: greta.all_reduce %{{.*}} {shape = #{{.*}}} : tensor<2x4xf16>
func.func @order(%x: tensor<8x4xf16>, %y: tensor<2x4xf16>) -> (tensor<8x4xf16>, tensor<2x4xf16>) {
  %0 = greta.softmax %x : tensor<8x4xf16> -> tensor<8x4xf16>
  %1 = greta.all_reduce %0 {part_rows = 4} : tensor<8x4xf16> -> tensor<8x4xf16>
  %2 = greta.all_reduce %y : tensor<2x4xf16> -> tensor<2x4xf16>
  return %1, %2 : tensor<8x4xf16>, tensor<2x4xf16>
}

// -----

// Work on both sides of a later sum that has nothing to do with the first one is not one kernel, which would wait for itself.
// CHECK-LABEL: func.func @circle
// CHECK: greta.kernel
// CHECK: greta.all_reduce
// CHECK: greta.all_reduce
// CHECK: greta.kernel
func.func @circle(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = arith.addf %x, %x : tensor<8x4xf32>
  %1 = greta.all_reduce %0 : tensor<8x4xf32> -> tensor<8x4xf32>
  %2 = greta.all_reduce %y : tensor<8x4xf32> -> tensor<8x4xf32>
  %3 = arith.mulf %2, %x : tensor<8x4xf32>
  return %1, %3 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// A slice, and what repeats, get buffers of their own.
// CHECK-LABEL: func.func @buffers
// CHECK: %[[SLICE:.*]] = greta.kernel
// CHECK: greta.all_reduce %{{.*}} {shape = #{{.*}}} : tensor<8x2xf32>
// CHECK: greta.all_reduce %{{.*}} {shape = #{{.*}}} : tensor<4xf32>
func.func @buffers(%x: tensor<8x4xf32>) -> (tensor<8x2xf32>, tensor<4xf32>) {
  %0 = tensor.extract_slice %x[0, 2] [8, 2] [1, 1] : tensor<8x4xf32> to tensor<8x2xf32>
  %1 = greta.all_reduce %0 : tensor<8x2xf32> -> tensor<8x2xf32>
  %c = arith.constant dense<1.0> : tensor<4xf32>
  %2 = greta.all_reduce %c : tensor<4xf32> -> tensor<4xf32>
  return %1, %2 : tensor<8x2xf32>, tensor<4xf32>
}
