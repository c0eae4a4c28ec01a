// The pass refuses these targets.
// RUN: not greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target{target=host}))' 2>&1 | FileCheck %s --check-prefix=HOST
// RUN: not greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-set-target))' 2>&1 | FileCheck %s --check-prefix=NONE
// HOST: error: 'greta_tile.func' op has no form for the target 'host'; compile it for a GPU, or for vulkan, which runs on the CPU too
// NONE: error: unknown target ''

greta_tile.func @program() attributes {waves = 4 : i32} {
  greta_tile.return
}
