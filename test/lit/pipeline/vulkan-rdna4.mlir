// Matrices on RDNA4: the products that RADV has there from 26 on, a GEMM of each type, and attention, whose fragments stand in registers by the layouts that RADV's code has in the
// simulator. Each has a variant without, for drivers that offer none.
// REQUIRES: compiler
// RUN: greta-translate --greta-to-package --targets=vulkan:rdna4 %s -o %t.greta
// RUN: greta-run %t.greta --inspect | FileCheck %s

// CHECK-LABEL: half(
// CHECK-NEXT: vulkan-rdna4-coopmat: {{.*}}"coopmat":[{"a":"f16","b":"f16","c":"f32","k":16,"m":16,"n":16,"result":"f32"}]{{.*}}"layouts":[{{.*}}"use":"a"}{{.*}}"use":"acc"}{{.*}}"subgroup_size":32
// CHECK-NEXT: half_0:
// CHECK-NEXT: instruction coopmat 16x16x16
// CHECK-NEXT: vulkan-rdna4: vulkan
// CHECK-NOT: coopmat
func.func @half(%a: tensor<1024x1024xf16>, %b: tensor<1024x1024xf16>) -> tensor<1024x1024xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1024x1024xf16>, tensor<1024x1024xf16> -> tensor<1024x1024xf16>
  return %0 : tensor<1024x1024xf16>
}

// CHECK-LABEL: brain(
// CHECK-NEXT: vulkan-rdna4-coopmat: {{.*}}"coopmat":[{"a":"bf16","b":"bf16","c":"f32","k":16,"m":16,"n":16,"result":"f32"}]{{.*}}"shaderBFloat16Type","shaderBFloat16CooperativeMatrix"
func.func @brain(%a: tensor<1024x1024xbf16>, %b: tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  return %0 : tensor<1024x1024xbf16>
}

// CHECK-LABEL: byte(
// CHECK-NEXT: vulkan-rdna4-coopmat: {{.*}}"coopmat":[{"a":"i8","b":"i8","c":"i32","k":16,"m":16,"n":16,"result":"i32"}]
func.func @byte(%a: tensor<1024x1024xi8>, %b: tensor<1024x1024xi8>) -> tensor<1024x1024xi32> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1024x1024xi8>, tensor<1024x1024xi8> -> tensor<1024x1024xi32>
  return %0 : tensor<1024x1024xi32>
}

// CHECK-LABEL: attention(
// CHECK-NEXT: vulkan-rdna4-coopmat: {{.*}}"layouts":[
// CHECK-SAME: {"cols":16,"dtype":"f32","element":{{\[\[}}1,0],[2,0],[4,0]],"lane":{{\[\[}}0,1],[0,2],[0,4],[0,8],[8,0]],"rows":16,"use":"acc"}
func.func @attention(%q: tensor<1x8x128x64xf16>, %k: tensor<1x2x128x64xf16>, %v: tensor<1x2x128x64xf16>) -> tensor<1x8x128x64xf16> {
  %0 = greta.attention %q, %k, %v {causal} : tensor<1x8x128x64xf16>, tensor<1x2x128x64xf16>, tensor<1x2x128x64xf16> -> tensor<1x8x128x64xf16>
  return %0 : tensor<1x8x128x64xf16>
}
