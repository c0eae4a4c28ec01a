// RUN: greta-opt %s --greta-tile-tail=target=vulkan:nvidia | FileCheck %s

// The last workgroup of six goes on with the second kernel's work, as its workgroup 0, behind the fences that let it see what the others wrote; it leaves zero in the word.
// A tensor that the first kernel writes is not read-only to the second. Arrays stand in the entry block; the kernels alone are gone.
// CHECK-NOT: greta_tile.func @scale
// CHECK-LABEL: greta_tile.func @chain_tail0(
// CHECK-SAME: %[[X:[a-z0-9]+]]: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64, greta.noalias, greta.readonly},
// CHECK-SAME: %[[A:[a-z0-9]+]]: !greta_tile.ptr<f32> {greta.noalias}, %[[B:[a-z0-9]+]]: !greta_tile.ptr<f32> {greta.noalias}, %[[MET:[a-z0-9]+]]: !greta_tile.ptr<i32>, %[[N:[a-z0-9]+]]: i32)
// CHECK: greta_tile.shared_alloc : <1 x f32>
// CHECK: greta_tile.ptr_store %{{.*}}, %[[A]]
// CHECK: %[[WHO:.*]] = greta_tile.shared_alloc : <1 x i32>
// CHECK: greta_tile.fence release device
// CHECK-NEXT: greta_tile.barrier global
// CHECK: scf.if
// CHECK: greta_tile.fence release device
// CHECK: %[[BEFORE:.*]] = greta_tile.ptr_atomic_rmw add device %[[MET]]
// CHECK: greta_tile.shared_store %[[BEFORE]], %[[WHO]]
// CHECK: greta_tile.fence acquire device
// CHECK: greta_tile.barrier global
// CHECK: %[[MINE:.*]] = greta_tile.shared_load %[[WHO]]
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[MINE]], %c5_i32
// CHECK: scf.if %[[IS]]
// CHECK: greta_tile.fence acquire device
// CHECK: greta_tile.ptr_atomic_rmw xchg device %[[MET]]{{.*}}%c0_i32
// CHECK-NOT: greta_tile.program_id
// CHECK: greta_tile.ptr_load %[[A]]
// CHECK: greta_tile.ptr_store %{{.*}}, %[[B]]
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
greta_tile.func @one(%x: !greta_tile.ptr<f32> {greta.noalias, greta.readonly}, %y: !greta_tile.ptr<f32> {greta.noalias}) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %at = greta_tile.program_id 0
  %v = greta_tile.ptr_load %x[%at] align 4 : !greta_tile.ptr<f32> -> f32
  greta_tile.ptr_store %v, %y[%at] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.return
}
// CHECK-LABEL: func.func @chain
// CHECK: %[[R:.*]]:3 = greta_tile.launch @chain_tail0 grid #{{.*}} scalars #{{.*}}(%arg0) tied [-1, -1, -1] zeroed [2] shapes {{.*}} {config = {columns = 4 : i64, tail = 1 : i64}}
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
func.func @chain(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<1xf32>) {
  %a = greta_tile.launch @scale grid affine_map<() -> (2, 3)> scalars affine_map<() -> (2)> (%x) shapes [affine_map<() -> (6)>] {config = {columns = 4 : i64}}
       : (tensor<6xf32>) -> tensor<6xf32>
  %b = greta_tile.launch @one grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%a) shapes [affine_map<() -> (1)>] : (tensor<6xf32>) -> tensor<1xf32>
  return %a, %b : tensor<6xf32>, tensor<1xf32>
}

// These stay: a launch that reads nothing of the one before, one of two workgroups, one behind a grid that depends on a dimension or has one workgroup alone, workgroups of
// another size, matrix products, and memory that may overlap.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-8: greta_tile.launch
// CHECK-NOT: zeroed
greta_tile.func @small(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  greta_tile.return
}
greta_tile.func @two(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  greta_tile.return
}
func.func @others(%x: tensor<?xf32>) -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) attributes {greta.symbols = [[0, 0]]} {
  %a = greta_tile.launch @two grid affine_map<()[n] -> (4)> scalars affine_map<()[n] -> ()> (%x) shapes [affine_map<()[n] -> (1)>] : (tensor<?xf32>) -> tensor<1xf32>
  %b = greta_tile.launch @two grid affine_map<()[n] -> (1)> scalars affine_map<()[n] -> ()> (%x) shapes [affine_map<()[n] -> (1)>] : (tensor<?xf32>) -> tensor<1xf32>
  %c = greta_tile.launch @two grid affine_map<()[n] -> (1)> scalars affine_map<()[n] -> ()> (%b) shapes [affine_map<()[n] -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %d = greta_tile.launch @two grid affine_map<()[n] -> (2)> scalars affine_map<()[n] -> ()> (%c) shapes [affine_map<()[n] -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %e = greta_tile.launch @two grid affine_map<()[n] -> (2)> scalars affine_map<()[n] -> ()> (%d) shapes [affine_map<()[n] -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %f = greta_tile.launch @small grid affine_map<()[n] -> (1)> scalars affine_map<()[n] -> ()> (%e) shapes [affine_map<()[n] -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %g = greta_tile.launch @two grid affine_map<()[n] -> (n)> scalars affine_map<()[n] -> ()> (%f) shapes [affine_map<()[n] -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %h = greta_tile.launch @two grid affine_map<()[n] -> (1)> scalars affine_map<()[n] -> ()> (%g) shapes [affine_map<()[n] -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  return %a, %b, %c, %d, %e, %f, %g, %h : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
}
// CHECK-LABEL: func.func @memory
// CHECK-COUNT-2: greta_tile.launch @two
func.func @memory(%x: tensor<4xf32>) -> (tensor<1xf32>, tensor<1xf32>) attributes {greta.in_place} {
  %a = greta_tile.launch @two grid affine_map<() -> (2)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (1)>] : (tensor<4xf32>) -> tensor<1xf32>
  %b = greta_tile.launch @two grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%a) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  return %a, %b : tensor<1xf32>, tensor<1xf32>
}

// A sum over ranks between them is over before the second one begins.
// CHECK-LABEL: func.func @summed
// CHECK: greta_tile.launch @two
// CHECK: greta.all_reduce
// CHECK: greta_tile.launch @two
func.func @summed(%x: tensor<1xf32>) -> tensor<1xf32> {
  %a = greta_tile.launch @two grid affine_map<() -> (2)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %sum = greta.all_reduce %a : tensor<1xf32> -> tensor<1xf32>
  %b = greta_tile.launch @two grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%sum) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  return %b : tensor<1xf32>
}

// Nor is one of so many iterations that a driver might end them, all of a kernel counted.
// CHECK-LABEL: func.func @long
// CHECK-COUNT-2: greta_tile.launch
greta_tile.func @loops(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %end = arith.constant 16385 : i32
  scf.for %i = %zero to %end step %one : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.return
}
func.func @long(%x: tensor<20000xf32>) -> tensor<20000xf32> {
  %a = greta_tile.launch @loops grid affine_map<() -> (2)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (20000)>] : (tensor<20000xf32>) -> tensor<20000xf32>
  %b = greta_tile.launch @loops grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%a) shapes [affine_map<() -> (20000)>] : (tensor<20000xf32>) -> tensor<20000xf32>
  return %b : tensor<20000xf32>
}

// Nor is a matrix product, here one without matrix instructions.
// CHECK-LABEL: func.func @product
// CHECK-COUNT-2: greta_tile.launch @two
func.func @product(%x: tensor<1xf32>) -> tensor<1xf32> {
  %a = greta_tile.launch @two grid affine_map<() -> (2)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %b = greta_tile.launch @two grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%a) shapes [affine_map<() -> (1)>] {config = {depth = 16 : i64}} : (tensor<1xf32>) -> tensor<1xf32>
  return %b : tensor<1xf32>
}

// Nor is one with much shared memory, which all workgroups would have, nor one whose arrays have no room beside the first kernel's: 48 KB is all that a workgroup has here.
// CHECK-LABEL: func.func @shared
// CHECK-COUNT-4: greta_tile.launch
// CHECK-NOT: zeroed
greta_tile.func @large(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %array = greta_tile.shared_alloc : !greta_tile.shared<24320 x f16>
  %zero = arith.constant 0 : i32
  %none = arith.constant 0.0 : f16
  greta_tile.shared_store %none, %array[%zero] : !greta_tile.shared<24320 x f16>
  greta_tile.return
}
greta_tile.func @some(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %array = greta_tile.shared_alloc : !greta_tile.shared<512 x f32>
  %zero = arith.constant 0 : i32
  %none = arith.constant 0.0 : f32
  greta_tile.shared_store %none, %array[%zero] : !greta_tile.shared<512 x f32>
  greta_tile.return
}
func.func @shared(%x: tensor<1xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  %a = greta_tile.launch @large grid affine_map<() -> (2)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %b = greta_tile.launch @some grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%a) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %c = greta_tile.launch @two grid affine_map<() -> (2)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %d = greta_tile.launch @large grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%c) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  return %b, %d : tensor<1xf32>, tensor<1xf32>
}
// CHECK-LABEL: func.func @little
// CHECK: greta_tile.launch @little_tail0
func.func @little(%x: tensor<1xf32>) -> tensor<1xf32> {
  %a = greta_tile.launch @two grid affine_map<() -> (2)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  %b = greta_tile.launch @some grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%a) shapes [affine_map<() -> (1)>] : (tensor<1xf32>) -> tensor<1xf32>
  return %b : tensor<1xf32>
}
