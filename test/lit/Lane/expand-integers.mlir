// Wide integers become bf16 by an f32 that holds them: bits below its last place are one bit in that place. Integers that f32 always holds are converted as they are.
// RUN: greta-opt %s --pass-pipeline='builtin.module(greta_tile.func(greta-expand{target=gfx942}))' | FileCheck %s

// CHECK-LABEL: @wide
// CHECK: %[[F:.*]] = arith.sitofp %[[X:.*]] : i64 to f32
// CHECK: %[[BITS:.*]] = arith.bitcast %[[F]] : f32 to i32
// CHECK: arith.maxsi
// CHECK: %[[PLACE:.*]] = arith.extui {{.*}} : i32 to i64
// CHECK: %[[UNIT:.*]] = arith.shli {{.*}}, %[[PLACE]] : i64
// CHECK: %[[BELOW:.*]] = arith.andi %[[X]], {{.*}} : i64
// CHECK: %[[ODD:.*]] = arith.select {{.*}}, %[[UNIT]]
// CHECK: %[[KEPT:.*]] = arith.xori %[[X]], %[[BELOW]] : i64
// CHECK: %[[HELD:.*]] = arith.ori %[[KEPT]], %[[ODD]] : i64
// CHECK: %[[G:.*]] = arith.sitofp %[[HELD]] : i64 to f32
// CHECK: arith.truncf %[[G]] : f32 to bf16
greta_tile.func @wide(%x: !greta_tile.ptr<i64>, %y: !greta_tile.ptr<bf16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %v = greta_tile.ptr_load %x[%c0] align 8 : <i64> -> i64
  %w = arith.sitofp %v : i64 to bf16
  greta_tile.ptr_store %w, %y[%c0] align 2 : bf16 -> <bf16>
  greta_tile.return
}

// CHECK-LABEL: @narrow
// CHECK-NOT: arith.maxsi
// CHECK: arith.uitofp {{.*}} : i32 to f32
// CHECK-NOT: arith.maxsi
// CHECK: arith.sitofp {{.*}} : i16 to bf16
greta_tile.func @narrow(%x: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i16>, %y: !greta_tile.ptr<bf16>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c15 = arith.constant 15 : i32
  %v = greta_tile.ptr_load %x[%c0] align 4 : <i32> -> i32
  %a = arith.andi %v, %c15 : i32
  %w = arith.uitofp %a : i32 to bf16
  greta_tile.ptr_store %w, %y[%c0] align 2 : bf16 -> <bf16>
  %h = greta_tile.ptr_load %z[%c0] align 2 : <i16> -> i16
  %i = arith.sitofp %h : i16 to bf16
  greta_tile.ptr_store %i, %y[%c1] align 2 : bf16 -> <bf16>
  greta_tile.return
}
