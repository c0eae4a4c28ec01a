// RUN: greta-opt --triton-to-tile %s | FileCheck %s

// Elementwise ops that arith and math lack.

// CHECK-LABEL: greta_tile.func @round_0(
// CHECK: %[[V4:[a-z0-9_]+]] = greta_tile.splat %[[V5:[a-z0-9_]+]] : tensor<4xf32>
// CHECK: %[[V6:[a-z0-9_]+]] = arith.truncf %[[V4]] : tensor<4xf32> to tensor<4xf16>
// CHECK: %[[V7:[a-z0-9_]+]] = arith.extf %[[V0:[a-z0-9_]+]] : f16 to f32
// CHECK: %[[V8:[a-z0-9_]+]] = arith.extf %[[V2:[a-z0-9_]+]] : bf16 to f32
// CHECK: %[[V9:[a-z0-9_]+]] = arith.truncf %[[V8]] : f32 to f16
// CHECK: %[[V10:[a-z0-9_]+]] = arith.truncf %[[V4]] : tensor<4xf32> to tensor<4xbf16>
// CHECK: %[[V11:[a-z0-9_]+]] = arith.extf %[[V10]] : tensor<4xbf16> to tensor<4xf32>
// CHECK: %[[V12:[a-z0-9_]+]] = math.absf %[[V11]] : tensor<4xf32>
// CHECK: %[[V13:[a-z0-9_]+]] = math.absf %[[V4]] : tensor<4xf32>
// CHECK: %[[V14:[a-z0-9_]+]] = arith.cmpf ogt, %[[V12]], %[[V13]] : tensor<4xf32>
// CHECK: %[[V15:[a-z0-9_]+]] = arith.bitcast %[[V10]] : tensor<4xbf16> to tensor<4xi16>
// CHECK: %[[V16:[a-z0-9_]+]] = arith.constant dense<1> : tensor<4xi16>
// CHECK: %[[V17:[a-z0-9_]+]] = arith.subi %[[V15]], %[[V16]] : tensor<4xi16>
// CHECK: %[[V18:[a-z0-9_]+]] = arith.select %[[V14]], %[[V17]], %[[V15]] : tensor<4xi1>, tensor<4xi16>
// CHECK: %[[V19:[a-z0-9_]+]] = arith.bitcast %[[V18]] : tensor<4xi16> to tensor<4xbf16>
// CHECK: %[[V20:[a-z0-9_]+]] = arith.constant dense<4.480000e+02> : tensor<4xf32>
// CHECK: %[[V21:[a-z0-9_]+]] = arith.minimumf %[[V4]], %[[V20]] : tensor<4xf32>
// CHECK: %[[V22:[a-z0-9_]+]] = arith.constant dense<-4.480000e+02> : tensor<4xf32>
// CHECK: %[[V23:[a-z0-9_]+]] = arith.maximumf %[[V21]], %[[V22]] : tensor<4xf32>
// CHECK: %[[V24:[a-z0-9_]+]] = arith.truncf %[[V23]] : tensor<4xf32> to tensor<4xf8E4M3FN>
// CHECK: greta_tile.store_scattered %[[V7]], %[[V25:[a-z0-9_]+]] : f32 -> !greta_tile.ptr<f32>
// CHECK: greta_tile.return
tt.func public @round(%p: !tt.ptr<f32>, %f: f32, %h: f16, %g: bf16) {
  %x = tt.splat %f : f32 -> tensor<4xf32>
  %0 = tt.fp_to_fp %x, rounding = rtne : tensor<4xf32> -> tensor<4xf16>
  %1 = tt.fp_to_fp %h : f16 -> f32
  %2 = tt.fp_to_fp %g, rounding = rtne : bf16 -> f16
  %3 = tt.fp_to_fp %x, rounding = rtz : tensor<4xf32> -> tensor<4xbf16>
  %4 = tt.fp_to_fp %x, rounding = rtne : tensor<4xf32> -> tensor<4xf8E4M3FN>
  tt.store %p, %1 : !tt.ptr<f32>
  tt.return
}

// CHECK-LABEL: greta_tile.func @others_0(
// CHECK: %[[V0:[a-z0-9_]+]] = arith.extui %[[V1:[a-z0-9_]+]] : i32 to i64
// CHECK: %[[V2:[a-z0-9_]+]] = arith.extui %[[V1]] : i32 to i64
// CHECK: %[[V3:[a-z0-9_]+]] = arith.muli %[[V0]], %[[V2]] : i64
// CHECK: %[[V4:[a-z0-9_]+]] = arith.constant 32 : i64
// CHECK: %[[V5:[a-z0-9_]+]] = arith.shrui %[[V3]], %[[V4]] : i64
// CHECK: %[[V6:[a-z0-9_]+]] = arith.trunci %[[V5]] : i64 to i32
// CHECK: %[[V7:[a-z0-9_]+]] = arith.constant 4294967295 : i64
// CHECK: %[[V8:[a-z0-9_]+]] = arith.andi %[[V9:[a-z0-9_]+]], %[[V7]] : i64
// CHECK: %[[V10:[a-z0-9_]+]] = arith.constant 32 : i64
// CHECK: %[[V11:[a-z0-9_]+]] = arith.shrui %[[V9]], %[[V10]] : i64
// CHECK: %[[V12:[a-z0-9_]+]] = arith.andi %[[V9]], %[[V7]] : i64
// CHECK: %[[V13:[a-z0-9_]+]] = arith.constant 32 : i64
// CHECK: %[[V14:[a-z0-9_]+]] = arith.shrui %[[V9]], %[[V13]] : i64
// CHECK: %[[V15:[a-z0-9_]+]] = arith.muli %[[V11]], %[[V12]] : i64
// CHECK: %[[V16:[a-z0-9_]+]] = arith.muli %[[V8]], %[[V12]] : i64
// CHECK: %[[V17:[a-z0-9_]+]] = arith.constant 32 : i64
// CHECK: %[[V18:[a-z0-9_]+]] = arith.shrui %[[V16]], %[[V17]] : i64
// CHECK: %[[V19:[a-z0-9_]+]] = arith.addi %[[V15]], %[[V18]] : i64
// CHECK: %[[V20:[a-z0-9_]+]] = arith.muli %[[V8]], %[[V14]] : i64
// CHECK: %[[V21:[a-z0-9_]+]] = arith.andi %[[V19]], %[[V7]] : i64
// CHECK: %[[V22:[a-z0-9_]+]] = arith.addi %[[V20]], %[[V21]] : i64
// CHECK: %[[V23:[a-z0-9_]+]] = arith.constant 32 : i64
// CHECK: %[[V24:[a-z0-9_]+]] = arith.shrui %[[V22]], %[[V23]] : i64
// CHECK: %[[V25:[a-z0-9_]+]] = arith.muli %[[V11]], %[[V14]] : i64
// CHECK: %[[V26:[a-z0-9_]+]] = arith.constant 32 : i64
// CHECK: %[[V27:[a-z0-9_]+]] = arith.shrui %[[V19]], %[[V26]] : i64
// CHECK: %[[V28:[a-z0-9_]+]] = arith.addi %[[V25]], %[[V27]] : i64
// CHECK: %[[V29:[a-z0-9_]+]] = arith.addi %[[V28]], %[[V24]] : i64
// CHECK: arith.extf %[[V31:[a-z0-9_]+]] : f32 to f64
// CHECK: arith.extf %[[V31]] : f32 to f64
// CHECK: %[[WIDE:[a-z0-9_]+]] = arith.divf %{{.*}} : f64
// CHECK: %[[V30:[a-z0-9_]+]] = arith.truncf %[[WIDE]] : f64 to f32
// CHECK: %[[V32:[a-z0-9_]+]] = arith.divf %[[V31]], %[[V31]] : f32
// CHECK: arith.extf %[[V31]] : f32 to f64
// CHECK: %[[ROOT:[a-z0-9_]+]] = math.sqrt %{{.*}} : f64
// CHECK: %[[V33:[a-z0-9_]+]] = arith.truncf %[[ROOT]] : f64 to f32
// CHECK: %[[V34:[a-z0-9_]+]] = arith.maxnumf %[[V31]], %[[V31]] : f32
// CHECK: %[[V35:[a-z0-9_]+]] = arith.minnumf %[[V34]], %[[V31]] : f32
// CHECK: %[[V36:[a-z0-9_]+]] = arith.maximumf %[[V31]], %[[V31]] : f32
// CHECK: %[[V37:[a-z0-9_]+]] = arith.minimumf %[[V36]], %[[V31]] : f32
// CHECK: %[[V38:[a-z0-9_]+]] = arith.bitcast %[[V31]] : f32 to i32
// CHECK: greta_tile.store_scattered %[[V31]], %[[V39:[a-z0-9_]+]] : f32 -> !greta_tile.ptr<f32>
// CHECK: greta_tile.return
tt.func public @others(%p: !tt.ptr<f32>, %f: f32, %n: i32, %w: i64) {
  %0 = tt.mulhiui %n, %n : i32
  %1 = tt.mulhiui %w, %w : i64
  %2 = tt.precise_divf %f, %f : f32
  %3 = tt.approx_divf %f, %f : f32
  %4 = tt.precise_sqrt %f : f32
  %5 = tt.clampf %f, %f, %f, propagateNan = none : f32
  %6 = tt.clampf %f, %f, %f, propagateNan = all : f32
  %7 = tt.bitcast %f : f32 -> i32
  %8 = tt.bitcast %f : f32 -> f32
  tt.store %p, %f : !tt.ptr<f32>
  tt.return
}

// NVIDIA's names and AMD's.
// CHECK-LABEL: greta_tile.func @library_0(
// CHECK: %[[V0:[a-z0-9_]+]] = math.sin %[[V1:[a-z0-9_]+]] : f32
// CHECK: %[[V2:[a-z0-9_]+]] = math.sin %[[V1]] : f32
// CHECK: %[[V3:[a-z0-9_]+]] = math.powf %[[V1]], %[[V1]] : f32
// CHECK: %[[V4:[a-z0-9_]+]] = math.erf %[[V1]] : f32
// CHECK: %[[V5:[a-z0-9_]+]] = arith.cmpf uno, %[[V1]], %[[V1]] : f32
// CHECK: %[[V6:[a-z0-9_]+]] = arith.extui %[[V5]] : i1 to i32
// CHECK: %[[V7:[a-z0-9_]+]] = math.fma %[[V1]], %[[V1]], %[[V1]] : f32
// CHECK: %[[V8:[a-z0-9_]+]] = math.absi %[[V9:[a-z0-9_]+]] : i32
// CHECK: greta_tile.store_scattered %[[V1]], %[[V10:[a-z0-9_]+]] : f32 -> !greta_tile.ptr<f32>
// CHECK: greta_tile.return
tt.func public @library(%p: !tt.ptr<f32>, %f: f32, %n: i32) {
  %0 = tt.extern_elementwise %f {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (f32) -> f32
  %1 = tt.extern_elementwise %f {libname = "", libpath = "", pure = true, symbol = "__ocml_sin_f32"} : (f32) -> f32
  %2 = tt.extern_elementwise %f, %f {libname = "", libpath = "", pure = true, symbol = "__nv_powf"} : (f32, f32) -> f32
  %3 = tt.extern_elementwise %f {libname = "", libpath = "", pure = true, symbol = "__nv_erff"} : (f32) -> f32
  %4 = tt.extern_elementwise %f {libname = "", libpath = "", pure = true, symbol = "__nv_isnanf"} : (f32) -> i32
  %5 = tt.extern_elementwise %f, %f, %f {libname = "", libpath = "", pure = true, symbol = "__ocml_fma_f32"} : (f32, f32, f32) -> f32
  %6 = tt.extern_elementwise %n {libname = "", libpath = "", pure = true, symbol = "__nv_abs"} : (i32) -> i32
  tt.store %p, %f : !tt.ptr<f32>
  tt.return
}
