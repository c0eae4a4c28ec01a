// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-expand{target=gfx942},cse))' | FileCheck %s --check-prefixes=CHECK,AMD,BITS,PERMUTES
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-expand{target=vulkan:nvidia},cse))' | FileCheck %s --check-prefixes=CHECK,VULKAN,BITS
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-expand{target=gfx950},cse))' | FileCheck %s --check-prefixes=CHECK,AMD,CONVERTS

// A word's numbers less a zero, times a scale: two at a time. A permutation of bytes makes neighbours a pair; else numbers e and e + 4 are one.
// The zero is part of the constant that is taken away.
// CHECK-LABEL: greta_tile.func @word
// AMD: %[[BYTES:.*]] = llvm.call_intrinsic "llvm.amdgcn.perm"(%[[W:.*]], %[[W]], %{{.*}})
// AMD: %[[N:.*]] = arith.andi %[[BYTES]], %c15728655_i32
// AMD: %[[P:.*]] = arith.ori %[[N]], %c1677747200_i32
// AMD: %[[SIXTEEN:.*]] = arith.constant dense<[1.000000e+00, 6.250000e-02]> : vector<2xf16>
// AMD: %[[ZEROS:.*]] = arith.muli %{{.*}}, %c1048577_i32
// AMD: arith.ori %[[ZEROS]]
// AMD: %[[F:.*]] = math.fma %{{.*}}, %[[SIXTEEN]], %{{.*}} : vector<2xf16>
// AMD: arith.mulf %[[F]], %{{.*}} : vector<2xf16>
// AMD-COUNT-3: math.fma
// VULKAN: %[[N:.*]] = arith.andi %{{.*}}, %c983055_i32
// VULKAN: %[[P:.*]] = arith.ori %[[N]], %c1677747200_i32
// VULKAN: arith.muli %{{.*}}, %c65537_i32
// VULKAN: %[[D:.*]] = arith.subf {{.*}} : vector<2xf16>
// VULKAN: arith.mulf %[[D]], {{.*}} : vector<2xf16>
// VULKAN-COUNT-3: arith.shrui
// CHECK: arith.mulf {{.*}} : vector<2xf16>
// CHECK: vector.from_elements {{.*}} : vector<8xf16>
// CHECK-NOT: greta_tile.unpack
greta_tile.func @word(%q: !greta_tile.ptr<i32>, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>, %z: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %w = greta_tile.ptr_load %q[%c0] align 4 : !greta_tile.ptr<i32> -> i32
  %t = greta_tile.ptr_load %s[%c0] align 2 : !greta_tile.ptr<f16> -> f16
  %m = greta_tile.unpack "gptq4" %w scale %t zero %z : f16, i32 -> vector<8xf16>
  greta_tile.ptr_store %m, %y[%c0] align 16 : vector<8xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// A scale and a minimum are one fused multiply-add of a pair. Without a permutation every other pair is taken from bits 7:4, as 64 + w.
// CHECK-LABEL: greta_tile.func @minimum
// CHECK-DAG: %[[S:.*]] = vector.broadcast %{{.*}} : f16 to vector<2xf16>
// CHECK-DAG: %[[M:.*]] = vector.broadcast %{{.*}} : f16 to vector<2xf16>
// AMD: %[[F:.*]] = math.fma {{.*}} : vector<2xf16>
// AMD: math.fma %[[F]], %{{.*}}, %{{.*}} : vector<2xf16>
// AMD-COUNT-6: math.fma
// VULKAN: arith.andi %[[W:.*]], %c983055_i32
// VULKAN: %[[D:.*]] = arith.subf {{.*}} : vector<2xf16>
// VULKAN: math.fma %[[D]], %{{.*}}, %{{.*}} : vector<2xf16>
// VULKAN-NOT: arith.shrui
// VULKAN: %[[UPPER:.*]] = arith.andi %[[W]], %c15728880_i32
// VULKAN: arith.ori %[[UPPER]], %c1409307648_i32
// VULKAN: math.fma
// VULKAN: arith.shrui %[[W]], %c8_i32
// VULKAN-NOT: arith.shrui
// VULKAN-COUNT-2: math.fma
// CHECK-NOT: math.fma
// CHECK-NOT: greta_tile.unpack
greta_tile.func @minimum(%q: !greta_tile.ptr<i32>, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %w = greta_tile.ptr_load %q[%c0] align 4 : !greta_tile.ptr<i32> -> i32
  %t = greta_tile.ptr_load %s[%c0] align 2 : !greta_tile.ptr<f16> -> f16
  %u = greta_tile.ptr_load %s[%c1] align 2 : !greta_tile.ptr<f16> -> f16
  %m = greta_tile.unpack "q4_1" %w scale %t zero %u : f16, f16 -> vector<8xf16>
  greta_tile.ptr_store %m, %y[%c0] align 16 : vector<8xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// A's own sum is of f32, as sums of f16 may overflow.
// CHECK-LABEL: greta_tile.func @sum
// AMD-COUNT-4: greta_tile.vector_dot {{.*}} : vector<2xf16>
// VULKAN-COUNT-8: arith.extf {{.*}} : f16 to f32
// VULKAN-NOT: vector<2xf16>
// VULKAN: math.fma {{.*}} : f32
greta_tile.func @sum(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f16
  %a = greta_tile.ptr_load %x[%c0] align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
  %ones = vector.from_elements %one, %one, %one, %one, %one, %one, %one, %one : vector<8xf16>
  %sum = greta_tile.vector_dot %a, %ones, %zero : vector<8xf16>
  greta_tile.ptr_store %sum, %y[%c0] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// 128ths need one shift. Elements that are a register together are multiplied together; the sum is the instruction's, or one of pairs.
// CHECK-LABEL: greta_tile.func @dot
// CHECK: arith.andi %{{.*}}, %c983055_i32
// CHECK: arith.ori %{{.*}}, %c1207977984_i32
// CHECK: arith.andi %{{.*}}, %c15728880_i32
// CHECK: arith.ori %{{.*}}, %c939538432_i32
// CHECK: arith.shrui
// CHECK-NOT: arith.shrui
// AMD-COUNT-4: greta_tile.vector_dot {{.*}} : vector<2xf16>
// AMD-NOT: greta_tile.vector_dot
// VULKAN: arith.mulf {{.*}} : vector<2xf16>
// VULKAN-COUNT-3: math.fma {{.*}} : vector<2xf16>
// VULKAN-COUNT-2: arith.extf {{.*}} : f16 to f32
// VULKAN: arith.addf
greta_tile.func @dot(%q: !greta_tile.ptr<i32>, %x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i32
  %unit = arith.constant 7.8125e-03 : f16
  %w = greta_tile.ptr_load %q[%c0] align 4 : !greta_tile.ptr<i32> -> i32
  %a = greta_tile.ptr_load %x[%c0] align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
  %m = greta_tile.unpack "gptq4" %w scale %unit zero %none : f16, i32 -> vector<8xf16>
  %d = greta_tile.vector_dot %a, %m, %zero : vector<8xf16>
  greta_tile.ptr_store %d, %y[%c0] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Upper bits come beside the lower four of both of a pair, which are neighbours; the zero, 32, is in the constant that goes.
// CHECK-LABEL: greta_tile.func @high
// CHECK: %[[N:.*]] = arith.andi %{{.*}}, %c983055_i32
// CHECK: %[[P:.*]] = arith.ori %[[N]], %c1677747200_i32
// CHECK: %[[S:.*]] = arith.shli %{{.*}}, %c4_i32
// CHECK: %[[H:.*]] = arith.andi %[[S]], %c3145776_i32
// CHECK: arith.ori %[[P]], %[[H]]
// CHECK: arith.constant 1679844384 : i32
// CHECK: arith.subf {{.*}} : vector<2xf16>
// CHECK-COUNT-3: arith.subf {{.*}} : vector<2xf16>
// CHECK-NOT: llvm.call_intrinsic
greta_tile.func @high(%q: !greta_tile.ptr<i32>, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 32 : i32
  %w = greta_tile.ptr_load %q[%c0] align 4 : !greta_tile.ptr<i32> -> i32
  %h = greta_tile.ptr_load %q[%c1] align 4 : !greta_tile.ptr<i32> -> i32
  %t = greta_tile.ptr_load %s[%c0] align 2 : !greta_tile.ptr<f16> -> f16
  %m = greta_tile.unpack "q6_k" %w high %h scale %t zero %zero : f16, i32 -> vector<8xf16>
  greta_tile.ptr_store %m, %y[%c0] align 16 : vector<8xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// Bytes get their exponent by a permutation, or by `and` and `or`. Bytes in two's complement are taken for natural numbers.
// CHECK-LABEL: greta_tile.func @bytes
// CHECK: %[[N:.*]] = arith.xori %{{.*}}, %c-2139062144_i32
// AMD: llvm.call_intrinsic "llvm.amdgcn.perm"(%c1684300900_i32, %[[N]], %c67175424_i32)
// AMD: llvm.call_intrinsic "llvm.amdgcn.perm"(%c1684300900_i32, %[[N]], %c67306498_i32)
// VULKAN: %[[E:.*]] = arith.andi %[[N]], %c16711935_i32
// VULKAN: arith.ori %[[E]], %c1677747200_i32
// VULKAN: arith.shrui %[[N]], %c8_i32
// CHECK-NOT: greta_tile.unpack
greta_tile.func @bytes(%q: !greta_tile.ptr<i32>, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant 128 : i32
  %w = greta_tile.ptr_load %q[%c0] align 4 : !greta_tile.ptr<i32> -> i32
  %t = greta_tile.ptr_load %s[%c0] align 2 : !greta_tile.ptr<f16> -> f16
  %m = greta_tile.unpack "q8_0" %w scale %t zero %zero : f16, i32 -> vector<4xf16>
  greta_tile.ptr_store %m, %y[%c0] align 8 : vector<4xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// Codes: permutations look up the upper bytes of four, whose sign is a bit of the number and whose lower bytes are zero; else those of floats come
// to their places, 2^14 too small, as pairs of e and e + 4.
// CHECK-LABEL: greta_tile.func @codes
// AMD: %[[F:.*]] = llvm.call_intrinsic "llvm.amdgcn.perm"(%{{.*}}, %{{.*}}, %c83952640_i32)
// AMD: %[[T:.*]] = llvm.call_intrinsic "llvm.amdgcn.perm"(%c1178878528_i32, %c1044133888_i32, %{{.*}})
// AMD: %[[G:.*]] = arith.shli %{{.*}}, %c4_i32
// AMD: %[[C:.*]] = arith.ori %[[T]], %[[G]]
// AMD: llvm.call_intrinsic "llvm.amdgcn.perm"(%[[C]], %[[C]], %c84673548_i32)
// VULKAN-NOT: llvm.call_intrinsic
// VULKAN-NOT: arith.select
// VULKAN: %[[FACTOR:.*]] = arith.constant dense<1.638400e+04> : vector<2xf16>
// VULKAN: %[[M:.*]] = arith.andi %{{.*}}, %c234884608_i32
// VULKAN: %[[SIGN:.*]] = arith.andi %{{.*}}, %c-2147450880_i32
// VULKAN: %[[WORD:.*]] = arith.ori %[[M]], %[[SIGN]]
// VULKAN: %[[PAIR:.*]] = vector.bitcast
// VULKAN: arith.mulf %[[PAIR]], %[[FACTOR]]
// VULKAN-COUNT-3: arith.ori
// CHECK-NOT: greta_tile.unpack
greta_tile.func @codes(%q: !greta_tile.ptr<i32>, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %w = greta_tile.ptr_load %q[%c0] align 4 : !greta_tile.ptr<i32> -> i32
  %t = greta_tile.ptr_load %s[%c0] align 2 : !greta_tile.ptr<f16> -> f16
  %m = greta_tile.unpack "mxfp4" %w scale %t zero %c0 : f16, i32 -> vector<8xf16>
  greta_tile.ptr_store %m, %y[%c0] align 16 : vector<8xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// IQ4_NL's numbers: AMD looks up both bytes; else a polynomial in w - 7 is rounded to the number in f16 of 1024 to 2047, which the last subtraction
// takes away. It is not contracted.
// CHECK-LABEL: greta_tile.func @curve
// AMD: llvm.call_intrinsic "llvm.amdgcn.perm"
// AMD-NOT: math.fma
// VULKAN-NOT: arith.select
// VULKAN: %[[W:.*]] = arith.ori %{{.*}}, %c1677747200_i32
// VULKAN: %[[P:.*]] = vector.bitcast
// VULKAN: %[[X:.*]] = arith.subf %[[P]], %{{.*}} fastmath<contract> : vector<2xf16>
// VULKAN-COUNT-3: math.fma %{{.*}}, %[[X]], %{{.*}} : vector<2xf16>
// VULKAN: %[[SUM:.*]] = math.fma %{{.*}}, %[[X]], %{{.*}} : vector<2xf16>
// VULKAN: %[[N:.*]] = arith.subf %[[SUM]], %{{.*}} : vector<2xf16>
// VULKAN: arith.mulf %[[N]], %{{.*}} fastmath<contract>
// CHECK-NOT: greta_tile.unpack
greta_tile.func @curve(%q: !greta_tile.ptr<i32>, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %w = greta_tile.ptr_load %q[%c0] align 4 : !greta_tile.ptr<i32> -> i32
  %t = greta_tile.ptr_load %s[%c0] align 2 : !greta_tile.ptr<f16> -> f16
  %m = greta_tile.unpack "iq4_nl" %w scale %t zero %c0 : f16, i32 -> vector<8xf16>
  greta_tile.ptr_store %m, %y[%c0] align 16 : vector<8xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// Floats of 8 bits come into the upper bits of f16, and are multiplied by 256 times the scale in f32.
// CHECK-LABEL: greta_tile.func @floats
// CHECK: %[[S:.*]] = arith.mulf %{{.*}}, %cst{{.*}} : f32
// CHECK: %[[SCALES:.*]] = vector.broadcast %[[S]] : f32 to vector<2xf32>
// AMD: llvm.call_intrinsic "llvm.amdgcn.perm"(%{{.*}}, %{{.*}}, %c17563660_i32)
// VULKAN: arith.shli %{{.*}}, %c8_i32
// CHECK: arith.andi %{{.*}}, %c1065369472_i32
// CHECK: arith.andi %{{.*}}, %c-2147450880_i32
// CHECK: %[[X:.*]] = arith.extf %{{.*}} : vector<2xf16> to vector<2xf32>
// CHECK: %[[Y:.*]] = arith.mulf %[[X]], %[[SCALES]]
// CHECK: arith.truncf %[[Y]] : vector<2xf32> to vector<2xf16>
// CHECK-NOT: greta_tile.unpack
greta_tile.func @floats(%q: !greta_tile.ptr<i32>, %s: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %w = greta_tile.ptr_load %q[%c0] align 4 : !greta_tile.ptr<i32> -> i32
  %t = greta_tile.ptr_load %s[%c0] align 4 : !greta_tile.ptr<f32> -> f32
  %m = greta_tile.unpack "e4m3" %w scale %t zero %c0 : f32, i32 -> vector<4xf16>
  greta_tile.ptr_store %m, %y[%c0] align 8 : vector<4xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// Numbers of f16 become weights of bf16 in f32. Without a minimum the addend is the scale's zero, which is NaN where the scale is none. There -1 is added to the bits,
// else half of a place, less one where the last one is even; a chip may have an instruction.
// CHECK-LABEL: greta_tile.func @bfloats
// CHECK: %[[S:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[ADDEND:.*]] = arith.mulf %[[S]], %{{.*}} : f32
// BITS: %[[ISNAN:.*]] = arith.cmpf uno, %[[S]], %[[ADDEND]] : f32
// BITS: %[[HALF:.*]] = arith.select %[[ISNAN]], %c-1_i32, %c32767_i32 : i32
// CHECK: %[[N:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[LOW:.*]] = math.fma %[[N]], %[[S]], %[[ADDEND]] : f32
// BITS: %[[WORD:.*]] = arith.bitcast %[[LOW]] : f32 to i32
// BITS: %[[SHIFTED:.*]] = arith.shrui %[[WORD]], %c16_i32
// BITS: %[[ODD:.*]] = arith.andi %[[SHIFTED]], %c1_i32
// BITS: %[[MORE:.*]] = arith.addi %[[WORD]], %[[ODD]]
// BITS: %[[ROUNDED:.*]] = arith.addi %[[MORE]], %[[HALF]]
// PERMUTES: llvm.call_intrinsic "llvm.amdgcn.perm"(%{{.*}}, %[[ROUNDED]], %c117834498_i32)
// VULKAN: %[[HIGH:.*]] = arith.andi %{{.*}}, %c-65536_i32
// VULKAN: %[[MOVED:.*]] = arith.shrui %[[ROUNDED]], %c16_i32
// VULKAN: arith.ori %[[HIGH]], %[[MOVED]]
// CONVERTS: %[[OTHER:.*]] = math.fma
// CONVERTS: %[[PAIR:.*]] = vector.from_elements %[[LOW]], %[[OTHER]] : vector<2xf32>
// CONVERTS: arith.truncf %[[PAIR]] : vector<2xf32> to vector<2xbf16>
// CHECK: vector.from_elements {{.*}} : vector<4xbf16>
greta_tile.func @bfloats(%q: !greta_tile.ptr<i32>, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<bf16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %z = arith.constant 128 : i32
  %w = greta_tile.ptr_load %q[%c0] align 4 : !greta_tile.ptr<i32> -> i32
  %t = greta_tile.ptr_load %s[%c0] align 2 : !greta_tile.ptr<f16> -> f16
  %m = greta_tile.unpack "q8_0" %w scale %t zero %z : f16, i32 -> vector<4xbf16>
  greta_tile.ptr_store %m, %y[%c0] align 8 : vector<4xbf16> -> !greta_tile.ptr<bf16>
  greta_tile.return
}

// CHECK-LABEL: greta_tile.func @bfloats_minimum
// CHECK: %[[T:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[M:.*]] = arith.extf %{{.*}} : f16 to f32
// BITS: arith.cmpf uno, %[[T]], %[[M]] : f32
// CHECK: math.fma %{{.*}}, %[[T]], %[[M]] : f32
// CHECK-NOT: arith.mulf
// CHECK: greta_tile.return
greta_tile.func @bfloats_minimum(%q: !greta_tile.ptr<i32>, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<bf16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %w = greta_tile.ptr_load %q[%c0] align 4 : !greta_tile.ptr<i32> -> i32
  %t = greta_tile.ptr_load %s[%c0] align 2 : !greta_tile.ptr<f16> -> f16
  %u = greta_tile.ptr_load %s[%c1] align 2 : !greta_tile.ptr<f16> -> f16
  %m = greta_tile.unpack "q4_1" %w scale %t zero %u : f16, f16 -> vector<8xbf16>
  greta_tile.ptr_store %m, %y[%c0] align 16 : vector<8xbf16> -> !greta_tile.ptr<bf16>
  greta_tile.return
}
