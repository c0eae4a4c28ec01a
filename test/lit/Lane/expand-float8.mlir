// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(any(greta-expand{target=gfx1100}))' | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(any(greta-expand{target=gfx942}))' | FileCheck %s --check-prefixes=CHECK,FNUZ
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(any(greta-expand{target=gfx1201}))' | FileCheck %s --check-prefixes=CHECK,OCP

// E5M2 is the upper half of an f16; instructions give f32.
// CHECK-LABEL: func.func @e5m2_to_f16(
// CHECK-SAME: %[[X:.*]]: f8E5M2
// CHECK: %[[CODE:.*]] = arith.bitcast %[[X]] : f8E5M2 to i8
// CHECK: %[[BITS:.*]] = arith.extui %[[CODE]] : i8 to i16
// CHECK: %[[HIGH:.*]] = arith.shli %[[BITS]], %c8_i16 : i16
// CHECK: %[[Y:.*]] = arith.bitcast %[[HIGH]] : i16 to f16
// CHECK: return %[[Y]]
func.func @e5m2_to_f16(%x: f8E5M2) -> f16 {
  %0 = arith.extf %x : f8E5M2 to f16
  return %0 : f16
}

// -----

// Below eight times the smallest number it is an integer times that number; 0x7f is NaN.
// CHECK-LABEL: func.func @e4m3_to_f16(
// NONE: %[[SIZE:.*]] = arith.andi %{{.*}}, %c127_i16
// NONE: arith.uitofp %[[SIZE]] : i16 to f16
// NONE-NEXT: arith.constant 1.953130e-03 : f16
// NONE: arith.cmpi ult, %[[SIZE]], %c8_i16
// NONE: arith.cmpi ult, %[[SIZE]], %c127_i16
// NONE-NOT: rocdl
// OCP: %[[WORD:.*]] = arith.extui %{{.*}} : i8 to i32
// OCP: %[[WIDE:.*]] = rocdl.cvt.f32.fp8 %[[WORD]][0] : f32
// OCP: arith.truncf %[[WIDE]] : f32 to f16
func.func @e4m3_to_f16(%x: f8E4M3FN) -> f16 {
  %0 = arith.extf %x : f8E4M3FN to f16
  return %0 : f16
}

// -----

// CHECK-LABEL: func.func @to_e4m3fnuz(
// NONE: %[[WIDE:.*]] = arith.extf %{{.*}} : f16 to f32
// NONE: arith.bitcast %[[WIDE]] : f32 to i32
// NONE: arith.trunci %{{.*}} : i32 to i8
// FNUZ: %[[WIDE:.*]] = arith.extf %{{.*}} : f16 to f32
// FNUZ: %[[PAIR:.*]] = rocdl.cvt.pk.fp8.f32 %[[WIDE]], %[[WIDE]] -> %{{.*}}[false] : i32
// FNUZ: arith.trunci %[[PAIR]] : i32 to i8
// OCP-NOT: rocdl
func.func @to_e4m3fnuz(%x: f16) -> f8E4M3FNUZ {
  %0 = arith.truncf %x : f16 to f8E4M3FNUZ
  return %0 : f8E4M3FNUZ
}

// -----

// Vectors and other conversions.
// CHECK-LABEL: func.func @others(
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.shli %{{.*}} : vector<4xi32>
// CHECK-NOT: arith.extf
func.func @others(%x: f16, %y: vector<4xf8E4M3FNUZ>) -> (f32, vector<4xf32>) {
  %0 = arith.extf %x : f16 to f32
  %1 = arith.extf %y : vector<4xf8E4M3FNUZ> to vector<4xf32>
  return %0, %1 : f32, vector<4xf32>
}

// -----

// In a kernel nothing but the bits is left.
// CHECK-LABEL: greta_tile.func @kernel(%arg0: !greta_tile.ptr<i8>, %arg1: !greta_tile.ptr<f32>)
// CHECK: %[[NONE:.*]] = arith.constant dense<0> : vector<4xi8>
// CHECK: %[[X:.*]] = greta_tile.ptr_load %arg0[%{{.*}}] align 4 : <i8> -> vector<4xi8>
// CHECK: %[[Y:.*]] = arith.select %{{.*}}, %[[X]], %[[NONE]] : vector<4xi8>
// CHECK: %[[E:.*]] = vector.extract %[[Y]][0] : i8 from vector<4xi8>
// CHECK-NOT: arith.bitcast %[[E]]
// CHECK-NOT: f8E
greta_tile.func @kernel(%x: !greta_tile.ptr<f8E5M2>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %none = arith.constant dense<0.0> : vector<4xf8E5M2>
  %i = arith.constant 0 : i32
  %yes = arith.constant true
  %0 = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f8E5M2> -> vector<4xf8E5M2>
  %1 = arith.select %yes, %0, %none : vector<4xf8E5M2>
  %2 = vector.extract %1[0] : f8E5M2 from vector<4xf8E5M2>
  %3 = arith.extf %2 : f8E5M2 to f32
  greta_tile.ptr_store %3, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

// An absolute value loses its sign's bit; where that alone is NaN, it stays.
// CHECK-LABEL: greta_tile.func @absolute
// CHECK: %[[X:.*]] = greta_tile.ptr_load %arg0
// CHECK: %[[SIZE:.*]] = arith.andi %[[X]], %c127_i8 : i8
// CHECK: greta_tile.ptr_store %[[SIZE]], %arg0
// CHECK: %[[Y:.*]] = greta_tile.ptr_load %arg1
// CHECK: %[[PLAIN:.*]] = arith.andi %[[Y]], %c127_i8
// CHECK: %[[NAN:.*]] = arith.cmpi eq, %[[Y]], %c-128_i8
// CHECK: arith.select %[[NAN]], %[[Y]], %[[PLAIN]] : i8
greta_tile.func @absolute(%x: !greta_tile.ptr<f8E4M3FN>, %y: !greta_tile.ptr<f8E5M2FNUZ>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %i = arith.constant 0 : i32
  %0 = greta_tile.ptr_load %x[%i] align 1 : !greta_tile.ptr<f8E4M3FN> -> f8E4M3FN
  %1 = math.absf %0 : f8E4M3FN
  greta_tile.ptr_store %1, %x[%i] align 1 : f8E4M3FN -> !greta_tile.ptr<f8E4M3FN>
  %2 = greta_tile.ptr_load %y[%i] align 1 : !greta_tile.ptr<f8E5M2FNUZ> -> f8E5M2FNUZ
  %3 = math.absf %2 : f8E5M2FNUZ
  greta_tile.ptr_store %3, %y[%i] align 1 : f8E5M2FNUZ -> !greta_tile.ptr<f8E5M2FNUZ>
  greta_tile.return
}
