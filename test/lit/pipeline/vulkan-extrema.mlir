// The extremum of a number and NaN is the number: by one instruction for drivers that keep to it, else by two selections behind it. Extrema in which NaN wins always have two.
// REQUIRES: compiler
// RUN: greta-translate --greta-to-spirv --target=vulkan:nvidia %s -o %t.spv && spirv-dis %t.spv | FileCheck %s --implicit-check-not=' FM'
// RUN: greta-translate --greta-to-spirv --target=vulkan:portable %s -o %t.any.spv && spirv-dis %t.any.spv | FileCheck %s --check-prefix=ANY --implicit-check-not=' NM'

// CHECK-NOT: OpIsNan
// CHECK: NMax
// CHECK-NOT: OpIsNan
// CHECK: NMin
// CHECK: NMax
// CHECK: OpIsNan
// CHECK: OpSelect
// ANY: FMax
// ANY: OpIsNan
// ANY: FMin
// ANY: OpIsNan
func.func @extrema(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = arith.maxnumf %x, %y : tensor<?x64xf32>
  %1 = arith.minnumf %0, %y : tensor<?x64xf32>
  %2 = arith.maximumf %1, %x : tensor<?x64xf32>
  return %2 : tensor<?x64xf32>
}
