// Attention's dots ask for these layouts. Decoding loads keys and values where they are multiplied: a lane takes eight neighbours of a value's row, which go to eight
// instructions. On gfx950 weights are the second dot's A as the first dot left them, because that has its columns, the keys, in other rows: 1, 2, 4 in registers and
// 8 in lanes, as the second has K, where the instruction has 1, 2, 8 and 4.
// RUN: greta-opt --greta-fuse --greta-configure=target=vulkan:nvidia --greta-to-tile --greta-tile-promise-arguments --greta-tile-set-target=target=vulkan:nvidia --canonicalize --cse --greta-tile-assign-layouts %s | FileCheck %s --check-prefix=NVIDIA
// RUN: greta-opt --greta-fuse --greta-configure=target=gfx950 --greta-to-tile --greta-tile-promise-arguments --greta-tile-set-target=target=gfx950 --canonicalize --cse --greta-tile-assign-layouts %s | FileCheck %s --check-prefix=GFX950

// NVIDIA-LABEL: greta_tile.func @decode_0(
// NVIDIA: greta_tile.load {{.*}} strides [128, 1] {{.*}} -> tensor<64x128xf16, #greta_tile.layout<{reg = {{\[\[}}0, 1], [0, 2], [0, 4],
// NVIDIA: greta_tile.trans {{.*}} [0, 1, 2, 4, 3] : tensor<4x16x2x8x8xf16,
// NVIDIA: greta_tile.dot {{.*}} tensor<4x16x128xf16, #greta_tile.layout<{reg = {{\[\[}}0, 1, 0], [0, 8, 0]], lane = {{\[\[}}0, 2, 0], [0, 4, 0], [0, 0, 1], [0, 0, 2], [0, 0, 4]],
func.func @decode(%q: tensor<?x32x1x128xf16>, %k: tensor<?x8x?x128xf16>, %v: tensor<?x8x?x128xf16>) -> tensor<?x32x1x128xf16> {
  %0 = greta.attention %q, %k, %v {greta.config = {tile = [16, 16], waves = 4, unroll = 4}} : tensor<?x32x1x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16> -> tensor<?x32x1x128xf16>
  return %0 : tensor<?x32x1x128xf16>
}

// GFX950-LABEL: greta_tile.func @prefill_0(
// GFX950: greta_tile.dot {{.*}} -> tensor<256x64xf32, #greta_tile.layout<{reg = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 16]], lane = [{{.*}}, [0, 8]],
// GFX950: greta_tile.rescale {{.*}} where {{.*}} : tensor<256x128xf32,
// GFX950: greta_tile.dot {{.*}} : tensor<256x64xf16, #greta_tile.layout<{reg = {{\[\[}}0, 1], [0, 2], [0, 4]], lane = [{{.*}}, [0, 8]],
func.func @prefill(%q: tensor<?x2x?x128xf16>, %k: tensor<?x2x?x128xf16>, %v: tensor<?x2x?x128xf16>) -> tensor<?x2x?x128xf16> {
  %0 = greta.attention %q, %k, %v : tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16>, tensor<?x2x?x128xf16> -> tensor<?x2x?x128xf16>
  return %0 : tensor<?x2x?x128xf16>
}
