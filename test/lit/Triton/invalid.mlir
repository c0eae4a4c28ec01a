// RUN: greta-opt --split-input-file --verify-diagnostics %s

tt.func public @block_pointer(%p: !tt.ptr<f32>) {
  // expected-error @below {{'tt.make_tensor_ptr' is no op of the Triton IR of 3.6 to 3.9: block pointers went with Triton 3.8, say tl.make_tensor_descriptor}}
  %0 = tt.make_tensor_ptr %p, [], [], [] {order = array<i32>} : <tensor<4xf32>>
  tt.return
}

// -----

tt.func public @newer(%p: !tt.ptr<i32>) {
  // expected-error @below {{'tt.atomic_wait' is no op of the Triton IR of 3.6 to 3.9: print the kernel with one of these}}
  tt.atomic_wait acquire, gpu, %p : !tt.ptr<i32>
  tt.return
}

// -----

// expected-error @below {{a pointer into address space 3; Triton IR points into global memory, which is 1}}
tt.func public @shared(%p: !tt.ptr<f32, 3>) {
  tt.return
}

// -----

// expected-error @below {{a pointer to 'tensor<4xf32>'; kernels point to numbers: keep addresses as int64, and say tl.make_tensor_descriptor for blocks in memory}}
tt.func public @block(%p: !tt.ptr<tensor<4xf32>>) {
  tt.return
}

// -----

// expected-error @below {{a descriptor is of blocks of numbers, such as <16x32xf16>}}
tt.func public @descriptor(%p: !tt.tensordesc<f32>) {
  tt.return
}

// -----

tt.func public @mask(%p: tensor<4x!tt.ptr<f32>>, %m: tensor<8xi1>) { // expected-note {{prior use here}}
  // expected-error @below {{use of value '%m' expects different type than prior uses}}
  %0 = tt.load %p, %m : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

tt.func private @values(%n: i32) -> i32 {
  // expected-error @below {{returns other values than its function, which has 1 results}}
  tt.return
}
