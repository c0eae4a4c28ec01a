// RUN: greta-opt %s -greta-tile-to-spirv | FileCheck %s
// RUN: %if coopmat-lavapipe %{ greta-opt %s -greta-tile-to-spirv | %python %root/test/validate_spirv.py %}
// REQUIRES: compiler

// A loop carries a scalar and a vector, which is one word; what a conditional gives goes through the latch on its way back.

// CHECK-LABEL: spirv.module @loop
// CHECK: spirv.mlir.loop -> f32, i32 {
// CHECK: ^[[HEADER:.*]](%[[I:.*]]: i32, %{{.*}}: f32, %{{.*}}: i32):
// CHECK: %[[MORE:.*]] = spirv.SLessThan %[[I]], %{{.*}} : i32
// CHECK: spirv.BranchConditional %[[MORE]], ^[[BODY:.*]], ^[[MERGE:.*]]
// CHECK: ^[[BODY]]:
// CHECK: %[[IF:.*]]:2 = spirv.mlir.selection -> f32, i32 {
// CHECK: spirv.mlir.loop -> f32 {
// CHECK: spirv.Branch ^[[LATCH:.*]](%[[IF]]#0, %[[IF]]#1
// CHECK: ^[[LATCH]](%[[A:.*]]: f32, %[[B:.*]]: i32):
// CHECK: %[[NEXT:.*]] = spirv.IAdd %[[I]]
// CHECK: spirv.Branch ^[[HEADER]](%[[NEXT]], %[[A]], %[[B]]
greta_tile.func @loop(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 8 : i32, waves = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%c0] align 4 : !greta_tile.ptr<f16> -> vector<2xf16>
  %z = arith.constant 0.0 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z, %w = %v) -> (f32, vector<2xf16>) : i32 {
    %c = arith.cmpi slt, %i, %lane : i32
    %q:2 = scf.if %c -> (f32, vector<2xf16>) {
      %t = scf.for %j = %c0 to %i step %c1 iter_args(%u = %acc) -> (f32) : i32 {
        %uu = math.exp %u : f32
        scf.yield %uu : f32
      }
      scf.yield %t, %w : f32, vector<2xf16>
    } else {
      %add = arith.addf %w, %v : vector<2xf16>
      scf.yield %acc, %add : f32, vector<2xf16>
    }
    scf.yield %q#0, %q#1 : f32, vector<2xf16>
  }
  greta_tile.ptr_store %r#0, %y[%c0] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.ptr_store %r#1, %x[%c0] align 4 : vector<2xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// No results: the condition skips to the merge block. The loop's bounds bound its index, which is scaled in 32 bits. 64 iterations are not
// to be unrolled, 16 may be.

// CHECK-LABEL: spirv.module @guarded
// CHECK: spirv.mlir.loop control(DontUnroll) {
// CHECK: spirv.mlir.selection {
// CHECK: spirv.BranchConditional %{{.*}}, ^[[THEN:.*]], ^[[END:.*]]
// CHECK: ^[[THEN]]:
// CHECK: spirv.ShiftLeftLogical %{{.*}}, %{{.*}} : i32, i32
// CHECK: spirv.UConvert
// CHECK: spirv.Branch ^[[END]]
// CHECK: ^[[END]]:
// CHECK: spirv.mlir.merge
// CHECK: spirv.mlir.loop {
// CHECK: spirv.ControlBarrier
greta_tile.func @guarded(%x: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 1 : i32, waves = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c4096 = arith.constant 4096 : i32
  %t = greta_tile.wave_id
  scf.for %i = %c0 to %c4096 step %c64 : i32 {
    %j = arith.addi %i, %t : i32
    %c = arith.cmpi slt, %j, %n : i32
    scf.if %c {
      %z = arith.constant 0.0 : f32
      greta_tile.ptr_store %z, %x[%j] align 4 : f32 -> !greta_tile.ptr<f32>
    }
  }
  %c1024 = arith.constant 1024 : i32
  scf.for %i = %c0 to %c1024 step %c64 : i32 {
    greta_tile.barrier
  }
  greta_tile.return
}

// A while loop's header branches on to what computes the condition, which may branch itself; what the condition passes on leaves the loop.

// CHECK-LABEL: spirv.module @while
// CHECK: %[[W:.*]]:2 = spirv.mlir.loop -> i32, i32 {
// CHECK: ^[[HEADER:.*]](%[[V:.*]]: i32, %[[I:.*]]: i32):
// CHECK-NEXT: spirv.Branch ^[[BEFORE:.*]]
// CHECK-NEXT: ^[[BEFORE]]:
// CHECK-NEXT: %[[FEW:.*]] = spirv.SLessThan %[[I]]
// CHECK: %[[K:.*]] = spirv.mlir.selection -> i32 {
// CHECK: }
// CHECK-NEXT: spirv.BranchConditional %[[FEW]], ^[[AFTER:.*]], ^[[MERGE:.*]]
// CHECK-NEXT: ^[[AFTER]]:
// CHECK: spirv.Bitcast %[[V]] : i32 to vector<2xf16>
// CHECK: %[[NEXT:.*]] = spirv.mlir.selection -> i32 {
// CHECK: spirv.Branch ^[[LATCH:.*]](%[[NEXT]] : i32)
// CHECK: ^[[LATCH]](%[[BACK:.*]]: i32):
// CHECK-NEXT: spirv.Branch ^[[HEADER]](%{{.*}}, %[[BACK]] : i32, i32)
// CHECK: ^[[MERGE]]:
// CHECK-NEXT: spirv.mlir.merge %[[K]], %[[V]] : i32, i32
greta_tile.func @while(%x: !greta_tile.ptr<f16>, %n: i32) attributes {wave_size = 8 : i32, waves = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %v = greta_tile.ptr_load %x[%c0] align 4 : !greta_tile.ptr<f16> -> vector<2xf16>
  %r:2 = scf.while (%w = %v, %i = %c0) : (vector<2xf16>, i32) -> (i32, vector<2xf16>) {
    %few = arith.cmpi slt, %i, %n : i32
    %k = scf.if %few -> (i32) {
      scf.yield %c1 : i32
    } else {
      scf.yield %i : i32
    }
    scf.condition(%few) %k, %w : i32, vector<2xf16>
  } do {
  ^bb0(%k: i32, %w: vector<2xf16>):
    %twice = arith.addf %w, %w : vector<2xf16>
    %c = arith.cmpi eq, %k, %n : i32
    %next = scf.if %c -> (i32) {
      scf.yield %n : i32
    } else {
      scf.yield %k : i32
    }
    scf.yield %twice, %next : vector<2xf16>, i32
  }
  greta_tile.ptr_store %r#1, %x[%r#0] align 4 : vector<2xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// Drivers may not unroll a loop whose body is large: one of more than 500 ops where it has barriers, of more than 2000 where it has none.

// CHECK-LABEL: spirv.module @large
// CHECK: spirv.mlir.loop ->
// CHECK: spirv.mlir.loop control(DontUnroll) ->
// CHECK: spirv.ControlBarrier
// CHECK: spirv.mlir.loop control(DontUnroll) ->
greta_tile.func @large(%n: i32) attributes {wave_size = 8 : i32, waves = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %v = arith.constant dense<0.0> : vector<512xf32>
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%x = %v) -> (vector<512xf32>) : i32 {
    %y = math.exp %x : vector<512xf32>
    scf.yield %y : vector<512xf32>
  }
  %b = scf.for %i = %c0 to %n step %c1 iter_args(%x = %v) -> (vector<512xf32>) : i32 {
    greta_tile.barrier
    %y = math.exp %x : vector<512xf32>
    scf.yield %y : vector<512xf32>
  }
  %w = arith.constant dense<0.0> : vector<2048xf32>
  %c = scf.for %i = %c0 to %n step %c1 iter_args(%x = %w) -> (vector<2048xf32>) : i32 {
    %y = math.exp %x : vector<2048xf32>
    scf.yield %y : vector<2048xf32>
  }
  greta_tile.return
}
