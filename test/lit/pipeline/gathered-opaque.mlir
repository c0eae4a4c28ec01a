// Blocks that a convolution gathers go through shared memory where a matrix has no known layout, though their masks share blocks with their addresses.
// RUN: greta-translate --greta-to-package --targets=vulkan:intel %s -o %t.greta

func.func @first(%x: tensor<2x24x8x8xf16>, %w: tensor<64x24x3x3xf16>) -> tensor<2x64x8x8xf16> {
  %0 = greta.conv2d %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilations = [1, 1], groups = 1, layout = "nchw"} : tensor<2x24x8x8xf16>, tensor<64x24x3x3xf16> -> tensor<2x64x8x8xf16>
  return %0 : tensor<2x64x8x8xf16>
}

func.func @last(%x: tensor<2x8x8x24xf16>, %w: tensor<64x3x3x24xf16>) -> tensor<2x8x8x64xf16> {
  %0 = greta.conv2d %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilations = [1, 1], groups = 1} : tensor<2x8x8x24xf16>, tensor<64x3x3x24xf16> -> tensor<2x8x8x64xf16>
  return %0 : tensor<2x8x8x64xf16>
}
