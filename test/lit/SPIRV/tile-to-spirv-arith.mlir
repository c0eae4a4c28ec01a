// RUN: greta-opt %s -greta-tile-to-spirv | FileCheck %s
// RUN: %if coopmat-lavapipe %{ greta-opt %s -greta-tile-to-spirv | %python %root/test/validate_spirv.py %}
// REQUIRES: compiler

// f16 adds and multiplies natively and rounds each time; divides in f32 and rounds that. The rounding mode is asked for.

// CHECK-LABEL: spirv.module @half
// CHECK-SAME: RoundingModeRTE
// CHECK: spirv.FAdd %{{.*}}, %{{.*}} {no_contraction} : f16
// CHECK: spirv.FMul %{{.*}}, %{{.*}} {no_contraction} : f16
// CHECK: %[[Q:.*]] = spirv.FDiv %{{.*}}, %{{.*}} : f32
// CHECK: spirv.FConvert %[[Q]] : f32 to f16
// CHECK: spirv.ExecutionMode @half "RoundingModeRTE", 16
greta_tile.func @half(%x: !greta_tile.ptr<f16>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = greta_tile.ptr_load %x[%c0] align 2 : !greta_tile.ptr<f16> -> f16
  %b = arith.addf %a, %a : f16
  %c = arith.mulf %b, %a : f16
  %d = arith.divf %c, %a : f16
  greta_tile.ptr_store %d, %x[%c0] align 2 : f16 -> !greta_tile.ptr<f16>
  greta_tile.return
}

// A value that f32 arithmetic rounds on its way is added to a zero that no driver can see, so that no driver drops the two conversions.

// CHECK-LABEL: spirv.module @rounded
// CHECK: %[[ID:.*]] = spirv.CompositeExtract %{{.*}}[0 : i32] : vector<3xi32>
// CHECK: %[[NEXT:.*]] = spirv.IAdd %[[ID]], %
// CHECK: %[[EVEN:.*]] = spirv.IMul %[[ID]], %[[NEXT]]
// CHECK: %[[LOW:.*]] = spirv.BitwiseAnd %[[EVEN]], %
// CHECK: %[[ZERO:.*]] = spirv.UConvert %[[LOW]] : i32 to i16
// CHECK: %[[H:.*]] = spirv.FConvert %{{.*}} : f32 to f16
// CHECK: %[[BITS:.*]] = spirv.Bitcast %[[H]] : f16 to i16
// CHECK: %[[SAME:.*]] = spirv.BitwiseOr %[[BITS]], %[[ZERO]] : i16
// CHECK: %[[BACK:.*]] = spirv.Bitcast %[[SAME]] : i16 to f16
// CHECK: spirv.FConvert %[[BACK]] : f16 to f32
greta_tile.func @rounded(%x: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = greta_tile.ptr_load %x[%c0] align 4 : !greta_tile.ptr<f32> -> f32
  %b = arith.truncf %a : f32 to f16
  %c = arith.extf %b : f16 to f32
  greta_tile.ptr_store %c, %x[%c0] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// So do numbers that are chosen among such, or taken from a vector of them. Loaded numbers do not.

// CHECK-LABEL: spirv.module @chosen
// CHECK: %[[CHOICE:.*]] = spirv.Select
// CHECK: %[[BITS:.*]] = spirv.Bitcast %[[CHOICE]] : f16 to i16
// CHECK: %[[SAME:.*]] = spirv.BitwiseOr %[[BITS]], %{{.*}} : i16
// CHECK: %[[BACK:.*]] = spirv.Bitcast %[[SAME]] : i16 to f16
// CHECK: spirv.FConvert %[[BACK]] : f16 to f32
// CHECK-NOT: spirv.BitwiseOr
// CHECK: spirv.FConvert %{{.*}} : f16 to f32
greta_tile.func @chosen(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f16>, %n: i32) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f16
  %a = greta_tile.ptr_load %x[%c0] align 4 : !greta_tile.ptr<f32> -> f32
  %loaded = greta_tile.ptr_load %y[%c0] align 2 : !greta_tile.ptr<f16> -> f16
  %b = arith.truncf %a : f32 to f16
  %is = arith.cmpi slt, %n, %c0 : i32
  %c = arith.select %is, %b, %zero : f16
  %d = arith.extf %c : f16 to f32
  %e = arith.extf %loaded : f16 to f32
  %f = arith.addf %d, %e : f32
  greta_tile.ptr_store %f, %x[%c0] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// bf16 has no type of its own: unpacked by shifts, computed in f32, rounded in integers, packed.

// CHECK-LABEL: spirv.module @brain
// CHECK-SAME: [Shader, Int64, PhysicalStorageBufferAddresses]
// CHECK: spirv.ShiftLeftLogical
// CHECK: spirv.BitwiseAnd
// CHECK: %[[S:.*]] = spirv.FAdd %{{.*}}, %{{.*}} : f32
// CHECK: %[[N:.*]] = spirv.IsNan %[[S]]
// CHECK: spirv.Select %[[N]]
// CHECK: spirv.BitwiseOr
// CHECK-NOT: FConvert
greta_tile.func @brain(%x: !greta_tile.ptr<bf16>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = greta_tile.ptr_load %x[%c0] align 4 : !greta_tile.ptr<bf16> -> vector<2xbf16>
  %b = arith.addf %a, %a : vector<2xbf16>
  greta_tile.ptr_store %b, %x[%c0] align 4 : vector<2xbf16> -> !greta_tile.ptr<bf16>
  greta_tile.return
}

// Operations of f32 that may be contracted carry no decoration; a maximum that need not mind NaN is one instruction.

// CHECK-LABEL: spirv.module @single
// CHECK: spirv.FMul %{{.*}}, %{{.*}} : f32
// CHECK: spirv.GL.FMax
// CHECK-NEXT: spirv.IsNan
// CHECK-NEXT: spirv.Select
// CHECK-NEXT: spirv.IsNan
// CHECK-NEXT: spirv.Select
// CHECK-NEXT: spirv.GL.FMax
// CHECK-NEXT: spirv.IsNan
// CHECK: spirv.LogicalNot
// CHECK: spirv.ConvertFToS
greta_tile.func @single(%x: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = greta_tile.ptr_load %x[%c0] align 4 : !greta_tile.ptr<f32> -> f32
  %s = arith.sitofp %n : i32 to f32
  %b = arith.mulf %a, %s : f32
  %c = arith.maximumf %a, %b : f32
  %d = arith.maxnumf %c, %a fastmath<nnan> : f32
  %e = arith.cmpf ord, %d, %a : f32
  %f = arith.select %e, %d, %c : f32
  %g = arith.fptosi %f : f32 to i32
  greta_tile.ptr_store %f, %x[%g] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Natural numbers divide as such, signed remainders come from the quotient; booleans are no integers.

// CHECK-LABEL: spirv.module @integers
// CHECK: spirv.UDiv
// CHECK: spirv.UMod
// CHECK: spirv.ISub
// CHECK: spirv.SDiv
// CHECK: spirv.IMul
// CHECK: spirv.ISub
// CHECK: spirv.LogicalAnd
// CHECK: spirv.Select
greta_tile.func @integers(%x: !greta_tile.ptr<i32>, %n: i32) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %lane = greta_tile.lane_id
  %c5 = arith.constant 5 : i32
  %a = arith.divsi %lane, %c5 : i32
  %b = arith.remsi %lane, %c5 : i32
  %m = arith.subi %n, %lane : i32
  %c = arith.remsi %m, %c5 : i32
  %d = arith.cmpi slt, %c, %a : i32
  %e = arith.cmpi uge, %b, %a : i32
  %f = arith.andi %d, %e : i1
  %g = arith.extui %f : i1 to i32
  %h = arith.addi %g, %c : i32
  greta_tile.ptr_store %h, %x[%a] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}

// Vectors are lists of scalars: only the words of a reinterpretation cost anything.

// CHECK-LABEL: spirv.module @vectors
// CHECK: spirv.Load "PhysicalStorageBuffer" %{{.*}} : vector<4xi32>
// CHECK: spirv.CompositeConstruct %{{.*}} : (f16, f16) -> vector<2xf16>
// CHECK-NEXT: spirv.Bitcast %{{.*}} : vector<2xf16> to i32
// CHECK-NOT: spirv.CompositeInsert
// CHECK: spirv.Store "PhysicalStorageBuffer" %{{.*}} : vector<2xi32>
greta_tile.func @vectors(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<i32>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %v = greta_tile.ptr_load %x[%c0] align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
  %a = vector.extract %v[0] : f16 from vector<8xf16>
  %b = vector.extract %v[7] : f16 from vector<8xf16>
  %w = vector.from_elements %a, %b, %b, %a : vector<4xf16>
  %u = vector.insert %b, %w [0] : f16 into vector<4xf16>
  %i = vector.bitcast %u : vector<4xf16> to vector<2xi32>
  greta_tile.ptr_store %i, %y[%c0] align 8 : vector<2xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}

// Functions are GLSL's own.

// CHECK-LABEL: spirv.module @functions
// CHECK: spirv.GL.Exp %{{.*}} : f32
// CHECK: spirv.GL.InverseSqrt %{{.*}} : f32
// CHECK: spirv.GL.RoundEven %{{.*}} : f32
// CHECK: spirv.GL.Fma %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK: spirv.GL.Log %{{.*}} : f32
greta_tile.func @functions(%x: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %a = greta_tile.ptr_load %x[%c0] align 4 : !greta_tile.ptr<f32> -> f32
  %b = math.exp %a : f32
  %c = math.rsqrt %b : f32
  %d = math.roundeven %c : f32
  %e = math.fma %d, %c, %b : f32
  %f = math.log %e : f32
  greta_tile.ptr_store %f, %x[%c0] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Both halves of a product.

// CHECK-LABEL: spirv.module @halves
// CHECK: spirv.Load "PhysicalStorageBuffer"
// CHECK-NEXT: %[[X:.*]] = spirv.UConvert %{{.*}} : i32 to i64
// CHECK-NEXT: %[[Y:.*]] = spirv.UConvert %{{.*}} : i32 to i64
// CHECK-NEXT: %[[P:.*]] = spirv.IMul %[[X]], %[[Y]] : i64
// CHECK: %[[H:.*]] = spirv.ShiftRightLogical %[[P]], %{{.*}} : i64
// CHECK: spirv.UConvert %[[P]] : i64 to i32
// CHECK: spirv.UConvert %[[H]] : i64 to i32
// CHECK: spirv.SConvert %{{.*}} : i32 to i64
greta_tile.func @halves(%x: !greta_tile.ptr<i32>, %n: i32) attributes {wave_size = 8 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<i32> -> i32
  %low, %high = arith.mului_extended %v, %n : i32
  %low2, %high2 = arith.mulsi_extended %low, %high : i32
  %s = arith.addi %low2, %high2 : i32
  greta_tile.ptr_store %s, %x[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}

// Adding a large constant and taking it away rounds: no driver may add the two. A sum without a product has nothing to contract.

// CHECK-LABEL: spirv.module @sums
// CHECK: %[[SUM:.*]] = spirv.FAdd %{{.*}}, %{{.*}} {no_contraction} : f32
// CHECK: %[[ROUNDED:.*]] = spirv.FSub %[[SUM]], %{{.*}} {no_contraction} : f32
// CHECK: spirv.FAdd %[[ROUNDED]], %{{[^ ]*}} {no_contraction} : f32
greta_tile.func @sums(%x: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %large = arith.constant 8388608.0 : f32
  %a = greta_tile.ptr_load %x[%c0] align 4 : !greta_tile.ptr<f32> -> f32
  %b = arith.addf %a, %large : f32
  %c = arith.subf %b, %large : f32
  %d = arith.addf %c, %a : f32
  greta_tile.ptr_store %d, %x[%c0] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// The error of a sum, and the test for NaN, are differences of equal expressions, which no driver may simplify.

// CHECK-LABEL: spirv.module @twice
// CHECK: %[[SUM:.*]] = spirv.FAdd %[[X:[^ ]*]], %[[Y:[^ ]*]] {no_contraction} : f32
// CHECK: %[[PART:.*]] = spirv.FSub %[[SUM]], %[[X]] {no_contraction} : f32
// CHECK: %[[NEG:.*]] = spirv.FNegate %[[PART]] : f32
// CHECK: %[[LOST:.*]] = spirv.FAdd %[[NEG]], %[[Y]] {no_contraction} : f32
// CHECK: spirv.FSub %[[LOST]], %[[LOST]] {no_contraction} : f32
// CHECK: %[[BACK:.*]] = spirv.FSub %[[Y]], %[[SUM]] {no_contraction} : f32
// CHECK: spirv.FMul %{{.*}}, %[[BACK]] : f32
greta_tile.func @twice(%x: !greta_tile.ptr<f32>) attributes {wave_size = 1 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %v = greta_tile.ptr_load %x[%c0] align 4 : !greta_tile.ptr<f32> -> f32
  %w = greta_tile.ptr_load %x[%c1] align 4 : !greta_tile.ptr<f32> -> f32
  %sum = arith.addf %v, %w : f32
  %part = arith.subf %sum, %v : f32
  %negated = arith.negf %part : f32
  %lost = arith.addf %negated, %w : f32
  %nothing = arith.subf %lost, %lost : f32
  %back = arith.subf %w, %sum : f32
  %both = arith.mulf %nothing, %back : f32
  greta_tile.ptr_store %both, %x[%c0] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// 64-bit integers are divided by powers of two in shifts, and round towards zero.
// CHECK-LABEL: spirv.module @power
// CHECK-DAG: %[[C63:.*]] = spirv.Constant 63 : i64
// CHECK-DAG: %[[C31:.*]] = spirv.Constant 31 : i64
// CHECK-DAG: %[[C33:.*]] = spirv.Constant 33 : i64
// CHECK: %[[SIGN:.*]] = spirv.ShiftRightArithmetic %[[X:.*]], %[[C63]] : i64, i64
// CHECK: %[[REST:.*]] = spirv.ShiftRightLogical %[[SIGN]], %[[C31]] : i64, i64
// CHECK: %[[SUM:.*]] = spirv.IAdd %[[X]], %[[REST]] : i64
// CHECK: spirv.ShiftRightArithmetic %[[SUM]], %[[C33]] : i64, i64
// CHECK-NOT: spirv.SDiv
greta_tile.func @power(%p: !greta_tile.ptr<i64>) attributes {waves = 1 : i32, wave_size = 8 : i32} {
  %lane = greta_tile.lane_id
  %c = arith.constant 8589934592 : i64
  %x = greta_tile.ptr_load %p[%lane] align 8 : !greta_tile.ptr<i64> -> i64
  %q = arith.divsi %x, %c : i64
  greta_tile.ptr_store %q, %p[%lane] align 8 : i64 -> !greta_tile.ptr<i64>
  greta_tile.return
}

// 64-bit integers of unknown divisor and range are divided in 32 bits if both have no more: NVIDIA's driver 580 reads one address twice where
// two addresses hold such quotients that pass through no phi. Numbers that are known to fit need no branch.
// CHECK-LABEL: spirv.module @wide
// CHECK: %[[LANE:.*]] = spirv.UConvert %{{.*}} : i32 to i64
// CHECK: %[[BITS:.*]] = spirv.BitwiseOr %[[LANE]], %[[Y:.*]] : i64
// CHECK: %[[UPPER:.*]] = spirv.ShiftRightLogical %[[BITS]], %{{.*}} : i64, i64
// CHECK: %[[FITS:.*]] = spirv.IEqual %[[UPPER]], %{{.*}} : i64
// CHECK: %{{.*}} = spirv.mlir.selection -> i64
// CHECK: spirv.BranchConditional %[[FITS]], ^[[NEAR:.*]], ^[[FAR:.*]]
// CHECK: ^[[NEAR]]:
// CHECK: spirv.UDiv %{{.*}}, %{{.*}} : i32
// CHECK: ^[[FAR]]:
// CHECK: %[[Q:.*]] = spirv.SDiv %[[LANE]], %[[Y]] : i64
// CHECK: %[[P:.*]] = spirv.IMul %[[Q]], %[[Y]] : i64
// CHECK: spirv.ISub %[[LANE]], %[[P]] : i64
// CHECK: spirv.mlir.merge
// CHECK-NOT: mlir.selection
// CHECK: spirv.UDiv %{{.*}}, %{{.*}} : i32
// CHECK-NOT: Div
// CHECK: spirv.Return
greta_tile.func @wide(%p: !greta_tile.ptr<i64>, %y: i64) attributes {waves = 1 : i32, wave_size = 8 : i32} {
  %lane = greta_tile.lane_id
  %x = arith.extui %lane : i32 to i64
  %rest = arith.remsi %x, %y : i64
  greta_tile.ptr_store %rest, %p[%lane] align 8 : i64 -> !greta_tile.ptr<i64>
  %c = arith.constant 3 : i64
  %third = arith.divsi %x, %c : i64
  greta_tile.ptr_store %third, %p[%lane] align 8 : i64 -> !greta_tile.ptr<i64>
  greta_tile.return
}

// The elements of vectors share one branch.
// CHECK-LABEL: spirv.module @pair
// CHECK: spirv.mlir.selection -> i64, i64
// CHECK-COUNT-2: spirv.UDiv %{{.*}}, %{{.*}} : i32
// CHECK-COUNT-2: spirv.SDiv %{{.*}}, %{{.*}} : i64
// CHECK: spirv.mlir.merge
// CHECK-NOT: mlir.selection
// CHECK: spirv.Return
greta_tile.func @pair(%p: !greta_tile.ptr<i64>, %q: !greta_tile.ptr<i64>) attributes {waves = 1 : i32, wave_size = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %x = greta_tile.ptr_load %p[%c0] align 16 : !greta_tile.ptr<i64> -> vector<2xi64>
  %y = greta_tile.ptr_load %q[%c0] align 16 : !greta_tile.ptr<i64> -> vector<2xi64>
  %r = arith.divsi %x, %y : vector<2xi64>
  greta_tile.ptr_store %r, %p[%c0] align 16 : vector<2xi64> -> !greta_tile.ptr<i64>
  greta_tile.return
}
