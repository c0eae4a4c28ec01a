// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-expand{target=vulkan:nvidia}),greta-tile-to-spirv)' | FileCheck %s
// RUN: %if coopmat-lavapipe %{ greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-expand{target=vulkan:nvidia}),greta-tile-to-spirv)' | %python %root/test/validate_spirv.py %}
// REQUIRES: compiler

// Fragments are cooperative matrices of subgroup scope, in the Vulkan memory model: shared memory is read and written as not private, and the
// barrier makes it available and visible. The stride counts array entries of 16 bytes. The accumulator is an argument of the loop's header.

// CHECK-LABEL: spirv.module @product PhysicalStorageBuffer64 Vulkan
// CHECK-SAME: VulkanMemoryModel
// CHECK-SAME: CooperativeMatrixKHR
// CHECK-SAME: [SPV_KHR_cooperative_matrix]>
// CHECK-DAG: %[[C9:.*]] = spirv.Constant 9 : i32
// CHECK-DAG: %[[ZERO:.*]] = spirv.Constant 0.000000e+00 : f32
// CHECK-DAG: %[[AS:.*]] = spirv.mlir.addressof @{{.*}} : !spirv.ptr<!spirv.array<144 x vector<4xi32>>, Workgroup>
// CHECK: %[[ACC:.*]] = spirv.CompositeConstruct %[[ZERO]] : (f32) -> !spirv.coopmatrix<16x8xf32, Subgroup, MatrixAcc>
// CHECK: spirv.Store "Workgroup" %{{.*}}, %{{.*}} ["NonPrivatePointer"] : vector<4xi32>
// CHECK: spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|WorkgroupMemory|MakeAvailable|MakeVisible>
// CHECK: spirv.mlir.loop
// CHECK: ^bb{{.}}(%{{.*}}: i32, %[[SUM:.*]]: !spirv.coopmatrix<16x8xf32, Subgroup, MatrixAcc>)
// CHECK: %[[P:.*]] = spirv.AccessChain %[[AS]][%{{.*}}] : {{.*}} -> !spirv.ptr<vector<4xi32>, Workgroup>
// CHECK: %[[A:.*]] = spirv.KHR.CooperativeMatrixLoad %[[P]], %[[C9]], <RowMajor>, <NonPrivatePointer> : {{.*}} -> !spirv.coopmatrix<16x16xf16, Subgroup, MatrixA>
// CHECK: %[[B:.*]] = spirv.KHR.CooperativeMatrixLoad %{{.*}}, %[[C9]], <ColumnMajor>, <NonPrivatePointer> : {{.*}} -> !spirv.coopmatrix<16x8xf16, Subgroup, MatrixB>
// CHECK: spirv.KHR.CooperativeMatrixMulAdd %[[A]], %[[B]], %[[SUM]] :
// CHECK: spirv.KHR.CooperativeMatrixStore %{{.*}}, %{{.*}}, %{{.*}}, <RowMajor>, <NonPrivatePointer> : !spirv.ptr<vector<2xf32>, Workgroup>
greta_tile.func @product(%x: !greta_tile.ptr<f16>, %n: i32) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %zero = arith.constant 0.0 : f32
  %v = arith.constant dense<1.0> : vector<8xf16>
  %wave = greta_tile.wave_id
  %as = greta_tile.shared_alloc : !greta_tile.shared<144 x vector<8xf16>>
  %cs = greta_tile.shared_alloc : !greta_tile.shared<64 x vector<2xf32>>
  %acc = greta_tile.fragment_splat %zero : f32 -> !greta_tile.fragment<16x8xf32, acc>
  greta_tile.shared_store %v, %as[%c0] : !greta_tile.shared<144 x vector<8xf16>>
  greta_tile.barrier
  %r = scf.for %i = %c0 to %n step %c2 iter_args(%sum = %acc) -> (!greta_tile.fragment<16x8xf32, acc>) : i32 {
    %a = greta_tile.fragment_load %as[%i] stride 9 : !greta_tile.shared<144 x vector<8xf16>> -> !greta_tile.fragment<16x16xf16, a>
    %b = greta_tile.fragment_load %as[%i] stride 9 transposed : !greta_tile.shared<144 x vector<8xf16>> -> !greta_tile.fragment<16x8xf16, b>
    %d = greta_tile.mma "coopmat" %a, %b, %sum : !greta_tile.fragment<16x16xf16, a>, !greta_tile.fragment<16x8xf16, b> -> !greta_tile.fragment<16x8xf32, acc>
    scf.yield %d : !greta_tile.fragment<16x8xf32, acc>
  }
  greta_tile.fragment_store %r, %cs[%c0] stride 4 : !greta_tile.fragment<16x8xf32, acc> -> !greta_tile.shared<64 x vector<2xf32>>
  greta_tile.return
}

// Elements are members; a matrix is made of them by inserting into one of zeros. An array element of eight entries multiplies index and
// stride.

// CHECK-LABEL: spirv.module @elements
// CHECK-DAG: %[[C8:.*]] = spirv.Constant 8 : i32
// CHECK-DAG: %[[C16:.*]] = spirv.Constant 16 : i32
// CHECK: %[[P:.*]] = spirv.AccessChain %{{.*}}[%[[C8]]]
// CHECK: %[[M:.*]] = spirv.KHR.CooperativeMatrixLoad %[[P]], %[[C16]], <RowMajor>
// CHECK: spirv.CompositeExtract %[[M]][3 : i32] : !spirv.coopmatrix<8x8xf32, Subgroup, MatrixAcc>
// CHECK: spirv.CompositeConstruct %{{.*}} : (f16) -> !spirv.coopmatrix<8x8xf16, Subgroup, MatrixA>
// CHECK-COUNT-8: spirv.CompositeInsert %{{.*}}, %{{.*}}[{{. : i32}}] : f16 into !spirv.coopmatrix<8x8xf16, Subgroup, MatrixA>
greta_tile.func @elements() attributes {wave_size = 8 : i32, waves = 1 : i32} {
  %c1 = arith.constant 1 : i32
  %s = greta_tile.shared_alloc : !greta_tile.shared<16 x vector<8xf32>>
  %m = greta_tile.fragment_load %s[%c1] stride 2 : !greta_tile.shared<16 x vector<8xf32>> -> !greta_tile.fragment<8x8xf32, acc>
  %e = greta_tile.fragment_elements %m : !greta_tile.fragment<8x8xf32, acc> -> vector<8xf32>
  %h = arith.truncf %e : vector<8xf32> to vector<8xf16>
  %a = greta_tile.fragment_from_elements %h : vector<8xf16> -> !greta_tile.fragment<8x8xf16, a>
  %t = greta_tile.shared_alloc : !greta_tile.shared<8 x vector<8xf16>>
  greta_tile.fragment_store %a, %t[%c1] stride 1 : !greta_tile.fragment<8x8xf16, a> -> !greta_tile.shared<8 x vector<8xf16>>
  greta_tile.return
}

// bf16 is a type inside of matrices; outside it is f32, and bits in shared memory.

// CHECK-LABEL: spirv.module @brain
// CHECK-SAME: BFloat16TypeKHR
// CHECK-SAME: BFloat16CooperativeMatrixKHR
// CHECK-SAME: [SPV_KHR_cooperative_matrix, SPV_KHR_bfloat16]>
// CHECK: spirv.FConvert %{{.*}} : f32 to bf16
// CHECK: spirv.CompositeConstruct %{{.*}} : (bf16) -> !spirv.coopmatrix<16x16xbf16, Subgroup, MatrixB>
// CHECK: spirv.KHR.CooperativeMatrixLoad {{.*}} : !spirv.ptr<vector<4xi32>, Workgroup>, i32 -> !spirv.coopmatrix<16x16xbf16, Subgroup, MatrixA>
// CHECK: %[[E:.*]] = spirv.CompositeExtract %{{.*}}[0 : i32] : !spirv.coopmatrix<16x16xbf16, Subgroup, MatrixA>
// CHECK: spirv.FConvert %[[E]] : bf16 to f32
// CHECK: spirv.CompositeInsert %{{.*}} : bf16 into !spirv.coopmatrix<16x16xbf16, Subgroup, MatrixA>
greta_tile.func @brain(%p: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %one = arith.constant 1.0 : bf16
  %zero = arith.constant 0.0 : f32
  %s = greta_tile.shared_alloc : !greta_tile.shared<32 x vector<8xbf16>>
  %b = greta_tile.fragment_splat %one : bf16 -> !greta_tile.fragment<16x16xbf16, b>
  %m = greta_tile.fragment_load %s[%c0] stride 2 : !greta_tile.shared<32 x vector<8xbf16>> -> !greta_tile.fragment<16x16xbf16, a>
  %e = greta_tile.fragment_elements %m : !greta_tile.fragment<16x16xbf16, a> -> vector<8xbf16>
  %n = arith.negf %e : vector<8xbf16>
  %a = greta_tile.fragment_from_elements %n : vector<8xbf16> -> !greta_tile.fragment<16x16xbf16, a>
  %c = greta_tile.fragment_splat %zero : f32 -> !greta_tile.fragment<16x16xf32, acc>
  %d = greta_tile.mma "coopmat" %a, %b, %c : !greta_tile.fragment<16x16xbf16, a>, !greta_tile.fragment<16x16xbf16, b> -> !greta_tile.fragment<16x16xf32, acc>
  %f = greta_tile.fragment_elements %d : !greta_tile.fragment<16x16xf32, acc> -> vector<8xf32>
  %g = vector.extract %f[0] : f32 from vector<8xf32>
  greta_tile.ptr_store %g, %p[%c0] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Roundings are to the nearest even; where an approximation is enough, halves go up and a NaN is not looked for.

// CHECK-LABEL: spirv.module @approximate
// CHECK: %[[UP:.*]] = spirv.IAdd %{{.*}}, %cst32768_i32
// CHECK-NOT: spirv.IsNan
// CHECK: spirv.BitwiseAnd %[[UP]]
// CHECK-NOT: spirv.IsNan
// CHECK: spirv.KHR.CooperativeMatrixMulAdd
// CHECK: spirv.IsNan
greta_tile.func @approximate(%p: !greta_tile.ptr<f32>, %q: !greta_tile.ptr<bf16>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %x = greta_tile.ptr_load %p[%c0] align 4 : !greta_tile.ptr<f32> -> f32
  %near = arith.truncf %x fastmath<afn> : f32 to bf16
  %a = greta_tile.fragment_splat %near : bf16 -> !greta_tile.fragment<16x16xbf16, a>
  %b = greta_tile.fragment_splat %near : bf16 -> !greta_tile.fragment<16x16xbf16, b>
  %c = greta_tile.fragment_splat %zero : f32 -> !greta_tile.fragment<16x16xf32, acc>
  %d = greta_tile.mma "coopmat" %a, %b, %c : !greta_tile.fragment<16x16xbf16, a>, !greta_tile.fragment<16x16xbf16, b> -> !greta_tile.fragment<16x16xf32, acc>
  %f = greta_tile.fragment_elements %d : !greta_tile.fragment<16x16xf32, acc> -> vector<8xf32>
  %g = vector.extract %f[0] : f32 from vector<8xf32>
  %h = arith.truncf %g : f32 to bf16
  greta_tile.ptr_store %h, %q[%c0] align 2 : bf16 -> !greta_tile.ptr<bf16>
  greta_tile.return
}

// Integers are signed.

// CHECK-LABEL: spirv.module @integers
// CHECK: spirv.KHR.CooperativeMatrixMulAdd %{{.*}}, <ASigned|BSigned|CSigned|ResultSigned> : !spirv.coopmatrix<16x32xi8, Subgroup, MatrixA>
greta_tile.func @integers() attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %s = greta_tile.shared_alloc : !greta_tile.shared<32 x vector<16xi8>>
  %a = greta_tile.fragment_load %s[%c0] stride 2 : !greta_tile.shared<32 x vector<16xi8>> -> !greta_tile.fragment<16x32xi8, a>
  %b = greta_tile.fragment_load %s[%c0] stride 2 transposed : !greta_tile.shared<32 x vector<16xi8>> -> !greta_tile.fragment<32x8xi8, b>
  %c = greta_tile.fragment_splat %c0 : i32 -> !greta_tile.fragment<16x8xi32, acc>
  %d = greta_tile.mma "coopmat" %a, %b, %c : !greta_tile.fragment<16x32xi8, a>, !greta_tile.fragment<32x8xi8, b> -> !greta_tile.fragment<16x8xi32, acc>
  %r = greta_tile.shared_alloc : !greta_tile.shared<32 x vector<4xi32>>
  greta_tile.fragment_store %d, %r[%c0] stride 2 : !greta_tile.fragment<16x8xi32, acc> -> !greta_tile.shared<32 x vector<4xi32>>
  greta_tile.return
}

// Without a fragment everything is as it was.

// CHECK-LABEL: spirv.module @none PhysicalStorageBuffer64 GLSL450
// CHECK: spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|WorkgroupMemory>{{$}}
greta_tile.func @none() attributes {wave_size = 32 : i32, waves = 1 : i32} {
  greta_tile.barrier
  greta_tile.return
}
