// RUN: greta-opt --greta-fuse --greta-configure=target=gfx942 %s | FileCheck %s
// REQUIRES: compiler

// A slice in front of a GEMM with heads: the space has three dimensions, A has two.
// CHECK-LABEL: func.func @sliced
// CHECK: greta.kernel{{.*}}schedule{{.*}}views
// CHECK: greta.matmul
// CHECK: greta.heads
func.func @sliced(%x: tensor<17x3xf16>, %w: tensor<16x2xi8>, %cos: tensor<17x2xf32>, %sin: tensor<17x2xf32>) -> tensor<17x4x4xf16> {
  %a = tensor.extract_slice %x[0, 1] [17, 2] [1, 1] : tensor<17x3xf16> to tensor<17x2xf16>
  %b = arith.sitofp %w : tensor<16x2xi8> to tensor<16x2xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<17x2xf16>, tensor<16x2xf16> -> tensor<17x16xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [17, 4, 4] : tensor<17x16xf16> into tensor<17x4x4xf16>
  %2 = greta.rope %1, %cos, %sin {style = "gptj"} : tensor<17x4x4xf16>, tensor<17x2xf32>, tensor<17x2xf32> -> tensor<17x4x4xf16>
  return %2 : tensor<17x4x4xf16>
}
