// RUN: greta-opt %s --split-input-file --greta-tile-to-spirv | FileCheck %s

// Without fences nothing but atomics is shared with other workgroups.
// CHECK: spirv.module @atomics PhysicalStorageBuffer64 GLSL450
// CHECK-SAME: AtomicFloat32AddEXT
// CHECK-SAME: SPV_EXT_shader_atomic_float_add
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
  // CHECK: spirv.EXT.AtomicFAdd <Device> <None>
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

// -----

// f64 is computed as it is, and moved as two words.
// CHECK: spirv.module @doubles
// CHECK-SAME: Float64
greta_tile.func @doubles(%p: !greta_tile.ptr<f64>, %h: !greta_tile.ptr<f16>, %n: i32) attributes {waves = 1 : i32, wave_size = 8 : i32} {
  // CHECK: %[[WORDS:.*]] = spirv.CompositeConstruct %{{.*}} : (i32, i32) -> vector<2xi32>
  // CHECK: %[[X:.*]] = spirv.Bitcast %[[WORDS]] : vector<2xi32> to f64
  %x = greta_tile.ptr_load %p[%n] align 8 : !greta_tile.ptr<f64> -> f64
  // CHECK: %[[ROOT:.*]] = spirv.GL.Sqrt %[[X]] : f64
  %root = math.sqrt %x : f64
  // CHECK: %[[SUM:.*]] = spirv.FAdd %[[ROOT]], %[[X]] {no_contraction} : f64
  %sum = arith.addf %root, %x : f64
  greta_tile.ptr_store %sum, %p[%n] align 8 : f64 -> !greta_tile.ptr<f64>
  // CHECK: spirv.FConvert %[[SUM]] : f64 to f16
  %half = arith.truncf %sum : f64 to f16
  greta_tile.ptr_store %half, %h[%n] align 2 : f16 -> !greta_tile.ptr<f16>
  greta_tile.return
}

// -----

// Offsets behind an argument that promises less than 2 GiB keep their sign, so
// that one of a lane that is not active stays near the argument.
// CHECK: spirv.module @promised
greta_tile.func @promised(%p: !greta_tile.ptr<f32> {greta.pointer_range}, %q: !greta_tile.ptr<f32>, %b: !greta_tile.ptr<i1> {greta.pointer_range}, %n: i32) attributes {waves = 1 : i32, wave_size = 8 : i32} {
  // CHECK: %[[SIGNED:.*]] = spirv.SConvert %[[N:.*]] : i32 to i64
  // CHECK: spirv.ShiftLeftLogical %[[SIGNED]]
  %v = greta_tile.ptr_load %p[%n wraps] align 4 : !greta_tile.ptr<f32> -> f32
  // CHECK: spirv.UConvert %[[N]] : i32 to i64
  greta_tile.ptr_store %v, %q[%n] align 4 : f32 -> !greta_tile.ptr<f32>
  // CHECK: spirv.SConvert %[[N]] : i32 to i64
  %c = greta_tile.ptr_cast %b : !greta_tile.ptr<i1> -> !greta_tile.ptr<i8>
  %w = greta_tile.ptr_load %c[%n wraps] align 1 : !greta_tile.ptr<i8> -> i8
  greta_tile.ptr_store %w, %c[%n] align 1 : i8 -> !greta_tile.ptr<i8>
  // CHECK: spirv.IAdd %{{.*}}, %cst-4_i64 : i64
  %before = arith.constant -1 : i32
  %u = greta_tile.ptr_load %p[%before] align 4 : !greta_tile.ptr<f32> -> f32
  greta_tile.ptr_store %u, %q[%n] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A barrier for global memory needs the Vulkan memory model as a fence does.
// CHECK: spirv.module @global_barrier PhysicalStorageBuffer64 Vulkan
// CHECK: spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|UniformMemory|WorkgroupMemory|MakeAvailable|MakeVisible>
greta_tile.func @global_barrier(%p: !greta_tile.ptr<i32>, %n: i32) attributes {waves = 1 : i32, wave_size = 8 : i32} {
  greta_tile.barrier global
  greta_tile.return
}

// The fence of the lane of the atomic hands on what all lanes release in front of such a barrier; their own is left out, and one in front of another op is not.
// CHECK: spirv.module @handed_on
// CHECK-NOT: spirv.MemoryBarrier
// CHECK: spirv.ControlBarrier
// CHECK: spirv.MemoryBarrier <QueueFamily>, <Release|UniformMemory|MakeAvailable>
// CHECK: spirv.AtomicExchange
greta_tile.func @handed_on(%p: !greta_tile.ptr<i32>, %n: i32) attributes {waves = 1 : i32, wave_size = 8 : i32} {
  greta_tile.fence release device
  greta_tile.barrier global
  greta_tile.fence release device
  %a = greta_tile.ptr_atomic_rmw xchg device %p[%n], %n : !greta_tile.ptr<i32> -> i32
  greta_tile.return
}
