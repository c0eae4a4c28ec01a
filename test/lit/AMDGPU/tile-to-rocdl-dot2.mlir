// RUN: greta-opt %s --greta-tile-to-rocdl=chip=gfx1030 | FileCheck %s --check-prefixes=CHECK,DOT
// RUN: greta-opt %s --greta-tile-to-rocdl=chip=gfx1100 | FileCheck %s --check-prefixes=CHECK,FMA

// Chips without a matrix unit add up products of f16 two at a time, and a third one alone. A sum that is used twice stays.
// CHECK-LABEL: llvm.func protected @sums(
// DOT: %[[S:.*]] = llvm.call_intrinsic "llvm.amdgcn.fdot2"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (vector<2xf16>, vector<2xf16>, f32, i1) -> f32
// DOT: llvm.intr.fma(%{{.*}}, %{{.*}}, %[[S]])
// FMA-NOT: fdot2
// CHECK: llvm.return
greta_tile.func @sums(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>, %s: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %zero = arith.constant 0.0 : f32
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 2 : !greta_tile.ptr<f16> -> vector<4xf16>
  %w = greta_tile.ptr_load %y[%lane] align 2 : !greta_tile.ptr<f16> -> vector<4xf16>
  %v0 = vector.extract %v[0] : f16 from vector<4xf16>
  %v1 = vector.extract %v[1] : f16 from vector<4xf16>
  %v2 = vector.extract %v[3] : f16 from vector<4xf16>
  %w0 = vector.extract %w[0] : f16 from vector<4xf16>
  %w1 = vector.extract %w[2] : f16 from vector<4xf16>
  %w2 = vector.extract %w[3] : f16 from vector<4xf16>
  %a0 = arith.extf %v0 : f16 to f32
  %a1 = arith.extf %v1 : f16 to f32
  %a2 = arith.extf %v2 : f16 to f32
  %b0 = arith.extf %w0 : f16 to f32
  %b1 = arith.extf %w1 : f16 to f32
  %b2 = arith.extf %w2 : f16 to f32
  %s0 = math.fma %a0, %b0, %zero : f32
  %s1 = math.fma %a1, %b1, %s0 : f32
  %s2 = math.fma %a2, %b2, %s1 : f32
  greta_tile.ptr_store %s2, %s[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: llvm.func protected @used_twice(
// CHECK-NOT: fdot2
// CHECK: llvm.return
greta_tile.func @used_twice(%x: !greta_tile.ptr<f16>, %s: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %zero = arith.constant 0.0 : f32
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 2 : !greta_tile.ptr<f16> -> vector<2xf16>
  %v0 = vector.extract %v[0] : f16 from vector<2xf16>
  %v1 = vector.extract %v[1] : f16 from vector<2xf16>
  %a0 = arith.extf %v0 : f16 to f32
  %a1 = arith.extf %v1 : f16 to f32
  %s0 = math.fma %a0, %a1, %zero : f32
  %s1 = math.fma %a1, %a0, %s0 : f32
  %s2 = arith.addf %s0, %s1 : f32
  greta_tile.ptr_store %s2, %s[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}
