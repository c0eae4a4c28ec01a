// On RDNA a product that an iteration scales and the sums fill the registers: blocks on their way to shared memory would push them out, so that operands whose rows are
// whole lines of the cache have no stages. Fewer rows of a wave, shorter rows, and an operand that lies the other way leave the loop to greta-tile-pipeline.
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx1201},greta-tile-schedule{target=gfx1201}))' | FileCheck %s

// CHECK-LABEL: @full
// CHECK: greta_tile.pipeline = #greta_tile.pipeline<stages = 0, slice = 64>
greta_tile.func @full(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %s: f32, %o: !greta_tile.ptr<f32>) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %n = arith.constant 4096 : i32
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %scale = greta_tile.splat %s : tensor<128x128xf32>
  %r = scf.for %k = %z to %n step %step iter_args(%sum = %none) -> (tensor<128x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<128x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<64x128xf16>
    %p = greta_tile.dot %a, %b, %none : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    %q = arith.mulf %p, %scale : tensor<128x128xf32>
    %d = arith.addf %sum, %q : tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<128x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: @wider
// CHECK-NOT: greta_tile.pipeline
greta_tile.func @wider(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %s: f32, %o: !greta_tile.ptr<f32>) attributes {waves = 8 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %n = arith.constant 4096 : i32
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %scale = greta_tile.splat %s : tensor<128x128xf32>
  %r = scf.for %k = %z to %n step %step iter_args(%sum = %none) -> (tensor<128x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<128x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<64x128xf16>
    %p = greta_tile.dot %a, %b, %none : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    %q = arith.mulf %p, %scale : tensor<128x128xf32>
    %d = arith.addf %sum, %q : tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<128x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: @shorter
// CHECK-NOT: greta_tile.pipeline
greta_tile.func @shorter(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %s: f32, %o: !greta_tile.ptr<f32>) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %n = arith.constant 4096 : i32
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %scale = greta_tile.splat %s : tensor<128x128xf32>
  %r = scf.for %k = %z to %n step %step iter_args(%sum = %none) -> (tensor<128x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<128x32xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<32x128xf16>
    %p = greta_tile.dot %a, %b, %none : tensor<128x32xf16>, tensor<32x128xf16> -> tensor<128x128xf32>
    %q = arith.mulf %p, %scale : tensor<128x128xf32>
    %d = arith.addf %sum, %q : tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<128x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: @across
// CHECK-NOT: greta_tile.pipeline
greta_tile.func @across(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %s: f32, %o: !greta_tile.ptr<f32>) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %n = arith.constant 4096 : i32
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %scale = greta_tile.splat %s : tensor<128x128xf32>
  %r = scf.for %k = %z to %n step %step iter_args(%sum = %none) -> (tensor<128x128xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<128x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x128xf16>
    %p = greta_tile.dot %a, %b, %none : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    %q = arith.mulf %p, %scale : tensor<128x128xf32>
    %d = arith.addf %sum, %q : tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [128, 1] bounds [] : tensor<128x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
