// All products of a row at once, in f64; a row that sees nothing is zero. Updates go row by row into the cache.
// RUN: greta-opt %s --greta-decompose --canonicalize --cse | FileCheck %s --implicit-check-not="= greta."

// Query head h reads key head h / 4.
// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 floordiv 4, d3, d4)>
// CHECK-LABEL: func.func @attention(
// CHECK: linalg.generic {indexing_maps = [#[[Q]], #[[K]], #{{.*}}], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1
// CHECK: linalg.generic
// CHECK: math.tanh
// CHECK: %[[VALID:.*]] = arith.minsi %{{.*}}, %{{.*}} : index
// CHECK: arith.cmpi slt, %{{.*}}, %[[VALID]] : index
// CHECK: arith.cmpi sle
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: %[[NONE:.*]] = arith.cmpf oeq, %[[SUM:in_[0-9]*]], %{{.*}} : f64
// CHECK-NEXT: %[[Y:.*]] = arith.divf %{{.*}}, %[[SUM]]
// CHECK-NEXT: arith.select %[[NONE]], %{{.*}}, %[[Y]] : f64
// CHECK-NOT: math.log
// CHECK: return
func.func @attention(%q: tensor<?x8x?x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>, %l: tensor<?xi32>) -> tensor<?x8x?x64xf16> {
  %0 = greta.attention %q, %k, %v lengths(%l) {causal, softcap = 30.0 : f32} : tensor<?x8x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?xi32> -> tensor<?x8x?x64xf16>
  return %0 : tensor<?x8x?x64xf16>
}

// Entries of the table behind a sequence's length are not followed.
// CHECK-LABEL: func.func @paged(
// CHECK: %[[ENTRY:.*]] = tensor.extract %arg3
// CHECK: %[[PAGE:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : index
// CHECK: tensor.extract %arg1[%[[PAGE]],
func.func @paged(%q: tensor<?x8x?x64xf16>, %k: tensor<?x16x2x64xf16>, %v: tensor<?x16x2x64xf16>, %t: tensor<?x?xi32>, %l: tensor<?xi32>) -> tensor<?x8x?x64xf16> {
  %0 = greta.paged_attention %q, %k, %v, %t, %l : tensor<?x8x?x64xf16>, tensor<?x16x2x64xf16>, tensor<?x16x2x64xf16>, tensor<?x?xi32>, tensor<?xi32> -> tensor<?x8x?x64xf16>
  return %0 : tensor<?x8x?x64xf16>
}

// Sequences one after another, whose rows are in place; rows of none are zero.
// CHECK-LABEL: func.func @rows(
// CHECK: %[[ZERO:.*]] = linalg.fill
// CHECK: scf.for %[[N:[^ ]*]] = {{.*}} iter_args(%[[DONE:.*]] = %[[ZERO]], %[[BEGIN:.*]] = %c0)
// CHECK: %[[NEXT:.*]] = tensor.extract %arg4[
// CHECK: %[[ROWS:.*]] = arith.subi %{{.*}}, %[[BEGIN]] : index
// CHECK: tensor.extract_slice %arg0[%[[BEGIN]], 0, 0] [%[[ROWS]], 8, 64]
// CHECK: tensor.extract_slice %arg2[%[[N]], 0]
// CHECK: tensor.insert_slice %{{.*}} into %[[DONE]][%[[BEGIN]], 0, 0] [%[[ROWS]], 8, 64]
func.func @rows(%q: tensor<?x8x64xf16>, %k: tensor<?x16x2x64xf16>, %t: tensor<?x?xi32>, %l: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?x8x64xf16> {
  %0 = greta.paged_attention %q, %k, %k, %t, %l begins(%b) : tensor<?x8x64xf16>, tensor<?x16x2x64xf16>, tensor<?x16x2x64xf16>, tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x8x64xf16>
  return %0 : tensor<?x8x64xf16>
}

// CHECK-LABEL: func.func @update(
// CHECK: scf.for %[[N:[^ ]*]] =
// CHECK: scf.for %[[I:[^ ]*]] =
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[I]] : index
// CHECK: arith.cmpi ult, %[[AT]]
// CHECK: scf.if
// CHECK: %[[ROW:.*]] = tensor.extract_slice %arg1[%[[N]], 0, %[[I]], 0] [1, 2, 1, 64] [1, 1, 1, 1]
// CHECK: tensor.insert_slice %[[ROW]] into %{{.*}}[%[[N]], 0, %[[AT]], 0] [1, 2, 1, 64] [1, 1, 1, 1]
func.func @update(%c: tensor<?x2x?x64xf16>, %n: tensor<?x2x?x64xf16>, %p: tensor<?xi32>) -> tensor<?x2x?x64xf16> {
  %0 = greta.kv_update %c, %n, %p : tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?xi32> -> tensor<?x2x?x64xf16>
  return %0 : tensor<?x2x?x64xf16>
}

// Rows become numbers and scales first, then both replace rows.
// CHECK-LABEL: func.func @update_of_groups(
// CHECK: linalg.generic {{.*}}"parallel", "parallel", "parallel", "reduction"]
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: math.roundeven
// CHECK: tensor.insert_slice %{{.*}} : tensor<1x2x64xi8> into tensor<?x16x2x64xi8>
// CHECK: tensor.insert_slice %{{.*}} : tensor<1x2x2xf16> into tensor<?x16x2x2xf16>
func.func @update_of_groups(%c: tensor<?x16x2x64xi8>, %n: tensor<?x2x64xf16>, %p: tensor<?xi32>, %s: tensor<?x16x2x2xf16>) -> (tensor<?x16x2x64xi8>, tensor<?x16x2x2xf16>) {
  %0, %1 = greta.paged_kv_update %c, %n, %p, %s : tensor<?x16x2x64xi8>, tensor<?x2x64xf16>, tensor<?xi32>, tensor<?x16x2x2xf16> -> tensor<?x16x2x64xi8>, tensor<?x16x2x2xf16>
  return %0, %1 : tensor<?x16x2x64xi8>, tensor<?x16x2x2xf16>
}
// CHECK-LABEL: func.func @paged_update(
// CHECK: scf.for %[[TOKEN:[^ ]*]] =
// CHECK: %[[SLOT:.*]] = arith.index_cast
// CHECK: %[[PAGE:.*]] = arith.divui %[[SLOT]], %{{.*}} : index
// CHECK: %[[PLACE:.*]] = arith.remui %[[SLOT]], %{{.*}} : index
// CHECK: arith.cmpi ult, %[[SLOT]]
// CHECK: %[[ROW:.*]] = tensor.extract_slice %arg1[%[[TOKEN]], 0, 0] [1, 2, 64]
// CHECK: tensor.insert_slice %[[ROW]] into %{{.*}}[%[[PAGE]], %[[PLACE]], 0, 0]
func.func @paged_update(%c: tensor<?x16x2x64xf16>, %n: tensor<?x2x64xf16>, %p: tensor<?xi32>) -> tensor<?x16x2x64xf16> {
  %0 = greta.paged_kv_update %c, %n, %p : tensor<?x16x2x64xf16>, tensor<?x2x64xf16>, tensor<?xi32> -> tensor<?x16x2x64xf16>
  return %0 : tensor<?x16x2x64xf16>
}
