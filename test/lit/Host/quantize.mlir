// The largest magnitude of a row, a number and a factor from it, and every element times the factor, rounded.
// RUN: greta-opt %s --greta-decompose --canonicalize --cse | FileCheck %s --implicit-check-not="= greta."

// CHECK-LABEL: func.func @quantized(
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
// CHECK: math.absf
// CHECK: arith.maximumf
// CHECK: arith.mulf %{{.*}}, %cst{{.*}} : f32
// CHECK: arith.divf
// CHECK: arith.select
// CHECK: math.roundeven
// CHECK: arith.fptosi %{{.*}} : f32 to i8
// CHECK: tensor.expand_shape %{{.*}} {{\[}}[0, 1]] {{.*}} : tensor<?xf32> into tensor<?x1xf32>
func.func @quantized(%x: tensor<?x64xf16>) -> (tensor<?x64xi8>, tensor<?x1xf32>) {
  %y, %s = greta.quantize_rows %x : tensor<?x64xf16> -> tensor<?x64xi8>, tensor<?x1xf32>
  return %y, %s : tensor<?x64xi8>, tensor<?x1xf32>
}
