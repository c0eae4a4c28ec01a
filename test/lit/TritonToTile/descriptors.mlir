// RUN: greta-opt --triton-to-tile %s | FileCheck %s

// Blocks behind descriptors are blocks of pointers, masked where they leave the tensor.

// CHECK-LABEL: greta_tile.func @made_0(
// CHECK: %[[V0:[a-z0-9_]+]] = arith.constant 1 : i64
// CHECK: %[[V1:[a-z0-9_]+]] = greta_tile.splat %[[V2:[a-z0-9_]+]] : tensor<16xi32>
// CHECK: %[[V3:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<16xi32>
// CHECK: %[[V4:[a-z0-9_]+]] = arith.addi %[[V1]], %[[V3]] : tensor<16xi32>
// CHECK: %[[V5:[a-z0-9_]+]] = arith.extsi %[[V4]] : tensor<16xi32> to tensor<16xi64>
// CHECK: %[[V6:[a-z0-9_]+]] = greta_tile.splat %[[V7:[a-z0-9_]+]] : tensor<16xi64>
// CHECK: %[[V8:[a-z0-9_]+]] = arith.muli %[[V5]], %[[V6]] : tensor<16xi64>
// CHECK: %[[V9:[a-z0-9_]+]] = greta_tile.reshape %[[V8]] : tensor<16xi64> -> tensor<16x1xi64>
// CHECK: %[[V10:[a-z0-9_]+]] = greta_tile.broadcast %[[V9]] : tensor<16x1xi64> -> tensor<16x32xi64>
// CHECK: %[[V11:[a-z0-9_]+]] = greta_tile.ptr_add %[[V12:[a-z0-9_]+]], %[[V10]] : !greta_tile.ptr<f32>, tensor<16x32xi64>
// CHECK: %[[V13:[a-z0-9_]+]] = arith.constant dense<0> : tensor<16xi32>
// CHECK: %[[V14:[a-z0-9_]+]] = arith.cmpi sge, %[[V4]], %[[V13]] : tensor<16xi32>
// CHECK: %[[V15:[a-z0-9_]+]] = greta_tile.splat %[[V16:[a-z0-9_]+]] : tensor<16xi32>
// CHECK: %[[V17:[a-z0-9_]+]] = arith.cmpi slt, %[[V4]], %[[V15]] : tensor<16xi32>
// CHECK: %[[V18:[a-z0-9_]+]] = arith.andi %[[V14]], %[[V17]] : tensor<16xi1>
// CHECK: %[[V19:[a-z0-9_]+]] = greta_tile.reshape %[[V18]] : tensor<16xi1> -> tensor<16x1xi1>
// CHECK: %[[V20:[a-z0-9_]+]] = greta_tile.broadcast %[[V19]] : tensor<16x1xi1> -> tensor<16x32xi1>
// CHECK: %[[V21:[a-z0-9_]+]] = greta_tile.splat %[[V22:[a-z0-9_]+]] : tensor<32xi32>
// CHECK: %[[V23:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<32xi32>
// CHECK: %[[V24:[a-z0-9_]+]] = arith.addi %[[V21]], %[[V23]] : tensor<32xi32>
// CHECK: %[[V25:[a-z0-9_]+]] = arith.extsi %[[V24]] : tensor<32xi32> to tensor<32xi64>
// CHECK: %[[V26:[a-z0-9_]+]] = greta_tile.splat %[[V0]] : tensor<32xi64>
// CHECK: %[[V27:[a-z0-9_]+]] = arith.muli %[[V25]], %[[V26]] : tensor<32xi64>
// CHECK: %[[V28:[a-z0-9_]+]] = greta_tile.reshape %[[V27]] : tensor<32xi64> -> tensor<1x32xi64>
// CHECK: %[[V29:[a-z0-9_]+]] = greta_tile.broadcast %[[V28]] : tensor<1x32xi64> -> tensor<16x32xi64>
// CHECK: %[[V30:[a-z0-9_]+]] = greta_tile.ptr_add %[[V11]], %[[V29]] : tensor<16x32x!greta_tile.ptr<f32>>, tensor<16x32xi64>
// CHECK: %[[V31:[a-z0-9_]+]] = arith.constant dense<0> : tensor<32xi32>
// CHECK: %[[V32:[a-z0-9_]+]] = arith.cmpi sge, %[[V24]], %[[V31]] : tensor<32xi32>
// CHECK: %[[V33:[a-z0-9_]+]] = greta_tile.splat %[[V22]] : tensor<32xi32>
// CHECK: %[[V34:[a-z0-9_]+]] = arith.cmpi slt, %[[V24]], %[[V33]] : tensor<32xi32>
// CHECK: %[[V35:[a-z0-9_]+]] = arith.andi %[[V32]], %[[V34]] : tensor<32xi1>
// CHECK: %[[V36:[a-z0-9_]+]] = greta_tile.reshape %[[V35]] : tensor<32xi1> -> tensor<1x32xi1>
// CHECK: %[[V37:[a-z0-9_]+]] = greta_tile.broadcast %[[V36]] : tensor<1x32xi1> -> tensor<16x32xi1>
// CHECK: %[[V38:[a-z0-9_]+]] = arith.andi %[[V20]], %[[V37]] : tensor<16x32xi1>
// CHECK: %[[V39:[a-z0-9_]+]] = arith.constant dense<0x7FC00000> : tensor<16x32xf32>
// CHECK: %[[V40:[a-z0-9_]+]] = greta_tile.load_scattered %[[V30]] mask %[[V38]] other %[[V39]] : tensor<16x32x!greta_tile.ptr<f32>> -> tensor<16x32xf32>
// CHECK: %[[V41:[a-z0-9_]+]] = greta_tile.splat %[[V2]] : tensor<16xi32>
// CHECK: %[[V42:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<16xi32>
// CHECK: %[[V43:[a-z0-9_]+]] = arith.addi %[[V41]], %[[V42]] : tensor<16xi32>
// CHECK: %[[V44:[a-z0-9_]+]] = arith.extsi %[[V43]] : tensor<16xi32> to tensor<16xi64>
// CHECK: %[[V45:[a-z0-9_]+]] = greta_tile.splat %[[V7]] : tensor<16xi64>
// CHECK: %[[V46:[a-z0-9_]+]] = arith.muli %[[V44]], %[[V45]] : tensor<16xi64>
// CHECK: %[[V47:[a-z0-9_]+]] = greta_tile.reshape %[[V46]] : tensor<16xi64> -> tensor<16x1xi64>
// CHECK: %[[V48:[a-z0-9_]+]] = greta_tile.broadcast %[[V47]] : tensor<16x1xi64> -> tensor<16x32xi64>
// CHECK: %[[V49:[a-z0-9_]+]] = greta_tile.ptr_add %[[V12]], %[[V48]] : !greta_tile.ptr<f32>, tensor<16x32xi64>
// CHECK: %[[V50:[a-z0-9_]+]] = arith.constant dense<0> : tensor<16xi32>
// CHECK: %[[V51:[a-z0-9_]+]] = arith.cmpi sge, %[[V43]], %[[V50]] : tensor<16xi32>
// CHECK: %[[V52:[a-z0-9_]+]] = greta_tile.splat %[[V16]] : tensor<16xi32>
// CHECK: %[[V53:[a-z0-9_]+]] = arith.cmpi slt, %[[V43]], %[[V52]] : tensor<16xi32>
// CHECK: %[[V54:[a-z0-9_]+]] = arith.andi %[[V51]], %[[V53]] : tensor<16xi1>
// CHECK: %[[V55:[a-z0-9_]+]] = greta_tile.reshape %[[V54]] : tensor<16xi1> -> tensor<16x1xi1>
// CHECK: %[[V56:[a-z0-9_]+]] = greta_tile.broadcast %[[V55]] : tensor<16x1xi1> -> tensor<16x32xi1>
// CHECK: %[[V57:[a-z0-9_]+]] = greta_tile.splat %[[V22]] : tensor<32xi32>
// CHECK: %[[V58:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<32xi32>
// CHECK: %[[V59:[a-z0-9_]+]] = arith.addi %[[V57]], %[[V58]] : tensor<32xi32>
// CHECK: %[[V60:[a-z0-9_]+]] = arith.extsi %[[V59]] : tensor<32xi32> to tensor<32xi64>
// CHECK: %[[V61:[a-z0-9_]+]] = greta_tile.splat %[[V0]] : tensor<32xi64>
// CHECK: %[[V62:[a-z0-9_]+]] = arith.muli %[[V60]], %[[V61]] : tensor<32xi64>
// CHECK: %[[V63:[a-z0-9_]+]] = greta_tile.reshape %[[V62]] : tensor<32xi64> -> tensor<1x32xi64>
// CHECK: %[[V64:[a-z0-9_]+]] = greta_tile.broadcast %[[V63]] : tensor<1x32xi64> -> tensor<16x32xi64>
// CHECK: %[[V65:[a-z0-9_]+]] = greta_tile.ptr_add %[[V49]], %[[V64]] : tensor<16x32x!greta_tile.ptr<f32>>, tensor<16x32xi64>
// CHECK: %[[V66:[a-z0-9_]+]] = arith.constant dense<0> : tensor<32xi32>
// CHECK: %[[V67:[a-z0-9_]+]] = arith.cmpi sge, %[[V59]], %[[V66]] : tensor<32xi32>
// CHECK: %[[V68:[a-z0-9_]+]] = greta_tile.splat %[[V22]] : tensor<32xi32>
// CHECK: %[[V69:[a-z0-9_]+]] = arith.cmpi slt, %[[V59]], %[[V68]] : tensor<32xi32>
// CHECK: %[[V70:[a-z0-9_]+]] = arith.andi %[[V67]], %[[V69]] : tensor<32xi1>
// CHECK: %[[V71:[a-z0-9_]+]] = greta_tile.reshape %[[V70]] : tensor<32xi1> -> tensor<1x32xi1>
// CHECK: %[[V72:[a-z0-9_]+]] = greta_tile.broadcast %[[V71]] : tensor<1x32xi1> -> tensor<16x32xi1>
// CHECK: %[[V73:[a-z0-9_]+]] = arith.andi %[[V56]], %[[V72]] : tensor<16x32xi1>
// CHECK: greta_tile.store_scattered %[[V40]], %[[V65]] mask %[[V73]] : tensor<16x32xf32> -> tensor<16x32x!greta_tile.ptr<f32>>
// CHECK: %[[V74:[a-z0-9_]+]] = greta_tile.splat %[[V2]] : tensor<16xi32>
// CHECK: %[[V75:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<16xi32>
// CHECK: %[[V76:[a-z0-9_]+]] = arith.addi %[[V74]], %[[V75]] : tensor<16xi32>
// CHECK: %[[V77:[a-z0-9_]+]] = arith.extsi %[[V76]] : tensor<16xi32> to tensor<16xi64>
// CHECK: %[[V78:[a-z0-9_]+]] = greta_tile.splat %[[V7]] : tensor<16xi64>
// CHECK: %[[V79:[a-z0-9_]+]] = arith.muli %[[V77]], %[[V78]] : tensor<16xi64>
// CHECK: %[[V80:[a-z0-9_]+]] = greta_tile.reshape %[[V79]] : tensor<16xi64> -> tensor<16x1xi64>
// CHECK: %[[V81:[a-z0-9_]+]] = greta_tile.broadcast %[[V80]] : tensor<16x1xi64> -> tensor<16x32xi64>
// CHECK: %[[V82:[a-z0-9_]+]] = greta_tile.ptr_add %[[V12]], %[[V81]] : !greta_tile.ptr<f32>, tensor<16x32xi64>
// CHECK: %[[V83:[a-z0-9_]+]] = arith.constant dense<0> : tensor<16xi32>
// CHECK: %[[V84:[a-z0-9_]+]] = arith.cmpi sge, %[[V76]], %[[V83]] : tensor<16xi32>
// CHECK: %[[V85:[a-z0-9_]+]] = greta_tile.splat %[[V16]] : tensor<16xi32>
// CHECK: %[[V86:[a-z0-9_]+]] = arith.cmpi slt, %[[V76]], %[[V85]] : tensor<16xi32>
// CHECK: %[[V87:[a-z0-9_]+]] = arith.andi %[[V84]], %[[V86]] : tensor<16xi1>
// CHECK: %[[V88:[a-z0-9_]+]] = greta_tile.reshape %[[V87]] : tensor<16xi1> -> tensor<16x1xi1>
// CHECK: %[[V89:[a-z0-9_]+]] = greta_tile.broadcast %[[V88]] : tensor<16x1xi1> -> tensor<16x32xi1>
// CHECK: %[[V90:[a-z0-9_]+]] = greta_tile.splat %[[V22]] : tensor<32xi32>
// CHECK: %[[V91:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<32xi32>
// CHECK: %[[V92:[a-z0-9_]+]] = arith.addi %[[V90]], %[[V91]] : tensor<32xi32>
// CHECK: %[[V93:[a-z0-9_]+]] = arith.extsi %[[V92]] : tensor<32xi32> to tensor<32xi64>
// CHECK: %[[V94:[a-z0-9_]+]] = greta_tile.splat %[[V0]] : tensor<32xi64>
// CHECK: %[[V95:[a-z0-9_]+]] = arith.muli %[[V93]], %[[V94]] : tensor<32xi64>
// CHECK: %[[V96:[a-z0-9_]+]] = greta_tile.reshape %[[V95]] : tensor<32xi64> -> tensor<1x32xi64>
// CHECK: %[[V97:[a-z0-9_]+]] = greta_tile.broadcast %[[V96]] : tensor<1x32xi64> -> tensor<16x32xi64>
// CHECK: %[[V98:[a-z0-9_]+]] = greta_tile.ptr_add %[[V82]], %[[V97]] : tensor<16x32x!greta_tile.ptr<f32>>, tensor<16x32xi64>
// CHECK: %[[V99:[a-z0-9_]+]] = arith.constant dense<0> : tensor<32xi32>
// CHECK: %[[V100:[a-z0-9_]+]] = arith.cmpi sge, %[[V92]], %[[V99]] : tensor<32xi32>
// CHECK: %[[V101:[a-z0-9_]+]] = greta_tile.splat %[[V22]] : tensor<32xi32>
// CHECK: %[[V102:[a-z0-9_]+]] = arith.cmpi slt, %[[V92]], %[[V101]] : tensor<32xi32>
// CHECK: %[[V103:[a-z0-9_]+]] = arith.andi %[[V100]], %[[V102]] : tensor<32xi1>
// CHECK: %[[V104:[a-z0-9_]+]] = greta_tile.reshape %[[V103]] : tensor<32xi1> -> tensor<1x32xi1>
// CHECK: %[[V105:[a-z0-9_]+]] = greta_tile.broadcast %[[V104]] : tensor<1x32xi1> -> tensor<16x32xi1>
// CHECK: %[[V106:[a-z0-9_]+]] = arith.andi %[[V89]], %[[V105]] : tensor<16x32xi1>
// CHECK: %[[V107:[a-z0-9_]+]] = greta_tile.atomic_rmw fadd relaxed device %[[V98]], %[[V40]] mask %[[V106]] : tensor<16x32x!greta_tile.ptr<f32>> -> tensor<16x32xf32>
// CHECK: greta_tile.return
tt.func public @made(%p: !tt.ptr<f32>, %m: i32, %n: i32, %s: i64, %i: i32) {
  %one = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%m, %n], [%s, %one] {padding = 2 : i32} : <f32>, <16x32xf32>
  %0 = tt.descriptor_load %d[%i, %n] : !tt.tensordesc<16x32xf32> -> tensor<16x32xf32>
  tt.descriptor_store %d[%i, %n], %0 : !tt.tensordesc<16x32xf32>, tensor<16x32xf32>
  tt.descriptor_reduce add, %d[%i, %n], %0 : !tt.tensordesc<16x32xf32>, tensor<16x32xf32>
  tt.return
}

// Shape and strides come as arguments behind the pointer.
// CHECK-LABEL: greta_tile.func @passed_0(
// CHECK: %[[V0:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<16xi32>
// CHECK: %[[V1:[a-z0-9_]+]] = arith.extsi %[[V0]] : tensor<16xi32> to tensor<16xi64>
// CHECK: %[[V2:[a-z0-9_]+]] = greta_tile.splat %[[V3:[a-z0-9_]+]] : tensor<16xi64>
// CHECK: %[[V4:[a-z0-9_]+]] = arith.muli %[[V1]], %[[V2]] : tensor<16xi64>
// CHECK: %[[V5:[a-z0-9_]+]] = greta_tile.reshape %[[V4]] : tensor<16xi64> -> tensor<16x1xi64>
// CHECK: %[[V6:[a-z0-9_]+]] = greta_tile.broadcast %[[V5]] : tensor<16x1xi64> -> tensor<16x32xi64>
// CHECK: %[[V7:[a-z0-9_]+]] = greta_tile.ptr_add %[[V8:[a-z0-9_]+]], %[[V6]] : !greta_tile.ptr<f32>, tensor<16x32xi64>
// CHECK: %[[V9:[a-z0-9_]+]] = arith.constant dense<0> : tensor<16xi32>
// CHECK: %[[V10:[a-z0-9_]+]] = arith.cmpi sge, %[[V0]], %[[V9]] : tensor<16xi32>
// CHECK: %[[V11:[a-z0-9_]+]] = greta_tile.splat %[[V12:[a-z0-9_]+]] : tensor<16xi32>
// CHECK: %[[V13:[a-z0-9_]+]] = arith.cmpi slt, %[[V0]], %[[V11]] : tensor<16xi32>
// CHECK: %[[V14:[a-z0-9_]+]] = arith.andi %[[V10]], %[[V13]] : tensor<16xi1>
// CHECK: %[[V15:[a-z0-9_]+]] = greta_tile.reshape %[[V14]] : tensor<16xi1> -> tensor<16x1xi1>
// CHECK: %[[V16:[a-z0-9_]+]] = greta_tile.broadcast %[[V15]] : tensor<16x1xi1> -> tensor<16x32xi1>
// CHECK: %[[V17:[a-z0-9_]+]] = greta_tile.splat %[[V18:[a-z0-9_]+]] : tensor<32xi32>
// CHECK: %[[V19:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<32xi32>
// CHECK: %[[V20:[a-z0-9_]+]] = arith.addi %[[V17]], %[[V19]] : tensor<32xi32>
// CHECK: %[[V21:[a-z0-9_]+]] = arith.extsi %[[V20]] : tensor<32xi32> to tensor<32xi64>
// CHECK: %[[V22:[a-z0-9_]+]] = greta_tile.splat %[[V23:[a-z0-9_]+]] : tensor<32xi64>
// CHECK: %[[V24:[a-z0-9_]+]] = arith.muli %[[V21]], %[[V22]] : tensor<32xi64>
// CHECK: %[[V25:[a-z0-9_]+]] = greta_tile.reshape %[[V24]] : tensor<32xi64> -> tensor<1x32xi64>
// CHECK: %[[V26:[a-z0-9_]+]] = greta_tile.broadcast %[[V25]] : tensor<1x32xi64> -> tensor<16x32xi64>
// CHECK: %[[V27:[a-z0-9_]+]] = greta_tile.ptr_add %[[V7]], %[[V26]] : tensor<16x32x!greta_tile.ptr<f32>>, tensor<16x32xi64>
// CHECK: %[[V28:[a-z0-9_]+]] = arith.constant dense<0> : tensor<32xi32>
// CHECK: %[[V29:[a-z0-9_]+]] = arith.cmpi sge, %[[V20]], %[[V28]] : tensor<32xi32>
// CHECK: %[[V30:[a-z0-9_]+]] = greta_tile.splat %[[V31:[a-z0-9_]+]] : tensor<32xi32>
// CHECK: %[[V32:[a-z0-9_]+]] = arith.cmpi slt, %[[V20]], %[[V30]] : tensor<32xi32>
// CHECK: %[[V33:[a-z0-9_]+]] = arith.andi %[[V29]], %[[V32]] : tensor<32xi1>
// CHECK: %[[V34:[a-z0-9_]+]] = greta_tile.reshape %[[V33]] : tensor<32xi1> -> tensor<1x32xi1>
// CHECK: %[[V35:[a-z0-9_]+]] = greta_tile.broadcast %[[V34]] : tensor<1x32xi1> -> tensor<16x32xi1>
// CHECK: %[[V36:[a-z0-9_]+]] = arith.andi %[[V16]], %[[V35]] : tensor<16x32xi1>
// CHECK: %[[V37:[a-z0-9_]+]] = greta_tile.load_scattered %[[V27]] mask %[[V36]] : tensor<16x32x!greta_tile.ptr<f32>> -> tensor<16x32xf32>
// CHECK: %[[V38:[a-z0-9_]+]] = arith.extsi %[[V0]] : tensor<16xi32> to tensor<16xi64>
// CHECK: %[[V39:[a-z0-9_]+]] = greta_tile.splat %[[V3]] : tensor<16xi64>
// CHECK: %[[V40:[a-z0-9_]+]] = arith.muli %[[V38]], %[[V39]] : tensor<16xi64>
// CHECK: %[[V41:[a-z0-9_]+]] = greta_tile.reshape %[[V40]] : tensor<16xi64> -> tensor<16x1xi64>
// CHECK: %[[V42:[a-z0-9_]+]] = greta_tile.broadcast %[[V41]] : tensor<16x1xi64> -> tensor<16x32xi64>
// CHECK: %[[V43:[a-z0-9_]+]] = greta_tile.ptr_add %[[V8]], %[[V42]] : !greta_tile.ptr<f32>, tensor<16x32xi64>
// CHECK: %[[V44:[a-z0-9_]+]] = arith.constant dense<0> : tensor<16xi32>
// CHECK: %[[V45:[a-z0-9_]+]] = arith.cmpi sge, %[[V0]], %[[V44]] : tensor<16xi32>
// CHECK: %[[V46:[a-z0-9_]+]] = greta_tile.splat %[[V12]] : tensor<16xi32>
// CHECK: %[[V47:[a-z0-9_]+]] = arith.cmpi slt, %[[V0]], %[[V46]] : tensor<16xi32>
// CHECK: %[[V48:[a-z0-9_]+]] = arith.andi %[[V45]], %[[V47]] : tensor<16xi1>
// CHECK: %[[V49:[a-z0-9_]+]] = greta_tile.reshape %[[V48]] : tensor<16xi1> -> tensor<16x1xi1>
// CHECK: %[[V50:[a-z0-9_]+]] = greta_tile.broadcast %[[V49]] : tensor<16x1xi1> -> tensor<16x32xi1>
// CHECK: %[[V51:[a-z0-9_]+]] = greta_tile.splat %[[V18]] : tensor<32xi32>
// CHECK: %[[V52:[a-z0-9_]+]] = greta_tile.iota 0 : tensor<32xi32>
// CHECK: %[[V53:[a-z0-9_]+]] = arith.addi %[[V51]], %[[V52]] : tensor<32xi32>
// CHECK: %[[V54:[a-z0-9_]+]] = arith.extsi %[[V53]] : tensor<32xi32> to tensor<32xi64>
// CHECK: %[[V55:[a-z0-9_]+]] = greta_tile.splat %[[V23]] : tensor<32xi64>
// CHECK: %[[V56:[a-z0-9_]+]] = arith.muli %[[V54]], %[[V55]] : tensor<32xi64>
// CHECK: %[[V57:[a-z0-9_]+]] = greta_tile.reshape %[[V56]] : tensor<32xi64> -> tensor<1x32xi64>
// CHECK: %[[V58:[a-z0-9_]+]] = greta_tile.broadcast %[[V57]] : tensor<1x32xi64> -> tensor<16x32xi64>
// CHECK: %[[V59:[a-z0-9_]+]] = greta_tile.ptr_add %[[V43]], %[[V58]] : tensor<16x32x!greta_tile.ptr<f32>>, tensor<16x32xi64>
// CHECK: %[[V60:[a-z0-9_]+]] = arith.constant dense<0> : tensor<32xi32>
// CHECK: %[[V61:[a-z0-9_]+]] = arith.cmpi sge, %[[V53]], %[[V60]] : tensor<32xi32>
// CHECK: %[[V62:[a-z0-9_]+]] = greta_tile.splat %[[V31]] : tensor<32xi32>
// CHECK: %[[V63:[a-z0-9_]+]] = arith.cmpi slt, %[[V53]], %[[V62]] : tensor<32xi32>
// CHECK: %[[V64:[a-z0-9_]+]] = arith.andi %[[V61]], %[[V63]] : tensor<32xi1>
// CHECK: %[[V65:[a-z0-9_]+]] = greta_tile.reshape %[[V64]] : tensor<32xi1> -> tensor<1x32xi1>
// CHECK: %[[V66:[a-z0-9_]+]] = greta_tile.broadcast %[[V65]] : tensor<1x32xi1> -> tensor<16x32xi1>
// CHECK: %[[V67:[a-z0-9_]+]] = arith.andi %[[V50]], %[[V66]] : tensor<16x32xi1>
// CHECK: greta_tile.store_scattered %[[V37]], %[[V59]] mask %[[V67]] : tensor<16x32xf32> -> tensor<16x32x!greta_tile.ptr<f32>>
// CHECK: greta_tile.return
tt.func public @passed(%d: !tt.tensordesc<tensor<1x32xf32>>, %d_0: i32, %d_1: i32, %d_2: i64, %d_3: i64, %k: i32) {
  %rows = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %0 = tt.descriptor_gather %d[%rows, %k] : (!tt.tensordesc<1x32xf32>, tensor<16xi32>, i32) -> tensor<16x32xf32>
  tt.descriptor_scatter %d[%rows, %k], %0 : !tt.tensordesc<1x32xf32>, tensor<16xi32>, i32, tensor<16x32xf32>
  tt.return
}

// Unsigned types of the language are pointers to integers without a sign.
// CHECK-LABEL: greta_tile.func @unsigned_0(
// CHECK-SAME: !greta_tile.ptr<i8>
tt.func public @unsigned(%d: !tt.tensordesc<16x32xui8>, %d_0: i32, %d_1: i32, %d_2: i64, %d_3: i64, %k: i32) {
  // CHECK: greta_tile.load_scattered %{{.*}} : tensor<16x32x!greta_tile.ptr<i8>> -> tensor<16x32xi8>
  %0 = tt.descriptor_load %d[%k, %k] : !tt.tensordesc<16x32xui8> -> tensor<16x32xi8>
  tt.descriptor_store %d[%k, %k], %0 : !tt.tensordesc<16x32xui8>, tensor<16x32xi8>
  tt.return
}
