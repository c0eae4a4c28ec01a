// A loop whose blocks are whole up to an iteration that is known before it has a loop of these, without comparisons, selections, masks and bounds, and one of the others. Iterations of both have the program's numbers.
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-split-loops{target=gfx942},canonicalize,cse))' --split-input-file | FileCheck %s

#acc = #greta_tile.layout<{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>
#a = #greta_tile.layout<{reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]], wave = [], rep = [1, 1]}>
#b = #greta_tile.layout<{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>
#mi = #greta_tile.matrix<"mfma.f32.16x16x16f16", a = #a, b = #b, acc = #acc>

// The first loop ends where a block no longer is below %keys: (%keys - 15) / 16 rounded up, of no negative number. A maximum of products with a number that may be negative has the
// number behind it, where that is positive and finite.
// CHECK-LABEL: @attention
// CHECK-SAME: %[[K:[a-z0-9]+]]: !greta_tile.ptr<f16>, %{{.*}}: !greta_tile.ptr<f32>, %[[KEYS:[a-z0-9]+]]: i32, %[[SCALE:[a-z0-9]+]]: f32
// CHECK-DAG: %[[ABOVE:.*]] = arith.cmpf ogt, %[[SCALE]], %{{.*}} : f32
// CHECK-DAG: %[[BELOW:.*]] = arith.cmpf olt, %[[SCALE]], %{{.*}} : f32
// CHECK: %[[GOOD:.*]] = arith.andi %[[ABOVE]], %[[BELOW]]
// CHECK: %[[WIDE:.*]] = arith.extsi %[[KEYS]] : i32 to i64
// CHECK: %[[LEFT:.*]] = arith.addi %[[WIDE]], %c-15_i64
// CHECK: %[[ROOM:.*]] = arith.maxsi %[[LEFT]], %c0_i64
// CHECK: %[[END:.*]] = arith.select %[[GOOD]], %[[ROOM]], %c0_i64
// CHECK: %[[MIDDLE:.*]] = arith.trunci
// CHECK: %[[FIRST:.*]] = arith.minsi %[[MIDDLE]], %[[KEYS]]
// CHECK: %[[WHOLE:.*]]:2 = scf.for %[[I:.*]] = %c0_i32 to %[[FIRST]] step %c16_i32
// CHECK-NOT: arith.select
// CHECK: greta_tile.load %[[K]][%c0_i32, %[[I]]] strides [1, 16] bounds [] :
// CHECK: %[[DOT:.*]] = greta_tile.dot
// CHECK: %[[PRODUCTS:.*]] = arith.mulf %[[DOT]],
// CHECK: %[[MAX:.*]] = greta_tile.reduce {arith.maxnumf} %[[DOT]]
// CHECK: arith.mulf %[[MAX]],
// CHECK: arith.subf %[[PRODUCTS]],
// CHECK: scf.for %[[J:.*]] = %[[MIDDLE]] to %[[KEYS]] step %c16_i32 iter_args(%{{.*}} = %[[WHOLE]]#0, %{{.*}} = %[[WHOLE]]#1)
// CHECK: greta_tile.load %[[K]][%c0_i32, %[[J]]] strides [1, 16] bounds [1](%[[KEYS]])
// CHECK: %[[ALL:.*]] = arith.mulf
// CHECK: %[[SOME:.*]] = arith.select %{{.*}}, %[[ALL]],
// CHECK: greta_tile.reduce {arith.maxnumf} %[[SOME]]
greta_tile.func @attention(%k: !greta_tile.ptr<f16>, %o: !greta_tile.ptr<f32>, %keys: i32, %scale: f32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %never = arith.constant dense<0xFF800000> : tensor<16x16xf32>
  %least = arith.constant dense<0xFF800000> : tensor<16xf32>
  %q = greta_tile.load %k[%z, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x16xf16>
  %scales = greta_tile.splat %scale : tensor<16x16xf32>
  %ends = greta_tile.splat %keys : tensor<16x16xi32>
  %columns = greta_tile.iota 1 : tensor<16x16xi32>
  %m, %s = scf.for %i = %z to %keys step %c16 iter_args(%most = %least, %sum = %none) -> (tensor<16xf32>, tensor<16x16xf32>) : i32 {
    %key = greta_tile.load %k[%z, %i] strides [1, 16] bounds [1] (%keys) : !greta_tile.ptr<f16> -> tensor<16x16xf16>
    %p = greta_tile.dot %q, %key, %none {matrix = #mi} : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    %x = arith.mulf %p, %scales : tensor<16x16xf32>
    %first = greta_tile.splat %i : tensor<16x16xi32>
    %at = arith.addi %first, %columns : tensor<16x16xi32>
    %inside = arith.cmpi slt, %at, %ends : tensor<16x16xi32>
    %logits = arith.select %inside, %x, %never : tensor<16x16xi1>, tensor<16x16xf32>
    %top = greta_tile.reduce {arith.maxnumf} %logits axis 1 : tensor<16x16xf32> -> tensor<16xf32>
    %next = arith.maxnumf %most, %top : tensor<16xf32>
    %column = greta_tile.reshape %next : tensor<16xf32> -> tensor<16x1xf32>
    %tops = greta_tile.broadcast %column : tensor<16x1xf32> -> tensor<16x16xf32>
    %off = arith.subf %logits, %tops : tensor<16x16xf32>
    %all = arith.addf %sum, %off : tensor<16x16xf32>
    scf.yield %next, %all : tensor<16xf32>, tensor<16x16xf32>
  }
  greta_tile.store %s, %o[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

#acc = #greta_tile.layout<{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>
#a = #greta_tile.layout<{reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]], wave = [], rep = [1, 1]}>
#b = #greta_tile.layout<{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>
#mi = #greta_tile.matrix<"mfma.f32.16x16x16f16", a = #a, b = #b, acc = #acc>

// A causal mask: the last key of a block, %i + 15, is at most the first row, %row. Rows that wrap around leave no iteration to the first loop.
// CHECK-LABEL: @causal
// CHECK-SAME: !greta_tile.ptr<f32>, %[[ROW:[a-z0-9]+]]: i32
// CHECK: %[[WIDE:.*]] = arith.extsi %[[ROW]] : i32 to i64
// CHECK: %[[LEFT:.*]] = arith.addi %[[WIDE]], %c-14_i64
// CHECK: %[[ROOM:.*]] = arith.maxsi %[[LEFT]], %c0_i64
// CHECK: %[[LAST:.*]] = arith.addi %[[WIDE]], %c15_i64
// CHECK: %[[FITS:.*]] = arith.cmpi sle, %[[LAST]], %c2147483647_i64
// CHECK: arith.select %[[FITS]], %[[ROOM]], %c0_i64
// CHECK: scf.for
// CHECK-NOT: arith.select
// CHECK: scf.for
// CHECK: arith.select
greta_tile.func @causal(%k: !greta_tile.ptr<f16>, %o: !greta_tile.ptr<f32>, %row: i32, %keys: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %q = greta_tile.load %k[%z, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x16xf16>
  %rows = greta_tile.iota 0 : tensor<16x16xi32>
  %base = greta_tile.splat %row : tensor<16x16xi32>
  %m = arith.addi %base, %rows : tensor<16x16xi32>
  %columns = greta_tile.iota 1 : tensor<16x16xi32>
  %s = scf.for %i = %z to %keys step %c16 iter_args(%sum = %none) -> (tensor<16x16xf32>) : i32 {
    %p = greta_tile.dot %q, %q, %none {matrix = #mi} : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    %first = greta_tile.splat %i : tensor<16x16xi32>
    %at = arith.addi %first, %columns : tensor<16x16xi32>
    %seen = arith.cmpi sle, %at, %m : tensor<16x16xi32>
    %x = arith.select %seen, %p, %none : tensor<16x16xi1>, tensor<16x16xf32>
    %all = arith.addf %sum, %x : tensor<16x16xf32>
    scf.yield %all : tensor<16x16xf32>
  }
  greta_tile.store %s, %o[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Loops that stay as they are: one on the diagonal, which begins where the condition ends; one whose counter may be negative; one whose condition rises with the counter; one
// that would save masks of loads alone; one without matrix instructions; one whose indices have a factor of more than 2^40, whose sums may have more than 64 bits.
// CHECK-LABEL: @stay
// CHECK-COUNT-6: scf.for
// CHECK-NOT: scf.for
// CHECK: greta_tile.return
greta_tile.func @stay(%k: !greta_tile.ptr<f16>, %o: !greta_tile.ptr<f32>, %row: i32, %keys: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %q = greta_tile.load %k[%z, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x16xf16>
  %rows = greta_tile.iota 0 : tensor<16x16xi32>
  %tile = greta_tile.program_id 0
  %base = arith.muli %tile, %c16 : i32
  %bases = greta_tile.splat %base : tensor<16x16xi32>
  %m = arith.addi %bases, %rows : tensor<16x16xi32>
  %columns = greta_tile.iota 1 : tensor<16x16xi32>
  %ends = greta_tile.splat %keys : tensor<16x16xi32>
  %s0 = scf.for %i = %base to %keys step %c16 iter_args(%sum = %none) -> (tensor<16x16xf32>) : i32 {
    %p = greta_tile.dot %q, %q, %none {matrix = #mi} : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    %first = greta_tile.splat %i : tensor<16x16xi32>
    %at = arith.addi %first, %columns : tensor<16x16xi32>
    %seen = arith.cmpi sle, %at, %m : tensor<16x16xi32>
    %x = arith.select %seen, %p, %none : tensor<16x16xi1>, tensor<16x16xf32>
    %all = arith.addf %sum, %x : tensor<16x16xf32>
    scf.yield %all : tensor<16x16xf32>
  }
  %s1 = scf.for %i = %row to %keys step %c16 iter_args(%sum = %s0) -> (tensor<16x16xf32>) : i32 {
    %p = greta_tile.dot %q, %q, %none {matrix = #mi} : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    %first = greta_tile.splat %i : tensor<16x16xi32>
    %at = arith.addi %first, %columns : tensor<16x16xi32>
    %inside = arith.cmpi slt, %at, %ends : tensor<16x16xi32>
    %x = arith.select %inside, %p, %none : tensor<16x16xi1>, tensor<16x16xf32>
    %all = arith.addf %sum, %x : tensor<16x16xf32>
    scf.yield %all : tensor<16x16xf32>
  }
  %s2 = scf.for %i = %z to %keys step %c16 iter_args(%sum = %s1) -> (tensor<16x16xf32>) : i32 {
    %p = greta_tile.dot %q, %q, %none {matrix = #mi} : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    %first = greta_tile.splat %i : tensor<16x16xi32>
    %at = arith.addi %first, %columns : tensor<16x16xi32>
    %inside = arith.cmpi sgt, %at, %ends : tensor<16x16xi32>
    %x = arith.select %inside, %p, %none : tensor<16x16xi1>, tensor<16x16xf32>
    %all = arith.addf %sum, %x : tensor<16x16xf32>
    scf.yield %all : tensor<16x16xf32>
  }
  %s3 = scf.for %i = %z to %keys step %c16 iter_args(%sum = %s2) -> (tensor<16x16xf32>) : i32 {
    %key = greta_tile.load %k[%z, %i] strides [1, 16] bounds [1] (%keys) : !greta_tile.ptr<f16> -> tensor<16x16xf16>
    %p = greta_tile.dot %q, %key, %sum {matrix = #mi} : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %p : tensor<16x16xf32>
  }
  %s4 = scf.for %i = %z to %keys step %c16 iter_args(%sum = %s3) -> (tensor<16x16xf32>) : i32 {
    %p = greta_tile.dot %q, %q, %none : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    %first = greta_tile.splat %i : tensor<16x16xi32>
    %at = arith.addi %first, %columns : tensor<16x16xi32>
    %inside = arith.cmpi slt, %at, %ends : tensor<16x16xi32>
    %x = arith.select %inside, %p, %none : tensor<16x16xi1>, tensor<16x16xf32>
    %all = arith.addf %sum, %x : tensor<16x16xf32>
    scf.yield %all : tensor<16x16xf32>
  }
  %far = arith.constant dense<2097152> : tensor<16x16xi32>
  %s5 = scf.for %i = %z to %keys step %c16 iter_args(%sum = %s4) -> (tensor<16x16xf32>) : i32 {
    %p = greta_tile.dot %q, %q, %none {matrix = #mi} : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    %first = greta_tile.splat %i : tensor<16x16xi32>
    %once = arith.muli %columns, %far : tensor<16x16xi32>
    %more = arith.addi %once, %rows : tensor<16x16xi32>
    %twice = arith.muli %more, %far : tensor<16x16xi32>
    %at = arith.addi %first, %twice : tensor<16x16xi32>
    %inside = arith.cmpi slt, %at, %ends : tensor<16x16xi32>
    %x = arith.select %inside, %p, %none : tensor<16x16xi1>, tensor<16x16xf32>
    %all = arith.addf %sum, %x : tensor<16x16xf32>
    scf.yield %all : tensor<16x16xf32>
  }
  greta_tile.store %s5, %o[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
