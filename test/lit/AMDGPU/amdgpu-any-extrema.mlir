// A maximum that may be any number where an operand is NaN is still a number or NaN: LLVM's optimisations, to which nnan says poison, do not take it for one
// that is no NaN. Instruction selection has the flag, and makes no operand quiet.
// RUN: greta-translate --greta-to-llvmir --target=gfx942 %s | FileCheck %s
// RUN: greta-translate --greta-to-amdgcn --target=gfx942 %s | FileCheck %s --check-prefix=CODE

// CHECK: call nnan {{.*}} @llvm.maxnum
// CHECK: fcmp uno
// CODE: v_max_f32
// CODE-NOT: v_max_f32
// CODE: s_endpgm
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>) attributes {waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = greta_tile.load %x[%c0] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<64xf32>
  %b = greta_tile.load %y[%c0] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<64xf32>
  %m = arith.maxnumf %a, %b fastmath<nnan> : tensor<64xf32>
  %u = arith.cmpf uno, %m, %m : tensor<64xf32>
  %none = arith.constant dense<1.0> : tensor<64xf32>
  %r = arith.select %u, %none, %m : tensor<64xi1>, tensor<64xf32>
  greta_tile.store %r, %z[%c0] strides [1] bounds [] : tensor<64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
func.func @f(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %r = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x, %y) shapes [affine_map<() -> (64)>] : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}
