// Intel's Xe2: matrices of 8 x 16 x 16, subgroups of 16. Nobody has read the layouts of elements, so GEMMs pass their results through shared memory and attention has no matrices; each has a variant without. All
// modules are valid.
// REQUIRES: compiler
// RUN: greta-translate --greta-to-package --targets=vulkan:xe2 %s -o %t.greta
// RUN: greta-run %t.greta --inspect | FileCheck %s
// RUN: %if coopmat-lavapipe %{ %python %root/test/validate_spirv.py %t.greta %}
// RUN: greta-translate --greta-to-package --targets=vulkan:a770 %s -o %t.hpg.greta
// RUN: greta-run %t.hpg.greta --inspect | FileCheck %s --check-prefix=HPG
// RUN: %if coopmat-lavapipe %{ %python %root/test/validate_spirv.py %t.hpg.greta %}

// Xe-HPG: half the columns and half the lanes, and no matrices of bf16.
// HPG: half(
// HPG-NEXT: vulkan-intel-xehpg-coopmat: {{.*}}"k":16,"m":8,"n":8,"result":"f32"}]{{.*}}"subgroup_size":8
// HPG: brain(
// HPG-NEXT: vulkan-intel-xehpg: {{.*}}"subgroup_size":8
// HPG: attention(
// HPG-NEXT: vulkan-intel-xehpg: {{.*}}"subgroup_size":8
// HPG: norm(
// HPG-NEXT: vulkan-intel-xehpg: {{.*}}"subgroup_size":8

// CHECK-LABEL: half(
// CHECK-NEXT: vulkan-intel-coopmat: {{.*}}"coopmat":[{"a":"f16","b":"f16","c":"f32","k":16,"m":8,"n":16,"result":"f32"}]
// CHECK-NOT: "layouts"
// CHECK-SAME: "subgroup_size":16
// CHECK-NEXT: half_0:
// CHECK-NEXT: instruction coopmat 8x16x16
// CHECK-NEXT: vulkan-intel: vulkan
// CHECK-NOT: coopmat
func.func @half(%a: tensor<1024x1024xf16>, %b: tensor<1024x1024xf16>) -> tensor<1024x1024xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1024x1024xf16>, tensor<1024x1024xf16> -> tensor<1024x1024xf16>
  return %0 : tensor<1024x1024xf16>
}

// CHECK-LABEL: brain(
// CHECK-NEXT: vulkan-intel-coopmat: {{.*}}"coopmat":[{"a":"bf16","b":"bf16","c":"f32","k":16,"m":8,"n":16,"result":"f32"}]{{.*}}"shaderBFloat16CooperativeMatrix"
func.func @brain(%a: tensor<?x1024xbf16>, %b: tensor<1024x1024xbf16>) -> tensor<?x1024xbf16> {
  %0 = greta.matmul %a, %b {greta.ranges = [8]} : tensor<?x1024xbf16>, tensor<1024x1024xbf16> -> tensor<?x1024xbf16>
  return %0 : tensor<?x1024xbf16>
}

// CHECK-LABEL: byte(
// CHECK-NEXT: vulkan-intel-coopmat: {{.*}}"coopmat":[{"a":"i8","b":"i8","c":"i32","k":32,"m":8,"n":16,"result":"i32"}]
func.func @byte(%a: tensor<1024x1024xi8>, %b: tensor<1024x1024xi8>) -> tensor<1024x1024xi32> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1024x1024xi8>, tensor<1024x1024xi8> -> tensor<1024x1024xi32>
  return %0 : tensor<1024x1024xi32>
}

// CHECK-LABEL: packed(
// CHECK-NEXT: vulkan-intel: {{.*}}"subgroup_size":16
func.func @packed(%a: tensor<1x4096xf16>, %q: tensor<1024x512xi32>, %scales: tensor<1024x32xf16>) -> tensor<1x1024xf16> {
  %b = greta.dequant %q, %scales {group = 128} : tensor<1024x512xi32>, tensor<1024x32xf16> -> tensor<1024x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1x4096xf16>, tensor<1024x4096xf16> -> tensor<1x1024xf16>
  return %0 : tensor<1x1024xf16>
}

// Rows of a result have more neighbours than words of weights: these lie along K all the same.
// CHECK-LABEL: packed_rows(
// CHECK-NEXT: vulkan-intel-coopmat: {{.*}}"subgroup_size":16
func.func @packed_rows(%a: tensor<16x4096xf16>, %q: tensor<14336x512xi32>, %scales: tensor<14336x32xf16>) -> tensor<16x14336xf16> {
  %b = greta.dequant %q, %scales {group = 128} : tensor<14336x512xi32>, tensor<14336x32xf16> -> tensor<14336x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<16x4096xf16>, tensor<14336x4096xf16> -> tensor<16x14336xf16>
  return %0 : tensor<16x14336xf16>
}

// CHECK-LABEL: attention(
// CHECK-NEXT: vulkan-intel: {{.*}}"subgroup_size":16
func.func @attention(%q: tensor<1x8x128x64xf16>, %k: tensor<1x2x128x64xf16>, %v: tensor<1x2x128x64xf16>) -> tensor<1x8x128x64xf16> {
  %0 = greta.attention %q, %k, %v {causal} : tensor<1x8x128x64xf16>, tensor<1x2x128x64xf16>, tensor<1x2x128x64xf16> -> tensor<1x8x128x64xf16>
  return %0 : tensor<1x8x128x64xf16>
}

// CHECK-LABEL: softmax(
// CHECK-NEXT: vulkan-intel: {{.*}}"subgroup_size":16
func.func @softmax(%x: tensor<?x4096xf16>) -> tensor<?x4096xf16> {
  %0 = greta.softmax %x : tensor<?x4096xf16> -> tensor<?x4096xf16>
  return %0 : tensor<?x4096xf16>
}

// CHECK-LABEL: norm(
// CHECK-NEXT: vulkan-intel: {{.*}}"subgroup_size":16
func.func @norm(%x: tensor<?x4096xf16>, %w: tensor<4096xf16>) -> tensor<?x4096xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x4096xf16>, tensor<4096xf16> -> tensor<?x4096xf16>
  return %0 : tensor<?x4096xf16>
}
