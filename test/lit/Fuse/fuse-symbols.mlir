// The dynamic dimensions that are equal share a symbol; others follow by expressions.
// RUN: greta-opt --split-input-file --greta-annotate-shapes %s | FileCheck %s

// CHECK-LABEL: func.func @same
// CHECK-SAME: greta.shapes = {{\[\[}}"d0", 64], ["d0", 64], [64], ["d0", 64]]
// CHECK-SAME: greta.symbols = {{\[\[}}0, 0]]
func.func @same(%x: tensor<?x64xf16>, %r: tensor<?x64xf16>, %w: tensor<64xf16>) -> tensor<?x64xf16> {
  %0 = arith.addf %x, %r : tensor<?x64xf16>
  %1 = greta.rms_norm %0, %w {eps = 1.0e-5 : f32} : tensor<?x64xf16>, tensor<64xf16> -> tensor<?x64xf16>
  return %1 : tensor<?x64xf16>
}

// -----

// CHECK-LABEL: func.func @two_symbols
// CHECK-SAME: greta.shapes = {{\[\[}}"d0", 64], ["d1", 64], ["d1", 64], ["d0", 64]]
// CHECK-SAME: greta.symbols = {{\[\[}}0, 0], [1, 0]]
func.func @two_symbols(%x: tensor<?x64xf16>, %y: tensor<?x64xf16>) -> (tensor<?x64xf16>, tensor<?x64xf16>) {
  %0 = greta.softmax %x : tensor<?x64xf16> -> tensor<?x64xf16>
  %1 = greta.softmax %y : tensor<?x64xf16> -> tensor<?x64xf16>
  return %1, %0 : tensor<?x64xf16>, tensor<?x64xf16>
}

// -----

// CHECK-LABEL: func.func @static_wins
// CHECK-SAME: greta.shapes = {{\[\[}}4, 64], [4, 64], [4, 64]], greta.symbols = []
func.func @static_wins(%x: tensor<?x64xf32>, %y: tensor<4x64xf32>) -> tensor<?x64xf32> {
  %0 = tensor.cast %y : tensor<4x64xf32> to tensor<?x64xf32>
  %1 = arith.addf %x, %0 : tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}

// -----

// CHECK-LABEL: func.func @rope
// CHECK-SAME: greta.shapes = {{\[\[}}"d0", 8, 64], ["d0", 32], ["d0", 32], ["d0", 8, 64]]
func.func @rope(%x: tensor<?x8x64xf16>, %cos: tensor<?x32xf32>, %sin: tensor<?x32xf32>) -> tensor<?x8x64xf16> {
  %0 = greta.rope %x, %cos, %sin {style = "neox"} : tensor<?x8x64xf16>, tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x8x64xf16>
  return %0 : tensor<?x8x64xf16>
}

// -----

// CHECK-LABEL: func.func @matmul
// CHECK-SAME: greta.shapes = {{\[\[}}"d0", "d1"], ["d2", "d0"], ["d2", "d1"]]
// CHECK-SAME: greta.symbols = {{\[\[}}0, 0], [0, 1], [1, 0]]
func.func @matmul(%b: tensor<?x?xf16>, %a: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %0 = greta.matmul %a, %b : tensor<?x?xf16>, tensor<?x?xf16> -> tensor<?x?xf16>
  return %0 : tensor<?x?xf16>
}

// -----

// CHECK-LABEL: func.func @reshapes
// CHECK-SAME: greta.shapes = {{\[\[}}"d0", 256], ["d0", 4, 64], {{\[\[}}"*", "d0", 4], 64]]
func.func @reshapes(%x: tensor<?x256xf16>) -> (tensor<?x4x64xf16>, tensor<?x64xf16>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x256xf16>
  %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 4, 64] : tensor<?x256xf16> into tensor<?x4x64xf16>
  %1 = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<?x4x64xf16> into tensor<?x64xf16>
  return %0, %1 : tensor<?x4x64xf16>, tensor<?x64xf16>
}

// -----

// CHECK-LABEL: func.func @broadcast
// CHECK-SAME: greta.shapes = {{\[\[}}64], ["d0", 64], ["d0", 64]]
func.func @broadcast(%w: tensor<64xf16>, %x: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf16>
  %0 = tensor.empty(%n) : tensor<?x64xf16>
  %1 = linalg.broadcast ins(%w : tensor<64xf16>) outs(%0 : tensor<?x64xf16>) dimensions = [0]
  return %1 : tensor<?x64xf16>
}

// -----

greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>) attributes {waves = 1 : i32} {
  greta_tile.return
}

// A launch says what its result's extents are, greta.shape what an argument's are; an extent that it says is the next symbol defines that.
// CHECK-LABEL: func.func @launches
// CHECK-SAME: greta.shapes = {{\[\[}}"d0", "d1"], ["d1", "d2"], ["d0", ["ceildiv", "d2", 2]]]
// CHECK-SAME: greta.symbols = {{\[\[}}0, 0], [0, 1], [1, 1]]
func.func @launches(%x: tensor<?x?xf32>, %y: tensor<?x?xf32> {greta.shape = affine_map<()[m, k, n] -> (k, n)>}) -> tensor<?x?xf32> {
  %0 = greta_tile.launch @k grid affine_map<()[m, k, n] -> (m)> scalars affine_map<() -> ()> (%x, %y) shapes [affine_map<()[m, k, n] -> (m, n ceildiv 2)>]
       : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// `begins` has one element more than `lengths`, whichever of them comes first.
// CHECK-LABEL: func.func @begins_behind
// CHECK-SAME: greta.shapes = {{\[\[}}"d0", 8, 64], ["d1", 16, 2, 64], ["d2", "d3"], ["d2"], {{\[\[}}"+", "d2", 1]], ["d0", 8, 64]]
func.func @begins_behind(%q: tensor<?x8x64xf16>, %k: tensor<?x16x2x64xf16>, %t: tensor<?x?xi32>, %l: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?x8x64xf16> {
  %0 = greta.paged_attention %q, %k, %k, %t, %l begins(%b) : tensor<?x8x64xf16>, tensor<?x16x2x64xf16>, tensor<?x16x2x64xf16>, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x8x64xf16>
  return %0 : tensor<?x8x64xf16>
}

// -----

// CHECK-LABEL: func.func @begins_before
// CHECK-SAME: greta.shapes = {{\[\[}}"d0"], {{\[\[}}"+", "d0", -1], "d1"], {{\[\[}}"+", "d0", -1]], ["d2", 8, 64], ["d3", 16, 2, 64], ["d2", 8, 64]]
func.func @begins_before(%b: tensor<?xi32>, %t: tensor<?x?xi32>, %l: tensor<?xi32>, %q: tensor<?x8x64xf16>, %k: tensor<?x16x2x64xf16>) -> tensor<?x8x64xf16> {
  %0 = greta.paged_attention %q, %k, %k, %t, %l begins(%b) : tensor<?x8x64xf16>, tensor<?x16x2x64xf16>, tensor<?x16x2x64xf16>, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x8x64xf16>
  return %0 : tensor<?x8x64xf16>
}
