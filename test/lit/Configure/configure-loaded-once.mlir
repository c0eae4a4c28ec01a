// An operand's values that several ops use are loaded once, and that is what the tile model counts: a product of B with itself gets the tile of B, a product of two
// matrices a narrower one.
// RUN: greta-opt --greta-annotate-shapes --greta-fuse --greta-configure=target=gfx90a %s | FileCheck %s

// CHECK-LABEL: func.func @itself
// CHECK: columns = 256
func.func @itself(%x: tensor<4096x4096xf16>, %w: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %b = arith.mulf %w, %w : tensor<4096x4096xf16>
  %0 = greta.matmul %x, %b {transpose_b} : tensor<4096x4096xf16>, tensor<4096x4096xf16> -> tensor<4096x4096xf16>
  return %0 : tensor<4096x4096xf16>
}

// CHECK-LABEL: func.func @another
// CHECK: columns = 128
func.func @another(%x: tensor<4096x4096xf16>, %w: tensor<4096x4096xf16>, %v: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %b = arith.mulf %w, %v : tensor<4096x4096xf16>
  %0 = greta.matmul %x, %b {transpose_b} : tensor<4096x4096xf16>, tensor<4096x4096xf16> -> tensor<4096x4096xf16>
  return %0 : tensor<4096x4096xf16>
}
