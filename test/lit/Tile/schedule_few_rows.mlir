// Eight rows have NVIDIA's transposed instruction, which takes operands from registers: a loop that loads both by strides, along K or without a mask, and that nobody has configured, has no stages. One that says how
// many, whose operand is computed or loaded through pointers, or whose dots are unlike keeps multiply-adds, and so do all loops of other targets.
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=vulkan:nvidia},greta-tile-schedule{target=vulkan:nvidia}))' | FileCheck %s
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=vulkan:nvidia matrix=false},greta-tile-schedule{target=vulkan:nvidia matrix=false}))' | FileCheck %s --check-prefix=OTHER
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx1201},greta-tile-schedule{target=gfx1201}))' | FileCheck %s --check-prefix=OTHER
// OTHER-NOT: matrix =
// OTHER-NOT: stages = 0

// CHECK-LABEL: @loaded
// CHECK: greta_tile.dot {{.*}} {matrix = #greta_tile.matrix<"coopmat" swapped = true, {{.*}} : tensor<8x64xf16>
// CHECK: {greta_tile.pipeline = #greta_tile.pipeline<stages = 0, slice = 64>}
greta_tile.func @loaded(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<8x32xf32>
  %r = scf.for %k = %z to %n step %step iter_args(%sum = %none) -> (tensor<8x32xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<8x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [0] (%n) : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %d = greta_tile.dot %a, %b, %sum : tensor<8x64xf16>, tensor<64x32xf16> -> tensor<8x32xf32>
    scf.yield %d : tensor<8x32xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [32, 1] bounds [] : tensor<8x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// An operand across K has it without a mask, where the driver loads whole matrices.
// CHECK-LABEL: @across(
// CHECK: {matrix = #greta_tile.matrix<"coopmat" swapped = true
// CHECK: stages = 0
greta_tile.func @across(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<8x32xf32>
  %r = scf.for %k = %z to %n step %step iter_args(%sum = %none) -> (tensor<8x32xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<8x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %d = greta_tile.dot %a, %b, %sum : tensor<8x64xf16>, tensor<64x32xf16> -> tensor<8x32xf32>
    scf.yield %d : tensor<8x32xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [32, 1] bounds [] : tensor<8x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: @across_under_a_mask
// CHECK-NOT: matrix =
// CHECK: greta_tile.store
greta_tile.func @across_under_a_mask(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<8x32xf32>
  %r = scf.for %k = %z to %n step %step iter_args(%sum = %none) -> (tensor<8x32xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<8x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [4096, 1] bounds [0] (%n) : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %d = greta_tile.dot %a, %b, %sum : tensor<8x64xf16>, tensor<64x32xf16> -> tensor<8x32xf32>
    scf.yield %d : tensor<8x32xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [32, 1] bounds [] : tensor<8x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: @asked
// CHECK-NOT: matrix =
// CHECK: {greta_tile.stages = 2 : i32}
greta_tile.func @asked(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<8x32xf32>
  %r = scf.for %k = %z to %n step %step iter_args(%sum = %none) -> (tensor<8x32xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<8x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %d = greta_tile.dot %a, %b, %sum : tensor<8x64xf16>, tensor<64x32xf16> -> tensor<8x32xf32>
    scf.yield %d : tensor<8x32xf32>
  } {greta_tile.stages = 2 : i32}
  greta_tile.store %r, %o[%z, %z] strides [32, 1] bounds [] : tensor<8x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: @computed
// CHECK-NOT: matrix =
// CHECK-NOT: greta_tile.pipeline
greta_tile.func @computed(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<8x32xf32>
  %r = scf.for %k = %z to %n step %step iter_args(%sum = %none) -> (tensor<8x32xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<8x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %c = arith.addf %b, %b : tensor<64x32xf16>
    %d = greta_tile.dot %a, %c, %sum : tensor<8x64xf16>, tensor<64x32xf16> -> tensor<8x32xf32>
    scf.yield %d : tensor<8x32xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [32, 1] bounds [] : tensor<8x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: @unlike
// CHECK-NOT: swapped = true
// CHECK-NOT: greta_tile.pipeline
greta_tile.func @unlike(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<8x32xf32>
  %wide = arith.constant dense<0.0> : tensor<8x64xf32>
  %r:2 = scf.for %k = %z to %n step %step iter_args(%p = %none, %q = %wide) -> (tensor<8x32xf32>, tensor<8x64xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<8x64xf16>
    %b = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %c = greta_tile.load %y[%k, %z] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
    %d = greta_tile.dot %a, %b, %p : tensor<8x64xf16>, tensor<64x32xf16> -> tensor<8x32xf32>
    %e = greta_tile.dot %a, %c, %q : tensor<8x64xf16>, tensor<64x64xf16> -> tensor<8x64xf32>
    scf.yield %d, %e : tensor<8x32xf32>, tensor<8x64xf32>
  }
  greta_tile.store %r#0, %o[%z, %z] strides [32, 1] bounds [] : tensor<8x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.store %r#1, %o[%z, %z] strides [64, 1] bounds [] : tensor<8x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// CHECK-LABEL: @pointers
// CHECK-NOT: matrix =
// CHECK-NOT: greta_tile.pipeline
greta_tile.func @pointers(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<8x32xf32>
  %i = greta_tile.iota 0 : tensor<64x32xi32>
  %r = scf.for %k = %z to %n step %step iter_args(%sum = %none) -> (tensor<8x32xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<8x64xf16>
    %at = greta_tile.splat %k : tensor<64x32xi32>
    %row = arith.addi %i, %at : tensor<64x32xi32>
    %p = greta_tile.ptr_add %y, %row : !greta_tile.ptr<f16>, tensor<64x32xi32>
    %b = greta_tile.load_scattered %p : tensor<64x32x!greta_tile.ptr<f16>> -> tensor<64x32xf16>
    %d = greta_tile.dot %a, %b, %sum : tensor<8x64xf16>, tensor<64x32xf16> -> tensor<8x32xf32>
    scf.yield %d : tensor<8x32xf32>
  }
  greta_tile.store %r, %o[%z, %z] strides [32, 1] bounds [] : tensor<8x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
