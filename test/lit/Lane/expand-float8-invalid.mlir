// RUN: greta-opt %s --verify-diagnostics --pass-pipeline='builtin.module(func.func(greta-expand-float8{target=gfx1}))'

// expected-error @below {{unknown target 'gfx1'; targets are gfx90a}}
func.func @f(%x: f8E5M2) -> f16 {
  %0 = arith.extf %x : f8E5M2 to f16
  return %0 : f16
}
