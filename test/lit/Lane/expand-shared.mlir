// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-expand{target=gfx950},cse))' | FileCheck %s --check-prefixes=CHECK,AMD
// RUN: sed -e '/only AMD/d' %s > %t.mlir
// RUN: greta-opt %t.mlir --pass-pipeline='builtin.module(greta_tile.func(greta-expand{target=vulkan:nvidia},cse))' | FileCheck %s --check-prefixes=CHECK,VULKAN

// On AMD indices become offsets of bytes: the factor goes to what sums are made of, also those of bits, and into other factors. In SPIR-V elements are
// words, and indices stay.
// CHECK-LABEL: greta_tile.func @swizzled
// AMD: %[[C48:.*]] = arith.constant 48 : i32
// AMD: %[[C1152:.*]] = arith.constant 1152 : i32
// AMD: %[[A:.*]] = greta_tile.shared_alloc : <2304 x i8>
// AMD: %[[LANE:.*]] = greta_tile.lane_id
// AMD: %[[C16:.*]] = arith.constant 16 : i32
// AMD: %[[COLUMN:.*]] = arith.muli %[[LANE]], %[[C16]]
// AMD: %[[WAVE:.*]] = greta_tile.wave_id
// AMD: %[[C144:.*]] = arith.constant 144 : i32
// AMD: %[[ROW:.*]] = arith.muli %[[WAVE]], %[[C144]]
// AMD: %[[SWIZZLED:.*]] = arith.xori %[[COLUMN]], %[[C48]]
// AMD: %[[AT:.*]] = arith.addi %[[ROW]], %[[SWIZZLED]]
// AMD: greta_tile.shared_store %[[V:.*]], %[[A]][%[[AT]]] : <2304 x i8> as vector<8xf16>
// AMD: %[[STAGE:.*]] = greta_tile.shared_stage %[[A]][%{{.*}}] of 2 : <2304 x i8>
// AMD: %[[THERE:.*]] = arith.addi %[[AT]], %[[C1152]]
// AMD: greta_tile.shared_load %[[STAGE]][%[[THERE]]] : <2304 x i8> as vector<8xf16>
// VULKAN: %[[A:.*]] = greta_tile.shared_alloc : <144 x vector<4xi32>>
// VULKAN: %[[AT:.*]] = arith.addi
// VULKAN: %[[W:.*]] = vector.bitcast %[[V:.*]] : vector<8xf16> to vector<4xi32>
// VULKAN: greta_tile.shared_store %[[W]], %[[A]][%[[AT]]] : <144 x vector<4xi32>>
// VULKAN: %[[STAGE:.*]] = greta_tile.shared_stage %[[A]][%{{.*}}] of 2 : <144 x vector<4xi32>>
// VULKAN: %[[L:.*]] = greta_tile.shared_load %[[STAGE]][%{{.*}}] : <144 x vector<4xi32>>
// VULKAN: vector.bitcast %[[L]] : vector<4xi32> to vector<8xf16>
greta_tile.func @swizzled(%y: !greta_tile.ptr<f16>) attributes {wave_size = 64 : i32, waves = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %c9 = arith.constant 9 : i32
  %c72 = arith.constant 72 : i32
  %v = arith.constant dense<1.0> : vector<8xf16>
  %a = greta_tile.shared_alloc : !greta_tile.shared<144 x vector<8xf16>>
  %column = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %row = arith.muli %wave, %c9 : i32
  %swizzled = arith.xori %column, %c3 : i32
  %at = arith.addi %row, %swizzled : i32
  greta_tile.shared_store %v, %a[%at] : !greta_tile.shared<144 x vector<8xf16>>
  %stage = greta_tile.shared_stage %a[%c1] of 2 : !greta_tile.shared<144 x vector<8xf16>>
  %there = arith.addi %at, %c72 : i32
  %w = greta_tile.shared_load %stage[%there] : !greta_tile.shared<144 x vector<8xf16>>
  greta_tile.ptr_store %w, %y[%c0] align 16 : vector<8xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// In SPIR-V a truth value is a word, and bf16 its bits; two i8 are no word, so each has a place of its own.
// CHECK-LABEL: greta_tile.func @narrow
// AMD: greta_tile.shared_alloc : <5 x i8>
// AMD: greta_tile.shared_alloc : <8 x i8>
// AMD: greta_tile.shared_alloc : <12 x i8>
// AMD: greta_tile.shared_store %{{.*}}, %{{.*}} : <5 x i8> as i1
// AMD: greta_tile.shared_load %{{.*}} : <8 x i8> as bf16
// AMD: greta_tile.shared_load %{{.*}} : <12 x i8> as vector<2xi8>
// VULKAN: greta_tile.shared_alloc : <5 x i32>
// VULKAN: greta_tile.shared_alloc : <4 x i16>
// VULKAN: greta_tile.shared_alloc : <12 x i8>
// VULKAN: %[[FIRST:.*]] = arith.muli %{{.*}}, %{{.*}} : i32
// VULKAN: %[[TRUTH:.*]] = arith.extui %{{.*}} : i1 to i32
// VULKAN: greta_tile.shared_store %[[TRUTH]]
// VULKAN: %[[WORD:.*]] = greta_tile.shared_load %{{.*}} : <5 x i32>
// VULKAN: arith.cmpi ne, %[[WORD]], %{{.*}} : i32
// VULKAN: %[[BITS:.*]] = greta_tile.shared_load %{{.*}} : <4 x i16>
// VULKAN: arith.bitcast %[[BITS]] : i16 to bf16
// VULKAN: %[[X:.*]] = greta_tile.shared_load %[[BYTES:.*]][%[[FIRST]]] : <12 x i8>
// VULKAN: %[[SECOND:.*]] = arith.addi %[[FIRST]], %{{.*}} : i32
// VULKAN: %[[Y:.*]] = greta_tile.shared_load %[[BYTES]][%[[SECOND]]]
// VULKAN: vector.from_elements %[[X]], %[[Y]] : vector<2xi8>
greta_tile.func @narrow(%y: !greta_tile.ptr<i8>, %z: !greta_tile.ptr<bf16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %true = arith.constant true
  %truths = greta_tile.shared_alloc : !greta_tile.shared<5 x i1>
  %brains = greta_tile.shared_alloc : !greta_tile.shared<4 x bf16>
  %bytes = greta_tile.shared_alloc : !greta_tile.shared<6 x vector<2xi8>>
  %lane = greta_tile.lane_id
  greta_tile.shared_store %true, %truths[%c0] : !greta_tile.shared<5 x i1>
  %t = greta_tile.shared_load %truths[%c0] : !greta_tile.shared<5 x i1>
  %b = greta_tile.shared_load %brains[%c0] : !greta_tile.shared<4 x bf16>
  %v = greta_tile.shared_load %bytes[%lane] : !greta_tile.shared<6 x vector<2xi8>>
  scf.if %t {
    greta_tile.ptr_store %v, %y[%c0] align 2 : vector<2xi8> -> !greta_tile.ptr<i8>
    greta_tile.ptr_store %b, %z[%c0] align 2 : bf16 -> !greta_tile.ptr<bf16>
  }
  greta_tile.return
}

// Counters, and what is loaded straight to shared memory.
// CHECK-LABEL: greta_tile.func @others
// AMD: %[[AT:.*]] = arith.muli
// AMD: greta_tile.shared_add %{{.*}}, %{{.*}}[%[[AT]]] : <256 x i8>
// AMD: greta_tile.ptr_load_shared %{{.*}} width 8 : <f16> -> <2048 x i8>
// VULKAN: greta_tile.shared_add %{{.*}}, %{{.*}} : <64 x i32>
greta_tile.func @others(%x: !greta_tile.ptr<f16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %counts = greta_tile.shared_alloc : !greta_tile.shared<64 x i32>
  %lane = greta_tile.lane_id
  greta_tile.shared_add %lane, %counts[%lane] : !greta_tile.shared<64 x i32>
  %a = greta_tile.shared_alloc : !greta_tile.shared<128 x vector<8xf16>> // only AMD
  greta_tile.ptr_load_shared %x[%lane], %a[%c0] width 8 : !greta_tile.ptr<f16> -> !greta_tile.shared<128 x vector<8xf16>> // only AMD
  greta_tile.return
}
