// RUN: greta-opt --split-input-file --verify-diagnostics --greta-to-tile %s

#s = affine_map<()[s0] -> (s0, 8)>
func.func @unconfigured(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has no 'config'; run greta-configure first}}
  %0 = greta.kernel(%x) {shapes = [#s, #s]} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    %1 = greta.softmax %a : tensor<?x8xf32> -> tensor<?x8xf32>
    greta.yield %1 : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 8)>
func.func @cut(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has a 'config' whose space 0 reduces rows longer than its 4 'columns'; set 'loop'}}
  %0 = greta.kernel(%x) {shapes = [#s, #s], config = {block_size = 64, wave_size = 64, spaces = [{rows = [1], columns = 4}]}} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    %1 = greta.softmax %a : tensor<?x8xf32> -> tensor<?x8xf32>
    greta.yield %1 : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 8)>
func.func @rows(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has a 'config' whose space 0 needs 'columns', and 'rows' for 1 groups of row dimensions, and for a product 'depth'}}
  %0 = greta.kernel(%x) {shapes = [#s, #s], config = {block_size = 64, wave_size = 64, spaces = [{rows = [1, 1], columns = 8}]}} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    %1 = greta.softmax %a : tensor<?x8xf32> -> tensor<?x8xf32>
    greta.yield %1 : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 8)>
func.func private @taken_0(tensor<?x8xf32>)
func.func @taken(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{would become @taken_0, which exists; rename that function}}
  %0 = greta.kernel(%x) {shapes = [#s, #s]} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    %1 = greta.softmax %a : tensor<?x8xf32> -> tensor<?x8xf32>
    greta.yield %1 : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}
