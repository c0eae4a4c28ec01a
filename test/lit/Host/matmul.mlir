// A product accumulates in f32 (i32 for i8) and rounds afterwards; flags change the maps only.
// RUN: greta-opt %s --greta-decompose --canonicalize --cse | FileCheck %s --implicit-check-not="= greta."

// CHECK-DAG: #[[MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[KM:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[NK:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[GMK:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d4)>
// CHECK-DAG: #[[BGKN:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
// CHECK-DAG: #[[BGMN:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>

// CHECK-LABEL: func.func @plain(
// CHECK: linalg.generic {indexing_maps = [#[[MK]], #[[KN]], #[[MN]]], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-SAME: outs(%{{.*}} : tensor<?x32xf32>)
// CHECK-COUNT-2: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.mulf
// CHECK: arith.addf {{.*}} : f32
// CHECK-NEXT: linalg.yield
// CHECK: linalg.generic
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @plain(%a: tensor<?x64xf16>, %b: tensor<64x32xf16>) -> tensor<?x32xf16> {
  %0 = greta.matmul %a, %b : tensor<?x64xf16>, tensor<64x32xf16> -> tensor<?x32xf16>
  return %0 : tensor<?x32xf16>
}

// CHECK-LABEL: func.func @transposed(
// CHECK: linalg.generic {indexing_maps = [#[[KM]], #[[NK]], #[[MN]]]
// CHECK-NOT: arith.truncf
// CHECK: return
func.func @transposed(%a: tensor<64x16xbf16>, %b: tensor<32x64xbf16>) -> tensor<16x32xf32> {
  %0 = greta.matmul %a, %b {transpose_a, transpose_b} : tensor<64x16xbf16>, tensor<32x64xbf16> -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}

// CHECK-LABEL: func.func @integers(
// CHECK-COUNT-2: arith.extsi %{{.*}} : i8 to i32
// CHECK: arith.muli
// CHECK: arith.addi
func.func @integers(%a: tensor<4x8xi8>, %b: tensor<8x4xi8>) -> tensor<4x4xi32> {
  %0 = greta.matmul %a, %b : tensor<4x8xi8>, tensor<8x4xi8> -> tensor<4x4xi32>
  return %0 : tensor<4x4xi32>
}

// The type of the result knows less than the operands do.
// CHECK-LABEL: func.func @cast(
// CHECK: tensor.cast %{{.*}} : tensor<4x16xf32> to tensor<?x16xf32>
func.func @cast(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) -> tensor<?x16xf32> {
  %0 = greta.matmul %a, %b : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}

// One B serves the batch.
// CHECK-LABEL: func.func @batched(
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}, #{{.*}}], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%{{.*}}, %{{.*}} : tensor<?x4x8xf16>, tensor<8x16xf16>) outs(%{{.*}} : tensor<?x4x16xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<?x4x16xf32>) outs(%{{.*}} : tensor<?x4x16xf16>)
func.func @batched(%a: tensor<?x4x8xf16>, %b: tensor<8x16xf16>) -> tensor<?x4x16xf16> {
  %0 = greta.matmul %a, %b : tensor<?x4x8xf16>, tensor<8x16xf16> -> tensor<?x4x16xf16>
  return %0 : tensor<?x4x16xf16>
}

// One A for a leading dimension of the batch.
// CHECK-LABEL: func.func @one_a(
// CHECK: tensor.dim %arg1, %c0
// CHECK: linalg.generic {indexing_maps = [#[[GMK]], #[[BGKN]], #[[BGMN]]]
func.func @one_a(%a: tensor<3x16x64xf16>, %b: tensor<?x3x64x32xf16>) -> tensor<?x3x16x32xf32> {
  %0 = greta.matmul %a, %b : tensor<3x16x64xf16>, tensor<?x3x64x32xf16> -> tensor<?x3x16x32xf32>
  return %0 : tensor<?x3x16x32xf32>
}
