// Products of f32 by three of bf16 into one accumulator, where the target's matrix instructions take bf16; elsewhere, and in few rows, they are those of f32.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --canonicalize --cse %s | FileCheck %s
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx1030 --greta-to-tile %s | FileCheck %s --check-prefix=SIMT
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --greta-tile-assign-layouts --greta-tile-pipeline=target=gfx942 %s | FileCheck %s --check-prefix=LOOP

// CHECK-LABEL: greta_tile.func @tiles_0
// CHECK: %[[A:.*]] = greta_tile.load %arg0
// CHECK: %[[BITS:.*]] = arith.bitcast %[[A]]
// CHECK: arith.addi %[[BITS]]
// CHECK: %[[UPPER:.*]] = arith.andi
// CHECK: %[[HIGH:.*]] = arith.bitcast %[[UPPER]]
// CHECK: arith.subf %[[A]], %[[HIGH]]
// CHECK: %[[SMALL:.*]] = greta_tile.dot %{{.*}} tensor<{{[0-9x]+}}xbf16>
// CHECK: %[[BOTH:.*]] = greta_tile.dot %{{.*}}, %{{.*}}, %[[SMALL]]
// CHECK: %[[ALL:.*]] = greta_tile.dot %{{.*}}, %{{.*}}, %[[BOTH]]
// CHECK: scf.yield %[[ALL]]
// SIMT-LABEL: greta_tile.func @tiles_0
// SIMT-NOT: bf16
// SIMT: greta_tile.dot
// SIMT-NOT: greta_tile.dot
// The pipeline has the three for each slice: four locals, of both parts of both operands, and no dot of a whole block.
// LOOP-LABEL: greta_tile.func @tiles_0
// LOOP-COUNT-4: greta_tile.local_alloc : <2 x tensor<{{[0-9]+}}x{{[0-9]+}}xbf16>
// LOOP-NOT: greta_tile.local_alloc
// LOOP: greta_tile.schedule
func.func @tiles(%a: tensor<512x256xf32>, %b: tensor<512x256xf32>) -> tensor<512x512xf32> {
  %0 = greta.matmul %a, %b {transpose_b, precision = "bf16x3"} : tensor<512x256xf32>, tensor<512x256xf32> -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}

// -----

// CHECK-LABEL: greta_tile.func @rows_0
// CHECK-NOT: bf16
// CHECK: greta_tile.contract
// CHECK-NOT: bf16
// CHECK: greta_tile.launch
func.func @rows(%a: tensor<2x256xf32>, %b: tensor<512x256xf32>) -> tensor<2x512xf32> {
  %0 = greta.matmul %a, %b {transpose_b, precision = "bf16x3"} : tensor<2x256xf32>, tensor<512x256xf32> -> tensor<2x512xf32>
  return %0 : tensor<2x512xf32>
}
