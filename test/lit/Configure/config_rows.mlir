// The choice for row kernels, per target.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 %s | FileCheck %s --check-prefix=GFX942
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:nvidia %s | FileCheck %s --check-prefix=NVIDIA
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:lavapipe %s | FileCheck %s --check-prefix=LAVAPIPE
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:portable %s | FileCheck %s --check-prefix=PORTABLE

// 32 elements per lane for norms; a CPU loops.
// GFX942: schedule = #greta.schedule<block_size = 256, spaces = [{columns = 8192, rows = [1]}], wave_size = 64>
// NVIDIA: schedule = #greta.schedule<block_size = 256, grid_limit = 65535, spaces = [{columns = 8192, rows = [1]}], wave_size = 32>
// LAVAPIPE: schedule = #greta.schedule<block_size = 64, grid_limit = 65535, spaces = [{columns = 512, loop, rows = [1]}], wave_size = 8>
// PORTABLE: schedule = #greta.schedule<block_size = 64, grid_limit = 65535, spaces = [{columns = 512, loop, rows = [1]}], wave_size = 1>
func.func @rms_norm(%x: tensor<?x8192xf16>, %w: tensor<8192xf16>) -> tensor<?x8192xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x8192xf16>, tensor<8192xf16> -> tensor<?x8192xf16>
  return %0 : tensor<?x8192xf16>
}

// -----

// 16 for softmax.
// GFX942: schedule = #greta.schedule<block_size = 512, spaces = [{columns = 8192, rows = [1]}]
// NVIDIA: schedule = #greta.schedule<block_size = 512, {{.*}}spaces = [{columns = 8192, rows = [1]}]
func.func @softmax(%x: tensor<?x8192xf16>) -> tensor<?x8192xf16> {
  %0 = greta.softmax %x : tensor<?x8192xf16> -> tensor<?x8192xf16>
  return %0 : tensor<?x8192xf16>
}

// -----

// The longest row in registers, and one beyond.
// GFX942: spaces = [{columns = 32768, rows = [1]}]
// NVIDIA: schedule = #greta.schedule<block_size = 1024, {{.*}}spaces = [{columns = 32768, rows = [1]}]
func.func @long(%x: tensor<?x32768xf16>, %w: tensor<32768xf16>) -> tensor<?x32768xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x32768xf16>, tensor<32768xf16> -> tensor<?x32768xf16>
  return %0 : tensor<?x32768xf16>
}

// -----

// GFX942: schedule = #greta.schedule<block_size = 1024, spaces = [{columns = 16384, loop, rows = [1]}]
// NVIDIA: schedule = #greta.schedule<block_size = 1024, {{.*}}spaces = [{columns = 16384, loop, rows = [1]}]
func.func @longer(%x: tensor<?x65536xf16>, %w: tensor<65536xf16>) -> tensor<?x65536xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x65536xf16>, tensor<65536xf16> -> tensor<?x65536xf16>
  return %0 : tensor<?x65536xf16>
}

// -----

// Short rows share a workgroup: full 16-byte lanes.
// GFX942: schedule = #greta.schedule<block_size = 256, spaces = [{columns = 64, rows = [64]}]
// NVIDIA: spaces = [{columns = 64, rows = [64]}]
func.func @short(%x: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %0 = greta.softmax %x : tensor<?x64xf16> -> tensor<?x64xf16>
  return %0 : tensor<?x64xf16>
}

// -----

// Blocks are a multiple of a power of two: no padding for 5120.
// GFX942: schedule = #greta.schedule<block_size = 128, spaces = [{columns = 5120, rows = [1]}]
func.func @five(%x: tensor<?x5120xf16>, %w: tensor<5120xf16>) -> tensor<?x5120xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x5120xf16>, tensor<5120xf16> -> tensor<?x5120xf16>
  return %0 : tensor<?x5120xf16>
}

// -----

// Elementwise work: rows that blocks cut evenly, else the whole as one row.
// GFX942: schedule = #greta.schedule<block_size = 256, spaces = [{columns = 2048, rows = [1]}]
// NVIDIA: spaces = [{columns = 2048, rows = [1]}]
// LAVAPIPE: schedule = #greta.schedule<block_size = 64, {{.*}}spaces = [{columns = 512, rows = [1]}]
func.func @swiglu(%g: tensor<?x14336xf16>, %u: tensor<?x14336xf16>) -> tensor<?x14336xf16> {
  %0 = greta.swiglu %g, %u : tensor<?x14336xf16>, tensor<?x14336xf16> -> tensor<?x14336xf16>
  return %0 : tensor<?x14336xf16>
}

// -----

// GFX942: spaces = [{columns = 2048, flat}]
func.func @odd(%g: tensor<?x1001xf16>, %u: tensor<?x1001xf16>) -> tensor<?x1001xf16> {
  %0 = greta.swiglu %g, %u : tensor<?x1001xf16>, tensor<?x1001xf16> -> tensor<?x1001xf16>
  return %0 : tensor<?x1001xf16>
}

// -----

// Heads before tokens; both spaces share the workgroup's size.
// GFX942: schedule = #greta.schedule<block_size = 256, spaces = [{columns = 64, rows = [1, 32]}, {columns = 64, rows = [4, 8]}]
func.func @rope_pair(%q: tensor<?x32x128xf16>, %k: tensor<?x8x128xf16>, %cos: tensor<?x64xf32>, %sin: tensor<?x64xf32>) -> (tensor<?x32x128xf16>, tensor<?x8x128xf16>) {
  %0 = greta.rope %q, %cos, %sin {style = "neox"} : tensor<?x32x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x32x128xf16>
  %1 = greta.rope %k, %cos, %sin {style = "neox"} : tensor<?x8x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x8x128xf16>
  return %0, %1 : tensor<?x32x128xf16>, tensor<?x8x128xf16>
}

// -----

// Long rows without reductions are cut.
// GFX942: schedule = #greta.schedule<block_size = 256, spaces = [{columns = 2048, rows = [1]}]
// LAVAPIPE: schedule = #greta.schedule<block_size = 64, {{.*}}spaces = [{columns = 512, rows = [1]}]
func.func @bias(%x: tensor<?x14336xf16>, %b: tensor<14336xf16>) -> tensor<?x14336xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x14336xf16>
  %e = tensor.empty(%n) : tensor<?x14336xf16>
  %0 = linalg.broadcast ins(%b : tensor<14336xf16>) outs(%e : tensor<?x14336xf16>) dimensions = [0]
  %1 = arith.addf %x, %0 : tensor<?x14336xf16>
  return %1 : tensor<?x14336xf16>
}

// -----

// GFX942: schedule = #greta.schedule<block_size = 256, spaces = [{columns = 2048, rows = [1, 1]}]
func.func @long_rope(%x: tensor<?x2x32768xf16>, %t: tensor<?x16384xf32>) -> tensor<?x2x32768xf16> {
  %0 = greta.rope %x, %t, %t {style = "neox"} : tensor<?x2x32768xf16>, tensor<?x16384xf32>, tensor<?x16384xf32> -> tensor<?x2x32768xf16>
  return %0 : tensor<?x2x32768xf16>
}

// -----

// A row behind a GEMM has the GEMM's lanes, whose last workgroup then goes on with it (greta-tile-tail), if their registers hold the row: 256 lanes do so here, 128 do not.
// GFX942: schedule = #greta.schedule<block_size = 256, {{.*}}run = 8
// GFX942: schedule = #greta.schedule<block_size = 256, spaces = [{columns = 8192, rows = [1]}]
// NVIDIA: schedule = #greta.schedule<block_size = 128, {{.*}}run = 8
// NVIDIA: schedule = #greta.schedule<block_size = 512, {{.*}}spaces = [{columns = 8192, rows = [1]}]
func.func @behind(%x: tensor<1x512xf16>, %w: tensor<8192x512xf16>) -> tensor<1x8192xf16> {
  %0 = greta.matmul %x, %w {transpose_b} : tensor<1x512xf16>, tensor<8192x512xf16> -> tensor<1x8192xf16>
  %1 = greta.softmax %0 : tensor<1x8192xf16> -> tensor<1x8192xf16>
  return %1 : tensor<1x8192xf16>
}
