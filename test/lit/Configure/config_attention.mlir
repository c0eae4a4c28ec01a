// Tiles of attention and of updates: what registers and shared memory hold.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 %s | FileCheck %s --check-prefix=GFX942
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx950 %s | FileCheck %s --check-prefix=GFX950
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:nvidia %s | FileCheck %s --check-prefix=NVIDIA
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:portable %s | FileCheck %s --check-prefix=PORTABLE
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:rdna3 %s | FileCheck %s --check-prefix=RDNA3

// GFX942: schedule = #greta.schedule<spaces = [{columns = 64, depth = 64, rows = [1, 1, 256]}], waves = 8>
// NVIDIA: schedule = #greta.schedule<grid_limit = 65535, spaces = [{columns = 64, depth = 64, rows = [1, 1, 128]}], waves = 4>
// PORTABLE: schedule = #greta.schedule<grid_limit = 65535, spaces = [{columns = 64, depth = 16, rows = [1, 1, 16]}], waves = 4>
// RDNA3: depth = 64, rows = [1, 1, 128]}], waves = 8>
func.func @prefill(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>) -> tensor<?x8x?x64xf16> {
  %0 = greta.attention %q, %k, %v {causal} : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x8x?x64xf16>
  return %0 : tensor<?x8x?x64xf16>
}

// -----

// Few queries: heads that read the same keys are one tile, waves have keys of their own, and workgroups share the keys.
// GFX942: schedule = #greta.schedule<spaces = [{columns = 64, depth = 32, rows = [1, 4, 4], split = 304, unroll = 4}], waves = 4>
// NVIDIA: depth = 32, rows = [1, 4, 2], split = 264, unroll = 4}], waves = 4>
func.func @decode(%q: tensor<?x8x1x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>) -> tensor<?x8x1x64xf16> {
  %0 = greta.attention %q, %k, %v {causal} : tensor<?x8x1x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x8x1x64xf16>
  return %0 : tensor<?x8x1x64xf16>
}

// -----

// Blocks have whole tiles of instructions; beyond 256 elements 64 more at a time.
// GFX942: columns = 80, depth = 64, rows = [1, 1, 256]}], waves = 8>
// PORTABLE: columns = 80,
func.func @odd(%q: tensor<?x2x?x72xf16>, %k: tensor<?x2x?x72xf16>, %v: tensor<?x2x?x72xf16>) -> tensor<?x2x?x72xf16> {
  %0 = greta.attention %q, %k, %v : tensor<?x2x?x72xf16>, tensor<?x2x?x72xf16>, tensor<?x2x?x72xf16> -> tensor<?x2x?x72xf16>
  return %0 : tensor<?x2x?x72xf16>
}

// -----

// GFX942: columns = 320,
func.func @large(%q: tensor<?x2x?x264xf16>, %k: tensor<?x2x?x264xf16>, %v: tensor<?x2x?x264xf16>) -> tensor<?x2x?x264xf16> {
  %0 = greta.attention %q, %k, %v : tensor<?x2x?x264xf16>, tensor<?x2x?x264xf16>, tensor<?x2x?x264xf16> -> tensor<?x2x?x264xf16>
  return %0 : tensor<?x2x?x264xf16>
}

// -----

// RADV's registers hold 32 keys where queries are few.
// RDNA3: columns = 128, depth = 32, rows = [1, 4, 4]
func.func @decode_128(%q: tensor<?x8x1x128xf16>, %k: tensor<?x2x?x128xf16>, %v: tensor<?x2x?x128xf16>) -> tensor<?x8x1x128xf16> {
  %0 = greta.attention %q, %k, %v {causal} : tensor<?x8x1x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16> -> tensor<?x8x1x128xf16>
  return %0 : tensor<?x8x1x128xf16>
}

// -----

// GFX942: schedule = #greta.schedule<spaces = [{columns = 128, rows = [16]}], waves = 4>
// PORTABLE: schedule = #greta.schedule<grid_limit = 65535, spaces = [{columns = 128, rows = [4]}], waves = 2>
func.func @update(%c: tensor<?x2x?x128xf16>, %n: tensor<?x2x?x128xf16>, %p: tensor<?xi32>) -> tensor<?x2x?x128xf16> {
  %0 = greta.kv_update %c, %n, %p : tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?xi32> -> tensor<?x2x?x128xf16>
  return %0 : tensor<?x2x?x128xf16>
}

// -----

// Keys of i8, which are converted: how many a wave has is a fact of the target.
// GFX942: depth = 32, rows = [1, 4, 4], split = 304, unroll = 4}], waves = 4>
// GFX950: func.func @bytes
// GFX950: depth = 16, rows = [1, 4, 4], split = 256, unroll = 4}], waves = 4>
// NVIDIA: depth = 16, rows = [1, 4, 2], {{.*}} unroll = 4}], waves = 4>
func.func @bytes(%q: tensor<8x32x1x128xf16>, %k: tensor<8x8x4096x128xi8>, %v: tensor<8x8x4096x128xi8>, %ks: tensor<8x8x4096xf32>, %vs: tensor<8x8x4096xf32>) -> tensor<8x32x1x128xf16> {
  %0 = greta.attention %q, %k, %v scales(%ks, %vs) {causal} : tensor<8x32x1x128xf16>, tensor<8x8x4096x128xi8>, tensor<8x8x4096x128xi8>, tensor<8x8x4096xf32>, tensor<8x8x4096xf32> -> tensor<8x32x1x128xf16>
  return %0 : tensor<8x32x1x128xf16>
}

// -----

// GFX950: depth = 32, rows = [1, 4, 4], split = 256, unroll = 4}], waves = 4>
func.func @bytes_of_small_heads(%q: tensor<8x32x1x64xf16>, %k: tensor<8x8x4096x64xi8>, %v: tensor<8x8x4096x64xi8>, %ks: tensor<8x8x4096xf32>, %vs: tensor<8x8x4096xf32>) -> tensor<8x32x1x64xf16> {
  %0 = greta.attention %q, %k, %v scales(%ks, %vs) {causal} : tensor<8x32x1x64xf16>, tensor<8x8x4096x64xi8>, tensor<8x8x4096x64xi8>, tensor<8x8x4096xf32>, tensor<8x8x4096xf32> -> tensor<8x32x1x64xf16>
  return %0 : tensor<8x32x1x64xf16>
}

// -----

// Targets take the split that the source asks for, whether or not they have matrix instructions.
// GFX942: depth = 16, rows = [1, 1, 64], split = 6}], waves = 2>
// NVIDIA: depth = 32, rows = [1, 1, 64], split = 6}], waves = 2>
// PORTABLE: depth = 32, rows = [1, 1, 64], split = 6}], waves = 2>
func.func @asked(%q: tensor<?x2x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>) -> tensor<?x2x?x64xf16> {
  %0 = greta.attention %q, %k, %v {greta.config = {tile = [64, 32], waves = 2, split = 6, gfx942 = {tile = [64, 16]}}} : tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16> -> tensor<?x2x?x64xf16>
  return %0 : tensor<?x2x?x64xf16>
}

// -----

// Gradients: queries go over keys, and keys over queries, with twice the sums.
// GFX942: schedule = #greta.schedule<spaces = [{columns = 128, depth = 64, rows = [1, 1, 128]}], waves = 8>
// GFX942: schedule = #greta.schedule<spaces = [{columns = 128, depth = 32, rows = [1, 1, 128]}], waves = 8>
// NVIDIA: columns = 128, depth = 32, rows = [1, 1, 128]}], waves = 8>
// NVIDIA: columns = 128, depth = 32, rows = [1, 1, 128]}], waves = 8>
// PORTABLE: columns = 128, depth = 16, rows = [1, 1, 16]}], waves = 4>
// PORTABLE: columns = 128, depth = 8, rows = [1, 1, 16]}], waves = 4>
func.func @backward(%q: tensor<?x8x?x128xf16>, %k: tensor<?x2x?x128xf16>, %v: tensor<?x2x?x128xf16>, %o: tensor<?x8x?x128xf16>, %l: tensor<?x8x?xf32>, %do: tensor<?x8x?x128xf16>) -> (tensor<?x8x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>) {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %l, %do : tensor<?x8x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?xf32>, tensor<?x8x?x128xf16> -> tensor<?x8x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>
  return %dq, %dk, %dv : tensor<?x8x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>
}

// -----

// GFX942: depth = 16, rows = [1, 1, 64]}], waves = 2>
// NVIDIA: depth = 32, rows = [1, 1, 64]}], waves = 2>
// PORTABLE: depth = 32, rows = [1, 1, 64]}], waves = 2>
func.func @backward_asked(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>, %o: tensor<?x8x?x64xf16>, %l: tensor<?x8x?xf32>, %do: tensor<?x8x?x64xf16>) -> (tensor<?x8x?x64xf16>) {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %l, %do {greta.config = {tile = [64, 32], waves = 2, gfx942 = {tile = [64, 16]}}} : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x8x?x64xf16>, tensor<?x8x?xf32>, tensor<?x8x?x64xf16> -> tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>
  return %dq : tensor<?x8x?x64xf16>
}

// -----

// No query at all.
// GFX942: rows = [1, 4, 4], {{.*}} waves = 4>
func.func @none(%q: tensor<2x8x0x64xf16>, %k: tensor<2x2x?x64xf16>) -> tensor<2x8x0x64xf16> {
  %0 = greta.attention %q, %k, %k : tensor<2x8x0x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16> -> tensor<2x8x0x64xf16>
  return %0 : tensor<2x8x0x64xf16>
}
