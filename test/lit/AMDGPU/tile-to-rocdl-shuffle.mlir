// RUN: greta-opt %s --split-input-file --greta-tile-to-rocdl=chip=gfx942 | FileCheck %s --check-prefixes=CHECK,GFX9,GFX942
// RUN: greta-opt %s --split-input-file --greta-tile-to-rocdl=chip=gfx950 | FileCheck %s --check-prefixes=CHECK,GFX9,GFX950
// RUN: sed -e 's/wave_size = 64/wave_size = 32/' -e '/^.. only wave64/,/^.. end wave64/d' %s > %t.mlir
// RUN: greta-opt %t.mlir --split-input-file --greta-tile-to-rocdl=chip=gfx1100 | FileCheck %s --check-prefixes=CHECK,RDNA
// RUN: greta-opt %t.mlir --split-input-file --greta-tile-to-rocdl=chip=gfx1201 | FileCheck %s --check-prefixes=CHECK,RDNA

// Within four lanes: quad_perm, [1,0,3,2] = 0xb1 and [3,2,1,0] = 0x1b.
// CHECK-LABEL: llvm.func protected @quad
// CHECK: %[[BITS:.*]] = llvm.bitcast %{{.*}} : f32 to i32
// CHECK: %[[MOVED:.*]] = rocdl.update.dpp %{{.*}}, %[[BITS]] with 177, 15, 15, true : i32
// CHECK: llvm.bitcast %[[MOVED]] : i32 to f32
// CHECK: rocdl.update.dpp %{{.*}} with 27, 15, 15, true : i32
greta_tile.func @quad(%x: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<f32> -> f32
  %a = greta_tile.shuffle_xor %v, 1 : f32
  %b = greta_tile.shuffle_xor %a, 3 : f32
  greta_tile.ptr_store %b, %x[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// -----

// Within sixteen lanes. row_xmask (0x160 + mask) on RDNA; on gfx9 half_mirror
// (0x141) is ^7, ror:8 (0x128) ^8, mirror (0x140) ^15; quad_perm for the rest.
// CHECK-LABEL: llvm.func protected @row(
// GFX9: dpp {{.*}} with 321,
// GFX9-NEXT: poison
// GFX9-NEXT: dpp {{.*}} with 27,
// RDNA: dpp {{.*}} with 356,
// GFX9: dpp {{.*}} with 321,
// GFX9-NOT: dpp
// RDNA: dpp {{.*}} with 359,
// GFX9: dpp {{.*}} with 296,
// RDNA: dpp {{.*}} with 360,
// GFX9: dpp {{.*}} with 320,
// GFX9-NEXT: poison
// GFX9-NEXT: dpp {{.*}} with 78,
// RDNA: dpp {{.*}} with 365,
// CHECK-NOT: {{dpp|swizzle|bpermute}}
// CHECK: llvm.store
greta_tile.func @row(%x: !greta_tile.ptr<i32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<i32> -> i32
  %a = greta_tile.shuffle_xor %v, 4 : i32
  %b = greta_tile.shuffle_xor %a, 7 : i32
  %c = greta_tile.shuffle_xor %b, 8 : i32
  %d = greta_tile.shuffle_xor %c, 13 : i32
  greta_tile.ptr_store %d, %x[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}

// -----

// Between rows. permlanex16 selects lane 15 - i of the other row for mask 31:
// 0x89abcdef, 0x01234567.
// CHECK-LABEL: llvm.func protected @rows(
// GFX9: %[[PATTERN:.*]] = llvm.mlir.constant(16415 : i32)
// GFX9: rocdl.ds_swizzle %{{.*}}, %[[PATTERN]]
// GFX9: %[[PATTERN:.*]] = llvm.mlir.constant(31775 : i32)
// GFX9: rocdl.ds_swizzle %{{.*}}, %[[PATTERN]]
// RDNA-DAG: %[[LOW:.*]] = llvm.mlir.constant(1985229328 : i32)
// RDNA-DAG: %[[HIGH:.*]] = llvm.mlir.constant(-19088744 : i32)
// RDNA: rocdl.permlanex16 %{{.*}}, %{{.*}}, %[[LOW]], %[[HIGH]], true, false
// RDNA-DAG: %[[LOW:.*]] = llvm.mlir.constant(-1985229329 : i32)
// RDNA-DAG: %[[HIGH:.*]] = llvm.mlir.constant(19088743 : i32)
// RDNA: rocdl.permlanex16 %{{.*}}, %{{.*}}, %[[LOW]], %[[HIGH]], true, false
greta_tile.func @rows(%x: !greta_tile.ptr<i32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<i32> -> i32
  %a = greta_tile.shuffle_xor %v, 16 : i32
  %b = greta_tile.shuffle_xor %a, 31 : i32
  greta_tile.ptr_store %b, %x[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}

// -----

// Narrow and wide types: one word for 16 bits, two for 64.
// CHECK-LABEL: llvm.func protected @types
// CHECK: %[[BITS:.*]] = llvm.bitcast %{{.*}} : bf16 to i16
// CHECK: %[[WORD:.*]] = llvm.zext %[[BITS]] : i16 to i32
// CHECK: %[[MOVED:.*]] = rocdl.update.dpp %{{.*}}, %[[WORD]]
// CHECK: %[[BITS:.*]] = llvm.trunc %[[MOVED]] : i32 to i16
// CHECK: llvm.bitcast %[[BITS]] : i16 to bf16
// CHECK: %[[PAIR:.*]] = llvm.bitcast %{{.*}} : i64 to vector<2xi32>
// CHECK: llvm.extractelement %[[PAIR]]
// CHECK: rocdl.ds_bpermute
// CHECK: llvm.extractelement %[[PAIR]]
// CHECK: rocdl.ds_bpermute
// CHECK: llvm.bitcast %{{.*}} : vector<2xi32> to i64
greta_tile.func @types(%x: !greta_tile.ptr<bf16>, %y: !greta_tile.ptr<i64>, %n: i32) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 2 : !greta_tile.ptr<bf16> -> bf16
  %w = greta_tile.ptr_load %y[%lane] align 8 : !greta_tile.ptr<i64> -> i64
  %a = greta_tile.shuffle_xor %v, 2 : bf16
  %b = greta_tile.shuffle %w, %n : i64
  greta_tile.ptr_store %a, %x[%lane] align 2 : bf16 -> !greta_tile.ptr<bf16>
  greta_tile.ptr_store %b, %y[%lane] align 8 : i64 -> !greta_tile.ptr<i64>
  greta_tile.return
}

// only wave64
// -----

// The other half of 64 lanes.
// GFX942-LABEL: llvm.func protected @halves
// GFX942: %[[OTHER:.*]] = llvm.xor %{{.*}}, %{{.*}} : i32
// GFX942: %[[BYTES:.*]] = llvm.shl %[[OTHER]],
// GFX942: rocdl.ds_bpermute %[[BYTES]], %{{.*}}
// GFX950-LABEL: llvm.func protected @halves
// GFX950: %[[HALVES:.*]] = rocdl.permlane32.swap %[[V:.*]], %[[V]], false, false
// GFX950: %[[LOW:.*]] = llvm.extractvalue %[[HALVES]][0]
// GFX950: %[[HIGH:.*]] = llvm.extractvalue %[[HALVES]][1]
// GFX950: %[[IN_LOW:.*]] = llvm.icmp "ult"
// GFX950: %[[SWAPPED:.*]] = llvm.select %[[IN_LOW]], %[[HIGH]], %[[LOW]]
// The rest of the mask follows.
// GFX950: rocdl.permlane32.swap
// GFX950: rocdl.update.dpp {{.*}} with 296,
greta_tile.func @halves(%x: !greta_tile.ptr<i32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<i32> -> i32
  %a = greta_tile.shuffle_xor %v, 32 : i32
  %b = greta_tile.shuffle_xor %a, 40 : i32
  greta_tile.ptr_store %b, %x[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}

// -----

// Combined with its own, in either order: both halves as they come.
// GFX950-LABEL: llvm.func protected @both
// GFX950: %[[BITS:.*]] = llvm.bitcast %{{.*}} : f32 to i32
// GFX950: %[[HALVES:.*]] = rocdl.permlane32.swap %[[BITS]], %[[BITS]], false, false
// GFX950: %[[LOW:.*]] = llvm.extractvalue %[[HALVES]][0]
// GFX950: %[[HIGH:.*]] = llvm.extractvalue %[[HALVES]][1]
// GFX950: %[[X:.*]] = llvm.bitcast %[[LOW]] : i32 to f32
// GFX950: %[[Y:.*]] = llvm.bitcast %[[HIGH]] : i32 to f32
// GFX950-NOT: llvm.select
// GFX950: llvm.fadd %[[X]], %[[Y]]
greta_tile.func @both(%x: !greta_tile.ptr<f32>) attributes {wave_size = 64 : i32, waves = 1 : i32} {
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 4 : !greta_tile.ptr<f32> -> f32
  %a = greta_tile.shuffle_xor %v, 32 : f32
  %b = arith.addf %v, %a : f32
  greta_tile.ptr_store %b, %x[%lane] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}
// end wave64
