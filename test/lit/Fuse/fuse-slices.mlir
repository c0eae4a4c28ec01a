// RUN: greta-opt --split-input-file --greta-fuse %s | FileCheck %s

// A kernel that reads a slice reads the buffer at an offset, with the buffer's distance between rows.
// CHECK-DAG: #[[LEFT:.+]] = affine_map<()[s0] -> (256, 1, 0)>
// CHECK-DAG: #[[RIGHT:.+]] = affine_map<()[s0] -> (256, 1, 128)>
// CHECK-LABEL: func.func @halves(
// CHECK-SAME: %[[X:.*]]: tensor<?x256xf16>
// CHECK: greta.kernel(%[[X]], %[[X]]) {{.*}}views = [#[[LEFT]], #[[RIGHT]]]
// CHECK: ^bb0(%{{.*}}: tensor<?x128xf16>, %{{.*}}: tensor<?x128xf16>)
// CHECK-NEXT: greta.swiglu
// CHECK-NOT: greta.kernel
func.func @halves(%x: tensor<?x256xf16>) -> tensor<?x128xf16> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x256xf16>
  %g = tensor.extract_slice %x[0, 0] [%m, 128] [1, 1] : tensor<?x256xf16> to tensor<?x128xf16>
  %u = tensor.extract_slice %x[0, 128] [%m, 128] [1, 1] : tensor<?x256xf16> to tensor<?x128xf16>
  %0 = greta.swiglu %g, %u : tensor<?x128xf16>, tensor<?x128xf16> -> tensor<?x128xf16>
  return %0 : tensor<?x128xf16>
}

// -----

// Views of a slice have its strides; of a slice that dropped a dimension, too.
// CHECK-DAG: #[[HEADS:.+]] = affine_map<()[s0] -> (384, 32, 1, 128)>
// CHECK-DAG: #[[ROW:.+]] = affine_map<()[s0] -> (1, 384)>
// CHECK-LABEL: func.func @views(
// CHECK: greta.kernel({{.*}}views = [#[[HEADS]], unit, unit, #[[ROW]]]
func.func @views(%x: tensor<?x384xf16>, %y: tensor<4x384xf16>, %cos: tensor<?x16xf32>, %sin: tensor<?x16xf32>) -> (tensor<?x4x32xf16>, tensor<384xf16>) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x384xf16>
  %s = tensor.extract_slice %x[0, 128] [%m, 128] [1, 1] : tensor<?x384xf16> to tensor<?x128xf16>
  %h = tensor.expand_shape %s [[0], [1, 2]] output_shape [%m, 4, 32] : tensor<?x128xf16> into tensor<?x4x32xf16>
  %0 = greta.rope %h, %cos, %sin {style = "neox"} : tensor<?x4x32xf16>, tensor<?x16xf32>, tensor<?x16xf32> -> tensor<?x4x32xf16>
  %r = tensor.extract_slice %y[1, 0] [1, 384] [1, 1] : tensor<4x384xf16> to tensor<384xf16>
  %c = tensor.cast %0 : tensor<?x4x32xf16> to tensor<?x4x32xf16>
  return %c, %r : tensor<?x4x32xf16>, tensor<384xf16>
}

// -----

// Rows that are not in regular distances are copied.
// CHECK-LABEL: func.func @copied(
// CHECK: greta.kernel(
// CHECK: greta.broadcast %{{.*}} dims [0, 1, 2] : tensor<2x3x64xf16> -> tensor<2x3x64xf16>
// CHECK: tensor.collapse_shape %{{.*}} : tensor<2x3x64xf16> into tensor<6x64xf16>
// CHECK: greta.softmax
func.func @copied(%x: tensor<2x4x64xf16>) -> tensor<6x64xf16> {
  %s = tensor.extract_slice %x[0, 0, 0] [2, 3, 64] [1, 1, 1] : tensor<2x4x64xf16> to tensor<2x3x64xf16>
  %c = tensor.collapse_shape %s [[0, 1], [2]] : tensor<2x3x64xf16> into tensor<6x64xf16>
  %0 = greta.softmax %c : tensor<6x64xf16> -> tensor<6x64xf16>
  return %0 : tensor<6x64xf16>
}

// -----

// Columns of a GEMM, and of what is added to it, are those of B and of the bias.
// CHECK-DAG: #[[GATE:.+]] = affine_map<()[s0] -> (64, 1, 0)>
// CHECK-DAG: #[[UP:.+]] = affine_map<()[s0] -> (64, 1, 8192)>
// CHECK-DAG: #[[BIAS0:.+]] = affine_map<()[s0] -> (1, 0)>
// CHECK-DAG: #[[BIAS1:.+]] = affine_map<()[s0] -> (1, 128)>
// CHECK-LABEL: func.func @pair(
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf16>, %[[W:.*]]: tensor<256x64xf16>, %[[B:.*]]: tensor<256xf16>
// CHECK: greta.kernel(%[[X]], %[[W]], %[[W]], %[[B]], %[[B]]) {{.*}}views = [unit, #[[GATE]], #[[UP]], #[[BIAS0]], #[[BIAS1]]]
// CHECK-COUNT-2: greta.matmul {{.*}}tensor<128x64xf16> -> tensor<?x128xf16>
// CHECK: greta.swiglu
// CHECK-NOT: greta.kernel
func.func @pair(%x: tensor<?x64xf16>, %w: tensor<256x64xf16>, %b: tensor<256xf16>) -> tensor<?x128xf16> {
  %p = greta.matmul %x, %w {transpose_b} : tensor<?x64xf16>, tensor<256x64xf16> -> tensor<?x256xf16>
  %c0 = arith.constant 0 : index
  %m = tensor.dim %p, %c0 : tensor<?x256xf16>
  %e = tensor.empty(%m) : tensor<?x256xf16>
  %r = linalg.broadcast ins(%b : tensor<256xf16>) outs(%e : tensor<?x256xf16>) dimensions = [0]
  %s = arith.addf %p, %r : tensor<?x256xf16>
  %g = tensor.extract_slice %s[0, 0] [%m, 128] [1, 1] : tensor<?x256xf16> to tensor<?x128xf16>
  %u = tensor.extract_slice %s[0, 128] [%m, 128] [1, 1] : tensor<?x256xf16> to tensor<?x128xf16>
  %0 = greta.swiglu %g, %u : tensor<?x128xf16>, tensor<?x128xf16> -> tensor<?x128xf16>
  return %0 : tensor<?x128xf16>
}

// -----

// Not what overlaps, or what nothing fuses with.
// CHECK-LABEL: func.func @overlapping(
// CHECK: greta.matmul {{.*}} -> tensor<32x256xf16>
// CHECK-NOT: greta.matmul
// CHECK-LABEL: func.func @alone(
// CHECK: greta.matmul {{.*}} -> tensor<32x256xf16>
// CHECK-NOT: greta.matmul
func.func @overlapping(%x: tensor<32x64xf16>, %w: tensor<256x64xf16>) -> tensor<32x129xf16> {
  %p = greta.matmul %x, %w {transpose_b} : tensor<32x64xf16>, tensor<256x64xf16> -> tensor<32x256xf16>
  %g = tensor.extract_slice %p[0, 0] [32, 129] [1, 1] : tensor<32x256xf16> to tensor<32x129xf16>
  %u = tensor.extract_slice %p[0, 127] [32, 129] [1, 1] : tensor<32x256xf16> to tensor<32x129xf16>
  %0 = greta.swiglu %g, %u : tensor<32x129xf16>, tensor<32x129xf16> -> tensor<32x129xf16>
  return %0 : tensor<32x129xf16>
}
func.func @alone(%x: tensor<32x64xf16>, %w: tensor<256x64xf16>) -> (tensor<32x128xf16>, tensor<32x128xf16>) {
  %p = greta.matmul %x, %w {transpose_b} : tensor<32x64xf16>, tensor<256x64xf16> -> tensor<32x256xf16>
  %g = tensor.extract_slice %p[0, 0] [32, 128] [1, 1] : tensor<32x256xf16> to tensor<32x128xf16>
  %u = tensor.extract_slice %p[0, 128] [32, 128] [1, 1] : tensor<32x256xf16> to tensor<32x128xf16>
  %0 = greta.softmax %g : tensor<32x128xf16> -> tensor<32x128xf16>
  %1 = greta.softmax %u : tensor<32x128xf16> -> tensor<32x128xf16>
  return %0, %1 : tensor<32x128xf16>, tensor<32x128xf16>
}

// -----

// Queries, keys and values: three GEMMs of one A, two of them roped in their kernel, side by side.
// CHECK-DAG: #[[Q:.+]] = affine_map<()[s0] -> (64, 1, 0)>
// CHECK-DAG: #[[K:.+]] = affine_map<()[s0] -> (64, 1, 16384)>
// CHECK-DAG: #[[V:.+]] = affine_map<()[s0] -> (64, 1, 20480)>
// CHECK-LABEL: func.func @qkv(
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf16>, %[[W:.*]]: tensor<384x64xf16>, %[[C:.*]]: tensor<?x32xf32>, %[[S:.*]]: tensor<?x32xf32>
// CHECK: greta.kernel(%[[X]], %[[W]], %[[C]], %[[S]], %[[W]], %[[W]]) {{.*}}views = [unit, #[[Q]], unit, unit, #[[K]], #[[V]]]
// CHECK: greta.matmul
// CHECK: greta.heads
// CHECK: greta.rope {{.*}}tensor<?x4x64xf16>
// CHECK: }, {
// CHECK: greta.rope {{.*}}tensor<?x1x64xf16>
// CHECK: }, {
// CHECK: greta.matmul
// CHECK-NEXT: greta.yield
// CHECK-NOT: greta.kernel
func.func @qkv(%x: tensor<?x64xf16>, %w: tensor<384x64xf16>, %cos: tensor<?x32xf32>, %sin: tensor<?x32xf32>) -> (tensor<?x4x64xf16>, tensor<?x1x64xf16>, tensor<?x64xf16>) {
  %p = greta.matmul %x, %w {transpose_b} : tensor<?x64xf16>, tensor<384x64xf16> -> tensor<?x384xf16>
  %c0 = arith.constant 0 : index
  %t = tensor.dim %x, %c0 : tensor<?x64xf16>
  %h = tensor.expand_shape %p [[0], [1, 2]] output_shape [%t, 6, 64] : tensor<?x384xf16> into tensor<?x6x64xf16>
  %q = tensor.extract_slice %h[0, 0, 0] [%t, 4, 64] [1, 1, 1] : tensor<?x6x64xf16> to tensor<?x4x64xf16>
  %k = tensor.extract_slice %h[0, 4, 0] [%t, 1, 64] [1, 1, 1] : tensor<?x6x64xf16> to tensor<?x1x64xf16>
  %v = tensor.extract_slice %h[0, 5, 0] [%t, 1, 64] [1, 1, 1] : tensor<?x6x64xf16> to tensor<?x64xf16>
  %0 = greta.rope %q, %cos, %sin {style = "neox"} : tensor<?x4x64xf16>, tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x4x64xf16>
  %1 = greta.rope %k, %cos, %sin {style = "neox"} : tensor<?x1x64xf16>, tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x1x64xf16>
  return %0, %1, %v : tensor<?x4x64xf16>, tensor<?x1x64xf16>, tensor<?x64xf16>
}

// -----

// GEMMs of one A with weights of their own, too, but for one that somebody configured.
// CHECK-LABEL: func.func @three(
// CHECK: greta.kernel(%arg0, %arg1, %arg2)
// CHECK: greta.kernel(%arg0, %arg3)
func.func @three(%x: tensor<1x64xf16>, %q: tensor<256x64xf16>, %k: tensor<64x64xf16>, %v: tensor<64x64xf16>) -> (tensor<1x256xf16>, tensor<1x64xf16>, tensor<1x64xf16>) {
  %0 = greta.matmul %x, %q {transpose_b} : tensor<1x64xf16>, tensor<256x64xf16> -> tensor<1x256xf16>
  %1 = greta.matmul %x, %k {transpose_b} : tensor<1x64xf16>, tensor<64x64xf16> -> tensor<1x64xf16>
  %2 = greta.matmul %x, %v {transpose_b, greta.config = {split = 1}} : tensor<1x64xf16>, tensor<64x64xf16> -> tensor<1x64xf16>
  return %0, %1, %2 : tensor<1x256xf16>, tensor<1x64xf16>, tensor<1x64xf16>
}
