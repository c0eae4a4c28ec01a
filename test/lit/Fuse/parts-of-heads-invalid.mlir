// Tiles that are no parts of heads, and such of operands in shared memory, where tiles are whole heads.
// RUN: greta-opt --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(greta-fuse{parts-of-heads=true},greta-configure{target=vulkan:nvidia}))' %s

func.func @third(%x: tensor<32x256xf16>, %q: tensor<384x32xi32>, %s: tensor<384x8xf16>, %cos: tensor<32x48xf32>, %sin: tensor<32x48xf32>) -> tensor<32x4x96xf16> {
  %w = greta.dequant %q, %s {group = 32} : tensor<384x32xi32>, tensor<384x8xf16> -> tensor<384x256xf16>
  // expected-error @below {{has a 'greta.config' that does not fit: its tile does not take heads of 96 columns apart evenly}}
  %0 = greta.matmul %x, %w {transpose_b, greta.config = {instruction = [8, 16, 16], tile = [32, 64, 128], slice = 64, waves = 2, stages = 0}} : tensor<32x256xf16>, tensor<384x256xf16> -> tensor<32x384xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [32, 4, 96] : tensor<32x384xf16> into tensor<32x4x96xf16>
  %2 = greta.rope %1, %cos, %sin {style = "neox"} : tensor<32x4x96xf16>, tensor<32x48xf32>, tensor<32x48xf32> -> tensor<32x4x96xf16>
  return %2 : tensor<32x4x96xf16>
}

// -----

func.func @staged(%x: tensor<32x256xf16>, %w: tensor<512x256xf16>, %cos: tensor<32x64xf32>, %sin: tensor<32x64xf32>) -> tensor<32x4x128xf16> {
  // expected-error @below {{has a 'greta.config' that does not fit: its tile does not take heads of 128 columns apart evenly}}
  %0 = greta.matmul %x, %w {transpose_b, greta.config = {instruction = [16, 8, 16], tile = [32, 64, 64], slice = 64, waves = 2, stages = 1}} : tensor<32x256xf16>, tensor<512x256xf16> -> tensor<32x512xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [32, 4, 128] : tensor<32x512xf16> into tensor<32x4x128xf16>
  %2 = greta.rope %1, %cos, %sin {style = "neox"} : tensor<32x4x128xf16>, tensor<32x64xf32>, tensor<32x64xf32> -> tensor<32x4x128xf16>
  return %2 : tensor<32x4x128xf16>
}
