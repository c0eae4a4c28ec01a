// RUN: greta-opt %s -greta-tile-to-spirv -split-input-file -verify-diagnostics
// REQUIRES: compiler

greta_tile.func @double(%x: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  // expected-error @+1 {{'arith.constant' op has a value of type 'f128', which greta-tile-to-spirv has no registers for; it takes f16, bf16, f32, f64, i1, i8, i16, i32, i64 and vectors of them with one dimension}}
  %c = arith.constant 1.0 : f128
  greta_tile.return
}

// -----

greta_tile.func @index(%x: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  // expected-error @+1 {{'arith.constant' op has a value of type 'index'}}
  %c = arith.constant 1 : index
  greta_tile.return
}

// -----

greta_tile.func @matrix(%x: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  // expected-error @+1 {{'arith.constant' op has a value of type 'vector<2x2xf32>'}}
  %c = arith.constant dense<1.0> : vector<2x2xf32>
  greta_tile.return
}

// -----

// expected-error @+1 {{'greta_tile.func' op has an argument of type '!greta_tile.ptr<f8E4M3FN>'; greta-tile-to-spirv moves f16, bf16, f32, f64, i8, i16, i32 and i64}}
greta_tile.func @float8(%x: !greta_tile.ptr<f8E4M3FN>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  greta_tile.return
}

// -----

greta_tile.func @block(%x: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  // expected-error @+1 {{'arith.constant' op has a value of type 'tensor<4xf32>'}}
  %c = arith.constant dense<1.0> : tensor<4xf32>
  greta_tile.return
}

// -----

greta_tile.func @unaligned(%x: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error @+1 {{'greta_tile.ptr_load' op moves 'f32' aligned to 2 bytes; greta-tile-to-spirv needs the alignment of an element}}
  %v = greta_tile.ptr_load %x[%c0] align 2 : !greta_tile.ptr<f32> -> f32
  greta_tile.return
}

// -----

greta_tile.func @alone(%x: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 32 : i32} {
  %t = greta_tile.wave_id
  // expected-error @+1 {{'greta_tile.shuffle_xor' op stands in a kernel of wave_size 1, which has no subgroup operations; exchange through shared memory}}
  %v = greta_tile.shuffle_xor %t, 1 : i32
  greta_tile.return
}

// -----

greta_tile.func @outside(%x: !greta_tile.ptr<f32>) attributes {wave_size = 8 : i32, waves = 4 : i32} {
  %t = greta_tile.lane_id
  // expected-error @+1 {{'greta_tile.shuffle_xor' op has mask 8 in waves of 8}}
  %v = greta_tile.shuffle_xor %t, 8 : i32
  greta_tile.return
}

// -----

greta_tile.func @masked(%x: !greta_tile.ptr<f32>, %i: i32) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %c8 = arith.constant 8 : i32
  %m = arith.cmpi slt, %i, %c8 : i32
  // expected-error @+1 {{has a mask, which Vulkan's loads have not; put it in a branch}}
  %v = greta_tile.ptr_load %x[%i] mask %m align 4 : !greta_tile.ptr<f32> -> f32
  greta_tile.return
}

// -----

greta_tile.func @function(%x: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  // expected-error @+1 {{'math.cttz' op is not known to greta-tile-to-spirv}}
  %c = math.cttz %n : i32
  greta_tile.return
}

// -----

greta_tile.func @half_word(%x: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %c = arith.constant dense<1> : vector<1xi16>
  // expected-error @+1 {{'vector.bitcast' op reinterprets 'vector<1xi16>' as 'vector<1xf16>'; greta-tile-to-spirv does so by whole 32-bit words}}
  %d = vector.bitcast %c : vector<1xi16> to vector<1xf16>
  greta_tile.return
}

// -----

greta_tile.func @element(%x: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %v = arith.constant dense<1.0> : vector<2xf32>
  // expected-error @+1 {{'vector.extract' op has a position that is not one constant}}
  %c = vector.extract %v[] : vector<2xf32> from vector<2xf32>
  greta_tile.return
}

// -----

greta_tile.func @launched(%x: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%n: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'greta_tile.launch' op refers to a kernel that is to be replaced}}
  %0 = greta_tile.launch @launched grid affine_map<() -> (1)> scalars affine_map<() -> ()> () shapes [affine_map<() -> (4)>] : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

greta_tile.func @counter(%x: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %c = arith.constant 1 : i16
  // expected-error @+1 {{counts in 'i16'; greta-tile-to-spirv takes loops over i32 and i64}}
  scf.for %i = %c to %c step %c : i16 {
  }
  greta_tile.return
}

// -----

// expected-error @+1 {{has an argument of type 'i1'; greta-tile-to-spirv takes pointers, i32, i64 and f32: greta-tile-explicit-arguments makes them of others}}
greta_tile.func @scalar(%c: i1) attributes {wave_size = 8 : i32, waves = 1 : i32} {
  greta_tile.return
}

// -----

greta_tile.func @halves() attributes {wave_size = 32 : i32, waves = 1 : i32} {
  // expected-error @+1 {{'greta_tile.shared_alloc' op allocates '!greta_tile.shared<64 x vector<8xf16>>'; greta-expand makes words or other scalars of the elements}}
  %s = greta_tile.shared_alloc : !greta_tile.shared<64 x vector<8xf16>>
  greta_tile.return
}
