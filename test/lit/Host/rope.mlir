// Pairs are halves of a head (neox) or neighbours (gptj): the same generics on other slices.
// RUN: greta-opt %s --greta-decompose --canonicalize --cse | FileCheck %s --implicit-check-not="= greta."

// CHECK-LABEL: func.func @neox(
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x4x8xf16>, %[[COS:[^:]*]]: tensor<?x4xf32>, %[[SIN:[^:]*]]: tensor<?x4xf32>
// CHECK: %[[A:.*]] = tensor.extract_slice %[[X]][0, 0, 0] [%{{.*}}, 4, 4] [1, 1, 1]
// CHECK: %[[B:.*]] = tensor.extract_slice %[[X]][0, 0, 4] [%{{.*}}, 4, 4] [1, 1, 1]
// CHECK: %[[YA:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[B]], %[[COS]], %[[SIN]]
// CHECK: arith.subf
// CHECK: %[[YB:.*]] = linalg.generic {{.*}} ins(%[[B]], %[[A]], %[[COS]], %[[SIN]]
// CHECK: arith.addf
// CHECK: %[[FIRST:.*]] = tensor.insert_slice %[[YA]] into %{{.*}}[0, 0, 0] [%{{.*}}, 4, 4] [1, 1, 1]
// CHECK: tensor.insert_slice %[[YB]] into %[[FIRST]][0, 0, 4] [%{{.*}}, 4, 4] [1, 1, 1]
func.func @neox(%x: tensor<?x4x8xf16>, %cos: tensor<?x4xf32>, %sin: tensor<?x4xf32>) -> tensor<?x4x8xf16> {
  %0 = greta.rope %x, %cos, %sin {style = "neox"} : tensor<?x4x8xf16>, tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4x8xf16>
  return %0 : tensor<?x4x8xf16>
}

// CHECK-LABEL: func.func @gptj(
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 0] [2, 4, 4] [1, 1, 2]
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 1] [2, 4, 4] [1, 1, 2]
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 0] [2, 4, 4] [1, 1, 2]
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 1] [2, 4, 4] [1, 1, 2]
func.func @gptj(%x: tensor<2x4x8xf32>, %cos: tensor<2x4xf32>, %sin: tensor<2x4xf32>) -> tensor<2x4x8xf32> {
  %0 = greta.rope %x, %cos, %sin {style = "gptj"} : tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}
