// A block program whose main loop would have half as many waves again with a sixth fewer registers is compiled in LLVM's other orders, too, and the fastest is taken. gfx950 has two workgroups in place of one so; gfx942's shared memory holds one in any order.
// REQUIRES: compiler
// RUN: greta-translate --greta-to-llvmir --target=gfx950 %s | FileCheck %s
// RUN: greta-translate --report --targets=gfx950 %s -o %t.greta | FileCheck %s --check-prefix=WAVES
// RUN: greta-translate --greta-to-llvmir --target=gfx942 %s | FileCheck %s --check-prefix=USUAL --implicit-check-not=amdgpu-sched-strategy
// CHECK: "amdgpu-sched-strategy"="max-ilp"
// WAVES: occupancy 2
// USUAL: define {{.*}} @kernel(

greta_tile.func @kernel(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64, greta.noalias}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64, greta.noalias}, %z: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64, greta.noalias}, %s: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64, greta.noalias}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64, greta.noalias}) attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %end = arith.constant 4096 : i32
  %m = arith.constant 128 : i32
  %n = arith.constant 128 : i32
  %p0 = greta_tile.program_id 0
  %p1 = greta_tile.program_id 1
  %row = arith.muli %p0, %m : i32
  %column = arith.muli %p1, %n : i32
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %total = scf.for %k = %zero to %end step %step iter_args(%sum = %none) -> (tensor<128x128xf32>) : i32 {
    %a = greta_tile.load %x[%row, %k] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<128x64xf16>
    %b = greta_tile.load %y[%k, %column] strides [1, 4096] bounds [] : !greta_tile.ptr<f16> -> tensor<64x128xf16>
    %p = greta_tile.dot %a, %b, %none : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    %at = arith.addi %row, %k : i32
    greta_tile.store %p, %z[%at, %column] strides [4096, 1] bounds [] : tensor<128x128xf32> -> !greta_tile.ptr<f32>
    %r = arith.addf %sum, %p : tensor<128x128xf32>
    scf.yield %r : tensor<128x128xf32>
  }
  greta_tile.store %total, %o[%row, %column] strides [4096, 1] bounds [] : tensor<128x128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
func.func @f(%a: tensor<4096x4096xf16>, %b: tensor<4096x4096xf16>, %c: tensor<8192x4096xf32>, %d: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %0 = greta_tile.launch @kernel grid affine_map<() -> (32, 32)> scalars affine_map<() -> ()> (%a, %b, %c, %d) shapes [affine_map<() -> (4096, 4096)>]
       : (tensor<4096x4096xf16>, tensor<4096x4096xf16>, tensor<8192x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}

