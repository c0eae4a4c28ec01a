// RUN: greta-opt %s --greta-tile-distribute --split-input-file --verify-diagnostics

#part = #greta_tile.layout<{reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [0, 8], [0, 0]], wave = [], rep = [1, 1]}>
greta_tile.func @moving(%x: !greta_tile.ptr<f16>, %n: i32) attributes {block_size = 32 : i32, wave_size = 32 : i32} {
  %z = arith.constant 0 : i32
  %l = greta_tile.local_alloc : <1 x tensor<8x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>>
  // expected-error @+1 {{has an offset along dimension 1 that is no constant, in a swizzled local}}
  %p = greta_tile.local_load %l[%z] [%z, %n] : <1 x tensor<8x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>> -> tensor<8x16xf16, #part>
  greta_tile.store %p, %x[%z, %z] strides [64, 1] bounds [] : tensor<8x16xf16, #part> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// -----

greta_tile.func @rank(%x: !greta_tile.ptr<f16>) attributes {block_size = 32 : i32, wave_size = 32 : i32} {
  // expected-error @+1 {{holds blocks of rank 1; locals have two dimensions}}
  %l = greta_tile.local_alloc : <1 x tensor<64xf16>, <dim = 0, stride = 64, vector = 8, rows = 1, phases = 1>>
  greta_tile.return
}

// -----

#part = #greta_tile.layout<{reg = [], lane = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], wave = [], rep = [3, 2]}>
greta_tile.func @divides(%x: !greta_tile.ptr<f16>) attributes {block_size = 32 : i32, wave_size = 32 : i32} {
  %z = arith.constant 0 : i32
  %l = greta_tile.local_alloc : <1 x tensor<8x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>>
  // expected-error @+1 {{parts divide the block}}
  %p = greta_tile.local_load %l[%z] [%z, %z] : <1 x tensor<8x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>> -> tensor<12x16xf16, #part>
  greta_tile.return
}
