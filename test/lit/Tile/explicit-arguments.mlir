// RUN: greta-opt %s -greta-tile-explicit-arguments -canonicalize | FileCheck %s

// The grid's extents are scalars of the launch, each once; narrow scalars and f64 come as their bits.

// CHECK: #[[GRID:.*]] = affine_map<()[s0, s1] -> (s0 ceildiv 4, 3)>
// CHECK: #[[SCALARS:.*]] = affine_map<()[s0, s1] -> (s0, s0 ceildiv 4, 1, 3)>
// CHECK-LABEL: greta_tile.func @extents
// CHECK-SAME: (%[[H:.*]]: i32, %[[Y:.*]]: !greta_tile.ptr<f32>, %[[B:.*]]: i32, %[[D:.*]]: i64, %[[N:.*]]: i32, %[[PX:.*]]: i32 {greta.nonnegative}, %[[PZ:.*]]: i32 {greta.nonnegative}, %[[PY:.*]]: i32 {greta.nonnegative})
// CHECK-DAG: %[[D64:.*]] = arith.bitcast %[[D]] : i64 to f64
// CHECK-DAG: %[[BF:.*]] = arith.trunci %[[H]] : i32 to i16
// CHECK-DAG: arith.bitcast %[[BF]] : i16 to bf16
// CHECK-DAG: arith.trunci %[[B]] : i32 to i1
// CHECK-DAG: arith.addi %[[PX]], %[[PX]]
// CHECK-DAG: arith.addi %[[PZ]], %[[PY]]
greta_tile.func @extents(%h: bf16, %y: !greta_tile.ptr<f32>, %b: i1, %d: f64, %n: i32) attributes {waves = 1 : i32} {
  %x = greta_tile.num_programs 0
  %z = greta_tile.num_programs 2
  %yy = greta_tile.num_programs 1
  %again = greta_tile.num_programs 0
  %s = arith.addi %x, %again : i32
  %t = arith.addi %z, %yy : i32
  %u = arith.muli %s, %t : i32
  %wide = arith.extf %h : bf16 to f32
  %narrow = arith.truncf %d : f64 to f32
  %v = arith.select %b, %wide, %narrow : f32
  %p = greta_tile.ptr_add %y, %u : !greta_tile.ptr<f32>, i32
  greta_tile.store_scattered %v, %p : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}
// CHECK: greta_tile.launch @extents grid #[[GRID]] scalars #[[SCALARS]]
func.func @f(%h: bf16, %y: tensor<?xf32>, %b: i1, %d: f64) -> tensor<?xf32> {
  %0 = greta_tile.launch @extents grid affine_map<()[n, b] -> (n ceildiv 4, 3)> scalars affine_map<()[n, b] -> (n)> (%h, %y, %b, %d) tied [1] shapes []
       : (bf16, tensor<?xf32>, i1, f64) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// The log is the launch's last result, in front of what it computes. A print takes words of it, [site, ids, values], and stores if they are there; f16 as f32,
// f64 as two words. An assertion does so where an element is false, and stores the first such element's index.

// CHECK-LABEL: greta_tile.func @log
// CHECK-SAME: (%[[X:.*]]: !greta_tile.ptr<f16>, %[[LOG:.*]]: !greta_tile.ptr<i32>, %[[N:.*]]: i32) attributes
// CHECK-SAME: {greta_tile.log = [{hex = false, kind = "print", text = " v ", values = [{dtype = "f32", shape = [2, 4]}, {dtype = "u8", shape = []}]},
// CHECK-SAME: {hex = true, kind = "print", text = " n ", values = [{dtype = "u32", shape = []}, {dtype = "u64", shape = []}]},
// CHECK-SAME: {kind = "assert", shape = [2, 4], text = "positive", where = "explicit-arguments.mlir:{{[0-9]+}}"}]
// CHECK-DAG: %[[C13:.*]] = arith.constant 13 : i32
// CHECK-DAG: %[[LEFT:.*]] = arith.constant 262130 : i32
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : tensor<2x4xf16> to tensor<2x4xf32>
// CHECK: %[[BITS:.*]] = arith.bitcast %[[WIDE]] : tensor<2x4xf32> to tensor<2x4xi32>
// CHECK: %[[TAKEN:.*]] = greta_tile.atomic_rmw add relaxed device %[[LOG]], %[[C13]]
// CHECK: %[[FITS:.*]] = arith.cmpi ule, %[[TAKEN]], %[[LEFT]]
// CHECK: scf.if %[[FITS]] {
// CHECK-COUNT-4: greta_tile.store_scattered
// CHECK: greta_tile.store %[[BITS]], %{{.*}} strides [4, 1]
// CHECK: greta_tile.ptr_to_int
// CHECK: %[[FIRST:.*]] = greta_tile.reduce {arith.minsi}
// CHECK: %[[SMALLEST:.*]] = greta_tile.reduce {arith.minsi} %[[FIRST]]
// CHECK: %[[FAILS:.*]] = arith.cmpi ne, %[[SMALLEST]], %{{.*}} : i32
// CHECK: scf.if %[[FAILS]] {
// CHECK: greta_tile.atomic_rmw
// CHECK: scf.if
// CHECK: greta_tile.store_scattered %[[SMALLEST]]
greta_tile.func @log(%x: !greta_tile.ptr<f16>, %n: i32) attributes {waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  %small = arith.trunci %n : i32 to i8
  %v = greta_tile.load %x[%zero, %zero] strides [4, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<2x4xf16>
  greta_tile.print " v " %v, %small unsigned [1] : tensor<2x4xf16>, i8
  greta_tile.print " n " %n, %x hex : i32, !greta_tile.ptr<f16>
  %none = arith.constant dense<0.0> : tensor<2x4xf16>
  %positive = arith.cmpf ogt, %v, %none : tensor<2x4xf16>
  greta_tile.assert %positive, "positive" : tensor<2x4xi1>
  greta_tile.return
}
// CHECK: %[[R:.*]]:2 = greta_tile.launch @log {{.*}} tied [0, -1] shapes [#{{.*}}] : (tensor<?xf16>) -> (tensor<?xf16>, tensor<262144xi32>)
// CHECK: return %[[R]]#0
func.func @g(%x: tensor<?xf16>) -> tensor<?xf16> {
  %0 = greta_tile.launch @log grid affine_map<()[n] -> (n)> scalars affine_map<()[n] -> (n)> (%x) tied [0] shapes [] : (tensor<?xf16>) -> tensor<?xf16>
  return %0 : tensor<?xf16>
}

// A kernel that only asserts has a small log: 4096 words, of which a record
// takes 5.

// CHECK-LABEL: greta_tile.func @small_log
// CHECK: arith.constant 4090 : i32
greta_tile.func @small_log(%x: !greta_tile.ptr<f16>, %n: i32) attributes {waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  %positive = arith.cmpi sgt, %n, %zero : i32
  greta_tile.assert %positive, "positive" : i1
  greta_tile.return
}
// CHECK: greta_tile.launch @small_log {{.*}} -> (tensor<?xf16>, tensor<4096xi32>)
func.func @h(%x: tensor<?xf16>) -> tensor<?xf16> {
  %0 = greta_tile.launch @small_log grid affine_map<()[n] -> (n)> scalars affine_map<()[n] -> (n)> (%x) tied [0] shapes [] : (tensor<?xf16>) -> tensor<?xf16>
  return %0 : tensor<?xf16>
}
