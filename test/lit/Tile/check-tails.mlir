// greta-tile-check-tails lets a sound tail pass. It refuses one that does not see what others wrote, that more or fewer workgroups than one do, or that depends on which one does it.
// RUN: greta-opt %s --split-input-file --verify-diagnostics --greta-tile-check-tails

// The form that greta-tile-tail makes is right.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// Lanes of the first kernel release nothing.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  // expected-error @below {{'greta_tile.ptr_store' op stands where a launch with a tail has a release to the device}}
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// A release to the workgroup is none to the device.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  // expected-error @below {{stands where a launch with a tail has a release to the device}}
  greta_tile.fence release workgroup
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The barrier in front of the count orders shared memory alone.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  // expected-error @below {{stands where a launch with a tail has a barrier that orders global memory}}
  greta_tile.barrier
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// A store is behind the release.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.fence release device
  greta_tile.barrier global
  // expected-error @below {{stands where a launch with a tail has a barrier that orders global memory}}
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// Each lane counts.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi ne, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  // expected-error @below {{counts a workgroup that has a tail in other lanes than the first}}
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The first lane passes on nothing of what the others wrote.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  // expected-error @below {{has no release to the device for a tail}}
  scf.if %first {
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The first lane stores behind its release.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    // expected-error @below {{stands where a launch with a tail has a release to the device}}
    greta_tile.ptr_store %v, %y[%c3] align 4 : i32 -> !greta_tile.ptr<i32>
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The first lane stores in front of it, which is part of no kernel.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    // expected-error @below {{stands in front of the release with which a workgroup is counted}}
    greta_tile.ptr_store %v, %y[%c3] align 4 : i32 -> !greta_tile.ptr<i32>
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// Workgroups are counted by threes.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    // expected-error @below {{stands where a launch with a tail has an addition of one to the device's count}}
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c3 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The first lane sees nothing of what others released.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    // expected-error @below {{stands where a launch with a tail has an acquire from the device}}
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The others are told something else.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    // expected-error @below {{is not the number that was counted before}}
    greta_tile.shared_store %v, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The others look elsewhere.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  // expected-error @below {{looks at another place than the first lane's number}}
  %mine = greta_tile.shared_load %who[%c1] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The first kernel writes the array.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  // expected-error @below {{uses the array that says how many workgroups were counted before}}
  greta_tile.shared_store %v, %who[%c0] : !greta_tile.shared<1 x i32>
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The last but one goes on.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c1 : i32
  // expected-error @below {{is a tail, and its condition is not that 3 of the launch's 4 workgroups were counted before}}
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// All but the first go on.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi ule, %mine, %c3 : i32
  // expected-error @below {{is a tail, and its condition is not that 3 of the launch's 4 workgroups were counted before}}
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// Another launch of the kernel has other workgroups.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  // expected-error @below {{is a tail, and its condition is not that 4 of the launch's 5 workgroups were counted before}}
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  %1:3 = greta_tile.launch @k grid affine_map<() -> (5)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>]
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// Nobody knows how many there are.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<?xi32>) -> tensor<9xi32> attributes {greta.symbols = [[0, 0]]} {
  // expected-error @below {{has a tail, and its grid is not constant}}
  %0:3 = greta_tile.launch @k grid affine_map<()[n] -> (n)> scalars affine_map<()[n] -> ()> (%x) zeroed [2] shapes [affine_map<()[n] -> (9)>, affine_map<()[n] -> (9)>, affine_map<()[n] -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<?xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The word may hold anything.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    // expected-error @below {{counts in argument 3, in which the launch does not promise zeros}}
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The word is found in a loop, so that it may be another one.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  %found = greta_tile.ptr_add %met, %c0 : !greta_tile.ptr<i32>, i32
  scf.if %first {
    greta_tile.fence release device
    // expected-error @below {{counts in a word that is no argument}}
    %before = greta_tile.ptr_atomic_rmw add device %found[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The tail sees what memory held when the kernel began.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  // expected-error @below {{is a tail and does not begin with an acquire from the device}}
  scf.if %last {
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The next launch does not find zero.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  // expected-error @below {{is a tail, and leaves no zero in argument 3 for the next launch}}
  scf.if %last {
    greta_tile.fence acquire device
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// It finds one.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      // expected-error @below {{takes argument 3, in which workgroups are counted, and is not the first lane's one exchange with zero in the tail}}
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The first kernel writes the word.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  // expected-error @below {{takes argument 3, in which workgroups are counted}}
  greta_tile.ptr_store %v, %met[%c0] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// Somebody writes behind the tail.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  // expected-error @below {{stands where a launch with a tail has a branch without else}}
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The others do something else.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  // expected-error @below {{stands where a launch with a tail has a branch without else}}
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  } else {
    greta_tile.ptr_store %lane, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The tail is another row in each run.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    // expected-error @below {{depends in a tail on which workgroup this is}}
    %mine0 = greta_tile.program_id 0
    %w = greta_tile.ptr_load %y[%mine0] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// It is so by a number that was computed before.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  %row = arith.muli %id, %c3 : i32
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    // expected-error @below {{depends in a tail on which workgroup this is}}
    %w = greta_tile.ptr_load %y[%row] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The tail takes what memory held before the others were there.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %early = greta_tile.ptr_load %y[%c3] align 4 : !greta_tile.ptr<i32> -> i32
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    // expected-error @below {{takes in a tail what was read before it}}
    greta_tile.ptr_store %early, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// The tail reads what the first kernel left in shared memory.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %array = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.shared_store %v, %array[%c0] : !greta_tile.shared<1 x i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    // expected-error @below {{uses in a tail an array that is used before it, too}}
    %w = greta_tile.shared_load %array[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// Loads of what is only read may be old.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32> {greta.readonly}, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  // expected-error @below {{writes argument 1, which the kernel promises only to read}}
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// Two arguments are one memory.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  // expected-error @below {{has a kernel that does several launches' work, and passes one tensor as operand 0 and as operand 1}}
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x, %x) tied [1, -1, -1] zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>, tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// Only one block is looked at.
// expected-error @below {{has branches around the count of a tail}}
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %c3 : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  cf.br ^end
^end:
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 2)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}

// -----

// There is no tail.
// expected-error @below {{'greta_tile.func' op has no branch without else for a tail}}
greta_tile.func @k(%x: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 1 : i32, wave_size = 64 : i32} {
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  %0 = greta_tile.launch @k grid affine_map<() -> (4)> scalars affine_map<() -> ()> (%x) zeroed [0] shapes [affine_map<() -> (1)>] {config = {tail = 1 : i64}} : (tensor<9xi32>) -> tensor<1xi32>
  return %x : tensor<9xi32>
}

// -----

// A grid without workgroups does no tail.
greta_tile.func @k(%x: !greta_tile.ptr<i32> {greta.readonly}, %y: !greta_tile.ptr<i32>, %z: !greta_tile.ptr<i32>, %met: !greta_tile.ptr<i32>) attributes {waves = 2 : i32, wave_size = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %most = arith.constant -1 : i32
  %id = greta_tile.program_id 0
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %number = arith.ori %lane, %wave : i32
  %first = arith.cmpi eq, %number, %c0 : i32
  %who = greta_tile.shared_alloc : !greta_tile.shared<1 x i32>
  %v = greta_tile.ptr_load %x[%id] align 4 : !greta_tile.ptr<i32> -> i32
  greta_tile.ptr_store %v, %y[%id] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.fence release device
  greta_tile.barrier global
  scf.if %first {
    greta_tile.fence release device
    %before = greta_tile.ptr_atomic_rmw add device %met[%c0], %c1 : !greta_tile.ptr<i32> -> i32
    greta_tile.shared_store %before, %who[%c0] : !greta_tile.shared<1 x i32>
    greta_tile.fence acquire device
  }
  greta_tile.barrier global
  %mine = greta_tile.shared_load %who[%c0] : !greta_tile.shared<1 x i32>
  %last = arith.cmpi eq, %mine, %most : i32
  scf.if %last {
    greta_tile.fence acquire device
    scf.if %first {
      %old = greta_tile.ptr_atomic_rmw xchg device %met[%c0], %c0 : !greta_tile.ptr<i32> -> i32
    }
    %w = greta_tile.ptr_load %y[%lane] align 4 : !greta_tile.ptr<i32> -> i32
    greta_tile.ptr_store %w, %z[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  }
  greta_tile.return
}
func.func @f(%x: tensor<9xi32>) -> tensor<9xi32> {
  // expected-error @below {{'greta_tile.launch' op has a tail, and no workgroup that does it}}
  %0:3 = greta_tile.launch @k grid affine_map<() -> (2, 0)> scalars affine_map<() -> ()> (%x) zeroed [2] shapes [affine_map<() -> (9)>, affine_map<() -> (9)>, affine_map<() -> (1)>] {config = {tail = 1 : i64}}
    : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>, tensor<1xi32>)
  return %0#1 : tensor<9xi32>
}
