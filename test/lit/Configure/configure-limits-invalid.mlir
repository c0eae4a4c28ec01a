// Spaces with more elements along a dimension than an i32 counts are refused.
// RUN: greta-opt --split-input-file --verify-diagnostics --greta-fuse --greta-configure=target=gfx942 %s

func.func @columns(%x: tensor<3x2147483648xf16>) -> tensor<3x2147483648xf16> {
  // expected-error@+1 {{has rows of 2147483648 elements; they may have up to 2147483647: split the tensor}}
  %0 = math.exp %x : tensor<3x2147483648xf16>
  return %0 : tensor<3x2147483648xf16>
}

// -----

func.func @rows(%x: tensor<2147483648x8xf16>) -> tensor<2147483648x8xf16> {
  // expected-error@+1 {{rows; it may have up to 2147483647}}
  %0 = greta.softmax %x : tensor<2147483648x8xf16> -> tensor<2147483648x8xf16>
  return %0 : tensor<2147483648x8xf16>
}
