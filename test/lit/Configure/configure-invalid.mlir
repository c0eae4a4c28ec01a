// RUN: greta-opt --verify-diagnostics --greta-configure=target=gfx999 %s
// RUN: not greta-opt --greta-configure=target=host %s 2>&1 | FileCheck %s --check-prefix=HOST

// HOST: error: the target 'host' has no kernels to configure; it takes greta-decompose
// expected-error@+1 {{gfx999}}
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %x : tensor<4x8xf32>
}
