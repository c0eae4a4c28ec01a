// RUN: greta-opt %s | greta-opt | FileCheck %s

// The ops of Triton IR in the syntax of Triton 3.6 to 3.9 come back as they were, or as 3.9 says it; defaults are not printed.

// CHECK-LABEL: tt.func public @values(
tt.func public @values(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>, %x: tensor<32xf32>, %i: tensor<32xi32>, %m: tensor<32xi1>, %t: tensor<32x!tt.ptr<f32>>, %b: i1, %f: f32, %n: i32, %u: i64,
    %w: tensor<32x2xf32>, %one: tensor<1xf32>, %s: tensor<32x32xf32>, %h: tensor<32x32xf16>, %e: tensor<32x32xi8>, %g: tensor<64x32xf8E5M2>, %k: tensor<32x2xi8>) attributes {noinline = false} {
  // CHECK: tt.get_program_id x : i32
  %v0 = tt.get_program_id x : i32
  // CHECK: tt.get_num_programs y : i32
  %v1 = tt.get_num_programs y : i32
  // CHECK: tt.make_range {end = 64 : i32, start = 32 : i32} : tensor<32xi32>
  %v2 = tt.make_range {end = 64 : i32, start = 32 : i32} : tensor<32xi32>
  // CHECK: tt.splat %{{[a-z0-9]+}} : f32 -> tensor<32xf32>
  %v3 = tt.splat %f : f32 -> tensor<32xf32>
  // CHECK: tt.splat %{{[a-z0-9]+}} : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %v4 = tt.splat %p : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  // CHECK: tt.unsplat %{{[a-z0-9]+}} : tensor<1xf32>
  %v5 = tt.unsplat %one : tensor<1xf32>
  // CHECK: tt.expand_dims %{{[a-z0-9]+}} {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %v6 = tt.expand_dims %i {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  // CHECK: tt.broadcast %{{[a-z0-9]+}} : tensor<1xf32> -> tensor<32xf32>
  %v7 = tt.broadcast %one : tensor<1xf32> -> tensor<32xf32>
  // CHECK: tt.reshape %{{[a-z0-9]+}} : tensor<32xf32> -> tensor<4x8xf32>
  %v8 = tt.reshape %x : tensor<32xf32> -> tensor<4x8xf32>
  // CHECK: tt.reshape %{{[a-z0-9]+}} allow_reorder efficient_layout : tensor<32xf32> -> tensor<4x8xf32>
  %v9 = tt.reshape %x allow_reorder efficient_layout : tensor<32xf32> -> tensor<4x8xf32>
  // CHECK: tt.trans %{{[a-z0-9]+}} {order = array<i32: 1, 0>} : tensor<32x2xf32> -> tensor<2x32xf32>
  %v10 = tt.trans %w {order = array<i32: 1, 0>} : tensor<32x2xf32> -> tensor<2x32xf32>
  // CHECK: tt.join %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<32xf32> -> tensor<32x2xf32>
  %v11 = tt.join %x, %x : tensor<32xf32> -> tensor<32x2xf32>
  // CHECK: tt.cat %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<32xf32> -> tensor<64xf32>
  %v12 = tt.cat %x, %x : tensor<32xf32> -> tensor<64xf32>
  // CHECK: tt.gather %{{[a-z0-9]+}}[%{{[a-z0-9]+}}] {axis = 0 : i32} : (tensor<32xf32>, tensor<32xi32>) -> tensor<32xf32>
  %v13 = tt.gather %x[%i] {axis = 0 : i32} : (tensor<32xf32>, tensor<32xi32>) -> tensor<32xf32>
  // CHECK: tt.gather %{{[a-z0-9]+}}[%{{[a-z0-9]+}}] {axis = 0 : i32, efficient_layout} : (tensor<32xf32>, tensor<32xi32>) -> tensor<32xf32>
  %v14 = tt.gather %x[%i] {axis = 0 : i32, efficient_layout} : (tensor<32xf32>, tensor<32xi32>) -> tensor<32xf32>
  // CHECK: tt.histogram %{{[a-z0-9]+}} : tensor<32xi32> -> tensor<16xi32>
  %v15 = tt.histogram %i : tensor<32xi32> -> tensor<16xi32>
  // CHECK: tt.histogram %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<32xi32> -> tensor<16xi32>
  %v16 = tt.histogram %i, %m : tensor<32xi32> -> tensor<16xi32>
  // CHECK: tt.dot %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>
  %v17 = tt.dot %s, %s, %s : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>
  // CHECK: tt.dot %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, inputPrecision = tf32 {maxNumImpreciseAcc = 1073741824 : i32} : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
  %v18 = tt.dot %h, %h, %s, inputPrecision = tf32 {maxNumImpreciseAcc = 1073741824 : i32} : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
  // CHECK: tt.dot_scaled %{{[a-z0-9]+}} scale %{{[a-z0-9]+}}, %{{[a-z0-9]+}} scale %{{[a-z0-9]+}}, %{{[a-z0-9]+}} lhs = e2m1 rhs = e5m2 : tensor<32x32xi8>, tensor<32x2xi8> * tensor<64x32xf8E5M2>, tensor<32x2xi8> -> tensor<32x32xf32>
  %v19 = tt.dot_scaled %e scale %k, %g scale %k, %s lhs = e2m1 rhs = e5m2 {fastMath = false} : tensor<32x32xi8>, tensor<32x2xi8> * tensor<64x32xf8E5M2>, tensor<32x2xi8> -> tensor<32x32xf32>
  // CHECK: tt.dot_scaled %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} lhs = e2m1 rhs = e5m2 {fastMath = true, lhs_k_pack = false} : tensor<32x32xi8> * tensor<64x32xf8E5M2> -> tensor<32x32xf32>
  %v20 = tt.dot_scaled %e, %g, %s lhs = e2m1 rhs = e5m2 {fastMath = true, lhs_k_pack = false} : tensor<32x32xi8> * tensor<64x32xf8E5M2> -> tensor<32x32xf32>
  // CHECK: tt.bitcast %{{[a-z0-9]+}} : tensor<32xf32> -> tensor<32xi32>
  %v21 = tt.bitcast %x : tensor<32xf32> -> tensor<32xi32>
  // CHECK: tt.bitcast %{{[a-z0-9]+}} : !tt.ptr<f32> -> !tt.ptr<i8>
  %v22 = tt.bitcast %p : !tt.ptr<f32> -> !tt.ptr<i8>
  // CHECK: tt.fp_to_fp %{{[a-z0-9]+}}, rounding = rtz : tensor<32xf32> -> tensor<32xf16>
  %v23 = tt.fp_to_fp %x, rounding = rtz : tensor<32xf32> -> tensor<32xf16>
  // CHECK: tt.fp_to_fp %{{[a-z0-9]+}} : tensor<32x32xf16> -> tensor<32x32xf32>
  %v24 = tt.fp_to_fp %h : tensor<32x32xf16> -> tensor<32x32xf32>
  // CHECK: tt.mulhiui %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<32xi32>
  %v25 = tt.mulhiui %i, %i : tensor<32xi32>
  // CHECK: tt.precise_divf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<32xf32>
  %v26 = tt.precise_divf %x, %x : tensor<32xf32>
  // CHECK: tt.approx_divf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : f32
  %v27 = tt.approx_divf %f, %f : f32
  // CHECK: tt.precise_sqrt %{{[a-z0-9]+}} : f32
  %v28 = tt.precise_sqrt %f : f32
  // CHECK: tt.clampf %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, propagateNan = none : tensor<32xf32>
  %v29 = tt.clampf %x, %x, %x, propagateNan = none : tensor<32xf32>
  // CHECK: tt.extern_elementwise %{{[a-z0-9]+}}, %{{[a-z0-9]+}} {libname = "", libpath = "", pure = true, symbol = "__nv_powf"} : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %v30 = tt.extern_elementwise %x, %x {libname = "", libpath = "", pure = true, symbol = "__nv_powf"} : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  // CHECK: tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %{{[a-z0-9]+}} : tensor<32xf32> -> tensor<32xf32>
  %v31 = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : tensor<32xf32> -> tensor<32xf32>
  // CHECK: tt.addptr %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : !tt.ptr<f32>, i32
  %v32 = tt.addptr %p, %n : !tt.ptr<f32>, i32
  // CHECK: tt.addptr %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %v33 = tt.addptr %t, %i : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  // CHECK: tt.ptr_to_int %{{[a-z0-9]+}} : tensor<32x!tt.ptr<f32>> -> tensor<32xi64>
  %v34 = tt.ptr_to_int %t : tensor<32x!tt.ptr<f32>> -> tensor<32xi64>
  // CHECK: tt.int_to_ptr %{{[a-z0-9]+}} : i64 -> !tt.ptr<f32>
  %v35 = tt.int_to_ptr %u : i64 -> !tt.ptr<f32>
  // CHECK: tt.load %{{[a-z0-9]+}} : !tt.ptr<f32>
  %v36 = tt.load %p : !tt.ptr<f32>
  // CHECK: tt.load %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<32x!tt.ptr<f32>>
  %v37 = tt.load %t, %m, %x : tensor<32x!tt.ptr<f32>>
  // CHECK: tt.load %{{[a-z0-9]+}} {isVolatile = true} : !tt.ptr<i32>
  %v38 = tt.load %q {isVolatile = true} : !tt.ptr<i32>
  // CHECK: tt.load %{{[a-z0-9]+}}, %{{[a-z0-9]+}} cacheModifier = cg evictionPolicy = evict_first : tensor<32x!tt.ptr<f32>>
  %v39 = tt.load %t, %m cacheModifier = cg evictionPolicy = evict_first : tensor<32x!tt.ptr<f32>>
  // CHECK: tt.load %{{[a-z0-9]+}} {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>} : tensor<32x!tt.ptr<f32>>
  %v40 = tt.load %t {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>} : tensor<32x!tt.ptr<f32>>
  // CHECK: tt.atomic_rmw add, acq_rel, gpu, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : (!tt.ptr<i32>, i32, i1) -> i32
  %v41 = tt.atomic_rmw add, acq_rel, gpu, %q, %n, %b : (!tt.ptr<i32>, i32, i1) -> i32
  // CHECK: tt.atomic_rmw fadd, relaxed, sys, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> tensor<32xf32>
  %v42 = tt.atomic_rmw fadd, relaxed, sys, %t, %x : (tensor<32x!tt.ptr<f32>>, tensor<32xf32>) -> tensor<32xf32>
  // CHECK: tt.atomic_cas acq_rel, cta, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : (!tt.ptr<i32>, i32, i32) -> i32
  %v43 = tt.atomic_cas acq_rel, cta, %q, %n, %n : (!tt.ptr<i32>, i32, i32) -> i32
  // CHECK: tt.atomic_load acquire, gpu, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : (!tt.ptr<f32>, i1) -> f32
  %v44 = tt.atomic_load acquire, gpu, %p, %b : (!tt.ptr<f32>, i1) -> f32
  // CHECK: tt.atomic_load acquire, gpu, %{{[a-z0-9]+}} : (!tt.ptr<f32>) -> f32
  %v45 = tt.atomic_load acquire, gpu, %p : (!tt.ptr<f32>) -> f32
  // CHECK: tt.print " x is: " {hex = false, isSigned = array<i32: 0, 1>} : %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<32xf32>, i32
  tt.print " x is: " {hex = false, isSigned = array<i32: 0, 1>} : %x, %n : tensor<32xf32>, i32
  // CHECK: tt.print "here" {hex = false, isSigned = array<i32>}
  tt.print "here" {hex = false, isSigned = array<i32>}
  // CHECK: tt.assert %{{[a-z0-9]+}}, "n must be positive" : tensor<32xi1>
  tt.assert %m, "n must be positive" : tensor<32xi1>
  // CHECK: ttg.barrier all
  ttg.barrier all
  // CHECK: gpu.barrier
  gpu.barrier
  // CHECK: llvm.intr.assume %{{[a-z0-9]+}} : i1
  llvm.intr.assume %b : i1
  // CHECK: tt.store %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : !tt.ptr<f32>
  tt.store %p, %f, %b : !tt.ptr<f32>
  // CHECK: tt.store %{{[a-z0-9]+}}, %{{[a-z0-9]+}} cacheModifier = wt : tensor<32x!tt.ptr<f32>>
  tt.store %t, %x cacheModifier = wt : tensor<32x!tt.ptr<f32>>
  // CHECK: tt.store %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} {cachePolicy = #tt.cache_policy<cache_modifier = wt, eviction_policy = evict_normal>} : tensor<32x!tt.ptr<f32>>
  tt.store %t, %x, %m {cachePolicy = #tt.cache_policy<cache_modifier = wt, eviction_policy = evict_normal>} : tensor<32x!tt.ptr<f32>>
  // CHECK: tt.atomic_store release, gpu, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : !tt.ptr<f32>
  tt.atomic_store release, gpu, %p, %f, %b : !tt.ptr<f32>
  // CHECK: tt.split %{{.*}} : tensor<32x2xf32> -> tensor<32xf32>
  %first, %second = tt.split %w : tensor<32x2xf32> -> tensor<32xf32>
  // CHECK: tt.elementwise_inline_asm "f" {{.*}} : tensor<32xf32>, tensor<32xi32> -> tensor<32xf32>, tensor<32xi32>
  %a:2 = tt.elementwise_inline_asm "f" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x, %i : tensor<32xf32>, tensor<32xi32> -> tensor<32xf32>, tensor<32xi32>
  tt.return
}

// CHECK-LABEL: tt.func public @regions(
tt.func public @regions(%x: tensor<8x16xf32> {tt.divisibility = 16 : i32}, %n: i32) {
  // CHECK: "tt.reduce"(%{{.*}}) <{axis = 1 : i32}> ({
  // CHECK: tt.reduce.return %{{.*}} : f32
  %0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %sum = arith.addf %a, %b : f32
    tt.reduce.return %sum : f32
  }) : (tensor<8x16xf32>) -> tensor<8xf32>
  // CHECK: "tt.scan"(%{{.*}}) <{axis = 1 : i32, reverse = true}> ({
  // CHECK: tt.scan.return %{{.*}} : f32
  %1 = "tt.scan"(%x) <{axis = 1 : i32, reverse = true}> ({
  ^bb0(%a: f32, %b: f32):
    %sum = arith.addf %a, %b : f32
    tt.scan.return %sum : f32
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: "tt.map_elementwise"(%{{.*}}) <{pack = 1 : i32}> ({
  // CHECK: tt.map_elementwise.return %{{.*}} : f32
  %2 = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
  ^bb0(%a: f32):
    %twice = arith.addf %a, %a : f32
    tt.map_elementwise.return %twice : f32
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: tt.call @"kernels.f__fp32__(1,)cconstexpr_2_d_0_"(%{{.*}}) : (i32) -> f32
  %3 = tt.call @"kernels.f__fp32__(1,)cconstexpr_2_d_0_"(%n) : (i32) -> f32
  // CHECK: scf.for unsigned
  scf.for unsigned %i = %n to %n step %n : i32 {
    scf.yield
  } {tt.num_stages = 3 : i32}
  tt.return
}
// CHECK: tt.func private @"kernels.f__fp32__(1,)cconstexpr_2_d_0_"(
tt.func private @"kernels.f__fp32__(1,)cconstexpr_2_d_0_"(%n: i32) -> f32 attributes {noinline = true} {
  %0 = arith.sitofp %n : i32 to f32
  // CHECK: tt.return %{{.*}} : f32
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func public @descriptors(
tt.func public @descriptors(%p: !tt.ptr<f32>, %n: i32, %u: i64, %rows: tensor<16xi32>, %host: !tt.tensordesc<tensor<1x32xf32>>) {
  // CHECK: tt.make_tensor_descriptor %{{.*}}, {{\[.*\]}}, {{\[.*\]}} {padding = 2 : i32} : <f32>, <16x16xf32>
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%u, %u] {padding = 2 : i32} : <f32>, <16x16xf32>
  // Triton 3.6 and 3.7 print this form.
  // CHECK: tt.make_tensor_descriptor %{{.*}} : <f32>, <16x16xf32>
  %e = tt.make_tensor_descriptor %p, [%n, %n], [%u, %u] : <f32>, <tensor<16x16xf32>>
  // CHECK: tt.descriptor_load %{{.*}}[%{{.*}}, %{{.*}}] : !tt.tensordesc<16x16xf32> -> tensor<16x16xf32>
  %0 = tt.descriptor_load %d[%n, %n] : !tt.tensordesc<16x16xf32> -> tensor<16x16xf32>
  // CHECK: tt.descriptor_store %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} : !tt.tensordesc<16x16xf32>, tensor<16x16xf32>
  tt.descriptor_store %e[%n, %n], %0 : !tt.tensordesc<tensor<16x16xf32>>, tensor<16x16xf32>
  // CHECK: tt.descriptor_reduce add, %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} : !tt.tensordesc<16x16xf32>, tensor<16x16xf32>
  tt.descriptor_reduce add, %e[%n, %n], %0 : !tt.tensordesc<16x16xf32>, tensor<16x16xf32>
  // CHECK: tt.descriptor_gather %{{.*}}[%{{.*}}, %{{.*}}] : (!tt.tensordesc<1x32xf32>, tensor<16xi32>, i32) -> tensor<16x32xf32>
  %1 = tt.descriptor_gather %host[%rows, %n] : (!tt.tensordesc<1x32xf32>, tensor<16xi32>, i32) -> tensor<16x32xf32>
  // CHECK: tt.descriptor_scatter %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} : !tt.tensordesc<1x32xf32>, tensor<16xi32>, i32, tensor<16x32xf32>
  tt.descriptor_scatter %host[%rows, %n], %1 : !tt.tensordesc<1x32xf32>, tensor<16xi32>, i32, tensor<16x32xf32>
  tt.return
}
