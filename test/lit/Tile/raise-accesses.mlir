// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-raise-accesses{target=gfx942},canonicalize,cse))' | FileCheck %s

// Rows under a mask, each row %n elements from the last: the mask is a bound, and what the first row adds to the address is the offset.
// CHECK-LABEL: @rows(
// CHECK-SAME: %[[X:[^ ]*]]: !greta_tile.ptr<f16> {greta.readonly}, %[[Y:[^ ]*]]: !greta_tile.ptr<f16>, %[[M:[^ ]*]]: i32, %[[N:[^ ]*]]: i32
// CHECK: %[[FIRST:.*]] = arith.muli
// CHECK: %[[V:.*]] = greta_tile.load %[[X]][%[[FIRST]], %c0_i32] strides [-9223372036854775808, 1](%[[N]]) bounds [0, 1](%[[M]], %[[N]])
// CHECK: greta_tile.store_scattered %[[V]]
greta_tile.func @rows(%x: !greta_tile.ptr<f16> {greta.readonly}, %y: !greta_tile.ptr<f16>, %m: i32, %n: i32 {greta.nonnegative}) attributes {waves = 4 : i32} {
  %c64 = arith.constant 64 : i32
  %pid = greta_tile.program_id 0
  %first = arith.muli %pid, %c64 : i32
  %first_s = greta_tile.splat %first : tensor<64xi32>
  %i = greta_tile.iota 0 : tensor<64xi32>
  %row = arith.addi %first_s, %i : tensor<64xi32>
  %rows = greta_tile.reshape %row : tensor<64xi32> -> tensor<64x1xi32>
  %n_s = greta_tile.splat %n : tensor<64x1xi32>
  %m_s = greta_tile.splat %m : tensor<64x1xi32>
  %inside = arith.cmpi slt, %rows, %m_s : tensor<64x1xi32>
  %inside_all = greta_tile.broadcast %inside : tensor<64x1xi1> -> tensor<64x32xi1>
  %starts = arith.muli %rows, %n_s : tensor<64x1xi32>
  %starts_all = greta_tile.broadcast %starts : tensor<64x1xi32> -> tensor<64x32xi32>
  %j = greta_tile.iota 0 : tensor<32xi32>
  %column = greta_tile.reshape %j : tensor<32xi32> -> tensor<1x32xi32>
  %n_r = greta_tile.splat %n : tensor<1x32xi32>
  %within = arith.cmpi slt, %column, %n_r : tensor<1x32xi32>
  %within_all = greta_tile.broadcast %within : tensor<1x32xi1> -> tensor<64x32xi1>
  %columns = greta_tile.broadcast %column : tensor<1x32xi32> -> tensor<64x32xi32>
  %offset = arith.addi %starts_all, %columns : tensor<64x32xi32>
  %p = greta_tile.ptr_add %x, %offset : !greta_tile.ptr<f16>, tensor<64x32xi32>
  %q = greta_tile.ptr_add %y, %offset : !greta_tile.ptr<f16>, tensor<64x32xi32>
  %mask = arith.andi %inside_all, %within_all : tensor<64x32xi1>
  %v = greta_tile.load_scattered %p mask %mask : tensor<64x32x!greta_tile.ptr<f16>> -> tensor<64x32xf16>
  greta_tile.store_scattered %v, %q mask %mask : tensor<64x32xf16> -> tensor<64x32x!greta_tile.ptr<f16>>
  greta_tile.return
}

// Zeros that are selected behind a load at a place of its own become the load's mask, through an argument of little reach. Elsewhere, or for
// another condition, they stay.
// CHECK-LABEL: @zeros(
// CHECK-SAME: %[[X:[^ ]*]]: !greta_tile.ptr<f16> {greta.pointer_range}
// CHECK: %[[I:.*]] = arith.muli
// CHECK: %[[C:.*]] = arith.cmpi slt
// CHECK: %[[ALL:.*]] = greta_tile.broadcast %[[I]]
// CHECK: %[[P:.*]] = greta_tile.ptr_add %[[X]], %[[ALL]]
// CHECK: greta_tile.load_scattered %[[P]] mask %{{[0-9]*}} :
// CHECK: arith.select %[[C]], %[[I]]
// CHECK: greta_tile.load_scattered %{{[0-9]*}} : tensor
// CHECK: arith.select {{.*}}xf16>
// CHECK: greta_tile.load_scattered %{{[0-9]*}} : tensor
// CHECK: arith.select {{.*}}xf16>
greta_tile.func @zeros(%x: !greta_tile.ptr<f16> {greta.pointer_range}, %y: !greta_tile.ptr<f16>, %out: !greta_tile.ptr<f16>, %m: i32, %n: i32, %s: i32) attributes {waves = 4 : i32} {
  %row = greta_tile.iota 0 : tensor<64x1xi32>
  %stride = greta_tile.splat %s : tensor<64x1xi32>
  %i = arith.muli %row, %stride : tensor<64x1xi32>
  %below = greta_tile.splat %m : tensor<64x1xi32>
  %c = arith.cmpi slt, %row, %below : tensor<64x1xi32>
  %beneath = greta_tile.splat %n : tensor<64x1xi32>
  %d = arith.cmpi slt, %row, %beneath : tensor<64x1xi32>
  %none = arith.constant dense<0> : tensor<64x1xi32>
  %zero = arith.constant dense<0.0> : tensor<64x32xf16>
  %all = greta_tile.broadcast %c : tensor<64x1xi1> -> tensor<64x32xi1>
  %others = greta_tile.broadcast %d : tensor<64x1xi1> -> tensor<64x32xi1>
  %places = greta_tile.ptr_add %out, %i : !greta_tile.ptr<f16>, tensor<64x1xi32>
  %to = greta_tile.broadcast %places : tensor<64x1x!greta_tile.ptr<f16>> -> tensor<64x32x!greta_tile.ptr<f16>>

  %i0 = arith.select %c, %i, %none : tensor<64x1xi1>, tensor<64x1xi32>
  %p0 = greta_tile.ptr_add %x, %i0 : !greta_tile.ptr<f16>, tensor<64x1xi32>
  %q0 = greta_tile.broadcast %p0 : tensor<64x1x!greta_tile.ptr<f16>> -> tensor<64x32x!greta_tile.ptr<f16>>
  %v0 = greta_tile.load_scattered %q0 : tensor<64x32x!greta_tile.ptr<f16>> -> tensor<64x32xf16>
  %r0 = arith.select %all, %v0, %zero : tensor<64x32xi1>, tensor<64x32xf16>
  greta_tile.store_scattered %r0, %to : tensor<64x32xf16> -> tensor<64x32x!greta_tile.ptr<f16>>

  %i1 = arith.select %c, %i, %none : tensor<64x1xi1>, tensor<64x1xi32>
  %p1 = greta_tile.ptr_add %y, %i1 : !greta_tile.ptr<f16>, tensor<64x1xi32>
  %q1 = greta_tile.broadcast %p1 : tensor<64x1x!greta_tile.ptr<f16>> -> tensor<64x32x!greta_tile.ptr<f16>>
  %v1 = greta_tile.load_scattered %q1 : tensor<64x32x!greta_tile.ptr<f16>> -> tensor<64x32xf16>
  %r1 = arith.select %all, %v1, %zero : tensor<64x32xi1>, tensor<64x32xf16>
  greta_tile.store_scattered %r1, %to : tensor<64x32xf16> -> tensor<64x32x!greta_tile.ptr<f16>>

  %i2 = arith.select %c, %i, %none : tensor<64x1xi1>, tensor<64x1xi32>
  %p2 = greta_tile.ptr_add %x, %i2 : !greta_tile.ptr<f16>, tensor<64x1xi32>
  %q2 = greta_tile.broadcast %p2 : tensor<64x1x!greta_tile.ptr<f16>> -> tensor<64x32x!greta_tile.ptr<f16>>
  %v2 = greta_tile.load_scattered %q2 : tensor<64x32x!greta_tile.ptr<f16>> -> tensor<64x32xf16>
  %r2 = arith.select %others, %v2, %zero : tensor<64x32xi1>, tensor<64x32xf16>
  greta_tile.store_scattered %r2, %to : tensor<64x32xf16> -> tensor<64x32x!greta_tile.ptr<f16>>
  greta_tile.return
}

// They stay, too, where a store goes through the same pointers, and behind pointers that a loop carries.
// CHECK-LABEL: @shared_places(
// CHECK: greta_tile.load_scattered %{{[0-9]*}} : tensor
// CHECK: arith.select {{.*}}xf16>
// CHECK: scf.for
// CHECK: greta_tile.load_scattered %{{[a-z0-9]*}} : tensor
// CHECK: arith.select {{.*}}xf16>
greta_tile.func @shared_places(%x: !greta_tile.ptr<f16> {greta.pointer_range}, %m: i32, %n: i32) attributes {waves = 4 : i32} {
  %i = greta_tile.iota 0 : tensor<64xi32>
  %below = greta_tile.splat %m : tensor<64xi32>
  %c = arith.cmpi slt, %i, %below : tensor<64xi32>
  %none = arith.constant dense<0> : tensor<64xi32>
  %zero = arith.constant dense<0.0> : tensor<64xf16>
  %i0 = arith.select %c, %i, %none : tensor<64xi1>, tensor<64xi32>
  %p0 = greta_tile.ptr_add %x, %i0 : !greta_tile.ptr<f16>, tensor<64xi32>
  %v0 = greta_tile.load_scattered %p0 : tensor<64x!greta_tile.ptr<f16>> -> tensor<64xf16>
  %r0 = arith.select %c, %v0, %zero : tensor<64xi1>, tensor<64xf16>
  greta_tile.store_scattered %r0, %p0 : tensor<64xf16> -> tensor<64x!greta_tile.ptr<f16>>

  %from = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %last = scf.for %k = %from to %n step %step iter_args(%q = %p0) -> (tensor<64x!greta_tile.ptr<f16>>) : i32 {
    %v1 = greta_tile.load_scattered %q : tensor<64x!greta_tile.ptr<f16>> -> tensor<64xf16>
    %r1 = arith.select %c, %v1, %zero : tensor<64xi1>, tensor<64xf16>
    %by = greta_tile.splat %k : tensor<64xi32>
    %next = greta_tile.ptr_add %q, %by : tensor<64x!greta_tile.ptr<f16>>, tensor<64xi32>
    greta_tile.store_scattered %r1, %next : tensor<64xf16> -> tensor<64x!greta_tile.ptr<f16>>
    scf.yield %next : tensor<64x!greta_tile.ptr<f16>>
  }
  greta_tile.store_scattered %zero, %last : tensor<64xf16> -> tensor<64x!greta_tile.ptr<f16>>
  greta_tile.return
}

// A stride that may be negative, indices that wrap around and a mask that is no bound stay what they are. A bound that says nothing of the address
// leaves it alone.
// CHECK-LABEL: @others(
// CHECK-COUNT-3: greta_tile.load_scattered
// CHECK: %[[BACK:.*]] = greta_tile.ptr_add %{{.*}}, %{{.*}} : !greta_tile.ptr<f32>, i64
// CHECK: greta_tile.load %[[BACK]][%[[FIRST:.*]]] strides [1] bounds [0](%{{.*}})
// CHECK: greta_tile.store_scattered
greta_tile.func @others(%x: !greta_tile.ptr<f32> {greta.readonly}, %y: !greta_tile.ptr<f32>, %m: i32, %n: i32, %first: i32) attributes {waves = 4 : i32} {
  %i = greta_tile.iota 0 : tensor<64xi32>
  %zero = arith.constant dense<0> : tensor<64xi32>
  %one = arith.constant dense<1> : tensor<64xi32>
  %n_s = greta_tile.splat %n : tensor<64xi32>
  %m_s = greta_tile.splat %m : tensor<64xi32>
  %first_s = greta_tile.splat %first : tensor<64xi32>
  %strided = arith.muli %i, %n_s : tensor<64xi32>
  %wrapped = arith.remsi %i, %m_s : tensor<64xi32>
  %even = arith.andi %i, %one : tensor<64xi32>
  %is_even = arith.cmpi eq, %even, %zero : tensor<64xi32>
  %p0 = greta_tile.ptr_add %x, %strided : !greta_tile.ptr<f32>, tensor<64xi32>
  %p1 = greta_tile.ptr_add %x, %wrapped : !greta_tile.ptr<f32>, tensor<64xi32>
  %p2 = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f32>, tensor<64xi32>
  %v0 = greta_tile.load_scattered %p0 : tensor<64x!greta_tile.ptr<f32>> -> tensor<64xf32>
  %v1 = greta_tile.load_scattered %p1 : tensor<64x!greta_tile.ptr<f32>> -> tensor<64xf32>
  %v2 = greta_tile.load_scattered %p2 mask %is_even : tensor<64x!greta_tile.ptr<f32>> -> tensor<64xf32>
  %index = arith.addi %first_s, %i : tensor<64xi32>
  %inside = arith.cmpi slt, %index, %m_s : tensor<64xi32>
  %v3 = greta_tile.load_scattered %p2 mask %inside : tensor<64x!greta_tile.ptr<f32>> -> tensor<64xf32>
  %s0 = arith.addf %v0, %v1 : tensor<64xf32>
  %s1 = arith.addf %s0, %v2 : tensor<64xf32>
  %s2 = arith.addf %s1, %v3 : tensor<64xf32>
  %q = greta_tile.ptr_add %y, %wrapped : !greta_tile.ptr<f32>, tensor<64xi32>
  greta_tile.store_scattered %s2, %q : tensor<64xf32> -> tensor<64x!greta_tile.ptr<f32>>
  greta_tile.return
}

// An assumption about a stride is enough.
// CHECK-LABEL: @assumed(
// CHECK-SAME: %[[N:[^ ,]*]]: i32)
// CHECK: greta_tile.load %{{.*}}[%c0_i32] strides [-9223372036854775808](%[[N]]) bounds []
greta_tile.func @assumed(%x: !greta_tile.ptr<f16> {greta.readonly}, %y: !greta_tile.ptr<f16>, %n: i32) attributes {waves = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %positive = arith.cmpi sgt, %n, %c0 : i32
  greta_tile.assume %positive
  %i = greta_tile.iota 0 : tensor<64xi32>
  %n_s = greta_tile.splat %n : tensor<64xi32>
  %strided = arith.muli %i, %n_s : tensor<64xi32>
  %p = greta_tile.ptr_add %x, %strided : !greta_tile.ptr<f16>, tensor<64xi32>
  %v = greta_tile.load_scattered %p : tensor<64x!greta_tile.ptr<f16>> -> tensor<64xf16>
  %q = greta_tile.ptr_add %y, %i : !greta_tile.ptr<f16>, tensor<64xi32>
  greta_tile.store_scattered %v, %q : tensor<64xf16> -> tensor<64x!greta_tile.ptr<f16>>
  greta_tile.return
}

// A loop with a dot keeps a load of what it also writes, and raises one of what no other argument reaches.
// CHECK-LABEL: @in_place(
// CHECK: scf.for
// CHECK: greta_tile.load_scattered
// CHECK: greta_tile.load %
// CHECK: greta_tile.dot
// CHECK: greta_tile.store %
greta_tile.func @in_place(%c: !greta_tile.ptr<f16>, %a: !greta_tile.ptr<f16> {greta.noalias}, %n: i32) attributes {waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c1024 = arith.constant 1024 : i32
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %row = greta_tile.iota 0 : tensor<32x32xi32>
  %column = greta_tile.iota 1 : tensor<32x32xi32>
  %width = arith.constant dense<32> : tensor<32x32xi32>
  %line = arith.muli %row, %width : tensor<32x32xi32>
  %at = arith.addi %line, %column : tensor<32x32xi32>
  %p = greta_tile.ptr_add %c, %at : !greta_tile.ptr<f16>, tensor<32x32xi32>
  scf.for %t = %z to %n step %one : i32 {
    %x = greta_tile.load_scattered %p : tensor<32x32x!greta_tile.ptr<f16>> -> tensor<32x32xf16>
    %far = arith.muli %t, %c1024 : i32
    %moved = greta_tile.ptr_add %a, %far : !greta_tile.ptr<f16>, i32
    %q = greta_tile.ptr_add %moved, %at : !greta_tile.ptr<f16>, tensor<32x32xi32>
    %y = greta_tile.load_scattered %q : tensor<32x32x!greta_tile.ptr<f16>> -> tensor<32x32xf16>
    %d = greta_tile.dot %x, %y, %none : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    %h = arith.truncf %d : tensor<32x32xf32> to tensor<32x32xf16>
    greta_tile.store_scattered %h, %p : tensor<32x32xf16> -> tensor<32x32x!greta_tile.ptr<f16>>
  }
  greta_tile.return
}

// A row of a padded image: columns begin before the row does, `0 <=` and an unsigned comparison are lower bounds, and where the row is outside of the image the bound
// is such that nothing is read. A sum of scalars is the offset.
// CHECK-LABEL: @padding(
// CHECK-SAME: %[[X:[^ ]*]]: !greta_tile.ptr<f16> {greta.readonly}, %{{.*}}: !greta_tile.ptr<f16>, %[[W:[^ ]*]]: i32{{.*}}, %[[S:[^ ]*]]: i32, %[[IN:[^ ]*]]: i1
// CHECK-DAG: %[[BOUND:.*]] = arith.select %[[IN]], %[[W]], %c0_i32
// CHECK-DAG: %[[OFFSET:.*]] = arith.addi %[[S]], %c-1_i32
// CHECK: greta_tile.load %{{.*}}[%[[OFFSET]]] strides [64] bounds [0](%[[BOUND]]) nonnegative [0]
// CHECK: greta_tile.load %{{.*}}[%[[S]]] strides [64] bounds [0](%{{.*}}) nonnegative [0]
greta_tile.func @padding(%x: !greta_tile.ptr<f16> {greta.readonly}, %y: !greta_tile.ptr<f16>, %w: i32, %s: i32, %in: i1) attributes {waves = 1 : i32} {
  %i = greta_tile.iota 0 : tensor<64xi32>
  %one = arith.constant dense<1> : tensor<64xi32>
  %zero = arith.constant dense<0> : tensor<64xi32>
  %c64 = arith.constant dense<64> : tensor<64xi32>
  %c100 = arith.constant dense<100> : tensor<64xi32>
  %s_s = greta_tile.splat %s : tensor<64xi32>
  %w_s = greta_tile.splat %w : tensor<64xi32>
  %in_s = greta_tile.splat %in : tensor<64xi1>
  %at = arith.addi %i, %s_s : tensor<64xi32>
  %column = arith.subi %at, %one : tensor<64xi32>
  %from = arith.cmpi sge, %column, %zero : tensor<64xi32>
  %to = arith.cmpi slt, %column, %w_s : tensor<64xi32>
  %both = arith.andi %from, %to : tensor<64xi1>
  %mask = arith.andi %in_s, %both : tensor<64xi1>
  %offset = arith.muli %column, %c64 : tensor<64xi32>
  %p = greta_tile.ptr_add %x, %offset : !greta_tile.ptr<f16>, tensor<64xi32>
  %v = greta_tile.load_scattered %p mask %mask : tensor<64x!greta_tile.ptr<f16>> -> tensor<64xf16>
  %below = arith.cmpi ult, %at, %c100 : tensor<64xi32>
  %offset_u = arith.muli %at, %c64 : tensor<64xi32>
  %q = greta_tile.ptr_add %x, %offset_u : !greta_tile.ptr<f16>, tensor<64xi32>
  %u = greta_tile.load_scattered %q mask %below : tensor<64x!greta_tile.ptr<f16>> -> tensor<64xf16>
  %sum = arith.addf %v, %u : tensor<64xf16>
  %r = greta_tile.ptr_add %y, %i : !greta_tile.ptr<f16>, tensor<64xi32>
  greta_tile.store_scattered %sum, %r : tensor<64xf16> -> tensor<64x!greta_tile.ptr<f16>>
  greta_tile.return
}

// An unsigned bound that may be above 2^31 is none, and two lower bounds of unlike offsets are none of one block.
// CHECK-LABEL: @no_padding(
// CHECK-COUNT-2: greta_tile.load_scattered
greta_tile.func @no_padding(%x: !greta_tile.ptr<f16> {greta.readonly}, %y: !greta_tile.ptr<f16>, %w: i32, %s: i32) attributes {waves = 1 : i32} {
  %i = greta_tile.iota 0 : tensor<64xi32>
  %zero = arith.constant dense<0> : tensor<64xi32>
  %s_s = greta_tile.splat %s : tensor<64xi32>
  %w_s = greta_tile.splat %w : tensor<64xi32>
  %at = arith.addi %i, %s_s : tensor<64xi32>
  %below = arith.cmpi ult, %at, %w_s : tensor<64xi32>
  %p = greta_tile.ptr_add %x, %at : !greta_tile.ptr<f16>, tensor<64xi32>
  %v = greta_tile.load_scattered %p mask %below : tensor<64x!greta_tile.ptr<f16>> -> tensor<64xf16>
  %from = arith.cmpi sge, %at, %zero : tensor<64xi32>
  %to = arith.cmpi slt, %i, %w_s : tensor<64xi32>
  %both = arith.andi %from, %to : tensor<64xi1>
  %u = greta_tile.load_scattered %p mask %both : tensor<64x!greta_tile.ptr<f16>> -> tensor<64xf16>
  %sum = arith.addf %v, %u : tensor<64xf16>
  %r = greta_tile.ptr_add %y, %i : !greta_tile.ptr<f16>, tensor<64xi32>
  greta_tile.store_scattered %sum, %r : tensor<64xf16> -> tensor<64x!greta_tile.ptr<f16>>
  greta_tile.return
}
