// Reductions of rows become greta.reduce_rows, whose numbers stay in the kernel and leave it beside what has the whole shape.
// RUN: greta-opt --split-input-file --greta-fuse %s | FileCheck %s

// A norm, the reduction and all that follows are one kernel.
// CHECK-LABEL: func.func @quantized
// CHECK: greta.kernel{{.*}} -> (tensor<?xf32>, tensor<?x64xi8>)
// CHECK: greta.rms_norm
// CHECK: %[[PEAK:.*]] = greta.reduce_rows "max" %{{.*}} : tensor<?x64xf32> -> tensor<?xf32>
// CHECK: %[[SCALE:.*]] = arith.mulf %[[PEAK]]
// CHECK: greta.broadcast %{{.*}} dims [0]
// CHECK: %[[Y:.*]] = arith.fptosi
// CHECK: greta.yield %[[SCALE]], %[[Y]]
// CHECK-NOT: greta.kernel
func.func @quantized(%x: tensor<?x64xf16>, %w: tensor<64xf16>) -> (tensor<?x64xi8>, tensor<?x1xf32>) {
  %n = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x64xf16>, tensor<64xf16> -> tensor<?x64xf16>
  %y, %s = greta.quantize_rows %n : tensor<?x64xf16> -> tensor<?x64xi8>, tensor<?x1xf32>
  return %y, %s : tensor<?x64xi8>, tensor<?x1xf32>
}

// -----

// Any combination that linalg.reduce may have, from what changes nothing.
// CHECK-LABEL: func.func @combinations
// CHECK-DAG: greta.reduce_rows "mul" %{{.*}} : tensor<4x8xf32> -> tensor<4xf32>
// CHECK-DAG: greta.reduce_rows "min" %{{.*}} : tensor<4x8xi32> -> tensor<4xi32>
func.func @combinations(%x: tensor<4x8xf32>, %y: tensor<4x8xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%one : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.reduce { arith.mulf } ins(%x : tensor<4x8xf32>) outs(%f : tensor<4xf32>) dimensions = [1]
  %most = arith.constant 2147483647 : i32
  %g = tensor.empty() : tensor<4xi32>
  %h = linalg.fill ins(%most : i32) outs(%g : tensor<4xi32>) -> tensor<4xi32>
  %1 = linalg.reduce { arith.minsi } ins(%y : tensor<4x8xi32>) outs(%h : tensor<4xi32>) dimensions = [1]
  return %0, %1 : tensor<4xf32>, tensor<4xi32>
}
