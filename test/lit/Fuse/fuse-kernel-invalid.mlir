// The verifiers of greta.kernel and greta.broadcast refuse these.
// RUN: greta-opt --split-input-file --verify-diagnostics %s

#s = affine_map<()[s0] -> (s0, 8)>
func.func @shapes(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has 1 shapes for 2 operands and results}}
  %0 = greta.kernel(%x) {shapes = [#s]} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    greta.yield %a : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 9)>
func.func @extent(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has the shape affine_map<()[s0] -> (s0, 9)> for 'tensor<?x8xf32>'}}
  %0 = greta.kernel(%x) {shapes = [#s, #s]} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    greta.yield %a : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 8)>
func.func @arguments(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has a space whose arguments are not the operands}}
  %0 = greta.kernel(%x) {shapes = [#s, #s]} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf16>):
    %1 = arith.extf %a : tensor<?x8xf16> to tensor<?x8xf32>
    greta.yield %1 : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 8)>
func.func @results(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{yields types that are not the results'}}
  %0 = greta.kernel(%x) {shapes = [#s, #s]} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    greta.yield %a, %a : tensor<?x8xf32>, tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}

// -----

func.func @repeats(%x: tensor<4xf32>) -> tensor<8x5xf32> {
  // expected-error@+1 {{repeats dimension 0 of 'tensor<4xf32>'; only new dimensions repeat}}
  %0 = greta.broadcast %x dims [1] : tensor<4xf32> -> tensor<8x5xf32>
  return %0 : tensor<8x5xf32>
}

// -----

func.func @heads(%x: tensor<4x12xf32>) -> tensor<4x2x8xf32> {
  // expected-error@+1 {{makes 'tensor<4x2x8xf32>' of 'tensor<4x12xf32>'; it takes [T, H * D] to [T, H, D]}}
  %0 = greta.heads %x : tensor<4x12xf32> -> tensor<4x2x8xf32>
  return %0 : tensor<4x2x8xf32>
}

// -----

func.func @order(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@+1 {{they increase and are below the rank 2}}
  %0 = greta.broadcast %x dims [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 8)>
#v = affine_map<()[s0] -> (16, 1)>
func.func @view(%x: tensor<?x16xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has the view affine_map<()[s0] -> (16, 1)> for 'tensor<?x8xf32>'; a view is a map over symbols whose results are a stride per dimension and an offset}}
  %0 = greta.kernel(%x) {shapes = [#s, #s], views = [#v]} : (tensor<?x16xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    greta.yield %a : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 8)>
func.func @views(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has 2 views for 1 operands}}
  %0 = greta.kernel(%x) {shapes = [#s, #s], views = [unit, unit]} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    greta.yield %a : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 8)>
func.func @other_views(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has the view 3 : i64; a view is a map over symbols, or unit}}
  %0 = greta.kernel(%x) {shapes = [#s, #s], views = [3]} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    greta.yield %a : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 8)>
#v = affine_map<()[s0] -> (16, 1, 8)>
func.func @viewed_type(%x: tensor<?x16xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has spaces that do not see the same of operand 0}}
  %0 = greta.kernel(%x) {shapes = [#s, #s], views = [#v]} : (tensor<?x16xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf16>):
    %1 = arith.extf %a : tensor<?x8xf16> to tensor<?x8xf32>
    greta.yield %1 : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}

// -----

#s = affine_map<(d0) -> (d0, 8)>
func.func @dims(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{a shape is a map over symbols with one result per dimension}}
  %0 = greta.kernel(%x) {shapes = [#s, #s]} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    greta.yield %a : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 8)>
func.func @no_space(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has no space}}
  %0 = "greta.kernel"(%x) <{shapes = [#s, #s]}> : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

func.func @element(%w: tensor<8xf16>) -> tensor<4x8xf32> {
  // expected-error@+1 {{'greta.broadcast' op changes the element type}}
  %0 = "greta.broadcast"(%w) <{dims = array<i64: 1>}> : (tensor<8xf16>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @too_many(%w: tensor<8xf16>) -> tensor<4x8xf16> {
  // expected-error@+1 {{names 2 dimensions for 'tensor<8xf16>'}}
  %0 = "greta.broadcast"(%w) <{dims = array<i64: 0, 1>}> : (tensor<8xf16>) -> tensor<4x8xf16>
  return %0 : tensor<4x8xf16>
}

// -----

#s = affine_map<()[s0] -> (s0, 8)>
func.func @terminator(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has a space that does not end in greta.yield}}
  %0 = greta.kernel(%x) {shapes = [#s, #s]} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    llvm.unreachable
  })
  return %0 : tensor<?x8xf32>
}
