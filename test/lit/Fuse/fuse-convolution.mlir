// A convolution becomes the GEMM of patches, in whose kernel they are gathered, with what follows as its epilogue.
// RUN: greta-opt --split-input-file --greta-fuse --verify-diagnostics %s | FileCheck %s

// CHECK-LABEL: func.func @block
// CHECK-COUNT-1: greta.kernel
// CHECK: %[[P:.*]] = greta.patches %{{.*}} {dilations = [1, 1], kernel = [3, 3], padding = [1, 1, 1, 1], strides = [1, 1]} : tensor<?x8x8x32xf16> -> tensor<?x288xf16>
// CHECK: %[[G:.*]] = greta.matmul %[[P]], %{{.*}} {transpose_b} : tensor<?x288xf16>, tensor<16x288xf16> -> tensor<?x16xf32>
// CHECK: arith.addf %[[G]]
// CHECK: arith.truncf
// CHECK: arith.addf
// CHECK: arith.maximumf {{.*}} : tensor<?x16xf16>
// CHECK-NOT: greta.kernel
// CHECK: tensor.expand_shape {{.*}} into tensor<?x8x8x16xf16>
func.func @block(%x: tensor<?x8x8x32xf16>, %w: tensor<16x3x3x32xf16>, %b: tensor<16xf32>, %skip: tensor<?x8x8x16xf16>, %least: tensor<16xf16>) -> tensor<?x8x8x16xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8x8x32xf16>
  %e = tensor.empty(%n) : tensor<?x8x8x16xf16>
  %0 = greta.conv2d %x, %w, %b {padding = [1, 1, 1, 1]} : tensor<?x8x8x32xf16>, tensor<16x3x3x32xf16>, tensor<16xf32> -> tensor<?x8x8x16xf16>
  %1 = arith.addf %0, %skip : tensor<?x8x8x16xf16>
  %2 = linalg.broadcast ins(%least : tensor<16xf16>) outs(%e : tensor<?x8x8x16xf16>) dimensions = [0, 1, 2]
  %3 = arith.maximumf %1, %2 : tensor<?x8x8x16xf16>
  return %3 : tensor<?x8x8x16xf16>
}

// -----

// One tap without strides or padding is a GEMM of the image, and two convolutions meet in one sum.
// CHECK-LABEL: func.func @taps
// CHECK: greta.matmul
// CHECK: greta.kernel
// CHECK-NOT: greta.patches
// CHECK: greta.matmul %{{.*}}, %{{.*}} {transpose_b} : tensor<128x32xf16>, tensor<16x32xf16>
// CHECK: arith.addf
// CHECK-NOT: greta.kernel
func.func @taps(%x: tensor<2x8x8x32xf16>, %w: tensor<16x1x1x32xf16>, %v: tensor<16x3x3x32xf16>) -> tensor<2x8x8x16xf16> {
  %0 = greta.conv2d %x, %v {padding = [1, 1, 1, 1]} : tensor<2x8x8x32xf16>, tensor<16x3x3x32xf16> -> tensor<2x8x8x16xf16>
  %1 = greta.conv2d %x, %w : tensor<2x8x8x32xf16>, tensor<16x1x1x32xf16> -> tensor<2x8x8x16xf16>
  %2 = arith.addf %1, %0 : tensor<2x8x8x16xf16>
  return %2 : tensor<2x8x8x16xf16>
}

// -----

// A GEMM for each group, then a copy that puts the groups' columns side by side.
// CHECK-LABEL: func.func @groups
// CHECK: greta.patches {{.*}} -> tensor<4x?x72xf16>
// CHECK: greta.matmul {{.*}} : tensor<4x?x72xf16>, tensor<4x8x72xf16> -> tensor<4x?x8xf16>
// CHECK: greta.kernel
// CHECK: greta.broadcast
func.func @groups(%x: tensor<?x?x?x32xf16>, %w: tensor<32x3x3x8xf16>) -> tensor<?x?x?x32xf16> {
  %0 = greta.conv2d %x, %w {groups = 4, strides = [2, 2]} : tensor<?x?x?x32xf16>, tensor<32x3x3x8xf16> -> tensor<?x?x?x32xf16>
  return %0 : tensor<?x?x?x32xf16>
}

// -----

// A batch norm on sums in f32, a residual in f16 that is converted, and ReLU: all in the GEMM's kernel.
// CHECK-LABEL: func.func @norm
// CHECK-COUNT-1: greta.kernel
// CHECK: %[[G:.*]] = greta.matmul {{.*}} -> tensor<?x16xf32>
// CHECK: arith.mulf %[[G]]
// CHECK: arith.addf
// CHECK: arith.extf {{.*}} : tensor<?x16xf16>
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK: arith.truncf
// CHECK-NOT: greta.kernel
func.func @norm(%x: tensor<?x8x8x32xf16>, %w: tensor<16x3x3x32xf16>, %scale: tensor<16xf32>, %shift: tensor<16xf32>, %skip: tensor<?x8x8x16xf16>) -> tensor<?x8x8x16xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8x8x32xf16>
  %e = tensor.empty(%n) : tensor<?x8x8x16xf32>
  %0 = greta.conv2d %x, %w {padding = [1, 1, 1, 1]} : tensor<?x8x8x32xf16>, tensor<16x3x3x32xf16> -> tensor<?x8x8x16xf32>
  %s = linalg.broadcast ins(%scale : tensor<16xf32>) outs(%e : tensor<?x8x8x16xf32>) dimensions = [0, 1, 2]
  %b = linalg.broadcast ins(%shift : tensor<16xf32>) outs(%e : tensor<?x8x8x16xf32>) dimensions = [0, 1, 2]
  %1 = arith.mulf %0, %s : tensor<?x8x8x16xf32>
  %2 = arith.addf %1, %b : tensor<?x8x8x16xf32>
  %3 = arith.extf %skip : tensor<?x8x8x16xf16> to tensor<?x8x8x16xf32>
  %4 = arith.addf %2, %3 : tensor<?x8x8x16xf32>
  %none = arith.constant 0.0 : f32
  %z = tensor.splat %none[%n] : tensor<?x8x8x16xf32>
  %5 = arith.maximumf %4, %z : tensor<?x8x8x16xf32>
  %6 = arith.truncf %5 : tensor<?x8x8x16xf32> to tensor<?x8x8x16xf16>
  return %6 : tensor<?x8x8x16xf16>
}

// -----

// Integers: scale, shift and ReLU on their sums.
// CHECK-LABEL: func.func @integers
// CHECK-COUNT-1: greta.kernel
// CHECK: %[[G:.*]] = greta.matmul {{.*}} -> tensor<?x16xi32>
// CHECK: arith.sitofp %[[G]]
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK: arith.truncf
// CHECK-NOT: greta.kernel
func.func @integers(%x: tensor<?x8x8x32xi8>, %w: tensor<16x3x3x32xi8>, %scale: tensor<16xf32>, %shift: tensor<16xf32>) -> tensor<?x8x8x16xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8x8x32xi8>
  %e = tensor.empty(%n) : tensor<?x8x8x16xf32>
  %0 = greta.conv2d %x, %w {padding = [1, 1, 1, 1]} : tensor<?x8x8x32xi8>, tensor<16x3x3x32xi8> -> tensor<?x8x8x16xi32>
  %s = linalg.broadcast ins(%scale : tensor<16xf32>) outs(%e : tensor<?x8x8x16xf32>) dimensions = [0, 1, 2]
  %b = linalg.broadcast ins(%shift : tensor<16xf32>) outs(%e : tensor<?x8x8x16xf32>) dimensions = [0, 1, 2]
  %f = arith.sitofp %0 : tensor<?x8x8x16xi32> to tensor<?x8x8x16xf32>
  %1 = arith.mulf %f, %s : tensor<?x8x8x16xf32>
  %2 = arith.addf %1, %b : tensor<?x8x8x16xf32>
  %none = arith.constant 0.0 : f32
  %z = tensor.splat %none[%n] : tensor<?x8x8x16xf32>
  %5 = arith.maximumf %2, %z : tensor<?x8x8x16xf32>
  %6 = arith.truncf %5 : tensor<?x8x8x16xf32> to tensor<?x8x8x16xf16>
  return %6 : tensor<?x8x8x16xf16>
}

// -----

// Channels first: a GEMM of the weights and of patches for each image and each group, whose results are in order. Bias, a residual that is converted before, a
// number for each channel and ReLU are in its kernel; nothing is moved.
// CHECK-LABEL: func.func @channels_first
// CHECK-COUNT-1: greta.kernel
// CHECK-DAG: %[[P:.*]] = greta.patches %{{.*}} {dilations = [1, 1], kernel = [3, 3], layout = "nchw", padding = [1, 1, 1, 1], strides = [2, 2]} : tensor<?x32x?x?xf16> -> tensor<?x4x72x?xf16>
// CHECK-DAG: arith.extf {{.*}} : tensor<?x4x4x?xf16>
// CHECK: %[[G:.*]] = greta.matmul %{{.*}}, %[[P]] : tensor<4x4x72xf16>, tensor<?x4x72x?xf16> -> tensor<?x4x4x?xf32>
// CHECK: greta.broadcast %{{.*}} dims [1, 2] : tensor<4x4xf32>
// CHECK: arith.addf %[[G]]
// CHECK: arith.addf
// CHECK: greta.broadcast %{{.*}} dims [1, 2] : tensor<4x4xf32>
// CHECK: arith.mulf
// CHECK: greta.broadcast %{{.*}} dims [] : tensor<f32>
// CHECK: arith.maximumf
// CHECK-NOT: greta.kernel
// CHECK: tensor.collapse_shape {{.*}} into tensor<?x16x?xf32>
// CHECK: tensor.expand_shape {{.*}} into tensor<?x16x?x?xf32>
func.func @channels_first(%x: tensor<?x32x?x?xf16>, %w: tensor<16x8x3x3xf16>, %b: tensor<16xf32>, %scale: tensor<16xf32>, %skip: tensor<?x16x?x?xf16>) -> tensor<?x16x?x?xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %n = tensor.dim %skip, %c0 : tensor<?x16x?x?xf16>
  %h = tensor.dim %skip, %c2 : tensor<?x16x?x?xf16>
  %v = tensor.dim %skip, %c3 : tensor<?x16x?x?xf16>
  %e = tensor.empty(%n, %h, %v) : tensor<?x16x?x?xf32>
  %1 = arith.extf %skip : tensor<?x16x?x?xf16> to tensor<?x16x?x?xf32>
  %0 = greta.conv2d %x, %w, %b {padding = [1, 1, 1, 1], strides = [2, 2], groups = 4, layout = "nchw"} : tensor<?x32x?x?xf16>, tensor<16x8x3x3xf16>, tensor<16xf32> -> tensor<?x16x?x?xf32>
  %2 = arith.addf %0, %1 : tensor<?x16x?x?xf32>
  %s = linalg.broadcast ins(%scale : tensor<16xf32>) outs(%e : tensor<?x16x?x?xf32>) dimensions = [0, 2, 3]
  %3 = arith.mulf %2, %s : tensor<?x16x?x?xf32>
  %none = arith.constant 0.0 : f32
  %z = tensor.splat %none[%n, %h, %v] : tensor<?x16x?x?xf32>
  %4 = arith.maximumf %3, %z : tensor<?x16x?x?xf32>
  return %4 : tensor<?x16x?x?xf32>
}

// -----

// One tap is a GEMM of views, with groups too.
// CHECK-LABEL: func.func @tap_first
// CHECK-NOT: greta.patches
// CHECK: greta.matmul {{.*}} : tensor<2x8x16xf16>, tensor<3x2x16x64xf16> -> tensor<3x2x8x64xf16>
// CHECK-NOT: greta.patches
func.func @tap_first(%x: tensor<3x32x8x8xf16>, %w: tensor<16x16x1x1xf16>) -> tensor<3x16x8x8xf16> {
  %0 = greta.conv2d %x, %w {groups = 2, layout = "nchw"} : tensor<3x32x8x8xf16>, tensor<16x16x1x1xf16> -> tensor<3x16x8x8xf16>
  return %0 : tensor<3x16x8x8xf16>
}

// -----

// A sum of convolutions that have their rows in other orders: one of them is viewed as an image, and as rows of the other.
// CHECK-LABEL: func.func @orders
// CHECK-COUNT-3: = greta.patches
// CHECK-NOT: greta.patches
// CHECK: return
func.func @orders(%x: tensor<8x8x8x8xf16>, %w: tensor<8x3x3x8xf16>, %v: tensor<8x8x3x3xf16>, %u: tensor<8x4x3x3xf16>) -> tensor<8x8x8x8xf16> {
  %0 = greta.conv2d %x, %w {padding = [1, 1, 1, 1]} : tensor<8x8x8x8xf16>, tensor<8x3x3x8xf16> -> tensor<8x8x8x8xf16>
  %1 = greta.conv2d %x, %v {padding = [1, 1, 1, 1], layout = "nchw"} : tensor<8x8x8x8xf16>, tensor<8x8x3x3xf16> -> tensor<8x8x8x8xf16>
  %2 = greta.conv2d %x, %u {padding = [1, 1, 1, 1], groups = 2, layout = "nchw"} : tensor<8x8x8x8xf16>, tensor<8x4x3x3xf16> -> tensor<8x8x8x8xf16>
  %3 = arith.addf %0, %1 : tensor<8x8x8x8xf16>
  %4 = arith.addf %3, %2 : tensor<8x8x8x8xf16>
  return %4 : tensor<8x8x8x8xf16>
}

// -----

// Rows are dynamic where a dimension of the image is, though its extent follows from a constant; in both kinds of operands.
// CHECK-LABEL: func.func @declared
// CHECK: greta.patches {{.*}} -> tensor<?x288xf16>
// CHECK: greta.matmul {{.*}} -> tensor<?x16xf16>
// CHECK: arith.addf {{.*}} : tensor<?x16xf16>
// CHECK: tensor.expand_shape {{.*}} into tensor<?x8x8x16xf16>
func.func @declared(%x: tensor<2x8x8x32xf16>, %w: tensor<16x3x3x32xf16>, %b: tensor<16xf16>) -> tensor<?x8x8x16xf16> {
  %n = arith.constant 2 : index
  %c = tensor.cast %x : tensor<2x8x8x32xf16> to tensor<?x8x8x32xf16>
  %e = tensor.empty(%n) : tensor<?x8x8x16xf16>
  %0 = greta.conv2d %c, %w {padding = [1, 1, 1, 1]} : tensor<?x8x8x32xf16>, tensor<16x3x3x32xf16> -> tensor<?x8x8x16xf16>
  %1 = linalg.broadcast ins(%b : tensor<16xf16>) outs(%e : tensor<?x8x8x16xf16>) dimensions = [0, 1, 2]
  %2 = arith.addf %0, %1 : tensor<?x8x8x16xf16>
  return %2 : tensor<?x8x8x16xf16>
}

// -----

func.func @patches(%x: tensor<2x8x8x4xf16>) -> tensor<72x36xf16> {
  // expected-error @below {{has no kernel of its own; write greta.conv2d, or compile for the target 'host'}}
  %0 = greta.patches %x {kernel = [3, 3], strides = [1, 1], padding = [0, 0, 0, 0], dilations = [1, 1]} : tensor<2x8x8x4xf16> -> tensor<72x36xf16>
  return %0 : tensor<72x36xf16>
}
