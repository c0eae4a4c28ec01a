// RUN: greta-opt %s --greta-tile-join=residents=8 --greta-tile-check-joined | FileCheck %s

greta_tile.func @read(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %zero = arith.constant 0 : i32
  %v = greta_tile.ptr_load %x[%zero] align 4 : !greta_tile.ptr<f32> -> f32
  greta_tile.ptr_store %v, %y[%zero] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A phase's weights are loaded in front of the barrier that it waits at, as nobody writes them, and so are their addresses where these are memory that nobody writes. A load in a branch stays there, and so does one that 64 registers do not hold.
// CHECK-LABEL: greta_tile.func @ahead_joined0(
// CHECK-SAME: %{{[a-z0-9]+}}: !greta_tile.ptr<f32> {greta.readonly}, %[[W:[a-z0-9]+]]: !greta_tile.ptr<f32> {greta.readonly}, %[[I:[a-z0-9]+]]: !greta_tile.ptr<i32> {greta.readonly}
// CHECK: scf.for
// CHECK: %[[A0:.*]] = greta_tile.ptr_load %[[W]]{{.*}} -> vector<32xf32>
// CHECK: %[[I0:.*]] = greta_tile.ptr_load %[[I]]
// CHECK: %[[C0:.*]] = greta_tile.ptr_load %[[W]][%[[I0]]] align 4 : <f32> -> f32
// CHECK-NEXT: greta_tile.grid_barrier
// CHECK: scf.for %[[TILE:.*]] = {{.*}} iter_args(%[[A:.*]] = %[[A0]], %{{.*}} = %[[I0]], %[[C:.*]] = %[[C0]])
// CHECK: greta_tile.ptr_load %[[W]]{{.*}} -> vector<32xf32>
// CHECK: greta_tile.ptr_load %[[I]]
// CHECK: greta_tile.ptr_load %[[W]]{{.*}} -> f32
// CHECK: greta_tile.ptr_load %[[W]][%[[TILE]]] align 4 : <f32> -> vector<64xf32>
// CHECK: greta_tile.ptr_load %{{.*}}[%[[TILE]]] align 4 : <f32> -> f32
// CHECK: scf.if
// CHECK: greta_tile.ptr_load %[[W]][%[[TILE]]]
// CHECK: vector.extract %[[A]][0]
// CHECK: arith.addf %{{.*}}, %[[C]]
// CHECK: greta_tile.grid_barrier {{.*}} last
greta_tile.func @weigh(%x: !greta_tile.ptr<f32>, %w: !greta_tile.ptr<f32> {greta.readonly}, %index: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<f32>) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %zero = arith.constant 0 : i32
  %tile = greta_tile.program_id 0
  %a = greta_tile.ptr_load %w[%tile] align 4 : !greta_tile.ptr<f32> -> vector<32xf32>
  %b = greta_tile.ptr_load %w[%tile] align 4 : !greta_tile.ptr<f32> -> vector<64xf32>
  %i = greta_tile.ptr_load %index[%tile] align 4 : !greta_tile.ptr<i32> -> i32
  %c = greta_tile.ptr_load %w[%i] align 4 : !greta_tile.ptr<f32> -> f32
  %d = greta_tile.ptr_load %x[%tile] align 4 : !greta_tile.ptr<f32> -> f32
  %isFirst = arith.cmpi eq, %tile, %zero : i32
  scf.if %isFirst {
    %e = greta_tile.ptr_load %w[%tile] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %e, %y[%tile] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  %a0 = vector.extract %a[0] : f32 from vector<32xf32>
  %b0 = vector.extract %b[0] : f32 from vector<64xf32>
  %s = arith.addf %a0, %b0 : f32
  %t = arith.addf %s, %c : f32
  %u = arith.addf %t, %d : f32
  greta_tile.ptr_store %u, %y[%tile] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}
func.func @ahead(%x: tensor<1xf32>, %w: tensor<99xf32>, %i: tensor<24xi32>) -> tensor<24xf32> {
  %a = greta_tile.launch @read grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (24)>] : (tensor<1xf32>) -> tensor<24xf32>
  %b = greta_tile.launch @weigh grid affine_map<() -> (24)> scalars affine_map<() -> ()> (%a, %w, %i) shapes [affine_map<() -> (24)>] : (tensor<24xf32>, tensor<99xf32>, tensor<24xi32>) -> tensor<24xf32>
  return %b : tensor<24xf32>
}
