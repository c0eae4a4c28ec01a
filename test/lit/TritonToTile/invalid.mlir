// RUN: greta-opt --split-input-file --verify-diagnostics --triton-to-tile %s

tt.func public @asm(%p: !tt.ptr<f32>, %x: f32) {
  // expected-error @below {{is assembly of another vendor's GPU, 'mov.b32 $0, $1;'; write it in tl, or branch on the target}}
  %0 = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.return
}

// -----

tt.func public @library(%p: !tt.ptr<f32>, %x: f32) {
  // expected-error @below {{calls '__nv_tgammaf' of a device library; of libdevice there is what arith and math have, docs/guide/triton.md has the list}}
  %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_tgammaf"} : (f32) -> f32
  tt.return
}

// -----

tt.func public @foreign(%p: !tt.ptr<f32>, %x: i32) {
  // expected-error @below {{has no meaning in a block program; kernels are of Triton IR, arith, math and scf}}
  %0 = llvm.intr.ctpop(%x) : (i32) -> i32
  tt.return
}

// -----

tt.func public @axis(%p: !tt.ptr<f32>) {
  // expected-error @below {{names axis 'w'; a grid has x, y and z}}
  %0 = tt.get_program_id w : i32
  tt.return
}

// -----

tt.func public @range(%p: !tt.ptr<f32>) {
  // expected-error @below {{counts from 0 to 4 in 'tensor<8xi32>'}}
  %0 = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<8xi32>
  tt.return
}

// -----

tt.func public @captures(%p: !tt.ptr<f32>, %f: f32) {
  %x = tt.splat %f : f32 -> tensor<4xf32>
  // expected-error @below {{combines elements with a value from outside of its function; it takes their values alone}}
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %f : f32
    tt.reduce.return %s : f32
  }) : (tensor<4xf32>) -> f32
  tt.return
}

// -----

tt.func public @pack(%p: !tt.ptr<f32>, %f: f32) {
  %x = tt.splat %f : f32 -> tensor<4xf32>
  // expected-error @below {{maps a function of 2 elements on 1 blocks, 4 elements at once}}
  %0 = "tt.map_elementwise"(%x) <{pack = 4 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    tt.map_elementwise.return %a, %b : f32, f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func public @neighbours(%p: !tt.ptr<f32>, %f: f32) {
  %x = tt.splat %f : f32 -> tensor<1xf32>
  // expected-error @below {{maps a function of 2 neighbours on 'tensor<1xf32>'}}
  %0 = "tt.map_elementwise"(%x) <{pack = 2 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    tt.map_elementwise.return %a, %b : f32, f32
  }) : (tensor<1xf32>) -> tensor<1xf32>
  tt.return
}

// -----

tt.func public @asserts_in_a_branch(%p: !tt.ptr<f32>, %f: f32) {
  %x = tt.splat %f : f32 -> tensor<4xf32>
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf olt, %a, %b : f32
    scf.if %c {
      // expected-error @below {{asserts in a branch of a function that combines elements; make the branch part of the condition}}
      tt.assert %c, "x" : i1
    }
    tt.reduce.return %a : f32
  }) : (tensor<4xf32>) -> f32
  tt.return
}

// -----

tt.func public @loop_of_an_element(%p: !tt.ptr<f32>, %f: f32, %n: i32) {
  %x = tt.splat %f : f32 -> tensor<4xf32>
  %0 = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  ^bb0(%a: f32):
    // expected-error @below {{'scf.for' has no meaning for every element of a block at once}}
    %r = scf.for %i = %n to %n step %n iter_args(%s = %a) -> (f32) : i32 {
      scf.yield %s : f32
    }
    tt.map_elementwise.return %r : f32
  }) : (tensor<4xf32>) -> tensor<4xf32>
  tt.return
}

// -----

tt.func public @narrow(%p: !tt.ptr<f16>) {
  // expected-error @below {{loads values of 16 bits that others may store meanwhile; this needs 32 or 64}}
  %0 = tt.load %p {isVolatile = true} : !tt.ptr<f16>
  tt.return
}

// -----

tt.func public @order(%p: !tt.ptr<i32>, %n: i32) {
  // expected-error @below {{is seq_cst in scope gpu; atomics are relaxed, acquire, release or acq_rel, in scope cta, gpu or sys}}
  %0 = tt.atomic_rmw add, seq_cst, gpu, %p, %n : (!tt.ptr<i32>, i32) -> i32
  tt.return
}

// -----

tt.func public @kind(%p: !tt.ptr<i32>, %n: i32) {
  // expected-error @below {{has kind 'nand'; atomics are add, fadd, and, or, xor, exch, max, min, umax and umin}}
  %0 = tt.atomic_rmw nand, relaxed, gpu, %p, %n : (!tt.ptr<i32>, i32) -> i32
  tt.return
}

// -----

tt.func public @poll_for_a_time(%p: !tt.ptr<i32>, %n: i32, %t: i64) {
  // expected-error @below {{polls for a time, and kernels have no clock; poll one pointer without a timeout}}
  %0 = tt.atomic_poll acquire, gpu, %p, %n timeout %t : !tt.ptr<i32>, i32 -> i1
  tt.return
}

// -----

tt.func public @poll_block(%p: !tt.ptr<i32>, %n: i32) {
  %q = tt.splat %p : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
  %m = tt.splat %n : i32 -> tensor<4xi32>
  // expected-error @below {{polls a block of pointers; poll one pointer without a timeout}}
  %0 = tt.atomic_poll acquire, gpu, %q, %m : tensor<4x!tt.ptr<i32>>, tensor<4xi32> -> tensor<4xi1>
  tt.return
}

// -----

tt.func public @rounding(%p: !tt.ptr<f32>, %f: f32) {
  // expected-error @below {{rounds by 'rs'; floats round to the nearest (rtne) or towards zero (rtz)}}
  %0 = tt.fp_to_fp %f, rounding = rs : f32 -> f16
  tt.return
}

// -----

tt.func public @format(%p: !tt.ptr<f32>, %f: f32, %i: i8) {
  %c = tt.splat %f : f32 -> tensor<16x16xf32>
  %a = tt.splat %i : i8 -> tensor<16x16xi8>
  // expected-error @below {{multiplies 'tensor<16x16xi8>' as 'e3m2'; operands are e2m1 in bytes, at least eight along the packed dimension, e4m3, e5m2, bf16 or fp16}}
  %0 = tt.dot_scaled %a, %a, %c lhs = e3m2 rhs = e4m3 : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func public @few_packed(%p: !tt.ptr<f32>, %f: f32, %i: i8) {
  %c = tt.splat %f : f32 -> tensor<4x16xf32>
  %a = tt.splat %i : i8 -> tensor<2x32xi8>
  %b = tt.splat %i : i8 -> tensor<32x16xi8>
  // expected-error @below {{multiplies 'tensor<2x32xi8>' as 'e2m1'; operands are e2m1 in bytes, at least eight along the packed dimension, e4m3, e5m2, bf16 or fp16}}
  %0 = tt.dot_scaled %a, %b, %c lhs = e2m1 rhs = e4m3 {lhs_k_pack = false} : tensor<2x32xi8> * tensor<32x16xi8> -> tensor<4x16xf32>
  tt.return
}

// -----

tt.func public @scales(%p: !tt.ptr<f32>, %f: f32, %i: i8) {
  %c = tt.splat %f : f32 -> tensor<16x16xf32>
  %a = tt.splat %i : i8 -> tensor<16x32xi8>
  %b = tt.splat %i : i8 -> tensor<32x16xi8>
  %s = tt.splat %i : i8 -> tensor<8x1xi8>
  // expected-error @below {{scales an operand of 'tensor<16x32xf32>' by 'tensor<8x1xi8>'; scales are [M, K / n] and [N, K / n]}}
  %0 = tt.dot_scaled %a scale %s, %b, %c lhs = e4m3 rhs = e4m3 : tensor<16x32xi8>, tensor<8x1xi8> * tensor<32x16xi8> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func public @scale_type(%p: !tt.ptr<f32>, %f: f32, %i: i8, %n: i32) {
  %c = tt.splat %f : f32 -> tensor<16x16xf32>
  %a = tt.splat %i : i8 -> tensor<16x32xi8>
  %b = tt.splat %i : i8 -> tensor<32x16xi8>
  %s = tt.splat %n : i32 -> tensor<16x1xi32>
  // expected-error @below {{has scales of 'i32'; they are bytes (e8m0) or floats}}
  %0 = tt.dot_scaled %a scale %s, %b, %c lhs = e4m3 rhs = e4m3 : tensor<16x32xi8>, tensor<16x1xi32> * tensor<32x16xi8> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func public @line(%p: !tt.ptr<f32>, %f: f32, %i: i8) {
  %c = tt.splat %f : f32 -> tensor<16xf32>
  %a = tt.splat %i : i8 -> tensor<16xi8>
  // expected-error @below {{makes 'tensor<16xf32>'; a dot is a matrix}}
  %0 = tt.dot_scaled %a, %a, %c lhs = e4m3 rhs = e4m3 : tensor<16xi8> * tensor<16xi8> -> tensor<16xf32>
  tt.return
}

// -----

tt.func public @padded_otherwise(%p: !tt.ptr<f32>, %n: i32, %s: i64) {
  %d = tt.make_tensor_descriptor %p, [%n], [%s] : <f32>, <16xf32>
  // expected-error @below {{a descriptor pads otherwise than another one of this kernel, in which a loop or an if hands descriptors on; pad alike, or make each where it is used}}
  %f = tt.make_tensor_descriptor %p, [%n], [%s] {padding = 2 : i32} : <f32>, <16xf32>
  %0 = scf.for %i = %n to %n step %n iter_args(%e = %d) -> (!tt.tensordesc<16xf32>) : i32 {
    scf.yield %f : !tt.tensordesc<16xf32>
  }
  tt.return
}

// -----

tt.func public @rank(%p: !tt.ptr<f32>, %n: i32, %s: i64) {
  %d = tt.make_tensor_descriptor %p, [%n], [%s] : <f32>, <16x16xf32>
  // expected-error @below {{uses a descriptor of 'tensor<16x16xf32>' with 1 extents and 1 strides at 2 indices}}
  %1 = tt.descriptor_load %d[%n, %n] : !tt.tensordesc<16x16xf32> -> tensor<16x16xf32>
  tt.return
}

// -----

tt.func public @reduce_kind(%p: !tt.ptr<f32>, %n: i32, %s: i64) {
  %x = arith.constant dense<1.0> : tensor<16xf32>
  %d = tt.make_tensor_descriptor %p, [%n], [%s] : <f32>, <16xf32>
  // expected-error @below {{combines 'f32' in memory by 'max'; descriptors add, and integers and, or, xor, max and min, too}}
  tt.descriptor_reduce max, %d[%n], %x : !tt.tensordesc<16xf32>, tensor<16xf32>
  tt.return
}

// -----

tt.func public @undefined(%p: !tt.ptr<f32>) {
  // expected-error @below {{calls 'nowhere', which this text does not define}}
  tt.call @nowhere() : () -> ()
  tt.return
}

// -----

tt.func public @other_types(%p: !tt.ptr<f32>, %n: i32) {
  // expected-error @below {{calls 'helper' with other types than it has}}
  tt.call @helper(%n) : (i32) -> ()
  tt.return
}
tt.func private @helper(%f: f32) {
  tt.return
}

// -----

tt.func public @recursive(%p: !tt.ptr<f32>, %n: i32) {
  tt.call @again(%n) : (i32) -> ()
  tt.return
}
tt.func private @again(%n: i32) {
  // expected-error @below {{calls 'again', which calls this: kernels have no stack, write it as a loop}}
  tt.call @again(%n) : (i32) -> ()
  tt.return
}

// -----

tt.func public @endless(%p: !tt.ptr<f32>) {
  cf.br ^bb1
^bb1:
  // expected-error @below {{a loop that never ends; give it a condition}}
  cf.br ^bb1
}

// -----

// expected-error @below {{kernel 'declared' has no body; kernels are defined}}
tt.func public @declared(%p: !tt.ptr<f32>)

// -----

// expected-error @below {{kernel 'returns' returns values; kernels store their results}}
tt.func public @returns(%n: i32) -> i32 {
  tt.return %n : i32
}

// -----

// expected-error @below {{argument 'arg0' is of type 'i128'; kernels take pointers, integers of 1, 8, 16, 32 and 64 bits, f16, bf16, f32 and f64}}
tt.func public @wide(%x: i128) {
  tt.return
}

// -----

tt.func public @several(%p: !tt.ptr<f32>, %f: f32) {
  %x = tt.splat %f : f32 -> tensor<4xf32>
  // expected-error @below {{takes the one element of 'tensor<4xf32>', which has 4}}
  %0 = tt.unsplat %x : tensor<4xf32>
  tt.return
}

// -----

tt.func public @arity(%p: !tt.ptr<f32>, %f: f32) {
  // expected-error @below {{calls '__nv_powf' of a device library}}
  %0 = tt.extern_elementwise %f {libname = "", libpath = "", pure = true, symbol = "__nv_powf"} : (f32) -> f32
  tt.return
}

// -----

tt.func public @flat(%d: !tt.tensordesc<1x32xf32>, %m: i32, %n: i32, %s: i64, %t: i64, %k: i32) {
  %rows = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  // expected-error @below {{moves 'tensor<512xf32>' at 2 indices}}
  %0 = tt.descriptor_gather %d[%rows, %k] : (!tt.tensordesc<1x32xf32>, tensor<16xi32>, i32) -> tensor<512xf32>
  tt.return
}

// -----

tt.func public @reduce_shape(%p: !tt.ptr<f32>, %n: i32, %s: i64) {
  %x = arith.constant dense<1.0> : tensor<8xf32>
  %d = tt.make_tensor_descriptor %p, [%n], [%s] : <f32>, <16xf32>
  // expected-error @below {{combines 'tensor<8xf32>' with blocks of another shape in memory}}
  tt.descriptor_reduce add, %d[%n], %x : !tt.tensordesc<16xf32>, tensor<8xf32>
  tt.return
}

// -----

tt.func public @stages(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @below {{has 'greta_tile.stages' (Triton IR's 'tt.num_stages') = "two"; the number of stages is an i32 of at least 0}}
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.yield
  } {tt.num_stages = "two"}
  tt.return
}
