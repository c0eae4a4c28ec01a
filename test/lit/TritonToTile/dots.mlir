// RUN: greta-opt --triton-to-tile %s | FileCheck %s

// CHECK-LABEL: greta_tile.func @dots_0(
// CHECK: %[[V4:[a-z0-9_]+]] = greta_tile.splat %[[V5:[a-z0-9_]+]] : tensor<16x16xf32>
// CHECK: %[[V6:[a-z0-9_]+]] = greta_tile.splat %[[V0:[a-z0-9_]+]] : tensor<16x16xf16>
// CHECK: %[[V7:[a-z0-9_]+]] = greta_tile.splat %[[V2:[a-z0-9_]+]] : tensor<16x16xi8>
// CHECK: %[[V8:[a-z0-9_]+]] = arith.constant dense<0> : tensor<16x16xi32>
// CHECK: %[[V9:[a-z0-9_]+]] = greta_tile.dot %[[V4]], %[[V4]], %[[V4]] : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK: %[[V10:[a-z0-9_]+]] = greta_tile.dot %[[V6]], %[[V6]], %[[V4]] : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
// CHECK: %[[V11:[a-z0-9_]+]] = greta_tile.dot %[[V7]], %[[V7]], %[[V8]] : tensor<16x16xi8>, tensor<16x16xi8> -> tensor<16x16xi32>
// CHECK: %[[V12:[a-z0-9_]+]] = arith.extf %[[V6]] : tensor<16x16xf16> to tensor<16x16xf32>
// CHECK: %[[V13:[a-z0-9_]+]] = greta_tile.dot %[[V6]], %[[V6]], %[[V12]] : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
// CHECK: %[[V14:[a-z0-9_]+]] = arith.truncf %[[V13]] : tensor<16x16xf32> to tensor<16x16xf16>
// CHECK: greta_tile.store_scattered %[[V5]], %[[V15:[a-z0-9_]+]] : f32 -> !greta_tile.ptr<f32>
// CHECK: greta_tile.return
tt.func public @dots(%p: !tt.ptr<f32>, %f: f32, %h: f16, %i: i8) {
  %x = tt.splat %f : f32 -> tensor<16x16xf32>
  %y = tt.splat %h : f16 -> tensor<16x16xf16>
  %z = tt.splat %i : i8 -> tensor<16x16xi8>
  %c = arith.constant dense<0> : tensor<16x16xi32>
  %0 = tt.dot %x, %x, %x, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %1 = tt.dot %y, %y, %x : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %2 = tt.dot %z, %z, %c : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi32>
  // Sums of f16 are kept in f32.
  %3 = tt.dot %y, %y, %y : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf16>
  tt.store %p, %f : !tt.ptr<f32>
  tt.return
}

// CHECK-LABEL: greta_tile.func @scaled_0(
// CHECK: %[[V0:[a-z0-9_]+]] = greta_tile.splat %[[V1:[a-z0-9_]+]] : tensor<16x32xf32>
// CHECK: %[[V2:[a-z0-9_]+]] = greta_tile.splat %[[V3:[a-z0-9_]+]] : tensor<16x32xi8>
// CHECK: %[[V4:[a-z0-9_]+]] = greta_tile.splat %[[V3]] : tensor<16x2xi8>
// CHECK: %[[V5:[a-z0-9_]+]] = greta_tile.splat %[[V3]] : tensor<64x32xi8>
// CHECK: %[[V6:[a-z0-9_]+]] = greta_tile.splat %[[V3]] : tensor<32x2xi8>
// CHECK: %[[V7:[a-z0-9_]+]] = greta_tile.splat %[[V8:[a-z0-9_]+]] : tensor<64x32xbf16>
// CHECK: %[[V9:[a-z0-9_]+]] = arith.extui %[[V4]] : tensor<16x2xi8> to tensor<16x2xi32>
// CHECK: %[[V10:[a-z0-9_]+]] = arith.constant dense<23> : tensor<16x2xi32>
// CHECK: %[[V11:[a-z0-9_]+]] = arith.shli %[[V9]], %[[V10]] : tensor<16x2xi32>
// CHECK: %[[V12:[a-z0-9_]+]] = arith.constant dense<0> : tensor<16x2xi32>
// CHECK: %[[V13:[a-z0-9_]+]] = arith.cmpi eq, %[[V9]], %[[V12]] : tensor<16x2xi32>
// CHECK: %[[V14:[a-z0-9_]+]] = arith.constant dense<4194304> : tensor<16x2xi32>
// CHECK: %[[V15:[a-z0-9_]+]] = arith.select %[[V13]], %[[V14]], %[[V11]] : tensor<16x2xi1>, tensor<16x2xi32>
// CHECK: %[[V16:[a-z0-9_]+]] = arith.constant dense<255> : tensor<16x2xi32>
// CHECK: %[[V17:[a-z0-9_]+]] = arith.cmpi eq, %[[V9]], %[[V16]] : tensor<16x2xi32>
// CHECK: %[[V18:[a-z0-9_]+]] = arith.constant dense<2143289344> : tensor<16x2xi32>
// CHECK: %[[V19:[a-z0-9_]+]] = arith.select %[[V17]], %[[V18]], %[[V15]] : tensor<16x2xi1>, tensor<16x2xi32>
// CHECK: %[[V20:[a-z0-9_]+]] = arith.bitcast %[[V19]] : tensor<16x2xi32> to tensor<16x2xf32>
// CHECK: %[[V21:[a-z0-9_]+]] = greta_tile.reshape %[[V2]] : tensor<16x32xi8> -> tensor<16x8x2x2xi8>
// CHECK: %[[V22:[a-z0-9_]+]] = greta_tile.trans %[[V21]] [0, 1, 2, 3] : tensor<16x8x2x2xi8> -> tensor<16x8x2x2xi8>
// CHECK: %[[V23:[a-z0-9_]+]] = arith.extui %[[V22]] : tensor<16x8x2x2xi8> to tensor<16x8x2x2xi32>
// CHECK: %[[V24:[a-z0-9_]+]], %[[V25:[a-z0-9_]+]] = greta_tile.split %[[V23]] : tensor<16x8x2x2xi32> -> tensor<16x8x2xi32>
// CHECK: %[[V26:[a-z0-9_]+]] = arith.constant dense<8> : tensor<16x8x2xi32>
// CHECK: %[[V27:[a-z0-9_]+]] = arith.shli %[[V25]], %[[V26]] : tensor<16x8x2xi32>
// CHECK: %[[V28:[a-z0-9_]+]] = arith.ori %[[V24]], %[[V27]] : tensor<16x8x2xi32>
// CHECK: %[[V29:[a-z0-9_]+]], %[[V30:[a-z0-9_]+]] = greta_tile.split %[[V28]] : tensor<16x8x2xi32> -> tensor<16x8xi32>
// CHECK: %[[V31:[a-z0-9_]+]] = arith.constant dense<16> : tensor<16x8xi32>
// CHECK: %[[V32:[a-z0-9_]+]] = arith.shli %[[V30]], %[[V31]] : tensor<16x8xi32>
// CHECK: %[[V33:[a-z0-9_]+]] = arith.ori %[[V29]], %[[V32]] : tensor<16x8xi32>
// CHECK: %[[V34:[a-z0-9_]+]] = arith.constant dense<0> : tensor<1x1xi32>
// CHECK: %[[V35:[a-z0-9_]+]] = greta_tile.dequant %[[V33]], %[[V20]], %[[V34]] {format = "mxfp4"} : tensor<16x8xi32>, tensor<16x2xf32>, tensor<1x1xi32> -> tensor<16x64xbf16>
// CHECK: %[[V36:[a-z0-9_]+]] = arith.extui %[[V6]] : tensor<32x2xi8> to tensor<32x2xi32>
// CHECK: %[[V37:[a-z0-9_]+]] = arith.constant dense<23> : tensor<32x2xi32>
// CHECK: %[[V38:[a-z0-9_]+]] = arith.shli %[[V36]], %[[V37]] : tensor<32x2xi32>
// CHECK: %[[V39:[a-z0-9_]+]] = arith.constant dense<0> : tensor<32x2xi32>
// CHECK: %[[V40:[a-z0-9_]+]] = arith.cmpi eq, %[[V36]], %[[V39]] : tensor<32x2xi32>
// CHECK: %[[V41:[a-z0-9_]+]] = arith.constant dense<4194304> : tensor<32x2xi32>
// CHECK: %[[V42:[a-z0-9_]+]] = arith.select %[[V40]], %[[V41]], %[[V38]] : tensor<32x2xi1>, tensor<32x2xi32>
// CHECK: %[[V43:[a-z0-9_]+]] = arith.constant dense<255> : tensor<32x2xi32>
// CHECK: %[[V44:[a-z0-9_]+]] = arith.cmpi eq, %[[V36]], %[[V43]] : tensor<32x2xi32>
// CHECK: %[[V45:[a-z0-9_]+]] = arith.constant dense<2143289344> : tensor<32x2xi32>
// CHECK: %[[V46:[a-z0-9_]+]] = arith.select %[[V44]], %[[V45]], %[[V42]] : tensor<32x2xi1>, tensor<32x2xi32>
// CHECK: %[[V47:[a-z0-9_]+]] = arith.bitcast %[[V46]] : tensor<32x2xi32> to tensor<32x2xf32>
// CHECK: %[[V48:[a-z0-9_]+]] = greta_tile.trans %[[V47]] [1, 0] : tensor<32x2xf32> -> tensor<2x32xf32>
// CHECK: %[[V49:[a-z0-9_]+]] = arith.bitcast %[[V5]] : tensor<64x32xi8> to tensor<64x32xf8E4M3FN>
// CHECK: %[[V50:[a-z0-9_]+]] = arith.extf %[[V49]] : tensor<64x32xf8E4M3FN> to tensor<64x32xf32>
// CHECK: %[[V51:[a-z0-9_]+]] = greta_tile.reshape %[[V48]] : tensor<2x32xf32> -> tensor<2x1x32xf32>
// CHECK: %[[V52:[a-z0-9_]+]] = greta_tile.broadcast %[[V51]] : tensor<2x1x32xf32> -> tensor<2x32x32xf32>
// CHECK: %[[V53:[a-z0-9_]+]] = greta_tile.reshape %[[V52]] : tensor<2x32x32xf32> -> tensor<64x32xf32>
// CHECK: %[[V54:[a-z0-9_]+]] = arith.mulf %[[V50]], %[[V53]] : tensor<64x32xf32>
// CHECK: %[[V55:[a-z0-9_]+]] = arith.truncf %[[V54]] : tensor<64x32xf32> to tensor<64x32xbf16>
// CHECK: %[[V56:[a-z0-9_]+]] = greta_tile.dot %[[V35]], %[[V55]], %[[V0]] : tensor<16x64xbf16>, tensor<64x32xbf16> -> tensor<16x32xf32>
// CHECK: %[[V57:[a-z0-9_]+]] = arith.extui %[[V4]] : tensor<16x2xi8> to tensor<16x2xi32>
// CHECK: %[[V58:[a-z0-9_]+]] = arith.constant dense<23> : tensor<16x2xi32>
// CHECK: %[[V59:[a-z0-9_]+]] = arith.shli %[[V57]], %[[V58]] : tensor<16x2xi32>
// CHECK: %[[V60:[a-z0-9_]+]] = arith.constant dense<0> : tensor<16x2xi32>
// CHECK: %[[V61:[a-z0-9_]+]] = arith.cmpi eq, %[[V57]], %[[V60]] : tensor<16x2xi32>
// CHECK: %[[V62:[a-z0-9_]+]] = arith.constant dense<4194304> : tensor<16x2xi32>
// CHECK: %[[V63:[a-z0-9_]+]] = arith.select %[[V61]], %[[V62]], %[[V59]] : tensor<16x2xi1>, tensor<16x2xi32>
// CHECK: %[[V64:[a-z0-9_]+]] = arith.constant dense<255> : tensor<16x2xi32>
// CHECK: %[[V65:[a-z0-9_]+]] = arith.cmpi eq, %[[V57]], %[[V64]] : tensor<16x2xi32>
// CHECK: %[[V66:[a-z0-9_]+]] = arith.constant dense<2143289344> : tensor<16x2xi32>
// CHECK: %[[V67:[a-z0-9_]+]] = arith.select %[[V65]], %[[V66]], %[[V63]] : tensor<16x2xi1>, tensor<16x2xi32>
// CHECK: %[[V68:[a-z0-9_]+]] = arith.bitcast %[[V67]] : tensor<16x2xi32> to tensor<16x2xf32>
// CHECK: %[[V69:[a-z0-9_]+]] = greta_tile.reshape %[[V2]] : tensor<16x32xi8> -> tensor<16x8x2x2xi8>
// CHECK: %[[V70:[a-z0-9_]+]] = greta_tile.trans %[[V69]] [0, 1, 2, 3] : tensor<16x8x2x2xi8> -> tensor<16x8x2x2xi8>
// CHECK: %[[V71:[a-z0-9_]+]] = arith.extui %[[V70]] : tensor<16x8x2x2xi8> to tensor<16x8x2x2xi32>
// CHECK: %[[V72:[a-z0-9_]+]], %[[V73:[a-z0-9_]+]] = greta_tile.split %[[V71]] : tensor<16x8x2x2xi32> -> tensor<16x8x2xi32>
// CHECK: %[[V74:[a-z0-9_]+]] = arith.constant dense<8> : tensor<16x8x2xi32>
// CHECK: %[[V75:[a-z0-9_]+]] = arith.shli %[[V73]], %[[V74]] : tensor<16x8x2xi32>
// CHECK: %[[V76:[a-z0-9_]+]] = arith.ori %[[V72]], %[[V75]] : tensor<16x8x2xi32>
// CHECK: %[[V77:[a-z0-9_]+]], %[[V78:[a-z0-9_]+]] = greta_tile.split %[[V76]] : tensor<16x8x2xi32> -> tensor<16x8xi32>
// CHECK: %[[V79:[a-z0-9_]+]] = arith.constant dense<16> : tensor<16x8xi32>
// CHECK: %[[V80:[a-z0-9_]+]] = arith.shli %[[V78]], %[[V79]] : tensor<16x8xi32>
// CHECK: %[[V81:[a-z0-9_]+]] = arith.ori %[[V77]], %[[V80]] : tensor<16x8xi32>
// CHECK: %[[V82:[a-z0-9_]+]] = arith.constant dense<0> : tensor<1x1xi32>
// CHECK: %[[V83:[a-z0-9_]+]] = greta_tile.dequant %[[V81]], %[[V68]], %[[V82]] {format = "mxfp4"} : tensor<16x8xi32>, tensor<16x2xf32>, tensor<1x1xi32> -> tensor<16x64xbf16>
// CHECK: %[[V84:[a-z0-9_]+]] = arith.extf %[[V7]] : tensor<64x32xbf16> to tensor<64x32xf32>
// CHECK: %[[V85:[a-z0-9_]+]] = arith.truncf %[[V84]] : tensor<64x32xf32> to tensor<64x32xbf16>
// CHECK: %[[V86:[a-z0-9_]+]] = greta_tile.dot %[[V83]], %[[V85]], %[[V0]] : tensor<16x64xbf16>, tensor<64x32xbf16> -> tensor<16x32xf32>
// CHECK: greta_tile.store_scattered %[[V1]], %[[V87:[a-z0-9_]+]] : f32 -> !greta_tile.ptr<f32>
// CHECK: greta_tile.return
tt.func public @scaled(%p: !tt.ptr<f32>, %f: f32, %i: i8, %h: bf16) {
  %c = tt.splat %f : f32 -> tensor<16x32xf32>
  %a = tt.splat %i : i8 -> tensor<16x32xi8>
  %sa = tt.splat %i : i8 -> tensor<16x2xi8>
  %b = tt.splat %i : i8 -> tensor<64x32xi8>
  %sb = tt.splat %i : i8 -> tensor<32x2xi8>
  %bf = tt.splat %h : bf16 -> tensor<64x32xbf16>
  %0 = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e2m1 rhs = e4m3 : tensor<16x32xi8>, tensor<16x2xi8> * tensor<64x32xi8>, tensor<32x2xi8> -> tensor<16x32xf32>
  %1 = tt.dot_scaled %a scale %sa, %bf, %c lhs = e2m1 rhs = bf16 : tensor<16x32xi8>, tensor<16x2xi8> * tensor<64x32xbf16> -> tensor<16x32xf32>
  tt.store %p, %f : !tt.ptr<f32>
  tt.return
}

// Numbers that are neighbours along M or N share no scale, which they are multiplied by in f32.
// CHECK-LABEL: greta_tile.func @across_0(
// CHECK: %[[WORDS:.*]] = arith.ori {{.*}} : tensor<2x64xi32>
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<1x1xf16>
// CHECK: %[[A:.*]] = greta_tile.dequant %[[WORDS]], %[[ONE]], %{{.*}} {format = "mxfp4"} : tensor<2x64xi32>, tensor<1x1xf16>, tensor<1x1xi32> -> tensor<16x64xf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[A]] : tensor<16x64xf16> to tensor<16x64xf32>
// CHECK: %[[SCALED:.*]] = arith.mulf %[[WIDE]], %{{.*}} : tensor<16x64xf32>
// CHECK: arith.truncf %[[SCALED]] : tensor<16x64xf32> to tensor<16x64xbf16>
tt.func public @across(%p: !tt.ptr<f32>, %f: f32, %i: i8, %h: bf16) {
  %c = tt.splat %f : f32 -> tensor<16x32xf32>
  %a = tt.splat %i : i8 -> tensor<8x64xi8>
  %sa = tt.splat %i : i8 -> tensor<16x2xi8>
  %b = tt.splat %h : bf16 -> tensor<64x32xbf16>
  %0 = tt.dot_scaled %a scale %sa, %b, %c lhs = e2m1 rhs = bf16 {lhs_k_pack = false} : tensor<8x64xi8>, tensor<16x2xi8> * tensor<64x32xbf16> -> tensor<16x32xf32>
  tt.store %p, %f : !tt.ptr<f32>
  tt.return
}

// Nor do the numbers of a word if four share a scale.
// CHECK-LABEL: greta_tile.func @fours_0(
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<1x1xf16>
// CHECK: greta_tile.dequant %{{.*}}, %[[ONE]], %{{.*}} {format = "mxfp4"} : tensor<16x8xi32>, tensor<1x1xf16>, tensor<1x1xi32> -> tensor<16x64xf16>
tt.func public @fours(%p: !tt.ptr<f32>, %f: f32, %i: i8, %h: bf16) {
  %c = tt.splat %f : f32 -> tensor<16x32xf32>
  %a = tt.splat %i : i8 -> tensor<16x32xi8>
  %sa = tt.splat %i : i8 -> tensor<16x16xi8>
  %b = tt.splat %h : bf16 -> tensor<64x32xbf16>
  %0 = tt.dot_scaled %a scale %sa, %b, %c lhs = e2m1 rhs = bf16 : tensor<16x32xi8>, tensor<16x16xi8> * tensor<64x32xbf16> -> tensor<16x32xf32>
  tt.store %p, %f : !tt.ptr<f32>
  tt.return
}
