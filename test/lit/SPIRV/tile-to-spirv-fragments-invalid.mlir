// RUN: greta-opt %s -greta-tile-to-spirv -split-input-file -verify-diagnostics
// REQUIRES: compiler

greta_tile.func @alone() attributes {wave_size = 1 : i32, waves = 32 : i32} {
  %zero = arith.constant 0.0 : f32
  // expected-error @+1 {{'greta_tile.fragment_splat' op stands in a kernel of wave_size 1; cooperative matrices belong to a subgroup}}
  %f = greta_tile.fragment_splat %zero : f32 -> !greta_tile.fragment<16x16xf32, acc>
  greta_tile.return
}

// -----

greta_tile.func @type() attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %zero = arith.constant 0 : i16
  // expected-error @+1 {{'greta_tile.fragment_splat' op has a value of type '!greta_tile.fragment<16x16xi16, acc>'}}
  %f = greta_tile.fragment_splat %zero : i16 -> !greta_tile.fragment<16x16xi16, acc>
  greta_tile.return
}

// -----

greta_tile.func @apart() attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %s = greta_tile.shared_alloc : !greta_tile.shared<272 x f16>
  // expected-error @+1 {{'greta_tile.fragment_load' op has lines 34 bytes apart; Vulkan takes multiples of 16 for '!greta_tile.fragment<16x16xf16, a>'}}
  %f = greta_tile.fragment_load %s[%c0] stride 17 : !greta_tile.shared<272 x f16> -> !greta_tile.fragment<16x16xf16, a>
  greta_tile.return
}

// -----

greta_tile.func @select(%n: i32) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %zero = arith.constant 0.0 : f32
  %f = greta_tile.fragment_splat %zero : f32 -> !greta_tile.fragment<16x16xf32, acc>
  %c = arith.cmpi eq, %n, %n : i32
  // expected-error @+1 {{'arith.select' op is not known to greta-tile-to-spirv}}
  %g = arith.select %c, %f, %f : !greta_tile.fragment<16x16xf32, acc>
  greta_tile.return
}

// -----

greta_tile.func @vectors() attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %v = arith.constant dense<0.0> : vector<8xf32>
  // expected-error @+1 {{'greta_tile.mma' op is 'wmma.f32' on 'vector<8xf32>'; Vulkan has 'coopmat' on fragments}}
  %d = greta_tile.mma "wmma.f32" %v, %v, %v : vector<8xf32>, vector<8xf32> -> vector<8xf32>
  greta_tile.return
}

// -----

greta_tile.func @intrinsic() attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %zero = arith.constant 0.0 : f32
  %a = greta_tile.fragment_splat %zero : f32 -> !greta_tile.fragment<16x16xf32, a>
  %b = greta_tile.fragment_splat %zero : f32 -> !greta_tile.fragment<16x16xf32, b>
  %c = greta_tile.fragment_splat %zero : f32 -> !greta_tile.fragment<16x16xf32, acc>
  // expected-error @+1 {{'greta_tile.mma' op is 'wmma' on '!greta_tile.fragment<16x16xf32, a>'; Vulkan has 'coopmat' on fragments}}
  %d = greta_tile.mma "wmma" %a, %b, %c : !greta_tile.fragment<16x16xf32, a>, !greta_tile.fragment<16x16xf32, b> -> !greta_tile.fragment<16x16xf32, acc>
  greta_tile.return
}
