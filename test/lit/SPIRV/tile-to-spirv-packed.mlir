// RUN: greta-opt %s -greta-tile-to-spirv | FileCheck %s
// RUN: %if coopmat-lavapipe %{ greta-opt %s -greta-tile-to-spirv | %python %root/test/validate_spirv.py %}
// REQUIRES: compiler

// The prefetch of a product: 16 bytes go from global memory through a loop into shared memory as four words, under a condition, too.

// CHECK-LABEL: spirv.module @prefetch
// CHECK-NOT: f16
// CHECK: %[[L:.*]] = spirv.Load {{.*}} ["Aligned", 16] : vector<4xi32>
// CHECK: %[[W0:.*]] = spirv.CompositeExtract %[[L]][0 : i32]
// CHECK-NOT: f16
// CHECK: spirv.mlir.loop -> i32, i32, i32, i32 {
// CHECK: ^{{.*}}(%{{.*}}: i32, %[[C0:.*]]: i32, %[[C1:.*]]: i32, %[[C2:.*]]: i32, %[[C3:.*]]: i32):
// CHECK: spirv.CompositeConstruct %[[C0]], %[[C1]], %[[C2]], %[[C3]] : (i32, i32, i32, i32) -> vector<4xi32>
// CHECK-NOT: Bitcast
// CHECK: spirv.Select %{{.*}}, %{{.*}}, %[[C0]] : i1, i32
// CHECK: spirv.mlir.merge %[[C0]], %[[C1]], %[[C2]], %[[C3]]
// CHECK-NOT: f16
// CHECK: spirv.EntryPoint
greta_tile.func @prefetch(%x: !greta_tile.ptr<bf16>, %n: i32) attributes {wave_size = 1 : i32, waves = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %s = greta_tile.shared_alloc : !greta_tile.shared<64 x vector<4xi32>>
  %t = greta_tile.wave_id
  %v = greta_tile.ptr_load %x[%t] align 16 : !greta_tile.ptr<bf16> -> vector<8xbf16>
  %r = scf.for %i = %c0 to %n step %c8 iter_args(%a = %v) -> (vector<8xbf16>) : i32 {
    %w = vector.bitcast %a : vector<8xbf16> to vector<4xi32>
    greta_tile.shared_store %w, %s[%t] : !greta_tile.shared<64 x vector<4xi32>>
    %b = greta_tile.ptr_load %x[%i] align 16 : !greta_tile.ptr<bf16> -> vector<8xbf16>
    %odd = arith.cmpi slt, %t, %i : i32
    %c = arith.select %odd, %b, %a : vector<8xbf16>
    scf.yield %c : vector<8xbf16>
  }
  greta_tile.ptr_store %r, %x[%c0] align 8 : vector<8xbf16> -> !greta_tile.ptr<bf16>
  greta_tile.return
}

// Elements are unpacked where the words were made, so that the conditional's and the later use share them.

// CHECK-LABEL: spirv.module @elements
// CHECK: %[[W:.*]] = spirv.Load {{.*}} ["Aligned", 4] : i32
// CHECK: %[[V:.*]] = spirv.Bitcast %[[W]] : i32 to vector<2xf16>
// CHECK: %[[E0:.*]] = spirv.CompositeExtract %[[V]][0 : i32]
// CHECK: spirv.mlir.selection
// CHECK: spirv.Store {{.*}}, %[[E0]] ["Aligned", 2] : f16
// CHECK-NOT: Bitcast
// CHECK: spirv.Store {{.*}} ["Aligned", 2] : f16
greta_tile.func @elements(%x: !greta_tile.ptr<f16>, %n: i32) attributes {wave_size = 1 : i32, waves = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %v = greta_tile.ptr_load %x[%c0] align 4 : !greta_tile.ptr<f16> -> vector<2xf16>
  %c = arith.cmpi slt, %c0, %n : i32
  scf.if %c {
    %a = vector.extract %v[0] : f16 from vector<2xf16>
    greta_tile.ptr_store %a, %x[%n] align 2 : f16 -> !greta_tile.ptr<f16>
  }
  %b = vector.extract %v[1] : f16 from vector<2xf16>
  greta_tile.ptr_store %b, %x[%c0] align 2 : f16 -> !greta_tile.ptr<f16>
  greta_tile.return
}

// Reinterpretation and slices by words cost nothing; a store that is not aligned to words takes elements.

// CHECK-LABEL: spirv.module @views
// CHECK: %[[L:.*]] = spirv.Load {{.*}} ["Aligned", 16] : vector<4xi32>
// CHECK: %[[W2:.*]] = spirv.CompositeExtract %[[L]][2 : i32]
// CHECK: spirv.Store {{.*}}, %[[W2]] ["Aligned", 4] : i32
// CHECK: spirv.Bitcast %{{.*}} : i32 to vector<4xi8>
// CHECK: spirv.Store {{.*}} ["Aligned", 1] : i8
greta_tile.func @views(%x: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<f16>, %z: !greta_tile.ptr<i8>) attributes {wave_size = 1 : i32, waves = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %v = greta_tile.ptr_load %x[%c0] align 16 : !greta_tile.ptr<i32> -> vector<4xi32>
  %h = vector.bitcast %v : vector<4xi32> to vector<8xf16>
  %s = vector.extract_strided_slice %h {offsets = [4], sizes = [2], strides = [1]} : vector<8xf16> to vector<2xf16>
  greta_tile.ptr_store %s, %y[%c0] align 4 : vector<2xf16> -> !greta_tile.ptr<f16>
  %b = vector.bitcast %h : vector<8xf16> to vector<16xi8>
  greta_tile.ptr_store %b, %z[%c0] align 1 : vector<16xi8> -> !greta_tile.ptr<i8>
  greta_tile.return
}

// Two f16 are one vector, made once, and one instruction; a word is one without any, and so are constants. Their elements are taken out where something asks for them.
// CHECK-LABEL: spirv.func @pairs
// CHECK: %[[ONES:.*]] = spirv.Constant dense<1.000000e+00> : vector<2xf16>
// CHECK: %[[W:.*]] = spirv.Load "PhysicalStorageBuffer" %{{.*}} : i32
// CHECK: %[[P:.*]] = spirv.Bitcast %[[W]] : i32 to vector<2xf16>
// CHECK: %[[S:.*]] = spirv.CompositeConstruct %{{.*}}, %{{.*}} : (f16, f16) -> vector<2xf16>
// CHECK: %[[D:.*]] = spirv.FSub %[[P]], %[[S]] {no_contraction} : vector<2xf16>
// CHECK: %[[M:.*]] = spirv.FMul %[[D]], %[[S]] {no_contraction} : vector<2xf16>
// CHECK: %[[F:.*]] = spirv.GL.Fma %[[M]], %[[ONES]], %[[S]] : vector<2xf16>
// CHECK: spirv.CompositeExtract %[[F]][1 : i32]
// CHECK: spirv.Bitcast %[[M]] : vector<2xf16> to i32
greta_tile.func @pairs(%q: !greta_tile.ptr<i32>, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %w = greta_tile.ptr_load %q[%c0] align 4 : !greta_tile.ptr<i32> -> i32
  %t = greta_tile.ptr_load %s[%c0] align 2 : !greta_tile.ptr<f16> -> f16
  %words = vector.from_elements %w : vector<1xi32>
  %p = vector.bitcast %words : vector<1xi32> to vector<2xf16>
  %both = vector.broadcast %t : f16 to vector<2xf16>
  %d = arith.subf %p, %both : vector<2xf16>
  %m = arith.mulf %d, %both : vector<2xf16>
  %ones = arith.constant dense<1.0> : vector<2xf16>
  %f = math.fma %m, %ones, %both : vector<2xf16>
  %high = vector.extract %f[1] : f16 from vector<2xf16>
  greta_tile.ptr_store %high, %s[%c0] align 2 : f16 -> !greta_tile.ptr<f16>
  greta_tile.ptr_store %m, %y[%c0] align 4 : vector<2xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}
