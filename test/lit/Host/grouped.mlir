// A grouped GEMM is a loop over the groups, whose rows are written in place; rows of no group stay zero.
// RUN: greta-opt %s --greta-decompose --canonicalize --cse | FileCheck %s --implicit-check-not="= greta."

// CHECK-LABEL: func.func @grouped(
// CHECK: %[[ZERO:.*]] = linalg.fill
// CHECK: scf.for %[[E:.*]] = %c0 to %c8 step %c1 iter_args(%[[Y:.*]] = %[[ZERO]], %[[BEGIN:.*]] = %c0)
// CHECK: %[[NEXT:.*]] = arith.addi %[[E]], %c1
// CHECK: tensor.extract %{{.*}}[%[[NEXT]]]
// CHECK: arith.minsi
// CHECK: %[[END:.*]] = arith.maxsi %{{.*}}, %[[BEGIN]]
// CHECK: %[[COUNT:.*]] = arith.subi %[[END]], %[[BEGIN]]
// CHECK: tensor.extract_slice %{{.*}}[%[[E]], 0, 0] [1, 32, 64]
// CHECK: tensor.extract_slice %{{.*}}[%[[BEGIN]], 0] [%[[COUNT]], 64]
// CHECK: linalg.generic
// CHECK: tensor.insert_slice %{{.*}} into %[[Y]][%[[BEGIN]], 0] [%[[COUNT]], 32]
// CHECK: arith.truncf
func.func @grouped(%a: tensor<?x64xf16>, %b: tensor<8x32x64xf16>, %o: tensor<9xi32>) -> tensor<?x32xf16> {
  %0 = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<?x64xf16>, tensor<8x32x64xf16>, tensor<9xi32> -> tensor<?x32xf16>
  return %0 : tensor<?x32xf16>
}
