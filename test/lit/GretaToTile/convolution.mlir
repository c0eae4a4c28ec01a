// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --canonicalize --cse %s | FileCheck %s

// A K tile of one tap: the loop moves the rows' offsets by a scalar, and asks of each row whether the tap is in its image.
// CHECK-LABEL: greta_tile.func @taps_0(%arg0: !greta_tile.ptr<f16> {greta.pointer_range}, %arg1: !greta_tile.ptr<f16>
// CHECK: arith.remui {{.*}} : tensor<[[M:[0-9]+]]x1xi32>
// CHECK: scf.for %[[K:.*]] = %c0_i32 to %c576_i32
// CHECK: arith.divui %[[K]], %c64_i32 : i32
// CHECK: arith.remui %[[K]], %c64_i32 : i32
// CHECK: arith.cmpi ult, {{.*}} : tensor<[[M]]x1xi32>
// CHECK: arith.cmpi ult, {{.*}} : tensor<[[M]]x1xi32>
// CHECK: %[[INSIDE:.*]] = arith.andi {{.*}} : tensor<[[M]]x1xi1>
// CHECK: arith.select %[[INSIDE]], {{.*}} : tensor<[[M]]x1xi1>, tensor<[[M]]x1xi32>
// CHECK: %[[V:.*]] = greta_tile.load_scattered %{{[0-9]*}} : tensor<[[M]]x
// CHECK: %[[A:.*]] = arith.select %{{.*}}, %[[V]]
// CHECK: greta_tile.dot %[[A]]
func.func @taps(%x: tensor<8x28x28x64xf16>, %w: tensor<64x3x3x64xf16>) -> tensor<8x28x28x64xf16> {
  %0 = greta.conv2d %x, %w {padding = [1, 1, 1, 1]} : tensor<8x28x28x64xf16>, tensor<64x3x3x64xf16> -> tensor<8x28x28x64xf16>
  return %0 : tensor<8x28x28x64xf16>
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
