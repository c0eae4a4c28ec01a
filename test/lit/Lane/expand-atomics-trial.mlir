// RUN: greta-opt %s --verify-diagnostics --pass-pipeline='builtin.module(greta_tile.func(greta-tile-expand-atomics{target=vulkan:nvidia}))'

// expected-error @below {{has barriers over the grid, and its last argument, which says whether a launch only tries, is no i32}}
greta_tile.func @f(%met: !greta_tile.ptr<i32>) attributes {waves = 1 : i32} {
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
