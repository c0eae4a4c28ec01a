// Products whose operands are computed: blocks of an operand have its own dimensions.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --cse %s | FileCheck %s

// Weights of 4 bits: words for eight each, one scale and one word of zeros for the block, which lies in a group. The zeros' digit is the same
// for all of it.
// CHECK-LABEL: greta_tile.func @packed_0
// CHECK: scf.for %[[K:.*]] = %c0_i32 to %c4096_i32 step
// CHECK: greta_tile.load %arg3[{{.*}}, %[[K]]] strides [4096, 1]
// CHECK: %[[K8:.*]] = arith.divui %[[K]], %c8_i32
// CHECK: %[[W:.*]] = greta_tile.load %arg0[%[[K8]], {{.*}}] strides [1, 512] bounds [] {{.*}} -> tensor<[[D:[0-9]+]]x[[N:[0-9]+]]xi32>
// CHECK: %[[G:.*]] = arith.divui %[[K]], %c128_i32
// CHECK: %[[S:.*]] = greta_tile.load %arg1[%[[G]], {{.*}}] strides [1, 32] bounds [] {{.*}} -> tensor<1x[[N]]xf16>
// CHECK: %[[Z:.*]] = greta_tile.load %arg2{{.*}} strides [1, 4] bounds [] {{.*}} -> tensor<1x[[N]]xi32>
// CHECK: arith.remui %[[G]], %c8_i32
// CHECK: arith.shrui %[[Z]]
// CHECK: %[[ZERO:.*]] = arith.andi
// CHECK: %[[B:.*]] = greta_tile.dequant %[[W]], %[[S]], %[[ZERO]]
// CHECK: greta_tile.dot %{{.*}}, %[[B]]
func.func @packed(%x: tensor<?x4096xf16>, %q: tensor<4096x512xi32>, %s: tensor<4096x32xf16>, %z: tensor<4096x4xi32>) -> tensor<?x4096xf16> {
  %w = greta.dequant %q, %s, %z {group = 128} : tensor<4096x512xi32>, tensor<4096x32xf16>, tensor<4096x4xi32> -> tensor<4096x4096xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<?x4096xf16>, tensor<4096x4096xf16> -> tensor<?x4096xf16>
  return %0 : tensor<?x4096xf16>
}

// -----

// Without zeros each is 8: nothing is loaded for them.
// CHECK-LABEL: greta_tile.func @symmetric_0
// CHECK-DAG: %[[EIGHT:.*]] = arith.constant dense<8> : tensor<1x1xi32>
// CHECK: greta_tile.dequant %{{.*}}, %{{.*}}, %[[EIGHT]]
func.func @symmetric(%x: tensor<?x4096xf16>, %q: tensor<4096x512xi32>, %s: tensor<4096x128xf16>) -> tensor<?x4096xf16> {
  %w = greta.dequant %q, %s {group = 32} : tensor<4096x512xi32>, tensor<4096x128xf16> -> tensor<4096x4096xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<?x4096xf16>, tensor<4096x4096xf16> -> tensor<?x4096xf16>
  return %0 : tensor<?x4096xf16>
}

// -----

// A minimum is loaded as the scale is; a K tile has several groups of 32.
// CHECK-LABEL: greta_tile.func @minima_0
// CHECK: %[[G:.*]] = arith.divui %{{.*}}, %c32_i32
// CHECK: %[[S:.*]] = greta_tile.load %arg1[%[[G]], {{.*}}] strides [1, 128] bounds [] {{.*}} -> tensor<[[D:[0-9]+]]x[[N:[0-9]+]]xf16>
// CHECK: %[[M:.*]] = greta_tile.load %arg2{{.*}} strides [1, 128] bounds [] {{.*}} -> tensor<[[D]]x[[N]]xf16>
// CHECK: greta_tile.dequant %{{.*}}, %[[S]], %[[M]]
func.func @minima(%x: tensor<?x4096xf16>, %q: tensor<4096x512xi32>, %s: tensor<4096x128xf16>, %m: tensor<4096x128xf16>) -> tensor<?x4096xf16> {
  %w = greta.dequant %q, %s, %m {group = 32} : tensor<4096x512xi32>, tensor<4096x128xf16>, tensor<4096x128xf16> -> tensor<4096x4096xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<?x4096xf16>, tensor<4096x4096xf16> -> tensor<?x4096xf16>
  return %0 : tensor<?x4096xf16>
}

// -----

// The scale of a column is loaded before the loop; what is computed is zero beyond K.
// CHECK-LABEL: greta_tile.func @bytes_0
// CHECK: %[[S:.*]] = greta_tile.load %arg1{{.*}} -> tensor<1x[[N:[0-9]+]]xf16>
// CHECK: scf.for
// CHECK: %[[Q:.*]] = greta_tile.load %arg0
// CHECK: arith.sitofp %[[Q]]
// CHECK: greta_tile.broadcast %[[S]]
// CHECK: %[[B:.*]] = arith.mulf
// CHECK: arith.cmpi slt
// CHECK: %[[M:.*]] = arith.select %{{.*}}, %[[B]]
// CHECK: greta_tile.dot %{{.*}}, %[[M]]
func.func @bytes(%x: tensor<?x1000xf16>, %q: tensor<512x1000xi8>, %s: tensor<512xf16>) -> tensor<?x512xf16> {
  %f = arith.sitofp %q : tensor<512x1000xi8> to tensor<512x1000xf16>
  %e = tensor.empty() : tensor<512x1000xf16>
  %b = linalg.broadcast ins(%s : tensor<512xf16>) outs(%e : tensor<512x1000xf16>) dimensions = [1]
  %w = arith.mulf %f, %b : tensor<512x1000xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<?x1000xf16>, tensor<512x1000xf16> -> tensor<?x512xf16>
  return %0 : tensor<?x512xf16>
}

// -----

// A norm: the loop multiplies by the weight and adds up squares of eight neighbours; rows are scaled after it.
// CHECK-LABEL: greta_tile.func @norm_0
// CHECK: %[[D:.*]]:2 = scf.for {{.*}} iter_args({{.*}}, %[[S:.*]] = %{{.*}}) -> (tensor<[[M:[0-9]+]]x[[N:[0-9]+]]xf32>, tensor<[[M]]x[[G:[0-9]+]]xf32>)
// CHECK: %[[X:.*]] = greta_tile.load %arg0{{.*}} -> tensor<[[M]]x[[K:[0-9]+]]xf16>
// CHECK: %[[W:.*]] = greta_tile.load %arg1{{.*}} -> tensor<1x[[K]]xf16>
// CHECK: greta_tile.broadcast %[[W]]
// CHECK: %[[A:.*]] = arith.mulf %[[X]]
// CHECK: greta_tile.dot %[[A]]
// CHECK: greta_tile.contract %[[X]], %[[X]], %[[S]] dims [1] : tensor<[[M]]x[[K]]xf16>, tensor<[[M]]x[[K]]xf16> -> tensor<[[M]]x[[G]]xf32>
// CHECK: %[[LINE:.*]] = greta_tile.reduce {arith.addf} %[[D]]#1 axis 1
// CHECK: %[[SUM:.*]] = greta_tile.reshape %[[LINE]]
// CHECK: %[[ROWS:.*]] = greta_tile.convert_layout %[[SUM]] : tensor<[[M]]x1xf32>
// CHECK: math.rsqrt
// CHECK: arith.mulf %[[D]]#0
func.func @norm(%x: tensor<?x4096xf16>, %w: tensor<4096xf16>, %b: tensor<256x4096xf16>) -> tensor<?x256xf16> {
  %a = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x4096xf16>, tensor<4096xf16> -> tensor<?x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x4096xf16>, tensor<256x4096xf16> -> tensor<?x256xf16>
  return %0 : tensor<?x256xf16>
}

// -----

// With few rows the squares are added up beside the sums.
// CHECK-LABEL: greta_tile.func @few_0
// CHECK: greta_tile.contract {{.*}} -> tensor<2x1x[[K:[0-9]+]]x1xf32>
// CHECK: greta_tile.contract %[[X:.*]], %[[X]], {{.*}} -> tensor<2x1x[[K]]x1xf32>
// CHECK: %[[R:.*]] = math.rsqrt {{.*}} : tensor<2x1x1x1xf32>
// CHECK: arith.mulf %{{.*}}, %[[R]] : tensor<2x1x1x1xf32>
func.func @few(%x: tensor<2x4096xf16>, %w: tensor<4096xf16>, %b: tensor<256x4096xf16>) -> tensor<2x256xf16> {
  %a = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<2x4096xf16>, tensor<4096xf16> -> tensor<2x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<2x4096xf16>, tensor<256x4096xf16> -> tensor<2x256xf16>
  return %0 : tensor<2x256xf16>
}
