// Tiles of attention and of updates: what registers and shared memory hold.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 %s | FileCheck %s --check-prefix=GFX942
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:nvidia %s | FileCheck %s --check-prefix=NVIDIA
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:portable %s | FileCheck %s --check-prefix=PORTABLE

// GFX942: config = {spaces = [{columns = 64 : i64, depth = 64 : i64, rows = [1, 1, 128]}], waves = 4 : i64}
// NVIDIA: config = {grid_limit = 65535 : i64, spaces = [{columns = 64 : i64, depth = 64 : i64, rows = [1, 1, 64]}], waves = 4 : i64}
// PORTABLE: config = {grid_limit = 65535 : i64, spaces = [{columns = 64 : i64, depth = 16 : i64, rows = [1, 1, 16]}], waves = 4 : i64}
func.func @prefill(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>) -> tensor<?x8x?x64xf16> {
  %0 = greta.attention %q, %k, %v {causal} : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x8x?x64xf16>
  return %0 : tensor<?x8x?x64xf16>
}

// -----

// Few queries: heads that read the same keys are one tile.
// GFX942: rows = [1, 4, 4]}], waves = 1 : i64
func.func @decode(%q: tensor<?x8x1x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>) -> tensor<?x8x1x64xf16> {
  %0 = greta.attention %q, %k, %v {causal} : tensor<?x8x1x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x8x1x64xf16>
  return %0 : tensor<?x8x1x64xf16>
}

// -----

// GFX942: config = {spaces = [{columns = 128 : i64, rows = [16]}], waves = 4 : i64}
// PORTABLE: config = {grid_limit = 65535 : i64, spaces = [{columns = 128 : i64, rows = [4]}], waves = 2 : i64}
func.func @update(%c: tensor<?x2x?x128xf16>, %n: tensor<?x2x?x128xf16>, %p: tensor<?xi32>) -> tensor<?x2x?x128xf16> {
  %0 = greta.kv_update %c, %n, %p : tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?xi32> -> tensor<?x2x?x128xf16>
  return %0 : tensor<?x2x?x128xf16>
}
