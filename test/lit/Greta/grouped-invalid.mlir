// Verifiers of greta.grouped_matmul, greta.quantize_rows and a matmul's `precision` name the operand, the limit and the remedy.
// RUN: greta-opt %s --split-input-file --verify-diagnostics -o /dev/null

func.func @types(%a: tensor<?x8xf16>, %b: tensor<4x8x4xbf16>, %o: tensor<5xi32>) {
  // expected-error @below {{'b' has element type 'bf16'; it must be 'f16', the element type of 'a': convert one with arith}}
  %0 = greta.grouped_matmul %a, %b, %o : tensor<?x8xf16>, tensor<4x8x4xbf16>, tensor<5xi32> -> tensor<?x4xf16>
  return
}
// -----
func.func @rank(%a: tensor<?x8xf16>, %b: tensor<8x4xf16>, %o: tensor<5xi32>) {
  // expected-error @below {{'b' has rank 2; it is [E, K, N] of rank 3: reshape it}}
  %0 = greta.grouped_matmul %a, %b, %o : tensor<?x8xf16>, tensor<8x4xf16>, tensor<5xi32> -> tensor<?x4xf16>
  return
}
// -----
func.func @dynamic(%a: tensor<?x8xf16>, %b: tensor<?x8x4xf16>, %o: tensor<5xi32>) {
  // expected-error @below {{'b' is 'tensor<?x8x4xf16>'; only T, the rows of 'a', may be dynamic: give E, K and N in the type}}
  %0 = greta.grouped_matmul %a, %b, %o : tensor<?x8xf16>, tensor<?x8x4xf16>, tensor<5xi32> -> tensor<?x4xf16>
  return
}
// -----
func.func @dynamic_k(%a: tensor<?x?xf16>, %b: tensor<4x8x4xf16>, %o: tensor<5xi32>) {
  // expected-error @below {{'a' has a dynamic last dimension; only T, the rows, may be dynamic: it is 8 by 'b'}}
  %0 = greta.grouped_matmul %a, %b, %o : tensor<?x?xf16>, tensor<4x8x4xf16>, tensor<5xi32> -> tensor<?x4xf16>
  return
}
// -----
func.func @k(%a: tensor<?x8xf16>, %b: tensor<4x4x8xf16>, %o: tensor<5xi32>) {
  // expected-error @below {{'a' has 8 elements in dimension 1, not 4; it must match K of 'b'}}
  %0 = greta.grouped_matmul %a, %b, %o : tensor<?x8xf16>, tensor<4x4x8xf16>, tensor<5xi32> -> tensor<?x8xf16>
  return
}
// -----
func.func @rows(%a: tensor<5x8xf16>, %b: tensor<4x8x4xf16>, %o: tensor<5xi32>) {
  // expected-error @below {{'result' has 6 elements in dimension 0, not 5; it must match T of 'a'}}
  %0 = greta.grouped_matmul %a, %b, %o : tensor<5x8xf16>, tensor<4x8x4xf16>, tensor<5xi32> -> tensor<6x4xf16>
  return
}
// -----
func.func @offsets(%a: tensor<?x8xf16>, %b: tensor<4x8x4xf16>, %o: tensor<4xi32>) {
  // expected-error @below {{'offsets' is 'tensor<4xi32>'; it has E + 1 elements, where E is the first dimension of 'b', 1 to 4096: give where each group begins, and where the last one ends}}
  %0 = greta.grouped_matmul %a, %b, %o : tensor<?x8xf16>, tensor<4x8x4xf16>, tensor<4xi32> -> tensor<?x4xf16>
  return
}
// -----
func.func @many(%a: tensor<?x8xf16>, %b: tensor<5000x8x4xf16>, %o: tensor<5001xi32>) {
  // expected-error @below {{'offsets' is 'tensor<5001xi32>'; it has E + 1 elements, where E is the first dimension of 'b', 1 to 4096}}
  %0 = greta.grouped_matmul %a, %b, %o : tensor<?x8xf16>, tensor<5000x8x4xf16>, tensor<5001xi32> -> tensor<?x4xf16>
  return
}
// -----
func.func @wide_offsets(%a: tensor<?x8xf16>, %b: tensor<4x8x4xf16>, %o: tensor<5xi64>) {
  // expected-error @below {{'offsets' has element type 'i64'; they are i32: convert them with arith}}
  %0 = greta.grouped_matmul %a, %b, %o : tensor<?x8xf16>, tensor<4x8x4xf16>, tensor<5xi64> -> tensor<?x4xf16>
  return
}
// -----
func.func @matmul_offsets(%a: tensor<?x8xf16>, %b: tensor<8x4xf16>, %o: tensor<5xi32>) {
  // expected-error @below {{has 'offsets', and operands that are not those of greta.grouped_matmul: write that op}}
  %0 = greta.matmul %a, %b, %o : tensor<?x8xf16>, tensor<8x4xf16>, tensor<5xi32> -> tensor<?x4xf16>
  return
}
// -----
func.func @quantized(%x: tensor<?x8xf16>) {
  // expected-error @below {{'result' has element type 'i32'; it is i8, f8E4M3FN or f8E4M3FNUZ: convert another one with arith}}
  %y, %s = greta.quantize_rows %x : tensor<?x8xf16> -> tensor<?x8xi32>, tensor<?x1xf32>
  return
}
// -----
func.func @scale(%x: tensor<?x8xf16>) {
  // expected-error @below {{'scale' has type 'tensor<?xf32>'; it must be 'tensor<?x1xf32>', a number for each row}}
  %y, %s = greta.quantize_rows %x : tensor<?x8xf16> -> tensor<?x8xi8>, tensor<?xf32>
  return
}
// -----
func.func @batch(%x: tensor<2x4x8xf16>) {
  // expected-error @below {{'x' has rank 3; it is [T, K] of rank 2: reshape it}}
  %y, %s = greta.quantize_rows %x : tensor<2x4x8xf16> -> tensor<2x4x8xi8>, tensor<2x1xf32>
  return
}
// -----
func.func @precision(%a: tensor<4x8xf16>, %b: tensor<8x4xf16>) {
  // expected-error @below {{'precision' is "bf16x3" for operands of 'f16'; it is "bf16x3", for f32: leave it out}}
  %0 = greta.matmul %a, %b {precision = "bf16x3"} : tensor<4x8xf16>, tensor<8x4xf16> -> tensor<4x4xf16>
  return
}
