// RUN: greta-opt %s --greta-tile-join=residents=8 --greta-tile-check-joined | FileCheck %s
// RUN: not greta-opt %s --greta-tile-join 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: greta-tile-join needs how many workgroups run at a time, residents=N

// The second kernel reads what the first one wrote, the third touches nothing of theirs but what nobody writes. Arrays stand in the entry block; tensors that nobody
// writes are read-only, others are not, whatever a phase promised. An integer that two launches compute is one argument; the last one, which says whether the launch is a trial, is zero. The old kernels are gone.
// The first phase loads a tile's part of x during the tile before it, the last tile's for ever; the third, of one tile, loads x in front of its loop, and the second, which reads what is written, in it.
// CHECK: #[[SCALARS:.*]] = affine_map<() -> (4, 0)>
// CHECK-NOT: @scale
// CHECK-LABEL: greta_tile.func @chain_joined0(
// CHECK-SAME: %[[X:[a-z0-9]+]]: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64, greta.noalias, greta.readonly},
// CHECK-SAME: %[[A:[a-z0-9]+]]: !greta_tile.ptr<f32> {greta.noalias}, %[[B:[a-z0-9]+]]: !greta_tile.ptr<f32> {greta.noalias},
// CHECK-SAME: %[[C:[a-z0-9]+]]: !greta_tile.ptr<f32> {greta.noalias}, %[[MET:[a-z0-9]+]]: !greta_tile.ptr<i32>, %[[N:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i32) attributes {wave_size = 64 : i32, waves = 2 : i32}
// CHECK: %[[ARRAY:.*]] = greta_tile.shared_alloc
// CHECK: %[[FIRST:.*]] = greta_tile.program_id 0
// CHECK: %[[LAST:.*]] = arith.constant 23 : i32
// CHECK: %[[MINE:.*]] = arith.minsi %[[FIRST]], %[[LAST]]
// CHECK-DAG: arith.remui %[[MINE]], %c4_i32
// CHECK-DAG: arith.divui %[[MINE]], %c4_i32
// CHECK: %[[AHEAD:.*]] = greta_tile.ptr_load %[[X]]
// CHECK: scf.for %[[TILE:.*]] = %[[FIRST]] to %c24_i32{{.*}} step %[[STEP:.*]] iter_args(%[[V:.*]] = %[[AHEAD]])
// CHECK: %[[NEXT:.*]] = arith.addi %[[TILE]], %[[STEP]]
// CHECK: arith.minsi %[[NEXT]], %[[LAST]]
// CHECK: %[[LOADED:.*]] = greta_tile.ptr_load %[[X]]
// CHECK-DAG: %[[COL:.*]] = arith.remui %[[TILE]], %c4_i32
// CHECK-DAG: %[[ROW:.*]] = arith.divui %[[TILE]], %c4_i32
// CHECK: %[[AT:.*]] = arith.muli %[[ROW]], %[[N]]
// CHECK: arith.addi %[[AT]], %[[COL]]
// CHECK-NOT: greta_tile.ptr_load
// CHECK: greta_tile.shared_store %[[V]], %[[ARRAY]]
// CHECK: greta_tile.ptr_store %[[V]], %[[A]]
// CHECK: scf.yield %[[LOADED]]
// CHECK-NEXT: } {greta_tile.rolled}
// CHECK-NEXT: greta_tile.grid_barrier %[[MET]] until 8 : <i32>
// CHECK: scf.for {{.*}} to %c24_i32{{.*}} : i32 {
// CHECK: greta_tile.ptr_load %[[A]]
// CHECK: greta_tile.ptr_store %{{.*}}, %[[B]]
// CHECK-NOT: greta_tile.grid_barrier
// CHECK: %[[ONE:.*]] = greta_tile.ptr_load %[[X]]
// CHECK: scf.for {{.*}} to %c1_i32{{.*}} : i32 {
// CHECK: greta_tile.ptr_store %[[ONE]], %[[C]]
// CHECK: greta_tile.grid_barrier %[[MET]] until 16 last : <i32>
// CHECK-NEXT: greta_tile.return

greta_tile.func @scale(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64, greta.noalias, greta.readonly}, %y: !greta_tile.ptr<f32> {greta.noalias}, %n: i32) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %array = greta_tile.shared_alloc : !greta_tile.shared<1 x f32>
  %zero = arith.constant 0 : i32
  %col = greta_tile.program_id 0
  %row = greta_tile.program_id 1
  %first = arith.muli %row, %n : i32
  %at = arith.addi %first, %col : i32
  %v = greta_tile.ptr_load %x[%at] align 4 : !greta_tile.ptr<f32> -> f32
  greta_tile.shared_store %v, %array[%zero] : !greta_tile.shared<1 x f32>
  greta_tile.ptr_store %v, %y[%at] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

greta_tile.func @one(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64, greta.noalias}, %y: !greta_tile.ptr<f32> {greta.noalias}) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %zero = arith.constant 0 : i32
  %v = greta_tile.ptr_load %x[%zero] align 4 : !greta_tile.ptr<f32> -> f32
  greta_tile.ptr_store %v, %y[%zero] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}

// A tensor that is made and used in the joined launch alone is scratch memory. The view goes behind the launch.
// CHECK-LABEL: func.func @chain
// CHECK: %[[R:.*]]:4 = greta_tile.launch @chain_joined0 grid #{{.*}} scalars #[[SCALARS]](%arg0)
// CHECK-SAME: zeroed [3] shapes {{.*}} resident {config = {barriers = 1 : i64, joined = 3 : i64, residents = 8 : i64}}
// CHECK: %[[V:.*]] = tensor.cast %[[R]]#1 : tensor<24xf32> to tensor<?xf32>
// CHECK: return %[[V]], %[[R]]#2
func.func @chain(%x: tensor<24xf32>) -> (tensor<?xf32>, tensor<1xf32>) {
  %a = greta_tile.launch @scale grid affine_map<() -> (4, 6)> scalars affine_map<() -> (4)> (%x) shapes [affine_map<() -> (24)>] : (tensor<24xf32>) -> tensor<24xf32>
  %b = greta_tile.launch @scale grid affine_map<() -> (4, 6)> scalars affine_map<() -> (4)> (%a) shapes [affine_map<() -> (24)>] : (tensor<24xf32>) -> tensor<24xf32>
  %view = tensor.cast %b : tensor<24xf32> to tensor<?xf32>
  %c = greta_tile.launch @one grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (1)>] : (tensor<24xf32>) -> tensor<1xf32>
  return %view, %c : tensor<?xf32>, tensor<1xf32>
}

// In place: a phase that writes waits for one that reads. A result of the function is the argument's memory as the last phase leaves it.
greta_tile.func @read(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %zero = arith.constant 0 : i32
  %v = greta_tile.ptr_load %x[%zero] align 4 : !greta_tile.ptr<f32> -> f32
  greta_tile.ptr_store %v, %y[%zero] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}
greta_tile.func @write(%x: !greta_tile.ptr<f32>) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %zero = arith.constant 0 : i32
  %v = arith.constant 1.0 : f32
  greta_tile.ptr_store %v, %x[%zero] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}
// CHECK-LABEL: greta_tile.func @updates_joined0(
// CHECK: grid_barrier {{.*}} until 8 :
// CHECK: grid_barrier {{.*}} until 16 last
// CHECK-LABEL: func.func @updates
// CHECK: %[[R:.*]]:3 = greta_tile.launch @updates_joined0 {{.*}} tied [-1, -1, 0] zeroed [1]
// CHECK: return %[[R]]#2, %[[R]]#0
func.func @updates(%x: tensor<1xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  %old = greta_tile.launch @read grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %new = greta_tile.launch @write grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) tied [0] shapes [] : (tensor<1xf32>) -> tensor<1xf32>
  return %new, %old : tensor<1xf32>, tensor<1xf32>
}

// Workgroups of another size, a grid that depends on a dimension, and memory that may overlap stay as they are; so does a launch alone.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: greta_tile.launch
// CHECK-NOT: resident
greta_tile.func @any(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  greta_tile.return
}
func.func @others(%x: tensor<?xf32>) -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) attributes {greta.symbols = [[0, 0]]} {
  %a = greta_tile.launch @any grid affine_map<()[n] -> (n)> scalars affine_map<()[n] -> ()> (%x) shapes [affine_map<()[n] -> (1)>] : (tensor<?xf32>) -> tensor<1xf32>
  %b = greta_tile.launch @any grid affine_map<()[n] -> (2)> scalars affine_map<()[n] -> ()> (%x) shapes [affine_map<()[n] -> (1)>] : (tensor<?xf32>) -> tensor<1xf32>
  %c = greta_tile.launch @one grid affine_map<()[n] -> (2)> scalars affine_map<()[n] -> ()> (%x) shapes [affine_map<()[n] -> (1)>] : (tensor<?xf32>) -> tensor<1xf32>
  return %a, %b, %c : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
}
// CHECK-LABEL: func.func @memory
// CHECK-COUNT-2: greta_tile.launch @any
// CHECK-NOT: resident
func.func @memory(%x: tensor<4xf32>) -> (tensor<1xf32>, tensor<1xf32>) attributes {greta.in_place} {
  %a = greta_tile.launch @any grid affine_map<() -> (2)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (1)>] : (tensor<4xf32>) -> tensor<1xf32>
  %b = greta_tile.launch @any grid affine_map<() -> (2)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (1)>] : (tensor<4xf32>) -> tensor<1xf32>
  return %a, %b : tensor<1xf32>, tensor<1xf32>
}

// A sum over ranks stands between what is joined before it and behind it.
// CHECK-LABEL: func.func @summed
// CHECK: %[[A:.*]]:{{[0-9]+}} = greta_tile.launch @summed_joined0
// CHECK: %[[SUM:.*]] = greta.all_reduce %[[A]]
// CHECK: greta_tile.launch @summed_joined1 {{.*}}(%[[SUM]])
func.func @summed(%x: tensor<1xf32>) -> tensor<1xf32> {
  %a = greta_tile.launch @read grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %b = greta_tile.launch @read grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%a) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %sum = greta.all_reduce %b : tensor<1xf32> -> tensor<1xf32>
  %c = greta_tile.launch @read grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%sum) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %d = greta_tile.launch @read grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%c) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  return %d : tensor<1xf32>
}
