// Every op prints as it is written in the contract, and reads itself back.
// RUN: greta-opt %s | greta-opt | FileCheck %s

// CHECK-LABEL: func.func @norms(
// CHECK: greta.rms_norm %{{.*}}, %{{.*}} {eps = 9.99999974E-6 : f32} : tensor<?x4096xf16>, tensor<4096xf16> -> tensor<?x4096xf16>
// CHECK: greta.layer_norm %{{.*}}, %{{.*}}, %{{.*}} {eps = 0.000000e+00 : f32} : tensor<?x4096xf16>, tensor<4096xf16>, tensor<4096xf32> -> tensor<?x4096xf16>
func.func @norms(%x: tensor<?x4096xf16>, %w: tensor<4096xf16>, %b: tensor<4096xf32>) -> tensor<?x4096xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x4096xf16>, tensor<4096xf16> -> tensor<?x4096xf16>
  %1 = greta.layer_norm %0, %w, %b {eps = 0.0 : f32} : tensor<?x4096xf16>, tensor<4096xf16>, tensor<4096xf32> -> tensor<?x4096xf16>
  return %1 : tensor<?x4096xf16>
}

// CHECK-LABEL: func.func @rows(
// CHECK: greta.softmax %{{.*}} : tensor<?x?x7xbf16> -> tensor<?x?x7xbf16>
// CHECK: greta.swiglu %{{.*}}, %{{.*}} : tensor<?x?x7xbf16>, tensor<?x?x7xbf16> -> tensor<?x?x7xbf16>
// CHECK: greta.softmax %{{.*}} : tensor<1xf32> -> tensor<1xf32>
func.func @rows(%x: tensor<?x?x7xbf16>, %y: tensor<1xf32>) -> (tensor<?x?x7xbf16>, tensor<1xf32>) {
  %0 = greta.softmax %x : tensor<?x?x7xbf16> -> tensor<?x?x7xbf16>
  %1 = greta.swiglu %0, %x : tensor<?x?x7xbf16>, tensor<?x?x7xbf16> -> tensor<?x?x7xbf16>
  %2 = greta.softmax %y : tensor<1xf32> -> tensor<1xf32>
  return %1, %2 : tensor<?x?x7xbf16>, tensor<1xf32>
}

// CHECK-LABEL: func.func @rope(
// CHECK: greta.rope %{{.*}}, %{{.*}}, %{{.*}} {style = "neox"} : tensor<?x32x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x32x128xf16>
// CHECK: greta.rope %{{.*}}, %{{.*}}, %{{.*}} {style = "gptj"}
func.func @rope(%x: tensor<?x32x128xf16>, %cos: tensor<?x64xf32>, %sin: tensor<?x64xf32>) -> tensor<?x32x128xf16> {
  %0 = greta.rope %x, %cos, %sin {style = "neox"} : tensor<?x32x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x32x128xf16>
  %1 = greta.rope %0, %cos, %sin {style = "gptj"} : tensor<?x32x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x32x128xf16>
  return %1 : tensor<?x32x128xf16>
}

// CHECK-LABEL: func.func @matmul(
// CHECK: greta.matmul %{{.*}}, %{{.*}} {transpose_b} : tensor<?x64xf16>, tensor<32x64xf16> -> tensor<?x32xf32>
// CHECK: greta.matmul %{{.*}}, %{{.*}} {transpose_a} : tensor<8x4xi8>, tensor<8x16xi8> -> tensor<4x16xi32>
func.func @matmul(%a: tensor<?x64xf16>, %b: tensor<32x64xf16>, %c: tensor<8x4xi8>, %d: tensor<8x16xi8>) -> (tensor<?x32xf32>, tensor<4x16xi32>) {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x64xf16>, tensor<32x64xf16> -> tensor<?x32xf32>
  %1 = greta.matmul %c, %d {transpose_a} : tensor<8x4xi8>, tensor<8x16xi8> -> tensor<4x16xi32>
  return %0, %1 : tensor<?x32xf32>, tensor<4x16xi32>
}

// CHECK-LABEL: func.func @batches(
// CHECK: greta.matmul %{{.*}}, %{{.*}} : tensor<2x?x4x8xf8E4M3FN>, tensor<2x?x8x16xf8E5M2> -> tensor<2x?x4x16xbf16>
// CHECK: greta.matmul %{{.*}}, %{{.*}} {transpose_a, transpose_b} : tensor<3x8x4xf16>, tensor<16x8xf16> -> tensor<3x4x16xf16>
func.func @batches(%a: tensor<2x?x4x8xf8E4M3FN>, %b: tensor<2x?x8x16xf8E5M2>, %c: tensor<3x8x4xf16>, %d: tensor<16x8xf16>) -> (tensor<2x?x4x16xbf16>, tensor<3x4x16xf16>) {
  %0 = greta.matmul %a, %b : tensor<2x?x4x8xf8E4M3FN>, tensor<2x?x8x16xf8E5M2> -> tensor<2x?x4x16xbf16>
  %1 = greta.matmul %c, %d {transpose_a, transpose_b} : tensor<3x8x4xf16>, tensor<16x8xf16> -> tensor<3x4x16xf16>
  return %0, %1 : tensor<2x?x4x16xbf16>, tensor<3x4x16xf16>
}

// CHECK-LABEL: func.func @dequant(
// CHECK: greta.dequant %{{.*}}, %{{.*}} {group = 32 : i64} : tensor<?x40xi32>, tensor<?x10xf16> -> tensor<?x320xf16>
// CHECK: greta.dequant %{{.*}}, %{{.*}}, %{{.*}} {group = 32 : i64} : tensor<?x40xi32>, tensor<?x10xf16>, tensor<?x2xi32> -> tensor<?x320xf16>
// CHECK-LABEL: func.func @minima(
// CHECK: greta.dequant %{{.*}}, %{{.*}}, %{{.*}} {group = 32 : i64} : tensor<?x40xi32>, tensor<?x10xf16>, tensor<?x10xf16> -> tensor<?x320xf16>
func.func @dequant(%q: tensor<?x40xi32>, %s: tensor<?x10xf16>, %z: tensor<?x2xi32>) -> (tensor<?x320xf16>, tensor<?x320xf16>) {
  %0 = greta.dequant %q, %s {group = 32} : tensor<?x40xi32>, tensor<?x10xf16> -> tensor<?x320xf16>
  %1 = greta.dequant %q, %s, %z {group = 32} : tensor<?x40xi32>, tensor<?x10xf16>, tensor<?x2xi32> -> tensor<?x320xf16>
  return %0, %1 : tensor<?x320xf16>, tensor<?x320xf16>
}
func.func @minima(%q: tensor<?x40xi32>, %s: tensor<?x10xf16>, %m: tensor<?x10xf16>) -> tensor<?x320xf16> {
  %0 = greta.dequant %q, %s, %m {group = 32} : tensor<?x40xi32>, tensor<?x10xf16>, tensor<?x10xf16> -> tensor<?x320xf16>
  return %0 : tensor<?x320xf16>
}

// CHECK-LABEL: func.func @grouped_matmul(
// CHECK: greta.grouped_matmul %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf16>, tensor<8x64x32xf16>, tensor<9xi32> -> tensor<?x32xf32>
// CHECK: greta.grouped_matmul %{{.*}}, %{{.*}}, %{{.*}} {transpose_b} : tensor<5x64xi8>, tensor<8x32x64xi8>, tensor<9xi32> -> tensor<5x32xi32>
func.func @grouped_matmul(%a: tensor<?x64xf16>, %b: tensor<8x64x32xf16>, %c: tensor<5x64xi8>, %d: tensor<8x32x64xi8>, %o: tensor<9xi32>)
    -> (tensor<?x32xf32>, tensor<5x32xi32>) {
  %0 = greta.grouped_matmul %a, %b, %o : tensor<?x64xf16>, tensor<8x64x32xf16>, tensor<9xi32> -> tensor<?x32xf32>
  %1 = greta.grouped_matmul %c, %d, %o {transpose_b} : tensor<5x64xi8>, tensor<8x32x64xi8>, tensor<9xi32> -> tensor<5x32xi32>
  return %0, %1 : tensor<?x32xf32>, tensor<5x32xi32>
}

// CHECK-LABEL: func.func @convolutions(
// CHECK: greta.conv2d %{{[a-z0-9]*}}, %{{[a-z0-9]*}} : tensor<?x8x8x4xf16>, tensor<8x3x3x4xf16> -> tensor<?x6x6x8xf16>
// CHECK: greta.conv2d %{{.*}}, %{{.*}}, %{{.*}} {groups = 2 : i64, layout = "nchw", padding = [1, 0, 1, 0], strides = [2, 1]} : tensor<1x4x8x?xi8>, tensor<8x2x3x3xi8>, tensor<8xi32> -> tensor<1x8x4x?xi32>
func.func @convolutions(%x: tensor<?x8x8x4xf16>, %w: tensor<8x3x3x4xf16>, %y: tensor<1x4x8x?xi8>, %v: tensor<8x2x3x3xi8>, %b: tensor<8xi32>)
    -> (tensor<?x6x6x8xf16>, tensor<1x8x4x?xi32>) {
  %0 = greta.conv2d %x, %w : tensor<?x8x8x4xf16>, tensor<8x3x3x4xf16> -> tensor<?x6x6x8xf16>
  %1 = greta.conv2d %y, %v, %b {groups = 2, layout = "nchw", padding = [1, 0, 1, 0], strides = [2, 1]} : tensor<1x4x8x?xi8>, tensor<8x2x3x3xi8>, tensor<8xi32> -> tensor<1x8x4x?xi32>
  return %0, %1 : tensor<?x6x6x8xf16>, tensor<1x8x4x?xi32>
}

// CHECK-LABEL: func.func @quantize_rows(
// CHECK: greta.quantize_rows %{{.*}} : tensor<?x64xf16> -> tensor<?x64xi8>, tensor<?x1xf32>
// CHECK: greta.matmul %{{.*}}, %{{.*}} {precision = "bf16x3"} : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
func.func @quantize_rows(%x: tensor<?x64xf16>, %a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> (tensor<?x64xi8>, tensor<?x1xf32>, tensor<4x4xf32>) {
  %y, %scale = greta.quantize_rows %x : tensor<?x64xf16> -> tensor<?x64xi8>, tensor<?x1xf32>
  %0 = greta.matmul %a, %b {precision = "bf16x3"} : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
  return %y, %scale, %0 : tensor<?x64xi8>, tensor<?x1xf32>, tensor<4x4xf32>
}

// CHECK-LABEL: func.func @formats(
// CHECK: greta.dequant %{{.*}}, %{{.*}}, %{{.*}} {format = "q6_k", group = 16 : i64} : tensor<?x40xi32>, tensor<?x20xi32>, tensor<?x20xf16> -> tensor<?x320xf16>
// CHECK: greta.dequant %{{.*}}, %{{.*}} {format = "q8_0", group = 32 : i64} : tensor<?x40xi32>, tensor<?x5xf16> -> tensor<?x160xbf16>
func.func @formats(%q: tensor<?x40xi32>, %h: tensor<?x20xi32>, %s: tensor<?x20xf16>, %t: tensor<?x5xf16>) -> (tensor<?x320xf16>, tensor<?x160xbf16>) {
  %0 = greta.dequant %q, %h, %s {format = "q6_k", group = 16} : tensor<?x40xi32>, tensor<?x20xi32>, tensor<?x20xf16> -> tensor<?x320xf16>
  %1 = greta.dequant %q, %t {format = "q8_0", group = 32} : tensor<?x40xi32>, tensor<?x5xf16> -> tensor<?x160xbf16>
  return %0, %1 : tensor<?x320xf16>, tensor<?x160xbf16>
}

// CHECK-LABEL: func.func @ranks(
// CHECK: greta.all_reduce %{{.*}} : tensor<?x4096xbf16> -> tensor<?x4096xbf16>
// CHECK: greta.all_reduce %{{.*}} {part_rows = 512 : i64} : tensor<?x4096xbf16> -> tensor<?x4096xbf16>
// CHECK: greta.all_reduce %{{.*}} : tensor<f32> -> tensor<f32>
func.func @ranks(%x: tensor<?x4096xbf16>, %y: tensor<f32>) -> (tensor<?x4096xbf16>, tensor<?x4096xbf16>, tensor<f32>) {
  %0 = greta.all_reduce %x : tensor<?x4096xbf16> -> tensor<?x4096xbf16>
  %1 = greta.all_reduce %x {part_rows = 512} : tensor<?x4096xbf16> -> tensor<?x4096xbf16>
  %2 = greta.all_reduce %y : tensor<f32> -> tensor<f32>
  return %0, %1, %2 : tensor<?x4096xbf16>, tensor<?x4096xbf16>, tensor<f32>
}
