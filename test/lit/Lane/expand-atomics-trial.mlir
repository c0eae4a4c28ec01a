// RUN: greta-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(greta_tile.func(greta-tile-expand-atomics{target=vulkan:nvidia}))'

// expected-error @below {{has barriers over the grid, and its last argument, which says whether a launch only tries, is no i32}}
greta_tile.func @f(%met: !greta_tile.ptr<i32>) attributes {waves = 1 : i32} {
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}

// -----

// A trial counts in the same word, and computes nothing of the kernel.
greta_tile.func @f(%met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32} {
  %one = arith.constant 1 : i32
  %next = greta_tile.ptr_add %met, %one : !greta_tile.ptr<i32>, i32
  // expected-error @below {{counts in a word that is no argument of the kernel}}
  greta_tile.grid_barrier %next until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
