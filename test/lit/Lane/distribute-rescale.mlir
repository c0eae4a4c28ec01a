// RUN: greta-opt %s --greta-tile-assign-layouts --greta-tile-distribute=target=gfx942 --cse | FileCheck %s --check-prefixes=CHECK,AMD
// RUN: greta-opt %s --greta-tile-assign-layouts --greta-tile-distribute=target=gfx942 --cse --greta-tile-to-rocdl=chip=gfx942 | FileCheck %s --check-prefix=ROCDL
// RUN: greta-opt %s --greta-tile-assign-layouts --greta-tile-distribute=target=vulkan:nvidia --cse | FileCheck %s --check-prefixes=CHECK,VULKAN

// Waves of AMD vote: where nothing has moved, registers stay. Vulkan multiplies.
// CHECK-LABEL: @rescale
// AMD: arith.ori
// AMD: %[[ANY:.*]] = greta_tile.any %
// AMD: scf.if %[[ANY]] -> (f32, f32
// AMD: arith.mulf
// AMD: } else {
// AMD-NEXT: scf.yield
// VULKAN-NOT: greta_tile.any
// VULKAN: arith.mulf
// ROCDL: %[[LANES:.*]] = rocdl.ballot %{{.*}} : i64
// ROCDL: %[[SET:.*]] = llvm.icmp "ne" %[[LANES]],
// ROCDL: %[[RARE:.*]] = llvm.intr.expect %[[SET]],
// ROCDL: llvm.cond_br %[[RARE]]
greta_tile.func @rescale(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %one = arith.constant dense<1.0> : tensor<8x64xf32>
  %a = greta_tile.load %x[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<8x64xf32>
  %f = greta_tile.load %x[%z, %z] strides [1, 0] bounds [] : !greta_tile.ptr<f32> -> tensor<8x64xf32>
  %moved = arith.cmpf une, %f, %one : tensor<8x64xf32>
  %r = greta_tile.rescale %a, %f where %moved : tensor<8x64xf32>, tensor<8x64xi1>
  greta_tile.store %r, %x[%z, %z] strides [64, 1] bounds [] : tensor<8x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
