// RUN: greta-opt --split-input-file --verify-diagnostics --greta-fuse %s

func.func @generic(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %e = tensor.empty() : tensor<4x64xf32>
  // expected-error@+1 {{has no kernel; write it with greta ops, elementwise arith and math, linalg.reduce, broadcast and transpose, and tensor.expand_shape, collapse_shape or extract_slice, or compile for the target 'host'}}
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

func.func @other_dimension(%x: tensor<4x64xf32>, %f: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error@+1 {{reduces dimensions [0] of 'tensor<4x64xf32>'; kernels reduce the last one: transpose before, or reduce one after the other}}
  %0 = linalg.reduce { arith.addf } ins(%x : tensor<4x64xf32>) outs(%f : tensor<64xf32>) dimensions = [0]
  return %0 : tensor<64xf32>
}

// -----

func.func @narrow(%x: tensor<4x64xf16>, %f: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error@+1 {{combines elements of 'f16'; they are f32, i32 or i1: convert before}}
  %0 = linalg.reduce { arith.addf } ins(%x : tensor<4x64xf16>) outs(%f : tensor<4xf16>) dimensions = [1]
  return %0 : tensor<4xf16>
}

// -----

func.func @effects(%x: tensor<4x64xf32>, %f: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.reduce ins(%x : tensor<4x64xf32>) outs(%f : tensor<4xf32>) dimensions = [1]
    (%a: f32, %b: f32) {
      %sum = arith.addf %a, %b : f32
      // expected-error@+1 {{combines elements of a linalg.reduce; it may be arith and math on f32, i32 and i1 that is defined for any operands}}
      %made = tensor.empty() : tensor<4xf32>
      linalg.yield %sum : f32
    }
  return %0 : tensor<4xf32>
}

// -----

func.func @wide(%x: tensor<4x64xf32>, %f: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.reduce ins(%x : tensor<4x64xf32>) outs(%f : tensor<4xf32>) dimensions = [1]
    (%a: f32, %b: f32) {
      // expected-error@+1 {{combines elements of a linalg.reduce; it may be arith and math on f32, i32 and i1 that is defined for any operands}}
      %wide = arith.extf %a : f32 to f64
      %narrow = arith.truncf %wide : f64 to f32
      %sum = arith.addf %narrow, %b : f32
      linalg.yield %sum : f32
    }
  return %0 : tensor<4xf32>
}

// -----

func.func @quotient(%x: tensor<4x64xi32>, %f: tensor<4xi32>) -> tensor<4xi32> {
  %0 = linalg.reduce ins(%x : tensor<4x64xi32>) outs(%f : tensor<4xi32>) dimensions = [1]
    (%a: i32, %b: i32) {
      // expected-error@+1 {{combines elements of a linalg.reduce; it may be arith and math on f32, i32 and i1 that is defined for any operands}}
      %parts = arith.divui %a, %b : i32
      linalg.yield %parts : i32
    }
  return %0 : tensor<4xi32>
}

// -----

func.func @outside(%x: tensor<?x64xi32>, %f: tensor<?xi32>) -> tensor<?xi32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %x, %c0 : tensor<?x64xi32>
  // expected-error@+1 {{combines elements with a value from outside of its region; there it takes constants alone: make the value another input}}
  %0 = linalg.reduce ins(%x : tensor<?x64xi32>) outs(%f : tensor<?xi32>) dimensions = [1]
    (%a: i32, %b: i32) {
      %rows = arith.index_cast %t : index to i32
      %scaled = arith.muli %a, %rows : i32
      %sum = arith.addi %scaled, %b : i32
      linalg.yield %sum : i32
    }
  return %0 : tensor<?xi32>
}

// -----

func.func @without_init(%x: tensor<4x64xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has no contents, yet they are read; fill it}}
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.reduce { arith.addf } ins(%x : tensor<4x64xf32>) outs(%e : tensor<4xf32>) dimensions = [1]
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
