// RUN: greta-opt %s --pass-pipeline='builtin.module(func.func(greta-widen-gemms{target=gfx942}))' | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: greta-opt %s --pass-pipeline='builtin.module(func.func(greta-widen-gemms{target=gfx1201}))' | FileCheck %s --check-prefixes=CHECK,OCP
// RUN: greta-opt %s --pass-pipeline='builtin.module(func.func(greta-widen-gemms{target=gfx1201 matrix=false}))' | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: not greta-opt %s --pass-pipeline='builtin.module(func.func(greta-widen-gemms{target=gfx1}))' 2>&1 | FileCheck %s --check-prefix=TARGET

// TARGET: error: unknown target 'gfx1'; targets are gfx90a

// Types that the target multiplies stay. No instruction multiplies f16 to bf16.
// CHECK-LABEL: func.func @ocp(
// WIDE: %[[A:.*]] = arith.extf %{{.*}} : tensor<?x64xf8E4M3FN> to tensor<?x64xf16>
// WIDE: %[[B:.*]] = arith.extf %{{.*}} : tensor<64x32xf8E5M2> to tensor<64x32xf16>
// WIDE: %[[Y:.*]] = greta.matmul %[[A]], %[[B]] : tensor<?x64xf16>, tensor<64x32xf16> -> tensor<?x32xf32>
// WIDE: arith.truncf %[[Y]] : tensor<?x32xf32> to tensor<?x32xbf16>
// OCP-NOT: arith
// OCP: greta.matmul %{{.*}} : tensor<?x64xf8E4M3FN>, tensor<64x32xf8E5M2> -> tensor<?x32xbf16>
func.func @ocp(%a: tensor<?x64xf8E4M3FN>, %b: tensor<64x32xf8E5M2>) -> tensor<?x32xbf16> {
  %0 = greta.matmul %a, %b : tensor<?x64xf8E4M3FN>, tensor<64x32xf8E5M2> -> tensor<?x32xbf16>
  return %0 : tensor<?x32xbf16>
}

// Skinny GEMMs are widened as they are loaded; other types are nobody's business.
// CHECK-LABEL: func.func @kept(
// CHECK-NOT: arith
// CHECK: greta.matmul %{{.*}} : tensor<2x64xf8E4M3FN>, tensor<32x64xf8E4M3FN> -> tensor<2x32xf32>
// CHECK: greta.matmul %{{.*}} : tensor<64x64xi8>, tensor<64x32xi8> -> tensor<64x32xi32>
func.func @kept(%a: tensor<2x64xf8E4M3FN>, %b: tensor<32x64xf8E4M3FN>, %c: tensor<64x64xi8>, %d: tensor<64x32xi8>) -> (tensor<2x32xf32>, tensor<64x32xi32>) {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<2x64xf8E4M3FN>, tensor<32x64xf8E4M3FN> -> tensor<2x32xf32>
  %1 = greta.matmul %c, %d : tensor<64x64xi8>, tensor<64x32xi8> -> tensor<64x32xi32>
  return %0, %1 : tensor<2x32xf32>, tensor<64x32xi32>
}
