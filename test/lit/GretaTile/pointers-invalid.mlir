// RUN: greta-opt %s --split-input-file --verify-diagnostics

greta_tile.func @shapes(%p: !greta_tile.ptr<f32>) attributes {waves = 1 : i32} {
  %i = greta_tile.iota 0 : tensor<64xi32>
  %j = greta_tile.iota 0 : tensor<32xi32>
  %b = greta_tile.ptr_add %p, %i : !greta_tile.ptr<f32>, tensor<64xi32>
  // expected-error @+1 {{moves 'tensor<64x!greta_tile.ptr<f32>>' by 'tensor<32xi32>'; blocks have one shape}}
  %c = greta_tile.ptr_add %b, %j : tensor<64x!greta_tile.ptr<f32>>, tensor<32xi32>
  greta_tile.return
}

// -----

greta_tile.func @cast(%p: !greta_tile.ptr<f32>) attributes {waves = 1 : i32} {
  // expected-error @+1 {{makes 'tensor<4x!greta_tile.ptr<i32>>' of '!greta_tile.ptr<f32>'; the shape stays as it is}}
  %c = greta_tile.ptr_cast %p : !greta_tile.ptr<f32> -> tensor<4x!greta_tile.ptr<i32>>
  greta_tile.return
}

// -----

greta_tile.func @addresses(%p: !greta_tile.ptr<f32>) attributes {waves = 1 : i32} {
  %a = greta_tile.ptr_to_int %p : !greta_tile.ptr<f32>
  // expected-error @+1 {{makes 'tensor<4x!greta_tile.ptr<f32>>' of 'i64'; the shape stays as it is}}
  %c = greta_tile.int_to_ptr %a : i64 -> tensor<4x!greta_tile.ptr<f32>>
  greta_tile.return
}

// -----

greta_tile.func @no_pointers(%p: !greta_tile.ptr<f32>) attributes {waves = 1 : i32} {
  %i = greta_tile.iota 0 : tensor<64xi32>
  // expected-error @+1 {{'pointers' must be Pointer into global memory or statically shaped tensor of Pointer into global memory values, but got 'tensor<64xi32>'}}
  %v = greta_tile.load_scattered %i : tensor<64xi32> -> tensor<64xf32>
  greta_tile.return
}

// -----

greta_tile.func @result(%p: !greta_tile.ptr<f32>) attributes {waves = 1 : i32} {
  %i = greta_tile.iota 0 : tensor<64xi32>
  %b = greta_tile.ptr_add %p, %i : !greta_tile.ptr<f32>, tensor<64xi32>
  // expected-error @+1 {{failed to verify that result is what the pointers point to}}
  %v = greta_tile.load_scattered %b : tensor<64x!greta_tile.ptr<f32>> -> tensor<64xf16>
  greta_tile.return
}

// -----

greta_tile.func @narrow(%p: !greta_tile.ptr<i16>, %x: i32) attributes {waves = 1 : i32} {
  %v = arith.trunci %x : i32 to i16
  // expected-error @+1 {{works on 'i16'; atomics of integers have 32 or 64 bits}}
  %old = greta_tile.atomic_rmw add relaxed device %p, %v : !greta_tile.ptr<i16> -> i16
  greta_tile.return
}

// -----

greta_tile.func @float_cas(%p: !greta_tile.ptr<f32>) attributes {waves = 1 : i32} {
  %v = arith.constant 1.0 : f32
  // expected-error @+1 {{works on 'f32'; it compares integers of 16, 32 or 64 bits}}
  %old = greta_tile.atomic_cas relaxed device %p, %v, %v : !greta_tile.ptr<f32> -> f32
  greta_tile.return
}

// -----

greta_tile.func @integer_fadd(%p: !greta_tile.ptr<i32>, %v: i32) attributes {waves = 1 : i32} {
  // expected-error @+1 {{adds 'i32'; 'fadd' takes f16, bf16, f32 and f64}}
  %old = greta_tile.atomic_rmw fadd relaxed device %p, %v : !greta_tile.ptr<i32> -> i32
  greta_tile.return
}

// -----

greta_tile.func @lane_pointee(%p: !greta_tile.ptr<i64>, %v: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  // expected-error @+1 {{moves 'i32' through '!greta_tile.ptr<i64>'}}
  %old = greta_tile.ptr_atomic_rmw add device %p[%v], %v : !greta_tile.ptr<i64> -> i32
  greta_tile.return
}

// -----

greta_tile.func @fence() attributes {waves = 1 : i32, wave_size = 64 : i32} {
  // expected-error @+1 {{is relaxed, which orders nothing; it takes acquire, release or acq_rel}}
  greta_tile.fence relaxed device
  greta_tile.return
}

// -----

greta_tile.func @bits(%p: !greta_tile.ptr<i1>, %i: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  // expected-error @+1 {{moves i1, which is a byte in memory; move i8}}
  %v = greta_tile.ptr_load %p[%i] align 1 : !greta_tile.ptr<i1> -> i1
  greta_tile.return
}
