// Skinny GEMMs: SIMT FMAs, or matrix instructions whose operands come straight from memory, where that is faster by what limits each.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:nvidia %s | FileCheck %s --check-prefix=NVIDIA
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:rdna3 %s | FileCheck %s --check-prefix=RDNA3
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 %s | FileCheck %s --check-prefix=GFX942

// Eight rows of SIMT FMAs issue for longer than memory takes; layouts that nobody knows keep them. On the H200 four waves lie along K, two along N; on
// AMD's chips operands go through shared memory, as those of more rows.
// NVIDIA: columns = 64, depth = 256, {{.*}}pipeline = #greta_tile.pipeline<stages = 0, slice = 64>, rows = [16]
// RDNA3: rows = [8], run = 8
// GFX942: columns = 96, depth = 64, {{.*}}pipeline = #greta_tile.pipeline<stages = 2, {{.*}}rows = [16]
func.func @eight(%a: tensor<8x4096xf16>, %b: tensor<14336x4096xf16>) -> tensor<8x14336xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<8x4096xf16>, tensor<14336x4096xf16> -> tensor<8x14336xf16>
  return %0 : tensor<8x14336xf16>
}

// -----

// Four do not.
// NVIDIA: rows = [4], run = 8
func.func @four(%a: tensor<4x4096xf16>, %b: tensor<14336x4096xf16>) -> tensor<4x14336xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<4x4096xf16>, tensor<14336x4096xf16> -> tensor<4x14336xf16>
  return %0 : tensor<4x14336xf16>
}

// -----

// Packed weights: a slice is one load of 16 bytes a lane; the instruction is that of the transposed product, with A as the device's B.
// NVIDIA: columns = 32, depth = 512, matrix = #greta_tile.matrix<"coopmat" swapped = true, {{.*}}pipeline = #greta_tile.pipeline<stages = 0, slice = 128>, rows = [8]
func.func @packed(%a: tensor<8x4096xf16>, %q: tensor<14336x512xi32>, %scales: tensor<14336x32xf16>, %zeros: tensor<14336x4xi32>) -> tensor<8x14336xf16> {
  %b = greta.dequant %q, %scales, %zeros {group = 128} : tensor<14336x512xi32>, tensor<14336x32xf16>, tensor<14336x4xi32> -> tensor<14336x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<8x4096xf16>, tensor<14336x4096xf16> -> tensor<8x14336xf16>
  return %0 : tensor<8x14336xf16>
}

// -----

// One row of 8 bits has a tile that was measured of 8 bits, one of 4 bits that of 4.
// NVIDIA: columns = 8, depth = 1024, rows = [1], run = 16, unroll = 4
func.func @eight_bits(%a: tensor<1x4096xf16>, %q: tensor<4096x1024xi32>, %scales: tensor<4096x128xf16>, %residual: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %b = greta.dequant %q, %scales {format = "q8_0", group = 32} : tensor<4096x1024xi32>, tensor<4096x128xf16> -> tensor<4096x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1x4096xf16>, tensor<4096x4096xf16> -> tensor<1x4096xf16>
  %1 = arith.extf %0 : tensor<1x4096xf16> to tensor<1x4096xf32>
  %2 = arith.addf %residual, %1 : tensor<1x4096xf32>
  return %2 : tensor<1x4096xf32>
}
// NVIDIA: columns = 32, depth = 1024, rows = [1], run = 16, unroll = 4
func.func @four_bits(%a: tensor<1x4096xf16>, %q: tensor<4096x512xi32>, %scales: tensor<4096x128xf16>, %residual: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %b = greta.dequant %q, %scales {format = "q4_0", group = 32} : tensor<4096x512xi32>, tensor<4096x128xf16> -> tensor<4096x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1x4096xf16>, tensor<4096x4096xf16> -> tensor<1x4096xf16>
  %1 = arith.extf %0 : tensor<1x4096xf16> to tensor<1x4096xf32>
  %2 = arith.addf %residual, %1 : tensor<1x4096xf32>
  return %2 : tensor<1x4096xf32>
}

// Rows in twos have a tile of their own, and so do 6 bits.
// NVIDIA: columns = 16, depth = 2048, rows = [1], run = 32, unroll = 2
func.func @rows_in_twos(%a: tensor<1x4096xf16>, %q: tensor<4096x512xi32>, %scales: tensor<4096x128xf16>, %residual: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %b = greta.dequant %q, %scales {format = "q4_0_interleaved", group = 32} : tensor<4096x512xi32>, tensor<4096x128xf16> -> tensor<4096x4096xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1x4096xf16>, tensor<4096x4096xf16> -> tensor<1x4096xf16>
  %1 = arith.extf %0 : tensor<1x4096xf16> to tensor<1x4096xf32>
  %2 = arith.addf %residual, %1 : tensor<1x4096xf32>
  return %2 : tensor<1x4096xf32>
}
// NVIDIA: columns = 8, depth = 2048, rows = [1], run = 32, unroll = 4
func.func @six_bits(%a: tensor<1x14336xf16>, %q: tensor<4096x1792xi32>, %high: tensor<4096x896xi32>, %scales: tensor<4096x896xf16>, %residual: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %b = greta.dequant %q, %high, %scales {format = "q6_k", group = 16} : tensor<4096x1792xi32>, tensor<4096x896xi32>, tensor<4096x896xf16> -> tensor<4096x14336xf16>
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1x14336xf16>, tensor<4096x14336xf16> -> tensor<1x4096xf16>
  %1 = arith.extf %0 : tensor<1x4096xf16> to tensor<1x4096xf32>
  %2 = arith.addf %residual, %1 : tensor<1x4096xf32>
  return %2 : tensor<1x4096xf32>
}

// -----

// The compiler takes the tile that was measured (Measured.json); the model would take 64x128.
// NVIDIA: columns = 64, depth = 64, group = 8, {{.*}}rows = [64]
func.func @measured(%a: tensor<1024x1024xf16>, %b: tensor<1024x1024xf16>) -> tensor<1024x1024xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1024x1024xf16>, tensor<1024x1024xf16> -> tensor<1024x1024xf16>
  return %0 : tensor<1024x1024xf16>
}

// -----

// `instruction` asks for them.
// NVIDIA: columns = 32, depth = 64, {{.*}}pipeline = #greta_tile.pipeline<stages = 0, slice = 32>, rows = [16]
func.func @asked(%a: tensor<3x256xf16>, %b: tensor<64x256xf16>) -> tensor<3x64xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {"vulkan:nvidia" = {instruction = [16, 8, 16], tile = [16, 32, 64], waves = 4, stages = 0, slice = 32}}}
      : tensor<3x256xf16>, tensor<64x256xf16> -> tensor<3x64xf16>
  return %0 : tensor<3x64xf16>
}

// -----

// Heads, too: whole ones are a tile's columns; the shape was measured on the H200.
// NVIDIA: columns = 64, depth = 256, matrix = #greta_tile.matrix<"coopmat"{{.*}}pipeline = #greta_tile.pipeline<stages = 0, slice = 128>, rows = [16, 1]
// GFX942: rows = [8, 1], run = 8
func.func @heads(%x: tensor<8x4096xf16>, %w: tensor<4096x4096xf16>, %cos: tensor<8x64xf32>, %sin: tensor<8x64xf32>) -> tensor<8x32x128xf16> {
  %y = greta.matmul %x, %w {transpose_b} : tensor<8x4096xf16>, tensor<4096x4096xf16> -> tensor<8x4096xf16>
  %heads = tensor.expand_shape %y [[0], [1, 2]] output_shape [8, 32, 128] : tensor<8x4096xf16> into tensor<8x32x128xf16>
  %0 = greta.rope %heads, %cos, %sin {style = "neox"} : tensor<8x32x128xf16>, tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x32x128xf16>
  return %0 : tensor<8x32x128xf16>
}

// -----

// A dynamic M that is expected to be small has the tile of the most rows; without knowledge it is a prompt's.
// NVIDIA: rows = [4], run = 8
// RDNA3: rows = [4], run = 8
// GFX942: rows = [4], run = 8
func.func @expected(%a: tensor<?x4096xf16>, %b: tensor<14336x4096xf16>) -> tensor<?x14336xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.rows = 4} : tensor<?x4096xf16>, tensor<14336x4096xf16> -> tensor<?x14336xf16>
  return %0 : tensor<?x14336xf16>
}

// -----

// NVIDIA: rows = [{{[0-9][0-9][0-9]}}]
// GFX942: rows = [{{[0-9][0-9][0-9]}}]
func.func @unknown(%a: tensor<?x4096xf16>, %b: tensor<14336x4096xf16>) -> tensor<?x14336xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x4096xf16>, tensor<14336x4096xf16> -> tensor<?x14336xf16>
  return %0 : tensor<?x14336xf16>
}
