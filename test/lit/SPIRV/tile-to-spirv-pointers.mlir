// RUN: greta-opt %s --split-input-file --greta-tile-to-spirv | FileCheck %s --check-prefixes=CHECK,LOOP
// RUN: greta-opt %s --split-input-file --greta-tile-to-spirv=float-atomics | FileCheck %s --check-prefixes=CHECK,FADD

// Without fences nothing but atomics is shared with other workgroups.
// CHECK: spirv.module @atomics PhysicalStorageBuffer64 GLSL450
// FADD-SAME: AtomicFloat32AddEXT
// FADD-SAME: SPV_EXT_shader_atomic_float_add
greta_tile.func @atomics(%p: !greta_tile.ptr<i32>, %w: !greta_tile.ptr<i64>, %f: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 1 : i32, wave_size = 8 : i32} {
  %i = greta_tile.lane_id
  // CHECK: spirv.AtomicUMax <Device> <None>
  %a = greta_tile.ptr_atomic_rmw umax device %p[%i], %n : !greta_tile.ptr<i32> -> i32
  // CHECK: spirv.AtomicCompareExchange <Workgroup> <None> <None>
  %b = greta_tile.ptr_atomic_cas workgroup %p[%i], %a, %n : !greta_tile.ptr<i32> -> i32
  %c = arith.extsi %b : i32 to i64
  // CHECK: spirv.AtomicIAdd <Device> <None> %{{.*}} : !spirv.ptr<i64, PhysicalStorageBuffer>
  %d = greta_tile.ptr_atomic_rmw add device %w[%i], %c : !greta_tile.ptr<i64> -> i64
  %e = arith.sitofp %b : i32 to f32
  // LOOP: spirv.AtomicOr
  // LOOP: spirv.mlir.loop
  // LOOP: spirv.FAdd
  // LOOP: spirv.AtomicCompareExchange
  // FADD: spirv.EXT.AtomicFAdd <Device> <None>
  %g = greta_tile.ptr_atomic_rmw fadd device %f[%i], %e : !greta_tile.ptr<f32> -> f32
  greta_tile.return
}

// -----

// CHECK: spirv.module @fences PhysicalStorageBuffer64 Vulkan
greta_tile.func @fences(%p: !greta_tile.ptr<i32>, %n: i32) attributes {waves = 1 : i32, wave_size = 8 : i32} {
  // CHECK: spirv.MemoryBarrier <QueueFamily>, <Release|UniformMemory|MakeAvailable>
  greta_tile.fence release device
  // CHECK: spirv.AtomicExchange <QueueFamily> <None>
  %a = greta_tile.ptr_atomic_rmw xchg device %p[%n], %n : !greta_tile.ptr<i32> -> i32
  // CHECK: spirv.MemoryBarrier <QueueFamily>, <Acquire|UniformMemory|MakeVisible>
  greta_tile.fence acquire device
  // CHECK: spirv.Load "PhysicalStorageBuffer" %{{.*}} ["Aligned|NonPrivatePointer", 4]
  %v = greta_tile.ptr_load %p[%a] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %p[%n] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}

// -----

// CHECK: spirv.module @pointers
greta_tile.func @pointers(%p: !greta_tile.ptr<i1>, %n: i32) attributes {waves = 1 : i32, wave_size = 8 : i32} {
  // CHECK: %[[WIDE:.*]] = spirv.SConvert %{{.*}} : i32 to i64
  // CHECK: spirv.IMul %[[WIDE]], %cst1_i64
  %q = greta_tile.ptr_add %p, %n : !greta_tile.ptr<i1>, i32
  %a = greta_tile.ptr_to_int %q : !greta_tile.ptr<i1>
  %r = greta_tile.int_to_ptr %a : i64 -> !greta_tile.ptr<i8>
  // CHECK: spirv.ConvertUToPtr
  %v = greta_tile.ptr_load %r[%n] align 1 : !greta_tile.ptr<i8> -> i8
  greta_tile.ptr_store %v, %r[%n] align 1 : i8 -> !greta_tile.ptr<i8>
  greta_tile.return
}
