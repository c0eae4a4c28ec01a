// Blocks of which a lane would hold so many registers that compilers take minutes are refused where they are made.
// RUN: greta-opt %s --split-input-file --verify-diagnostics --greta-tile-distribute=target=gfx942 -o /dev/null

#row = #greta_tile.layout<{reg = [[1], [2]], lane = [[4], [8], [16], [32], [64], [128]], wave = [], rep = [256]}>
greta_tile.func @row(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  // expected-error @+1 {{'greta_tile.load' op is out of resources: registers a lane for one block, Required: 1024, limit of gfx942: 768; blocks of 1/2 of the elements would fit, or num_warps = 2}}
  %v = greta_tile.load %x[%c0] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<65536xf32, #row>
  greta_tile.store %v, %y[%c0] strides [1] bounds [] : tensor<65536xf32, #row> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

// The same in halves fits.
#row = #greta_tile.layout<{reg = [[1], [2]], lane = [[4], [8], [16], [32], [64], [128]], wave = [], rep = [256]}>
greta_tile.func @halves(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %v = greta_tile.load %x[%c0] strides [1] bounds [] : !greta_tile.ptr<f16> -> tensor<65536xf16, #row>
  greta_tile.store %v, %y[%c0] strides [1] bounds [] : tensor<65536xf16, #row> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// -----

// 16 waves are all that a workgroup has.
#row = #greta_tile.layout<{reg = [[1], [2]], lane = [[4], [8], [16], [32], [64], [128]], wave = [[256], [512], [1024], [2048]], rep = [256]}>
greta_tile.func @sums(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f64>) attributes {wave_size = 64 : i32, waves = 16 : i32} {
  %c0 = arith.constant 0 : i32
  %v = greta_tile.load %x[%c0] strides [1] bounds [] : !greta_tile.ptr<f16> -> tensor<1048576xf16, #row>
  // expected-error @+1 {{registers a lane for one block, Required: 2048, limit of gfx942: 768; blocks of 1/4 of the elements would fit}}
  %w = arith.extf %v : tensor<1048576xf16, #row> to tensor<1048576xf64, #row>
  greta_tile.store %w, %y[%c0] strides [1] bounds [] : tensor<1048576xf64, #row> -> !greta_tile.ptr<f64>
  greta_tile.return
}
