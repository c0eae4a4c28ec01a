// RUN: greta-opt %s --greta-tile-distribute --split-input-file --verify-diagnostics

#part = #greta_tile.layout<{reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [0, 8], [0, 0]], wave = [], rep = [1, 1]}>
greta_tile.func @moving(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %n: i32) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %l = greta_tile.local_alloc : <1 x tensor<8x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>>
  // expected-error @+1 {{has an offset along dimension 1 that is no constant, in a swizzled local}}
  %p = greta_tile.local_load %l[%z] [%z, %n] : <1 x tensor<8x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>> -> tensor<8x16xf16, #part>
  greta_tile.store %p, %x[%z, %z] strides [64, 1] bounds [] : tensor<8x16xf16, #part> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// -----

greta_tile.func @rank(%x: !greta_tile.ptr<f16>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  // expected-error @+1 {{holds blocks of rank 1; locals have two dimensions or more}}
  %l = greta_tile.local_alloc : <1 x tensor<64xf16>, <dim = 0, stride = 64, vector = 8, rows = 1, phases = 1>>
  greta_tile.return
}

// -----

greta_tile.func @phases(%x: !greta_tile.ptr<f16>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  // expected-error @+1 {{swizzles rows of a block of 'tensor<2x12x64xf16>' that phases take apart; inner dimensions are powers of two or multiples of the rows of all phases}}
  %l = greta_tile.local_alloc : <1 x tensor<2x12x64xf16>, <dim = 2, stride = 64, vector = 8, rows = 1, phases = 8>>
  greta_tile.return
}

// -----

#part = #greta_tile.layout<{reg = [], lane = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], wave = [], rep = [3, 2]}>
greta_tile.func @divides(%x: !greta_tile.ptr<f16>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %l = greta_tile.local_alloc : <1 x tensor<8x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>>
  // expected-error @+1 {{parts divide the block}}
  %p = greta_tile.local_load %l[%z] [%z, %z] : <1 x tensor<8x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>> -> tensor<12x16xf16, #part>
  greta_tile.return
}

// -----

#fill = #greta_tile.layout<{reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0]], wave = [], rep = [2, 1]}>
!local = !greta_tile.local<1 x tensor<16x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>>
greta_tile.func @order(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %l = greta_tile.local_alloc : !local
  %v = greta_tile.load %x[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x64xf16, #fill>
  // expected-error @+1 {{is 'direct' but its layout does not fill the local in order}}
  greta_tile.local_store %v, %l[%z] direct : tensor<16x64xf16, #fill> -> !local
  %p = greta_tile.local_load %l[%z] [%z, %z] : !local -> tensor<16x64xf16, #fill>
  greta_tile.return
}

// -----

#fill = #greta_tile.layout<{reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]], wave = [], rep = [2, 1]}>
!local = !greta_tile.local<1 x tensor<16x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>>
greta_tile.func @narrow(%x: !greta_tile.ptr<f16> {greta.divisibility = 4 : i64}) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %l = greta_tile.local_alloc : !local
  %v = greta_tile.load %x[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x64xf16, #fill>
  // expected-error @+1 {{is 'direct' but its loads are not known to have 8 neighbours in memory}}
  greta_tile.local_store %v, %l[%z] direct : tensor<16x64xf16, #fill> -> !local
  %p = greta_tile.local_load %l[%z] [%z, %z] : !local -> tensor<16x64xf16, #fill>
  greta_tile.return
}

// -----

#fill = #greta_tile.layout<{reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]], wave = [], rep = [2, 1]}>
!local = !greta_tile.local<1 x tensor<16x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>>
greta_tile.func @used_twice(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %l = greta_tile.local_alloc : !local
  %v = greta_tile.load %x[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x64xf16, #fill>
  // expected-error @+1 {{is 'direct' but its value is not of a load in its block, without 'other' and 'divisors', that nothing else uses}}
  greta_tile.local_store %v, %l[%z] direct : tensor<16x64xf16, #fill> -> !local
  greta_tile.store %v, %x[%z, %z] strides [64, 1] bounds [] : tensor<16x64xf16, #fill> -> !greta_tile.ptr<f16>
  greta_tile.return
}
