// Attention refuses these configurations.
// RUN: greta-opt --split-input-file --greta-fuse --greta-configure=target=gfx942 --verify-diagnostics %s

func.func @other(%q: tensor<1x2x8x64xf16>, %k: tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16> {
  // expected-error @+1 {{has a 'greta.config' with 'stages', which attention cannot have; there are 'tile', 'split', 'unroll', 'waves'}}
  %0 = greta.attention %q, %k, %k {greta.config = {stages = 2}} : tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16> -> tensor<1x2x8x64xf16>
  return %0 : tensor<1x2x8x64xf16>
}

// -----

func.func @tile(%q: tensor<1x2x8x64xf16>, %k: tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16> {
  // expected-error @+1 {{has a 'greta.config' whose 'tile' is not two powers of two from 16 to 1024, rows and keys}}
  %0 = greta.attention %q, %k, %k {greta.config = {tile = [48, 16]}} : tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16> -> tensor<1x2x8x64xf16>
  return %0 : tensor<1x2x8x64xf16>
}

// -----

func.func @waves(%q: tensor<1x2x8x64xf16>, %k: tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16> {
  // expected-error @+1 {{has a 'greta.config' whose 'waves' is not a power of two}}
  %0 = greta.attention %q, %k, %k {greta.config = {waves = 3}} : tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16> -> tensor<1x2x8x64xf16>
  return %0 : tensor<1x2x8x64xf16>
}

// -----

func.func @lanes(%q: tensor<1x2x8x64xf16>, %k: tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16> {
  // expected-error @+1 {{has a 'greta.config' that does not fit: its waves are more than a workgroup takes}}
  %0 = greta.attention %q, %k, %k {greta.config = {waves = 32}} : tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16> -> tensor<1x2x8x64xf16>
  return %0 : tensor<1x2x8x64xf16>
}

// -----

func.func @split(%q: tensor<1x2x8x64xf16>, %k: tensor<1x2x8x64xf16>) -> tensor<1x2x8x64xf16> {
  // expected-error @+1 {{has a 'greta.config' whose 'split' is not from 1 to 1024}}
  %0 = greta.attention %q, %k, %k {greta.config = {split = 0}} : tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16>, tensor<1x2x8x64xf16> -> tensor<1x2x8x64xf16>
  return %0 : tensor<1x2x8x64xf16>
}

// -----

func.func @backward(%q: tensor<2x8x4x64xf16>, %l: tensor<2x8x4xf32>) -> tensor<2x8x4x64xf16> {
  // expected-error @+1 {{has a 'greta.config' with 'split', which gradients of attention cannot have; there are 'tile', 'waves'}}
  %0, %1, %2 = greta.attention_backward %q, %q, %q, %q, %l, %q {greta.config = {split = 2}} : tensor<2x8x4x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4xf32>, tensor<2x8x4x64xf16> -> tensor<2x8x4x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4x64xf16>
  return %0 : tensor<2x8x4x64xf16>
}

// -----

func.func @backward_tile(%q: tensor<2x8x4x64xf16>, %l: tensor<2x8x4xf32>) -> tensor<2x8x4x64xf16> {
  // expected-error @+1 {{has a 'greta.config' whose 'tile' is not two powers of two from 16 to 1024, what is added up and what the loop goes over}}
  %0, %1, %2 = greta.attention_backward %q, %q, %q, %q, %l, %q {greta.config = {tile = [8, 64]}} : tensor<2x8x4x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4xf32>, tensor<2x8x4x64xf16> -> tensor<2x8x4x64xf16>, tensor<2x8x4x64xf16>, tensor<2x8x4x64xf16>
  return %0 : tensor<2x8x4x64xf16>
}
