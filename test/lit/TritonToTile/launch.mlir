// RUN: greta-opt --triton-to-tile="grid='n ceildiv 64,x' num-warps=8" %s | FileCheck %s
// RUN: greta-opt --triton-to-tile %s | FileCheck %s --check-prefix=DEFAULT
// RUN: greta-opt --triton-to-tile="num-stages=3" %s | FileCheck %s --check-prefix=STAGES
// STAGES: greta_tile.func {{.*}}greta_tile.stages = 3 : i32
// DEFAULT-NOT: greta_tile.stages

// A function of the kernel's name and arguments launches it. Results are what it writes to, in place. Its tensors may overlap, and begin
// where the kernel's pointers may.

// CHECK-LABEL: greta_tile.func @copy_0
// CHECK-SAME: (%[[X:.*]]: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %[[Y:.*]]: !greta_tile.ptr<f32>, %{{.*}}: i32, %{{.*}}: f16) attributes {waves = 8 : i32}
// CHECK: func.func @copy
// CHECK-SAME: (%{{.*}}: tensor<?xf32> {greta.divisibility = 16 : i64, greta.name = "x"}, %[[OUT:.*]]: tensor<?xf32> {greta.divisibility = 4 : i64, greta.name = "y"}, %{{.*}}: i32 {greta.name = "n"}, %{{.*}}: f16 {greta.name = "f"}) -> tensor<?xf32> attributes {greta.in_place}
// CHECK: %[[R:.*]] = greta_tile.launch @copy_0 grid
// CHECK-SAME: tied [1] shapes [] : (tensor<?xf32>, tensor<?xf32>, i32, f16) -> tensor<?xf32>
// CHECK: return %[[R]]

// DEFAULT-LABEL: greta_tile.func @copy_0
// DEFAULT-SAME: waves = 2 : i32
// DEFAULT: func.func @copy(
// DEFAULT-SAME: %{{.*}}: i32 {greta.name = "grid_x"}, %{{.*}}: i32 {greta.name = "grid_y"}, %{{.*}}: i32 {greta.name = "grid_z"}) -> tensor<?xf32>
// DEFAULT: greta_tile.launch @copy_0 grid
// DEFAULT-SAME: (%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) tied [1] shapes []

// Who stores nothing runs, too.
// CHECK: func.func @nothing(%{{.*}}: i32
// CHECK-NEXT: greta_tile.launch @nothing_0 {{.*}} : (i32, i32) -> ()
// DEFAULT: greta_tile.launch @nothing_0

module attributes {"ttg.num-warps" = 2 : i32} {
  tt.func public @copy(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"), %y: !tt.ptr<f32> loc("y"), %n: i32 loc("n"), %f: f16 loc("f")) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %v = tt.load %x : !tt.ptr<f32>
    // A pointer is written to behind a loop and an if, too.
    %q = scf.for %i = %c0 to %n step %c1 iter_args(%r = %y) -> (!tt.ptr<f32>) : i32 {
      %next = tt.addptr %r, %i : !tt.ptr<f32>, i32
      scf.yield %next : !tt.ptr<f32>
    }
    tt.store %q, %v : !tt.ptr<f32>
    tt.return
  }
  tt.func public @nothing(%x: i32 loc("x"), %n: i32 loc("n")) {
    tt.return
  }
}
