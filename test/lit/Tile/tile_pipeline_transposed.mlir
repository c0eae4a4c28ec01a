// An operand whose neighbours in memory are not those along K: the lane loads four of memory's for several k, brings those
// of K together in its registers, and shared memory has rows along K from there on.
// RUN: greta-opt %s --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --greta-tile-promise-arguments --greta-tile-assign-layouts --greta-tile-pipeline | FileCheck %s
// RUN: greta-opt %s --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --greta-tile-promise-arguments --greta-tile-assign-layouts --greta-tile-pipeline --greta-tile-distribute | FileCheck %s --check-prefix=LANE

// CHECK: %[[B:.*]] = greta_tile.local_alloc : <2 x tensor<32x256xf16>, <dim = 0, stride = 32, vector = 8, rows = 2, phases = 4>>
// CHECK: scf.for
// CHECK: greta_tile.convert_layout {{.*}} : tensor<32x256xf16, #greta_tile.layout<{reg = {{\[\[}}0, 1], [0, 2], [1, 0], [2, 0]], {{.*}} -> tensor<32x256xf16, #greta_tile.layout<{reg = {{\[\[}}1, 0], [2, 0], [0, 1], [0, 2]],
// CHECK: greta_tile.local_store %{{.*}}, %[[B]]

// LANE: greta_tile.shared_store {{.*}} <4096 x vector<4xf16>>
// LANE-NOT: greta_tile.shared_load {{.*}} x f16>
// gfx950 reads blocks as they lie in memory, by transposed loads: 16 bytes of a row go to shared memory as they come.
// RUN: greta-opt %s --greta-fuse --greta-configure=target=gfx950 --greta-to-tile --greta-tile-promise-arguments --greta-tile-assign-layouts=target=gfx950 --greta-tile-pipeline=target=gfx950 | FileCheck %s --check-prefix=READ
// RUN: greta-opt %s --greta-fuse --greta-configure=target=gfx950 --greta-to-tile --greta-tile-promise-arguments --greta-tile-assign-layouts=target=gfx950 --greta-tile-pipeline=target=gfx950 --greta-tile-distribute=target=gfx950 | FileCheck %s --check-prefix=GFX950
// Its 64 banks hold two rows of 64 halves, so that 16 lanes that read a column of 16 bytes meet in none if two rows have the same swizzle.
// READ: greta_tile.local_alloc : <2 x tensor<256x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 2, phases = 8>>
// READ: %[[B:.*]] = greta_tile.local_alloc : <2 x tensor<64x256xf16>, <dim = 1, stride = 256, vector = 32, rows = 1, phases = 4>>
// READ: greta_tile.local_store %{{.*}}, %[[B]][%{{.*}}] direct
// GFX950: greta_tile.ptr_load_shared {{.*}} width 8
// GFX950: greta_tile.shared_load {{.*}} transposed : <8192 x vector<4xf16>>
// gfx12's lanes have eight neighbours along K as they load them.
// RUN: greta-opt %s --greta-fuse --greta-configure=target=gfx1201 --greta-to-tile --greta-tile-promise-arguments --greta-tile-assign-layouts=target=gfx1201 --greta-tile-pipeline=target=gfx1201 --greta-tile-distribute=target=gfx1201 | FileCheck %s --check-prefix=GFX12
// GFX12: scf.for
// GFX12: greta_tile.shared_store {{.*}} vector<8xf16>
// GFX12: greta_tile.ptr_load {{.*}} transposed align 16
// GFX12-NOT: greta_tile.ptr_load {{.*}} vector<4xf16>
func.func @product(%a: tensor<4096x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %0 = greta.matmul %a, %b : tensor<4096x4096xf16>, tensor<4096x4096xf16> -> tensor<4096x4096xf16>
  return %0 : tensor<4096x4096xf16>
}
