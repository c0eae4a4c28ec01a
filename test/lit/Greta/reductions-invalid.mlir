// RUN: greta-opt %s --split-input-file --verify-diagnostics

func.func @results(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'greta.reduce_rows' op makes 1 results of 2 tensors}}
  %0 = greta.reduce_rows %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    greta.yield %a : f32
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @type(%x: tensor<4x8xf16>) -> tensor<4xf16> {
  // expected-error@+1 {{'greta.reduce_rows' op makes 'tensor<4xf16>' of 'tensor<4x8xf16>'; it takes [.., D] of f32, i32 or i1 to [..], all of one shape}}
  %0 = greta.reduce_rows %x : (tensor<4x8xf16>) -> tensor<4xf16> {
  ^bb0(%a: f16, %b: f16):
    greta.yield %a : f16
  }
  return %0 : tensor<4xf16>
}

// -----

func.func @shapes(%x: tensor<4x8xf32>, %y: tensor<4x9xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error@+1 {{'greta.reduce_rows' op makes 'tensor<4xf32>' of 'tensor<4x9xf32>'; it takes [.., D] of f32, i32 or i1 to [..], all of one shape}}
  %0:2 = greta.reduce_rows %x, %y : (tensor<4x8xf32>, tensor<4x9xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    greta.yield %a, %b : f32, f32
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @combination(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'greta.reduce_rows' op has a combination that does not make one element of each tensor of two}}
  %0 = greta.reduce_rows %x : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    greta.yield %a, %b : f32, f32
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @effects(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %0 = greta.reduce_rows %x : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    // expected-error@+1 {{'tensor.empty' op stands in a combination of elements, which is arith and math on f32, i32 and i1 that is defined for any operands}}
    %0 = tensor.empty() : tensor<4xf32>
    greta.yield %a : f32
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @heads(%x: tensor<?x64xf16>) -> tensor<?x2x16xf16> {
  // expected-error@+1 {{'greta.heads' op makes 'tensor<?x2x16xf16>' of 'tensor<?x64xf16>'; it takes [T, H * D] to [T, H, D]}}
  %0 = greta.heads %x : tensor<?x64xf16> -> tensor<?x2x16xf16>
  return %0 : tensor<?x2x16xf16>
}
