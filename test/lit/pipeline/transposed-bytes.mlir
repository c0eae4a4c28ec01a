// Products of bytes whose operands are both turned on their way to shared memory: what is chosen does not spill.
// RUN: greta-translate --greta-to-package --targets=gfx950,gfx1100,gfx1201 %s -o %t.greta 2>&1 | FileCheck %s --allow-empty --implicit-check-not=warning
// RUN: greta-run %t.greta --inspect --function=large | FileCheck %s --check-prefix=CHOSEN
// REQUIRES: compiler

// CHOSEN-COUNT-3: vgpr_spills 0
func.func @large(%a: tensor<4096x4096xi8>, %b: tensor<4096x4096xi8>) -> tensor<4096x4096xi32> {
  %0 = greta.matmul %a, %b {transpose_a} : tensor<4096x4096xi8>, tensor<4096x4096xi8> -> tensor<4096x4096xi32>
  return %0 : tensor<4096x4096xi32>
}

func.func @wide(%a: tensor<4096x128xi8>, %b: tensor<4096x4096xi8>) -> tensor<128x4096xi32> {
  %0 = greta.matmul %a, %b {transpose_a} : tensor<4096x128xi8>, tensor<4096x4096xi8> -> tensor<128x4096xi32>
  return %0 : tensor<128x4096xi32>
}
