// greta.conv2d and greta.patches refuse these: the operand, the limit and the remedy.
// RUN: greta-opt %s --split-input-file --verify-diagnostics -o /dev/null

func.func @layout(%x: tensor<1x8x8x4xf16>, %w: tensor<8x3x3x4xf16>) {
  // expected-error @below {{'layout' is "chwn"; it is "nhwc" or "nchw"}}
  %0 = greta.conv2d %x, %w {layout = "chwn"} : tensor<1x8x8x4xf16>, tensor<8x3x3x4xf16> -> tensor<1x6x6x8xf16>
  return
}
// -----
func.func @rank(%x: tensor<8x8x4xf16>, %w: tensor<8x3x3x4xf16>) {
  // expected-error @below {{'x' has rank 3; it is [B, H, W, C] of rank 4: reshape it}}
  %0 = greta.conv2d %x, %w : tensor<8x8x4xf16>, tensor<8x3x3x4xf16> -> tensor<1x6x6x8xf16>
  return
}
// -----
func.func @weights(%x: tensor<1x8x8x4xf16>, %w: tensor<8x3x3x4xbf16>) {
  // expected-error @below {{'w' has element type 'bf16'; beside 'x' of 'f16' it is 'f16': convert it with arith}}
  %0 = greta.conv2d %x, %w : tensor<1x8x8x4xf16>, tensor<8x3x3x4xbf16> -> tensor<1x6x6x8xf16>
  return
}
// -----
func.func @result(%x: tensor<1x8x8x4xf16>, %w: tensor<8x3x3x4xf16>) {
  // expected-error @below {{'result' has element type 'bf16'; beside 'x' of 'f16' it is 'f16' or 'f32': convert it with arith}}
  %0 = greta.conv2d %x, %w : tensor<1x8x8x4xf16>, tensor<8x3x3x4xf16> -> tensor<1x6x6x8xbf16>
  return
}
// -----
func.func @integers(%x: tensor<1x8x8x4xi8>, %w: tensor<8x3x3x4xi8>) {
  // expected-error @below {{'result' has element type 'i8'; beside 'x' of 'i8' it is 'i32': convert it with arith}}
  %0 = greta.conv2d %x, %w : tensor<1x8x8x4xi8>, tensor<8x3x3x4xi8> -> tensor<1x6x6x8xi8>
  return
}
// -----
func.func @strides(%x: tensor<1x8x8x4xf16>, %w: tensor<8x3x3x4xf16>) {
  // expected-error @below {{'strides' is [0, 1]; it has 2 numbers from 1 to 65535}}
  %0 = greta.conv2d %x, %w {strides = [0, 1]} : tensor<1x8x8x4xf16>, tensor<8x3x3x4xf16> -> tensor<1x6x6x8xf16>
  return
}
// -----
func.func @padding(%x: tensor<1x8x8x4xf16>, %w: tensor<8x3x3x4xf16>) {
  // expected-error @below {{'padding' is [1, 1]; it has 4 numbers from 0 to 65535}}
  %0 = greta.conv2d %x, %w {padding = [1, 1]} : tensor<1x8x8x4xf16>, tensor<8x3x3x4xf16> -> tensor<1x6x6x8xf16>
  return
}
// -----
func.func @dynamic(%x: tensor<1x8x8x?xf16>, %w: tensor<8x3x3x4xf16>) {
  // expected-error @below {{'w' is 'tensor<8x3x3x4xf16>' and 'x' 'tensor<1x8x8x?xf16>'; only B, H and W may be dynamic: give channels and taps in the types}}
  %0 = greta.conv2d %x, %w : tensor<1x8x8x?xf16>, tensor<8x3x3x4xf16> -> tensor<1x6x6x8xf16>
  return
}
// -----
func.func @empty(%x: tensor<1x8x8x4xf16>, %w: tensor<8x0x3x4xf16>) {
  // expected-error @below {{'w' is 'tensor<8x0x3x4xf16>'; its extents are from 1 to 65535}}
  %0 = greta.conv2d %x, %w : tensor<1x8x8x4xf16>, tensor<8x0x3x4xf16> -> tensor<1x6x6x8xf16>
  return
}
// -----
func.func @groups(%x: tensor<1x8x8x4xf16>, %w: tensor<8x3x3x4xf16>) {
  // expected-error @below {{'groups' is 2 with 'w' of 'tensor<8x3x3x4xf16>' and 'x' of 'tensor<1x8x8x4xf16>'; groups divide KO, and C is groups times the channels of 'w'}}
  %0 = greta.conv2d %x, %w {groups = 2} : tensor<1x8x8x4xf16>, tensor<8x3x3x4xf16> -> tensor<1x6x6x8xf16>
  return
}
// -----
func.func @bias(%x: tensor<1x8x8x4xf16>, %w: tensor<8x3x3x4xf16>, %b: tensor<4xf16>) {
  // expected-error @below {{'bias' has 4 elements in dimension 0, not 8; it must match KO of 'w'}}
  %0 = greta.conv2d %x, %w, %b : tensor<1x8x8x4xf16>, tensor<8x3x3x4xf16>, tensor<4xf16> -> tensor<1x6x6x8xf16>
  return
}
// -----
func.func @reach(%x: tensor<1x8x4x4xf16>, %w: tensor<8x3x3x4xf16>) {
  // expected-error @below {{'x' has 4 columns, and the taps of 'w' reach over 5; give as many, by 'padding' too}}
  %0 = greta.conv2d %x, %w {dilations = [1, 2]} : tensor<1x8x4x4xf16>, tensor<8x3x3x4xf16> -> tensor<1x6x0x8xf16>
  return
}
// -----
func.func @positions(%x: tensor<1x8x8x4xf16>, %w: tensor<8x3x3x4xf16>) {
  // expected-error @below {{'result' has 4 elements in dimension 1, not 3; it must match the positions of the taps on 'x'}}
  %0 = greta.conv2d %x, %w {strides = [2, 1]} : tensor<1x8x8x4xf16>, tensor<8x3x3x4xf16> -> tensor<1x4x6x8xf16>
  return
}
// -----
func.func @patches_layout(%x: tensor<1x8x8x4xf16>) {
  // expected-error @below {{'layout' is "hwcn"; it is "nhwc" or "nchw"}}
  %0 = greta.patches %x {kernel = [3, 3], strides = [1, 1], padding = [0, 0, 0, 0], dilations = [1, 1], layout = "hwcn"} : tensor<1x8x8x4xf16> -> tensor<36x36xf16>
  return
}
// -----
func.func @patches_first(%x: tensor<1x4x8x8xf16>) {
  // expected-error @below {{has another result than greta.conv2d needs: write that op}}
  %0 = greta.patches %x {kernel = [3, 3], strides = [1, 1], padding = [0, 0, 0, 0], dilations = [1, 1], layout = "nchw"} : tensor<1x4x8x8xf16> -> tensor<1x2x36x36xf16>
  return
}
// -----
func.func @patches(%x: tensor<1x8x8x4xf16>) {
  // expected-error @below {{has another result than greta.conv2d needs: write that op}}
  %0 = greta.patches %x {kernel = [3, 3], strides = [1, 1], padding = [0, 0, 0, 0], dilations = [1, 1]} : tensor<1x8x8x4xf16> -> tensor<36x35xf16>
  return
}
// -----
func.func @kinds(%x: tensor<?x?x8x4xf16>, %w: tensor<8x3x3x4xf16>) {
  // expected-error @below {{'x' is 'tensor<?x?x8x4xf16>' and the result 'tensor<?x6x6x8xf16>'; dimension 1 is dynamic in both or in neither}}
  %0 = greta.conv2d %x, %w : tensor<?x?x8x4xf16>, tensor<8x3x3x4xf16> -> tensor<?x6x6x8xf16>
  return
}
// -----
func.func @images(%x: tensor<2x4x8x8xf16>, %w: tensor<8x4x3x3xf16>) {
  // expected-error @below {{'x' is 'tensor<2x4x8x8xf16>' and the result 'tensor<?x8x6x6xf16>'; dimension 0 is dynamic in both or in neither}}
  %0 = greta.conv2d %x, %w {layout = "nchw"} : tensor<2x4x8x8xf16>, tensor<8x4x3x3xf16> -> tensor<?x8x6x6xf16>
  return
}
// -----
func.func @signed(%x: tensor<1x8x8x4xsi8>, %w: tensor<8x3x3x4xsi8>) {
  // expected-error @below {{'x' has element type 'si8'; it takes f32, f16, bf16 or i8}}
  %0 = greta.conv2d %x, %w : tensor<1x8x8x4xsi8>, tensor<8x3x3x4xsi8> -> tensor<1x6x6x8xi32>
  return
}
// -----
func.func @large(%x: tensor<1x8x8x4294967296xf16>, %w: tensor<4294967296x4294967296x1x4294967296xf16>) {
  // expected-error @below {{its extents are from 1 to 65535}}
  %0 = greta.conv2d %x, %w : tensor<1x8x8x4294967296xf16>, tensor<4294967296x4294967296x1x4294967296xf16> -> tensor<1x6x6x8xf16>
  return
}
