// greta-tile-check-joined lets sound schedules pass. It refuses a wait that never ends, a reader before its writer, and tiles that nobody does.
// RUN: greta-opt %s --split-input-file --verify-diagnostics --greta-tile-check-joined

// The form that greta-tile-join makes is right, and so are phases between the same barriers that read one tensor.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 4 : !greta_tile.ptr<i32>
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %y[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %z[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 8 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// Both read %x.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %z[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// A barrier is missing between a writer and a reader.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  // expected-note @below {{the phase before}}
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  // expected-error @below {{'scf.for' op touches argument 1, as a phase before it does, one of them writes, and no barrier over the grid is between them}}
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %y[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %z[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// Between a reader and a writer.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  // expected-note @below {{the phase before}}
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %y[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %z[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  // expected-error @below {{touches argument 1, as a phase before it does}}
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// Between two writers.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  // expected-note @below {{the phase before}}
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %z[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  // expected-error @below {{touches argument 2, as a phase before it does}}
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %z[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// Pointers that a loop carries are followed.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  // expected-note @below {{the phase before}}
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  // expected-error @below {{touches argument 1, as a phase before it does}}
  scf.for %i = %id to %c9 step %c4 : i32 {
    %end = scf.for %j = %id to %c9 step %c4 iter_args(%p = %y) -> !greta_tile.ptr<f32> : i32 {
      %v = greta_tile.ptr_load %p[%i] align 4 : !greta_tile.ptr<f32> -> f32
      greta_tile.ptr_store %v, %z[%i] align 4 : f32 -> !greta_tile.ptr<f32>
      %next = greta_tile.ptr_add %p, %c4 : !greta_tile.ptr<f32>, i32
      scf.yield %next : !greta_tile.ptr<f32>
    }
  }
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// Arrivals that are too many would never come.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  // expected-error @below {{'greta_tile.grid_barrier' op waits until 5 have arrived; with 4 workgroups it is over at 4}}
  greta_tile.grid_barrier %met until 5 : !greta_tile.ptr<i32>
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %y[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %z[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 9 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// The arrivals at the barrier before let everybody pass.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 4 : !greta_tile.ptr<i32>
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %y[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %z[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  // expected-error @below {{waits until 4 have arrived; with 4 workgroups it is over at 8}}
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// The next launch would not find zero.
// expected-error @below {{ends without a last barrier over the grid, so that the next launch does not find zero}}
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 4 : !greta_tile.ptr<i32>
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %y[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %z[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// The counter is zero again behind the last one.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  // expected-error @below {{touches memory behind the last barrier}}
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %y[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %z[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// A barrier behind the last one would never end.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  // expected-error @below {{stands behind the last barrier, whose counter may be zero again}}
  greta_tile.grid_barrier %met until 8 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// Tiles are left out.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  // expected-error @below {{is no loop from program_id 0 by 4, the launch's workgroups, to a constant: tiles are left out or done twice}}
  scf.for %i = %id to %c9 step %c9 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// Every workgroup does all tiles.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  // expected-error @below {{is no loop from program_id 0 by 4}}
  scf.for %i = %c4 to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// A load in front of a barrier is right if nobody writes what it reads, and a phase's tile may hand to the next what it loaded.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  %c = arith.constant 1.0 : f32
  scf.for %i = %id to %c9 step %c4 : i32 {
    greta_tile.ptr_store %c, %z[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  %first = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<f32> -> f32
  greta_tile.grid_barrier %met until 4 : !greta_tile.ptr<i32>
  %last = scf.for %i = %id to %c9 step %c4 iter_args(%v = %first) -> f32 : i32 {
    %next = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
    scf.yield %next : f32
  }
  greta_tile.grid_barrier %met until 8 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// It is not handed on to another phase, in front of which the memory was written again.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  %c = arith.constant 1.0 : f32
  // expected-error @below {{hands what it read to what is behind it, which may be behind a later writer}}
  %read = scf.for %i = %id to %c9 step %c4 iter_args(%v = %c) -> f32 : i32 {
    %next = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    scf.yield %next : f32
  }
  greta_tile.grid_barrier %met until 4 : !greta_tile.ptr<i32>
  scf.for %i = %id to %c9 step %c4 : i32 {
    greta_tile.ptr_store %c, %x[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 8 : !greta_tile.ptr<i32>
  scf.for %i = %id to %c9 step %c4 : i32 {
    greta_tile.ptr_store %read, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 12 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) tied [0, -1, -1] zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// Nor is it right if a phase writes that, be it behind the load.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  // expected-error @below {{touches memory outside a phase, which is a loop over tiles}}
  %first = greta_tile.ptr_load %z[%id] align 4 : !greta_tile.ptr<f32> -> f32
  greta_tile.grid_barrier %met until 4 : !greta_tile.ptr<i32>
  scf.for %i = %id to %c9 step %c4 : i32 {
    greta_tile.ptr_store %first, %z[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 8 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// Some would write outside the loop.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  %v = arith.constant 0.0 : f32
  // expected-error @below {{touches memory outside a phase, which is a loop over tiles}}
  greta_tile.ptr_store %v, %y[%id] align 4 : f32 -> !greta_tile.ptr<f32>
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// A phase touches the counter.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  scf.for %i = %id to %c9 step %c4 : i32 {
    // expected-error @below {{takes argument 3, the counter of barriers over the grid}}
    greta_tile.ptr_store %i, %met[%i] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// Whose workgroups meet, but need not be there.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %z: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c9 = arith.constant 9 : i32
  %id = greta_tile.program_id 0
  scf.for %i = %id to %c9 step %c4 : i32 {
    %v = greta_tile.ptr_load %x[%i] align 4 : !greta_tile.ptr<f32> -> f32
    greta_tile.ptr_store %v, %y[%i] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  // expected-error @below {{runs @k, whose workgroups meet, and is not resident}}
  %0:3 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>]
    : (tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<1xi32>)
  return %0#0, %0#1 : tensor<9xf32>, tensor<9xf32>
}

// -----

// The next launch finds what this one left.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  // expected-error @below {{counts in argument 1, in which the launch does not promise zeros}}
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> tensor<1xi32> {
  %0 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) shapes [affine_map<() -> (1)>] resident : (tensor<9xf32>) -> tensor<1xi32>
  return %0 : tensor<1xi32>
}

// -----

// A view of a tensor is its memory, too.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> tensor<9xf32> {
  %view = tensor.cast %x : tensor<9xf32> to tensor<?xf32>
  // expected-error @below {{has a kernel that does several launches' work, and passes one tensor as operand 0 and as operand 1}}
  %0:2 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x, %view) tied [0, -1] zeroed [1] shapes [affine_map<() -> (1)>] resident
    : (tensor<9xf32>, tensor<?xf32>) -> (tensor<9xf32>, tensor<1xi32>)
  return %0#0 : tensor<9xf32>
}

// -----

// Two words count, so that nobody knows who has come.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %other: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  greta_tile.grid_barrier %met until 4 : !greta_tile.ptr<i32>
  // expected-error @below {{counts in another word than the barriers before it}}
  greta_tile.grid_barrier %other until 8 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> tensor<9xf32> {
  %0:2 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [0, 1] shapes [affine_map<() -> (1)>, affine_map<() -> (1)>] resident
    : (tensor<9xf32>) -> (tensor<1xi32>, tensor<1xi32>)
  return %x : tensor<9xf32>
}

// -----

// Only one block is looked at.
// expected-error @below {{has branches around barriers over the grid}}
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  cf.br ^end
^end:
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> tensor<9xf32> {
  %0 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [0] shapes [affine_map<() -> (1)>] resident : (tensor<9xf32>) -> tensor<1xi32>
  return %x : tensor<9xf32>
}

// -----

// No launch would do anything.
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> tensor<9xf32> {
  // expected-error @below {{is resident, and its last scalar is not zero, which says that it is no trial}}
  %0 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (1)> (%x) zeroed [0] shapes [affine_map<() -> (1)>] resident : (tensor<9xf32>) -> tensor<1xi32>
  return %x : tensor<9xf32>
}

// -----

// A launch that tries would compute something else in what is not branched around.
// expected-error @below {{uses its last argument, which says whether the launch is a trial, or has another type than i32 for it}}
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i32) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  %more = arith.addi %trial, %trial : i32
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> tensor<9xf32> {
  %0 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [0] shapes [affine_map<() -> (1)>] resident : (tensor<9xf32>) -> tensor<1xi32>
  return %x : tensor<9xf32>
}

// -----

// The runtime gives an i32.
// expected-error @below {{uses its last argument, which says whether the launch is a trial, or has another type than i32 for it}}
greta_tile.func @k(%x: !greta_tile.ptr<f32>, %met: !greta_tile.ptr<i32>, %trial: i64) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  greta_tile.grid_barrier %met until 4 last : !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xf32>) -> tensor<9xf32> {
  %0 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> (0)> (%x) zeroed [0] shapes [affine_map<() -> (1)>] resident : (tensor<9xf32>) -> tensor<1xi32>
  return %x : tensor<9xf32>
}
