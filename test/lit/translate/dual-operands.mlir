// Attention scales its sums by one number: the factors of every other product are swapped, so that LLVM makes one instruction of two.
// RUN: greta-translate --greta-to-amdgcn --target=gfx1100 %s | FileCheck %s
// RUN: greta-translate --greta-to-amdgcn --target=gfx1201 %s | FileCheck %s
// CHECK: v_dual_mul_f32 v[[A:[0-9]+]], v[[A]], v[[SCALE:[0-9]+]] :: v_dual_mul_f32 v[[B:[0-9]+]], v[[SCALE]], v[[B]]

func.func @f(%q: tensor<1x2x256x64xf16>, %k: tensor<1x2x256x64xf16>, %v: tensor<1x2x256x64xf16>) -> tensor<1x2x256x64xf16> {
  %0 = greta.attention %q, %k, %v : tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16> -> tensor<1x2x256x64xf16>
  return %0 : tensor<1x2x256x64xf16>
}
