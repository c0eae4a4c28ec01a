// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-assign-layouts,greta-tile-pipeline{target=gfx942},canonicalize,cse))' | FileCheck %s

#mfma = #greta_tile.matrix<"mfma.f32.16x16x16f16",
  a = <{reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]], wave = [], rep = [1, 1]}>,
  b = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>,
  acc = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>>

// One stage of registers' operands: slices at constants, because their place is swizzled.
// CHECK-LABEL: @single_registers
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK-COUNT-2: greta_tile.dot
// CHECK-NOT: greta_tile.dot
// CHECK: greta_tile.rolled
greta_tile.func @single_registers(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %end = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [128, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x32xf16>
    %b = greta_tile.load %x[%k, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %next = greta_tile.dot %a, %b, %acc {matrix = #mfma} : tensor<16x32xf16>, tensor<32x16xf16> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 1, slice = 16>}
  greta_tile.store %d, %y[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Two stages with slices, an even number of blocks: two blocks an iteration with constant stages. Each slice is read before it is used; the barrier
// stands before the products of the last one.
// CHECK-LABEL: @double
// CHECK-COUNT-2: greta_tile.local_alloc : <2 x
// CHECK-COUNT-2: greta_tile.local_load
// CHECK: scf.for {{.*}} step %c64_i32
// CHECK-COUNT-2: greta_tile.local_load %{{.*}}[%c0_i32]
// CHECK: greta_tile.dot
// CHECK-COUNT-2: greta_tile.local_store %{{.*}}, %{{.*}}[%c1_i32]
// CHECK-COUNT-2: greta_tile.load
// CHECK: greta_tile.schedule
// CHECK-COUNT-2: greta_tile.local_load %{{.*}}[%c1_i32]
// CHECK: greta_tile.dot
// CHECK: greta_tile.schedule
// CHECK-COUNT-2: greta_tile.local_load %{{.*}}[%c1_i32]
// CHECK: greta_tile.dot
// CHECK-COUNT-2: greta_tile.local_store %{{.*}}, %{{.*}}[%c0_i32]
// CHECK-COUNT-2: greta_tile.local_load %{{.*}}[%c0_i32]
// CHECK: greta_tile.dot
// CHECK: scf.yield
greta_tile.func @double(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %end = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [128, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x32xf16>
    %b = greta_tile.load %x[%k, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %next = greta_tile.dot %a, %b, %acc {matrix = #mfma} : tensor<16x32xf16>, tensor<32x16xf16> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 2, slice = 16>}
  greta_tile.store %d, %y[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Whole blocks, and an odd number of them: one an iteration; the stage is carried.
// CHECK-LABEL: @odd
// CHECK: scf.for {{.*}} step %c32_i32 iter_args({{.*}}, %[[STAGE:[a-z0-9]+]] = %c0_i32)
// CHECK-COUNT-2: greta_tile.local_load %{{.*}}[%[[STAGE]]]
// CHECK: %[[OTHER:[a-z0-9]+]] = arith.subi %c1_i32, %[[STAGE]]
// CHECK-COUNT-2: greta_tile.local_store %{{.*}}, %{{.*}}[%[[OTHER]]]
// CHECK-COUNT-2: greta_tile.load
// CHECK: greta_tile.dot
// CHECK: scf.yield {{.*}}, %[[OTHER]] :
greta_tile.func @odd(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %end = arith.constant 96 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [96, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x32xf16>
    %b = greta_tile.load %x[%k, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %next = greta_tile.dot %a, %b, %acc {matrix = #mfma} : tensor<16x32xf16>, tensor<32x16xf16> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 2, slice = 32>}
  greta_tile.store %d, %y[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Three stages: what is in registers goes two blocks ahead; the stage is carried where three do not divide the blocks.
// CHECK-LABEL: @three
// CHECK-COUNT-2: greta_tile.local_alloc : <3 x
// CHECK-COUNT-2: greta_tile.local_store %{{.*}}, %{{.*}}[%c0_i32]
// CHECK-COUNT-2: greta_tile.local_store %{{.*}}, %{{.*}}[%c1_i32]
// CHECK: scf.for %[[K:[a-z0-9]+]] = {{.*}} step %c32_i32 iter_args({{.*}}, %[[STAGE:[a-z0-9]+]] = %c0_i32)
// CHECK: %[[MORE:[a-z0-9]+]] = arith.addi %[[STAGE]], %c1_i32
// CHECK: %[[LESS:[a-z0-9]+]] = arith.addi %[[STAGE]], %c-2_i32
// CHECK: %[[FITS:[a-z0-9]+]] = arith.cmpi slt, %[[MORE]], %c3_i32
// CHECK: %[[NEXT:[a-z0-9]+]] = arith.select %[[FITS]], %[[MORE]], %[[LESS]]
// CHECK: arith.addi %[[K]], %c96_i32
// CHECK-COUNT-2: greta_tile.local_load %{{.*}}[%[[STAGE]]]
// CHECK-COUNT-2: greta_tile.local_load %{{.*}}[%[[NEXT]]]
// CHECK: scf.yield {{.*}}, %[[NEXT]] :
greta_tile.func @three(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %end = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [128, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x32xf16>
    %b = greta_tile.load %x[%k, %z] strides [1, 128] bounds [] : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %next = greta_tile.dot %a, %b, %acc {matrix = #mfma} : tensor<16x32xf16>, tensor<32x16xf16> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 3, slice = 16>}
  greta_tile.store %d, %y[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Direct loads: every stage is filled before the loop, and behind the barrier that ends a block its own, three blocks ahead. The barrier waits for
// the next block and leaves the one after it in flight: a lane loads each block of 16x32 with one access.
// CHECK-LABEL: @direct
// CHECK-COUNT-6: greta_tile.local_store %{{.*}}, %{{.*}} direct
// CHECK: scf.for {{.*}} step %c96_i32
// CHECK-NOT: greta_tile.load
// CHECK: greta_tile.local_load %{{.*}}[%c1_i32]
// CHECK: %[[A:[0-9]+]] = greta_tile.load %{{.*}} -> tensor<16x32xf16, #[[FILLS:.*]]>
// CHECK: greta_tile.local_store %[[A]], %{{.*}}[%c0_i32] direct : tensor<16x32xf16, #[[FILLS]]>
// CHECK: greta_tile.load
// CHECK: greta_tile.local_store {{.*}}[%c0_i32] direct
// CHECK: greta_tile.dot
// CHECK: scf.yield
greta_tile.func @direct(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %end = arith.constant 288 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [288, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x32xf16>
    %b = greta_tile.load %x[%k, %z] strides [1, 288] bounds [] : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %next = greta_tile.dot %a, %b, %acc {matrix = #mfma} : tensor<16x32xf16>, tensor<32x16xf16> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 3, slice = 16, direct = 16>}
  greta_tile.store %d, %y[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Sums of what is loaded: with two stages they are a block ahead, and the last block comes twice, so that the sums before the last iteration count.
// CHECK-LABEL: @squares
// CHECK: %[[FIRST:.*]] = greta_tile.contract %[[X:.*]], %[[X]], %{{.*}} dims [1]
// CHECK: %[[LOOP:[0-9]+]]:{{[0-9]+}} = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[AHEAD:[a-z0-9]+]] = %[[FIRST]],
// CHECK: %[[NEXT:.*]] = greta_tile.contract %{{.*}}, %{{.*}}, %[[AHEAD]] dims [1]
// CHECK: scf.yield %{{[0-9]+}}, %[[AHEAD]], %[[NEXT]],
// CHECK: greta_tile.reduce {arith.addf} %[[LOOP]]#1 axis 1
greta_tile.func @squares(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32>, %s: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %end = arith.constant 96 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %none = arith.constant dense<0.0> : tensor<16x4xf32>
  %d:2 = scf.for %k = %z to %end step %step iter_args(%acc = %zero, %sum = %none) -> (tensor<16x16xf32>, tensor<16x4xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [96, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x32xf16>
    %b = greta_tile.load %x[%k, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %next = greta_tile.dot %a, %b, %acc {matrix = #mfma} : tensor<16x32xf16>, tensor<32x16xf16> -> tensor<16x16xf32>
    %more = greta_tile.contract %a, %a, %sum dims [1] : tensor<16x32xf16>, tensor<16x32xf16> -> tensor<16x4xf32>
    scf.yield %next, %more : tensor<16x16xf32>, tensor<16x4xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 2, slice = 32>}
  %rows_line = greta_tile.reduce {arith.addf} %d#1 axis 1 : tensor<16x4xf32> -> tensor<16xf32>
  %rows = greta_tile.reshape %rows_line : tensor<16xf32> -> tensor<16x1xf32>
  greta_tile.store %d#0, %y[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.store %rows, %s[%z, %z] strides [1, 0] bounds [] : tensor<16x1xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A computed operand is stored under the products of the first half.
// CHECK-LABEL: @computed
// CHECK: scf.for
// CHECK: greta_tile.dot
// CHECK: arith.sitofp
// CHECK: greta_tile.local_store
// CHECK: greta_tile.schedule{{$}}
// CHECK: greta_tile.dot
// CHECK: greta_tile.schedule{{$}}
greta_tile.func @computed(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %w: !greta_tile.ptr<i8> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %end = arith.constant 192 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [192, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x64xf16>
    %q = greta_tile.load %w[%k, %z] strides [1, 192] bounds [] : !greta_tile.ptr<i8> -> tensor<64x16xi8>
    %b = arith.sitofp %q : tensor<64x16xi8> to tensor<64x16xf16>
    %next = greta_tile.dot %a, %b, %acc {matrix = #mfma} : tensor<16x64xf16>, tensor<64x16xf16> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 2, slice = 32>}
  greta_tile.store %d, %y[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Without stages: operands are loaded where the dot takes them, 16 bytes a lane, K renumbered alike for both (a lane has k = 0 to 7, the
// instructions take them with the registers' row bits among them), and nothing goes through shared memory. Waves take rows of B each.
// CHECK-LABEL: @in_registers
// CHECK-NOT: greta_tile.local_alloc
// CHECK: scf.for
// CHECK-NEXT: greta_tile.load {{.*}} -> tensor<16x64xf16, #greta_tile.layout<{reg = {{\[\[}}0, 1], [0, 2], [0, 4], [8, 0]], lane = {{\[\[}}0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], wave = {{\[\[}}0, 0]], rep = [1, 2]}>>
// CHECK-NEXT: greta_tile.load {{.*}} -> tensor<64x16xf16, #greta_tile.layout<{reg = {{\[\[}}1, 0], [2, 0], [4, 0]], lane = {{\[\[}}8, 0], [16, 0], [0, 1], [0, 2], [0, 4]], wave = {{\[\[}}0, 8]], rep = [2, 1]}>>
// CHECK-NEXT: greta_tile.convert_layout {{.*}} -> tensor<16x64xf16, #greta_tile.layout<{reg = {{\[\[}}0, 1], [0, 2], [8, 0], [0, 4]]
// CHECK-NEXT: greta_tile.dot
// CHECK-NEXT: scf.yield
// CHECK-NEXT: {greta_tile.rolled}
// CHECK-NOT: greta_tile.barrier
#nvidia = #greta_tile.matrix<"coopmat",
  a = <{reg = [[0, 1], [0, 8], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], wave = [], rep = [1, 1]}>,
  b = <{reg = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], wave = [], rep = [1, 1]}>,
  acc = <{reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], wave = [], rep = [1, 1]}>>
greta_tile.func @in_registers(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %n = arith.constant 512 : i32
  %step = arith.constant 64 : i32
  %acc = arith.constant dense<0.0> : tensor<16x16xf32>
  %r = scf.for %k = %z to %n step %step iter_args(%c = %acc) -> tensor<16x16xf32> : i32 {
    %a = greta_tile.load %x[%z, %k] strides [512, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x64xf16>
    %b = greta_tile.load %x[%k, %z] strides [1, 512] bounds [] : !greta_tile.ptr<f16> -> tensor<64x16xf16>
    %d = greta_tile.dot %a, %b, %c {matrix = #nvidia} : tensor<16x64xf16>, tensor<64x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 0, slice = 64>}
  greta_tile.store %r, %y[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
