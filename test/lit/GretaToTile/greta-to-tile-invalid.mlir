// RUN: greta-opt --split-input-file --verify-diagnostics --greta-to-tile %s

#s = affine_map<()[s0] -> (s0, 8)>
func.func @unconfigured(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has no schedule; run greta-configure first}}
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
  // expected-error@+1 {{has a schedule whose space 0 reduces rows longer than its 4 'columns'; set 'loop'}}
  %0 = greta.kernel(%x) {shapes = [#s, #s], schedule = #greta.schedule<block_size = 64, wave_size = 64, spaces = [{rows = [1], columns = 4}]>} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    %1 = greta.softmax %a : tensor<?x8xf32> -> tensor<?x8xf32>
    greta.yield %1 : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 8)>
func.func @rows(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has a schedule whose space 0 needs 'rows' for 1 groups of row dimensions, and for a GEMM 'depth'}}
  %0 = greta.kernel(%x) {shapes = [#s, #s], schedule = #greta.schedule<block_size = 64, wave_size = 64, spaces = [{rows = [1, 1], columns = 8}]>} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
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

// -----

#s = affine_map<()[s0] -> (8, 8)>
func.func @inside(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = greta.kernel(%x) {shapes = [#s, #s]} : (tensor<8x8xf32>) -> tensor<8x8xf32> ({
  ^bb0(%a: tensor<8x8xf32>):
    %1 = greta.softmax %a : tensor<8x8xf32> -> tensor<8x8xf32>
    // expected-error@+1 {{has an operand that its kernel cannot compute by blocks; compute it in a kernel before}}
    %2 = greta.matmul %1, %a : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    greta.yield %2 : tensor<8x8xf32>
  })
  return %0 : tensor<8x8xf32>
}

// -----

#s = affine_map<()[s0] -> (8)>
func.func @data(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = greta.kernel(%x) {shapes = [#s, #s]} : (tensor<8xf32>) -> tensor<8xf32> ({
  ^bb0(%a: tensor<8xf32>):
    // expected-error@+1 {{has no place in a kernel; greta-fuse puts row ops, elementwise work, broadcasts and splats there}}
    %1 = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
    %2 = arith.addf %a, %1 : tensor<8xf32>
    greta.yield %2 : tensor<8xf32>
  })
  return %0 : tensor<8xf32>
}

// -----

#a = affine_map<()[s0] -> (1, 12)>
#b = affine_map<()[s0] -> (8, 12)>
#y = affine_map<()[s0] -> (1, 8)>
#schedule = #greta.schedule<block_size = 32, wave_size = 32, spaces = [{rows = [1], columns = 8, depth = 64, run = 8}]>
func.func @run(%x: tensor<1x12xf32>, %w: tensor<8x12xf32>) -> tensor<1x8xf32> {
  // expected-error@+1 {{has a schedule whose space 0 has 'run' 8; that is for GEMMs of a static depth, of which it and 'depth' take whole runs, powers of two}}
  %0 = greta.kernel(%x, %w) {schedule = #schedule, shapes = [#a, #b, #y]} : (tensor<1x12xf32>, tensor<8x12xf32>) -> tensor<1x8xf32> ({
  ^bb0(%a: tensor<1x12xf32>, %b: tensor<8x12xf32>):
    %1 = greta.matmul %a, %b {transpose_b} : tensor<1x12xf32>, tensor<8x12xf32> -> tensor<1x8xf32>
    greta.yield %1 : tensor<1x8xf32>
  })
  return %0 : tensor<1x8xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 8)>
func.func @empty(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error@+1 {{has a schedule of 0 spaces; it has 1}}
  %0 = greta.kernel(%x) {shapes = [#s, #s], schedule = #greta.schedule<block_size = 64, wave_size = 64, spaces = []>} : (tensor<?x8xf32>) -> tensor<?x8xf32> ({
  ^bb0(%a: tensor<?x8xf32>):
    %1 = greta.softmax %a : tensor<?x8xf32> -> tensor<?x8xf32>
    greta.yield %1 : tensor<?x8xf32>
  })
  return %0 : tensor<?x8xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 4, 8)>
#t = affine_map<()[s0] -> (s0, 4)>
func.func @styles(%x: tensor<?x4x8xf32>, %c: tensor<?x4xf32>) -> tensor<?x4x8xf32> {
  %0 = greta.kernel(%x, %c) {shapes = [#s, #t, #s], schedule = #greta.schedule<block_size = 64, wave_size = 64, spaces = [{rows = [1, 1], columns = 8}]>} : (tensor<?x4x8xf32>, tensor<?x4xf32>) -> tensor<?x4x8xf32> ({
  ^bb0(%a: tensor<?x4x8xf32>, %b: tensor<?x4xf32>):
    %1 = greta.rope %a, %b, %b {style = "neox"} : tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4x8xf32>
    // expected-error@+1 {{has another style than a rope before it in the same space; put it into another}}
    %2 = greta.rope %1, %b, %b {style = "gptj"} : tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4x8xf32>
    greta.yield %2 : tensor<?x4x8xf32>
  })
  return %0 : tensor<?x4x8xf32>
}

// -----

#s = affine_map<()[s0] -> (s0, 8)>
func.func @nothing(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{has a space that yields nothing}}
  greta.kernel(%x) {shapes = [#s], schedule = #greta.schedule<block_size = 64, wave_size = 64, spaces = [{rows = [1], columns = 8}]>} : (tensor<?x8xf32>) -> () ({
  ^bb0(%a: tensor<?x8xf32>):
    greta.yield
  })
  return
}

// -----

#c = affine_map<()[s0] -> (s0, 2, 8, 16)>
#n = affine_map<()[s0] -> (s0)>
func.func @not_alone(%c: tensor<?x2x8x16xf16>, %p: tensor<?xi32>) -> (tensor<?x2x8x16xf16>, tensor<?x2x8x16xf16>) {
  %0:2 = greta.kernel(%c, %p) {schedule = #greta.schedule<waves = 4, spaces = [{columns = 16, rows = [64]}]>, shapes = [#c, #n, #c, #c]} : (tensor<?x2x8x16xf16>, tensor<?xi32>) -> (tensor<?x2x8x16xf16>, tensor<?x2x8x16xf16>) ({
  ^bb0(%a: tensor<?x2x8x16xf16>, %b: tensor<?xi32>):
    // expected-error@+1 {{is not alone in its kernel; put the rest into another}}
    %1 = greta.kv_update %a, %a, %b : tensor<?x2x8x16xf16>, tensor<?x2x8x16xf16>, tensor<?xi32> -> tensor<?x2x8x16xf16>
    %2 = arith.addf %a, %a : tensor<?x2x8x16xf16>
    greta.yield %2, %1 : tensor<?x2x8x16xf16>, tensor<?x2x8x16xf16>
  })
  return %0#0, %0#1 : tensor<?x2x8x16xf16>, tensor<?x2x8x16xf16>
}

// -----

// Attention's operands are in memory, and its logarithms of sums are stored as they are.
#h = affine_map<()[s0] -> (s0, 2, 8, 16)>
func.func @computed_queries(%q: tensor<?x2x8x16xf16>) -> tensor<?x2x8x16xf16> {
  %0 = greta.kernel(%q) {schedule = #greta.schedule<waves = 4, spaces = [{rows = [1, 1, 16], columns = 16, depth = 16}]>, shapes = [#h, #h]} : (tensor<?x2x8x16xf16>) -> (tensor<?x2x8x16xf16>) ({
  ^bb0(%a: tensor<?x2x8x16xf16>):
    %1 = arith.negf %a : tensor<?x2x8x16xf16>
    // expected-error@+1 {{is not alone in its kernel; put the rest into another}}
    %2 = greta.attention %1, %a, %a : tensor<?x2x8x16xf16>, tensor<?x2x8x16xf16>, tensor<?x2x8x16xf16> -> tensor<?x2x8x16xf16>
    greta.yield %2 : tensor<?x2x8x16xf16>
  })
  return %0 : tensor<?x2x8x16xf16>
}

// -----

#h = affine_map<()[s0] -> (s0, 2, 8, 16)>
func.func @used_logarithms(%q: tensor<?x2x8x16xf16>) -> tensor<?x2x8x16xf32> {
  %0 = greta.kernel(%q) {schedule = #greta.schedule<waves = 4, spaces = [{rows = [1, 1, 16], columns = 16, depth = 16}]>, shapes = [#h, #h]} : (tensor<?x2x8x16xf16>) -> (tensor<?x2x8x16xf32>) ({
  ^bb0(%a: tensor<?x2x8x16xf16>):
    // expected-error@+1 {{is not alone in its kernel; put the rest into another}}
    %2, %l = greta.attention %a, %a, %a : tensor<?x2x8x16xf16>, tensor<?x2x8x16xf16>, tensor<?x2x8x16xf16> -> tensor<?x2x8x16xf16>, tensor<?x2x8xf32>
    %3 = greta.broadcast %l dims [0, 1, 2] : tensor<?x2x8xf32> -> tensor<?x2x8x16xf32>
    greta.yield %3 : tensor<?x2x8x16xf32>
  })
  return %0 : tensor<?x2x8x16xf32>
}
