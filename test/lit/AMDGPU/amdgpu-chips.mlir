// Every chip compiles: metadata as the package promises, no scratch, statistics from the code object.
// RUN: greta-tile-compile %s --target=gfx90a --emit=stats | FileCheck %s --check-prefix=STATS
// RUN: greta-tile-compile %s --target=gfx942 --emit=stats | FileCheck %s --check-prefix=STATS
// RUN: greta-tile-compile %s --target=gfx950 --emit=stats | FileCheck %s --check-prefix=STATS
// RUN: sed -e 's/wave_size = 64/wave_size = 32/' %s > %t.mlir
// RUN: greta-tile-compile %t.mlir --target=gfx1100 --emit=stats | FileCheck %s --check-prefix=STATS
// RUN: greta-tile-compile %t.mlir --target=gfx1101 --emit=stats | FileCheck %s --check-prefix=STATS
// RUN: greta-tile-compile %t.mlir --target=gfx1102 --emit=stats | FileCheck %s --check-prefix=STATS
// RUN: greta-tile-compile %t.mlir --target=gfx1103 --emit=stats | FileCheck %s --check-prefix=STATS
// RUN: greta-tile-compile %t.mlir --target=gfx1150 --emit=stats | FileCheck %s --check-prefix=STATS
// RUN: greta-tile-compile %t.mlir --target=gfx1151 --emit=stats | FileCheck %s --check-prefix=STATS
// RUN: greta-tile-compile %t.mlir --target=gfx1200 --emit=stats | FileCheck %s --check-prefix=STATS
// RUN: greta-tile-compile %t.mlir --target=gfx1201 --emit=stats | FileCheck %s --check-prefix=STATS
// RUN: greta-tile-compile %s --target=gfx942 -o %t.hsaco
// RUN: llvm-readelf --notes %t.hsaco | FileCheck %s --check-prefix=NOTE
// RUN: llvm-readelf -h --dyn-syms %t.hsaco | FileCheck %s --check-prefix=ELF
// RUN: greta-tile-compile %s --target=gfx942 --emit=llvm | FileCheck %s --check-prefix=LLVM

// STATS: vgprs={{[1-9][0-9]*}} agprs=0 sgprs={{[1-9][0-9]*}} lds=256 scratch=0 spills=0 occupancy={{8|16}}

// NOTE: .offset: 0
// NOTE: .size: 8
// NOTE: .value_kind: global_buffer
// NOTE: .offset: 8
// NOTE: .size: 8
// NOTE: .value_kind: global_buffer
// NOTE: .offset: 16
// NOTE: .size: 4
// NOTE: .value_kind: by_value
// NOTE-NOT: hidden_
// NOTE: .group_segment_fixed_size: 256
// NOTE: .kernarg_segment_size: 20
// NOTE: .max_flat_workgroup_size: 128
// NOTE: .name: kernel
// NOTE: .reqd_workgroup_size:
// NOTE-NEXT: - 128
// NOTE-NEXT: - 1
// NOTE-NEXT: - 1
// NOTE: .symbol: kernel.kd
// NOTE: .uniform_work_group_size: 1
// NOTE: .wavefront_size: 64
// NOTE: amdhsa.target: amdgcn-amd-amdhsa--gfx942

// Version 6 of the code object is ABI version 4.
// ELF: ABI Version: 4
// ELF-DAG: PROTECTED {{.*}} kernel.kd
// ELF-DAG: PROTECTED {{.*}} kernel{{$}}

// LLVM: target triple = "amdgcn-amd-amdhsa"
// LLVM: define protected amdgpu_kernel void @kernel(ptr addrspace(1) {{.*}}readonly{{.*}}, ptr addrspace(1) {{.*}}writeonly{{.*}}, i32 {{.*}}) {{.*}}!reqd_work_group_size
// LLVM: "target-cpu"="gfx942"
greta_tile.func @kernel(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>, %n: i32) attributes {wave_size = 64 : i32, waves = 2 : i32} {
  %array = greta_tile.shared_alloc : !greta_tile.shared<128 x f16>
  %lane = greta_tile.lane_id
  %v = greta_tile.ptr_load %x[%lane] align 2 : !greta_tile.ptr<f16> -> f16
  greta_tile.shared_store %v, %array[%lane] : !greta_tile.shared<128 x f16>
  greta_tile.barrier
  %w = greta_tile.shared_load %array[%n] : !greta_tile.shared<128 x f16>
  greta_tile.ptr_store %w, %y[%lane] align 2 : f16 -> !greta_tile.ptr<f16>
  greta_tile.return
}
