// RUN: greta-opt %s -greta-tile-to-spirv | FileCheck %s
// RUN: %if coopmat-lavapipe %{ greta-opt %s -greta-tile-to-spirv | %python %root/test/validate_spirv.py %}
// REQUIRES: compiler

// The shell: one module per kernel, arguments by value in one block, nothing declared that is not used.

// CHECK-LABEL: spirv.module @empty PhysicalStorageBuffer64 GLSL450 requires #spirv.vce<v1.5, [Shader, Int64, PhysicalStorageBufferAddresses], []>
// CHECK: spirv.GlobalVariable @args : !spirv.ptr<!spirv.struct<(i64 [0], i64 [8], i32 [16], i32 [20]), Block>, PushConstant>
// CHECK-NOT: spirv.Load
// CHECK: spirv.EntryPoint "GLCompute" @empty, @args
// CHECK: spirv.ExecutionMode @empty "LocalSize", 64, 1, 1
greta_tile.func @empty(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32, %m: i32) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  greta_tile.return
}

// CHECK-LABEL: spirv.module @nothing
// CHECK-NOT: @args
// CHECK: spirv.EntryPoint "GLCompute" @nothing
greta_tile.func @nothing() attributes {wave_size = 1 : i32, waves = 1 : i32} {
  greta_tile.return
}

// Eight f16 are one access of four words. The offset is below 2^32 bytes, so that it is scaled in 32 bits; the constant in it
// becomes a constant of the address. The words stay words.

// CHECK-LABEL: spirv.module @wide
// CHECK-SAME: [Shader, Float16, Int64, GroupNonUniform, PhysicalStorageBufferAddresses]
// CHECK-DAG: %[[LANE:.*]] = spirv.Load "Input" %{{.*}} : i32
// CHECK-DAG: %[[C64:.*]] = spirv.Constant 64 : i64
// CHECK: %[[E:.*]] = spirv.IMul %[[LANE]]
// CHECK: %[[B:.*]] = spirv.ShiftLeftLogical %[[E]], %{{.*}} : i32, i32
// CHECK: %[[U:.*]] = spirv.UConvert %[[B]] : i32 to i64
// CHECK: %[[A:.*]] = spirv.IAdd %{{.*}}, %[[U]] : i64
// CHECK: %[[P:.*]] = spirv.ConvertUToPtr %[[A]] : i64 to !spirv.ptr<vector<4xi32>, PhysicalStorageBuffer>
// CHECK: spirv.Load "PhysicalStorageBuffer" %[[P]] ["Aligned", 16] : vector<4xi32>
// CHECK-NOT: spirv.Bitcast
// CHECK: %[[A2:.*]] = spirv.IAdd %{{.*}}, %[[C64]] : i64
// CHECK: %[[P2:.*]] = spirv.ConvertUToPtr %[[A2]]
// CHECK: spirv.Store "PhysicalStorageBuffer" %[[P2]], %{{.*}} ["Aligned", 16] : vector<4xi32>
greta_tile.func @wide(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %c8 = arith.constant 8 : i32
  %c32 = arith.constant 32 : i32
  %i = arith.muli %lane, %c8 : i32
  %j = arith.addi %i, %c32 : i32
  %v = greta_tile.ptr_load %x[%i] align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
  greta_tile.ptr_store %v, %y[%j] align 16 : vector<8xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// An offset without a bound: 64-bit before it is scaled. ptr_add moves the base by elements.

// CHECK-LABEL: spirv.module @far
// CHECK: spirv.IMul %{{.*}}, %{{.*}} : i64
// CHECK: %[[U:.*]] = spirv.UConvert %[[N:.*]] : i32 to i64
// CHECK: %[[B:.*]] = spirv.ShiftLeftLogical %[[U]], %{{.*}} : i64, i32
// CHECK: spirv.IAdd %{{.*}}, %[[B]] : i64
greta_tile.func @far(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %row = greta_tile.program_id 1
  %wide = arith.extui %row : i32 to i64
  %xr = greta_tile.ptr_add %x, %wide : !greta_tile.ptr<f32>, i64
  %v = greta_tile.ptr_load %xr[%n] align 4 : !greta_tile.ptr<f32> -> f32
  greta_tile.ptr_store %v, %y[%n] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Widths follow the alignment and the bytes left: 16 bytes aligned to 8 are two accesses, 6 bytes a word and a half, scalars their own type.

// CHECK-LABEL: spirv.module @widths
// CHECK: "Aligned", 8] : vector<2xf32>
// CHECK: "Aligned", 8] : vector<2xf32>
// CHECK: "Aligned", 4] : i32
// CHECK: "Aligned", 2] : f16
// CHECK: "Aligned", 2] : i16
// CHECK: spirv.UConvert %{{.*}} : i16 to i32
// CHECK: "Aligned", 4] : i32
// CHECK: "Aligned", 1] : i8
// CHECK: "Aligned", 8] : vector<2xi32>
// CHECK: spirv.Bitcast %{{.*}} : vector<2xi32> to i64
greta_tile.func @widths(%f32: !greta_tile.ptr<f32>, %f16: !greta_tile.ptr<f16>, %bf16: !greta_tile.ptr<bf16>, %i8: !greta_tile.ptr<i8>, %i64: !greta_tile.ptr<i64>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = greta_tile.ptr_load %f32[%c0] align 8 : !greta_tile.ptr<f32> -> vector<4xf32>
  %b = greta_tile.ptr_load %f16[%c0] align 8 : !greta_tile.ptr<f16> -> vector<3xf16>
  %c = greta_tile.ptr_load %bf16[%c0] align 2 : !greta_tile.ptr<bf16> -> bf16
  %d = greta_tile.ptr_load %i8[%c0] align 4 : !greta_tile.ptr<i8> -> vector<5xi8>
  %e = greta_tile.ptr_load %i64[%c0] align 8 : !greta_tile.ptr<i64> -> i64
  greta_tile.ptr_store %a, %f32[%c0] align 4 : vector<4xf32> -> !greta_tile.ptr<f32>
  greta_tile.ptr_store %b, %f16[%c0] align 2 : vector<3xf16> -> !greta_tile.ptr<f16>
  greta_tile.ptr_store %c, %bf16[%c0] align 2 : bf16 -> !greta_tile.ptr<bf16>
  greta_tile.ptr_store %d, %i8[%c0] align 1 : vector<5xi8> -> !greta_tile.ptr<i8>
  greta_tile.ptr_store %e, %i64[%c0] align 8 : i64 -> !greta_tile.ptr<i64>
  greta_tile.return
}

// Shared arrays: an element is a scalar, or a vector of words. Each array is a multiple of 16 bytes,
// so that the next one is aligned for matrix loads.

// CHECK-LABEL: spirv.module @shared
// CHECK-DAG: spirv.GlobalVariable @[[S0:.*]] : !spirv.ptr<!spirv.array<16 x vector<4xi32>>, Workgroup>
// CHECK-DAG: : !spirv.ptr<!spirv.array<8 x i16>, Workgroup>
// CHECK: spirv.Store "Workgroup" %{{.*}} : vector<4xi32>
// CHECK: spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|WorkgroupMemory>
// CHECK: spirv.Load "Workgroup" %{{.*}} : vector<4xi32>
// CHECK: spirv.EntryPoint "GLCompute" @shared, {{.*}}@[[S0]]
greta_tile.func @shared(%x: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %halves = greta_tile.shared_alloc : !greta_tile.shared<16 x vector<4xi32>>
  %bf = greta_tile.shared_alloc : !greta_tile.shared<4 x i16>
  %i = greta_tile.wave_id
  %v = arith.constant dense<1> : vector<4xi32>
  %b = arith.constant 2 : i16
  greta_tile.shared_store %v, %halves[%i] : !greta_tile.shared<16 x vector<4xi32>>
  greta_tile.shared_store %b, %bf[%c0] : !greta_tile.shared<4 x i16>
  greta_tile.barrier
  %w = greta_tile.shared_load %halves[%c0] : !greta_tile.shared<16 x vector<4xi32>>
  %c = greta_tile.shared_load %bf[%c0] : !greta_tile.shared<4 x i16>
  %h = vector.bitcast %w : vector<4xi32> to vector<8xf16>
  %wide = arith.extf %h : vector<8xf16> to vector<8xf32>
  %e = vector.extract %wide[7] : f32 from vector<8xf32>
  %f = arith.sitofp %c : i16 to f32
  %g = arith.addf %e, %f : f32
  greta_tile.ptr_store %g, %x[%c0] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Shuffles move 32 bits.

// CHECK-LABEL: spirv.module @shuffles
// CHECK-SAME: GroupNonUniformShuffle
// CHECK: spirv.GroupNonUniformShuffleXor <Subgroup> %{{.*}}, %{{.*}} : f32, i32
// CHECK: spirv.GroupNonUniformShuffle <Subgroup> %{{.*}}, %{{.*}} : i32, i32
// CHECK: spirv.FConvert %{{.*}} : f16 to f32
// CHECK: spirv.GroupNonUniformShuffleXor <Subgroup> %{{.*}}, %{{.*}} : f32
// CHECK: spirv.FConvert %{{.*}} : f32 to f16
// CHECK: spirv.GroupNonUniformShuffleXor <Subgroup> %{{.*}}, %{{.*}} : i32
// CHECK: spirv.GroupNonUniformShuffleXor <Subgroup> %{{.*}}, %{{.*}} : i32
// CHECK: spirv.Bitcast %{{.*}} : vector<2xi32> to i64
greta_tile.func @shuffles(%x: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<f32> -> f32
  %a = greta_tile.shuffle_xor %v, 16 : f32
  %b = greta_tile.shuffle %lane, %wave : i32
  %h = arith.truncf %a : f32 to f16
  %c = greta_tile.shuffle_xor %h, 1 : f16
  %l = arith.extui %b : i32 to i64
  %d = greta_tile.shuffle_xor %l, 2 : i64
  %e = arith.trunci %d : i64 to i32
  %f = arith.extf %c : f16 to f32
  greta_tile.ptr_store %f, %x[%e] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Lanes add to counters in shared memory; bits are counted.

// CHECK-LABEL: spirv.module @counters
// CHECK: spirv.GlobalVariable @shared{{.*}} : !spirv.ptr<!spirv.array<16 x i32{{.*}}>, Workgroup>
// CHECK: %[[BITS:.*]] = spirv.BitCount
// CHECK: %[[P:.*]] = spirv.AccessChain
// CHECK: spirv.AtomicIAdd <Workgroup> <None> %[[P]], %[[BITS]] : !spirv.ptr<i32, Workgroup>
greta_tile.func @counters(%n: i32) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %a = greta_tile.shared_alloc : !greta_tile.shared<16 x i32>
  %i = greta_tile.lane_id
  %c = math.ctpop %n : i32
  greta_tile.shared_add %c, %a[%i] : !greta_tile.shared<16 x i32>
  greta_tile.return
}

// Arrays with one offset are one variable, as large as the largest; a stage is its array.
// CHECK-LABEL: spirv.module @places
// CHECK-DAG: spirv.GlobalVariable @[[BOTH:.*]] : !spirv.ptr<!spirv.array<96 x f32>, Workgroup>
// CHECK-DAG: spirv.GlobalVariable @{{.*}} : !spirv.ptr<!spirv.array<16 x f32>, Workgroup>
// CHECK-NOT: Workgroup>
// CHECK: spirv.mlir.addressof @[[BOTH]]
// CHECK-NOT: spirv.mlir.addressof @[[BOTH]]
// CHECK: spirv.EntryPoint "GLCompute" @places
greta_tile.func @places(%x: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 64 : i32} {
  %c1 = arith.constant 1 : i32
  %a = greta_tile.shared_alloc offset 0 : !greta_tile.shared<64 x f32>
  %b = greta_tile.shared_alloc offset 384 : !greta_tile.shared<16 x f32>
  %c = greta_tile.shared_alloc offset 0 : !greta_tile.shared<96 x f32>
  %half = greta_tile.shared_stage %c[%c1] of 2 : !greta_tile.shared<96 x f32>
  %v = greta_tile.shared_load %a[%c1] : !greta_tile.shared<64 x f32>
  greta_tile.shared_store %v, %b[%c1] : !greta_tile.shared<16 x f32>
  greta_tile.barrier
  greta_tile.shared_store %v, %half[%c1] : !greta_tile.shared<96 x f32>
  greta_tile.return
}
