// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --canonicalize --cse %s | FileCheck %s

// A K tile of one tap: each row has a bit for each tap, set before the loop where the tap is in its image. The loop moves the rows' offsets by a scalar, from
// one row of taps to the next and by what is left of K, and looks at the tap's bit.
// CHECK-LABEL: greta_tile.func @taps_0(%arg0: !greta_tile.ptr<f16> {greta.pointer_range}, %arg1: !greta_tile.ptr<f16>
// CHECK: arith.remui {{.*}} : tensor<[[M:[0-9]+]]x1xi32>
// CHECK-COUNT-6: arith.cmpi ult, {{.*}} : tensor<[[M]]x1xi32>
// CHECK: %[[INSIDE:.*]] = arith.ori {{.*}} : tensor<[[M]]x1xi32>
// CHECK-NEXT: scf.for %[[K:.*]] = %c0_i32 to %c576_i32
// CHECK: %[[TAP:.*]] = arith.divui %[[K]], %c64_i32 : i32
// CHECK: %[[ROW:.*]] = arith.divui %[[K]], %c192_i32 : i32
// CHECK: arith.muli %[[ROW]], %c1792_i32 : i32
// CHECK: %[[SHIFT:.*]] = arith.addi {{.*}} : i32
// CHECK: %[[BIT:.*]] = arith.shli %c1_i32, %[[TAP]] : i32
// CHECK: %[[BITS:.*]] = greta_tile.splat %[[BIT]]
// CHECK: %[[BOTH:.*]] = arith.andi %[[INSIDE]], %[[BITS]] : tensor<[[M]]x1xi32>
// CHECK: %[[MASK:.*]] = arith.cmpi eq, %[[BOTH]], %[[BITS]] : tensor<[[M]]x1xi32>
// CHECK: greta_tile.splat %[[SHIFT]]
// CHECK: arith.select %[[MASK]], {{.*}} : tensor<[[M]]x1xi1>, tensor<[[M]]x1xi32>
// CHECK: %[[V:.*]] = greta_tile.load_scattered %{{[0-9]*}} : tensor<[[M]]x
// CHECK: %[[A:.*]] = arith.select %{{.*}}, %[[V]]
// CHECK: greta_tile.dot %[[A]]
func.func @taps(%x: tensor<8x28x28x64xf16>, %w: tensor<64x3x3x64xf16>) -> tensor<8x28x28x64xf16> {
  %0 = greta.conv2d %x, %w {padding = [1, 1, 1, 1]} : tensor<8x28x28x64xf16>, tensor<64x3x3x64xf16> -> tensor<8x28x28x64xf16>
  return %0 : tensor<8x28x28x64xf16>
}

// -----

// More taps than i32 has bits: a bit for each column of taps, and behind the seven of these one for each row. Each column of the block has a tap of its own.
// CHECK-LABEL: greta_tile.func @many_0(
// CHECK-COUNT-14: arith.cmpi ult, {{.*}} : tensor<[[M:[0-9]+]]x1xi32>
// CHECK: scf.for
// CHECK-DAG: %[[COLUMN:.*]] = arith.shli %cst{{[_0-9]*}}, {{.*}} : tensor<1x[[K:[0-9]+]]xi32>
// CHECK-DAG: %[[ROW:.*]] = arith.shli %cst{{[_0-9]*}}, {{.*}} : tensor<1x[[K]]xi32>
// CHECK: arith.ori {{.*}} : tensor<1x[[K]]xi32>
// CHECK: arith.andi {{.*}} : tensor<[[M]]x[[K]]xi32>
// CHECK: arith.cmpi eq, {{.*}} : tensor<[[M]]x[[K]]xi32>
// CHECK: greta_tile.load_scattered
func.func @many(%x: tensor<32x224x224x3xf16>, %w: tensor<64x7x7x3xf16>) -> tensor<32x112x112x64xf16> {
  %0 = greta.conv2d %x, %w {strides = [2, 2], padding = [3, 3, 3, 3]} : tensor<32x224x224x3xf16>, tensor<64x7x7x3xf16> -> tensor<32x112x112x64xf16>
  return %0 : tensor<32x112x112x64xf16>
}

// -----

// More rows of taps than bits: the loop compares places with the image's edges.
// CHECK-LABEL: greta_tile.func @tall_0(
// CHECK-NOT: arith.shli
// CHECK: scf.for
// CHECK: arith.cmpi ult, {{.*}} : tensor<[[M:[0-9]+]]x1xi32>
// CHECK: greta_tile.load_scattered
// CHECK-NOT: arith.shli
func.func @tall(%x: tensor<8x64x4x64xf16>, %w: tensor<64x40x1x64xf16>) -> tensor<8x64x4x64xf16> {
  %0 = greta.conv2d %x, %w {padding = [20, 0, 19, 0]} : tensor<8x64x4x64xf16>, tensor<64x40x1x64xf16> -> tensor<8x64x4x64xf16>
  return %0 : tensor<8x64x4x64xf16>
}

// -----

// Three channels: each column of the block has a tap. Nobody knows how many images there are, so offsets have 64 bits; without padding nothing is
// masked but what lies beyond K.
// CHECK-LABEL: greta_tile.func @columns_0(%arg0: !greta_tile.ptr<f16>, %arg1
// CHECK: arith.divui {{.*}} : tensor<1x[[K:[0-9]+]]xi32>
// CHECK-NOT: arith.cmpi ult
// CHECK: arith.cmpi slt, {{.*}} : tensor<1x[[K]]xi32>
// CHECK: arith.select {{.*}} : tensor<[[M:[0-9]+]]x[[K]]xi1>, tensor<[[M]]x[[K]]xi64>
// CHECK: greta_tile.load_scattered
func.func @columns(%x: tensor<?x30x30x3xf16>, %w: tensor<64x3x3x3xf16>) -> tensor<?x28x28x64xf16> {
  %0 = greta.conv2d %x, %w : tensor<?x30x30x3xf16>, tensor<64x3x3x3xf16> -> tensor<?x28x28x64xf16>
  return %0 : tensor<?x28x28x64xf16>
}

// -----

// One image of more elements than i32 counts: products have 64 bits, and the buffer has no small range.
// CHECK-LABEL: greta_tile.func @large_0(%arg0: !greta_tile.ptr<i8>, %arg1
// CHECK: arith.muli {{.*}} : tensor<[[M:[0-9]+]]x1xi64>
// CHECK: arith.muli {{.*}} : tensor<[[M]]x1xi64>
// CHECK: greta_tile.load_scattered
func.func @large(%x: tensor<1x32768x32768x3xi8>, %w: tensor<16x3x3x3xi8>) -> tensor<1x16383x16383x16xi32> {
  %0 = greta.conv2d %x, %w {strides = [2, 2]} : tensor<1x32768x32768x3xi8>, tensor<16x3x3x3xi8> -> tensor<1x16383x16383x16xi32>
  return %0 : tensor<1x16383x16383x16xi32>
}

// -----

// So where taps are far outside of an image that is small.
// CHECK-LABEL: greta_tile.func @outside_0(
// CHECK-DAG: arith.muli {{.*}} : tensor<{{[0-9]+}}x1xi64>
// CHECK-DAG: arith.muli {{.*}} : tensor<1x{{[0-9]+}}xi64>
// CHECK: greta_tile.load_scattered
func.func @outside(%x: tensor<?x4x65536x1xf16>, %w: tensor<16x2x1x1xf16>) -> tensor<?x4x65536x16xf16> {
  %0 = greta.conv2d %x, %w {padding = [32768, 0, 0, 0], dilations = [32768, 1]} : tensor<?x4x65536x1xf16>, tensor<16x2x1x1xf16> -> tensor<?x4x65536x16xf16>
  return %0 : tensor<?x4x65536x16xf16>
}

// -----

// The largest stride need not be that of the first dimension.
// CHECK-LABEL: greta_tile.func @transposed_0(%arg0: !greta_tile.ptr<f16>, %arg1
// CHECK: arith.muli {{.*}} : tensor<{{[0-9]+}}x1xi64>
func.func @transposed(%m: tensor<4096x4096x64x4xf16>, %w: tensor<16x3x3x4xf16>) -> tensor<64x4094x4094x16xf16> {
  %e = tensor.empty() : tensor<64x4096x4096x4xf16>
  %x = linalg.transpose ins(%m : tensor<4096x4096x64x4xf16>) outs(%e : tensor<64x4096x4096x4xf16>) permutation = [2, 0, 1, 3]
  %0 = greta.conv2d %x, %w : tensor<64x4096x4096x4xf16>, tensor<16x3x3x4xf16> -> tensor<64x4094x4094x16xf16>
  return %0 : tensor<64x4094x4094x16xf16>
}

// -----

// An image that may be empty has no element to read: its last row is an argument, and launches refuse negative ones.
// CHECK: affine_map<()[s0] -> ({{.*}}, s0 - 1)>
// CHECK-LABEL: greta_tile.func @rows_0(
// CHECK: arith.cmpi ule
// CHECK: greta_tile.load_scattered
func.func @rows(%x: tensor<1x?x8x32xf16>, %w: tensor<16x1x1x32xf16>) -> tensor<1x?x8x16xf16> {
  %0 = greta.conv2d %x, %w {padding = [1, 0, 1, 0]} : tensor<1x?x8x32xf16>, tensor<16x1x1x32xf16> -> tensor<1x?x8x16xf16>
  return %0 : tensor<1x?x8x16xf16>
}

// -----

// Channels first: each column of B has its bits, each k a channel and a tap within it. An image is a GEMM of its own, so its elements are counted in 32 bits
// though nobody knows how many images there are.
// CHECK-LABEL: greta_tile.func @first_0(%arg0: !greta_tile.ptr<f16>, %arg1
// CHECK-COUNT-3: arith.ori
// CHECK: %[[INSIDE:.*]] = arith.ori {{.*}} : tensor<1x[[N:[0-9]+]]xi32>
// CHECK: scf.for
// CHECK: greta_tile.load %{{.*}} -> tensor<[[M:[0-9]+]]x[[K:[0-9]+]]xf16>
// CHECK: %[[CHANNEL:.*]] = arith.divui %{{.*}}, %{{.*}} : tensor<[[K]]x1xi32>
// CHECK: %[[WHOLE:.*]] = arith.muli %[[CHANNEL]]
// CHECK: %[[TAP:.*]] = arith.subi %{{.*}}, %[[WHOLE]]
// CHECK: arith.shli %{{.*}}, %[[TAP]] : tensor<[[K]]x1xi32>
// CHECK: greta_tile.broadcast %[[INSIDE]] : tensor<1x[[N]]xi32> -> tensor<[[K]]x[[N]]xi32>
// CHECK: arith.select {{.*}} : tensor<[[K]]x[[N]]xi1>, tensor<[[K]]x[[N]]xi32>
// CHECK: greta_tile.load_scattered %{{.*}} -> tensor<[[K]]x[[N]]xf16>
// CHECK: greta_tile.dot %{{.*}} : tensor<[[M]]x[[K]]xf16>, tensor<[[K]]x[[N]]xf16>
func.func @first(%x: tensor<?x64x28x28xf16>, %w: tensor<64x64x3x3xf16>) -> tensor<?x64x28x28xf16> {
  %0 = greta.conv2d %x, %w {padding = [1, 1, 1, 1], layout = "nchw"} : tensor<?x64x28x28xf16>, tensor<64x64x3x3xf16> -> tensor<?x64x28x28xf16>
  return %0 : tensor<?x64x28x28xf16>
}

// -----

// One tap that moves: the loop moves pointers by channels, and nothing has to be masked.
// CHECK-LABEL: greta_tile.func @moving_0(
// CHECK: scf.for %{{.*}} = %c0_i32 to %c512_i32
// CHECK-NOT: arith.divui
// CHECK-NOT: arith.select
// CHECK: greta_tile.load_scattered
func.func @moving(%x: tensor<8x512x28x28xf16>, %w: tensor<64x512x1x1xf16>) -> tensor<8x64x14x14xf16> {
  %0 = greta.conv2d %x, %w {strides = [2, 2], layout = "nchw"} : tensor<8x512x28x28xf16>, tensor<64x512x1x1xf16> -> tensor<8x64x14x14xf16>
  return %0 : tensor<8x64x14x14xf16>
}
