// Which ops share a kernel, and what becomes another one.
// RUN: greta-opt --split-input-file --greta-fuse %s | FileCheck %s

// A chain on one space is one kernel; the sum is a result too.
// CHECK-LABEL: func.func @residual_norm
// CHECK-SAME: greta.shapes = {{.*}}greta.symbols = {{\[\[}}0, 0]]
// CHECK: %[[K:.*]]:2 = greta.kernel(%arg0, %arg1, %arg2) {shapes = [#[[ROWS:.*]], #[[ROWS]], #[[VECTOR:.*]], #[[ROWS]], #[[WIDE:.*]]]}
// CHECK: ^bb0(%[[X:.*]]: tensor<?x64xf16>, %[[R:.*]]: tensor<?x64xf16>, %[[W:.*]]: tensor<64xf16>):
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[X]], %[[R]]
// CHECK-NEXT: %[[NORM:.*]] = greta.rms_norm %[[SUM]], %[[W]]
// CHECK-NEXT: %[[CAST:.*]] = arith.extf %[[NORM]]
// CHECK-NEXT: greta.yield %[[SUM]], %[[CAST]]
// CHECK: return %[[K]]#0, %[[K]]#1
func.func @residual_norm(%x: tensor<?x64xf16>, %r: tensor<?x64xf16>, %w: tensor<64xf16>) -> (tensor<?x64xf16>, tensor<?x64xf32>) {
  %0 = arith.addf %x, %r : tensor<?x64xf16>
  %1 = greta.rms_norm %0, %w {eps = 1.0e-5 : f32} : tensor<?x64xf16>, tensor<64xf16> -> tensor<?x64xf16>
  %2 = arith.extf %1 : tensor<?x64xf16> to tensor<?x64xf32>
  return %0, %2 : tensor<?x64xf16>, tensor<?x64xf32>
}

// -----

// Work on the weights and constants comes along; the kernel needs no sizes.
// CHECK-LABEL: func.func @vectors
// CHECK-COUNT-1: greta.kernel(%arg1, %arg0)
// CHECK: ^bb0(%[[W:.*]]: tensor<64xf32>, %[[X:.*]]: tensor<?x64xf32>):
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<64xf32>
// CHECK: %[[W1:.*]] = arith.addf %[[W]], %[[ONE]] : tensor<64xf32>
// CHECK: %[[NORM:.*]] = greta.rms_norm %[[X]], %[[W1]]
// CHECK: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<f32>
// CHECK: %[[TWOS:.*]] = greta.broadcast %[[TWO]] dims [] : tensor<f32> -> tensor<?x64xf32>
// CHECK: arith.mulf %[[NORM]], %[[TWOS]]
// CHECK-NOT: tensor.
func.func @vectors(%x: tensor<?x64xf32>, %w: tensor<64xf32>) -> tensor<?x64xf32> {
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %two = arith.constant 2.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %w1 = arith.addf %w, %one : tensor<64xf32>
  %0 = greta.rms_norm %x, %w1 {eps = 1.0e-5 : f32} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  %twos = tensor.splat %two[%n] : tensor<?x64xf32>
  %1 = arith.mulf %0, %twos : tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}

// -----

// Two spaces that do not depend on each other share a launch.
// CHECK-LABEL: func.func @rope_pair
// CHECK: %[[K:.*]]:2 = greta.kernel(%arg0, %arg2, %arg3, %arg1)
// CHECK: greta.rope
// CHECK-NEXT: greta.yield %{{.*}} : tensor<?x32x128xf16>
// CHECK-NEXT: }, {
// CHECK: greta.rope
// CHECK-NEXT: greta.yield %{{.*}} : tensor<?x8x128xf16>
// CHECK-NOT: greta.kernel
// CHECK: return %[[K]]#0, %[[K]]#1
func.func @rope_pair(%q: tensor<?x32x128xf16>, %k: tensor<?x8x128xf16>, %cos: tensor<?x64xf32>, %sin: tensor<?x64xf32>) -> (tensor<?x32x128xf16>, tensor<?x8x128xf16>) {
  %0 = greta.rope %q, %cos, %sin {style = "neox"} : tensor<?x32x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x32x128xf16>
  %1 = greta.rope %k, %cos, %sin {style = "neox"} : tensor<?x8x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x8x128xf16>
  return %0, %1 : tensor<?x32x128xf16>, tensor<?x8x128xf16>
}

// -----

// A norm over heads lives in rope's space; tables may be converted on the way.
// CHECK-LABEL: func.func @qk_norm
// CHECK: greta.kernel
// CHECK-NOT: greta.kernel
// CHECK: return
func.func @qk_norm(%q: tensor<?x4x64xf16>, %w: tensor<64xf16>, %cos: tensor<?x32xf16>, %sin: tensor<?x32xf16>) -> tensor<?x4x64xf16> {
  %c = arith.extf %cos : tensor<?x32xf16> to tensor<?x32xf32>
  %s = arith.extf %sin : tensor<?x32xf16> to tensor<?x32xf32>
  %0 = greta.rms_norm %q, %w {eps = 1.0e-5 : f32} : tensor<?x4x64xf16>, tensor<64xf16> -> tensor<?x4x64xf16>
  %1 = greta.rope %0, %c, %s {style = "gptj"} : tensor<?x4x64xf16>, tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x4x64xf16>
  return %1 : tensor<?x4x64xf16>
}

// -----

// A GEMM is a kernel of its own, with the elementwise work on its result.
// CHECK-LABEL: func.func @mlp
// CHECK: %[[N:.*]] = greta.kernel(%arg0)
// CHECK: greta.softmax
// CHECK: %[[M:.*]] = greta.kernel(%[[N]], %arg1, %arg2, %arg0)
// CHECK: %[[P:.*]] = greta.matmul
// CHECK: %[[BIAS:.*]] = greta.broadcast %{{.*}} dims [1]
// CHECK: %[[Q:.*]] = arith.addf %[[P]], %[[BIAS]]
// CHECK: arith.addf %[[Q]]
// CHECK-NOT: greta.kernel
// CHECK: return %[[M]]
func.func @mlp(%x: tensor<?x64xf16>, %b: tensor<64x64xf16>, %bias: tensor<64xf16>) -> tensor<?x64xf16> {
  %c0 = arith.constant 0 : index
  %0 = greta.softmax %x : tensor<?x64xf16> -> tensor<?x64xf16>
  %1 = greta.matmul %0, %b : tensor<?x64xf16>, tensor<64x64xf16> -> tensor<?x64xf16>
  %n = tensor.dim %x, %c0 : tensor<?x64xf16>
  %e = tensor.empty(%n) : tensor<?x64xf16>
  %2 = linalg.broadcast ins(%bias : tensor<64xf16>) outs(%e : tensor<?x64xf16>) dimensions = [0]
  %3 = arith.addf %1, %2 : tensor<?x64xf16>
  %4 = arith.addf %3, %x : tensor<?x64xf16>
  return %4 : tensor<?x64xf16>
}

// -----

// Reshapes stay between kernels; their sizes come from the arguments.
// CHECK-LABEL: func.func @views
// CHECK: %[[N:.*]] = tensor.dim %arg0
// CHECK: %[[Q:.*]] = tensor.expand_shape %arg0 {{\[\[}}0], [1, 2]] output_shape [%[[N]], 4, 64]
// CHECK: %[[K:.*]] = greta.kernel(%[[Q]], %arg1)
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[K]]
// CHECK: return %[[R]]
func.func @views(%x: tensor<?x256xf16>, %t: tensor<?x32xf32>) -> tensor<?x256xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x256xf16>
  %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 4, 64] : tensor<?x256xf16> into tensor<?x4x64xf16>
  %1 = greta.rope %0, %t, %t {style = "neox"} : tensor<?x4x64xf16>, tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x4x64xf16>
  %2 = tensor.collapse_shape %1 [[0], [1, 2]] : tensor<?x4x64xf16> into tensor<?x256xf16>
  return %2 : tensor<?x256xf16>
}

// -----

// A result has a buffer of its own: arguments and second uses are copied.
// CHECK-LABEL: func.func @copies
// CHECK: %[[K:.*]]:3 = greta.kernel(%arg0)
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[C0:.*]] = greta.broadcast %[[E]] dims [0, 1]
// CHECK: %[[C1:.*]] = greta.broadcast %{{.*}} dims [0, 1]
// CHECK: greta.yield %[[E]], %[[C0]], %[[C1]]
// CHECK: return %[[K]]#0, %[[K]]#1, %[[K]]#2
func.func @copies(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) {
  %0 = math.exp %x : tensor<?x64xf32>
  return %0, %0, %x : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// Cheap work for several consumers is repeated in each; here a cast of weights.
// CHECK-LABEL: func.func @repeated
// CHECK: greta.kernel(%arg2, %arg0, %arg1)
// CHECK: arith.extf
// CHECK: greta.softmax
// CHECK: }, {
// CHECK: arith.extf
// CHECK: greta.softmax
// CHECK-NOT: greta.kernel
// CHECK: return
func.func @repeated(%x: tensor<?x8xf32>, %y: tensor<?x?x8xf32>, %w: tensor<8xf16>) -> (tensor<?x8xf32>, tensor<?x?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %m = tensor.dim %y, %c0 : tensor<?x?x8xf32>
  %o = tensor.dim %y, %c1 : tensor<?x?x8xf32>
  %v = arith.extf %w : tensor<8xf16> to tensor<8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %f = tensor.empty(%m, %o) : tensor<?x?x8xf32>
  %0 = linalg.broadcast ins(%v : tensor<8xf32>) outs(%e : tensor<?x8xf32>) dimensions = [0]
  %1 = linalg.broadcast ins(%v : tensor<8xf32>) outs(%f : tensor<?x?x8xf32>) dimensions = [0, 1]
  %2 = arith.addf %x, %0 : tensor<?x8xf32>
  %3 = arith.addf %y, %1 : tensor<?x?x8xf32>
  %4 = greta.softmax %2 : tensor<?x8xf32> -> tensor<?x8xf32>
  %5 = greta.softmax %3 : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  return %4, %5 : tensor<?x8xf32>, tensor<?x?x8xf32>
}

// -----

// A GEMM reads buffers: a constant operand is stored first.
// CHECK-LABEL: func.func @constant_operand
// CHECK: %[[A:.*]] = greta.kernel()
// CHECK: greta.broadcast %{{.*}} dims [0, 1]
// CHECK: greta.kernel(%[[A]], %arg0)
// CHECK: greta.matmul
func.func @constant_operand(%b: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %a = arith.constant dense<0.5> : tensor<16x16xf32>
  %0 = greta.matmul %a, %b : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

// -----

// Weights that are computed become part of a skinny GEMM: from 8 bits with a scale per column, from 4 bits.
// CHECK-LABEL: func.func @weights
// CHECK: %[[Y:.*]] = greta.kernel(%arg1, %arg2, %arg0)
// CHECK: arith.sitofp
// CHECK: greta.broadcast
// CHECK: arith.mulf
// CHECK: greta.matmul
// CHECK: %[[Z:.*]] = greta.kernel(%arg3, %arg4, %arg5, %[[Y]])
// CHECK: greta.dequant
// CHECK: greta.matmul
// CHECK: return %[[Z]]
func.func @weights(%x: tensor<2x64xf16>, %q: tensor<64x64xi8>, %s: tensor<64xf16>,
                   %p: tensor<32x8xi32>, %scales: tensor<32x2xf16>, %zeros: tensor<32x1xi32>) -> tensor<2x32xf16> {
  %f = arith.sitofp %q : tensor<64x64xi8> to tensor<64x64xf16>
  %e = tensor.empty() : tensor<64x64xf16>
  %b = linalg.broadcast ins(%s : tensor<64xf16>) outs(%e : tensor<64x64xf16>) dimensions = [1]
  %w = arith.mulf %f, %b : tensor<64x64xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<2x64xf16>, tensor<64x64xf16> -> tensor<2x64xf16>
  %v = greta.dequant %p, %scales, %zeros {group = 32} : tensor<32x8xi32>, tensor<32x2xf16>, tensor<32x1xi32> -> tensor<32x64xf16>
  %1 = greta.matmul %0, %v {transpose_b} : tensor<2x64xf16>, tensor<32x64xf16> -> tensor<2x32xf16>
  return %1 : tensor<2x32xf16>
}

// -----

// With more rows as well; what matrix instructions hide is computed of both operands.
// CHECK-LABEL: func.func @operands
// CHECK: greta.kernel(%arg0, %arg1, %arg2, %arg3)
// CHECK: arith.truncf
// CHECK: greta.dequant
// CHECK: greta.matmul
// CHECK-NOT: greta.kernel
func.func @operands(%x: tensor<?x64xf32>, %p: tensor<32x8xi32>, %scales: tensor<32x2xf16>, %zeros: tensor<32x1xi32>) -> tensor<?x32xf16> {
  %a = arith.truncf %x : tensor<?x64xf32> to tensor<?x64xf16>
  %v = greta.dequant %p, %scales, %zeros {group = 32} : tensor<32x8xi32>, tensor<32x2xf16>, tensor<32x1xi32> -> tensor<32x64xf16>
  %0 = greta.matmul %a, %v {transpose_b} : tensor<?x64xf16>, tensor<32x64xf16> -> tensor<?x32xf16>
  return %0 : tensor<?x32xf16>
}

// -----

// rms_norm of A where the columns are few; elsewhere, as [K, M], and what is computed of it, as layer_norm, it is a kernel before.
// CHECK-LABEL: func.func @norm
// CHECK: greta.kernel(%arg0, %arg1, %arg2)
// CHECK: greta.rms_norm
// CHECK-NEXT: greta.matmul
// CHECK-NOT: greta.kernel
func.func @norm(%x: tensor<?x64xf16>, %w: tensor<64xf16>, %b: tensor<64x1024xf16>) -> tensor<?x1024xf16> {
  %a = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x64xf16>, tensor<64xf16> -> tensor<?x64xf16>
  %0 = greta.matmul %a, %b : tensor<?x64xf16>, tensor<64x1024xf16> -> tensor<?x1024xf16>
  return %0 : tensor<?x1024xf16>
}

// CHECK-LABEL: func.func @broad
// CHECK: greta.kernel(%arg0, %arg1)
// CHECK: greta.rms_norm
// CHECK: greta.kernel
// CHECK: greta.matmul
func.func @broad(%x: tensor<?x64xf16>, %w: tensor<64xf16>, %b: tensor<64x1040xf16>) -> tensor<?x1040xf16> {
  %a = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x64xf16>, tensor<64xf16> -> tensor<?x64xf16>
  %0 = greta.matmul %a, %b : tensor<?x64xf16>, tensor<64x1040xf16> -> tensor<?x1040xf16>
  return %0 : tensor<?x1040xf16>
}

// In a skinny GEMM as well, there with vectors that it is computed from alone.
// CHECK-LABEL: func.func @norm_of_one
// CHECK: greta.kernel(%arg1, %arg0, %arg2)
// CHECK: arith.addf
// CHECK: greta.rms_norm
// CHECK: greta.matmul
// CHECK-NOT: greta.kernel
func.func @norm_of_one(%x: tensor<1x64xf16>, %w: tensor<64xf16>, %b: tensor<64x32xf16>) -> tensor<1x32xf16> {
  %one = arith.constant dense<1.0> : tensor<64xf16>
  %v = arith.addf %w, %one : tensor<64xf16>
  %a = greta.rms_norm %x, %v {eps = 1.0e-5 : f32} : tensor<1x64xf16>, tensor<64xf16> -> tensor<1x64xf16>
  %0 = greta.matmul %a, %b : tensor<1x64xf16>, tensor<64x32xf16> -> tensor<1x32xf16>
  return %0 : tensor<1x32xf16>
}

// CHECK-LABEL: func.func @layer
// CHECK: greta.kernel
// CHECK: greta.layer_norm
// CHECK: greta.kernel
// CHECK: greta.matmul
func.func @layer(%x: tensor<?x64xf16>, %w: tensor<64xf16>, %b: tensor<64x32xf16>) -> tensor<?x32xf16> {
  %a = greta.layer_norm %x, %w, %w {eps = 1.0e-5 : f32} : tensor<?x64xf16>, tensor<64xf16>, tensor<64xf16> -> tensor<?x64xf16>
  %0 = greta.matmul %a, %b : tensor<?x64xf16>, tensor<64x32xf16> -> tensor<?x32xf16>
  return %0 : tensor<?x32xf16>
}

// CHECK-LABEL: func.func @cast
// CHECK: greta.rms_norm
// CHECK: greta.kernel
// CHECK: greta.matmul
func.func @cast(%x: tensor<?x64xf32>, %w: tensor<64xf32>, %b: tensor<64x32xf16>) -> tensor<?x32xf16> {
  %n = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  %a = arith.truncf %n : tensor<?x64xf32> to tensor<?x64xf16>
  %0 = greta.matmul %a, %b : tensor<?x64xf16>, tensor<64x32xf16> -> tensor<?x32xf16>
  return %0 : tensor<?x32xf16>
}

// CHECK-LABEL: func.func @shared
// CHECK: greta.rms_norm
// CHECK-NEXT: greta.yield
// CHECK-COUNT-2: greta.matmul
func.func @shared(%x: tensor<?x64xf16>, %w: tensor<64xf16>, %b: tensor<64x32xf16>, %c: tensor<64x16xf16>) -> (tensor<?x32xf16>, tensor<?x16xf16>) {
  %a = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x64xf16>, tensor<64xf16> -> tensor<?x64xf16>
  %0 = greta.matmul %a, %b : tensor<?x64xf16>, tensor<64x32xf16> -> tensor<?x32xf16>
  %1 = greta.matmul %a, %c : tensor<?x64xf16>, tensor<64x16xf16> -> tensor<?x16xf16>
  return %0, %1 : tensor<?x32xf16>, tensor<?x16xf16>
}

// CHECK-LABEL: func.func @turned
// CHECK: greta.rms_norm
// CHECK-NEXT: greta.yield
// CHECK: greta.matmul
func.func @turned(%x: tensor<64x48xf16>, %w: tensor<48xf16>, %b: tensor<64x32xf16>) -> tensor<48x32xf16> {
  %a = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<64x48xf16>, tensor<48xf16> -> tensor<64x48xf16>
  %0 = greta.matmul %a, %b {transpose_a} : tensor<64x48xf16>, tensor<64x32xf16> -> tensor<48x32xf16>
  return %0 : tensor<48x32xf16>
}

// -----

// Operands that are expensive to compute are computed once: functions, divisions, more than twice the operand's bits; and A where rows are few.
// CHECK-LABEL: func.func @functions
// CHECK: math.exp
// CHECK-NEXT: greta.yield
// CHECK: greta.matmul
func.func @functions(%x: tensor<?x64xf16>, %b: tensor<64x32xf16>) -> tensor<?x32xf16> {
  %a = math.exp %x : tensor<?x64xf16>
  %0 = greta.matmul %a, %b : tensor<?x64xf16>, tensor<64x32xf16> -> tensor<?x32xf16>
  return %0 : tensor<?x32xf16>
}

// CHECK-LABEL: func.func @three
// CHECK-COUNT-2: arith.addf
// CHECK-NEXT: greta.yield
// CHECK: greta.matmul
func.func @three(%x: tensor<?x64xf16>, %y: tensor<?x64xf16>, %z: tensor<?x64xf16>, %b: tensor<64x32xf16>) -> tensor<?x32xf16> {
  %0 = arith.addf %x, %y : tensor<?x64xf16>
  %a = arith.addf %0, %z : tensor<?x64xf16>
  %1 = greta.matmul %a, %b : tensor<?x64xf16>, tensor<64x32xf16> -> tensor<?x32xf16>
  return %1 : tensor<?x32xf16>
}

// CHECK-LABEL: func.func @few
// CHECK: arith.truncf
// CHECK-NEXT: greta.yield
// CHECK: greta.matmul
func.func @few(%x: tensor<2x64xf32>, %b: tensor<64x32xf16>) -> tensor<2x32xf16> {
  %a = arith.truncf %x : tensor<2x64xf32> to tensor<2x64xf16>
  %0 = greta.matmul %a, %b : tensor<2x64xf16>, tensor<64x32xf16> -> tensor<2x32xf16>
  return %0 : tensor<2x32xf16>
}

// -----

// As the other operand weights are stored first: a word lies along K.
// CHECK-LABEL: func.func @stored
// CHECK: greta.dequant
// CHECK-NEXT: greta.yield
// CHECK: greta.matmul
func.func @stored(%x: tensor<64x32xf16>, %p: tensor<32x8xi32>, %scales: tensor<32x2xf16>, %zeros: tensor<32x1xi32>) -> tensor<32x32xf16> {
  %v = greta.dequant %p, %scales, %zeros {group = 32} : tensor<32x8xi32>, tensor<32x2xf16>, tensor<32x1xi32> -> tensor<32x64xf16>
  %0 = greta.matmul %v, %x : tensor<32x64xf16>, tensor<64x32xf16> -> tensor<32x32xf16>
  return %0 : tensor<32x32xf16>
}
