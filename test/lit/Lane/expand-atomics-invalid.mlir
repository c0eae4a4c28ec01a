// RUN: greta-opt %s --verify-diagnostics --pass-pipeline='builtin.module(greta_tile.func(greta-tile-expand-atomics{target=gfx1}))'

// expected-error @below {{unknown target 'gfx1'; targets are gfx90a}}
greta_tile.func @f(%n: i32) attributes {waves = 1 : i32} {
  greta_tile.return
}
