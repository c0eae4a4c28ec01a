// A block program that spills in LLVM's usual order of instructions is compiled in others: this one spills 32 registers in it, and matrix units are busy for a third of the loop's time. The text of the code is of the same order. A kernel beside it that does not spill has the registers that it has alone.
// REQUIRES: compiler
// RUN: greta-translate --report --targets=gfx1100 %s 2>/dev/null | FileCheck %s
// RUN: greta-translate --greta-to-amdgcn --target=gfx1100 %s 2>/dev/null | FileCheck %s --check-prefix=TEXT
// CHECK: vgpr_spills {{[0-9]}}, vgprs
// CHECK: matrix units busy for {{[89]}}
// CHECK: alone(
// CHECK: vgpr_spills 0, vgprs [[REGISTERS:[0-9]+]]
// CHECK: beside(
// CHECK: small: block
// CHECK: vgpr_spills 0, vgprs [[REGISTERS]]{{$}}
// CHECK: vgpr_spills {{[0-9]}}, vgprs
// CHECK: matrix units busy for {{[89]}}
// TEXT: .vgpr_spill_count: {{[0-9]$}}

greta_tile.func @kernel(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64, greta.noalias}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64, greta.noalias}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64, greta.noalias}) attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %end = arith.constant 2048 : i32
  %cb = arith.constant 2 : i32
  %cm = arith.constant 128 : i32
  %cn = arith.constant 64 : i32
  %p0 = greta_tile.program_id 0
  %p1 = greta_tile.program_id 1
  %p2 = greta_tile.program_id 2
  %row = arith.muli %p0, %cm : i32
  %column = arith.muli %p1, %cn : i32
  %batch = arith.muli %p2, %cb : i32
  %none = arith.constant dense<0.0> : tensor<2x128x64xf32>
  %total = scf.for %k = %zero to %end step %step iter_args(%sum = %none) -> (tensor<2x128x64xf32>) : i32 {
    %a = greta_tile.load %x[%batch, %row, %k] strides [4194304, 2048, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<2x128x32xf16>
    %b = greta_tile.load %y[%batch, %k, %column] strides [4194304, 1, 2048] bounds [] : !greta_tile.ptr<f16> -> tensor<2x32x64xf16>
    %r = greta_tile.dot %a, %b, %sum : tensor<2x128x32xf16>, tensor<2x32x64xf16> -> tensor<2x128x64xf32>
    scf.yield %r : tensor<2x128x64xf32>
  }
  greta_tile.store %total, %o[%batch, %row, %column] strides [4194304, 2048, 1] bounds [] : tensor<2x128x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
func.func @f(%a: tensor<8x2048x2048xf16>, %b: tensor<8x2048x2048xf16>) -> tensor<8x2048x2048xf32> {
  %0 = greta_tile.launch @kernel grid affine_map<() -> (16, 32, 4)> scalars affine_map<() -> ()> (%a, %b) shapes [affine_map<() -> (8, 2048, 2048)>]
       : (tensor<8x2048x2048xf16>, tensor<8x2048x2048xf16>) -> tensor<8x2048x2048xf32>
  return %0 : tensor<8x2048x2048xf32>
}

greta_tile.func @small(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64, greta.noalias}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64, greta.noalias}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64, greta.noalias}) attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %end = arith.constant 2048 : i32
  %size = arith.constant 64 : i32
  %p0 = greta_tile.program_id 0
  %p1 = greta_tile.program_id 1
  %row = arith.muli %p0, %size : i32
  %column = arith.muli %p1, %size : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %total = scf.for %k = %zero to %end step %step iter_args(%sum = %none) -> (tensor<64x64xf32>) : i32 {
    %a = greta_tile.load %x[%row, %k] strides [2048, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
    %b = greta_tile.load %y[%k, %column] strides [1, 2048] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
    %r = greta_tile.dot %a, %b, %sum : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %r : tensor<64x64xf32>
  }
  greta_tile.store %total, %o[%row, %column] strides [2048, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
func.func @alone(%a: tensor<2048x2048xf16>, %b: tensor<2048x2048xf16>) -> tensor<2048x2048xf32> {
  %0 = greta_tile.launch @small grid affine_map<() -> (32, 32, 1)> scalars affine_map<() -> ()> (%a, %b) shapes [affine_map<() -> (2048, 2048)>]
       : (tensor<2048x2048xf16>, tensor<2048x2048xf16>) -> tensor<2048x2048xf32>
  return %0 : tensor<2048x2048xf32>
}
func.func @beside(%a: tensor<2048x2048xf16>, %b: tensor<2048x2048xf16>, %c: tensor<8x2048x2048xf16>, %d: tensor<8x2048x2048xf16>) -> (tensor<2048x2048xf32>, tensor<8x2048x2048xf32>) {
  %0 = greta_tile.launch @small grid affine_map<() -> (32, 32, 1)> scalars affine_map<() -> ()> (%a, %b) shapes [affine_map<() -> (2048, 2048)>]
       : (tensor<2048x2048xf16>, tensor<2048x2048xf16>) -> tensor<2048x2048xf32>
  %1 = greta_tile.launch @kernel grid affine_map<() -> (16, 32, 4)> scalars affine_map<() -> ()> (%c, %d) shapes [affine_map<() -> (8, 2048, 2048)>]
       : (tensor<8x2048x2048xf16>, tensor<8x2048x2048xf16>) -> tensor<8x2048x2048xf32>
  return %0, %1 : tensor<2048x2048xf32>, tensor<8x2048x2048xf32>
}
