// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-assign-layouts))' --split-input-file --verify-diagnostics

greta_tile.func @slices(%x: !greta_tile.ptr<f16>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [3, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<4x3xf16>
  %acc = arith.constant dense<0.0> : tensor<4x1xf32>
  // expected-error @+1 {{dimension 1 of extent 3 is to be in registers; its extent must be a power of two}}
  %c = greta_tile.contract %a, %a, %acc dims [1] : tensor<4x3xf16>, tensor<4x3xf16> -> tensor<4x1xf32>
  greta_tile.return
}

// -----

greta_tile.func @repetitions(%q: !greta_tile.ptr<i32>, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  // expected-error @+1 {{neighbours that share an element of 'tensor<2x1xf16>' are in several repetitions of its layout; use a larger block or a smaller extent}}
  %t = greta_tile.load %s[%z, %z] strides [1, 2] bounds [] align 2 : !greta_tile.ptr<f16> -> tensor<2x1xf16>
  %w = greta_tile.load %q[%z, %z] strides [1, 512] bounds [] : !greta_tile.ptr<i32> -> tensor<512x1xi32>
  %zero = arith.constant dense<8> : tensor<1x1xi32>
  %a = greta_tile.dequant %w, %t, %zero : tensor<512x1xi32>, tensor<2x1xf16>, tensor<1x1xi32> -> tensor<4096x1xf16>
  greta_tile.store %a, %y[%z, %z] strides [1, 4096] bounds [] : tensor<4096x1xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// -----

#mfma = #greta_tile.matrix<"mfma.f32.16x16x16f16",
  a = <{reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]], wave = [], rep = [1, 1]}>,
  b = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>,
  acc = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>>
greta_tile.func @tiles(%x: !greta_tile.ptr<f16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %acc = arith.constant dense<0.0> : tensor<24x16xf32>
  %a = greta_tile.load %x[%z, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<24x16xf16>
  %b = greta_tile.load %x[%z, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x16xf16>
  // expected-error @+1 {{accumulator of 24x16 is not made of tiles of "mfma.f32.16x16x16f16" for waves of 64}}
  %d = greta_tile.dot %a, %b, %acc {matrix = #mfma} : tensor<24x16xf16>, tensor<16x16xf16> -> tensor<24x16xf32>
  greta_tile.return
}

// -----

greta_tile.func @no_dimension(%x: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  // expected-error @+1 {{'tensor<f32>' has no dimension; use a scalar}}
  %a = greta_tile.load %x[] strides [] bounds [] : !greta_tile.ptr<f32> -> tensor<f32>
  greta_tile.return
}
