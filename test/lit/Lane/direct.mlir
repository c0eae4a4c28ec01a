// Loads straight to shared memory: each lane's place in global memory has the swizzle, and what the wave's lanes fill has none.
// RUN: greta-opt %s --greta-tile-distribute --greta-tile-barriers --canonicalize --cse | FileCheck %s
// RUN: greta-opt %s --greta-tile-distribute --greta-tile-barriers --canonicalize --cse --greta-tile-to-rocdl=chip=gfx950 | FileCheck %s --check-prefix=ROCDL
// REQUIRES: compiler

// Two waves fill 16 rows of 64 halves at a time, eight entries of 16 bytes a row; row r has its columns exclusive-or 8 (r % 8).
#fill = #greta_tile.layout<{reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]], wave = [[8, 0]], rep = [2, 1]}>
#read = #greta_tile.layout<{reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 8], [0, 16]], wave = [[16, 0]], rep = [1, 2]}>
!local = !greta_tile.local<2 x tensor<32x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>>

// CHECK-LABEL: @fill
// CHECK: %[[ARRAY:.*]] = greta_tile.shared_alloc : <512 x vector<8xf16>>
// CHECK: %[[STAGE:[0-9]+]] = arith.muli %arg3, %c256_i32
// CHECK-NEXT: %[[AT:[0-9]+]] = arith.addi %{{.*}}, %[[STAGE]]
// CHECK: %[[PART:.*]] = greta_tile.shared_stage %[[ARRAY]][%arg3] of 2
// CHECK: greta_tile.ptr_load_shared %{{.*}}[%{{.*}}] mask %{{.*}}, %[[PART]][%[[AT]]] width 8 : <f16> -> <512 x vector<8xf16>>
// CHECK: %[[NEXT:.*]] = arith.addi %[[AT]], %c128_i32
// CHECK: greta_tile.ptr_load_shared %{{.*}}[%{{.*}}] mask %{{.*}}, %[[PART]][%[[NEXT]]] width 8
// CHECK: greta_tile.barrier in_flight 0
// CHECK: greta_tile.shared_load

// Masked lanes are beyond the buffer's records. Loads of shared memory do not alias the direct load; the barrier waits.
// ROCDL-LABEL: llvm.func protected @fill
// ROCDL: %[[OUT:.*]] = llvm.mlir.constant(-2147483648 : i32)
// ROCDL: %[[OFFSET:.*]] = llvm.select %{{.*}}, %{{.*}}, %[[OUT]]
// ROCDL: rocdl.raw.ptr.buffer.load.lds %{{.*}}, %{{.*}}, %{{.*}}, %[[OFFSET]], {{.*}}alias_scopes = [#[[DIRECT:.*]]], noalias_scopes = [#[[OTHERS:.*]]]
// ROCDL: llvm.fence syncscope("wavefront") release
// ROCDL: rocdl.s.waitcnt 112
// ROCDL: rocdl.s.barrier
// ROCDL: llvm.load {{.*}}alias_scopes = [#[[OTHERS]]], noalias_scopes = [#[[DIRECT]]]
greta_tile.func @fill(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %n: i32 {greta.divisibility = 8 : i64}, %stage: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %l = greta_tile.local_alloc : !local
  %v = greta_tile.load %x[%z, %z] strides [64, 1] bounds [1] (%n) : !greta_tile.ptr<f16> -> tensor<32x64xf16, #fill>
  greta_tile.local_store %v, %l[%stage] direct : tensor<32x64xf16, #fill> -> !local
  %p = greta_tile.local_load %l[%stage] [%z, %z] : !local -> tensor<32x64xf16, #read>
  greta_tile.store %p, %y[%z, %z] strides [64, 1] bounds [] : tensor<32x64xf16, #read> -> !greta_tile.ptr<f16>
  greta_tile.return
}
