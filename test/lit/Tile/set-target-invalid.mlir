// What a target cannot take.
// RUN: greta-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=gfx942}))'
// RUN: not greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=host}))' 2>&1 | FileCheck %s --check-prefix=HOST
// RUN: not greta-opt %s --split-input-file --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target))' 2>&1 | FileCheck %s --check-prefix=NONE
// HOST: error: 'greta_tile.func' op has no form for the target 'host'; compile it for a GPU, or for vulkan, which runs on the CPU too
// NONE: error: unknown target ''

// expected-error @+1 {{has 32 waves; workgroups of gfx942 have at most 16 of 64 lanes: give it fewer}}
greta_tile.func @large() attributes {waves = 32 : i32} {
  greta_tile.return
}
