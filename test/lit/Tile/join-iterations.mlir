// RUN: greta-opt %s --greta-tile-join="residents=1 iterations=45" --greta-tile-check-joined | FileCheck %s
// RUN: greta-opt %s --greta-tile-join="residents=1 iterations=44" | FileCheck %s --check-prefix=NONE
// RUN: greta-opt %s --greta-tile-join="residents=2 iterations=44" --greta-tile-check-joined | FileCheck %s

// A driver that ends a lane's loops counts all of them: those over tiles, 4 and 5 here, 7 and at least one in each of them, two for the barriers, and one of the trial, which nobody takes. With two
// workgroups each has half of the tiles, or one more.
greta_tile.func @seven(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 1 : i32, wave_size = 8 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %end = arith.constant 7 : i32
  scf.for %i = %zero to %end step %one : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.return
}

greta_tile.func @unknown(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 1 : i32, wave_size = 8 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.return
}

// CHECK-LABEL: func.func @f
// CHECK: greta_tile.launch @f_joined0
// NONE-LABEL: func.func @f
// NONE: greta_tile.launch @seven
// NONE: greta_tile.launch @unknown
func.func @f(%x: tensor<24xf32>) -> tensor<24xf32> {
  %0 = greta_tile.launch @seven grid affine_map<() -> (4)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (24)>] : (tensor<24xf32>) -> tensor<24xf32>
  %1 = greta_tile.launch @unknown grid affine_map<() -> (5)> scalars affine_map<() -> (24)> (%0) shapes [affine_map<() -> (24)>] : (tensor<24xf32>) -> tensor<24xf32>
  return %1 : tensor<24xf32>
}
