// RUN: greta-opt %s --greta-tile-barriers | FileCheck %s
// RUN: greta-opt %s --greta-tile-barriers=target=vulkan:nvidia | FileCheck %s --check-prefix=VULKAN
// What is in order already stays as it is.
// RUN: greta-opt %s --greta-tile-barriers > %t.once
// RUN: greta-opt %t.once --greta-tile-barriers | diff - %t.once

!array = !greta_tile.shared<64 x i32>
!stages = !greta_tile.shared<128 x i32>
!three = !greta_tile.shared<192 x vector<4xf32>>

// Stores of one exchange are one store. The barrier that waits for the second array's stores has ended the reads of the first; the
// program's own barrier counts, and the owners' branch has its barrier in front.
// CHECK-LABEL: @straight
// CHECK-COUNT-2: greta_tile.shared_store %{{.*}}, %[[A:[0-9]+]][
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_load %[[A]]
// CHECK-NEXT: greta_tile.shared_store %{{.*}}, %[[B:[0-9]+]][
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_load %[[B]]
// CHECK-NEXT: greta_tile.shared_store %{{.*}}, %[[A]]
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_load %[[A]]
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: scf.if
// CHECK-NEXT: greta_tile.shared_store
// CHECK-NOT: greta_tile.barrier
greta_tile.func @straight(%x: i32, %y: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %c = arith.cmpi slt, %x, %y : i32
  %a = greta_tile.shared_alloc : !array
  %b = greta_tile.shared_alloc : !array
  %i = greta_tile.lane_id
  %j = greta_tile.wave_id
  greta_tile.shared_store %x, %a[%i] : !array
  greta_tile.shared_store %x, %a[%j] : !array
  %0 = greta_tile.shared_load %a[%j] : !array
  greta_tile.shared_store %0, %b[%i] : !array
  %1 = greta_tile.shared_load %b[%j] : !array
  greta_tile.shared_store %1, %a[%i] : !array
  greta_tile.barrier
  %2 = greta_tile.shared_load %a[%j] : !array
  scf.if %c {
    greta_tile.shared_store %2, %a[%i] : !array
  }
  greta_tile.return
}

// A loop's next iteration stores what this one reads. A branch that all take may have barriers of its own.
// CHECK-LABEL: @around
// CHECK: scf.for
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_store
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_load
// CHECK: scf.if
// CHECK-NEXT: greta_tile.shared_store
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_load
// CHECK-NOT: greta_tile.barrier
greta_tile.func @around(%x: i32, %n: i32, %y: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %c = arith.cmpi slt, %x, %y : i32
  %a = greta_tile.shared_alloc : !array
  %b = greta_tile.shared_alloc : !array
  %i = greta_tile.lane_id
  %j = greta_tile.wave_id
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %sum = scf.for %k = %z to %n step %one iter_args(%v = %x) -> (i32) : i32 {
    greta_tile.shared_store %v, %a[%i] : !array
    %0 = greta_tile.shared_load %a[%j] : !array
    scf.yield %0 : i32
  }
  scf.if %c {
    greta_tile.shared_store %sum, %b[%i] : !array
    %1 = greta_tile.shared_load %b[%j] : !array
  }
  greta_tile.return
}

// A store before a loop is waited for once, in front of it.
// CHECK-LABEL: @before
// CHECK: greta_tile.shared_store
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: scf.for
// CHECK-NEXT: scf.while
// CHECK-NOT: greta_tile.barrier
// CHECK: greta_tile.return
greta_tile.func @before(%x: i32, %n: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %a = greta_tile.shared_alloc : !array
  %i = greta_tile.lane_id
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  greta_tile.shared_store %x, %a[%i] : !array
  scf.for %k = %z to %n step %one : i32 {
    scf.while : () -> () {
      %0 = greta_tile.shared_load %a[%k] : !array
      %c = arith.cmpi slt, %0, %x : i32
      scf.condition(%c)
    } do {
      %1 = greta_tile.shared_load %a[%i] : !array
      scf.yield
    }
  }
  greta_tile.return
}

// Iterations of the inner loop store the same places; what they leave is read in the same iteration of the outer one.
// CHECK-LABEL: @nested
// CHECK: scf.for
// CHECK-NEXT: scf.for
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_store
// CHECK-NEXT: }
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_load
// CHECK-NEXT: }
greta_tile.func @nested(%x: i32, %n: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %a = greta_tile.shared_alloc : !array
  %i = greta_tile.lane_id
  %j = greta_tile.wave_id
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %k = %z to %n step %one : i32 {
    scf.for %l = %z to %n step %one : i32 {
      greta_tile.shared_store %l, %a[%i] : !array
    }
    %0 = greta_tile.shared_load %a[%j] : !array
  }
  greta_tile.return
}

// A while loop's body stores what its condition reads next.
// CHECK-LABEL: @condition
// CHECK: scf.while
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_load
// CHECK: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_store
// CHECK-NOT: greta_tile.barrier
greta_tile.func @condition(%x: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %a = greta_tile.shared_alloc : !array
  %i = greta_tile.lane_id
  %j = greta_tile.wave_id
  greta_tile.shared_store %x, %a[%i] : !array
  scf.while : () -> () {
    %0 = greta_tile.shared_load %a[%j] : !array
    %c = arith.cmpi slt, %0, %x : i32
    scf.condition(%c)
  } do {
    greta_tile.shared_store %x, %a[%i] : !array
    scf.yield
  }
  greta_tile.return
}

// Two stages, one filled while the other is read: one barrier an iteration, whatever the stage is called.
// CHECK-LABEL: @two_stages
// CHECK: greta_tile.shared_store
// CHECK-NEXT: greta_tile.barrier
// CHECK-NOT: greta_tile.barrier
// CHECK: greta_tile.shared_store
// CHECK-NEXT: greta_tile.barrier
// CHECK-NOT: greta_tile.barrier
// CHECK: greta_tile.return
greta_tile.func @two_stages(%x: i32, %n: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %a = greta_tile.shared_alloc : !stages
  %i = greta_tile.lane_id
  %j = greta_tile.wave_id
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %first = greta_tile.shared_stage %a[%z] of 2 : !stages
  greta_tile.shared_store %x, %first[%i] : !stages
  greta_tile.barrier
  %end = scf.for %k = %z to %n step %one iter_args(%stage = %z) -> (i32) : i32 {
    %this = greta_tile.shared_stage %a[%stage] of 2 : !stages
    %0 = greta_tile.shared_load %this[%j] : !stages
    %other = arith.subi %one, %stage : i32
    %next = greta_tile.shared_stage %a[%other] of 2 : !stages
    greta_tile.shared_store %0, %next[%i] : !stages
    greta_tile.barrier
    scf.yield %other : i32
  }
  greta_tile.return
}

// The same without barriers: what comes round is waited for in front of its first use.
// CHECK-LABEL: @two_stages_bare
// CHECK: greta_tile.shared_store
// CHECK-NEXT: scf.for
// CHECK-NEXT: greta_tile.shared_stage
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_load
// CHECK: greta_tile.shared_store
// CHECK-NEXT: scf.yield
// CHECK-NOT: greta_tile.barrier
// CHECK: greta_tile.return
greta_tile.func @two_stages_bare(%x: i32, %n: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %a = greta_tile.shared_alloc : !stages
  %i = greta_tile.lane_id
  %j = greta_tile.wave_id
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %first = greta_tile.shared_stage %a[%z] of 2 : !stages
  greta_tile.shared_store %x, %first[%i] : !stages
  %end = scf.for %k = %z to %n step %one iter_args(%stage = %z) -> (i32) : i32 {
    %this = greta_tile.shared_stage %a[%stage] of 2 : !stages
    %0 = greta_tile.shared_load %this[%j] : !stages
    %other = arith.subi %one, %stage : i32
    %next = greta_tile.shared_stage %a[%other] of 2 : !stages
    greta_tile.shared_store %0, %next[%i] : !stages
    scf.yield %other : i32
  }
  greta_tile.return
}

// Three stages of two direct loads each. Before the loop two stages' loads may stay in flight; in the loop the barrier before the next stage is
// read leaves those of the one behind it, and lets this one be filled again. At the end nothing may arrive any more.
// CHECK-LABEL: @direct
// CHECK-COUNT-6: greta_tile.ptr_load_shared
// CHECK-NEXT: greta_tile.barrier in_flight 4
// CHECK: greta_tile.shared_load
// CHECK: scf.for
// CHECK-NOT: greta_tile.barrier
// CHECK: greta_tile.barrier in_flight 2
// CHECK-NEXT: greta_tile.shared_load
// CHECK-COUNT-2: greta_tile.ptr_load_shared
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: greta_tile.barrier in_flight 0
// CHECK-NEXT: greta_tile.return
greta_tile.func @direct(%x: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %a = greta_tile.shared_alloc : !three
  %i = greta_tile.lane_id
  %j = greta_tile.wave_id
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %back = arith.constant -2 : i32
  %stages = arith.constant 3 : i32
  %a0 = greta_tile.shared_stage %a[%z] of 3 : !three
  greta_tile.ptr_load_shared %x[%i], %a0[%j] width 4 : !greta_tile.ptr<f32> -> !three
  greta_tile.ptr_load_shared %x[%j], %a0[%i] width 4 : !greta_tile.ptr<f32> -> !three
  %a1 = greta_tile.shared_stage %a[%one] of 3 : !three
  greta_tile.ptr_load_shared %x[%i], %a1[%j] width 4 : !greta_tile.ptr<f32> -> !three
  greta_tile.ptr_load_shared %x[%j], %a1[%i] width 4 : !greta_tile.ptr<f32> -> !three
  %a2 = greta_tile.shared_stage %a[%two] of 3 : !three
  greta_tile.ptr_load_shared %x[%i], %a2[%j] width 4 : !greta_tile.ptr<f32> -> !three
  greta_tile.ptr_load_shared %x[%j], %a2[%i] width 4 : !greta_tile.ptr<f32> -> !three
  %0 = greta_tile.shared_load %a0[%j] : !three
  %end:2 = scf.for %k = %z to %n step %one iter_args(%stage = %z, %v = %0) -> (i32, vector<4xf32>) : i32 {
    %more = arith.addi %stage, %one : i32
    %less = arith.addi %stage, %back : i32
    %fits = arith.cmpi slt, %more, %stages : i32
    %next = arith.select %fits, %more, %less : i32
    %read = greta_tile.shared_stage %a[%next] of 3 : !three
    %1 = greta_tile.shared_load %read[%j] : !three
    %filled = greta_tile.shared_stage %a[%stage] of 3 : !three
    greta_tile.ptr_load_shared %x[%k], %filled[%j] width 4 : !greta_tile.ptr<f32> -> !three
    greta_tile.ptr_load_shared %x[%k], %filled[%i] width 4 : !greta_tile.ptr<f32> -> !three
    scf.yield %next, %1 : i32, vector<4xf32>
  }
  greta_tile.return
}

// If a block is read whole, the barrier that lets its stage be filled again also waits for the next one.
// CHECK-LABEL: @direct_whole
// CHECK-COUNT-2: greta_tile.ptr_load_shared
// CHECK-NEXT: greta_tile.barrier in_flight 1
// CHECK: scf.for
// CHECK: greta_tile.shared_load
// CHECK-NEXT: greta_tile.barrier in_flight 0
// CHECK-NEXT: greta_tile.ptr_load_shared
// CHECK-NOT: greta_tile.barrier
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: greta_tile.barrier in_flight 0
greta_tile.func @direct_whole(%x: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %a = greta_tile.shared_alloc : !three
  %j = greta_tile.wave_id
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a0 = greta_tile.shared_stage %a[%z] of 2 : !three
  greta_tile.ptr_load_shared %x[%j], %a0[%j] width 4 : !greta_tile.ptr<f32> -> !three
  %a1 = greta_tile.shared_stage %a[%one] of 2 : !three
  greta_tile.ptr_load_shared %x[%j], %a1[%j] width 4 : !greta_tile.ptr<f32> -> !three
  %end = scf.for %k = %z to %n step %one iter_args(%stage = %z) -> (i32) : i32 {
    %other = arith.subi %one, %stage : i32
    %this = greta_tile.shared_stage %a[%stage] of 2 : !three
    %0 = greta_tile.shared_load %this[%j] : !three
    greta_tile.ptr_load_shared %x[%k], %this[%j] width 4 : !greta_tile.ptr<f32> -> !three
    scf.yield %other : i32
  }
  greta_tile.return
}

// Arrays that share bytes.
// CHECK-LABEL: @sharing
// CHECK: greta_tile.shared_store
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_load
// CHECK-NEXT: greta_tile.shared_store
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_store
// CHECK-NOT: greta_tile.barrier
greta_tile.func @sharing(%x: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %a = greta_tile.shared_alloc offset 0 : !stages
  %b = greta_tile.shared_alloc offset 512 : !array
  %c = greta_tile.shared_alloc offset 256 : !array
  %i = greta_tile.lane_id
  %j = greta_tile.wave_id
  greta_tile.shared_store %x, %a[%i] : !stages
  greta_tile.barrier
  %0 = greta_tile.shared_load %a[%j] : !stages
  greta_tile.shared_store %0, %b[%i] : !array
  greta_tile.shared_store %0, %c[%i] : !array
  greta_tile.return
}

// Lanes that add to counters need not wait for each other, only for who clears and who reads them.
// CHECK-LABEL: @sums
// CHECK: greta_tile.shared_store
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_add
// CHECK-NEXT: greta_tile.shared_add
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_load
greta_tile.func @sums(%n: i32) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %a = greta_tile.shared_alloc : !greta_tile.shared<64 x i32>
  greta_tile.shared_store %n, %a[%n] : !greta_tile.shared<64 x i32>
  greta_tile.shared_add %n, %a[%n] : !greta_tile.shared<64 x i32>
  greta_tile.shared_add %n, %a[%n] : !greta_tile.shared<64 x i32>
  %v = greta_tile.shared_load %a[%n] : !greta_tile.shared<64 x i32>
  greta_tile.return
}

// For drivers, loads of the next iteration stand behind the barrier; loads of this iteration do not.
// CHECK-LABEL: @next_turn
// CHECK: scf.for
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_store
// CHECK-NEXT: greta_tile.ptr_load
// CHECK-NEXT: greta_tile.ptr_load
// CHECK-NEXT: greta_tile.barrier
// CHECK-NEXT: greta_tile.shared_load
// VULKAN-LABEL: @next_turn
// VULKAN: scf.for
// VULKAN-NEXT: greta_tile.barrier
// VULKAN-NEXT: greta_tile.shared_store
// VULKAN-NEXT: greta_tile.ptr_load %{{.*}}[%{{.*}}] align 4
// VULKAN-NEXT: greta_tile.barrier
// VULKAN-NEXT: greta_tile.ptr_load %{{.*}}[%{{.*}}] align 8
// VULKAN-NEXT: greta_tile.shared_load
greta_tile.func @next_turn(%p: !greta_tile.ptr<i32>, %n: i32, %x: i32) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = greta_tile.shared_alloc : !array
  %i = greta_tile.lane_id
  %j = greta_tile.wave_id
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%v = %x) -> i32 : i32 {
    greta_tile.shared_store %v, %a[%i] : !array
    %this = greta_tile.ptr_load %p[%i] align 4 : !greta_tile.ptr<i32> -> i32
    %next = greta_tile.ptr_load %p[%j] align 8 : !greta_tile.ptr<i32> -> i32
    %y = greta_tile.shared_load %a[%j] : !array
    %z = arith.addi %y, %this : i32
    greta_tile.ptr_store %z, %p[%j] align 4 : i32 -> !greta_tile.ptr<i32>
    scf.yield %next : i32
  }
  greta_tile.return
}
