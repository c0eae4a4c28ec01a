// Ops behind a GEMM join its kernel, and two GEMMs share one loop.
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

// In a skinny GEMM too, also of packed weights.
// CHECK-LABEL: func.func @packed
// CHECK: greta.kernel
// CHECK-COUNT-2: greta.dequant
// CHECK-COUNT-2: greta.matmul
// CHECK-NOT: greta.kernel
// TILE-LABEL: greta_tile.func @packed_0
// TILE: greta_tile.contract %[[A:[^,]*]], {{.*}} narrow
// TILE: greta_tile.contract %[[A]], {{.*}} narrow
func.func @packed(%x: tensor<2x64xf16>, %q: tensor<32x8xi32>, %s: tensor<32x2xf16>, %z: tensor<32x1xi32>,
                  %r: tensor<32x8xi32>, %t: tensor<32x2xf16>, %y: tensor<32x1xi32>) -> tensor<2x32xf16> {
  %g = greta.dequant %q, %s, %z {group = 32} : tensor<32x8xi32>, tensor<32x2xf16>, tensor<32x1xi32> -> tensor<32x64xf16>
  %u = greta.dequant %r, %t, %y {group = 32} : tensor<32x8xi32>, tensor<32x2xf16>, tensor<32x1xi32> -> tensor<32x64xf16>
  %0 = greta.matmul %x, %g {transpose_b, greta.config = {run = 8}} : tensor<2x64xf16>, tensor<32x64xf16> -> tensor<2x32xf16>
  %1 = greta.matmul %x, %u {transpose_b, greta.config = {run = 8}} : tensor<2x64xf16>, tensor<32x64xf16> -> tensor<2x32xf16>
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

// -----

// Rope of a product's columns: the view as heads lies in the kernel, work before it is done on heads.
// CHECK-LABEL: func.func @rope
// CHECK: %[[B:.*]] = tensor.expand_shape %arg2
// CHECK: greta.kernel(%arg0, %arg1, %[[B]], %arg3, %arg4)
// CHECK: %[[P:.*]] = greta.matmul
// CHECK: %[[H:.*]] = greta.heads %[[P]] : tensor<?x512xf16> -> tensor<?x4x128xf16>
// CHECK: greta.broadcast {{.*}} dims [1, 2]
// CHECK: arith.addf %[[H]]
// CHECK: greta.rope
// CHECK-NOT: greta.kernel
// TILE-LABEL: greta_tile.func @rope_0
// TILE: %[[SUM:.*]] = scf.for
// TILE: %[[NARROW:.*]] = arith.truncf %[[SUM]] : tensor<[[M:[0-9]+]]x[[N:[0-9]+]]xf32> to
// TILE: greta_tile.reshape %[[NARROW]] : tensor<[[M]]x[[N]]xf16> -> tensor<[[M]]x{{[0-9]+}}x2x64xf16>
// TILE: greta_tile.split
func.func @rope(%x: tensor<?x64xf16>, %w: tensor<512x64xf16>, %b: tensor<512xf16>, %cos: tensor<?x64xf32>, %sin: tensor<?x64xf32>) -> tensor<?x4x128xf16> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %x, %c0 : tensor<?x64xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<?x64xf16>, tensor<512x64xf16> -> tensor<?x512xf16>
  %e = tensor.empty(%t) : tensor<?x512xf16>
  %1 = linalg.broadcast ins(%b : tensor<512xf16>) outs(%e : tensor<?x512xf16>) dimensions = [0]
  %2 = arith.addf %0, %1 : tensor<?x512xf16>
  %3 = tensor.expand_shape %2 [[0], [1, 2]] output_shape [%t, 4, 128] : tensor<?x512xf16> into tensor<?x4x128xf16>
  %4 = greta.rope %3, %cos, %sin {style = "neox"} : tensor<?x4x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x4x128xf16>
  return %4 : tensor<?x4x128xf16>
}

// -----

// Not where others need the GEMM, or where whole heads are no whole tiles up to 256 columns.
// CHECK-LABEL: func.func @stored
// CHECK-NOT: greta.heads
// CHECK-LABEL: func.func @thin
// CHECK-NOT: greta.heads
func.func @stored(%x: tensor<32x64xf16>, %w: tensor<512x64xf16>, %cos: tensor<32x64xf32>, %sin: tensor<32x64xf32>) -> (tensor<32x4x128xf16>, tensor<32x512xf16>) {
  %0 = greta.matmul %x, %w {transpose_b} : tensor<32x64xf16>, tensor<512x64xf16> -> tensor<32x512xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [32, 4, 128] : tensor<32x512xf16> into tensor<32x4x128xf16>
  %2 = greta.rope %1, %cos, %sin {style = "neox"} : tensor<32x4x128xf16>, tensor<32x64xf32>, tensor<32x64xf32> -> tensor<32x4x128xf16>
  return %2, %0 : tensor<32x4x128xf16>, tensor<32x512xf16>
}
func.func @thin(%x: tensor<32x64xf16>, %w: tensor<136x64xf16>, %cos: tensor<32x17xf32>, %sin: tensor<32x17xf32>) -> tensor<32x4x34xf16> {
  %0 = greta.matmul %x, %w {transpose_b} : tensor<32x64xf16>, tensor<136x64xf16> -> tensor<32x136xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [32, 4, 34] : tensor<32x136xf16> into tensor<32x4x34xf16>
  %2 = greta.rope %1, %cos, %sin {style = "neox"} : tensor<32x4x34xf16>, tensor<32x17xf32>, tensor<32x17xf32> -> tensor<32x4x34xf16>
  return %2 : tensor<32x4x34xf16>
}

// -----

// In a skinny GEMM blocks of B are those of heads, two halves in each lane; a norm comes along, and packed weights, but no other work on B.
// CHECK-LABEL: func.func @few
// CHECK: greta.kernel
// CHECK: greta.rms_norm
// CHECK: greta.heads
// CHECK: greta.rope
// CHECK-NOT: greta.kernel
// TILE-LABEL: greta_tile.func @few_0
// TILE: greta_tile.load %arg{{.*}} strides [0, 8192, 4096, 64, {{.*}}, 1] {{.*}} -> tensor<1x[[H:[0-9]+]]x2x[[D:[0-9]+]]x[[K:[0-9]+]]x[[R:[0-9]+]]xf16>
// TILE: greta_tile.contract {{.*}} -> tensor<1x[[H]]x2x[[D]]x[[K]]x1xf32>
// TILE-NOT: greta_tile.reshape {{.*}}xf16>
// TILE: %[[PAIRS:.*]] = greta_tile.trans %{{.*}} [0, 1, 3, 2]
// TILE: greta_tile.split %[[PAIRS]]
func.func @few(%x: tensor<1x64xf16>, %v: tensor<64xf16>, %w: tensor<512x64xf16>, %cos: tensor<1x64xf32>, %sin: tensor<1x64xf32>) -> tensor<1x4x128xf16> {
  %a = greta.rms_norm %x, %v {eps = 1.0e-5 : f32} : tensor<1x64xf16>, tensor<64xf16> -> tensor<1x64xf16>
  %0 = greta.matmul %a, %w {transpose_b} : tensor<1x64xf16>, tensor<512x64xf16> -> tensor<1x512xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [1, 4, 128] : tensor<1x512xf16> into tensor<1x4x128xf16>
  %2 = greta.rope %1, %cos, %sin {style = "neox"} : tensor<1x4x128xf16>, tensor<1x64xf32>, tensor<1x64xf32> -> tensor<1x4x128xf16>
  return %2 : tensor<1x4x128xf16>
}

// CHECK-LABEL: func.func @few_packed
// CHECK: greta.kernel
// CHECK: greta.dequant
// CHECK: greta.rope
// CHECK-NOT: greta.kernel
func.func @few_packed(%x: tensor<1x64xf16>, %q: tensor<512x8xi32>, %s: tensor<512x2xf16>, %z: tensor<512x1xi32>, %cos: tensor<1x64xf32>, %sin: tensor<1x64xf32>) -> tensor<1x4x128xf16> {
  %w = greta.dequant %q, %s, %z {group = 32} : tensor<512x8xi32>, tensor<512x2xf16>, tensor<512x1xi32> -> tensor<512x64xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<1x64xf16>, tensor<512x64xf16> -> tensor<1x512xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [1, 4, 128] : tensor<1x512xf16> into tensor<1x4x128xf16>
  %2 = greta.rope %1, %cos, %sin {style = "neox"} : tensor<1x4x128xf16>, tensor<1x64xf32>, tensor<1x64xf32> -> tensor<1x4x128xf16>
  return %2 : tensor<1x4x128xf16>
}

// With 5 to 64 rows packed weights go straight to the registers of matrix instructions, which know no heads: rope has a kernel of its own.
// CHECK-LABEL: func.func @some_packed
// CHECK: greta.kernel
// CHECK: greta.dequant
// CHECK-NOT: greta.heads
// CHECK: greta.yield
// CHECK: greta.kernel
// CHECK: greta.rope
func.func @some_packed(%x: tensor<8x64xf16>, %q: tensor<512x8xi32>, %s: tensor<512x2xf16>, %cos: tensor<8x64xf32>, %sin: tensor<8x64xf32>) -> tensor<8x4x128xf16> {
  %w = greta.dequant %q, %s {group = 32} : tensor<512x8xi32>, tensor<512x2xf16> -> tensor<512x64xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<8x64xf16>, tensor<512x64xf16> -> tensor<8x512xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [8, 4, 128] : tensor<8x512xf16> into tensor<8x4x128xf16>
  %2 = greta.rope %1, %cos, %sin {style = "neox"} : tensor<8x4x128xf16>, tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x4x128xf16>
  return %2 : tensor<8x4x128xf16>
}

// Thirteen buffers fit beside few scalars into 128 bytes of push constants: static extents have none.
// CHECK-LABEL: func.func @many_buffers
// CHECK: greta.kernel
// CHECK-NOT: greta.kernel
func.func @many_buffers(%x: tensor<1x64xf16>, %q0: tensor<512x8xi32>, %s0: tensor<512x2xf16>, %z0: tensor<512x1xi32>, %q1: tensor<256x8xi32>, %s1: tensor<256x2xf16>, %z1: tensor<256x1xi32>, %q2: tensor<128x8xi32>, %s2: tensor<128x2xf16>, %z2: tensor<128x1xi32>) -> (tensor<1x512xf16>, tensor<1x256xf16>, tensor<1x128xf16>) {
  %w0 = greta.dequant %q0, %s0, %z0 {group = 32} : tensor<512x8xi32>, tensor<512x2xf16>, tensor<512x1xi32> -> tensor<512x64xf16>
  %0 = greta.matmul %x, %w0 {transpose_b} : tensor<1x64xf16>, tensor<512x64xf16> -> tensor<1x512xf16>
  %w1 = greta.dequant %q1, %s1, %z1 {group = 32} : tensor<256x8xi32>, tensor<256x2xf16>, tensor<256x1xi32> -> tensor<256x64xf16>
  %1 = greta.matmul %x, %w1 {transpose_b} : tensor<1x64xf16>, tensor<256x64xf16> -> tensor<1x256xf16>
  %w2 = greta.dequant %q2, %s2, %z2 {group = 32} : tensor<128x8xi32>, tensor<128x2xf16>, tensor<128x1xi32> -> tensor<128x64xf16>
  %2 = greta.matmul %x, %w2 {transpose_b} : tensor<1x64xf16>, tensor<128x64xf16> -> tensor<1x128xf16>
  return %0, %1, %2 : tensor<1x512xf16>, tensor<1x256xf16>, tensor<1x128xf16>
}

// Spaces side by side may have 256 bytes: these have seventeen buffers.
// CHECK-LABEL: func.func @seventeen_buffers
// CHECK: greta.kernel
// CHECK-NOT: greta.kernel
func.func @seventeen_buffers(%x: tensor<1x64xf16>, %q0: tensor<512x8xi32>, %s0: tensor<512x2xf16>, %m0: tensor<512x2xf16>, %q1: tensor<256x8xi32>, %s1: tensor<256x2xf16>, %m1: tensor<256x2xf16>, %q2: tensor<128x8xi32>, %s2: tensor<128x2xf16>, %m2: tensor<128x2xf16>, %q3: tensor<64x8xi32>, %s3: tensor<64x2xf16>, %m3: tensor<64x2xf16>) -> (tensor<1x512xf16>, tensor<1x256xf16>, tensor<1x128xf16>, tensor<1x64xf16>) {
  %w0 = greta.dequant %q0, %s0, %m0 {format = "q4_k", group = 32} : tensor<512x8xi32>, tensor<512x2xf16>, tensor<512x2xf16> -> tensor<512x64xf16>
  %0 = greta.matmul %x, %w0 {transpose_b} : tensor<1x64xf16>, tensor<512x64xf16> -> tensor<1x512xf16>
  %w1 = greta.dequant %q1, %s1, %m1 {format = "q4_k", group = 32} : tensor<256x8xi32>, tensor<256x2xf16>, tensor<256x2xf16> -> tensor<256x64xf16>
  %1 = greta.matmul %x, %w1 {transpose_b} : tensor<1x64xf16>, tensor<256x64xf16> -> tensor<1x256xf16>
  %w2 = greta.dequant %q2, %s2, %m2 {format = "q4_k", group = 32} : tensor<128x8xi32>, tensor<128x2xf16>, tensor<128x2xf16> -> tensor<128x64xf16>
  %2 = greta.matmul %x, %w2 {transpose_b} : tensor<1x64xf16>, tensor<128x64xf16> -> tensor<1x128xf16>
  %w3 = greta.dequant %q3, %s3, %m3 {format = "q4_k", group = 32} : tensor<64x8xi32>, tensor<64x2xf16>, tensor<64x2xf16> -> tensor<64x64xf16>
  %3 = greta.matmul %x, %w3 {transpose_b} : tensor<1x64xf16>, tensor<64x64xf16> -> tensor<1x64xf16>
  return %0, %1, %2, %3 : tensor<1x512xf16>, tensor<1x256xf16>, tensor<1x128xf16>, tensor<1x64xf16>
}

// CHECK-LABEL: func.func @few_bytes
// CHECK: arith.sitofp
// CHECK: greta.matmul
// CHECK: greta.kernel
// CHECK: greta.rope
func.func @few_bytes(%x: tensor<1x64xf16>, %q: tensor<512x64xi8>, %cos: tensor<1x64xf32>, %sin: tensor<1x64xf32>) -> tensor<1x4x128xf16> {
  %w = arith.sitofp %q : tensor<512x64xi8> to tensor<512x64xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<1x64xf16>, tensor<512x64xf16> -> tensor<1x512xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [1, 4, 128] : tensor<1x512xf16> into tensor<1x4x128xf16>
  %2 = greta.rope %1, %cos, %sin {style = "neox"} : tensor<1x4x128xf16>, tensor<1x64xf32>, tensor<1x64xf32> -> tensor<1x4x128xf16>
  return %2 : tensor<1x4x128xf16>
}
