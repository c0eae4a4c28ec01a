// RUN: greta-opt %s --greta-tile-to-rocdl=chip=gfx942 | FileCheck %s --check-prefixes=CHECK,PAIRS
// RUN: greta-opt %s --greta-tile-to-rocdl=chip=gfx950 | FileCheck %s --check-prefixes=CHECK,PAIRS

// Beside matrix instructions neighbours that do the same are one op of a pair; what needs the one before it is none.
// CHECK-LABEL: llvm.func protected @beside(
// CHECK: llvm.call_intrinsic "llvm.amdgcn.mfma.f32.32x32x8f16"
// PAIRS: llvm.fmul %{{.*}}, %{{.*}} : vector<2xf32>
// PAIRS: %[[PAIR:.*]] = llvm.fsub {{.*}} : vector<2xf32>
// PAIRS: llvm.extractelement %[[PAIR]]
// PAIRS: llvm.fadd %{{.*}}, %{{.*}} : f32
// PAIRS-NEXT: llvm.fadd %{{.*}}, %{{.*}} : f32
greta_tile.func @beside(%x: !greta_tile.ptr<f32>, %h: !greta_tile.ptr<f16>, %scale: f32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %a = greta_tile.ptr_load %h[%lane] align 8 : !greta_tile.ptr<f16> -> vector<4xf16>
  %sum = greta_tile.mma "mfma.f32.32x32x8f16" %a, %a, %zero : vector<4xf16>, vector<4xf16> -> vector<16xf32>
  %0 = vector.extract %sum[0] : f32 from vector<16xf32>
  %1 = vector.extract %sum[1] : f32 from vector<16xf32>
  %2 = arith.mulf %0, %scale : f32
  %3 = arith.mulf %1, %scale : f32
  %4 = arith.subf %2, %0 : f32
  %5 = arith.subf %3, %1 : f32
  %6 = arith.addf %4, %5 : f32
  %7 = arith.addf %6, %5 : f32
  greta_tile.ptr_store %7, %x[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Elsewhere nothing waits for a matrix unit.
// CHECK-LABEL: llvm.func protected @alone(
// CHECK-NOT: vector<2xf32>
// CHECK: llvm.return
greta_tile.func @alone(%x: !greta_tile.ptr<f32>, %scale: f32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %0 = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<f32> -> f32
  %1 = arith.mulf %0, %scale : f32
  %2 = arith.mulf %scale, %0 : f32
  %3 = arith.subf %1, %2 : f32
  greta_tile.ptr_store %3, %x[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}
