// RUN: greta-opt %s --greta-tile-to-rocdl=chip=gfx942 | FileCheck %s

// The kernel: order of arguments, what it reads and writes, its workgroup.
// CHECK: llvm.mlir.global internal @kernel.lds0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<1024 x i8>
// CHECK: llvm.mlir.global internal @kernel.lds1() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<16 x i8>
// CHECK-LABEL: llvm.func protected @kernel(
// CHECK-SAME: %[[X:[a-z0-9]+]]: !llvm.ptr<1> {llvm.noundef, llvm.readonly}
// CHECK-SAME: %[[Y:[a-z0-9]+]]: !llvm.ptr<1> {llvm.noundef, llvm.writeonly}
// CHECK-SAME: %[[Z:[a-z0-9]+]]: !llvm.ptr<1> {llvm.noundef}
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32 {llvm.noundef}
// CHECK-SAME: "amdgpu-no-implicitarg-ptr"
// CHECK-SAME: rocdl.flat_work_group_size = "256,256", rocdl.kernel, rocdl.reqd_work_group_size = array<i32: 256, 1, 1>, target_cpu = "gfx942"
greta_tile.func @kernel(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>, %z: !greta_tile.ptr<f32>, %n: i32)
    attributes {wave_size = 64 : i32, waves = 4 : i32} {
  %a = greta_tile.shared_alloc : !greta_tile.shared<64 x vector<4xf32>>
  %b = greta_tile.shared_alloc : !greta_tile.shared<4 x f32>
  // CHECK-DAG: %[[A:.*]] = llvm.mlir.addressof @kernel.lds0 : !llvm.ptr<3>
  // CHECK-DAG: %[[B:.*]] = llvm.mlir.addressof @kernel.lds1 : !llvm.ptr<3>

  // CHECK: %[[ROW:.*]] = rocdl.workgroup.id.y : i32
  %row = greta_tile.program_id 1
  // CHECK: %[[TID:.*]] = rocdl.workitem.id.x range <i32, 0, 256> : i32
  // CHECK: %[[C63:.*]] = llvm.mlir.constant(63 : i32)
  // CHECK: %[[LANE:.*]] = llvm.and %[[TID]], %[[C63]]
  %lane = greta_tile.lane_id
  // CHECK: %[[TID:.*]] = rocdl.workitem.id.x
  // CHECK: %[[C6:.*]] = llvm.mlir.constant(6 : i32)
  // CHECK: %[[QUOTIENT:.*]] = llvm.lshr %[[TID]], %[[C6]]
  // CHECK: %[[WAVE:.*]] = rocdl.readfirstlane %[[QUOTIENT]]
  %wave = greta_tile.wave_id

  // The uniform base moves by 64 bits, the lane by 32 that are zero-extended.
  // CHECK: %[[WIDE:.*]] = llvm.sext %[[ROW]] : i32 to i64
  // CHECK: %[[BASE:.*]] = llvm.getelementptr nusw %[[X]][%[[WIDE]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f16
  %wide = arith.extsi %row : i32 to i64
  %base = greta_tile.ptr_add %x, %wide : !greta_tile.ptr<f16>, i64
  // CHECK: %[[BYTES:.*]] = llvm.shl %[[LANE]], %{{.*}} overflow<nuw> : i32
  // CHECK: %[[OFFSET:.*]] = llvm.zext %[[BYTES]] : i32 to i64
  // CHECK: %[[ADDRESS:.*]] = llvm.getelementptr nusw|nuw %[[BASE]][%[[OFFSET]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  // CHECK: %[[V:.*]] = llvm.load %[[ADDRESS]] {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf16>
  %v = greta_tile.ptr_load %base[%lane] align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
  // CHECK: llvm.store %[[V]], %{{.*}} {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<1>
  greta_tile.ptr_store %v, %y[%lane] align 16 : vector<8xf16> -> !greta_tile.ptr<f16>
  // CHECK: %[[S:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
  %s = greta_tile.ptr_load %z[%n] align 4 : !greta_tile.ptr<f32> -> f32
  greta_tile.ptr_store %s, %z[%lane] align 4 : f32 -> !greta_tile.ptr<f32>

  // CHECK: %[[AT:.*]] = llvm.getelementptr inbounds|nuw %[[B]][%[[WAVE]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  // CHECK: llvm.store %[[S]], %[[AT]] : f32, !llvm.ptr<3>
  greta_tile.shared_store %s, %b[%wave] : !greta_tile.shared<4 x f32>
  // CHECK: llvm.fence syncscope("workgroup") release {llvm.mmra = #[[LOCAL:.*]]}
  // CHECK: rocdl.s.barrier
  // CHECK: llvm.fence syncscope("workgroup") acquire {llvm.mmra = #[[LOCAL]]}
  greta_tile.barrier
  // CHECK: %[[AT:.*]] = llvm.getelementptr inbounds|nuw %[[A]][%[[LANE]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xf32>
  // CHECK: llvm.load %[[AT]] : !llvm.ptr<3> -> vector<4xf32>
  %w = greta_tile.shared_load %a[%lane] : !greta_tile.shared<64 x vector<4xf32>>
  greta_tile.shared_store %w, %a[%lane] : !greta_tile.shared<64 x vector<4xf32>>
  // CHECK: llvm.return
  greta_tile.return
}

// A workgroup of one wave: nothing to mask, nothing to divide.
// CHECK-LABEL: llvm.func protected @one_wave(
// CHECK-NOT: readfirstlane
// CHECK: %[[LANE:.*]] = rocdl.workitem.id.x range <i32, 0, 64>
// CHECK: llvm.mlir.constant(0 : i32)
// CHECK-NOT: llvm.and
greta_tile.func @one_wave(%x: !greta_tile.ptr<i32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  greta_tile.ptr_store %lane, %x[%wave] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}

// Loops and branches.
// CHECK-LABEL: llvm.func protected @control(
// CHECK: llvm.br ^[[HEAD:bb[0-9]+]](
// CHECK: ^[[HEAD]](%{{.*}}: i32, %[[SUM:.*]]: f32):
// CHECK: llvm.cond_br
// CHECK: llvm.fadd {{.*}} {fastmathFlags = #llvm.fastmath<contract>} : f32
greta_tile.func @control(%x: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> f32 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    %t = arith.addf %s, %v : f32
    scf.yield %t : f32
  }
  %first = arith.cmpi eq, %n, %c0 : i32
  scf.if %first {
    greta_tile.ptr_store %sum, %x[%c0] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.return
}

// A matrix instruction is an intrinsic; MFMA's block permutations are off, and bf16 operands of the older kind travel as integers.
// CHECK-LABEL: llvm.func protected @mma(
// CHECK: %[[ZERO:.*]] = llvm.mlir.constant(0 : i32)
// CHECK: llvm.call_intrinsic "llvm.amdgcn.mfma.f32.16x16x16f16"(%{{.*}}, %{{.*}}, %{{.*}}, %[[ZERO]], %[[ZERO]], %[[ZERO]]) : (vector<4xf16>, vector<4xf16>, vector<4xf32>, i32, i32, i32) -> vector<4xf32>
// CHECK: llvm.bitcast %{{.*}} : vector<4xbf16> to vector<4xi16>
// CHECK: llvm.call_intrinsic "llvm.amdgcn.mfma.f32.16x16x16bf16.1k"({{.*}}) : (vector<4xi16>, vector<4xi16>, vector<4xf32>, i32, i32, i32) -> vector<4xf32>
// CHECK: llvm.call_intrinsic "llvm.amdgcn.mfma.f32.16x16x4f32"({{.*}}) : (f32, f32, vector<4xf32>, i32, i32, i32) -> vector<4xf32>
greta_tile.func @mma(%x: !greta_tile.ptr<f16>, %w: !greta_tile.ptr<bf16>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %i = greta_tile.lane_id
  %a = greta_tile.ptr_load %x[%i] align 8 : !greta_tile.ptr<f16> -> vector<4xf16>
  %b = greta_tile.ptr_load %w[%i] align 8 : !greta_tile.ptr<bf16> -> vector<4xbf16>
  %c = greta_tile.ptr_load %y[%i] align 16 : !greta_tile.ptr<f32> -> vector<4xf32>
  %d = greta_tile.mma "mfma.f32.16x16x16f16" %a, %a, %c : vector<4xf16>, vector<4xf16> -> vector<4xf32>
  %e = greta_tile.mma "mfma.f32.16x16x16bf16.1k" %b, %b, %d : vector<4xbf16>, vector<4xbf16> -> vector<4xf32>
  %v = greta_tile.ptr_load %y[%i] align 4 : !greta_tile.ptr<f32> -> f32
  %u = vector.from_elements %v : vector<1xf32>
  %f = greta_tile.mma "mfma.f32.16x16x4f32" %u, %u, %e : vector<1xf32>, vector<1xf32> -> vector<4xf32>
  greta_tile.ptr_store %f, %y[%i] align 16 : vector<4xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: llvm.func protected @vector_dot
// CHECK: llvm.call_intrinsic "llvm.amdgcn.fdot2"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (vector<2xf16>, vector<2xf16>, f32, i1) -> f32
greta_tile.func @vector_dot(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %a = greta_tile.ptr_load %x[%c0] align 4 : !greta_tile.ptr<f16> -> vector<2xf16>
  %d = greta_tile.vector_dot %a, %a, %zero : vector<2xf16>
  greta_tile.ptr_store %d, %y[%c0] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Arrays that share bytes are parts of one global; LLVM knows that another is no alias of it.
// CHECK: llvm.mlir.global internal @overlapping.lds0() {{.*}} : !llvm.array<1024 x i8>
// CHECK: llvm.mlir.global internal @overlapping.lds1() {{.*}} : !llvm.array<256 x i8>
// CHECK-NOT: overlapping.lds2
// CHECK-LABEL: llvm.func protected @overlapping(
// CHECK-DAG: %[[FIRST:.*]] = llvm.mlir.addressof @overlapping.lds0
// CHECK-DAG: llvm.mlir.addressof @overlapping.lds1
// CHECK: %[[INNER:.*]] = llvm.getelementptr inbounds|nuw %{{.*}}[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
// CHECK: llvm.getelementptr inbounds|nuw %[[INNER]][%{{.*}}] {{.*}}, f32
// CHECK: llvm.return
greta_tile.func @overlapping(%y: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %a = greta_tile.shared_alloc offset 0 : !greta_tile.shared<64 x vector<4xf32>>
  %b = greta_tile.shared_alloc offset 1024 : !greta_tile.shared<64 x f32>
  %c = greta_tile.shared_alloc offset 512 : !greta_tile.shared<64 x f32>
  %lane = greta_tile.lane_id
  %v = greta_tile.shared_load %a[%lane] : !greta_tile.shared<64 x vector<4xf32>>
  %s = greta_tile.shared_load %b[%lane] : !greta_tile.shared<64 x f32>
  greta_tile.shared_store %v, %a[%lane] : !greta_tile.shared<64 x vector<4xf32>>
  greta_tile.barrier
  greta_tile.shared_store %s, %b[%lane] : !greta_tile.shared<64 x f32>
  greta_tile.shared_store %s, %c[%lane] : !greta_tile.shared<64 x f32>
  greta_tile.return
}

// The squares of two neighbours of f16 are one instruction.
// CHECK-LABEL: llvm.func protected @pairs(
// CHECK: llvm.call_intrinsic "llvm.amdgcn.fdot2"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (vector<2xf16>, vector<2xf16>, f32, i1) -> f32
greta_tile.func @pairs(%x: !greta_tile.ptr<f16>, %s: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %zero = arith.constant 0.0 : f32
  %c8 = arith.constant 8 : i32
  %lane = greta_tile.lane_id
  %at = arith.muli %lane, %c8 : i32
  %v = greta_tile.ptr_load %x[%at] align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
  %v0 = vector.extract %v[0] : f16 from vector<8xf16>
  %v1 = vector.extract %v[1] : f16 from vector<8xf16>
  %e0 = arith.extf %v0 : f16 to f32
  %e1 = arith.extf %v1 : f16 to f32
  %s0 = math.fma %e0, %e0, %zero : f32
  %s1 = math.fma %e1, %e1, %s0 : f32
  greta_tile.ptr_store %s1, %s[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: llvm.func protected @counters
// CHECK: llvm.atomicrmw add %{{.*}}, %{{.*}} syncscope("workgroup") monotonic : !llvm.ptr<3>, i32
greta_tile.func @counters(%n: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %a = greta_tile.shared_alloc : !greta_tile.shared<64 x i32>
  %i = greta_tile.lane_id
  greta_tile.shared_add %n, %a[%i] : !greta_tile.shared<64 x i32>
  greta_tile.return
}

// All lanes agree on a while loop's condition, which LLVM is told.
// CHECK-LABEL: llvm.func protected @while
// CHECK: %[[MORE:.*]] = llvm.fcmp "ogt"
// CHECK: %[[WIDE:.*]] = llvm.zext %[[MORE]] : i1 to i32
// CHECK: %[[FIRST:.*]] = rocdl.readfirstlane %[[WIDE]] : i32
// CHECK: %[[ALL:.*]] = llvm.trunc %[[FIRST]] : i32 to i1
// CHECK: llvm.cond_br %[[ALL]]
greta_tile.func @while(%x: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %limit = arith.constant 1.0 : f32
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<f32> -> f32
  %r = scf.while (%a = %v) : (f32) -> f32 {
    %more = arith.cmpf ogt, %a, %limit : f32
    scf.condition(%more) %a : f32
  } do {
  ^bb0(%a: f32):
    %b = arith.mulf %a, %a : f32
    scf.yield %b : f32
  }
  greta_tile.ptr_store %r, %x[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}
