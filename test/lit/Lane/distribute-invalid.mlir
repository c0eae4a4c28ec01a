// RUN: greta-opt %s --greta-tile-distribute --split-input-file --verify-diagnostics

greta_tile.func @bare(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  // expected-error @+1 {{has a block tensor without a layout}}
  %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<64xf32>
  greta_tile.return
}

// -----

#l = #greta_tile.layout<{reg = [], lane = [[1], [2], [4], [8]], wave = [], rep = [4]}>
greta_tile.func @lanes(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  // expected-error @+1 {{has a layout of 1 waves of 16 lanes in a kernel of 2 waves of 32}}
  %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<64xf32, #l>
  greta_tile.return
}

// -----

#a = #greta_tile.layout<{reg = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], wave = [], rep = [1, 1]}>
#c = #greta_tile.layout<{reg = [], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], wave = [], rep = [1, 1]}>
greta_tile.func @across(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %acc = arith.constant dense<0.0> : tensor<1x1xf32, #c>
  %a = greta_tile.load %x[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<1x64xf32, #a>
  // expected-error @+1 {{has an operand that is not laid out like its result, with 'dims' in registers}}
  %c = greta_tile.contract %a, %a, %acc dims [1] : tensor<1x64xf32, #a>, tensor<1x64xf32, #a> -> tensor<1x1xf32, #c>
  greta_tile.return
}

// -----

greta_tile.func @contract_shape(%a: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %x = arith.constant dense<0.0> : tensor<2x64xf32>
  %acc = arith.constant dense<0.0> : tensor<4x1xf32>
  // expected-error @+1 {{contracts 'tensor<2x64xf32>' into 'tensor<4x1xf32>'; along 'dims' the result has extent 1 or theirs divided by a power of two, elsewhere operands have its extent or 1, and both are floats or both integers}}
  %c = greta_tile.contract %x, %x, %acc dims [1] : tensor<2x64xf32>, tensor<2x64xf32> -> tensor<4x1xf32>
  greta_tile.return
}

// -----

greta_tile.func @eighth() attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %w = arith.constant dense<1> : tensor<4x8xi32>
  %s = arith.constant dense<1.0> : tensor<1x8xf16>
  %z = arith.constant dense<8> : tensor<1x8xi32>
  // expected-error @+1 {{makes 'tensor<64x8xf16>' of 'tensor<4x8xi32>', 'tensor<1x8xf16>', 'tensor<1x8xi32>'; it takes words of i32 with one extent divided by the weights in a word, scales of f16 or f32 and zeros of i32 or minima of f16 whose extents divide the result's of f16 or bf16}}
  %a = greta_tile.dequant %w, %s, %z : tensor<4x8xi32>, tensor<1x8xf16>, tensor<1x8xi32> -> tensor<64x8xf16>
  greta_tile.return
}

// -----

greta_tile.func @no_high() attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %w = arith.constant dense<1> : tensor<4x8xi32>
  %s = arith.constant dense<1.0> : tensor<1x8xf16>
  // expected-error @+1 {{has 3 operands; of "q6_k" it takes 4}}
  %a = greta_tile.dequant %w, %s, %w {format = "q6_k"} : tensor<4x8xi32>, tensor<1x8xf16>, tensor<4x8xi32> -> tensor<32x8xf16>
  greta_tile.return
}

// -----

greta_tile.func @no_format() attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %w = arith.constant dense<1> : tensor<4x8xi32>
  %s = arith.constant dense<1.0> : tensor<1x8xf16>
  // expected-error @+1 {{has an unknown format, "q7"}}
  %a = greta_tile.dequant %w, %s, %w {format = "q7"} : tensor<4x8xi32>, tensor<1x8xf16>, tensor<4x8xi32> -> tensor<32x8xf16>
  greta_tile.return
}

// -----

greta_tile.func @unpacks(%w: i32, %s: f16, %z: i32) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  // expected-error @+1 {{unpacks 8 weights of "q8_0"; it takes the weights of a word of a format, and 'high' where the format has it}}
  %a = greta_tile.unpack "q8_0" %w scale %s zero %z : f16, i32 -> vector<8xf16>
  greta_tile.return
}

// -----

#w = #greta_tile.layout<{reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 0], [0, 0]], wave = [], rep = [1, 1]}>
#a = #greta_tile.layout<{reg = [], lane = [[1, 0], [2, 0], [4, 0], [0, 1], [0, 2]], wave = [], rep = [1, 2]}>
greta_tile.func @spread(%q: !greta_tile.ptr<i32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %w = greta_tile.load %q[%z, %z] strides [1, 1] bounds [] : !greta_tile.ptr<i32> -> tensor<1x8xi32, #w>
  %s = arith.constant dense<1.0> : tensor<1x8xf16, #w>
  // expected-error @+1 {{is not laid out with the weights of a word in a lane's neighbouring registers}}
  %a = greta_tile.dequant %w, %s, %w : tensor<1x8xi32, #w>, tensor<1x8xf16, #w>, tensor<1x8xi32, #w> -> tensor<8x8xf16, #a>
  greta_tile.return
}

// -----

#l = #greta_tile.layout<{reg = [], lane = [[1], [2], [4], [8], [17]], wave = [[16]], rep = [1]}>
greta_tile.func @scan(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<32xf32, #l>
  // expected-error @+1 {{cannot scan this layout: registers, lanes and waves share bits of dimension 0; convert the layout before}}
  %f = greta_tile.scan {arith.addf} %a axis 0 : tensor<32xf32, #l>
  greta_tile.return
}

// -----

#l = #greta_tile.layout<{reg = [[1]], lane = [[3], [4], [8], [16], [32]], wave = [], rep = [1]}>
greta_tile.func @shared_bits(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  // expected-error @+1 {{has a layout whose registers and lanes share bits of dimension 0}}
  %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<64xf32, #l>
  greta_tile.return
}

// -----

greta_tile.func @region(%x: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  // expected-error @+1 {{cannot stand in a kernel}}
  scf.execute_region {
    scf.yield
  }
  greta_tile.return
}

// -----

#l = #greta_tile.layout<{reg = [[1]], lane = [[0], [0], [0], [0], [0]], wave = [], rep = [1]}>
greta_tile.func @constants(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  // expected-error @+1 {{is not a splat; pass other constants as arguments}}
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32, #l>
  %z = arith.constant 0 : i32
  greta_tile.store %c, %x[%z] strides [1] bounds [] : tensor<2xf32, #l> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

#l = #greta_tile.layout<{reg = [[1]], lane = [[0], [0], [0], [0], [0]], wave = [], rep = [1]}>
greta_tile.func @meaning(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<2xf32, #l>
  // expected-error @+1 {{has no meaning on block tensors; kernels take arith, math and greta_tile ops}}
  %b = tensor.bitcast %a : tensor<2xf32, #l> to tensor<2xi32, #l>
  greta_tile.return
}

// -----

#s = #greta_tile.layout<{reg = [[0, 1]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], wave = [], rep = [1, 1]}>
#t = #greta_tile.layout<{reg = [[1, 0]], lane = [[0, 1], [2, 0], [4, 0], [8, 0], [16, 0]], wave = [], rep = [1, 1]}>
#d = #greta_tile.layout<{reg = [], lane = [[1], [2], [4], [8], [16]], wave = [], rep = [1]}>
greta_tile.func @reduced_blocks(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [2, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<32x2xf32, #s>
  %b = greta_tile.load %x[%z, %z] strides [2, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<32x2xf32, #t>
  // expected-error @+1 {{combines blocks of several layouts; convert_layout first}}
  %c, %d = greta_tile.reduce %a, %b axis 1 : tensor<32x2xf32, #s>, tensor<32x2xf32, #t> -> (tensor<32xf32, #d>, tensor<32xf32, #d>) {
  ^bb0(%p: f32, %q: f32, %r: f32, %s: f32):
    greta_tile.yield %p, %q : f32, f32
  }
  greta_tile.return
}

// -----

// expected-error @+1 {{has no wave_size; run greta-tile-set-target first}}
greta_tile.func @untargeted() attributes {waves = 1 : i32} {
  greta_tile.return
}

// -----

#l = #greta_tile.layout<{reg = [], lane = [[1], [2], [4], [8], [16]], wave = [], rep = [1]}>
greta_tile.func @divided(%x: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 4 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  // expected-error @+1 {{divides the indices along dimension 0 by 8, but its offset is not known to be a multiple of 8; make it one that the facts analysis sees}}
  %v = greta_tile.load %x[%n] strides [1] bounds [] {divisors = array<i64: 8>} : !greta_tile.ptr<f32> -> tensor<32xf32, #l>
  greta_tile.return
}
