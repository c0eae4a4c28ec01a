// RUN: greta-opt %s --split-input-file --greta-tile-to-spirv --verify-diagnostics

greta_tile.func @system(%p: !greta_tile.ptr<i32>, %n: i32) attributes {waves = 1 : i32, wave_size = 8 : i32} {
  // expected-error @+1 {{has the scope 'system'; Vulkan has none beyond the device: use 'device'}}
  %a = greta_tile.ptr_atomic_rmw add system %p[%n], %n : !greta_tile.ptr<i32> -> i32
  greta_tile.return
}

// -----

greta_tile.func @half(%p: !greta_tile.ptr<f16>, %n: i32) attributes {waves = 1 : i32, wave_size = 8 : i32} {
  %v = arith.constant 1.0 : f16
  // expected-error @+1 {{works on 'f16'; greta-tile-to-spirv has atomics of i32, i64 and f32: greta-tile-expand-atomics makes them of others}}
  %a = greta_tile.ptr_atomic_rmw fadd device %p[%n], %v : !greta_tile.ptr<f16> -> f16
  greta_tile.return
}
