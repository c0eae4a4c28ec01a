// The pipeline that packages are compiled with, as one option of greta-opt.
// RUN: greta-opt %s --greta-to-lanes=target=gfx942 | FileCheck %s
// RUN: greta-opt %s --greta-to-lanes="target=vulkan:lavapipe matrix=false" | FileCheck %s
// RUN: not greta-opt %s --greta-to-lanes=target=host 2>&1 | FileCheck %s --check-prefix=HOST
// RUN: not greta-opt %s --greta-to-lanes=target=gfx9 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK: greta_tile.func @double_0
// CHECK: greta_tile.lane_id
// CHECK-NOT: tensor<16
// CHECK: func.func @double
// CHECK: greta_tile.launch @double_0
// HOST: error: greta-to-lanes: 'host' is no GPU; say target=gfx942
// UNKNOWN: error: unknown target 'gfx9'; targets are
func.func @double(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = arith.addf %x, %x : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
