// Row ops become generics over their leading dimensions, which may be dynamic; nothing of the dialect is left.
// RUN: greta-opt %s --greta-decompose --canonicalize --cse | FileCheck %s --implicit-check-not="= greta."

// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[COLUMNS:.*]] = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @rms_norm(
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf16>, %[[W:.*]]: tensor<64xf16>
// CHECK: %[[SUM:.*]] = linalg.generic {indexing_maps = [#[[ALL]], #[[ROWS]]], iterator_types = ["parallel", "reduction"]} ins(%[[X]]
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.mulf
// CHECK: arith.addf {{.*}} fastmath<reassoc>
// CHECK: %[[SCALE:.*]] = linalg.generic {{.*}} ins(%[[SUM]]
// CHECK: arith.divf %{{.*}}, %{{.*}} : f32
// CHECK: arith.addf
// CHECK: math.rsqrt %{{.*}} : f32
// CHECK: linalg.generic {indexing_maps = [#[[ALL]], #[[ROWS]], #[[COLUMNS]], #[[ALL]]], iterator_types = ["parallel", "parallel"]} ins(%[[X]], %[[SCALE]], %[[W]]
// CHECK-COUNT-2: arith.mulf {{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK-NEXT: linalg.yield
func.func @rms_norm(%x: tensor<?x64xf16>, %w: tensor<64xf16>) -> tensor<?x64xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x64xf16>, tensor<64xf16> -> tensor<?x64xf16>
  return %0 : tensor<?x64xf16>
}

// The mean is subtracted before anything is squared: two passes.
// CHECK-LABEL: func.func @layer_norm(
// CHECK: %[[MEAN:.*]] = linalg.generic
// CHECK: %[[SQUARES:.*]] = linalg.generic {{.*}} iterator_types = ["reduction"]
// CHECK: %[[CENTRED:.*]] = arith.subf
// CHECK: arith.mulf %[[CENTRED]], %[[CENTRED]]
// CHECK: math.rsqrt
// CHECK: arith.subf
// CHECK-COUNT-2: arith.mulf
// CHECK: arith.addf
// CHECK-NEXT: linalg.yield
func.func @layer_norm(%x: tensor<64xf32>, %w: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %0 = greta.layer_norm %x, %w, %b {eps = 1.0e-5 : f32} : tensor<64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// The maximum comes off before the exponential.
// CHECK-LABEL: func.func @softmax(
// CHECK: linalg.fill ins(%{{.*}} : f32)
// CHECK: %[[MAX:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: arith.maximumf
// CHECK: %[[EXP:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[MAX]] :
// CHECK: arith.subf
// CHECK-NEXT: math.exp %{{.*}} : f32
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[EXP]]
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}} ins(%[[EXP]]
// CHECK: arith.divf
// CHECK-NEXT: arith.truncf %{{.*}} : f32 to bf16
func.func @softmax(%x: tensor<?x3x7xbf16>) -> tensor<?x3x7xbf16> {
  %0 = greta.softmax %x : tensor<?x3x7xbf16> -> tensor<?x3x7xbf16>
  return %0 : tensor<?x3x7xbf16>
}

// CHECK-LABEL: func.func @swiglu(
// CHECK: linalg.generic
// CHECK: %[[GATE:.*]] = arith.extf
// CHECK: %[[UP:.*]] = arith.extf
// CHECK: arith.negf %[[GATE]]
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: %[[SILU:.*]] = arith.divf %[[GATE]]
// CHECK: arith.mulf %[[SILU]], %[[UP]]
// CHECK: arith.truncf
func.func @swiglu(%gate: tensor<?x64xf16>, %up: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %0 = greta.swiglu %gate, %up : tensor<?x64xf16>, tensor<?x64xf16> -> tensor<?x64xf16>
  return %0 : tensor<?x64xf16>
}
