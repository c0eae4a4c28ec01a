// RUN: greta-opt --split-input-file --verify-diagnostics --greta-fuse %s

func.func @generic(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %e = tensor.empty() : tensor<4x64xf32>
  // expected-error@+1 {{has no kernel; write it with greta ops, elementwise arith and math, linalg.broadcast and tensor.expand_shape or collapse_shape, or compile for the target 'host'}}
  %0 = linalg.transpose ins(%x : tensor<4x64xf32>) outs(%e : tensor<4x64xf32>) permutation = [0, 1]
  return %0 : tensor<4x64xf32>
}

// -----

// expected-error@+1 {{has element type 'f64', which no GPU kernel takes; use f32, f16, bf16, i8, i32 or an 8-bit float, or compile for the target 'host'}}
func.func @double(%x: tensor<4x64xf64>) -> tensor<4x64xf64> {
  %0 = arith.addf %x, %x : tensor<4x64xf64>
  return %0 : tensor<4x64xf64>
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
