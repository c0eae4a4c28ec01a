// The choice for skinny GEMMs: `run` elements of 16 bytes per lane, lanes and waves along K before rows of B.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:nvidia %s | FileCheck %s --check-prefix=NVIDIA
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 %s | FileCheck %s --check-prefix=GFX942
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:portable %s | FileCheck %s --check-prefix=PORTABLE

// Four rows of B per wave of 32, four waves; 1216 SIMDs want more waves, so half the workgroup's share a row; without subgroups eight lanes do.
// NVIDIA: <block_size = 128, {{.*}}spaces = [{columns = 16, depth = 256, rows = [1], run = 8, unroll = 2}], wave_size = 32
// GFX942: <block_size = 256, spaces = [{columns = 8, depth = 512, rows = [1], run = 8, unroll = 4}], wave_size = 64
// PORTABLE: <block_size = 64, {{.*}}spaces = [{columns = 16, depth = 64, rows = [1], run = 8, unroll = 4}], wave_size = 1
func.func @one(%a: tensor<1x4096xf16>, %b: tensor<14336x4096xf16>) -> tensor<1x14336xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1x4096xf16>, tensor<14336x4096xf16> -> tensor<1x14336xf16>
  return %0 : tensor<1x14336xf16>
}

// -----

// Few columns: waves along K.
// NVIDIA: spaces = [{depth = 2048, rows = [16], run = 8
func.func @few_columns(%a: tensor<16x8192xf16>, %b: tensor<64x8192xf16>) -> tensor<16x64xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<16x8192xf16>, tensor<64x8192xf16> -> tensor<16x64xf16>
  return %0 : tensor<16x64xf16>
}

// -----

// Nothing divides the depth: single elements. Few of them: lanes go on along N.
// NVIDIA: spaces = [{columns = {{[0-9]+}}, depth = 8, rows = [2], run = 1}
func.func @odd(%a: tensor<2x7xf32>, %b: tensor<100x7xf32>) -> tensor<2x100xf32> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<2x7xf32>, tensor<100x7xf32> -> tensor<2x100xf32>
  return %0 : tensor<2x100xf32>
}

// -----

// B as [K, N]: lanes along N in segments of 128 bytes.
// NVIDIA: spaces = [{columns = 64, depth = 32, rows = [1], run = 1
func.func @plain(%a: tensor<1x4096xf16>, %b: tensor<4096x14336xf16>) -> tensor<1x14336xf16> {
  %0 = greta.matmul %a, %b : tensor<1x4096xf16>, tensor<4096x14336xf16> -> tensor<1x14336xf16>
  return %0 : tensor<1x14336xf16>
}

// -----

// More rows, or an unknown number: the matrix schedule.
// NVIDIA-NOT: run =
func.func @more(%a: tensor<17x4096xf16>, %b: tensor<4096x4096xf16>, %c: tensor<?x4096xf16>) -> (tensor<17x4096xf16>, tensor<?x4096xf16>) {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<17x4096xf16>, tensor<4096x4096xf16> -> tensor<17x4096xf16>
  %1 = greta.matmul %c, %b {transpose_b} : tensor<?x4096xf16>, tensor<4096x4096xf16> -> tensor<?x4096xf16>
  return %0, %1 : tensor<17x4096xf16>, tensor<?x4096xf16>
}

// -----

// Rope of the columns: a lane has both of a pair; blocks are heads and a part of one.
// NVIDIA: spaces = [{columns = {{[0-9]+}}, depth = {{[0-9]+}}, rows = [1, {{[0-9]+}}], run = 8
func.func @rope(%a: tensor<1x4096xf16>, %b: tensor<4096x4096xf16>, %cos: tensor<1x64xf32>, %sin: tensor<1x64xf32>) -> tensor<1x32x128xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1x4096xf16>, tensor<4096x4096xf16> -> tensor<1x4096xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [1, 32, 128] : tensor<1x4096xf16> into tensor<1x32x128xf16>
  %2 = greta.rope %1, %cos, %sin {style = "neox"} : tensor<1x32x128xf16>, tensor<1x64xf32>, tensor<1x64xf32> -> tensor<1x32x128xf16>
  return %2 : tensor<1x32x128xf16>
}

// -----

// Batches: the rows are those of a GEMM, or of all of them where they share B.
// NVIDIA: rows = [1, 2], run = 8
// NVIDIA: rows = [6], run = 8
func.func @batches(%a: tensor<3x2x4096xf16>, %b: tensor<3x512x4096xf16>, %c: tensor<512x4096xf16>) -> (tensor<3x2x512xf16>, tensor<3x2x512xf16>) {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<3x2x4096xf16>, tensor<3x512x4096xf16> -> tensor<3x2x512xf16>
  %1 = greta.matmul %a, %c {transpose_b} : tensor<3x2x4096xf16>, tensor<512x4096xf16> -> tensor<3x2x512xf16>
  return %0, %1 : tensor<3x2x512xf16>, tensor<3x2x512xf16>
}

// -----

// GEMMs of one row that share a launch have many workgroups, and on NVIDIA one block of B under way, so that all have places.
// NVIDIA: spaces = [{columns = 16, depth = 256, rows = [1], run = 8}, {columns = 16, depth = 256, rows = [1], run = 8}], wave_size = 32
// GFX942: unroll = {{[248].*}}unroll = {{[248]}}
func.func @beside(%a: tensor<1x4096xf16>, %b: tensor<14336x4096xf16>, %c: tensor<4096x4096xf16>) -> (tensor<1x14336xf16>, tensor<1x4096xf16>) {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<1x4096xf16>, tensor<14336x4096xf16> -> tensor<1x14336xf16>
  %1 = greta.matmul %a, %c {transpose_b} : tensor<1x4096xf16>, tensor<4096x4096xf16> -> tensor<1x4096xf16>
  return %0, %1 : tensor<1x14336xf16>, tensor<1x4096xf16>
}
