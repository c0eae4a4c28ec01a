// Packed words are read eight times each; one rounding, to f16.
// RUN: greta-opt %s --greta-decompose --canonicalize --cse | FileCheck %s --implicit-check-not="= greta."

// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1) -> (d0, d1 floordiv 8)>
// CHECK-DAG: #[[S:.*]] = affine_map<(d0, d1) -> (d0, d1 floordiv 64)>
// CHECK-DAG: #[[Z:.*]] = affine_map<(d0, d1) -> (d0, d1 floordiv 512)>
// CHECK-LABEL: func.func @dequant(
// CHECK: %[[N:.*]] = tensor.dim %arg0, %c0
// CHECK: tensor.empty(%[[N]]) : tensor<?x192xf16>
// CHECK: linalg.generic {indexing_maps = [#[[Q]], #[[S]], #[[Z]], #{{.*}}], iterator_types = ["parallel", "parallel"]}
// CHECK: linalg.index 1
// CHECK-COUNT-2: arith.andi %{{.*}}, %c15_i32
// CHECK: %[[D:.*]] = arith.subi
// CHECK: arith.sitofp %[[D]] : i32 to f32
// CHECK: arith.mulf
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @dequant(%q: tensor<?x24xi32>, %s: tensor<?x3xf16>, %z: tensor<?x1xi32>) -> tensor<?x192xf16> {
  %0 = greta.dequant %q, %s, %z {group = 64} : tensor<?x24xi32>, tensor<?x3xf16>, tensor<?x1xi32> -> tensor<?x192xf16>
  return %0 : tensor<?x192xf16>
}

// CHECK-LABEL: func.func @symmetric(
// CHECK: linalg.generic {indexing_maps = [#[[Q]], #[[S]], #{{.*}}], iterator_types = ["parallel", "parallel"]}
// CHECK-COUNT-1: arith.andi %{{.*}}, %c15_i32
// CHECK: arith.subi %{{.*}}, %c8_i32
func.func @symmetric(%q: tensor<?x24xi32>, %s: tensor<?x3xf16>) -> tensor<?x192xf16> {
  %0 = greta.dequant %q, %s {group = 64} : tensor<?x24xi32>, tensor<?x3xf16> -> tensor<?x192xf16>
  return %0 : tensor<?x192xf16>
}

// A minimum lies where the scale does, and is added in f32.
// CHECK-LABEL: func.func @minima(
// CHECK: linalg.generic {indexing_maps = [#[[Q]], #[[S]], #[[S]], #{{.*}}], iterator_types = ["parallel", "parallel"]}
// CHECK-COUNT-1: arith.andi %{{.*}}, %c15_i32
// CHECK-NOT: arith.subi
// CHECK: %[[P:.*]] = arith.mulf
// CHECK: arith.addf %[[P]], %{{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @minima(%q: tensor<?x24xi32>, %s: tensor<?x3xf16>, %m: tensor<?x3xf16>) -> tensor<?x192xf16> {
  %0 = greta.dequant %q, %s, %m {group = 64} : tensor<?x24xi32>, tensor<?x3xf16>, tensor<?x3xf16> -> tensor<?x192xf16>
  return %0 : tensor<?x192xf16>
}

// Upper bits are in words of their own; weights of pairs have places of their own.
// CHECK-LABEL: func.func @high(
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}, #{{.*}}, #{{.*}}], iterator_types = ["parallel", "parallel"]}
// CHECK: %[[U:.*]] = arith.andi %{{.*}}, %c3_i32
// CHECK: %[[H:.*]] = arith.shli %[[U]], %c4_i32
// CHECK: %[[N:.*]] = arith.ori %{{.*}}, %[[H]]
// CHECK: arith.subi %[[N]], %c32_i32
func.func @high(%q: tensor<?x24xi32>, %h: tensor<?x12xi32>, %s: tensor<?x12xf16>) -> tensor<?x192xf16> {
  %0 = greta.dequant %q, %h, %s {format = "q6_k", group = 16} : tensor<?x24xi32>, tensor<?x12xi32>, tensor<?x12xf16> -> tensor<?x192xf16>
  return %0 : tensor<?x192xf16>
}

// Codes are selected bit by bit; the bits of a scale are those of an f32's exponent.
// CHECK-LABEL: func.func @codes(
// CHECK-COUNT-15: arith.select
// CHECK: arith.extui %{{.*}} : i8 to i32
// CHECK: arith.shli %{{.*}}, %c23_i32
// CHECK: arith.bitcast %{{.*}} : i32 to f32
func.func @codes(%q: tensor<?x24xi32>, %s: tensor<?x6xi8>) -> tensor<?x192xf16> {
  %0 = greta.dequant %q, %s {format = "mxfp4", group = 32} : tensor<?x24xi32>, tensor<?x6xi8> -> tensor<?x192xf16>
  return %0 : tensor<?x192xf16>
}

// Floats of 8 bits are widened; 128 rows share a scale.
// CHECK-LABEL: func.func @floats(
// CHECK: %[[B:.*]] = arith.trunci %{{.*}} : i32 to i8
// CHECK: %[[F:.*]] = arith.bitcast %[[B]] : i8 to f8E4M3FN
// CHECK: arith.extf %[[F]] : f8E4M3FN to f32
// CHECK: arith.truncf %{{.*}} : f32 to bf16
func.func @floats(%q: tensor<200x32xi32>, %s: tensor<2x1xf32>) -> tensor<200x128xbf16> {
  %0 = greta.dequant %q, %s {format = "e4m3_block", group = 128} : tensor<200x32xi32>, tensor<2x1xf32> -> tensor<200x128xbf16>
  return %0 : tensor<200x128xbf16>
}
