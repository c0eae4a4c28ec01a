// A block program whose blocks fit only where matrix instructions leave them in registers has no variant without: the package says so. A block that changes its
// layout passes through shared memory in parts, but a block to gather from lies there as a whole.
// RUN: greta-translate --greta-to-package --targets=vulkan:nvidia %s -o %t.greta 2> %t.err
// RUN: FileCheck %s < %t.err
// RUN: greta-run %t.greta --inspect | FileCheck %s --check-prefix=VARIANTS
// CHECK: warning: 'attend' needs cooperative matrices on vulkan:nvidia: {{.*}}needs {{[0-9]+}} bytes where a workgroup of vulkan:nvidia has 49152 of shared memory
// VARIANTS: vulkan-nvidia-coopmat:
// VARIANTS-NOT: vulkan-nvidia
greta_tile.func @attend_kernel(%q: !greta_tile.ptr<f16>, %k: !greta_tile.ptr<f16>, %v: !greta_tile.ptr<f16>, %n: i32, %y: !greta_tile.ptr<f32>) attributes {waves = 4 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %empty = arith.constant dense<0.0> : tensor<64x192xf32>
  %qs = greta_tile.load %q[%zero, %zero] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
  %ks = greta_tile.load %k[%zero, %zero] strides [64, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x64xf16>
  %vs = greta_tile.load %v[%zero, %zero] strides [192, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x192xf16>
  %sum = scf.for %i = %zero to %n step %one iter_args(%acc = %empty) -> tensor<64x192xf32> : i32 {
    %turn = arith.sitofp %i : i32 to f32
    %turns = greta_tile.splat %turn : tensor<64x64xf32>
    %s = greta_tile.dot %qs, %ks, %turns : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
    %o = greta_tile.dot %p, %vs, %acc : tensor<64x64xf16>, tensor<64x192xf16> -> tensor<64x192xf32>
    scf.yield %o : tensor<64x192xf32>
  }
  %row = greta_tile.iota 0 : tensor<64x192xi32>
  %last = arith.constant dense<63> : tensor<64x192xi32>
  %other = arith.subi %last, %row : tensor<64x192xi32>
  %turned = greta_tile.gather %sum[%other] axis 0 : tensor<64x192xf32>[tensor<64x192xi32>] -> tensor<64x192xf32>
  greta_tile.store %turned, %y[%zero, %zero] strides [192, 1] bounds [] : tensor<64x192xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @attend(%q: tensor<64x64xf16>, %k: tensor<64x64xf16>, %v: tensor<64x192xf16>, %n: i32) -> tensor<64x192xf32> {
  %0 = greta_tile.launch @attend_kernel grid affine_map<()[n] -> (1)> scalars affine_map<()[n] -> ()> (%q, %k, %v, %n) shapes [affine_map<()[n] -> (64, 192)>]
       : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x192xf16>, i32) -> tensor<64x192xf32>
  return %0 : tensor<64x192xf32>
}
