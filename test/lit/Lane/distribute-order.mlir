// RUN: greta-opt %s --greta-tile-distribute | FileCheck %s

// Lanes share a program's work, and what they read and write in one memory takes place in the program's order: a barrier stands between accesses that may meet in different lanes.

#all = #greta_tile.layout<{reg = [], lane = [[1], [2], [4], [8], [16], [32]], wave = [[64], [128]], rep = [1]}>
#turned = #greta_tile.layout<{reg = [], lane = [[128], [64], [4], [8], [16], [32]], wave = [[2], [1]], rep = [1]}>
#one = #greta_tile.layout<{reg = [[1]], lane = [[2], [4], [8], [16], [32], [64]], wave = [], rep = [1]}>
#other = #greta_tile.layout<{reg = [[64]], lane = [[1], [2], [4], [8], [16], [32]], wave = [], rep = [1]}>
#copies = #greta_tile.layout<{reg = [], lane = [[1], [2], [4], [8], [16], [32]], wave = [[64], [0]], rep = [1]}>

// A store behind another one needs no barrier of its own.
// CHECK-LABEL: greta_tile.func @scalar
// CHECK: greta_tile.ptr_load
// CHECK: greta_tile.barrier global
// CHECK: greta_tile.ptr_store
// CHECK-NOT: greta_tile.barrier
// CHECK: greta_tile.ptr_store
greta_tile.func @scalar(%p: !greta_tile.ptr<i32>, %q: !greta_tile.ptr<i32>) attributes {waves = 4 : i32, wave_size = 64 : i32} {
  %one = arith.constant 1 : i32
  %v = greta_tile.load_scattered %p : !greta_tile.ptr<i32> -> i32
  %w = arith.addi %v, %one : i32
  greta_tile.store_scattered %w, %p : i32 -> !greta_tile.ptr<i32>
  greta_tile.store_scattered %v, %q : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}

// Nothing was loaded, or nothing of this type, or there is one wave.
// CHECK-LABEL: greta_tile.func @first
// CHECK-NOT: greta_tile.barrier
// CHECK-LABEL: greta_tile.func @one_wave
// CHECK-NOT: greta_tile.barrier
greta_tile.func @first(%p: !greta_tile.ptr<i32>, %q: !greta_tile.ptr<f32>) attributes {waves = 4 : i32, wave_size = 64 : i32} {
  %v = greta_tile.load_scattered %q : !greta_tile.ptr<f32> -> f32
  %w = arith.bitcast %v : f32 to i32
  greta_tile.store_scattered %w, %p : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}
greta_tile.func @one_wave(%p: !greta_tile.ptr<i32>) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %v = greta_tile.load_scattered %p : !greta_tile.ptr<i32> -> i32
  greta_tile.store_scattered %v, %p : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}

// If every lane has elements of its own, it loads and stores them itself.
// CHECK-LABEL: greta_tile.func @full
// CHECK-NOT: greta_tile.barrier
greta_tile.func @full(%x: !greta_tile.ptr<f32>) attributes {waves = 4 : i32, wave_size = 64 : i32} {
  %i = greta_tile.iota 0 : tensor<256xi32, #all>
  %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f32>, tensor<256xi32, #all>
  %v = greta_tile.load_scattered %p : tensor<256x!greta_tile.ptr<f32>, #all> -> tensor<256xf32, #all>
  %w = arith.addf %v, %v : tensor<256xf32, #all>
  greta_tile.store_scattered %w, %p : tensor<256xf32, #all> -> tensor<256x!greta_tile.ptr<f32>, #all>
  greta_tile.return
}

// The load of an iteration is before the store of the next.
// CHECK-LABEL: greta_tile.func @loop
// CHECK: scf.for
// CHECK: greta_tile.barrier
// CHECK: greta_tile.ptr_store
// CHECK: greta_tile.barrier global
// CHECK: greta_tile.ptr_load
greta_tile.func @loop(%x: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32, wave_size = 64 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %i = greta_tile.iota 0 : tensor<128xi32, #copies>
  %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f32>, tensor<128xi32, #copies>
  %first = arith.constant dense<0.0> : tensor<128xf32, #copies>
  %last = scf.for %turn = %zero to %n step %one iter_args(%v = %first) -> (tensor<128xf32, #copies>) : i32 {
    greta_tile.store_scattered %v, %p : tensor<128xf32, #copies> -> tensor<128x!greta_tile.ptr<f32>, #copies>
    %next = greta_tile.load_scattered %p : tensor<128x!greta_tile.ptr<f32>, #copies> -> tensor<128xf32, #copies>
    scf.yield %next : tensor<128xf32, #copies>
  }
  greta_tile.return
}

// Two layouts of one block: other lanes store an element than have loaded it, in one wave, too. Accesses by strides are no different, and arguments that may be one buffer are not either.
// CHECK-LABEL: greta_tile.func @layouts
// CHECK: greta_tile.ptr_load
// CHECK: greta_tile.barrier global
// CHECK: greta_tile.ptr_store
// CHECK-LABEL: greta_tile.func @strided
// CHECK: greta_tile.barrier
// CHECK-LABEL: greta_tile.func @arguments
// CHECK: greta_tile.barrier
// CHECK-LABEL: greta_tile.func @apart
// CHECK-NOT: greta_tile.barrier
// CHECK-LABEL: greta_tile.func @unread
// CHECK-NOT: greta_tile.barrier
greta_tile.func @layouts(%x: !greta_tile.ptr<f32>) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %i = greta_tile.iota 0 : tensor<128xi32, #one>
  %j = greta_tile.iota 0 : tensor<128xi32, #other>
  %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f32>, tensor<128xi32, #one>
  %q = greta_tile.ptr_add %x, %j : !greta_tile.ptr<f32>, tensor<128xi32, #other>
  %v = greta_tile.load_scattered %p : tensor<128x!greta_tile.ptr<f32>, #one> -> tensor<128xf32, #one>
  %w = greta_tile.convert_layout %v : tensor<128xf32, #one> -> tensor<128xf32, #other>
  greta_tile.store_scattered %w, %q : tensor<128xf32, #other> -> tensor<128x!greta_tile.ptr<f32>, #other>
  greta_tile.return
}
greta_tile.func @strided(%x: !greta_tile.ptr<f32>) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %z = arith.constant 0 : i32
  %v = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<128xf32, #one>
  %w = greta_tile.convert_layout %v : tensor<128xf32, #one> -> tensor<128xf32, #other>
  greta_tile.store %w, %x[%z] strides [1] bounds [] : tensor<128xf32, #other> -> !greta_tile.ptr<f32>
  greta_tile.return
}
greta_tile.func @arguments(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %z = arith.constant 0 : i32
  %v = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<128xf32, #one>
  %w = greta_tile.convert_layout %v : tensor<128xf32, #one> -> tensor<128xf32, #other>
  greta_tile.store %w, %y[%z] strides [1] bounds [] : tensor<128xf32, #other> -> !greta_tile.ptr<f32>
  greta_tile.return
}
greta_tile.func @apart(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32> {greta.noalias}) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %z = arith.constant 0 : i32
  %v = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<128xf32, #one>
  %w = greta_tile.convert_layout %v : tensor<128xf32, #one> -> tensor<128xf32, #other>
  greta_tile.store %w, %y[%z] strides [1] bounds [] : tensor<128xf32, #other> -> !greta_tile.ptr<f32>
  greta_tile.return
}
// Behind the block, and as far before it as it is long.
greta_tile.func @unread(%x: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %z = arith.constant 0 : i32
  %behind = arith.constant 128 : i32
  %m = arith.addi %n, %behind : i32
  %at = greta_tile.ptr_add %x, %n : !greta_tile.ptr<f32>, i32
  %v = greta_tile.load %at[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<128xf32, #one>
  %w = greta_tile.convert_layout %v : tensor<128xf32, #one> -> tensor<128xf32, #other>
  greta_tile.store %w, %x[%m] strides [1] bounds [] : tensor<128xf32, #other> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Blocks that move by whole blocks keep their lanes from iteration to iteration; others do not.
// CHECK-LABEL: greta_tile.func @whole
// CHECK-NOT: greta_tile.barrier
// CHECK-LABEL: greta_tile.func @sliding
// CHECK: scf.for
// CHECK: greta_tile.barrier global
// CHECK: greta_tile.ptr_load
// CHECK-NOT: greta_tile.barrier
// CHECK: greta_tile.ptr_store
greta_tile.func @whole(%x: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32, wave_size = 64 : i32} {
  %z = arith.constant 0 : i32
  %c256 = arith.constant 256 : i32
  %i = greta_tile.iota 0 : tensor<256xi32, #all>
  scf.for %t = %z to %n step %c256 : i32 {
    %s = greta_tile.splat %t : tensor<256xi32, #all>
    %at = arith.addi %s, %i : tensor<256xi32, #all>
    %p = greta_tile.ptr_add %x, %at : !greta_tile.ptr<f32>, tensor<256xi32, #all>
    %v = greta_tile.load_scattered %p : tensor<256x!greta_tile.ptr<f32>, #all> -> tensor<256xf32, #all>
    greta_tile.store_scattered %v, %p : tensor<256xf32, #all> -> tensor<256x!greta_tile.ptr<f32>, #all>
  }
  greta_tile.return
}
greta_tile.func @sliding(%x: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32, wave_size = 64 : i32} {
  %z = arith.constant 0 : i32
  %c96 = arith.constant 96 : i32
  %i = greta_tile.iota 0 : tensor<256xi32, #all>
  scf.for %t = %z to %n step %c96 : i32 {
    %s = greta_tile.splat %t : tensor<256xi32, #all>
    %at = arith.addi %s, %i : tensor<256xi32, #all>
    %p = greta_tile.ptr_add %x, %at : !greta_tile.ptr<f32>, tensor<256xi32, #all>
    %v = greta_tile.load_scattered %p : tensor<256x!greta_tile.ptr<f32>, #all> -> tensor<256xf32, #all>
    greta_tile.store_scattered %v, %p : tensor<256xf32, #all> -> tensor<256x!greta_tile.ptr<f32>, #all>
  }
  greta_tile.return
}

// A barrier, and an atomic that releases, order what is in front of them; the third barrier is the acquire.
// CHECK-LABEL: greta_tile.func @ordered
// CHECK-COUNT-3: greta_tile.barrier
// CHECK-NOT: greta_tile.barrier
greta_tile.func @ordered(%x: !greta_tile.ptr<i32>, %lock: !greta_tile.ptr<i32>) attributes {waves = 4 : i32, wave_size = 64 : i32} {
  %one = arith.constant 1 : i32
  %i = greta_tile.iota 0 : tensor<256xi32, #all>
  %j = greta_tile.iota 0 : tensor<256xi32, #turned>
  %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<i32>, tensor<256xi32, #all>
  %q = greta_tile.ptr_add %x, %j : !greta_tile.ptr<i32>, tensor<256xi32, #turned>
  greta_tile.store_scattered %i, %p : tensor<256xi32, #all> -> tensor<256x!greta_tile.ptr<i32>, #all>
  greta_tile.barrier
  greta_tile.store_scattered %j, %q : tensor<256xi32, #turned> -> tensor<256x!greta_tile.ptr<i32>, #turned>
  %old = greta_tile.atomic_rmw add acq_rel device %lock, %one : !greta_tile.ptr<i32> -> i32
  %v = greta_tile.load_scattered %p : tensor<256x!greta_tile.ptr<i32>, #all> -> tensor<256xi32, #all>
  greta_tile.return
}
