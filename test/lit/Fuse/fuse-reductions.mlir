// Reductions of rows become greta.reduce_rows, whose numbers stay in the kernel and leave it beside what has the whole shape.
// RUN: greta-opt --split-input-file --greta-fuse %s | FileCheck %s

// A norm, the reduction and all that follows are one kernel.
// CHECK-LABEL: func.func @quantized
// CHECK: greta.kernel{{.*}} -> (tensor<?xf32>, tensor<?x64xi8>)
// CHECK: greta.rms_norm
// CHECK: %[[PEAK:.*]] = greta.reduce_rows %{{.*}} : (tensor<?x64xf32>) -> tensor<?xf32> {
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT: %[[MOST:.*]] = arith.maximumf %[[A]], %[[B]] : f32
// CHECK-NEXT: greta.yield %[[MOST]] : f32
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

// An init that changes nothing is none.
// CHECK-LABEL: func.func @product
// CHECK: %[[ROWS:.*]] = greta.reduce_rows %{{.*}} : (tensor<4x8xf32>) -> tensor<4xf32> {
// CHECK: arith.mulf %{{.*}} : f32
// CHECK: }
// CHECK-NEXT: greta.yield %[[ROWS]] : tensor<4xf32>
func.func @product(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%one : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.reduce { arith.mulf } ins(%x : tensor<4x8xf32>) outs(%f : tensor<4xf32>) dimensions = [1]
  return %0 : tensor<4xf32>
}

// -----

// Any other init is combined with the rows' numbers; a constant of the combination goes along, on rows as a splat.
// CHECK-LABEL: func.func @inits
// CHECK: greta.kernel{{.*}} -> (tensor<?xf32>, tensor<?xi32>, tensor<?x8xf32>)
// CHECK: ^bb0(%[[X:.*]]: tensor<?x8xf32>, %[[N:.*]]: tensor<?x8xi32>, %[[START:.*]]: tensor<?xi32>):
// CHECK: %[[ROWS:.*]]:2 = greta.reduce_rows %[[X]], %[[N]] : (tensor<?x8xf32>, tensor<?x8xi32>) -> (tensor<?xf32>, tensor<?xi32>) {
// CHECK-NEXT: ^bb0(%[[B:.*]]: f32, %[[J:.*]]: i32, %[[A:.*]]: f32, %[[I:.*]]: i32):
// CHECK: %[[SUM:.*]] = arith.addf %[[A]], %[[B]] : f32
// CHECK: %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK: arith.mulf %[[SUM]], %[[HALF]] : f32
// CHECK: arith.maxsi %[[I]], %[[J]] : i32
// CHECK: greta.yield %{{.*}} : f32, i32
// CHECK: %[[SUMS:.*]] = arith.addf %[[ROWS]]#0, %{{.*}} : tensor<?xf32>
// CHECK: %[[HALVES:.*]] = arith.constant dense<5.000000e-01> : tensor<?xf32>
// CHECK: %[[Y:.*]] = arith.mulf %[[SUMS]], %[[HALVES]] : tensor<?xf32>
// CHECK: %[[K:.*]] = arith.maxsi %[[ROWS]]#1, %[[START]] : tensor<?xi32>
// CHECK: greta.yield %[[Y]], %[[K]], %{{.*}}
// CHECK-NOT: greta.kernel
func.func @inits(%x: tensor<?x8xf32>, %n: tensor<?x8xi32>, %start: tensor<?xi32>) -> (tensor<?xf32>, tensor<?xi32>, tensor<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %x, %c0 : tensor<?x8xf32>
  %half = arith.constant 0.5 : f32
  %e = tensor.empty(%t) : tensor<?xf32>
  %f = linalg.fill ins(%half : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %0:2 = linalg.reduce ins(%x, %n : tensor<?x8xf32>, tensor<?x8xi32>) outs(%f, %start : tensor<?xf32>, tensor<?xi32>) dimensions = [1]
    (%a: f32, %i: i32, %b: f32, %j: i32) {
      %sum = arith.addf %a, %b : f32
      %mean = arith.mulf %sum, %half : f32
      %k = arith.maxsi %i, %j : i32
      linalg.yield %mean, %k : f32, i32
    }
  %w = tensor.empty(%t) : tensor<?x8xf32>
  %b = linalg.broadcast ins(%0#0 : tensor<?xf32>) outs(%w : tensor<?x8xf32>) dimensions = [1]
  %d = arith.subf %x, %b : tensor<?x8xf32>
  return %0#0, %0#1, %d : tensor<?xf32>, tensor<?xi32>, tensor<?x8xf32>
}

// -----

// A vector is one row.
// CHECK-LABEL: func.func @vector
// CHECK: greta.kernel{{.*}} -> tensor<f32>
// CHECK: greta.reduce_rows %{{.*}} : (tensor<70xf32>) -> tensor<f32>
func.func @vector(%x: tensor<70xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %0 = linalg.reduce { arith.addf } ins(%x : tensor<70xf32>) outs(%f : tensor<f32>) dimensions = [0]
  return %0 : tensor<f32>
}
