// RUN: greta-opt %s --greta-tile-plan-memory=target=gfx942 --greta-tile-barriers | FileCheck %s --check-prefixes=CHECK,BYTES
// RUN: sed 's/wave_size = 64/wave_size = 32/' %s | greta-opt --greta-tile-plan-memory=target=vulkan:rdna3 --greta-tile-barriers | FileCheck %s --check-prefixes=CHECK,TYPES

!array = !greta_tile.shared<64 x i32>
!words = !greta_tile.shared<64 x f32>
!large = !greta_tile.shared<4096 x vector<4xf32>>

// A barrier stands between the first array's uses and the third's anyway: they share. The second is used right behind the first, and in SPIR-V
// the last is a variable of another type.
// CHECK-LABEL: @exchanges
// CHECK-DAG: %[[A:.*]] = greta_tile.shared_alloc offset 0 : <64 x i32>
// CHECK-DAG: %[[B:.*]] = greta_tile.shared_alloc offset 256 : <64 x i32>
// CHECK-DAG: %[[C:.*]] = greta_tile.shared_alloc offset 0 : <64 x i32>
// BYTES-DAG: %[[D:.*]] = greta_tile.shared_alloc offset 256 : <64 x f32>
// TYPES-DAG: %[[D:.*]] = greta_tile.shared_alloc offset 512 : <64 x f32>
// CHECK-COUNT-4: greta_tile.barrier
// CHECK-NOT: greta_tile.barrier
greta_tile.func @exchanges(%x: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %a = greta_tile.shared_alloc : !array
  %b = greta_tile.shared_alloc : !array
  %c = greta_tile.shared_alloc : !array
  %d = greta_tile.shared_alloc : !words
  %i = greta_tile.lane_id
  %j = greta_tile.wave_id
  greta_tile.shared_store %x, %a[%i] : !array
  greta_tile.barrier
  %0 = greta_tile.shared_load %a[%j] : !array
  greta_tile.shared_store %0, %b[%i] : !array
  greta_tile.barrier
  %1 = greta_tile.shared_load %b[%j] : !array
  greta_tile.shared_store %1, %c[%i] : !array
  greta_tile.barrier
  %2 = greta_tile.shared_load %c[%j] : !array
  %w = arith.bitcast %2 : i32 to f32
  greta_tile.shared_store %w, %d[%i] : !words
  greta_tile.barrier
  %3 = greta_tile.shared_load %d[%j] : !words
  greta_tile.return
}

// A workgroup takes one of several branches. Arrays of one loop are in use together; its first array is done with when the branches begin.
// CHECK-LABEL: @control
// CHECK-DAG: greta_tile.shared_alloc offset 0 : <64 x i32>
// CHECK-DAG: greta_tile.shared_alloc offset 272 : <64 x i32>
// CHECK-DAG: greta_tile.shared_alloc offset 0 : <65 x i32>
// CHECK-DAG: greta_tile.shared_alloc offset 0 : <66 x i32>
greta_tile.func @control(%x: i32, %n: i32, %y: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %c = arith.cmpi slt, %x, %y : i32
  %a = greta_tile.shared_alloc : !array
  %b = greta_tile.shared_alloc : !array
  %d = greta_tile.shared_alloc : !greta_tile.shared<65 x i32>
  %e = greta_tile.shared_alloc : !greta_tile.shared<66 x i32>
  %i = greta_tile.lane_id
  %j = greta_tile.wave_id
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %sum = scf.for %k = %z to %n step %one iter_args(%v = %x) -> (i32) : i32 {
    greta_tile.shared_store %v, %a[%i] : !array
    greta_tile.barrier
    %0 = greta_tile.shared_load %a[%j] : !array
    greta_tile.shared_store %0, %b[%i] : !array
    greta_tile.barrier
    %1 = greta_tile.shared_load %b[%j] : !array
    scf.yield %1 : i32
  }
  scf.if %c {
    greta_tile.shared_store %sum, %d[%i] : !greta_tile.shared<65 x i32>
  } else {
    greta_tile.shared_store %sum, %e[%i] : !greta_tile.shared<66 x i32>
  }
  greta_tile.return
}

// Loops in a loop: each of them stores its array first, so that no iteration of the outer one leaves anything there. An array that is read first stays.
// CHECK-LABEL: @nested
// CHECK-DAG: greta_tile.shared_alloc offset 0 : <4096 x vector<4xf32>>
// CHECK-DAG: greta_tile.shared_alloc offset 0 : <4095 x vector<4xf32>>
// CHECK: scf.for
// CHECK: scf.for
// CHECK: greta_tile.barrier
// CHECK: greta_tile.barrier
// CHECK: scf.for
// CHECK: greta_tile.barrier
// CHECK: greta_tile.barrier
greta_tile.func @nested(%n: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %a = greta_tile.shared_alloc : !large
  %b = greta_tile.shared_alloc : !greta_tile.shared<4095 x vector<4xf32>>
  %x = arith.constant dense<0.0> : vector<4xf32>
  %i = greta_tile.lane_id
  %j = greta_tile.wave_id
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %h = %z to %n step %one : i32 {
    %sum = scf.for %k = %z to %n step %one iter_args(%v = %x) -> (vector<4xf32>) : i32 {
      greta_tile.shared_store %v, %a[%i] : !large
      greta_tile.barrier
      %0 = greta_tile.shared_load %a[%j] : !large
      scf.yield %0 : vector<4xf32>
    }
    %all = scf.for %k = %z to %n step %one iter_args(%v = %sum) -> (vector<4xf32>) : i32 {
      greta_tile.shared_store %v, %b[%i] : !greta_tile.shared<4095 x vector<4xf32>>
      greta_tile.barrier
      %0 = greta_tile.shared_load %b[%j] : !greta_tile.shared<4095 x vector<4xf32>>
      scf.yield %0 : vector<4xf32>
    }
  }
  greta_tile.return
}

// 65536 bytes are all there is: sharing them is worth a barrier.
// CHECK-LABEL: @full
// CHECK-DAG: %[[BLOCKS:.*]] = greta_tile.shared_alloc offset 0 : <4096 x vector<4xf32>>
// CHECK-DAG: %[[SUMS:.*]] = greta_tile.shared_alloc offset 0 : <64 x vector<4xf32>>
// CHECK: greta_tile.shared_load %[[BLOCKS]]
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_store %{{.*}}, %[[SUMS]]
greta_tile.func @full() attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %a = greta_tile.shared_alloc : !large
  %b = greta_tile.shared_alloc : !greta_tile.shared<64 x vector<4xf32>>
  %i = greta_tile.lane_id
  %0 = greta_tile.shared_load %a[%i] : !large
  greta_tile.shared_store %0, %b[%i] : !greta_tile.shared<64 x vector<4xf32>>
  greta_tile.return
}

// An array that only some iterations of a loop store lives as long as the loop, and no other array has its bytes there. A branch of lanes is part of every iteration.
// CHECK-LABEL: @kept
// CHECK-DAG: greta_tile.shared_alloc offset 0 : <5000 x i32>
// CHECK-DAG: greta_tile.shared_alloc offset 20000 : <4000 x i32>
// CHECK-LABEL: @lanes
// CHECK-DAG: greta_tile.shared_alloc offset 0 : <5000 x i32>
// CHECK-DAG: greta_tile.shared_alloc offset 0 : <4000 x i32>
!first = !greta_tile.shared<5000 x i32>
!second = !greta_tile.shared<4000 x i32>
greta_tile.func @kept(%x: i32, %n: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %a = greta_tile.shared_alloc : !first
  %b = greta_tile.shared_alloc : !second
  %i = greta_tile.lane_id
  %j = greta_tile.wave_id
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %sum = scf.for %k = %z to %n step %one iter_args(%v = %x) -> (i32) : i32 {
    %first = arith.cmpi eq, %k, %z : i32
    scf.if %first {
      greta_tile.shared_store %v, %a[%i] : !first
    }
    greta_tile.barrier
    %0 = scf.for %p = %z to %n step %one iter_args(%pv = %x) -> (i32) : i32 {
      %pl = greta_tile.shared_load %a[%j] : !first
      %ps = arith.addi %pv, %pl : i32
      scf.yield %ps : i32
    }
    greta_tile.barrier
    greta_tile.shared_store %0, %b[%i] : !second
    greta_tile.barrier
    %1 = scf.for %q = %z to %n step %one iter_args(%qv = %x) -> (i32) : i32 {
      %ql = greta_tile.shared_load %b[%j] : !second
      %qs = arith.addi %qv, %ql : i32
      scf.yield %qs : i32
    }
    scf.yield %1 : i32
  }
  greta_tile.return
}
greta_tile.func @lanes(%x: i32, %n: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %a = greta_tile.shared_alloc : !first
  %b = greta_tile.shared_alloc : !second
  %i = greta_tile.lane_id
  %j = greta_tile.wave_id
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %sum = scf.for %k = %z to %n step %one iter_args(%v = %x) -> (i32) : i32 {
    %first = arith.cmpi eq, %j, %z : i32
    scf.if %first {
      greta_tile.shared_store %v, %a[%i] : !first
    }
    greta_tile.barrier
    %0 = scf.for %p = %z to %n step %one iter_args(%pv = %x) -> (i32) : i32 {
      %pl = greta_tile.shared_load %a[%j] : !first
      %ps = arith.addi %pv, %pl : i32
      scf.yield %ps : i32
    }
    greta_tile.barrier
    greta_tile.shared_store %0, %b[%i] : !second
    greta_tile.barrier
    %1 = scf.for %q = %z to %n step %one iter_args(%qv = %x) -> (i32) : i32 {
      %ql = greta_tile.shared_load %b[%j] : !second
      %qs = arith.addi %qv, %ql : i32
      scf.yield %qs : i32
    }
    greta_tile.barrier
    scf.yield %1 : i32
  }
  greta_tile.return
}
