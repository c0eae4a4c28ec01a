// Sizes at the limits.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 %s | FileCheck %s

// Nothing to do is no workgroup.
// CHECK-LABEL: func.func @nothing
// CHECK: spaces = [{rows = [1]}]
func.func @nothing(%x: tensor<4x0xf32>) -> tensor<4x0xf32> {
  %0 = math.exp %x : tensor<4x0xf32>
  return %0 : tensor<4x0xf32>
}

// -----

// CHECK-LABEL: func.func @scalar
// CHECK: spaces = [{rows = [1]}]
func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
  %0 = math.exp %x : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// More elements than an i32 counts: rows, not one long row.
// CHECK-LABEL: func.func @huge
// CHECK: spaces = [{columns = 2048, rows = [1]}]
func.func @huge(%x: tensor<70001x70001xf16>) -> tensor<70001x70001xf16> {
  %0 = math.exp %x : tensor<70001x70001xf16>
  return %0 : tensor<70001x70001xf16>
}
