// Pipelined products: layouts, groups for the scheduler, fragments.
// RUN: greta-opt %s --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --greta-tile-promise-arguments --greta-tile-assign-layouts | FileCheck %s --check-prefix=LAYOUT
// RUN: greta-opt %s --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --greta-tile-promise-arguments --greta-tile-assign-layouts --greta-tile-pipeline --greta-tile-distribute --greta-tile-barriers --greta-tile-interleave | FileCheck %s --check-prefix=GROUPS
// RUN: sed 's/slice = 32/slice = 64/' %s | greta-opt --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --greta-tile-promise-arguments --greta-tile-assign-layouts --greta-tile-pipeline --greta-tile-distribute --greta-tile-barriers --greta-tile-interleave | FileCheck %s --check-prefix=WHOLE
// RUN: greta-translate --greta-to-llvmir --target=gfx942 %s | FileCheck %s --check-prefix=LLVM
// RUN: sed 's/stages = 2, slice = 32/stages = 1/; s/16, 16, 16/16, 8, 16/' %s | greta-opt --greta-fuse --greta-configure=target=vulkan:nvidia --greta-to-tile --greta-tile-promise-arguments --greta-tile-assign-layouts --greta-tile-pipeline --greta-tile-distribute --greta-tile-barriers --greta-tile-interleave --canonicalize --cse | FileCheck %s --check-prefix=FRAGMENTS
// RUN: sed 's/256/224/g; s/stages = 2/opaque, stages = 2/; s/64, 64, 64/32, 32, 32/; s/slice = 32/slice = 16/; s/16, 16, 16/8, 8, 8/' %s | greta-opt --greta-fuse --greta-configure=target=vulkan:lavapipe --greta-to-tile --greta-tile-promise-arguments --greta-tile-assign-layouts --greta-tile-pipeline --greta-tile-distribute --greta-tile-barriers --greta-tile-interleave | FileCheck %s --check-prefix=BEFORE

// A lane's four halves of 16x16x16 become eight along K, 16 bytes, in both operands: k of the next instruction.
// LAYOUT: greta_tile.dot %{{.*}}, %{{.*}}, {{.*}} : tensor<64x64xf16, #greta_tile.layout<{reg = {{\[\[}}0, 1], [0, 2], [0, 4]], lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [0, 8], [0, 16]]
// LAYOUT-SAME: tensor<64x64xf16, #greta_tile.layout<{reg = {{\[\[}}1, 0], [2, 0], [4, 0]], lane = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [8, 0], [16, 0]]

// The first slice's products have what reads the second, stores the next block and loads the one after between them, in this order and done
// before the last three; after the barrier the second slice's have the reads of the next block.
// GROUPS: scf.for
// GROUPS-COUNT-4: greta_tile.shared_load
// GROUPS-COUNT-8: greta_tile.mma
// GROUPS-COUNT-4: greta_tile.shared_store
// GROUPS-COUNT-4: greta_tile.ptr_load
// GROUPS: greta_tile.schedule_group shared_load 1
// GROUPS-NEXT: greta_tile.schedule_group shared_load 1
// GROUPS-NEXT: greta_tile.schedule_group mma 1
// GROUPS-NEXT: greta_tile.schedule_group shared_load 1
// GROUPS-NOT: schedule_group load
// GROUPS-COUNT-4: schedule_group shared_store 1
// GROUPS-NOT: schedule_group shared_store
// GROUPS-COUNT-4: schedule_group load 1
// GROUPS-NEXT: greta_tile.schedule_group mma 3
// GROUPS: greta_tile.barrier
// GROUPS-COUNT-4: greta_tile.shared_load
// GROUPS-COUNT-8: greta_tile.mma
// GROUPS-COUNT-4: schedule_group shared_load 1
// GROUPS-NEXT: greta_tile.schedule_group mma 3

// Reads that feed the very products, of whole blocks, come four products ahead of theirs.
// WHOLE: scf.for
// WHOLE: schedule_group shared_store 1
// WHOLE-NEXT: greta_tile.schedule_group shared_load 4
// WHOLE-NEXT: greta_tile.schedule_group mma 1
// WHOLE-COUNT-4: schedule_group load 1
// WHOLE-NEXT: greta_tile.schedule_group mma 3
// WHOLE: schedule_group shared_load 4
// WHOLE-NEXT: greta_tile.schedule_group mma 8

// LLVM: call void @llvm.amdgcn.sched.group.barrier(i32 256, i32 1, i32 0)
// LLVM: call void @llvm.amdgcn.sched.group.barrier(i32 8, i32 1, i32 0)
// LLVM: call void @llvm.amdgcn.sched.group.barrier(i32 512, i32 1, i32 0)
// LLVM: call void @llvm.amdgcn.sched.group.barrier(i32 32, i32 1, i32 0)

// Rows of 64 halves and 8 for the banks are 9 entries of 16 bytes. Fragments come from there, in a loop over slices that carries the sums whole.
// FRAGMENTS-COUNT-2: greta_tile.shared_alloc : <576 x vector<8xf16>>
// FRAGMENTS: scf.for {{.*}} -> (!greta_tile.fragment<16x8xf32, acc>,
// FRAGMENTS: scf.for {{.*}} -> (!greta_tile.fragment<16x8xf32, acc>,
// FRAGMENTS: greta_tile.fragment_load %{{.*}} stride 9 transposed : <576 x vector<8xf16>> -> <16x8xf16, b>
// FRAGMENTS: greta_tile.fragment_load %{{.*}} stride 9 : <576 x vector<8xf16>> -> <16x16xf16, a>
// FRAGMENTS: greta_tile.mma "coopmat" {{.*}} : !greta_tile.fragment<16x16xf16, a>, !greta_tile.fragment<16x8xf16, b> -> !greta_tile.fragment<16x8xf32, acc>
// FRAGMENTS: greta_tile.fragment_elements {{.*}} -> vector<4xf32>

// Fragments that are read ahead stay before the barrier: others write there behind it.
// BEFORE: scf.for
// BEFORE: greta_tile.mma
// BEFORE: greta_tile.shared_store
// BEFORE: greta_tile.barrier
// BEFORE-COUNT-8: greta_tile.fragment_load
// BEFORE: greta_tile.mma
// BEFORE-NOT: greta_tile.fragment_load
// BEFORE: scf.yield
func.func @product(%a: tensor<128x256xf16>, %b: tensor<128x256xf16>) -> tensor<128x128xf32> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {instruction = [16, 16, 16], tile = [64, 64, 64], waves = 4, stages = 2, slice = 32}} : tensor<128x256xf16>, tensor<128x256xf16> -> tensor<128x128xf32>
  return %0 : tensor<128x128xf32>
}
