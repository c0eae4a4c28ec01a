// GEMMs that cannot share a kernel.
// RUN: greta-opt --split-input-file --verify-diagnostics --greta-configure=target=gfx942 %s

#s = affine_map<() -> (32, 32)>
func.func @other(%x: tensor<32x32xf16>, %y: tensor<32x32xf16>, %b: tensor<32x32xf16>) -> tensor<32x32xf16> {
  %0 = greta.kernel(%x, %y, %b) {shapes = [#s, #s, #s, #s]} : (tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf16>) -> tensor<32x32xf16> ({
  ^bb0(%p: tensor<32x32xf16>, %q: tensor<32x32xf16>, %r: tensor<32x32xf16>):
    %1 = greta.matmul %p, %r : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf16>
    // expected-error@+1 {{is another GEMM of its kernel; two may be in one, of the same 'a' and the same types}}
    %2 = greta.matmul %q, %r : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf16>
    %3 = arith.addf %1, %2 : tensor<32x32xf16>
    greta.yield %3 : tensor<32x32xf16>
  })
  return %0 : tensor<32x32xf16>
}

// -----
func.func @row_op_in_part(%x: tensor<8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = greta.kernel(%x, %y) {shapes = [affine_map<() -> (8)>, affine_map<() -> (4, 8)>, affine_map<() -> (4, 8)>]} : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32> ({
  ^bb0(%a: tensor<8xf32>, %b: tensor<4x8xf32>):
    // expected-error@+1 {{has a result that is not of its space's shape; put it into another kernel}}
    %1 = greta.softmax %a : tensor<8xf32> -> tensor<8xf32>
    %2 = greta.broadcast %1 dims [1] : tensor<8xf32> -> tensor<4x8xf32>
    %3 = arith.addf %2, %b : tensor<4x8xf32>
    greta.yield %3 : tensor<4x8xf32>
  })
  return %0 : tensor<4x8xf32>
}
