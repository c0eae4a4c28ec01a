// A kernel that spills more than a lane has registers is compiled in LLVM's usual order alone: three others take many times as long.
// REQUIRES: compiler
// RUN: greta-translate --greta-to-llvmir --target=gfx942 %s 2>/dev/null | FileCheck %s --implicit-check-not=amdgpu-sched-strategy
// RUN: greta-translate --greta-to-hsaco --target=gfx942 %s -o %t.hsaco 2>&1 | FileCheck %s --check-prefix=SPILLS
// CHECK: define {{.*}} @kernel(
// SPILLS: spills {{2[6-9].|[3-9]..}} vector and

greta_tile.func @kernel(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %a = greta_tile.load %x[%zero] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<98304xf32>
  %s = greta_tile.scan {arith.addf} %a axis 0 : tensor<98304xf32>
  greta_tile.store %s, %y[%zero] strides [1] bounds [] : tensor<98304xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
func.func @f(%x: tensor<98304xf32>) -> tensor<98304xf32> {
  %0 = greta_tile.launch @kernel grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (98304)>] : (tensor<98304xf32>) -> tensor<98304xf32>
  return %0 : tensor<98304xf32>
}
