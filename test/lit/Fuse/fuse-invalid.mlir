// RUN: greta-opt --split-input-file --verify-diagnostics --greta-fuse %s

func.func @generic(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %e = tensor.empty() : tensor<4x64xf32>
  // expected-error@+1 {{has no kernel; write it with greta ops, elementwise arith and math, linalg.broadcast and transpose, and tensor.expand_shape, collapse_shape or extract_slice, or compile for the target 'host'}}
  %0 = linalg.copy ins(%x : tensor<4x64xf32>) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
  return %0 : tensor<4x64xf32>
}

// -----

// expected-error@+1 {{has element type 'f64', which no GPU kernel takes; use f32, f16, bf16, i8, i32 or an 8-bit float, or compile for the target 'host'}}
func.func @double(%x: tensor<4x64xf64>) -> tensor<4x64xf64> {
  %0 = arith.addf %x, %x : tensor<4x64xf64>
  return %0 : tensor<4x64xf64>
}

// -----

func.func @start(%x: tensor<4x64xf32>) -> tensor<4xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%one : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{has no kernel; it takes one tensor of f32 or i32 along its last dimension, one addition, multiplication, maximum or minimum, and a linalg.fill of what that does not change: convert or transpose before, and combine with another start after}}
  %0 = linalg.reduce { arith.addf } ins(%x : tensor<4x64xf32>) outs(%f : tensor<4xf32>) dimensions = [1]
  return %0 : tensor<4xf32>
}

// -----

func.func @data(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{holds different elements; a kernel's constants are splats: pass the data as an argument}}
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = arith.addf %x, %c : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @uninitialised(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  // expected-error@+1 {{has no contents, yet they are read; fill it}}
  %e = tensor.empty() : tensor<4x64xf32>
  %0 = arith.addf %x, %e : tensor<4x64xf32>
  return %0 : tensor<4x64xf32>
}

// -----

// expected-error@+1 {{has control flow; kernels are made of functions of one block}}
func.func @branches(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  llvm.br ^bb1
^bb1:
  return %x : tensor<4x64xf32>
}

// -----

func.func @truth(%x: tensor<4x64xf32>) -> tensor<4x64xi1> {
  // expected-error@+1 {{has a result of i1 that leaves its kernel; select or convert to i8 before}}
  %0 = arith.cmpf ogt, %x, %x : tensor<4x64xf32>
  return %0 : tensor<4x64xi1>
}

// -----

// expected-error@+1 {{has argument 0 of i1; pass i8 and compare it with zero}}
func.func @mask(%m: tensor<4x64xi1>, %x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %0 = arith.select %m, %x, %x : tensor<4x64xi1>, tensor<4x64xf32>
  return %0 : tensor<4x64xf32>
}

// -----

func.func @every_other(%x: tensor<4x64xf32>) -> tensor<4x32xf32> {
  // expected-error@+1 {{has strides other than 1; make the step a dimension with tensor.expand_shape and take a slice of that}}
  %0 = tensor.extract_slice %x[0, 0] [4, 32] [1, 2] : tensor<4x64xf32> to tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}

// -----

func.func @somewhere(%x: tensor<4x64xf32>) -> tensor<4x32xf32> {
  %c = arith.constant 0 : index
  %n = tensor.dim %x, %c : tensor<4x64xf32>
  // expected-error@+1 {{begins where a kernel cannot know; give it a constant offset, or pass the slice as an argument}}
  %0 = tensor.extract_slice %x[0, %n] [4, 32] [1, 1] : tensor<4x64xf32> to tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}

// -----

func.func @dynamic_columns(%x: tensor<4x?xf32>) -> tensor<4x32xf32> {
  // expected-error@+1 {{takes a part of dimension 1, whose extent is dynamic; take all of it, or give its extent in the type}}
  %0 = tensor.extract_slice %x[0, 0] [4, 32] [1, 1] : tensor<4x?xf32> to tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}

// -----

func.func @dynamic_part(%x: tensor<?x64xf32>, %y: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %c = arith.constant 0 : index
  %n = tensor.dim %y, %c : tensor<?x32xf32>
  // expected-error@+1 {{takes a part of dimension 0, whose extent is dynamic; take all of it, or give its extent in the type}}
  %0 = tensor.extract_slice %x[0, 32] [%n, 32] [1, 1] : tensor<?x64xf32> to tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}

// -----

func.func @dynamic_size(%x: tensor<4x64xf32>, %y: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %c = arith.constant 0 : index
  %n = tensor.dim %y, %c : tensor<?x32xf32>
  // expected-error@+1 {{takes a dynamic part of dimension 0; give the size in the type}}
  %0 = tensor.extract_slice %x[0, 0] [%n, 64] [1, 1] : tensor<4x64xf32> to tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

func.func @turned_rows(%x: tensor<4x64xf32>) -> tensor<64x4xf32> {
  %e = tensor.empty() : tensor<64x4xf32>
  // expected-error@+1 {{moves the last dimension, whose elements kernels read as neighbours; leave it where it is, or say 'transpose_a' or 'transpose_b' of a GEMM}}
  %0 = linalg.transpose ins(%x : tensor<4x64xf32>) outs(%e : tensor<64x4xf32>) permutation = [1, 0]
  return %0 : tensor<64x4xf32>
}
