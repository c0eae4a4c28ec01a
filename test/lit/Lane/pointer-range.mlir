// Pointers into an argument of less than 2^31 bytes are that argument and offsets of 32 bits, which may wrap on their way.
// RUN: greta-opt %s --greta-tile-distribute=target=gfx942 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,AMD
// RUN: greta-opt %s --greta-tile-distribute=target=vulkan:portable --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,VULKAN
// RUN: greta-opt %s --greta-tile-distribute=target=gfx942 --canonicalize --cse --greta-tile-to-rocdl=chip=gfx942 | FileCheck %s --check-prefix=ROCDL

#row = #greta_tile.layout<{reg = [], lane = [[1], [2], [4], [8], [16], [32]], wave = [], rep = [1]}>

// Uniform parts, those of a moved scalar pointer too, are added last; `other` is what a masked load of AMD's has anyway where it is zero.
// CHECK-LABEL: greta_tile.func @rows
// CHECK-NOT: i64
// CHECK: %[[LANE:.*]] = greta_tile.lane_id
// CHECK: %[[ROW:.*]] = arith.remsi
// CHECK: %[[OWN:.*]] = arith.muli %[[ROW]], %arg2
// CHECK: arith.addi
// AMD: greta_tile.ptr_load %arg0[%{{.*}} wraps] mask %{{.*}} align 2
// AMD-NOT: scf.if
// AMD: greta_tile.ptr_store
// VULKAN: scf.if
// VULKAN: greta_tile.ptr_load %arg0[%{{.*}} wraps] align 2
// ROCDL-LABEL: llvm.func {{.*}}@rows
// ROCDL: llvm.select
// ROCDL: rocdl.raw.ptr.buffer.load
greta_tile.func @rows(%x: !greta_tile.ptr<f16> {greta.pointer_range}, %y: !greta_tile.ptr<f16>, %stride: i32, %m: i32, %n: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %i = greta_tile.iota 0 : tensor<64xi32, #row>
  %height = greta_tile.splat %m : tensor<64xi32, #row>
  %row = arith.remsi %i, %height : tensor<64xi32, #row>
  %each = greta_tile.splat %stride : tensor<64xi32, #row>
  %offset = arith.muli %row, %each : tensor<64xi32, #row>
  %moved = greta_tile.ptr_add %x, %n : !greta_tile.ptr<f16>, i32
  %begin = greta_tile.splat %moved : tensor<64x!greta_tile.ptr<f16>, #row>
  %p = greta_tile.ptr_add %begin, %offset : tensor<64x!greta_tile.ptr<f16>, #row>, tensor<64xi32, #row>
  %end = greta_tile.splat %n : tensor<64xi32, #row>
  %mask = arith.cmpi slt, %row, %end : tensor<64xi32, #row>
  %zero = arith.constant dense<0.0> : tensor<64xf16, #row>
  %v = greta_tile.load_scattered %p mask %mask other %zero : tensor<64x!greta_tile.ptr<f16>, #row> -> tensor<64xf16, #row>
  %q = greta_tile.ptr_add %y, %i : !greta_tile.ptr<f16>, tensor<64xi32, #row>
  greta_tile.store_scattered %v, %q : tensor<64xf16, #row> -> tensor<64x!greta_tile.ptr<f16>, #row>
  greta_tile.return
}

// In a pipelined loop an offset without a mask is no buffer load's: LLVM takes those apart, and a part may be negative.
// ROCDL-LABEL: llvm.func {{.*}}@backwards
// ROCDL-NOT: buffer.load
// ROCDL: llvm.load
// CHECK-LABEL: greta_tile.func @backwards
// CHECK: scf.for
// CHECK: greta_tile.ptr_load %arg0[%{{.*}} wraps] align 4
greta_tile.func @backwards(%x: !greta_tile.ptr<f32> {greta.pointer_range}, %y: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<64xf32, #row>
  %i = greta_tile.iota 0 : tensor<64xi32, #row>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%before = %none) -> tensor<64xf32, #row> : i32 {
    %last = greta_tile.splat %k : tensor<64xi32, #row>
    %at = arith.subi %last, %i : tensor<64xi32, #row>
    %p = greta_tile.ptr_add %x, %at : !greta_tile.ptr<f32>, tensor<64xi32, #row>
    %v = greta_tile.load_scattered %p : tensor<64x!greta_tile.ptr<f32>, #row> -> tensor<64xf32, #row>
    %next = arith.addf %before, %v : tensor<64xf32, #row>
    scf.yield %next : tensor<64xf32, #row>
  } {greta_tile.rolled}
  %q = greta_tile.ptr_add %y, %i : !greta_tile.ptr<f32>, tensor<64xi32, #row>
  greta_tile.store_scattered %sum, %q : tensor<64xf32, #row> -> tensor<64x!greta_tile.ptr<f32>, #row>
  greta_tile.return
}
