// Vulkan's remainder of floats may be that of a rounded quotient: a division of integers takes its place. AMD's is exact.
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-expand{target=gfx1201}))' | FileCheck %s --check-prefix=AMD
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-expand{target=vulkan:nvidia}))' | FileCheck %s --check-prefix=VULKAN --implicit-check-not=arith.remf

// AMD: arith.remf %{{.*}} : f16
// AMD: arith.remf %{{.*}} : f64
// VULKAN: scf.while {{.*}} : (i32, i32) -> (i32, i32)
// VULKAN: arith.minui %{{.*}}, %c8_i32
// VULKAN: arith.remui
// VULKAN: arith.truncf %{{.*}} : f32 to f16
// VULKAN: scf.while {{.*}} : (i64, i64) -> (i64, i64)
// VULKAN: arith.minui %{{.*}}, %c11_i64
greta_tile.func @remainders(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f64>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %a = greta_tile.ptr_load %x[%lane] align 2 : !greta_tile.ptr<f16> -> f16
  %b = arith.remf %a, %a : f16
  greta_tile.ptr_store %b, %x[%lane] align 2 : f16 -> !greta_tile.ptr<f16>
  %c = greta_tile.ptr_load %y[%lane] align 8 : !greta_tile.ptr<f64> -> f64
  %d = arith.remf %c, %c : f64
  greta_tile.ptr_store %d, %y[%lane] align 8 : f64 -> !greta_tile.ptr<f64>
  greta_tile.return
}
