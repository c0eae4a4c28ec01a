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

// What has instructions stays; with afn it is the bare one; rsqrt is 1 / sqrt, which the
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

// Narrow functions are computed in f32; what is exact in f16 stays there.
// CHECK-LABEL: llvm.func protected @narrow
// CHECK: llvm.fpext %{{.*}} : f16 to f32
// CHECK: llvm.intr.exp({{.*}}) {{.*}} : (f32) -> f32
// CHECK: llvm.fptrunc %{{.*}} : f32 to f16
// CHECK: llvm.intr.floor(%{{.*}}) : (f16) -> f16
// CHECK: llvm.fpext %{{.*}} : bf16 to f32
// CHECK: llvm.fpext %{{.*}} : bf16 to f32
// CHECK: llvm.fdiv {{.*}} : f32
// CHECK: llvm.fptrunc %{{.*}} : f32 to bf16
greta_tile.func @narrow(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<bf16>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 2 : !greta_tile.ptr<f16> -> f16
  %a = math.exp %v : f16
  %b = math.floor %a : f16
  greta_tile.ptr_store %b, %x[%lane] align 2 : f16 -> !greta_tile.ptr<f16>
  %w = greta_tile.ptr_load %y[%lane] align 2 : !greta_tile.ptr<bf16> -> bf16
  %c = arith.divf %w, %w : bf16
  greta_tile.ptr_store %c, %y[%lane] align 2 : bf16 -> !greta_tile.ptr<bf16>
  greta_tile.return
}

// No function becomes a call, or an intrinsic that the backend would make a
// call of.
// CHECK-LABEL: llvm.func protected @no_calls
// CHECK-NOT: llvm.call
// CHECK-NOT: llvm.intr.{{sin|cos|tan|pow|atan|asin|acos|sinh|cosh|tanh}}
// CHECK: llvm.return
greta_tile.func @no_calls(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<f32> -> f32
  %0 = math.tanh %v : f32
  %1 = math.erf %0 : f32
  %2 = math.sin %1 : f32
  %3 = math.cos %2 : f32
  %4 = math.tan %3 : f32
  %5 = math.powf %4, %v : f32
  %6 = math.sinh %5 : f32
  %7 = math.cosh %6 : f32
  %8 = math.atan2 %7, %v : f32
  %9 = math.asin %8 : f32
  %10 = math.acos %9 : f32
  %11 = math.expm1 %10 : f32
  %12 = math.log1p %11 : f32
  %13 = math.cbrt %12 : f32
  %14 = math.erfc %13 : f32
  %15 = math.atan %14 : f32
  %16 = math.asinh %15 : f32
  %17 = math.acosh %16 : f32
  %18 = math.atanh %17 : f32
  %19 = math.clampf %18 to [%v, %17] : f32
  %20 = arith.remf %19, %v : f32
  greta_tile.ptr_store %20, %x[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  %h = greta_tile.ptr_load %y[%lane] align 2 : !greta_tile.ptr<f16> -> f16
  %21 = math.tanh %h : f16
  %22 = math.powf %21, %h : f16
  greta_tile.ptr_store %22, %y[%lane] align 2 : f16 -> !greta_tile.ptr<f16>
  greta_tile.return
}
