// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --greta-to-tile --cse %s | FileCheck %s --check-prefixes=CHECK,GPU
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=vulkan:lavapipe --greta-to-tile --cse %s | FileCheck %s --check-prefixes=CHECK,CPU

// A row in registers. Columns that do not exist are -inf, so that neither the
// maximum nor the sum sees them; rows beyond the edge are not stored.
// GPU: #[[GRID:.*]] = affine_map<()[s0] -> (s0 ceildiv 4)>
// GPU-LABEL: greta_tile.func @softmax_0(%arg0: !greta_tile.ptr<f16>, %arg1: !greta_tile.ptr<f16>, %arg2: i32 {greta.nonnegative}) attributes {wave_size = 64 : i32, waves = 4 : i32}
// GPU: %[[ID:.*]] = greta_tile.program_id 0
// GPU: %[[ROW:.*]] = arith.muli %[[ID]], %c4_i32
// GPU: %[[INF:.*]] = arith.constant 0xFC00 : f16
// GPU: %[[X:.*]] = greta_tile.load %arg0[%[[ROW]], %c0_i32] strides [1000, 1] bounds [0, 1](%arg2, %c1000_i32) other %[[INF]] : f16 : <f16> -> tensor<4x1024xf16>
// GPU: %[[WIDE:.*]] = arith.extf %[[X]]
// GPU: %[[MAXL:.*]] = greta_tile.reduce {arith.maxnumf {fastmath = #arith.fastmath<nnan>}} %[[WIDE]] axis 1
// GPU: %[[MAX:.*]] = greta_tile.reshape %[[MAXL]]
// GPU: %[[MAXB:.*]] = greta_tile.broadcast %[[MAX]]
// GPU: %[[D:.*]] = arith.subf %[[WIDE]], %[[MAXB]]
// GPU: arith.mulf %[[D]], %{{.*}}
// GPU: %[[E:.*]] = math.exp2
// GPU: greta_tile.reduce {arith.addf} %[[E]] axis 1
// GPU: arith.divf
// GPU: %[[Y:.*]] = arith.truncf
// GPU: greta_tile.store %[[Y]], %arg1[%[[ROW]], %c0_i32] strides [1000, 1] bounds [0, 1](%arg2, %c1000_i32)
// GPU: greta_tile.launch @softmax_0 grid #[[GRID]] scalars #{{.*}}(%arg0) shapes [#{{.*}}] {config = {columns = 1024 : i64, rows = 4 : i64, waves = 4 : i64}}
// Vulkan's axes are short: two of them, and the surplus does nothing.
// CPU: affine_map<()[s0] -> (s0 ceildiv (s0 floordiv 65535 + 1), s0 floordiv 65535 + 1)>
// CPU-LABEL: greta_tile.func @softmax_0
// CPU: %[[X:.*]] = greta_tile.program_id 0
// CPU: %[[Y:.*]] = greta_tile.program_id 1
// CPU: %[[UP:.*]] = arith.muli %[[Y]], %arg2
// CPU: %[[ID:.*]] = arith.addi %[[UP]], %[[X]]
// CPU: %[[MINE:.*]] = arith.cmpi slt, %[[ID]], %arg3
// CPU: scf.if %[[MINE]]
// CPU: greta_tile.load
func.func @softmax(%x: tensor<?x1000xf16>) -> tensor<?x1000xf16> {
  %0 = greta.softmax %x : tensor<?x1000xf16> -> tensor<?x1000xf16>
  return %0 : tensor<?x1000xf16>
}

// -----

// Two stages: the mean, then the variance. A CPU loops over the columns, with
// accumulators as blocks; bf16 work is rounded where the source says so; what
// was computed is masked before it is summed, except where zeros stay zeros.
// CPU-LABEL: greta_tile.func @layer_norm_0
// CPU: %[[SUMS:.*]] = scf.for %[[C:.*]] = %c0_i32 to %c8000_i32 step %c512_i32 iter_args(%[[ACC:.*]] = %
// CPU: greta_tile.load %arg0[%{{.*}}, %[[C]]] strides [8000, 1] bounds [1](%c8000_i32) other
// CPU: %[[P:.*]] = arith.mulf %{{.*}} : tensor<1x512xf32>
// CPU: %[[R:.*]] = arith.truncf %[[P]] : tensor<1x512xf32> to tensor<1x512xbf16>
// CPU: %[[W:.*]] = arith.extf %[[R]]
// CPU: %[[IOTA:.*]] = greta_tile.iota 1
// CPU: %[[MASK:.*]] = arith.cmpi slt, %[[IOTA]]
// CPU: %[[MASKED:.*]] = arith.select %[[MASK]], %[[W]], %
// CPU: %[[NEXT:.*]] = arith.addf %[[ACC]], %[[MASKED]]
// CPU: scf.yield %[[NEXT]]
// CPU: %[[LINE:.*]] = greta_tile.reduce {arith.addf} %[[SUMS]] axis 1
// CPU: %[[SUM:.*]] = greta_tile.reshape %[[LINE]]
// CPU: %[[MEAN:.*]] = arith.mulf %[[SUM]]
// CPU: scf.for
// CPU: %[[MEANB:.*]] = greta_tile.broadcast %[[MEAN]]
// CPU: %[[DEV:.*]] = arith.subf %{{.*}}, %[[MEANB]]
// CPU: arith.mulf %[[DEV]], %[[DEV]]
// CPU: arith.select
// CPU: greta_tile.reduce {arith.addf}
// CPU: math.rsqrt
// CPU: scf.for
// CPU-NOT: scf.yield
// CPU: greta_tile.store
// In registers the same without loops: 8000 = 125 runs of 64.
// GPU-LABEL: greta_tile.func @layer_norm_0
// GPU-NOT: scf.for
// GPU-COUNT-2: greta_tile.reduce {arith.addf}
func.func @layer_norm(%x: tensor<?x8000xbf16>, %s: tensor<?x8000xbf16>, %w: tensor<8000xbf16>) -> tensor<?x8000xbf16> {
  %y = arith.mulf %x, %s : tensor<?x8000xbf16>
  %0 = greta.layer_norm %y, %w, %w {eps = 1.0e-5 : f32} : tensor<?x8000xbf16>, tensor<8000xbf16>, tensor<8000xbf16> -> tensor<?x8000xbf16>
  return %0 : tensor<?x8000xbf16>
}

// -----

// f16 additions stay f16, other f16 arithmetic goes through f32.
// CHECK-LABEL: greta_tile.func @elementwise_0
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}} : tensor<[[S:.*]]xf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[SUM]]
// CHECK: %[[EXP:.*]] = math.exp %[[WIDE]] : tensor<[[S]]xf32>
// CHECK: arith.truncf %[[EXP]]
func.func @elementwise(%x: tensor<?x64xf16>, %y: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %0 = arith.addf %x, %y : tensor<?x64xf16>
  %1 = math.exp %0 : tensor<?x64xf16>
  return %1 : tensor<?x64xf16>
}

// -----

// Halves: a dimension of 2 at a stride of half a head; the tables have no heads.
// GPU-LABEL: greta_tile.func @rope_pair_0
// GPU: %[[ID:.*]] = greta_tile.program_id 0
// GPU: %[[FIRST:.*]] = arith.cmpi slt, %[[ID]], %[[N:.*]] : i32
// GPU: scf.if %[[FIRST]] {
// GPU: %[[X:.*]] = greta_tile.load %arg0[%[[ID]], %c0_i32, %c0_i32, %c0_i32] strides [4096, 128, 64, 1] bounds [] : <f16> -> tensor<1x32x2x64xf16>
// GPU: %[[W:.*]] = arith.extf %[[X]]
// GPU: %[[PAIRS:.*]] = greta_tile.trans %[[W]] [0, 1, 3, 2] : tensor<1x32x2x64xf32> -> tensor<1x32x64x2xf32>
// GPU: %[[H:.*]], %[[I:.*]] = greta_tile.split %[[PAIRS]]
// GPU: %[[J:.*]] = greta_tile.join %[[I]], %[[H]]
// GPU: greta_tile.trans %[[J]] [0, 1, 3, 2]
// GPU: greta_tile.load %arg2[%[[ID]], %c0_i32, %c0_i32, %c0_i32] strides [64, 0, 0, 1] bounds [] : <f32> -> tensor<1x1x1x64xf32>
// GPU: arith.select
// GPU: greta_tile.load %arg1[%[[ID]], %c0_i32, %c0_i32, %c0_i32] strides [64, 0, 0, 1] bounds [] : <f32> -> tensor<1x1x1x64xf32>
// GPU: } else {
// GPU: arith.subi %[[ID]], %[[N]]
// GPU: greta_tile.load %arg3[%{{.*}}] strides [1024, 128, 64, 1] bounds [0](%{{.*}}) : <f16> -> tensor<4x8x2x64xf16>
func.func @rope_pair(%q: tensor<?x32x128xf16>, %k: tensor<?x8x128xf16>, %cos: tensor<?x64xf32>, %sin: tensor<?x64xf32>) -> (tensor<?x32x128xf16>, tensor<?x8x128xf16>) {
  %0 = greta.rope %q, %cos, %sin {style = "neox"} : tensor<?x32x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x32x128xf16>
  %1 = greta.rope %k, %cos, %sin {style = "neox"} : tensor<?x8x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x8x128xf16>
  return %0, %1 : tensor<?x32x128xf16>, tensor<?x8x128xf16>
}

// -----

// Pairs: the last dimension of 2. Half a head of 50 is padded; a norm before it
// sums over both dimensions.
// GPU-LABEL: greta_tile.func @pairs_0
// GPU: greta_tile.load %arg0[%{{.*}}] strides [300, 100, 2, 1] bounds [0, 2](%{{.*}}, %c50_i32) other %{{.*}} : f16 : <f16> -> tensor<{{[0-9]+}}x1x[[H:5[0-9]|6[0-9]]]x2xf16>
// GPU: %[[L:.*]] = greta_tile.reduce {arith.addf} %{{.*}} axis 2
// GPU: %[[S:.*]] = greta_tile.reshape %[[L]]
// GPU: greta_tile.reduce {arith.addf} %[[S]] axis 3
// GPU: greta_tile.load %arg1[%c0_i32, %c0_i32, %c0_i32, %c0_i32] strides [0, 0, 2, 1] bounds [2](%c50_i32)
// GPU: greta_tile.load %arg2{{.*}} strides [50, 0, 1, 0]
func.func @pairs(%x: tensor<?x3x100xf16>, %w: tensor<100xf16>, %t: tensor<?x50xf32>) -> tensor<?x3x100xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x3x100xf16>, tensor<100xf16> -> tensor<?x3x100xf16>
  %1 = greta.rope %0, %t, %t {style = "gptj"} : tensor<?x3x100xf16>, tensor<?x50xf32>, tensor<?x50xf32> -> tensor<?x3x100xf16>
  return %1 : tensor<?x3x100xf16>
}

// -----

// A product with everything dynamic and both operands transposed; bias after it. Rows of B beyond N are the last one again. Without any K
// nothing is loaded.
// GPU-LABEL: greta_tile.func @matmul_0
// GPU-SAME: %[[M:arg4]]: i32 {greta.nonnegative}, %[[K:arg5]]: i32
// GPU: %[[SOME:.*]] = arith.cmpi sgt, %[[K]], %c0_i32
// GPU: %[[ACC:.*]] = scf.if %[[SOME]]
// GPU: scf.for %[[I:.*]] = %c0_i32 to %[[K]] step %c[[D:32|64|128|256]]_i32 iter_args(%[[SUM:.*]] = %
// GPU: %[[A:.*]] = greta_tile.load %arg0[%[[ROW:.*]], %[[I]]] strides [1, -9223372036854775808](%[[M]]) bounds [0, 1](%[[M]], %[[K]]) : <f16> -> tensor<[[TM:[0-9]+]]x[[D]]xf16>
// GPU: %[[B:.*]] = greta_tile.load %arg1[%[[I]], %[[C:.*]]] strides [1, -9223372036854775808](%[[K]]) bounds [0, 1](%[[K]], %c33_i32{{.*}}) clamp [1] : <f16> -> tensor<[[D]]x[[TN:[0-9]+]]xf16>
// GPU: %[[DOT:.*]] = greta_tile.dot %[[A]], %[[B]], %[[SUM]] {matrix = #greta_tile.matrix<"mfma.f32.16x16x16f16" swapped = true,{{.*}} -> tensor<[[TM]]x[[TN]]xf32>
// GPU: scf.yield %[[DOT]]
// GPU: {greta_tile.pipeline = #greta_tile.pipeline<stages = 2, slice = {{[0-9]+}}>}
// GPU: } else {
// GPU: scf.yield %cst
// GPU: %[[Y:.*]] = arith.truncf %[[ACC]]
// GPU: greta_tile.load %arg2[%c0_i32, %[[C]]] strides [0, 1] bounds [1](%c33_i32{{.*}}) : <f16> -> tensor<1x[[TN]]xf16>
// GPU: arith.addf %[[Y]]
// GPU: greta_tile.store %{{.*}}, %arg3[%[[ROW]], %[[C]]] strides [33, 1] bounds [0, 1](%[[M]], %c33_i32{{.*}})
func.func @matmul(%a: tensor<?x?xf16>, %b: tensor<33x?xf16>, %bias: tensor<33xf16>) -> tensor<?x33xf16> {
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c1 : tensor<?x?xf16>
  %e = tensor.empty(%m) : tensor<?x33xf16>
  %0 = greta.matmul %a, %b {transpose_a, transpose_b} : tensor<?x?xf16>, tensor<33x?xf16> -> tensor<?x33xf16>
  %1 = linalg.broadcast ins(%bias : tensor<33xf16>) outs(%e : tensor<?x33xf16>) dimensions = [0]
  %2 = arith.addf %0, %1 : tensor<?x33xf16>
  return %2 : tensor<?x33xf16>
}

// -----

// A batch moves the pointers, once; blocks have the rows and columns of one product. The bias is one row of each.
// GPU-LABEL: greta_tile.func @batched_0
// GPU: %[[TILES:.*]] = arith.muli %{{.*}}, %c{{2|3}}_i32
// GPU: %[[AT:.*]] = arith.divui %{{.*}}, %[[TILES]]
// GPU: arith.remui %{{.*}}, %[[TILES]]
// GPU: %[[H:.*]] = arith.extsi %[[AT]] : i32 to i64
// GPU: %[[STEP:.*]] = arith.muli %[[H]], %{{.*}} : i64
// GPU: %[[A:.*]] = greta_tile.ptr_add %arg0, %[[STEP]]
// GPU: %[[B:.*]] = greta_tile.ptr_add %arg1
// GPU: scf.for
// GPU: greta_tile.load %[[A]][{{.*}} strides [64, 1]
// GPU: greta_tile.load %[[B]][{{.*}} strides [48, 1]
// GPU: greta_tile.dot {{.*}} -> tensor<[[TM:[0-9]+]]x[[TN:[0-9]+]]xf32>
// GPU: %[[BIAS:.*]] = greta_tile.ptr_add %arg2
// GPU: greta_tile.load %[[BIAS]][%c0_i32, %{{.*}}] strides [0, 1] {{.*}} -> tensor<1x[[TN]]xf16>
// GPU: %[[Y:.*]] = greta_tile.ptr_add %arg3
// GPU: greta_tile.store %{{.*}}, %[[Y]]
func.func @batched(%a: tensor<?x?x64xf16>, %b: tensor<?x64x48xf16>, %bias: tensor<?x48xf16>) -> tensor<?x?x48xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = tensor.dim %a, %c0 : tensor<?x?x64xf16>
  %m = tensor.dim %a, %c1 : tensor<?x?x64xf16>
  %0 = greta.matmul %a, %b : tensor<?x?x64xf16>, tensor<?x64x48xf16> -> tensor<?x?x48xf16>
  %e = tensor.empty(%h, %m) : tensor<?x?x48xf16>
  %1 = linalg.broadcast ins(%bias : tensor<?x48xf16>) outs(%e : tensor<?x?x48xf16>) dimensions = [1]
  %2 = arith.addf %0, %1 : tensor<?x?x48xf16>
  return %2 : tensor<?x?x48xf16>
}

// -----

// One B for the batch: the rows of all products are one matrix.
// GPU-LABEL: greta_tile.func @shared_0
// GPU-NOT: ptr_add
// GPU: scf.for
// GPU: greta_tile.load %arg0[{{.*}} strides [64, 1] bounds [0](%c15_i32
// GPU: greta_tile.store {{.*}} strides [48, 1] bounds [0](%c15_i32
func.func @shared(%a: tensor<3x5x64xf16>, %b: tensor<64x48xf16>) -> tensor<3x5x48xf16> {
  %0 = greta.matmul %a, %b : tensor<3x5x64xf16>, tensor<64x48xf16> -> tensor<3x5x48xf16>
  return %0 : tensor<3x5x48xf16>
}

// -----

// Few rows: blocks along K in runs, four of them per iteration of the loop, loaded first. The remainder of K has a block of its own, which
// reaches beyond K. Sums meet after it, and the bias is added to the result, which has no K any more.
// GPU-LABEL: greta_tile.func @decode_0
// GPU: %[[SUMS:.*]] = scf.for %[[I:.*]] = %c0_i32 to %c4096_i32 step %c1024_i32 iter_args(%[[SUM:.*]] = %
// GPU: %[[W0:.*]] = greta_tile.load %arg1[%c0_i32, %[[N:.*]], %[[I]], %c0_i32] strides [0, 33000, 8, 1] bounds [] : <f16> -> tensor<1x1x256x8xf16>
// GPU: %[[X0:.*]] = greta_tile.load %arg0[%c0_i32, %c0_i32, %[[I]], %c0_i32] strides [33000, 0, 8, 1] bounds [] : <f16> -> tensor<3x1x256x8xf16>
// GPU: greta_tile.load %arg1
// GPU: %[[S1:.*]] = greta_tile.contract %[[X0]], %[[W0]], %[[SUM]] dims [3] : tensor<3x1x256x8xf16>, tensor<1x1x256x8xf16> -> tensor<3x1x256x1xf32>
// GPU: greta_tile.contract %{{.*}}, %{{.*}}, %[[S1]]
// GPU: scf.yield
// GPU: greta_tile.load %arg1[%c0_i32, %[[N]], %c4096_i32, %c0_i32] strides [0, 33000, 8, 1] bounds [2](%c4125_i32)
// GPU: greta_tile.load %arg0{{.*}} bounds [2](%c4125_i32)
// GPU: %[[LAST:.*]] = greta_tile.contract %{{.*}}, %{{.*}}, %[[SUMS]]
// GPU: %[[L:.*]] = greta_tile.reduce {arith.addf} %[[LAST]] axis 2 : tensor<3x1x256x1xf32> -> tensor<3x1x1xf32>
// GPU: %[[Y:.*]] = greta_tile.reshape %[[L]] : tensor<3x1x1xf32> -> tensor<3x1x1x1xf32>
// GPU: arith.truncf %[[Y]]
// GPU: greta_tile.load %arg2[%c0_i32, %[[N]], %c0_i32, %c0_i32] strides [0, 1, 0, 0]
// GPU: arith.addf
// GPU: greta_tile.store
func.func @decode(%a: tensor<3x33000xf16>, %b: tensor<33x33000xf16>, %bias: tensor<33xf16>) -> tensor<3x33xf16> {
  %e = tensor.empty() : tensor<3x33xf16>
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {run = 8}} : tensor<3x33000xf16>, tensor<33x33000xf16> -> tensor<3x33xf16>
  %1 = linalg.broadcast ins(%bias : tensor<33xf16>) outs(%e : tensor<3x33xf16>) dimensions = [0]
  %2 = arith.addf %0, %1 : tensor<3x33xf16>
  return %2 : tensor<3x33xf16>
}

// -----

// Packed weights: words and their eight weights are dimensions, four runs of 32 share a scale, 32 a word of zeros.
// GPU-LABEL: greta_tile.func @packed_0
// GPU: %[[W:.*]] = greta_tile.load %arg0{{.*}} strides [0, 512, 4, 1, 0] bounds [] {{.*}} : <i32> -> tensor<1x[[N:[0-9]+]]x[[L:[0-9]+]]x4x1xi32>
// GPU: %[[S:.*]] = greta_tile.load %arg1{{.*}} strides [0, 32, 1, 0, 0] bounds [] {divisors = array<i64: 1, 1, 4, 1, 1>} : <f16> -> tensor<1x[[N]]x[[L]]x1x1xf16>
// GPU: %[[Z:.*]] = greta_tile.load %arg2{{.*}} strides [0, 4, 1, 0, 0] bounds [] {divisors = array<i64: 1, 1, 32, 1, 1>} : <i32> -> tensor<1x[[N]]x[[L]]x1x1xi32>
// GPU: %[[I:.*]] = greta_tile.iota 2
// GPU: arith.shrui
// GPU: %[[D:.*]] = arith.shrui %{{.*}}, %{{.*}} : tensor<1x[[N]]x[[L]]x1x1xi32>
// GPU: %[[ZERO:.*]] = arith.andi %[[D]]
// GPU: %[[X:.*]] = greta_tile.load %arg3{{.*}} strides [4096, 0, 32, 8, 1] bounds [] : <f16> -> tensor<1x1x[[L]]x4x8xf16>
// GPU: %[[B:.*]] = greta_tile.dequant %[[W]], %{{.*}}, %[[ZERO]] : {{.*}} -> tensor<1x[[N]]x[[L]]x4x8xf16>
// GPU: %[[P:.*]] = greta_tile.contract %[[X]], %[[B]], %{{.*}} dims [3, 4] narrow
// GPU: arith.extf %[[S]]
// GPU: math.fma %[[P]]
func.func @packed(%x: tensor<1x4096xf16>, %q: tensor<14336x512xi32>, %s: tensor<14336x32xf16>, %z: tensor<14336x4xi32>) -> tensor<1x14336xf16> {
  %w = greta.dequant %q, %s, %z {group = 128} : tensor<14336x512xi32>, tensor<14336x32xf16>, tensor<14336x4xi32> -> tensor<14336x4096xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<1x4096xf16>, tensor<14336x4096xf16> -> tensor<1x14336xf16>
  return %0 : tensor<1x14336xf16>
}

// -----

// Rows in twos: of words each row has runs of four, and of scales single ones, each a group's; the pair of rows is a run of two.
// GPU-LABEL: greta_tile.func @interleaved_0
// GPU: greta_tile.load %arg0{{.*}} strides [0, 4, 8, 1, 0] bounds [] {{.*}}run_strides = array<i64: 0, 1024, 0, 8, 0>, runs = array<i64: 1, 2, 1, 4, 1>
// GPU: greta_tile.load %arg1{{.*}} strides [0, 1, 2, 0, 0] bounds [] {{.*}}run_strides = array<i64: 0, 256, 0, 0, 0>, runs = array<i64: 1, 2, 1, 1, 1>
func.func @interleaved(%x: tensor<1x4096xf16>, %q: tensor<14336x512xi32>, %s: tensor<14336x128xf16>) -> tensor<1x14336xf16> {
  %w = greta.dequant %q, %s {format = "q4_0_interleaved", group = 32} : tensor<14336x512xi32>, tensor<14336x128xf16> -> tensor<14336x4096xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<1x4096xf16>, tensor<14336x4096xf16> -> tensor<1x14336xf16>
  return %0 : tensor<1x14336xf16>
}

// -----

// With minima weights are multiplied less 8, as without; A's sums, once for all columns, take the minimum plus 8 scales.
// GPU-LABEL: greta_tile.func @minima_0
// GPU: %[[S:.*]] = greta_tile.load %arg1{{.*}}divisors = array<i64: 1, 1, 1, 1, 1>{{.*}} -> tensor<1x[[N:[0-9]+]]x[[L:[0-9]+]]x1x1xf16>
// GPU: %[[EIGHT:.*]] = arith.constant dense<8> : tensor<1x1x1x1x1xi32>
// GPU: %[[M:.*]] = greta_tile.load %arg2{{.*}}divisors = array<i64: 1, 1, 1, 1, 1>{{.*}} -> tensor<1x[[N]]x[[L]]x1x1xf16>
// GPU: %[[X:.*]] = greta_tile.load %arg3
// GPU: %[[B:.*]] = greta_tile.dequant %{{.*}}, %{{.*}}, %[[EIGHT]]
// GPU: %[[P:.*]] = greta_tile.contract %[[X]], %[[B]], %{{.*}} dims [3, 4] narrow
// GPU: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<1x1x1x1x1xf16>
// GPU: %[[SUMS:.*]] = greta_tile.contract %[[X]], %[[ONE]], %{{.*}} dims [3, 4] narrow : {{.*}} -> tensor<1x1x[[L]]x1x1xf32>
// GPU: arith.extf %[[M]]
// GPU: %[[Y:.*]] = math.fma
// GPU: math.fma %[[P]], %{{.*}}, %[[Y]]
func.func @minima(%x: tensor<1x4096xf16>, %q: tensor<14336x512xi32>, %s: tensor<14336x128xf16>, %m: tensor<14336x128xf16>) -> tensor<1x14336xf16> {
  %w = greta.dequant %q, %s, %m {group = 32} : tensor<14336x512xi32>, tensor<14336x128xf16>, tensor<14336x128xf16> -> tensor<14336x4096xf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<1x4096xf16>, tensor<14336x4096xf16> -> tensor<1x14336xf16>
  return %0 : tensor<1x14336xf16>
}

// -----

// Weights of bf16 are numbers of f16, whatever the result is, and products are of f32.
// GPU-LABEL: greta_tile.func @bfloats_0
// GPU: %[[X:.*]] = greta_tile.load %arg2{{.*}} : <bf16> -> tensor<1x1x{{.*}}x4x8xbf16>
// GPU: %[[B:.*]] = greta_tile.dequant {{.*}} -> tensor<1x{{.*}}x4x8xf16>
// GPU: greta_tile.contract %[[X]], %[[B]], %{{.*}} dims [3, 4] : {{.*}} -> tensor<{{.*}}x1x1xf32>
func.func @bfloats(%x: tensor<1x4096xbf16>, %q: tensor<14336x512xi32>, %s: tensor<14336x128xf16>) -> tensor<1x14336xf32> {
  %w = greta.dequant %q, %s {group = 32} : tensor<14336x512xi32>, tensor<14336x128xf16> -> tensor<14336x4096xbf16>
  %0 = greta.matmul %x, %w {transpose_b} : tensor<1x4096xbf16>, tensor<14336x4096xbf16> -> tensor<1x14336xf32>
  return %0 : tensor<1x14336xf32>
}

// -----

// Alone: every weight has an index of its own, eight share a word.
// GPU-LABEL: greta_tile.func @dequant_0
// GPU: greta_tile.load %arg0{{.*}} strides [40, 1] bounds {{.*}}divisors = array<i64: 1, 8>
// GPU: greta_tile.load %arg1{{.*}} strides [10, 1] bounds {{.*}}divisors = array<i64: 1, 32>
// GPU: greta_tile.load %arg2{{.*}} strides [2, 1] bounds {{.*}}divisors = array<i64: 1, 256>
// GPU: arith.sitofp
// GPU: arith.truncf
// GPU: greta_tile.store
func.func @dequant(%q: tensor<?x40xi32>, %s: tensor<?x10xf16>, %z: tensor<?x2xi32>) -> tensor<?x320xf16> {
  %0 = greta.dequant %q, %s, %z {group = 32} : tensor<?x40xi32>, tensor<?x10xf16>, tensor<?x2xi32> -> tensor<?x320xf16>
  return %0 : tensor<?x320xf16>
}
