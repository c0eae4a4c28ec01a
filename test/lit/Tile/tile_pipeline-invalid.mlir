// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-assign-layouts,greta-tile-pipeline))' --split-input-file --verify-diagnostics

greta_tile.func @carried(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %end = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  // expected-error @+1 {{has greta_tile.pipeline but loads nothing ahead: it has no dot that takes what it loads, or it writes memory}}
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %next = arith.addf %acc, %acc : tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 1, slice = 16>}
  greta_tile.store %d, %y[%z, %z] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

greta_tile.func @stores(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %end = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  // expected-error @+1 {{loads nothing ahead: it has no dot that takes what it loads, or it writes memory}}
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %b = greta_tile.load %x[%k, %z] strides [32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x32xf16>
    greta_tile.store %a, %x[%z, %k] strides [64, 1] bounds [] : tensor<32x16xf16> -> !greta_tile.ptr<f16>
    %next = greta_tile.dot %a, %b, %acc : tensor<32x16xf16>, tensor<16x32xf16> -> tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 1, slice = 16>}
  greta_tile.store %d, %y[%z, %z] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

greta_tile.func @slices(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %end = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  // expected-error @+1 {{has greta_tile.pipeline but its slices are not whole tiles of its operands}}
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %b = greta_tile.load %x[%k, %z] strides [32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x32xf16>
    %next = greta_tile.dot %a, %b, %acc : tensor<32x16xf16>, tensor<16x32xf16> -> tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 1, slice = 12>}
  greta_tile.store %d, %y[%z, %z] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

greta_tile.func @slices_of_batch(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 16 : i32
  %end = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<2x32x32xf32>
  // expected-error @+1 {{has greta_tile.pipeline but its slices are not whole tiles of its operands}}
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<2x32x32xf32>) : i32 {
    %a = greta_tile.load %x[%z, %z, %k] strides [2048, 64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<2x32x16xf16>
    %b = greta_tile.load %x[%z, %k, %z] strides [2048, 32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<2x16x32xf16>
    %next = greta_tile.dot %a, %b, %acc : tensor<2x32x16xf16>, tensor<2x16x32xf16> -> tensor<2x32x32xf32>
    scf.yield %next : tensor<2x32x32xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 1, slice = 12>}
  greta_tile.store %d, %y[%z, %z, %z] strides [1024, 32, 1] bounds [] : tensor<2x32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

greta_tile.func @clamp(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  // expected-error @+1 {{clamp}}
  %a = greta_tile.load %x[%z, %z] strides [64, 1] bounds [] clamp [0] : !greta_tile.ptr<f16> -> tensor<32x16xf16>
  greta_tile.return
}

// -----

// expected-error @+1 {{a pipeline has up to three stages and a positive slice}}
greta_tile.func @stages() attributes {wave_size = 32 : i32, waves = 2 : i32, p = #greta_tile.pipeline<stages = 4, slice = 16>} {
  greta_tile.return
}

// -----

greta_tile.func @placement() attributes {wave_size = 32 : i32, waves = 2 : i32} {
  // expected-error @+1 {{rows of 32 elements do not fit a stride of 16 or 1 phases of 1}}
  %0 = greta_tile.local_alloc : <1 x tensor<16x32xf16>, <dim = 1, stride = 16, vector = 1, rows = 1, phases = 1>>
  greta_tile.return
}

// -----

#mfma = #greta_tile.matrix<"mfma.f32.16x16x16f16",
  a = <{reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]], wave = [], rep = [1, 1]}>,
  b = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>,
  acc = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>>
greta_tile.func @computed(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %end = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  // expected-error @+1 {{has greta_tile.pipeline but loads directly what is not an operand as it is stored}}
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [128, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x32xf16>
    %c = arith.addf %a, %a : tensor<16x32xf16>
    %b = greta_tile.load %x[%k, %z] strides [1, 128] bounds [] : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %next = greta_tile.dot %c, %b, %acc {matrix = #mfma} : tensor<16x32xf16>, tensor<32x16xf16> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 2, slice = 16, direct = 16>}
  greta_tile.store %d, %y[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

#mfma = #greta_tile.matrix<"mfma.f32.16x16x16f16",
  a = <{reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]], wave = [], rep = [1, 1]}>,
  b = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>,
  acc = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>>
greta_tile.func @turns(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %end = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  // expected-error @+1 {{has no place for an operand: no swizzle of the block suits those who fill it; use a block whose rows are a power of two}}
  %d = scf.for %k = %z to %end step %step iter_args(%acc = %zero) -> (tensor<32x16xf32>) : i32 {
    %a = greta_tile.load %x[%z, %k] strides [128, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %b = greta_tile.load %x[%k, %z] strides [1, 128] bounds [] : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %next = greta_tile.dot %a, %b, %acc {matrix = #mfma} : tensor<32x32xf16>, tensor<32x16xf16> -> tensor<32x16xf32>
    scf.yield %next : tensor<32x16xf32>
  } {greta_tile.pipeline = #greta_tile.pipeline<stages = 2, slice = 16, direct = 16>}
  greta_tile.store %d, %y[%z, %z] strides [16, 1] bounds [] : tensor<32x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
