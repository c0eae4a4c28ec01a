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
// CHECK: %[[V9:[a-z0-9_]+]] = arith.extui %[[V2]] : tensor<16x32xi8> to tensor<16x32xi32>
// CHECK: %[[V10:[a-z0-9_]+]] = arith.constant dense<9> : tensor<16x32xi32>
// CHECK: %[[V11:[a-z0-9_]+]] = arith.shli %[[V9]], %[[V10]] : tensor<16x32xi32>
// CHECK: %[[V12:[a-z0-9_]+]] = arith.constant dense<3584> : tensor<16x32xi32>
// CHECK: %[[V13:[a-z0-9_]+]] = arith.andi %[[V11]], %[[V12]] : tensor<16x32xi32>
// CHECK: %[[V14:[a-z0-9_]+]] = arith.constant dense<12> : tensor<16x32xi32>
// CHECK: %[[V15:[a-z0-9_]+]] = arith.shli %[[V9]], %[[V14]] : tensor<16x32xi32>
// CHECK: %[[V16:[a-z0-9_]+]] = arith.constant dense<32768> : tensor<16x32xi32>
// CHECK: %[[V17:[a-z0-9_]+]] = arith.andi %[[V15]], %[[V16]] : tensor<16x32xi32>
// CHECK: %[[V18:[a-z0-9_]+]] = arith.ori %[[V13]], %[[V17]] : tensor<16x32xi32>
// CHECK: %[[V19:[a-z0-9_]+]] = arith.trunci %[[V18]] : tensor<16x32xi32> to tensor<16x32xi16>
// CHECK: %[[V20:[a-z0-9_]+]] = arith.bitcast %[[V19]] : tensor<16x32xi16> to tensor<16x32xf16>
// CHECK: %[[V21:[a-z0-9_]+]] = arith.extf %[[V20]] : tensor<16x32xf16> to tensor<16x32xf32>
// CHECK: %[[V22:[a-z0-9_]+]] = arith.constant dense<1.638400e+04> : tensor<16x32xf32>
// CHECK: %[[V23:[a-z0-9_]+]] = arith.mulf %[[V21]], %[[V22]] : tensor<16x32xf32>
// CHECK: %[[V24:[a-z0-9_]+]] = arith.constant dense<5> : tensor<16x32xi32>
// CHECK: %[[V25:[a-z0-9_]+]] = arith.shli %[[V9]], %[[V24]] : tensor<16x32xi32>
// CHECK: %[[V26:[a-z0-9_]+]] = arith.constant dense<3584> : tensor<16x32xi32>
// CHECK: %[[V27:[a-z0-9_]+]] = arith.andi %[[V25]], %[[V26]] : tensor<16x32xi32>
// CHECK: %[[V28:[a-z0-9_]+]] = arith.constant dense<8> : tensor<16x32xi32>
// CHECK: %[[V29:[a-z0-9_]+]] = arith.shli %[[V9]], %[[V28]] : tensor<16x32xi32>
// CHECK: %[[V30:[a-z0-9_]+]] = arith.constant dense<32768> : tensor<16x32xi32>
// CHECK: %[[V31:[a-z0-9_]+]] = arith.andi %[[V29]], %[[V30]] : tensor<16x32xi32>
// CHECK: %[[V32:[a-z0-9_]+]] = arith.ori %[[V27]], %[[V31]] : tensor<16x32xi32>
// CHECK: %[[V33:[a-z0-9_]+]] = arith.trunci %[[V32]] : tensor<16x32xi32> to tensor<16x32xi16>
// CHECK: %[[V34:[a-z0-9_]+]] = arith.bitcast %[[V33]] : tensor<16x32xi16> to tensor<16x32xf16>
// CHECK: %[[V35:[a-z0-9_]+]] = arith.extf %[[V34]] : tensor<16x32xf16> to tensor<16x32xf32>
// CHECK: %[[V36:[a-z0-9_]+]] = arith.constant dense<1.638400e+04> : tensor<16x32xf32>
// CHECK: %[[V37:[a-z0-9_]+]] = arith.mulf %[[V35]], %[[V36]] : tensor<16x32xf32>
// CHECK: %[[V38:[a-z0-9_]+]] = greta_tile.join %[[V23]], %[[V37]] : tensor<16x32xf32> -> tensor<16x32x2xf32>
// CHECK: %[[V39:[a-z0-9_]+]] = greta_tile.reshape %[[V38]] : tensor<16x32x2xf32> -> tensor<16x64xf32>
// CHECK: %[[V40:[a-z0-9_]+]] = arith.extui %[[V4]] : tensor<16x2xi8> to tensor<16x2xi32>
// CHECK: %[[V41:[a-z0-9_]+]] = arith.constant dense<23> : tensor<16x2xi32>
// CHECK: %[[V42:[a-z0-9_]+]] = arith.shli %[[V40]], %[[V41]] : tensor<16x2xi32>
// CHECK: %[[V43:[a-z0-9_]+]] = arith.constant dense<0> : tensor<16x2xi32>
// CHECK: %[[V44:[a-z0-9_]+]] = arith.cmpi eq, %[[V40]], %[[V43]] : tensor<16x2xi32>
// CHECK: %[[V45:[a-z0-9_]+]] = arith.constant dense<4194304> : tensor<16x2xi32>
// CHECK: %[[V46:[a-z0-9_]+]] = arith.select %[[V44]], %[[V45]], %[[V42]] : tensor<16x2xi1>, tensor<16x2xi32>
// CHECK: %[[V47:[a-z0-9_]+]] = arith.constant dense<255> : tensor<16x2xi32>
// CHECK: %[[V48:[a-z0-9_]+]] = arith.cmpi eq, %[[V40]], %[[V47]] : tensor<16x2xi32>
// CHECK: %[[V49:[a-z0-9_]+]] = arith.constant dense<2143289344> : tensor<16x2xi32>
// CHECK: %[[V50:[a-z0-9_]+]] = arith.select %[[V48]], %[[V49]], %[[V46]] : tensor<16x2xi1>, tensor<16x2xi32>
// CHECK: %[[V51:[a-z0-9_]+]] = arith.bitcast %[[V50]] : tensor<16x2xi32> to tensor<16x2xf32>
// CHECK: %[[V52:[a-z0-9_]+]] = greta_tile.reshape %[[V51]] : tensor<16x2xf32> -> tensor<16x2x1xf32>
// CHECK: %[[V53:[a-z0-9_]+]] = greta_tile.broadcast %[[V52]] : tensor<16x2x1xf32> -> tensor<16x2x32xf32>
// CHECK: %[[V54:[a-z0-9_]+]] = greta_tile.reshape %[[V53]] : tensor<16x2x32xf32> -> tensor<16x64xf32>
// CHECK: %[[V55:[a-z0-9_]+]] = arith.mulf %[[V39]], %[[V54]] : tensor<16x64xf32>
// CHECK: %[[V56:[a-z0-9_]+]] = arith.truncf %[[V55]] : tensor<16x64xf32> to tensor<16x64xbf16>
// CHECK: %[[V57:[a-z0-9_]+]] = arith.bitcast %[[V5]] : tensor<64x32xi8> to tensor<64x32xf8E4M3FN>
// CHECK: %[[V58:[a-z0-9_]+]] = arith.extf %[[V57]] : tensor<64x32xf8E4M3FN> to tensor<64x32xf32>
// CHECK: %[[V59:[a-z0-9_]+]] = arith.extui %[[V6]] : tensor<32x2xi8> to tensor<32x2xi32>
// CHECK: %[[V60:[a-z0-9_]+]] = arith.constant dense<23> : tensor<32x2xi32>
// CHECK: %[[V61:[a-z0-9_]+]] = arith.shli %[[V59]], %[[V60]] : tensor<32x2xi32>
// CHECK: %[[V62:[a-z0-9_]+]] = arith.constant dense<0> : tensor<32x2xi32>
// CHECK: %[[V63:[a-z0-9_]+]] = arith.cmpi eq, %[[V59]], %[[V62]] : tensor<32x2xi32>
// CHECK: %[[V64:[a-z0-9_]+]] = arith.constant dense<4194304> : tensor<32x2xi32>
// CHECK: %[[V65:[a-z0-9_]+]] = arith.select %[[V63]], %[[V64]], %[[V61]] : tensor<32x2xi1>, tensor<32x2xi32>
// CHECK: %[[V66:[a-z0-9_]+]] = arith.constant dense<255> : tensor<32x2xi32>
// CHECK: %[[V67:[a-z0-9_]+]] = arith.cmpi eq, %[[V59]], %[[V66]] : tensor<32x2xi32>
// CHECK: %[[V68:[a-z0-9_]+]] = arith.constant dense<2143289344> : tensor<32x2xi32>
// CHECK: %[[V69:[a-z0-9_]+]] = arith.select %[[V67]], %[[V68]], %[[V65]] : tensor<32x2xi1>, tensor<32x2xi32>
// CHECK: %[[V70:[a-z0-9_]+]] = arith.bitcast %[[V69]] : tensor<32x2xi32> to tensor<32x2xf32>
// CHECK: %[[V71:[a-z0-9_]+]] = greta_tile.reshape %[[V70]] : tensor<32x2xf32> -> tensor<32x2x1xf32>
// CHECK: %[[V72:[a-z0-9_]+]] = greta_tile.broadcast %[[V71]] : tensor<32x2x1xf32> -> tensor<32x2x32xf32>
// CHECK: %[[V73:[a-z0-9_]+]] = greta_tile.reshape %[[V72]] : tensor<32x2x32xf32> -> tensor<32x64xf32>
// CHECK: %[[V74:[a-z0-9_]+]] = greta_tile.trans %[[V73]] [1, 0] : tensor<32x64xf32> -> tensor<64x32xf32>
// CHECK: %[[V75:[a-z0-9_]+]] = arith.mulf %[[V58]], %[[V74]] : tensor<64x32xf32>
// CHECK: %[[V76:[a-z0-9_]+]] = arith.truncf %[[V75]] : tensor<64x32xf32> to tensor<64x32xbf16>
// CHECK: %[[V77:[a-z0-9_]+]] = greta_tile.dot %[[V56]], %[[V76]], %[[V0]] : tensor<16x64xbf16>, tensor<64x32xbf16> -> tensor<16x32xf32>
// CHECK: %[[V78:[a-z0-9_]+]] = arith.extui %[[V2]] : tensor<16x32xi8> to tensor<16x32xi32>
// CHECK: %[[V79:[a-z0-9_]+]] = arith.constant dense<9> : tensor<16x32xi32>
// CHECK: %[[V80:[a-z0-9_]+]] = arith.shli %[[V78]], %[[V79]] : tensor<16x32xi32>
// CHECK: %[[V81:[a-z0-9_]+]] = arith.constant dense<3584> : tensor<16x32xi32>
// CHECK: %[[V82:[a-z0-9_]+]] = arith.andi %[[V80]], %[[V81]] : tensor<16x32xi32>
// CHECK: %[[V83:[a-z0-9_]+]] = arith.constant dense<12> : tensor<16x32xi32>
// CHECK: %[[V84:[a-z0-9_]+]] = arith.shli %[[V78]], %[[V83]] : tensor<16x32xi32>
// CHECK: %[[V85:[a-z0-9_]+]] = arith.constant dense<32768> : tensor<16x32xi32>
// CHECK: %[[V86:[a-z0-9_]+]] = arith.andi %[[V84]], %[[V85]] : tensor<16x32xi32>
// CHECK: %[[V87:[a-z0-9_]+]] = arith.ori %[[V82]], %[[V86]] : tensor<16x32xi32>
// CHECK: %[[V88:[a-z0-9_]+]] = arith.trunci %[[V87]] : tensor<16x32xi32> to tensor<16x32xi16>
// CHECK: %[[V89:[a-z0-9_]+]] = arith.bitcast %[[V88]] : tensor<16x32xi16> to tensor<16x32xf16>
// CHECK: %[[V90:[a-z0-9_]+]] = arith.extf %[[V89]] : tensor<16x32xf16> to tensor<16x32xf32>
// CHECK: %[[V91:[a-z0-9_]+]] = arith.constant dense<1.638400e+04> : tensor<16x32xf32>
// CHECK: %[[V92:[a-z0-9_]+]] = arith.mulf %[[V90]], %[[V91]] : tensor<16x32xf32>
// CHECK: %[[V93:[a-z0-9_]+]] = arith.constant dense<5> : tensor<16x32xi32>
// CHECK: %[[V94:[a-z0-9_]+]] = arith.shli %[[V78]], %[[V93]] : tensor<16x32xi32>
// CHECK: %[[V95:[a-z0-9_]+]] = arith.constant dense<3584> : tensor<16x32xi32>
// CHECK: %[[V96:[a-z0-9_]+]] = arith.andi %[[V94]], %[[V95]] : tensor<16x32xi32>
// CHECK: %[[V97:[a-z0-9_]+]] = arith.constant dense<8> : tensor<16x32xi32>
// CHECK: %[[V98:[a-z0-9_]+]] = arith.shli %[[V78]], %[[V97]] : tensor<16x32xi32>
// CHECK: %[[V99:[a-z0-9_]+]] = arith.constant dense<32768> : tensor<16x32xi32>
// CHECK: %[[V100:[a-z0-9_]+]] = arith.andi %[[V98]], %[[V99]] : tensor<16x32xi32>
// CHECK: %[[V101:[a-z0-9_]+]] = arith.ori %[[V96]], %[[V100]] : tensor<16x32xi32>
// CHECK: %[[V102:[a-z0-9_]+]] = arith.trunci %[[V101]] : tensor<16x32xi32> to tensor<16x32xi16>
// CHECK: %[[V103:[a-z0-9_]+]] = arith.bitcast %[[V102]] : tensor<16x32xi16> to tensor<16x32xf16>
// CHECK: %[[V104:[a-z0-9_]+]] = arith.extf %[[V103]] : tensor<16x32xf16> to tensor<16x32xf32>
// CHECK: %[[V105:[a-z0-9_]+]] = arith.constant dense<1.638400e+04> : tensor<16x32xf32>
// CHECK: %[[V106:[a-z0-9_]+]] = arith.mulf %[[V104]], %[[V105]] : tensor<16x32xf32>
// CHECK: %[[V107:[a-z0-9_]+]] = greta_tile.join %[[V92]], %[[V106]] : tensor<16x32xf32> -> tensor<16x32x2xf32>
// CHECK: %[[V108:[a-z0-9_]+]] = greta_tile.reshape %[[V107]] : tensor<16x32x2xf32> -> tensor<16x64xf32>
// CHECK: %[[V109:[a-z0-9_]+]] = arith.extui %[[V4]] : tensor<16x2xi8> to tensor<16x2xi32>
// CHECK: %[[V110:[a-z0-9_]+]] = arith.constant dense<23> : tensor<16x2xi32>
// CHECK: %[[V111:[a-z0-9_]+]] = arith.shli %[[V109]], %[[V110]] : tensor<16x2xi32>
// CHECK: %[[V112:[a-z0-9_]+]] = arith.constant dense<0> : tensor<16x2xi32>
// CHECK: %[[V113:[a-z0-9_]+]] = arith.cmpi eq, %[[V109]], %[[V112]] : tensor<16x2xi32>
// CHECK: %[[V114:[a-z0-9_]+]] = arith.constant dense<4194304> : tensor<16x2xi32>
// CHECK: %[[V115:[a-z0-9_]+]] = arith.select %[[V113]], %[[V114]], %[[V111]] : tensor<16x2xi1>, tensor<16x2xi32>
// CHECK: %[[V116:[a-z0-9_]+]] = arith.constant dense<255> : tensor<16x2xi32>
// CHECK: %[[V117:[a-z0-9_]+]] = arith.cmpi eq, %[[V109]], %[[V116]] : tensor<16x2xi32>
// CHECK: %[[V118:[a-z0-9_]+]] = arith.constant dense<2143289344> : tensor<16x2xi32>
// CHECK: %[[V119:[a-z0-9_]+]] = arith.select %[[V117]], %[[V118]], %[[V115]] : tensor<16x2xi1>, tensor<16x2xi32>
// CHECK: %[[V120:[a-z0-9_]+]] = arith.bitcast %[[V119]] : tensor<16x2xi32> to tensor<16x2xf32>
// CHECK: %[[V121:[a-z0-9_]+]] = greta_tile.reshape %[[V120]] : tensor<16x2xf32> -> tensor<16x2x1xf32>
// CHECK: %[[V122:[a-z0-9_]+]] = greta_tile.broadcast %[[V121]] : tensor<16x2x1xf32> -> tensor<16x2x32xf32>
// CHECK: %[[V123:[a-z0-9_]+]] = greta_tile.reshape %[[V122]] : tensor<16x2x32xf32> -> tensor<16x64xf32>
// CHECK: %[[V124:[a-z0-9_]+]] = arith.mulf %[[V108]], %[[V123]] : tensor<16x64xf32>
// CHECK: %[[V125:[a-z0-9_]+]] = arith.truncf %[[V124]] : tensor<16x64xf32> to tensor<16x64xbf16>
// CHECK: %[[V126:[a-z0-9_]+]] = arith.extf %[[V7]] : tensor<64x32xbf16> to tensor<64x32xf32>
// CHECK: %[[V127:[a-z0-9_]+]] = arith.truncf %[[V126]] : tensor<64x32xf32> to tensor<64x32xbf16>
// CHECK: %[[V128:[a-z0-9_]+]] = greta_tile.dot %[[V125]], %[[V127]], %[[V0]] : tensor<16x64xbf16>, tensor<64x32xbf16> -> tensor<16x32xf32>
// CHECK: greta_tile.store_scattered %[[V1]], %[[V129:[a-z0-9_]+]] : f32 -> !greta_tile.ptr<f32>
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
