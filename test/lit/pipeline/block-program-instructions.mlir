// A block program whose dots name cooperative matrices, as it is printed behind greta-to-tile, has no variant without them: the package says so, and the runtime reads it.
// RUN: greta-translate --greta-to-package --targets=vulkan:nvidia %s -o %t.greta 2> %t.err
// RUN: FileCheck %s < %t.err
// RUN: greta-run %t.greta --inspect | FileCheck %s --check-prefix=VARIANTS
// CHECK: warning: 'product' needs cooperative matrices on vulkan:nvidia: its dots name them ('matrix')
// VARIANTS: vulkan-nvidia-coopmat:
// VARIANTS-NOT: vulkan-nvidia
#matrix = #greta_tile.matrix<"coopmat", a = <{reg = [[0, 1], [0, 8], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], wave = [], rep = [1, 1]}>,
                             b = <{reg = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], wave = [], rep = [1, 1]}>,
                             acc = <{reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], wave = [], rep = [1, 1]}>>
greta_tile.func @product_kernel(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %c: !greta_tile.ptr<f32>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  %empty = arith.constant dense<0.0> : tensor<16x8xf32>
  %as = greta_tile.load %a[%zero, %zero] strides [64, 1] bounds [] : <f16> -> tensor<16x64xf16>
  %bs = greta_tile.load %b[%zero, %zero] strides [8, 1] bounds [] : <f16> -> tensor<64x8xf16>
  %cs = greta_tile.dot %as, %bs, %empty {matrix = #matrix} : tensor<16x64xf16>, tensor<64x8xf16> -> tensor<16x8xf32>
  greta_tile.store %cs, %c[%zero, %zero] strides [8, 1] bounds [] : tensor<16x8xf32> -> <f32>
  greta_tile.return
}

func.func @product(%a: tensor<16x64xf16>, %b: tensor<64x8xf16>) -> tensor<16x8xf32> {
  %0 = greta_tile.launch @product_kernel grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%a, %b) shapes [affine_map<() -> (16, 8)>]
       : (tensor<16x64xf16>, tensor<64x8xf16>) -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}
