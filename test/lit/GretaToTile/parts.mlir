// Launches beside a sum over ranks that is made in parts say which of their arguments a part has its own rows of, if each row is computed by itself.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --greta-to-tile %s | FileCheck %s

// The product: a, what is added, and the result. The weights are whole.
// CHECK-LABEL: func.func @layer
// CHECK: greta_tile.launch @layer_0 {{.*}}(%arg0, %arg1, %arg2) shapes [{{[^]]*}}] by_rows [0, 2, 3]
// CHECK: greta.all_reduce
// The norm: the sum, and the result.
// CHECK: greta_tile.launch @layer_1 {{.*}}(%{{.*}}, %arg3) shapes [{{[^]]*}}] by_rows [0, 2]
func.func @layer(%a: tensor<?x32xf32>, %w: tensor<64x32xf32>, %r: tensor<?x64xf32>, %n: tensor<64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %0 = greta.matmul %a, %w {transpose_b} : tensor<?x32xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %1 = arith.addf %0, %r : tensor<?x64xf32>
  %2 = greta.all_reduce %1 {part_rows = 16} : tensor<?x64xf32> -> tensor<?x64xf32>
  %3 = greta.rms_norm %2, %n {eps = 1.0e-5 : f32} : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  return %2, %3 : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// A sum in one part has none.
// CHECK-LABEL: func.func @one
// CHECK-NOT: by_rows
func.func @one(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = greta.softmax %x : tensor<?x64xf32> -> tensor<?x64xf32>
  %1 = greta.all_reduce %0 {part_rows = 0} : tensor<?x64xf32> -> tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}

// -----

// Columns of A, and rows of both operands, are no rows of the result.
// CHECK-LABEL: func.func @columns
// CHECK-NOT: by_rows
func.func @columns(%a: tensor<32x?xf32>, %w: tensor<64x32xf32>) -> tensor<?x64xf32> {
  %0 = greta.matmul %a, %w {transpose_a, transpose_b} : tensor<32x?xf32>, tensor<64x32xf32> -> tensor<?x64xf32>
  %1 = greta.all_reduce %0 {part_rows = 16} : tensor<?x64xf32> -> tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}

// -----

// CHECK-LABEL: func.func @square
// CHECK-NOT: by_rows
func.func @square(%a: tensor<?x32xf32>) -> tensor<?x?xf32> {
  %0 = greta.matmul %a, %a {transpose_b} : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x?xf32>
  %1 = greta.all_reduce %0 {part_rows = 16} : tensor<?x?xf32> -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// -----

// One dimension is the row, and its elements are of one row.
// CHECK-LABEL: func.func @row
// CHECK-NOT: by_rows
func.func @row(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.addf %x, %x : tensor<?xf32>
  %1 = greta.all_reduce %0 {part_rows = 16} : tensor<?xf32> -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

// Rows that are known have no symbol that a part could set.
// CHECK-LABEL: func.func @fixed
// CHECK-NOT: by_rows
func.func @fixed(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = greta.softmax %x : tensor<64x64xf32> -> tensor<64x64xf32>
  %1 = greta.all_reduce %0 {part_rows = 16} : tensor<64x64xf32> -> tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}

// -----

// Three rows of 2 bytes do not begin where loads of 16 bytes may; eight do.
// CHECK-LABEL: func.func @aligned
// CHECK: greta_tile.launch @aligned_0
// CHECK-NOT: by_rows
// CHECK: greta.all_reduce
func.func @aligned(%x: tensor<?x1xf16>) -> tensor<?x1xf16> {
  %0 = arith.addf %x, %x : tensor<?x1xf16>
  %1 = greta.all_reduce %0 {part_rows = 3} : tensor<?x1xf16> -> tensor<?x1xf16>
  return %1 : tensor<?x1xf16>
}

// -----

// CHECK-LABEL: func.func @eight
// CHECK: greta_tile.launch @eight_0 {{.*}} by_rows [0, 1]
func.func @eight(%x: tensor<?x1xf16>) -> tensor<?x1xf16> {
  %0 = arith.addf %x, %x : tensor<?x1xf16>
  %1 = greta.all_reduce %0 {part_rows = 8} : tensor<?x1xf16> -> tensor<?x1xf16>
  return %1 : tensor<?x1xf16>
}

// -----

// A slice of columns is another view of its tensor.
// CHECK-LABEL: func.func @slice
// CHECK-NOT: by_rows
func.func @slice(%x: tensor<?x128xf32>) -> tensor<?x64xf32> {
  %d = arith.constant 0 : index
  %rows = tensor.dim %x, %d : tensor<?x128xf32>
  %0 = tensor.extract_slice %x[0, 64] [%rows, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %1 = greta.softmax %0 : tensor<?x64xf32> -> tensor<?x64xf32>
  %2 = greta.all_reduce %1 {part_rows = 16} : tensor<?x64xf32> -> tensor<?x64xf32>
  return %2 : tensor<?x64xf32>
}
