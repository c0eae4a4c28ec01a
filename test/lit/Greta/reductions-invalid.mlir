// RUN: greta-opt %s --split-input-file --verify-diagnostics

func.func @kind(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'greta.reduce_rows' op has kind "mean"; it is "add", "mul", "max" or "min"}}
  %0 = greta.reduce_rows "mean" %x : tensor<4x8xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @shape(%x: tensor<4x8xf16>) -> tensor<4xf16> {
  // expected-error@+1 {{'greta.reduce_rows' op makes 'tensor<4xf16>' of 'tensor<4x8xf16>'; it takes [.., D] to [..], floats to f32}}
  %0 = greta.reduce_rows "add" %x : tensor<4x8xf16> -> tensor<4xf16>
  return %0 : tensor<4xf16>
}

// -----

func.func @heads(%x: tensor<?x64xf16>) -> tensor<?x2x16xf16> {
  // expected-error@+1 {{'greta.heads' op makes 'tensor<?x2x16xf16>' of 'tensor<?x64xf16>'; it takes [T, H * D] to [T, H, D]}}
  %0 = greta.heads %x : tensor<?x64xf16> -> tensor<?x2x16xf16>
  return %0 : tensor<?x2x16xf16>
}
