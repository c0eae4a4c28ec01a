// The dialect's verifiers and parsers refuse these.
// RUN: greta-opt %s --split-input-file --verify-diagnostics

greta_tile.func @f(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{moves 'f16' through '!greta_tile.ptr<f32>'}}
  %a = greta_tile.load %x[%i] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<64xf16>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{has 1 offsets and 1 strides for a block of rank 2}}
  %a = greta_tile.load %x[%i] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<1x64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{has 0 dynamic strides, 'strides' names 1}}
  %a = "greta_tile.load"(%x, %i) <{strides = array<i64: -9223372036854775808>, bounded = array<i64>, align = 16 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}> : (!greta_tile.ptr<f32>, i32) -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{has 0 bounds, 'bounded' names 1}}
  %a = "greta_tile.load"(%x, %i) <{strides = array<i64: 1>, bounded = array<i64: 0>, align = 16 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}> : (!greta_tile.ptr<f32>, i32) -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{has bounded dimension 1; they are increasing and below the rank 1}}
  %a = greta_tile.load %x[%i] strides [1] bounds [1] (%i) : !greta_tile.ptr<f32> -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{has 'other' of type 'i32' for elements 'f32'}}
  %a = greta_tile.load %x[%i] strides [1] bounds [0] (%i) other %i : i32 : !greta_tile.ptr<f32> -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{clamps dimension 0, which is not among the bounded ones}}
  %a = greta_tile.load %x[%i] strides [1] bounds [] clamp [0] : !greta_tile.ptr<f32> -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{has no index below zero along dimension 0, which is not among the bounded ones}}
  %a = greta_tile.load %x[%i] strides [1] bounds [] nonnegative [0] : !greta_tile.ptr<f32> -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %v = arith.constant dense<0.0> : tensor<64xf32>
  // expected-error @+1 {{has no index below zero along dimension 0, which is not among the bounded ones}}
  greta_tile.store %v, %x[%i] strides [1] bounds [] nonnegative [0] : tensor<64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{clamps dimension 0, which is not among the bounded ones, or is among those bounded below}}
  %a = greta_tile.load %x[%i] strides [1] bounds [0] (%i) nonnegative [0] clamp [0] : !greta_tile.ptr<f32> -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{divides indices along dimension 0, which may be negative}}
  %a = greta_tile.load %x[%i] strides [1] bounds [0] (%i) nonnegative [0] {divisors = array<i64: 2>} : !greta_tile.ptr<f32> -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{has divisors 3; they are a power of two for each dimension of 'tensor<64xf32>'}}
  %a = greta_tile.load %x[%i] strides [1] bounds [] {divisors = array<i64: 3>} : !greta_tile.ptr<f32> -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{has 'runs' without 'run_strides', or these without those}}
  %a = greta_tile.load %x[%i] strides [1] bounds [] {runs = array<i64: 4>} : !greta_tile.ptr<f32> -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{has runs 3 and as many strides of them as 1; there is one for each dimension of 'tensor<64xf32>', and runs are powers of two}}
  %a = greta_tile.load %x[%i] strides [1] bounds [] {run_strides = array<i64: 8>, runs = array<i64: 3>} : !greta_tile.ptr<f32> -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{has runs along a dimension of a dynamic stride}}
  %a = greta_tile.load %x[%i] strides [-9223372036854775808](%i) bounds [] {run_strides = array<i64: 8>, runs = array<i64: 4>} : !greta_tile.ptr<f32> -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{divides indices along dimension 0, which may be negative}}
  %a = greta_tile.load %x[%i] strides [1] bounds [0] (%i) nonnegative [0] {run_strides = array<i64: 8>, runs = array<i64: 4>} : !greta_tile.ptr<f32> -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{counts along dimension 1 of rank 1}}
  %a = greta_tile.iota 1 : tensor<64xi32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  // expected-error @+1 {{changes rank or element type}}
  %a = greta_tile.broadcast %z : tensor<1x64xf32> -> tensor<4x64xf16>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  // expected-error @+1 {{repeats an extent of 64 to 128; only 1 repeats}}
  %a = greta_tile.broadcast %z : tensor<1x64xf32> -> tensor<1x128xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  // expected-error @+1 {{names axis 2 of 'tensor<1x64xf32>'}}
  %a = greta_tile.reduce {arith.addf} %z axis 2 : tensor<1x64xf32> -> tensor<1xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  // expected-error @+1 {{makes 'tensor<1x1xf32>' of 'tensor<1x64xf32>'; axis 1 is dropped: 'tensor<1xf32>'}}
  %a = greta_tile.reduce {arith.addf} %z axis 1 : tensor<1x64xf32> -> tensor<1x1xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  // expected-error @+1 {{makes 1 results of 2 blocks}}
  %a = greta_tile.reduce %z, %z axis 1 : tensor<1x64xf32>, tensor<1x64xf32> -> tensor<1xf32> {
  ^bb0(%p: f32, %q: f32, %r: f32, %s: f32):
    greta_tile.yield %p, %q : f32, f32
  }
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  %y = arith.constant dense<0.0> : tensor<1x32xf32>
  // expected-error @+1 {{combines 'tensor<1x64xf32>' and 'tensor<1x32xf32>'; the shapes are equal}}
  %a, %b = greta_tile.reduce %z, %y axis 1 : tensor<1x64xf32>, tensor<1x32xf32> -> (tensor<1xf32>, tensor<1xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32, %s: f32):
    greta_tile.yield %p, %q : f32, f32
  }
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  // expected-error @+1 {{has a combiner that does not make one element of each block of two}}
  %a = greta_tile.reduce %z axis 1 : tensor<1x64xf32> -> tensor<1xf32> {
  ^bb0(%p: f32):
    greta_tile.yield %p : f32
  }
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  %a = greta_tile.reduce %z axis 1 : tensor<1x64xf32> -> tensor<1xf32> {
  ^bb0(%p: f32, %q: f32):
    // expected-error @+1 {{stands in a combiner, which only computes}}
    greta_tile.barrier
    greta_tile.yield %p : f32
  }
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  // expected-error @+1 {{has nothing to combine}}
  "greta_tile.reduce"() <{axis = 0 : i32}> ({
    "greta_tile.yield"() : () -> ()
  }) : () -> ()
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<2x64xf32>
  // expected-error @+1 {{has the order 1, 1; it names each dimension of 'tensor<2x64xf32>' once}}
  %a = greta_tile.trans %z [1, 1] : tensor<2x64xf32> -> tensor<64x64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<2x64xf32>
  // expected-error @+1 {{makes 'tensor<2x64xf32>' of 'tensor<2x64xf32>'; dimension i is the operand's order[i]}}
  %a = greta_tile.trans %z [1, 0] : tensor<2x64xf32> -> tensor<2x64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<64xf32>
  // expected-error @+1 {{makes 'tensor<2x64xf32>' of two 'tensor<64xf32>'; it has their dimensions and a last one of extent 2}}
  %a = greta_tile.join %z, %z : tensor<64xf32> -> tensor<2x64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<64x4xf32>
  // expected-error @+1 {{makes two 'tensor<64xf32>' of 'tensor<64x4xf32>'; they have its dimensions, at least one, but for the last, whose extent is 2}}
  %a, %b = greta_tile.split %z : tensor<64x4xf32> -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<64x4xf32>
  // expected-error @+1 {{makes 'tensor<64x8xf32>' of two 'tensor<64x4xf32>' along axis 0; its extent doubles}}
  %a = greta_tile.cat %z, %z axis 0 : tensor<64x4xf32> -> tensor<64x8xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<64xf32>
  %n = arith.constant dense<0> : tensor<64xi32>
  // expected-error @+1 {{names axis 1 of 'tensor<64xf32>'}}
  %a = greta_tile.gather %z[%n] axis 1 : tensor<64xf32>[tensor<64xi32>] -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<64x4xf32>
  %n = arith.constant dense<0> : tensor<64x2xi32>
  // expected-error @+1 {{takes indices 'tensor<64x2xi32>' of 'tensor<64x4xf32>'; their shapes differ along axis 0 at most}}
  %a = greta_tile.gather %z[%n] axis 0 : tensor<64x4xf32>[tensor<64x2xi32>] -> tensor<64x2xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<64x4xf32>
  %n = arith.constant dense<0> : tensor<64x2xi32>
  // expected-error @+1 {{makes 'tensor<64x4xf32>'; it has the shape of its indices and the elements of its source}}
  %a = greta_tile.gather %z[%n] axis 1 : tensor<64x4xf32>[tensor<64x2xi32>] -> tensor<64x4xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %n = arith.constant dense<0> : tensor<64xi32>
  // expected-error @+1 {{counts into 'tensor<4x4xi32>'; it has one dimension}}
  %a = greta_tile.histogram %n : tensor<64xi32> -> tensor<4x4xi32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %n = arith.constant dense<0> : tensor<64xi32>
  %m = arith.constant dense<true> : tensor<32xi1>
  // expected-error @+1 {{has a mask 'tensor<32xi1>' for 'tensor<64xi32>'; the shapes are equal}}
  %a = greta_tile.histogram %n mask %m : tensor<64xi32>, tensor<32xi1> -> tensor<16xi32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %n = arith.constant dense<0> : tensor<64xi32>
  // expected-error @+1 {{names axis 1 of 'tensor<64xi32>'}}
  %a = greta_tile.scan {arith.addi} %n axis 1 : tensor<64xi32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %n = arith.constant dense<0> : tensor<64xi32>
  // expected-error @+1 {{makes 'tensor<64xf32>' of 'tensor<64xi32>'; the types are equal}}
  %a = "greta_tile.scan"(%n) <{axis = 0 : i32}> ({
  ^bb0(%p: i32, %q: i32):
    greta_tile.yield %p : i32
  }) : (tensor<64xi32>) -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %n = greta_tile.shared_alloc : !greta_tile.shared<16 x f32>
  // expected-error @+1 {{adds to '!greta_tile.shared<16 x f32>'; its elements are i32}}
  greta_tile.shared_add %i, %n[%i] : !greta_tile.shared<16 x f32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  // expected-error @+1 {{makes 'tensor<1x4x8xf32>' of 'tensor<1x64xf32>'; the shapes have as many elements, of one type}}
  %a = greta_tile.reshape %z : tensor<1x64xf32> -> tensor<1x4x8xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  // expected-error @+1 {{multiplies 'tensor<1x64xf32>' by 'tensor<1x64xf32>' into 'tensor<1x64xf32>'; it takes [M,K] by [K,N] into [M,N], or a batch of them, [B,M,K] by [B,K,N] into [B,M,N]}}
  %a = greta_tile.dot %z, %z, %z : tensor<1x64xf32>, tensor<1x64xf32> -> tensor<1x64xf32>
  greta_tile.return
}

// -----

#mfma = #greta_tile.matrix<"mfma.f32.16x16x16f16",
  a = <{reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]], wave = [], rep = [1, 1]}>,
  b = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>,
  acc = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>>
greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %a = arith.constant dense<0.0> : tensor<16x16xf16>
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  // expected-error @+1 {{has 'step' beside 'matrix'; steps along K are those of multiply-adds, an instruction has its own}}
  %d = greta_tile.dot %a, %a, %z {matrix = #mfma, step = 4 : i32} : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  // expected-error @+1 {{has dims 2; they increase and are below the rank 2}}
  %a = greta_tile.contract %z, %z, %z dims [2] : tensor<1x64xf32>, tensor<1x64xf32> -> tensor<1x64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  // expected-error @+1 {{changes the shape or element type; only the layout may}}
  %a = greta_tile.convert_layout %z : tensor<1x64xf32> -> tensor<1x64xf16>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  %l = greta_tile.local_alloc : !greta_tile.local<2 x tensor<4x64xf32>, <dim = 1, stride = 64, vector = 4, rows = 1, phases = 1>>
  // expected-error @+1 {{stores 'tensor<1x64xf32>' to a local of 'tensor<4x64xf32>'}}
  greta_tile.local_store %z, %l[%i] : tensor<1x64xf32> -> !greta_tile.local<2 x tensor<4x64xf32>, <dim = 1, stride = 64, vector = 4, rows = 1, phases = 1>>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %l = greta_tile.local_alloc : !greta_tile.local<2 x tensor<4x64xf32>, <dim = 1, stride = 64, vector = 4, rows = 1, phases = 1>>
  // expected-error @+1 {{loads 'tensor<3x64xf32>' at 2 offsets from a local of 'tensor<4x64xf32>'; parts divide the block}}
  %a = greta_tile.local_load %l[%i] [%i, %i] : !greta_tile.local<2 x tensor<4x64xf32>, <dim = 1, stride = 64, vector = 4, rows = 1, phases = 1>> -> tensor<3x64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{moves 'f16' through '!greta_tile.ptr<f32>'}}
  %a = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f16
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{has alignment 3; it is a power of two}}
  %a = greta_tile.ptr_load %x[%i] align 3 : !greta_tile.ptr<f32> -> f32
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %s = greta_tile.shared_alloc : !greta_tile.shared<64 x f16>
  // expected-error @+1 {{loads 'f32' into an array of 'f16'}}
  greta_tile.ptr_load_shared %x[%i], %s[%i] width 4 : !greta_tile.ptr<f32> -> !greta_tile.shared<64 x f16>
  greta_tile.return
}

// -----

greta_tile.func @f(%v: f32, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %s = greta_tile.shared_alloc : !greta_tile.shared<64 x f16>
  // expected-error @+1 {{moves 'f32' through '!greta_tile.shared<64 x f16>'; it takes a whole element, or of bytes (i8) any type}}
  greta_tile.shared_store %v, %s[%i] : !greta_tile.shared<64 x f16> as f32
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %s = greta_tile.shared_alloc : !greta_tile.shared<64 x f16>
  // expected-error @+1 {{moves '!greta_tile.fragment<16x16xf32, acc>' through '!greta_tile.shared<64 x f16>'; its lines are whole elements of the array}}
  %a = greta_tile.fragment_load %s[%i] stride 16 : !greta_tile.shared<64 x f16> -> !greta_tile.fragment<16x16xf32, acc>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{puts 'i32' into '!greta_tile.fragment<16x16xf32, acc>'}}
  %a = greta_tile.fragment_splat %i : i32 -> !greta_tile.fragment<16x16xf32, acc>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c = arith.constant 0.0 : f16
  %a = greta_tile.fragment_splat %c : f16 -> !greta_tile.fragment<16x16xf16, a>
  // expected-error @+1 {{has 'vector<2xf16>' for a lane's elements of '!greta_tile.fragment<16x16xf16, a>'}}
  %e = greta_tile.fragment_elements %a : !greta_tile.fragment<16x16xf16, a> -> vector<2xf16>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c = arith.constant 0.0 : f16
  %a = greta_tile.fragment_splat %c : f16 -> !greta_tile.fragment<16x16xf16, a>
  %v = arith.constant dense<0.0> : vector<4xf16>
  // expected-error @+1 {{mixes fragments and vectors}}
  %m = greta_tile.mma "coopmat" %a, %v, %a : !greta_tile.fragment<16x16xf16, a>, vector<4xf16> -> !greta_tile.fragment<16x16xf16, a>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c = arith.constant 0.0 : f16
  %a = greta_tile.fragment_splat %c : f16 -> !greta_tile.fragment<16x16xf16, a>
  // expected-error @+1 {{multiplies '!greta_tile.fragment<16x16xf16, a>' by '!greta_tile.fragment<16x16xf16, a>' into '!greta_tile.fragment<16x16xf16, a>'}}
  %m = greta_tile.mma "coopmat" %a, %a, %a : !greta_tile.fragment<16x16xf16, a>, !greta_tile.fragment<16x16xf16, a> -> !greta_tile.fragment<16x16xf16, a>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c = arith.constant 0.0 : f32
  %v = arith.constant dense<0.0> : vector<3xf16>
  // expected-error @+1 {{multiplies vectors of 'vector<3xf16>'; it takes an even number of elements}}
  %m = greta_tile.vector_dot %v, %v, %c : vector<3xf16>
  greta_tile.return
}

// -----

// expected-error @+1 {{a fragment's use is a, b or acc}}
func.func private @f(%x: !greta_tile.fragment<16x16xf16, c>)

// -----

// expected-error @+1 {{a fragment has two dimensions}}
func.func private @f(%x: !greta_tile.fragment<16xf16, a>)

// -----

// expected-error @+1 {{basis has 1 coordinates, 'rep' has 2; a layout has one per dimension}}
func.func private @f(%x: tensor<2x2xf16, #greta_tile.layout<{reg = [[1]], lane = [], wave = [], rep = [1, 1]}>>)

// -----

// expected-error @+1 {{a layout has at least one dimension}}
func.func private @f(%x: tensor<f16, #greta_tile.layout<{reg = [], lane = [], wave = [], rep = []}>>)

// -----

// expected-error @+1 {{not a layout: }}
func.func private @f(%x: tensor<2xf16, #greta_tile.layout<{reg = [[1], [4]], lane = [], wave = [], rep = [1]}>>)

// -----

// expected-error @+1 {{layout of rank 1 on a tensor of rank 2}}
func.func private @f(%x: tensor<2x2xf16, #greta_tile.layout<{reg = [[1]], lane = [], wave = [], rep = [1]}>>)

// -----

// expected-error @+1 {{layout covers 2 elements of dimension 0, the tensor has 4}}
func.func private @f(%x: tensor<4xf16, #greta_tile.layout<{reg = [[1]], lane = [], wave = [], rep = [1]}>>)

// -----

greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<?xf32>, %h: tensor<?xf16>) -> tensor<?xf32> {
  // expected-error @+1 {{has maps over dims; they are over symbols}}
  %0 = "greta_tile.launch"(%x) <{kernel = @k, grid = affine_map<(d0) -> (d0)>, scalars = affine_map<()[s0] -> (s0)>, result_shapes = [affine_map<()[s0] -> (s0)>]}> : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<?xf32>, %h: tensor<?xf16>) -> tensor<?xf32> {
  // expected-error @+1 {{has a grid of 4 axes; it is 1 to 3}}
  %0 = "greta_tile.launch"(%x) <{kernel = @k, grid = affine_map<()[s0] -> (s0, 1, 1, 1)>, scalars = affine_map<()[s0] -> (s0)>, result_shapes = [affine_map<()[s0] -> (s0)>]}> : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<?xf32>, %h: tensor<?xf16>) -> tensor<?xf32> {
  // expected-error @+1 {{has 0 shapes for 1 results that are not tied}}
  %0 = "greta_tile.launch"(%x) <{kernel = @k, grid = affine_map<()[s0] -> (s0)>, scalars = affine_map<()[s0] -> (s0)>, result_shapes = []}> : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<?xf32>, %h: tensor<?xf16>) -> tensor<?xf32> {
  // expected-error @+1 {{has the shape affine_map<()[s0] -> (s0, s0)> for a result of type 'tensor<?xf32>'}}
  %0 = "greta_tile.launch"(%x) <{kernel = @k, grid = affine_map<()[s0] -> (s0)>, scalars = affine_map<()[s0] -> (s0)>, result_shapes = [affine_map<()[s0] -> (s0, s0)>]}> : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<?xf32>, %h: tensor<?xf16>) -> tensor<?xf32> {
  // expected-error @+1 {{names the kernel @nobody, which does not exist}}
  %0 = "greta_tile.launch"(%x) <{kernel = @nobody, grid = affine_map<()[s0] -> (s0)>, scalars = affine_map<()[s0] -> (s0)>, result_shapes = [affine_map<()[s0] -> (s0)>]}> : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<?xf32>, %h: tensor<?xf16>) -> tensor<?xf32> {
  // expected-error @+1 {{passes 2 arguments, the kernel has 3}}
  %0 = "greta_tile.launch"(%x) <{kernel = @k, grid = affine_map<()[s0] -> (s0)>, scalars = affine_map<()[s0] -> ()>, result_shapes = [affine_map<()[s0] -> (s0)>]}> : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<?xf32>, %h: tensor<?xf16>) -> tensor<?xf32> {
  // expected-error @+1 {{passes 'tensor<?xf16>' as argument 0 of type '!greta_tile.ptr<f32>'}}
  %0 = "greta_tile.launch"(%h) <{kernel = @k, grid = affine_map<()[s0] -> (s0)>, scalars = affine_map<()[s0] -> (s0)>, result_shapes = [affine_map<()[s0] -> (s0)>]}> : (tensor<?xf16>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// expected-error @+1 {{has an argument of type 'f8E5M2'; kernels take pointers, i1, i8, i16, i32, i64, f16, bf16, f32 and f64}}
greta_tile.func @f(%h: f8E5M2) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  greta_tile.return
}

// -----

greta_tile.func @f(%i: i32) attributes {waves = 1 : i32} {
  // expected-error @+1 {{says that value 1 is unsigned; it has 1}}
  greta_tile.print "i" %i unsigned [1] : i32
  greta_tile.return
}

// -----

greta_tile.func @f(%x: f32) attributes {waves = 1 : i32} {
  // expected-error @+1 {{says that value 0, of 'f32', is unsigned; only integers are}}
  greta_tile.print "x" %x unsigned [0] : f32
  greta_tile.return
}

// -----

// expected-error @+1 {{has wave_size 128; it is a power of two up to 64}}
greta_tile.func @f(%i: i32) attributes {wave_size = 128 : i32, waves = 1 : i32} {
  greta_tile.return
}

// -----

// expected-error @+1 {{has 3 waves; they are a power of two up to 1024}}
greta_tile.func @f(%i: i32) attributes {wave_size = 32 : i32, waves = 3 : i32} {
  greta_tile.return
}

// -----

// expected-error @+1 {{returns values; a kernel stores its results}}
greta_tile.func @f(%i: i32) -> i32 attributes {wave_size = 64 : i32, waves = 1 : i32} {
  greta_tile.return
}

// -----

// expected-error @+2 {{failed to parse GretaTile_LocalType parameter}}
// expected-error @+1 {{a placement has a dimension, a positive stride, and powers of two for vector, rows and phases}}
func.func private @f(%x: !greta_tile.local<1 x tensor<4x64xf32>, <dim = 1, stride = 0, vector = 4, rows = 1, phases = 1>>)

// -----

// expected-error @+1 {{a local is stages of a static block that has the placement's dimension}}
func.func private @f(%x: !greta_tile.local<0 x tensor<4x64xf32>, <dim = 1, stride = 64, vector = 4, rows = 1, phases = 1>>)

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %s = greta_tile.shared_alloc : !greta_tile.shared<64 x f32>
  // expected-error @+1 {{loads 8 bytes a lane; it takes 4 or 16}}
  greta_tile.ptr_load_shared %x[%i], %s[%i] width 2 : !greta_tile.ptr<f32> -> !greta_tile.shared<64 x f32>
  greta_tile.return
}

// -----

greta_tile.func @f(%i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %s = greta_tile.shared_alloc : !greta_tile.shared<64 x f32>
  // expected-error @+1 {{has 3 stages in an array of 64; they are equal parts of it}}
  %0 = greta_tile.shared_stage %s[%i] of 3 : !greta_tile.shared<64 x f32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  // expected-error @+1 {{is narrow with 'f32' and 'f32' into 'f32'; sums of f16 into f32 may be}}
  %a = greta_tile.contract %z, %z, %z dims [1] narrow : tensor<1x64xf32>, tensor<1x64xf32> -> tensor<1x64xf32>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<f16>, %i: i32, %m: i1) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{loads 'vector<3xf16>' aligned to 2 under a mask; that takes 1, 2, 4, 8 or 16 bytes, aligned to their number or 4}}
  %a = greta_tile.ptr_load %x[%i] mask %m align 2 : !greta_tile.ptr<f16> -> vector<3xf16>
  greta_tile.return
}

// -----

greta_tile.func @k(%p: !greta_tile.ptr<f32>, %q: i32) attributes {waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<4xf32>, %h: tensor<4xf16>, %n: i32) -> tensor<4xf32> {
  // expected-error @+1 {{names 2 tied operands for 1 results; -1 stands for none}}
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x, %n) tied [0, -1] shapes [] : (tensor<4xf32>, i32) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

greta_tile.func @k(%p: !greta_tile.ptr<f32>, %q: i32) attributes {waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<4xf32>, %h: tensor<4xf16>, %n: i32) -> tensor<4xf32> {
  // expected-error @+1 {{ties result 0 to operand 1, which is no 'tensor<4xf32>'}}
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x, %n) tied [1] shapes [] : (tensor<4xf32>, i32) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

greta_tile.func @k(%p: !greta_tile.ptr<f32>, %q: i32) attributes {waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<4xf32>, %h: tensor<4xf16>, %n: i32) -> tensor<4xf32> {
  // expected-error @+1 {{ties two results to operand 0}}
  %0:2 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x, %n) tied [0, 0] shapes [] : (tensor<4xf32>, i32) -> (tensor<4xf32>, tensor<4xf32>)
  return %x : tensor<4xf32>
}

// -----

greta_tile.func @k(%p: !greta_tile.ptr<f32>, %q: i32) attributes {waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<4xf32>, %h: tensor<4xf16>, %n: i32) -> tensor<4xf32> {
  // expected-error @+1 {{has 1 shapes for 0 results that are not tied}}
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x, %n) tied [0] shapes [affine_map<() -> (4)>] : (tensor<4xf32>, i32) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

greta_tile.func @k(%p: !greta_tile.ptr<f32>, %q: f32) attributes {waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<4xf32>, %h: tensor<4xf16>, %n: i32) -> tensor<4xf32> {
  // expected-error @+1 {{computes argument 1, an integer, of type 'f32'}}
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> (1)> (%x) tied [0] shapes [] : (tensor<4xf32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

greta_tile.func @k(%p: !greta_tile.ptr<f32>, %q: i64) attributes {waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<4xf32>, %h: tensor<4xf16>, %n: i32) -> tensor<4xf32> {
  // expected-error @+1 {{passes 'i32' as argument 1 of type 'i64'}}
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x, %n) tied [0] shapes [] : (tensor<4xf32>, i32) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{has an argument with greta.divisibility = 0 : i64; it is a positive integer}}
greta_tile.func @divisibility(%n: i32 {greta.divisibility = 0 : i64}) attributes {waves = 1 : i32} {
  greta_tile.return
}

// -----
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 1 : i32} {
  greta_tile.return
}
func.func @rows_of_an_argument_that_is_none(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error @+1 {{names argument 2 'by_rows'; it has 2 tensors}}
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) shapes [affine_map<()[s0] -> (s0, 4)>] by_rows [0, 2] : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 1 : i32} {
  greta_tile.return
}
func.func @rows_but_for_the_result(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error @+1 {{is by rows, and result 0 is not, which something uses}}
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) shapes [affine_map<()[s0] -> (s0, 4)>] by_rows [0] : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----
greta_tile.func @k(%x: !greta_tile.ptr<f32>) attributes {waves = 1 : i32} {
  greta_tile.return
}
func.func @rows_of_tied_results(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error @+1 {{is by rows and has tied results, which a part of it would write whole}}
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) tied [0] shapes [] by_rows [0, 1] : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %c: !greta_tile.ptr<i32>) attributes {waves = 1 : i32} {
  greta_tile.return
}
func.func @counters(%x: tensor<4xf32>) -> tensor<4xi32> {
  // expected-error @+1 {{names 0 'zeroed', which is scratch memory: a result that is not tied and that nothing uses}}
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) zeroed [0] shapes [affine_map<() -> (4)>] : (tensor<4xf32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

greta_tile.func @rescale(%x: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %a = arith.constant dense<1.0> : tensor<8x64xf32>
  %c = arith.constant dense<true> : tensor<8x32xi1>
  // expected-error @+1 {{'greta_tile.rescale' op failed to verify that all of {value, where} have same shape}}
  %r = greta_tile.rescale %a, %a where %c : tensor<8x64xf32>, tensor<8x32xi1>
  greta_tile.return
}

// -----

greta_tile.func @transposed_under_a_mask(%x: !greta_tile.ptr<f16>, %i: i32, %m: i1) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  // expected-error @+1 {{is 'transposed', which takes a vector, aligned to all its bytes, and no mask}}
  %a = greta_tile.ptr_load %x[%i] mask %m transposed align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<i64>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  // expected-error @+1 {{counts in '!greta_tile.ptr<i64>'; arrivals are i32}}
  greta_tile.grid_barrier %x until 4 : !greta_tile.ptr<i64>
  greta_tile.return
}

// -----

greta_tile.func @f(%x: !greta_tile.ptr<i32>, %c: i1) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  scf.if %c {
    // expected-error @+1 {{stands in no kernel's entry block, so that some workgroups may never come there}}
    greta_tile.grid_barrier %x until 4 : !greta_tile.ptr<i32>
  }
  greta_tile.return
}

// -----

greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<?xf32>) -> tensor<1xf32> attributes {greta.symbols = [[0, 0]]} {
  // expected-error @+1 {{is resident with the grid affine_map<()[s0] -> (s0)>; that of a resident launch is a constant along one axis}}
  %a = greta_tile.launch @k grid affine_map<()[n] -> (n)> scalars affine_map<()[n] -> ()> (%x) shapes [affine_map<()[n] -> (1)>] resident : (tensor<?xf32>) -> tensor<1xf32>
  return %a : tensor<1xf32>
}

// -----

greta_tile.func @f(%n: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @+1 {{has 'greta_tile.stages' (Triton IR's 'tt.num_stages') = -1 : i32; the number of stages is an i32 of at least 0 (0: the compiler chooses)}}
  scf.for %i = %c0 to %n step %c1 : i32 {
  } {greta_tile.stages = -1 : i32}
  greta_tile.return
}

// -----

// expected-error @+1 {{has 'greta_tile.stages' (Triton IR's 'tt.num_stages') = 2 : i64; the number of stages is an i32 of at least 0}}
greta_tile.func @f() attributes {wave_size = 64 : i32, waves = 1 : i32, greta_tile.stages = 2 : i64} {
  greta_tile.return
}
