// RUN: greta-opt %s --split-input-file --verify-diagnostics --greta-tile-plan-memory=target=gfx1100
// RUN: not greta-opt %s --split-input-file --greta-tile-plan-memory=target=gfx1099 2>&1 | FileCheck %s
// CHECK: unknown target 'gfx1099'

// 65536 bytes are all there is; the second array starts at a multiple of 16.
greta_tile.func @large(%x: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %0 = greta_tile.shared_alloc : !greta_tile.shared<4095 x vector<4xf32>>
  %1 = greta_tile.shared_alloc : !greta_tile.shared<5 x f32>
  // expected-error @+1 {{kernel 'large' needs 65552 bytes where a workgroup of gfx1100 has 65536 of shared memory; its largest arrays take 65520 bytes, 20 bytes: choose a smaller tile, one with 1/2 of the elements fits}}
  %v = greta_tile.shared_load %0[%z] : !greta_tile.shared<4095 x vector<4xf32>>
  %w = greta_tile.shared_load %1[%z] : !greta_tile.shared<5 x f32>
  %u = greta_tile.shared_load %0[%z] : !greta_tile.shared<4095 x vector<4xf32>>
  greta_tile.return
}

// -----

greta_tile.func @stages(%x: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %0 = greta_tile.shared_alloc : !greta_tile.shared<24576 x f32>
  %1 = greta_tile.shared_stage %0[%z] of 3 : !greta_tile.shared<24576 x f32>
  // expected-error @+1 {{kernel 'stages' needs 98304 bytes where a workgroup of gfx1100 has 65536 of shared memory; its largest arrays take 98304 bytes (3 stages): with 2 stages it needs 65536}}
  %v = greta_tile.shared_load %1[%z] : !greta_tile.shared<24576 x f32>
  greta_tile.return
}
