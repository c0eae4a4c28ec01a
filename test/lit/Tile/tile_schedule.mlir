// A loop over K that nobody has configured gets the schedule that the model finds fastest for a GEMM with its blocks as the tile: half a block at a time where
// registers hold it; on gfx942 one stage where it has room for twice the waves of two; a loop may ask for three stages. A schedule that the loop has stays. NVIDIA's driver
// loads matrices whole: one stage, the shortest slices.
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx942},greta-tile-schedule{target=gfx942}))' | FileCheck %s --check-prefixes=CHECK,GFX942
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx950},greta-tile-schedule{target=gfx950}))' | FileCheck %s --check-prefixes=CHECK,GFX950
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=vulkan:nvidia},greta-tile-schedule{target=vulkan:nvidia}))' | FileCheck %s --check-prefix=NVIDIA
// RUN: not greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-schedule{target=gfx1}))' 2>&1 | FileCheck %s --check-prefix=ERROR
// NVIDIA: @free
// NVIDIA: greta_tile.pipeline = #greta_tile.pipeline<stages = 1, slice = 16>
// NVIDIA: @asked
// ERROR: error: unknown target 'gfx1'

// CHECK-LABEL: @free
// GFX942: greta_tile.pipeline = #greta_tile.pipeline<stages = 1, slice = 32>
// GFX950: greta_tile.pipeline = #greta_tile.pipeline<stages = 2, slice = 32>
greta_tile.func @free(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 8 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<256x128xf32>
  %r = scf.for %k = %z to %n step %c32 iter_args(%acc = %none) -> (tensor<256x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [1] (%n) : !greta_tile.ptr<f16> -> tensor<256x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [0] (%n) : !greta_tile.ptr<f16> -> tensor<32x128xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<256x32xf16>, tensor<32x128xf16> -> tensor<256x128xf32>
    scf.yield %d : tensor<256x128xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<256x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: @asked
// CHECK: greta_tile.pipeline = #greta_tile.pipeline<stages = 1, slice = 32>
greta_tile.func @asked(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 8 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<256x128xf32>
  %r = scf.for %k = %z to %n step %c32 iter_args(%acc = %none) -> (tensor<256x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<256x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x128xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<256x32xf16>, tensor<32x128xf16> -> tensor<256x128xf32>
    scf.yield %d : tensor<256x128xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 1, slice = 32>}
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<256x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Dots of unlike shapes have no one tile.
// CHECK-LABEL: @unlike
// CHECK-NOT: greta_tile.pipeline
greta_tile.func @unlike(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %wide = arith.constant dense<0.0> : tensor<64x128xf32>
  %r:2 = scf.for %k = %z to %n step %c32 iter_args(%p = %none, %q = %wide) -> (tensor<64x64xf32>, tensor<64x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %c = greta_tile.load %y[%k, %z] strides [1, 8192] bounds [] : !greta_tile.ptr<f16> -> tensor<32x128xf16>
    %d = greta_tile.dot %a, %b, %p : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    %e = greta_tile.dot %a, %c, %q : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
    scf.yield %d, %e : tensor<64x64xf32>, tensor<64x128xf32>
  }
  greta_tile.store %r#0, %o[%z, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.store %r#1, %o[%z, %z] strides [128, 1] bounds [] : tensor<64x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Two stages leave two waves on a SIMD here too, and one has room for four, but the caches cannot bring more than two workgroups multiply.
// CHECK-LABEL: @cached
// GFX942: greta_tile.pipeline = #greta_tile.pipeline<stages = 2, slice
greta_tile.func @cached(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %z to %n step %c64 iter_args(%acc = %none) -> (tensor<64x64xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// The stages that somebody asks for, as many as fit: three of 24 KiB are more than gfx942's 64, so it has the one that it would choose; a number beyond three is three.
// CHECK-LABEL: @one
// CHECK: greta_tile.pipeline = #greta_tile.pipeline<stages = 1, slice
greta_tile.func @one(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 8 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<256x128xf32>
  %r = scf.for %k = %z to %n step %c32 iter_args(%acc = %none) -> (tensor<256x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<256x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x128xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<256x32xf16>, tensor<32x128xf16> -> tensor<256x128xf32>
    scf.yield %d : tensor<256x128xf32>
  } {greta_tile.stages = 1 : i32}
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<256x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A kernel has the number of stages that its launch asks for.
// CHECK-LABEL: @launched
// CHECK: greta_tile.pipeline = #greta_tile.pipeline<stages = 1, slice
greta_tile.func @launched(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 8 : i32, greta_tile.stages = 1 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<256x128xf32>
  %r = scf.for %k = %z to %n step %c32 iter_args(%acc = %none) -> (tensor<256x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<256x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x128xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<256x32xf16>, tensor<32x128xf16> -> tensor<256x128xf32>
    scf.yield %d : tensor<256x128xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<256x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: @three
// GFX942: greta_tile.pipeline = #greta_tile.pipeline<stages = 1, slice
// GFX950: greta_tile.pipeline = #greta_tile.pipeline<stages = 3, slice
greta_tile.func @three(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 8 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<256x128xf32>
  %r = scf.for %k = %z to %n step %c32 iter_args(%acc = %none) -> (tensor<256x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<256x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x128xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<256x32xf16>, tensor<32x128xf16> -> tensor<256x128xf32>
    scf.yield %d : tensor<256x128xf32>
  } {greta_tile.stages = 3 : i32}
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<256x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: @many
// GFX950: greta_tile.pipeline = #greta_tile.pipeline<stages = 3, slice
greta_tile.func @many(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 8 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<256x128xf32>
  %r = scf.for %k = %z to %n step %c32 iter_args(%acc = %none) -> (tensor<256x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<256x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x128xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<256x32xf16>, tensor<32x128xf16> -> tensor<256x128xf32>
    scf.yield %d : tensor<256x128xf32>
  } {greta_tile.stages = 9 : i32}
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<256x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// An inner loop with dots writes shared memory inside the outer one, which has no schedule of its own.
// CHECK-LABEL: @nested
// CHECK: scf.for
// CHECK: scf.for
// CHECK: } {greta_tile.pipeline =
// CHECK-NOT: } {greta_tile.pipeline =
greta_tile.func @nested(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 8 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<256x128xf32>
  %r = scf.for %j = %z to %n step %c32 iter_args(%sum = %none) -> (tensor<256x128xf32>) : i32 {
    %s = scf.for %k = %z to %n step %c32 iter_args(%acc = %sum) -> (tensor<256x128xf32>) : i32 {
      %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<256x32xf16>
      %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x128xf16>
      %d = greta_tile.dot %a, %b, %acc : tensor<256x32xf16>, tensor<32x128xf16> -> tensor<256x128xf32>
      scf.yield %d : tensor<256x128xf32>
    }
    %e = greta_tile.load %x[%z, %j] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<256x32xf16>
    %f = greta_tile.load %y[%j, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x128xf16>
    %g = greta_tile.dot %e, %f, %s : tensor<256x32xf16>, tensor<32x128xf16> -> tensor<256x128xf32>
    scf.yield %g : tensor<256x128xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<256x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Each iteration's sums are scaled before they are added: nothing moves between lanes, so the two stages that are asked for take all of gfx942's shared memory.
// CHECK-LABEL: @scaled
// GFX942: greta_tile.pipeline = #greta_tile.pipeline<stages = 2, slice
greta_tile.func @scaled(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %s: !greta_tile.ptr<f32>, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %z to %n step %c64 iter_args(%acc = %none) -> (tensor<128x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<128x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<64x128xf16>
    %d = greta_tile.dot %a, %b, %none : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    %rows = greta_tile.load %s[%z, %k] strides [1, 4096] bounds [] : !greta_tile.ptr<f32> -> tensor<128x1xf32>
    %scale = greta_tile.broadcast %rows : tensor<128x1xf32> -> tensor<128x128xf32>
    %e = arith.mulf %d, %scale : tensor<128x128xf32>
    %f = arith.addf %acc, %e : tensor<128x128xf32>
    scf.yield %f : tensor<128x128xf32>
  } {greta_tile.stages = 2 : i32}
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<128x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// The scale of the rows also meets a block of another shape, so it moves between layouts: that has some of it, too.
// CHECK-LABEL: @scaled_twice
// GFX942-NOT: greta_tile.pipeline = #greta_tile.pipeline<stages = 2
// GFX942: greta_tile.return
greta_tile.func @scaled_twice(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %s: !greta_tile.ptr<f32>, %t: !greta_tile.ptr<f32>, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %z to %n step %c64 iter_args(%acc = %none) -> (tensor<128x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<128x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<64x128xf16>
    %d = greta_tile.dot %a, %b, %none : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    %rows = greta_tile.load %s[%z, %k] strides [1, 4096] bounds [] : !greta_tile.ptr<f32> -> tensor<128x1xf32>
    %scale = greta_tile.broadcast %rows : tensor<128x1xf32> -> tensor<128x128xf32>
    %other = greta_tile.broadcast %rows : tensor<128x1xf32> -> tensor<128x64xf32>
    greta_tile.store %other, %t[%z, %k] strides [4096, 1] bounds [] : tensor<128x64xf32> -> !greta_tile.ptr<f32>
    %e = arith.mulf %d, %scale : tensor<128x128xf32>
    %f = arith.addf %acc, %e : tensor<128x128xf32>
    scf.yield %f : tensor<128x128xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<128x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// The same with the largest of each row of an iteration's sums: a reduction has some of it.
// CHECK-LABEL: @reduced
// GFX942-NOT: greta_tile.pipeline = #greta_tile.pipeline<stages = 2
// GFX942: greta_tile.return
greta_tile.func @reduced(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %s: !greta_tile.ptr<f32>, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %z to %n step %c64 iter_args(%acc = %none) -> (tensor<128x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<128x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<64x128xf16>
    %d = greta_tile.dot %a, %b, %none : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    %largest = greta_tile.reduce {arith.maximumf} %d axis 1 : tensor<128x128xf32> -> tensor<128xf32>
    %most = greta_tile.reshape %largest : tensor<128xf32> -> tensor<128x1xf32>
    %scale = greta_tile.broadcast %most : tensor<128x1xf32> -> tensor<128x128xf32>
    %e = arith.mulf %d, %scale : tensor<128x128xf32>
    %f = arith.addf %acc, %e : tensor<128x128xf32>
    scf.yield %f : tensor<128x128xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<128x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Two waves on a SIMD do not hide each other's waits: on NVIDIA a second stage is taken where it costs none of them.
// CHECK-LABEL: @second
// NVIDIA: @second
// NVIDIA: greta_tile.pipeline = #greta_tile.pipeline<stages = 2, slice = 16>
greta_tile.func @second(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 8 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = scf.for %k = %z to %n step %c32 iter_args(%acc = %none) -> (tensor<128x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<128x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x128xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<128x32xf16>, tensor<32x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<128x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Matrices that are loaded whole have 16 bytes between all rows of a batch: with them one stage of these blocks, 40 KiB without, is more than NVIDIA's 48 KiB.
// NVIDIA: @batch
// NVIDIA-NOT: greta_tile.pipeline
greta_tile.func @batch(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 8 : i32} {
  %z = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<8x64x16xf32>
  %r = scf.for %k = %z to %n step %c32 iter_args(%acc = %none) -> (tensor<8x64x16xf32>) : i32 {
    %a = greta_tile.load %x[%z, %z, %k] strides [262144, 4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<8x64x32xf16>
    %b = greta_tile.load %y[%z, %k, %z] strides [65536, 16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<8x32x16xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<8x64x32xf16>, tensor<8x32x16xf16> -> tensor<8x64x16xf32>
    scf.yield %d : tensor<8x64x16xf32>
  }
  greta_tile.store %r, %o[%z, %z, %z] strides [1024, 16, 1] bounds [] : tensor<8x64x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Loops whose step is not positive have no schedule: nothing divides by zero.
// NVIDIA: @standing
// NVIDIA-NOT: greta_tile.pipeline
greta_tile.func @standing(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>, %o: !greta_tile.ptr<f32>) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %n = arith.constant 4096 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %z to %n step %z iter_args(%acc = %none) -> (tensor<64x64xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %d = greta_tile.dot %a, %b, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
