// RUN: greta-opt %s --greta-tile-distribute --split-input-file --verify-diagnostics

greta_tile.func @bare(%x: !greta_tile.ptr<f32>) attributes {block_size = 64 : i32, wave_size = 32 : i32} {
  %z = arith.constant 0 : i32
  // expected-error @+1 {{has a block tensor without a layout}}
  %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<64xf32>
  greta_tile.return
}

// -----

#l = #greta_tile.layout<{reg = [], lane = [[1], [2], [4], [8]], wave = [], rep = [4]}>
greta_tile.func @lanes(%x: !greta_tile.ptr<f32>) attributes {block_size = 64 : i32, wave_size = 32 : i32} {
  %z = arith.constant 0 : i32
  // expected-error @+1 {{has a layout of 1 waves of 16 lanes in a kernel of 2 waves of 32}}
  %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<64xf32, #l>
  greta_tile.return
}
