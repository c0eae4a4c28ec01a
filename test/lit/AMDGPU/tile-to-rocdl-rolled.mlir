// RUN: greta-opt %s -greta-tile-to-rocdl=chip=gfx942 | FileCheck %s
// REQUIRES: compiler

// A pipelined loop is not unrolled, and its loads are buffer loads.

// CHECK: #[[UNROLL:.*]] = #llvm.loop_unroll<disable = true>
// CHECK: #[[LOOP:.*]] = #llvm.loop_annotation<unroll = #[[UNROLL]]>
// CHECK-LABEL: llvm.func protected @sum
// CHECK: rocdl.make.buffer.rsrc
// CHECK: rocdl.raw.ptr.buffer.load {{.*}} : vector<4xi32>
// CHECK: llvm.br ^bb1{{.*}} {loop_annotation = #[[LOOP]]}
// CHECK-LABEL: llvm.func protected @plain
// CHECK-NOT: buffer
// CHECK-NOT: loop_annotation
greta_tile.func @sum(%p: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c36 = arith.constant 36 : i32
  %z = arith.constant dense<0.0> : vector<4xf32>
  %s = scf.for %i = %c0 to %c36 step %c4 iter_args(%a = %z) -> vector<4xf32> : i32 {
    %v = greta_tile.ptr_load %p[%i] align 16 : !greta_tile.ptr<f32> -> vector<4xf32>
    %b = arith.addf %a, %v : vector<4xf32>
    scf.yield %b : vector<4xf32>
  } {greta_tile.rolled}
  greta_tile.ptr_store %s, %p[%c0] align 16 : vector<4xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

greta_tile.func @plain(%p: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c36 = arith.constant 36 : i32
  %z = arith.constant dense<0.0> : vector<4xf32>
  %s = scf.for %i = %c0 to %c36 step %c4 iter_args(%a = %z) -> vector<4xf32> : i32 {
    %v = greta_tile.ptr_load %p[%i] align 16 : !greta_tile.ptr<f32> -> vector<4xf32>
    %b = arith.addf %a, %v : vector<4xf32>
    scf.yield %b : vector<4xf32>
  }
  greta_tile.ptr_store %s, %p[%c0] align 16 : vector<4xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Lanes that are masked off load from beyond the records of a descriptor of their own.
// CHECK-LABEL: llvm.func protected @masked
// CHECK: %[[RECORDS:.*]] = llvm.mlir.constant(4294967280 : i64)
// CHECK: rocdl.make.buffer.rsrc {{.*}}, %[[RECORDS]]
// CHECK: %[[BEYOND:.*]] = llvm.mlir.constant(-16 : i32)
// CHECK: %[[AT:.*]] = llvm.select %{{.*}}, %{{.*}}, %[[BEYOND]]
// CHECK: rocdl.raw.ptr.buffer.load %{{.*}}, %[[AT]]
greta_tile.func @masked(%p: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %inside = arith.cmpi slt, %lane, %n : i32
  %v = greta_tile.ptr_load %p[%lane] mask %inside align 4 : !greta_tile.ptr<f32> -> f32
  greta_tile.ptr_store %v, %p[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// In a pipelined loop an offset that all lanes share is the buffer load's scalar offset, if it is known to be a natural number below 2^31 bytes. The second one is negative at
// first.
// CHECK-LABEL: llvm.func protected @scalar_offsets
// CHECK: %[[OFFSET:.*]] = llvm.mul %{{.*}}, %{{.*}} : i32
// CHECK: rocdl.raw.ptr.buffer.load %{{.*}}, %{{.*}}, %[[OFFSET]], %{{.*}}
// CHECK: llvm.getelementptr
// CHECK: %[[NONE:.*]] = llvm.mlir.constant(0 : i32)
// CHECK: rocdl.raw.ptr.buffer.load %{{.*}}, %{{.*}}, %[[NONE]], %{{.*}}
greta_tile.func @scalar_offsets(%p: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c8 = arith.constant 8 : i32
  %c32 = arith.constant 32 : i32
  %c36 = arith.constant 36 : i32
  %lane = greta_tile.lane_id
  %z = arith.constant 0.0 : f32
  %s = scf.for %i = %c0 to %c36 step %c4 iter_args(%a = %z) -> f32 : i32 {
    %next = arith.addi %i, %c4 : i32
    %ahead = arith.minsi %next, %c32 : i32
    %wide = arith.extsi %ahead : i32 to i64
    %from = greta_tile.ptr_add %p, %wide : !greta_tile.ptr<f32>, i64
    %v = greta_tile.ptr_load %from[%lane] align 4 : !greta_tile.ptr<f32> -> f32
    %b = arith.addf %a, %v : f32
    %before = arith.subi %i, %c8 : i32
    %behind = arith.minsi %before, %c32 : i32
    %signed = arith.extsi %behind : i32 to i64
    %at = greta_tile.ptr_add %p, %signed : !greta_tile.ptr<f32>, i64
    %w = greta_tile.ptr_load %at[%lane] align 4 : !greta_tile.ptr<f32> -> f32
    %c = arith.addf %b, %w : f32
    scf.yield %c : f32
  } {greta_tile.rolled}
  greta_tile.ptr_store %s, %p[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}
