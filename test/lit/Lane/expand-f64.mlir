// An f64 is narrowed by its own bits, so that it is rounded once. AMD's chips round it to f16 and bf16 themselves.
// RUN: greta-opt %s --pass-pipeline='builtin.module(any(greta-expand{target=gfx942}))' | FileCheck %s --check-prefixes=CHECK,AMD
// RUN: greta-opt %s --pass-pipeline='builtin.module(any(greta-expand{target=vulkan:portable}))' | FileCheck %s --check-prefixes=CHECK,VULKAN

// CHECK-LABEL: func.func @to_e4m3fnuz(
// CHECK-NOT: f32
// CHECK: arith.bitcast %{{.*}} : f64 to i64
// CHECK: arith.trunci %{{.*}} : i64 to i8
func.func @to_e4m3fnuz(%x: f64) -> f8E4M3FNUZ {
  %0 = arith.truncf %x : f64 to f8E4M3FNUZ
  return %0 : f8E4M3FNUZ
}

// Half of the last of 7 bits, less one where it is even; what exceeds infinity is NaN.
// CHECK-LABEL: func.func @to_bf16(
// AMD: arith.truncf %{{.*}} : f64 to bf16
// VULKAN-NOT: f32
// VULKAN: %[[BITS:.*]] = arith.bitcast %{{.*}} : f64 to i64
// VULKAN: %[[SIGN:.*]] = arith.shrui %[[BITS]], %c48_i64
// VULKAN: arith.addi %{{.*}}, %c17592186044415_i64
// VULKAN: arith.select %{{.*}}, %{{.*}}, %c32704_i64
// VULKAN: arith.trunci %{{.*}} : i64 to i16
// VULKAN: arith.bitcast %{{.*}} : i16 to bf16
func.func @to_bf16(%x: f64) -> bf16 {
  %0 = arith.truncf %x : f64 to bf16
  return %0 : bf16
}

// CHECK-LABEL: func.func @to_f16(
// AMD: arith.truncf %{{.*}} : vector<2xf64> to vector<2xf16>
// VULKAN-NOT: arith.truncf
// VULKAN: arith.trunci %{{.*}} : vector<2xi64> to vector<2xi16>
func.func @to_f16(%x: vector<2xf64>) -> vector<2xf16> {
  %0 = arith.truncf %x : vector<2xf64> to vector<2xf16>
  return %0 : vector<2xf16>
}
