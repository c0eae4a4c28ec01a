// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(any(greta-expand{target=gfx942}))' | FileCheck %s --check-prefixes=CHECK,WORDS
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(any(greta-expand{target=vulkan:nvidia}))' | FileCheck %s --check-prefixes=CHECK,WORDS
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(any(greta-expand{target=gfx1201}))' | FileCheck %s --check-prefixes=CHECK,OCP
// RUN: greta-opt %s --split-input-file --pass-pipeline='builtin.module(any(greta-expand{target=vulkan:portable}))' | FileCheck %s --check-prefixes=CHECK,ALONE

// Elements become f16 two at a time, by their word; words that nobody reads are not converted.
// CHECK-LABEL: greta_tile.func @floats
// CHECK: %[[X:.*]] = greta_tile.ptr_load %arg0
// WORDS: %[[WORDS:.*]] = vector.bitcast %[[X]] : vector<8xi8> to vector<2xi32>
// WORDS-NEXT: %[[WORD:.*]] = vector.extract %[[WORDS]][1] : i32 from vector<2xi32>
// WORDS-COUNT-2: arith.mulf %{{.*}}, %{{.*}} fastmath<contract> : vector<2xf16>
// WORDS-NOT: vector.bitcast
// WORDS-NOT: arith.uitofp
// WORDS: greta_tile.return
// OCP: rocdl.cvt.f32.fp8
// OCP-NOT: vector.bitcast
// A device of which nothing is known may have no denormals.
// ALONE-NOT: vector.bitcast
// ALONE: greta_tile.return
greta_tile.func @floats(%x: !greta_tile.ptr<f8E4M3FN>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %i = arith.constant 0 : i32
  %0 = greta_tile.ptr_load %x[%i] align 8 : !greta_tile.ptr<f8E4M3FN> -> vector<8xf8E4M3FN>
  %1 = vector.extract %0[4] : f8E4M3FN from vector<8xf8E4M3FN>
  %2 = vector.extract %0[7] : f8E4M3FN from vector<8xf8E4M3FN>
  %3 = arith.extf %1 : f8E4M3FN to f16
  %4 = arith.extf %2 : f8E4M3FN to f16
  %5 = arith.addf %3, %4 : f16
  greta_tile.ptr_store %5, %y[%i] align 2 : f16 -> !greta_tile.ptr<f16>
  greta_tile.return
}

// -----

// Whole numbers do so on every target.
// CHECK-LABEL: greta_tile.func @integers
// CHECK: %[[X:.*]] = greta_tile.ptr_load %arg0
// CHECK: %[[WORDS:.*]] = vector.bitcast %[[X]] : vector<4xi8> to vector<1xi32>
// CHECK: %[[WORD:.*]] = vector.extract %[[WORDS]][0]
// CHECK: arith.xori %[[WORD]], %{{.*}} : i32
// CHECK: %[[EVEN:.*]] = arith.subf %{{.*}}, %{{.*}} fastmath<contract> : vector<2xf16>
// CHECK: %[[ODD:.*]] = arith.subf %{{.*}}, %{{.*}} fastmath<contract> : vector<2xf16>
// CHECK: vector.extract %[[ODD]][1] : f16 from vector<2xf16>
// CHECK-NOT: arith.sitofp
// CHECK: greta_tile.return
greta_tile.func @integers(%x: !greta_tile.ptr<i8>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %i = arith.constant 0 : i32
  %0 = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<i8> -> vector<4xi8>
  %1 = vector.extract %0[3] : i8 from vector<4xi8>
  %2 = vector.extract %0[0] : i8 from vector<4xi8>
  %3 = arith.sitofp %1 : i8 to f16
  %4 = arith.sitofp %2 : i8 to f16
  %5 = arith.addf %3, %4 : f16
  greta_tile.ptr_store %5, %y[%i] align 2 : f16 -> !greta_tile.ptr<f16>
  greta_tile.return
}

// -----

// Elements of fewer than a word, those that become f32, and numbers without a sign are converted one by one.
// CHECK-LABEL: greta_tile.func @no_words
// CHECK-NOT: vector.bitcast
// CHECK: arith.uitofp %{{.*}} : i8 to f16
// CHECK: greta_tile.return
greta_tile.func @no_words(%x: !greta_tile.ptr<i8>, %y: !greta_tile.ptr<f16>, %z: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %i = arith.constant 0 : i32
  %0 = greta_tile.ptr_load %x[%i] align 2 : !greta_tile.ptr<i8> -> vector<2xi8>
  %1 = vector.extract %0[1] : i8 from vector<2xi8>
  %2 = arith.sitofp %1 : i8 to f16
  greta_tile.ptr_store %2, %y[%i] align 2 : f16 -> !greta_tile.ptr<f16>
  %3 = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<i8> -> vector<4xi8>
  %4 = vector.extract %3[1] : i8 from vector<4xi8>
  %5 = arith.sitofp %4 : i8 to f32
  greta_tile.ptr_store %5, %z[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  %6 = arith.uitofp %4 : i8 to f16
  greta_tile.ptr_store %6, %y[%i] align 2 : f16 -> !greta_tile.ptr<f16>
  greta_tile.return
}
