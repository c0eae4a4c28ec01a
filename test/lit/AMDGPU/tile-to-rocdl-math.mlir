// RUN: greta-opt %s --greta-tile-to-rocdl=chip=gfx1201 | FileCheck %s

// f32 contracts, narrower types round where the source says so.
// CHECK-LABEL: llvm.func protected @contraction
// CHECK: llvm.fmul {{.*}}contract
// CHECK: llvm.fadd {{.*}}contract
// CHECK: llvm.fmul %{{[^ ]*}}, %{{[^ ]*}} : f16
// CHECK: llvm.fadd %{{[^ ]*}}, %{{[^ ]*}} : f16
greta_tile.func @contraction(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<f32> -> f32
  %a = arith.mulf %v, %v : f32
  %b = arith.addf %a, %v : f32
  greta_tile.ptr_store %b, %x[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  %h = greta_tile.ptr_load %y[%lane] align 2 : !greta_tile.ptr<f16> -> f16
  %c = arith.mulf %h, %h : f16
  %d = arith.addf %c, %h : f16
  greta_tile.ptr_store %d, %y[%lane] align 2 : f16 -> !greta_tile.ptr<f16>
  greta_tile.return
}

// Functions that have instructions stay. With afn an instruction stands alone. rsqrt is 1 / sqrt, which the
// backend makes one instruction of.
// CHECK-LABEL: llvm.func protected @native
// CHECK: llvm.intr.exp({{.*}}) {fastmathFlags = #llvm.fastmath<contract>}
// CHECK: %[[SCALED:.*]] = llvm.fmul
// CHECK: rocdl.exp2 %[[SCALED]]
// CHECK-NOT: llvm.fmul
// CHECK: rocdl.exp2
// CHECK: llvm.intr.log2
// CHECK: llvm.intr.sqrt
// CHECK: llvm.fdiv
// CHECK: llvm.intr.maximum
// CHECK: llvm.intr.fma
greta_tile.func @native(%x: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<f32> -> f32
  %a = math.exp %v : f32
  %b = math.exp %a fastmath<afn> : f32
  %b2 = math.exp2 %b fastmath<afn> : f32
  %c = math.log2 %b2 : f32
  %d = math.rsqrt %c : f32
  %e = arith.maximumf %d, %v : f32
  %f = math.fma %e, %v, %v : f32
  greta_tile.ptr_store %f, %x[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}
