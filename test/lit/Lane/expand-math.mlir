// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-expand{target=gfx1201}))' | FileCheck %s --check-prefixes=CHECK,AMD
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-expand{target=vulkan:nvidia}))' | FileCheck %s --check-prefixes=CHECK,VULKAN

// Narrow functions are computed in f32; AMD's f16 has those that are exact.
// CHECK-LABEL: greta_tile.func @narrow
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: math.exp %{{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
// AMD: math.floor %{{.*}} : f16
// VULKAN: math.floor %{{.*}} : f32
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.divf {{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to bf16
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

// A fused multiply-add that rounds once takes pi/2 away in three steps, else it is four of products that are exact.
// CHECK-LABEL: greta_tile.func @sine
// CHECK: math.roundeven
// AMD-COUNT-3: math.fma
// VULKAN-COUNT-4: arith.subf
// CHECK: arith.fptosi %{{.*}} : vector<2xf32> to vector<2xi32>
// CHECK-NOT: math.
greta_tile.func @sine(%x: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<f32> -> vector<2xf32>
  %s = math.sin %v : vector<2xf32>
  greta_tile.ptr_store %s, %x[%lane] align 4 : vector<2xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Small whole exponents are products.
// CHECK-LABEL: greta_tile.func @cube
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[V:.*]], %[[V]]
// CHECK: arith.mulf %[[V]], %[[SQUARE]]
// CHECK-NOT: math.
greta_tile.func @cube(%x: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %three = arith.constant 3.0 : f32
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<f32> -> f32
  %s = math.powf %v, %three : f32
  greta_tile.ptr_store %s, %x[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// An exponent beyond 64 is no chain of products, whatever integer it is.
// CHECK-LABEL: greta_tile.func @huge_power
// CHECK: math.exp2
greta_tile.func @huge_power(%x: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %huge = arith.constant 1.0e+30 : f32
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<f32> -> f32
  %p = math.powf %v, %huge : f32
  greta_tile.ptr_store %p, %x[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// The functions that are left have instructions on the target.
// CHECK-LABEL: greta_tile.func @functions
// AMD-NOT: math.{{(sin|cos|tan|pow|atan|asin|acos|sinh|cosh|tanh|erf|expm1|log1p)}}
// VULKAN-NOT: math.{{(ceil|copysign|trunc|sin|cos|tan|pow|atan|asin|acos|sinh|cosh|tanh|erf|expm1|log1p)}}
// CHECK: greta_tile.return
greta_tile.func @functions(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
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

// Vulkan counts bits of words, so zeros above the highest bit are those that are left when all below it are set.
// CHECK-LABEL: greta_tile.func @zeros
// AMD-COUNT-3: math.ctlz
// VULKAN-NOT: math.ctlz
// VULKAN: %[[SHIFTED:.*]] = arith.shrui %[[X:.*]], %c1_i32 : i32
// VULKAN: arith.ori %[[X]], %[[SHIFTED]]
// VULKAN: %[[BITS:.*]] = math.ctpop %{{.*}} : i32
// VULKAN: arith.subi %c32_i32{{[^,]*}}, %[[BITS]]
// VULKAN: arith.subi %c16_i32{{[^,]*}}, %{{.*}}
// VULKAN: arith.trunci %{{.*}} : i32 to i16
// VULKAN-COUNT-2: math.ctpop %{{.*}} : i32
// VULKAN: arith.extui %{{.*}} : i32 to i64
greta_tile.func @zeros(%x: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i16>, %z: !greta_tile.ptr<i64>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %0 = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<i32> -> i32
  %1 = math.ctlz %0 : i32
  greta_tile.ptr_store %1, %x[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  %2 = greta_tile.ptr_load %y[%lane] align 2 : !greta_tile.ptr<i16> -> i16
  %3 = math.ctlz %2 : i16
  greta_tile.ptr_store %3, %y[%lane] align 2 : i16 -> !greta_tile.ptr<i16>
  %4 = greta_tile.ptr_load %z[%lane] align 8 : !greta_tile.ptr<i64> -> i64
  %5 = math.ctlz %4 : i64
  greta_tile.ptr_store %5, %z[%lane] align 8 : i64 -> !greta_tile.ptr<i64>
  greta_tile.return
}
