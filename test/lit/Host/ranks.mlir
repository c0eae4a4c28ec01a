// The definition of a sum over ranks is that of one rank: the tensor itself. A package for the host has none.
// RUN: greta-opt %s --greta-decompose | FileCheck %s
// RUN: not greta-translate --greta-to-package --targets=host %s -o %t 2>&1 | FileCheck %s --check-prefix=HOST

// CHECK-LABEL: func.func @sum(
// CHECK-SAME: %[[X:.*]]: tensor<?x4xf32>
// CHECK-NEXT: return %[[X]]
// HOST: error: function 'sum' sums over ranks, which the host target does not have; take vulkan in its place, which runs on the CPU, too
func.func @sum(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = greta.all_reduce %x : tensor<?x4xf32> -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
