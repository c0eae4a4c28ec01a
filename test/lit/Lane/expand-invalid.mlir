// RUN: greta-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(greta-expand{target=gfx1}),greta_tile.func(greta-expand{target=gfx1100}))'

// expected-error @below {{unknown target 'gfx1'; targets are gfx90a}}
func.func @f(%x: f8E5M2) -> f16 {
  %0 = arith.extf %x : f8E5M2 to f16
  return %0 : f16
}

// -----

greta_tile.func @f64(%x: !greta_tile.ptr<f64>, %n: i32) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %v = greta_tile.ptr_load %x[%n] align 8 : !greta_tile.ptr<f64> -> f64
  // expected-error @+1 {{is on f64, and has no expansion there; compute it in f32}}
  %0, %1 = math.sincos %v : f64
  greta_tile.ptr_store %0, %x[%n] align 8 : f64 -> !greta_tile.ptr<f64>
  greta_tile.return
}

// -----

greta_tile.func @unknown(%x: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %v = greta_tile.ptr_load %x[%n] align 4 : !greta_tile.ptr<f32> -> f32
  // expected-error @+1 {{has neither an instruction nor an expansion on gfx1100}}
  %sin, %cos = math.sincos %v : f32
  greta_tile.ptr_store %sin, %x[%n] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}
