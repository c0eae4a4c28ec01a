// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-expand{target=gfx942},cse))' | FileCheck %s --check-prefixes=CHECK,AMD
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-expand{target=vulkan:nvidia},cse))' | FileCheck %s --check-prefixes=CHECK,VULKAN

// A word's numbers less a zero, times a scale: two at a time. A permutation of bytes makes neighbours a pair; else numbers e and e + 4 are one.
// The zero is part of the constant that is taken away.
// CHECK-LABEL: greta_tile.func @word
// AMD: %[[BYTES:.*]] = llvm.call_intrinsic "llvm.amdgcn.perm"(%[[W:.*]], %[[W]], %{{.*}})
// AMD: %[[N:.*]] = arith.andi %[[BYTES]], %c15728655_i32
// AMD: %[[P:.*]] = arith.ori %[[N]], %c1677747200_i32
// AMD: %[[SIXTEEN:.*]] = arith.constant dense<[1.000000e+00, 6.250000e-02]> : vector<2xf16>
// AMD: %[[ZEROS:.*]] = arith.muli %{{.*}}, %c1048577_i32
// AMD: arith.ori %[[ZEROS]]
// AMD: %[[F:.*]] = math.fma %{{.*}}, %[[SIXTEEN]], %{{.*}} : vector<2xf16>
// AMD: arith.mulf %[[F]], %{{.*}} : vector<2xf16>
// AMD-COUNT-3: math.fma
// VULKAN: %[[N:.*]] = arith.andi %{{.*}}, %c983055_i32
// VULKAN: %[[P:.*]] = arith.ori %[[N]], %c1677747200_i32
// VULKAN: arith.muli %{{.*}}, %c65537_i32
// VULKAN: %[[D:.*]] = arith.subf {{.*}} : vector<2xf16>
// VULKAN: arith.mulf %[[D]], {{.*}} : vector<2xf16>
// VULKAN-COUNT-3: arith.shrui
// CHECK: arith.mulf {{.*}} : vector<2xf16>
// CHECK: vector.from_elements {{.*}} : vector<8xf16>
// CHECK-NOT: xi4
greta_tile.func @word(%q: !greta_tile.ptr<i32>, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>, %z: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %w = greta_tile.ptr_load %q[%c0] align 4 : !greta_tile.ptr<i32> -> i32
  %t = greta_tile.ptr_load %s[%c0] align 2 : !greta_tile.ptr<f16> -> f16
  %words = vector.from_elements %w : vector<1xi32>
  %numbers = vector.bitcast %words : vector<1xi32> to vector<8xi4>
  %v = arith.uitofp %numbers : vector<8xi4> to vector<8xf16>
  %z4 = arith.trunci %z : i32 to i4
  %zf = arith.uitofp %z4 : i4 to f16
  %zeros = vector.broadcast %zf : f16 to vector<8xf16>
  %d = arith.subf %v, %zeros : vector<8xf16>
  %scales = vector.broadcast %t : f16 to vector<8xf16>
  %m = arith.mulf %d, %scales : vector<8xf16>
  greta_tile.ptr_store %m, %y[%c0] align 16 : vector<8xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// A scale and a minimum are one fused multiply-add of a pair.
// CHECK-LABEL: greta_tile.func @minimum
// CHECK-DAG: %[[S:.*]] = vector.broadcast %{{.*}} : f16 to vector<2xf16>
// CHECK-DAG: %[[M:.*]] = vector.broadcast %{{.*}} : f16 to vector<2xf16>
// AMD: %[[F:.*]] = math.fma {{.*}} : vector<2xf16>
// AMD: math.fma %[[F]], %{{.*}}, %{{.*}} : vector<2xf16>
// AMD-COUNT-6: math.fma
// VULKAN: %[[D:.*]] = arith.subf {{.*}} : vector<2xf16>
// VULKAN: math.fma %[[D]], %{{.*}}, %{{.*}} : vector<2xf16>
// VULKAN-COUNT-3: math.fma
// CHECK-NOT: math.fma
// CHECK-NOT: xi4
greta_tile.func @minimum(%q: !greta_tile.ptr<i32>, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %w = greta_tile.ptr_load %q[%c0] align 4 : !greta_tile.ptr<i32> -> i32
  %t = greta_tile.ptr_load %s[%c0] align 2 : !greta_tile.ptr<f16> -> f16
  %u = greta_tile.ptr_load %s[%c1] align 2 : !greta_tile.ptr<f16> -> f16
  %words = vector.from_elements %w : vector<1xi32>
  %numbers = vector.bitcast %words : vector<1xi32> to vector<8xi4>
  %v = arith.uitofp %numbers : vector<8xi4> to vector<8xf16>
  %scales = vector.broadcast %t : f16 to vector<8xf16>
  %minima = vector.broadcast %u : f16 to vector<8xf16>
  %d = arith.mulf %v, %scales : vector<8xf16>
  %m = arith.addf %d, %minima fastmath<contract> : vector<8xf16>
  greta_tile.ptr_store %m, %y[%c0] align 16 : vector<8xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// A's own sum is of f32, as sums of f16 may overflow.
// CHECK-LABEL: greta_tile.func @sum
// AMD-COUNT-4: greta_tile.vector_dot {{.*}} : vector<2xf16>
// VULKAN-COUNT-8: arith.extf {{.*}} : f16 to f32
// VULKAN-NOT: vector<2xf16>
// VULKAN: math.fma {{.*}} : f32
greta_tile.func @sum(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f16
  %a = greta_tile.ptr_load %x[%c0] align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
  %ones = vector.from_elements %one, %one, %one, %one, %one, %one, %one, %one : vector<8xf16>
  %sum = greta_tile.vector_dot %a, %ones, %zero : vector<8xf16>
  greta_tile.ptr_store %sum, %y[%c0] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// 128ths need one shift. Elements that are a register together are multiplied together; the sum is the instruction's, or one of pairs.
// CHECK-LABEL: greta_tile.func @dot
// CHECK: arith.andi %{{.*}}, %c983055_i32
// CHECK: arith.ori %{{.*}}, %c1207977984_i32
// CHECK: arith.andi %{{.*}}, %c15728880_i32
// CHECK: arith.ori %{{.*}}, %c939538432_i32
// CHECK: arith.shrui
// CHECK-NOT: arith.shrui
// AMD-COUNT-4: greta_tile.vector_dot {{.*}} : vector<2xf16>
// AMD-NOT: greta_tile.vector_dot
// VULKAN: arith.mulf {{.*}} : vector<2xf16>
// VULKAN-COUNT-3: math.fma {{.*}} : vector<2xf16>
// VULKAN-COUNT-2: arith.extf {{.*}} : f16 to f32
// VULKAN: arith.addf
greta_tile.func @dot(%q: !greta_tile.ptr<i32>, %x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %unit = arith.constant 7.8125e-03 : f16
  %w = greta_tile.ptr_load %q[%c0] align 4 : !greta_tile.ptr<i32> -> i32
  %a = greta_tile.ptr_load %x[%c0] align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
  %words = vector.from_elements %w : vector<1xi32>
  %numbers = vector.bitcast %words : vector<1xi32> to vector<8xi4>
  %v = arith.uitofp %numbers : vector<8xi4> to vector<8xf16>
  %factors = vector.broadcast %unit : f16 to vector<8xf16>
  %m = arith.mulf %v, %factors : vector<8xf16>
  %d = greta_tile.vector_dot %a, %m, %zero : vector<8xf16>
  greta_tile.ptr_store %d, %y[%c0] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}
