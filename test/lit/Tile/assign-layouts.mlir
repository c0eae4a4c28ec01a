// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-tile-assign-layouts))' | FileCheck %s

// One row over four waves of 64: eight halves (16 bytes) in a lane's registers, twice along the row; the sum is in every lane.
// CHECK-LABEL: @row
// CHECK: greta_tile.load {{.*}} -> tensor<1x4096xf16, #greta_tile.layout<{reg = {{\[\[}}0, 1], [0, 2], [0, 4]], lane = {{\[\[}}0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [0, 256]], wave = {{\[\[}}0, 512], [0, 1024]], rep = [1, 2]}>>
// CHECK: greta_tile.reduce {arith.addf} {{.*}} -> tensor<1xf32, #greta_tile.layout<{reg = [], lane = {{\[\[}}0], [0], [0], [0], [0], [0]], wave = {{\[\[}}0], [0]], rep = [1]}>>
greta_tile.func @row(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [4096, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<1x4096xf16>
  %f = arith.extf %a : tensor<1x4096xf16> to tensor<1x4096xf32>
  %r_line = greta_tile.reduce {arith.addf} %f axis 1 : tensor<1x4096xf32> -> tensor<1xf32>
  %r = greta_tile.reshape %r_line : tensor<1xf32> -> tensor<1x1xf32>
  greta_tile.store %r, %y[%z, %z] strides [1, 1] bounds [] : tensor<1x1xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Several short rows: lanes finish a row, then go to the next; waves take rows, so that the reduction stays within a wave.
// CHECK-LABEL: @rows
// CHECK: -> tensor<8x64xf32, #greta_tile.layout<{reg = {{\[\[}}0, 1], [0, 2]], lane = {{\[\[}}0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], wave = {{\[\[}}2, 0], [4, 0]], rep = [1, 1]}>>
greta_tile.func @rows(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<8x64xf32>
  %r_line = greta_tile.reduce {arith.addf} %a axis 1 : tensor<8x64xf32> -> tensor<8xf32>
  %r = greta_tile.reshape %r_line : tensor<8xf32> -> tensor<8x1xf32>
  greta_tile.store %r, %y[%z, %z] strides [1, 1] bounds [] : tensor<8x1xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A dimension whose two parts are taken apart lies in registers, and nothing moves.
// CHECK-LABEL: @halves
// CHECK: -> tensor<4x2x64xf16, #greta_tile.layout<{reg = {{\[\[}}0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 1, 0]], lane = {{\[\[}}0, 0, 8], [0, 0, 16], [0, 0, 32], [1, 0, 0], [2, 0, 0]], wave = [], rep = [1, 1, 1]}>>
greta_tile.func @halves(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z, %z] strides [128, 64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<4x2x64xf16>
  %p = greta_tile.trans %a [0, 2, 1] : tensor<4x2x64xf16> -> tensor<4x64x2xf16>
  %f, %s = greta_tile.split %p : tensor<4x64x2xf16> -> tensor<4x64xf16>
  %j = greta_tile.join %s, %f : tensor<4x64xf16> -> tensor<4x64x2xf16>
  %c = greta_tile.trans %j [0, 2, 1] : tensor<4x64x2xf16> -> tensor<4x2x64xf16>
  greta_tile.store %c, %x[%z, %z, %z] strides [128, 64, 1] bounds [] : tensor<4x2x64xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// Only a dot's operands are converted.
// CHECK-LABEL: @dot
// CHECK-COUNT-2: greta_tile.convert_layout
// CHECK-NOT: greta_tile.convert_layout
greta_tile.func @dot(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %acc = arith.constant dense<0.0> : tensor<32x32xf32>
  %a = greta_tile.load %x[%z, %z] strides [32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x16xf16>
  %b = greta_tile.load %x[%z, %z] strides [32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x32xf16>
  %d = greta_tile.dot %a, %b, %acc : tensor<32x16xf16>, tensor<16x32xf16> -> tensor<32x32xf32>
  greta_tile.store %d, %y[%z, %z] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// The halves that a dot's result is split into are brought into one lane.
// CHECK-LABEL: @split
// CHECK: greta_tile.reshape
// CHECK: greta_tile.convert_layout
// CHECK: greta_tile.split
greta_tile.func @split(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %acc = arith.constant dense<0.0> : tensor<16x64xf32>
  %a = greta_tile.load %x[%z, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x16xf16>
  %b = greta_tile.load %x[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x64xf16>
  %d = greta_tile.dot %a, %b, %acc : tensor<16x16xf16>, tensor<16x64xf16> -> tensor<16x64xf32>
  %s = greta_tile.reshape %d : tensor<16x64xf32> -> tensor<16x1x2x32xf32>
  %p = greta_tile.trans %s [0, 1, 3, 2] : tensor<16x1x2x32xf32> -> tensor<16x1x32x2xf32>
  %h, %i = greta_tile.split %p : tensor<16x1x32x2xf32> -> tensor<16x1x32xf32>
  %j = greta_tile.join %i, %h : tensor<16x1x32xf32> -> tensor<16x1x32x2xf32>
  %f = greta_tile.trans %j [0, 1, 3, 2] : tensor<16x1x32x2xf32> -> tensor<16x1x2x32xf32>
  greta_tile.store %f, %y[%z, %z, %z, %z] strides [64, 64, 32, 1] bounds [] : tensor<16x1x2x32xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Two blocks one after the other are repetitions of one; what is gathered may lie as it likes, its indices as the result.
// CHECK-LABEL: @after
// CHECK-NOT: greta_tile.cat
// CHECK: greta_tile.join
// CHECK: greta_tile.trans
// CHECK: greta_tile.reshape {{.*}} -> tensor<128xf32, #greta_tile.layout<{reg = [], lane = {{\[\[}}1], [2], [4], [8], [16], [32]], wave = [], rep = [2]}>>
// CHECK-NOT: convert_layout
// CHECK: greta_tile.gather
// CHECK-NOT: convert_layout
greta_tile.func @after(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: !greta_tile.ptr<i32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<64xf32>
  %c = greta_tile.cat %a, %a axis 0 : tensor<64xf32> -> tensor<128xf32>
  %i = greta_tile.load %n[%z] strides [1] bounds [] : !greta_tile.ptr<i32> -> tensor<64xi32>
  %g = greta_tile.gather %c[%i] axis 0 : tensor<128xf32>[tensor<64xi32>] -> tensor<64xf32>
  greta_tile.store %g, %y[%z] strides [1] bounds [] : tensor<64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Weights that share a scale may be in several repetitions, and need be no power of two.
// CHECK-LABEL: @scales
// CHECK: greta_tile.load {{.*}} -> tensor<2x1xf16, #greta_tile.layout<{reg = {{\[\[}}1, 0]],
// CHECK: greta_tile.broadcast {{.*}} -> tensor<2x48x1x1xf16
// CHECK: greta_tile.reshape {{.*}} -> tensor<96x1xf16
greta_tile.func @scales(%q: !greta_tile.ptr<i32>, %s: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %t = greta_tile.load %s[%z, %z] strides [1, 2] bounds [] : !greta_tile.ptr<f16> -> tensor<2x1xf16>
  %w = greta_tile.load %q[%z, %z] strides [1, 512] bounds [] : !greta_tile.ptr<i32> -> tensor<512x1xi32>
  %zero = arith.constant dense<8> : tensor<1x1xi32>
  %a = greta_tile.dequant %w, %t, %zero : tensor<512x1xi32>, tensor<2x1xf16>, tensor<1x1xi32> -> tensor<4096x1xf16>
  greta_tile.store %a, %y[%z, %z] strides [1, 4096] bounds [] : tensor<4096x1xf16> -> !greta_tile.ptr<f16>
  %u = greta_tile.load %s[%z, %z] strides [1, 2] bounds [] : !greta_tile.ptr<f16> -> tensor<2x1xf16>
  %v = greta_tile.load %q[%z, %z] strides [1, 12] bounds [] : !greta_tile.ptr<i32> -> tensor<12x1xi32>
  %b = greta_tile.dequant %v, %u, %zero : tensor<12x1xi32>, tensor<2x1xf16>, tensor<1x1xi32> -> tensor<96x1xf16>
  greta_tile.store %b, %y[%z, %z] strides [1, 96] bounds [] : tensor<96x1xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// Parts that the tile does not divide get a layout of their own, as if they were loaded.
// CHECK-LABEL: @uneven
// CHECK: greta_tile.reshape {{.*}} -> tensor<4x4x12xf16, #greta_tile.layout<{reg = {{\[\[}}0, 0, 1], [0, 0, 2]], lane = {{\[\[}}0, 1, 0], [0, 2, 0], [1, 0, 0], [2, 0, 0], [0, 0, 0], [0, 0, 0]], wave = [], rep = [1, 1, 3]}>>
greta_tile.func @uneven(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [48, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<4x48xf16>
  %s = greta_tile.reshape %a : tensor<4x48xf16> -> tensor<4x4x12xf16>
  greta_tile.store %s, %y[%z, %z, %z] strides [48, 12, 1] bounds [] : tensor<4x4x12xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

// A contract sums what is in registers; lanes and then waves go along the rest of K before they go to other columns.
// CHECK-LABEL: @contract
// CHECK: greta_tile.load {{.*}} -> tensor<1x4x64x8xf16, #greta_tile.layout<{reg = {{\[\[}}0, 0, 0, 1], [0, 0, 0, 2], [0, 0, 0, 4]], lane = {{\[\[}}0, 0, 1, 0], [0, 0, 2, 0], [0, 0, 4, 0], [0, 0, 8, 0], [0, 0, 16, 0]], wave = {{\[\[}}0, 0, 32, 0], [0, 1, 0, 0]], rep = [1, 2, 1, 1]}>>
// CHECK-NOT: convert_layout
// CHECK: greta_tile.contract
greta_tile.func @contract(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %w: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %acc = arith.constant dense<0.0> : tensor<2x4x64x1xf32>
  %b = greta_tile.load %w[%z, %z, %z, %z] strides [0, 512, 8, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<1x4x64x8xf16>
  %a = greta_tile.load %x[%z, %z, %z, %z] strides [512, 0, 8, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<2x1x64x8xf16>
  %c = greta_tile.contract %a, %b, %acc dims [3] : tensor<2x1x64x8xf16>, tensor<1x4x64x8xf16> -> tensor<2x4x64x1xf32>
  %r_line = greta_tile.reduce {arith.addf} %c axis 2 : tensor<2x4x64x1xf32> -> tensor<2x4x1xf32>
  %r = greta_tile.reshape %r_line : tensor<2x4x1xf32> -> tensor<2x4x1x1xf32>
  greta_tile.store %r, %y[%z, %z, %z, %z] strides [4, 1, 0, 0] bounds [] : tensor<2x4x1x1xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A row and a column that are loaded in one dimension: the block that they make decides, and nothing moves.
// CHECK-LABEL: @outer
// CHECK: greta_tile.load {{.*}} -> tensor<32xf32, #greta_tile.layout<{reg = [], lane = {{\[\[}}0], [0], [0], [0], [1]], wave = {{\[\[}}2]], rep = [8]}>>
// CHECK: greta_tile.load {{.*}} -> tensor<64xf32, #greta_tile.layout<{reg = {{\[\[}}1], [2]], lane = {{\[\[}}4], [8], [16], [32], [0]], wave = {{\[\[}}0]], rep = [1]}>>
// CHECK-NOT: convert_layout
// CHECK: greta_tile.store {{.*}} : tensor<32x64xf32, #greta_tile.layout<{reg = {{\[\[}}0, 1], [0, 2]], lane = {{\[\[}}0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], wave = {{\[\[}}2, 0]], rep = [8, 1]}>>
greta_tile.func @outer(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<32xf32>
  %b = greta_tile.load %y[%z] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<64xf32>
  %a1 = greta_tile.reshape %a : tensor<32xf32> -> tensor<32x1xf32>
  %b1 = greta_tile.reshape %b : tensor<64xf32> -> tensor<1x64xf32>
  %a2 = greta_tile.broadcast %a1 : tensor<32x1xf32> -> tensor<32x64xf32>
  %b2 = greta_tile.broadcast %b1 : tensor<1x64xf32> -> tensor<32x64xf32>
  %c = arith.mulf %a2, %b2 : tensor<32x64xf32>
  greta_tile.store %c, %o[%z, %z] strides [64, 1] bounds [] : tensor<32x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A line's sum goes on in lines of another length.
// CHECK-LABEL: @extents
// CHECK-NOT: convert_layout
greta_tile.func @extents(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %n: i32) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %a = greta_tile.load %x[%z, %z] strides [4, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<1x4xf32>
  %s_line = greta_tile.reduce {arith.addf} %a axis 1 : tensor<1x4xf32> -> tensor<1xf32>
  %s = greta_tile.reshape %s_line : tensor<1xf32> -> tensor<1x1xf32>
  %b = greta_tile.broadcast %s : tensor<1x1xf32> -> tensor<1x12xf32>
  greta_tile.store %b, %x[%z, %z] strides [12, 1] bounds [] : tensor<1x12xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// Two dots with a softmax between: each accumulator has its own layout, rows in the same lanes; only the operands are converted.
// CHECK-LABEL: @chain
// CHECK-COUNT-2: greta_tile.convert_layout
// CHECK-NEXT: greta_tile.dot
// CHECK-NOT: greta_tile.convert_layout
// CHECK: arith.truncf
// CHECK-COUNT-2: greta_tile.convert_layout
// CHECK-NEXT: greta_tile.dot
// CHECK-NOT: greta_tile.convert_layout
#mfma = #greta_tile.matrix<"mfma.f32.16x16x16f16",
  a = <{reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]], wave = [], rep = [1, 1]}>,
  b = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>,
  acc = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>>
greta_tile.func @chain(%q: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %k: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %v: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %acc = arith.constant dense<0.0> : tensor<64x32xf32>
  %acc2 = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = greta_tile.load %q[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
  %b = greta_tile.load %k[%z, %z] strides [1, 64] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
  %c = greta_tile.load %v[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
  %s = greta_tile.dot %a, %b, %acc {matrix = #mfma} : tensor<64x64xf16>, tensor<64x32xf16> -> tensor<64x32xf32>
  %m_line = greta_tile.reduce {arith.maxnumf {fastmath = #arith.fastmath<nnan>}} %s axis 1 : tensor<64x32xf32> -> tensor<64xf32>
  %m = greta_tile.reshape %m_line : tensor<64xf32> -> tensor<64x1xf32>
  %mb = greta_tile.broadcast %m : tensor<64x1xf32> -> tensor<64x32xf32>
  %d = arith.subf %s, %mb : tensor<64x32xf32>
  %e = math.exp2 %d : tensor<64x32xf32>
  %l_line = greta_tile.reduce {arith.addf} %e axis 1 : tensor<64x32xf32> -> tensor<64xf32>
  %l = greta_tile.reshape %l_line : tensor<64xf32> -> tensor<64x1xf32>
  %p = arith.truncf %e : tensor<64x32xf32> to tensor<64x32xf16>
  %r = greta_tile.dot %p, %c, %acc2 {matrix = #mfma} : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
  %lb = greta_tile.broadcast %l : tensor<64x1xf32> -> tensor<64x64xf32>
  %f = arith.divf %r, %lb : tensor<64x64xf32>
  greta_tile.store %f, %o[%z, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// The same with operands swapped, so that a lane has neighbours along the columns of the first accumulator: what goes into the second dot
// stays in its registers, K is numbered in both operands as the first dot left it, and each wave has rows of its own.
// CHECK-LABEL: @chain_in_registers
// CHECK-COUNT-2: greta_tile.convert_layout
// CHECK-NEXT: greta_tile.dot
// CHECK-NOT: greta_tile.convert_layout
// CHECK: %[[P:.*]] = arith.truncf
// CHECK-NEXT: %[[V:.*]] = greta_tile.convert_layout
// CHECK-NEXT: greta_tile.dot %[[P]], %[[V]]
// CHECK-SAME: wave = {{\[\[}}16, 0], [32, 0]], rep = [1, 2]
// CHECK-NOT: greta_tile.convert_layout
#swapped = #greta_tile.matrix<"mfma.f32.16x16x16f16" swapped = true,
  a = <{reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]], wave = [], rep = [1, 1]}>,
  b = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>,
  acc = <{reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]], wave = [], rep = [1, 1]}>>
greta_tile.func @chain_in_registers(%q: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %k: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %v: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %o: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %acc = arith.constant dense<0.0> : tensor<64x32xf32>
  %acc2 = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = greta_tile.load %q[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
  %b = greta_tile.load %k[%z, %z] strides [1, 64] bounds [] : !greta_tile.ptr<f16> -> tensor<64x32xf16>
  %c = greta_tile.load %v[%z, %z] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x64xf16>
  %s = greta_tile.dot %a, %b, %acc {matrix = #swapped} : tensor<64x64xf16>, tensor<64x32xf16> -> tensor<64x32xf32>
  %m_line = greta_tile.reduce {arith.maxnumf {fastmath = #arith.fastmath<nnan>}} %s axis 1 : tensor<64x32xf32> -> tensor<64xf32>
  %m = greta_tile.reshape %m_line : tensor<64xf32> -> tensor<64x1xf32>
  %mb = greta_tile.broadcast %m : tensor<64x1xf32> -> tensor<64x32xf32>
  %d = arith.subf %s, %mb : tensor<64x32xf32>
  %e = math.exp2 %d : tensor<64x32xf32>
  %l_line = greta_tile.reduce {arith.addf} %e axis 1 : tensor<64x32xf32> -> tensor<64xf32>
  %l = greta_tile.reshape %l_line : tensor<64xf32> -> tensor<64x1xf32>
  %p = arith.truncf %e : tensor<64x32xf32> to tensor<64x32xf16>
  %r = greta_tile.dot %p, %c, %acc2 {matrix = #swapped} : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
  %lb = greta_tile.broadcast %l : tensor<64x1xf32> -> tensor<64x64xf32>
  %f = arith.divf %r, %lb : tensor<64x64xf32>
  greta_tile.store %f, %o[%z, %z] strides [64, 1] bounds [] : tensor<64x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A block that a loop does not change is laid out for its dots once, before it; if nothing has decided otherwise it is loaded so.
// CHECK-LABEL: @invariant
// CHECK: %[[A:.*]] = greta_tile.load %arg0{{.*}} -> tensor<16x16xf16, #greta_tile.layout<{reg = {{\[\[}}0, 1], [0, 2]], lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]]
// CHECK: %[[S:.*]] = arith.truncf
// CHECK: %[[B:.*]] = greta_tile.convert_layout %[[S]]
// CHECK: scf.for
// CHECK-NOT: convert_layout
// CHECK: greta_tile.dot %[[A]], %[[B]]
greta_tile.func @invariant(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %end = arith.constant 4 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %a = greta_tile.load %x[%z, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x16xf16>
  %c = greta_tile.load %x[%z, %z] strides [16, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<16x16xf16>
  %s = greta_tile.dot %c, %c, %zero {matrix = #swapped} : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
  %b = arith.truncf %s : tensor<16x16xf32> to tensor<16x16xf16>
  %d = scf.for %i = %z to %end step %one iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %next = greta_tile.dot %a, %b, %acc {matrix = #swapped} : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  greta_tile.store %d, %y[%z, %z] strides [16, 1] bounds [] : tensor<16x16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// One arange indexes rows and columns; each use has its own.
// CHECK-LABEL: @shared_range
// CHECK-COUNT-2: greta_tile.iota
// CHECK-NOT: convert_layout
greta_tile.func @shared_range(%o: !greta_tile.ptr<i32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %z = arith.constant 0 : i32
  %r = greta_tile.iota 0 : tensor<32xi32>
  %a = greta_tile.reshape %r : tensor<32xi32> -> tensor<32x1xi32>
  %b = greta_tile.reshape %r : tensor<32xi32> -> tensor<1x32xi32>
  %a2 = greta_tile.broadcast %a : tensor<32x1xi32> -> tensor<32x32xi32>
  %b2 = greta_tile.broadcast %b : tensor<1x32xi32> -> tensor<32x32xi32>
  %c = arith.muli %a2, %b2 : tensor<32x32xi32>
  greta_tile.store %c, %o[%z, %z] strides [32, 1] bounds [] : tensor<32x32xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}

// All places of a loop have one layout, though flattening gives %w another spelling of it (rep as registers) and %w meets the argument.
// CHECK-LABEL: @carried
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (tensor<8x1024xf32, [[LAYOUT:#greta_tile.layout<.*>]]>) : i32 {
// CHECK: scf.yield {{.*}} : tensor<8x1024xf32, [[LAYOUT]]>
greta_tile.func @carried(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %n: i32) attributes {wave_size = 32 : i32, waves = 4 : i32} {
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %i = greta_tile.load %x[%z, %z] strides [1024, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<8x1024xf32>
  %w = greta_tile.load %x[%z, %z] strides [1024, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<8x1024xf32>
  %r = scf.for %k = %z to %n step %one iter_args(%a = %i) -> tensor<8x1024xf32> : i32 {
    %b = arith.addf %a, %w : tensor<8x1024xf32>
    scf.yield %b : tensor<8x1024xf32>
  }
  %rr = greta_tile.reshape %r : tensor<8x1024xf32> -> tensor<8192xf32>
  %ww = greta_tile.reshape %w : tensor<8x1024xf32> -> tensor<8192xf32>
  %s = arith.addf %rr, %ww : tensor<8192xf32>
  greta_tile.store %s, %y[%z] strides [1] bounds [] : tensor<8192xf32> -> !greta_tile.ptr<f32>
  %rs = greta_tile.reduce {arith.addf} %i axis 1 : tensor<8x1024xf32> -> tensor<8xf32>
  greta_tile.store %rs, %y[%z] strides [1] bounds [] : tensor<8xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A contract's wishes are for its own dimensions, not for others of the same number: dimension 1 of %t is not summed.
// CHECK-LABEL: @other_dimensions
// CHECK: greta_tile.broadcast {{.*}} -> tensor<4x96xf32
greta_tile.func @other_dimensions(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %y: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %z = arith.constant 0 : i32
  %acc = arith.constant dense<0.0> : tensor<4x1x2xf32>
  %a = greta_tile.load %x[%z, %z, %z] strides [16, 2, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<4x8x2xf16>
  %c = greta_tile.contract %a, %a, %acc dims [1] : tensor<4x8x2xf16>, tensor<4x8x2xf16> -> tensor<4x1x2xf32>
  %r = greta_tile.reduce {arith.addf} %c axis 2 : tensor<4x1x2xf32> -> tensor<4x1xf32>
  %t = greta_tile.broadcast %r : tensor<4x1xf32> -> tensor<4x96xf32>
  greta_tile.store %t, %y[%z, %z] strides [96, 1] bounds [] : tensor<4x96xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A while loop carries blocks in two ways: what an iteration begins with, and what the condition passes on. Each has one layout, whose other shape needs no data to
// move; a transpose on the way back does.
// CHECK-LABEL: @while
// CHECK: scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (tensor<256xf32, #[[TURN:greta_tile.layout<{reg = \[\], lane = [^>]*>]]>, i32) -> (i32, tensor<4x64xf32, #[[PASSED:greta_tile.layout<{reg = \[\], lane = [^>]*>]]>)
// CHECK: scf.condition(%{{.*}}) %{{.*}}, %{{.*}} : i32, tensor<4x64xf32, #[[PASSED]]>
// CHECK: greta_tile.convert_layout %{{.*}} : tensor<4x64xf32, #[[PASSED]]>
// CHECK: scf.yield %{{.*}}, %{{.*}} : tensor<256xf32, #[[TURN]]>, i32
// CHECK: greta_tile.store %{{.*}} : tensor<4x64xf32, #[[PASSED]]>
greta_tile.func @while(%x: !greta_tile.ptr<f32>, %n: i32) attributes {wave_size = 32 : i32, waves = 2 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %limit = arith.constant 1.0 : f32
  %half = arith.constant dense<0.5> : tensor<256xf32>
  %v = greta_tile.load %x[%zero] strides [1] bounds [] : !greta_tile.ptr<f32> -> tensor<256xf32>
  %rows = greta_tile.reshape %v : tensor<256xf32> -> tensor<64x4xf32>
  %r:2 = scf.while (%a = %v, %i = %zero) : (tensor<256xf32>, i32) -> (i32, tensor<4x64xf32>) {
    %most = greta_tile.reduce {arith.maximumf} %a axis 0 : tensor<256xf32> -> f32
    %big = arith.cmpf ogt, %most, %limit : f32
    %b = greta_tile.reshape %a : tensor<256xf32> -> tensor<4x64xf32>
    scf.condition(%big) %i, %b : i32, tensor<4x64xf32>
  } do {
  ^bb0(%i: i32, %b: tensor<4x64xf32>):
    %t = greta_tile.trans %b [1, 0] : tensor<4x64xf32> -> tensor<64x4xf32>
    %c = greta_tile.reshape %t : tensor<64x4xf32> -> tensor<256xf32>
    %d = arith.mulf %c, %half : tensor<256xf32>
    %next = arith.addi %i, %one : i32
    scf.yield %d, %next : tensor<256xf32>, i32
  }
  greta_tile.store %r#1, %x[%zero, %zero] strides [64, 1] bounds [] : tensor<4x64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}
