// RUN: greta-opt --split-input-file --verify-diagnostics --greta-annotate-shapes %s

// expected-error@+1 {{has argument 1 of type 'f32'; arguments are ranked tensors: pass a scalar as tensor<f32>}}
func.func @scalar(%x: tensor<?x64xf16>, %s: f32) -> tensor<?x64xf16> {
  return %x : tensor<?x64xf16>
}

// -----

func.func @unequal(%x: tensor<?x64xf32>, %y: tensor<4x64xf32>, %z: tensor<8x64xf32>) -> tensor<?x64xf32> {
  %0 = tensor.cast %y : tensor<4x64xf32> to tensor<?x64xf32>
  %1 = tensor.cast %z : tensor<8x64xf32> to tensor<?x64xf32>
  %2 = arith.addf %x, %0 : tensor<?x64xf32>
  // expected-error@+1 {{has extents of 8 and 4 where both must be the same; make the types agree}}
  %3 = arith.addf %2, %1 : tensor<?x64xf32>
  return %3 : tensor<?x64xf32>
}

// -----

// expected-error@+1 {{has result 0 with an extent that follows from no argument; derive it from a tensor.dim of an argument}}
func.func @unknown(%n: tensor<index>) -> tensor<?xf32> {
  %0 = tensor.extract %n[] : tensor<index>
  %1 = tensor.empty(%0) : tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

// 2^9 factors, less one, are as many operations.
// expected-error@+1 {{has result 0 with an extent of more than 256 operations; make it a dimension of an argument}}
func.func @large(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %0 = tensor.dim %x, %c0 : tensor<?xf32>
  %1 = arith.muli %0, %0 : index
  %2 = arith.muli %1, %1 : index
  %3 = arith.muli %2, %2 : index
  %4 = arith.muli %3, %3 : index
  %5 = arith.muli %4, %4 : index
  %6 = arith.muli %5, %5 : index
  %7 = arith.muli %6, %6 : index
  %8 = arith.muli %7, %7 : index
  %9 = arith.muli %8, %8 : index
  %y = tensor.empty(%9) : tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

func.func @no_such_dimension(%x: tensor<?x64xf16>) -> tensor<?xf16> {
  %c2 = arith.constant 2 : index
  // expected-error@+1 {{asks for dimension 2 of a tensor of rank 2; dimensions count from 0}}
  %n = tensor.dim %x, %c2 : tensor<?x64xf16>
  %c = arith.constant 1.0 : f16
  %0 = tensor.splat %c[%n] : tensor<?xf16>
  return %0 : tensor<?xf16>
}

// -----

// expected-error@+1 {{returns a 'index'; results are ranked tensors}}
func.func @index(%x: tensor<?x64xf16>) -> index {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf16>
  return %n : index
}

// -----

// expected-error@+1 {{has argument 0 of type 'tensor<?x4xf32>' with greta.shape = affine_map<()[s0] -> (s0, 5)>; it is a map from the function's symbols to the extents}}
func.func @not_its_shape(%x: tensor<?x4xf32> {greta.shape = affine_map<()[n] -> (n, 5)>}) -> tensor<?x4xf32> {
  return %x : tensor<?x4xf32>
}

// -----

// expected-error@+1 {{has a shape, a grid or a scalar over 2 symbols; its arguments define 1, one for each integer and each dynamic dimension that no greta.shape gives by earlier ones}}
func.func @no_such_symbol(%x: tensor<?x4xf32>, %y: tensor<?xf32> {greta.shape = affine_map<()[n, m] -> (m + n)>}) -> tensor<?x4xf32> {
  return %x : tensor<?x4xf32>
}
