// Tiles of weights whose rows share scales are powers of two wide, as no other width lies in one row of scales: DeepSeek's sizes with any number of rows.
// RUN: greta-translate --greta-to-package --targets=gfx942,gfx1201,vulkan:nvidia %s -o %t.greta
// RUN: greta-run %t.greta --inspect | FileCheck %s
// CHECK: latent
// CHECK: gfx942
func.func @latent(%a: tensor<?x7168xf16>, %q: tensor<576x1792xi32>, %s: tensor<5x56xf32>) -> tensor<?x576xf16> {
  %w = greta.dequant %q, %s {format = "e4m3_block", group = 128} : tensor<576x1792xi32>, tensor<5x56xf32> -> tensor<576x7168xf16>
  %0 = greta.matmul %a, %w {transpose_b} : tensor<?x7168xf16>, tensor<576x7168xf16> -> tensor<?x576xf16>
  return %0 : tensor<?x576xf16>
}
// CHECK: narrow
func.func @narrow(%a: tensor<512x640xf16>, %q: tensor<384x160xi32>, %s: tensor<3x5xf32>) -> tensor<512x384xf16> {
  %w = greta.dequant %q, %s {format = "e4m3_block", group = 128} : tensor<384x160xi32>, tensor<3x5xf32> -> tensor<384x640xf16>
  %0 = greta.matmul %a, %w {transpose_b} : tensor<512x640xf16>, tensor<384x640xf16> -> tensor<512x384xf16>
  return %0 : tensor<512x384xf16>
}
