// RUN: greta-opt %s --split-input-file --verify-diagnostics --greta-tile-to-rocdl=chip=gfx1100
// RUN: not greta-opt %s --split-input-file --greta-tile-to-rocdl=chip=gfx1099 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not greta-opt %s --split-input-file --greta-tile-to-rocdl=chip=host 2>&1 | FileCheck %s --check-prefix=HOST
// CHIP: error: unknown target 'gfx1099'; targets are gfx90a,
// HOST: error: target 'host' is no AMD chip

// expected-error @+1 {{has wave_size 64; waves of gfx1100 have 32 lanes}}
greta_tile.func @wave(%x: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  greta_tile.return
}

// -----

// expected-error @+1 {{has workgroups of 2048 lanes; those of gfx1100 have at most 1024}}
greta_tile.func @block(%x: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 64 : i32} {
  greta_tile.return
}

// -----

greta_tile.func @level(%x: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  // expected-error @+1 {{works on a block tensor; greta-tile-distribute must run before greta-tile-to-rocdl}}
  %0 = greta_tile.iota 0 : tensor<32xi32>
  greta_tile.return
}

// -----

greta_tile.func @mask(%x: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  // expected-error @+1 {{has mask 32; waves of gfx1100 have 32 lanes}}
  %0 = greta_tile.shuffle_xor %lane, 32 : i32
  greta_tile.return
}

// -----

greta_tile.func @launched(%x: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{refers to a kernel that is to be replaced}}
  greta_tile.launch @launched grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) shapes [] : (tensor<4xf32>) -> ()
  return
}
