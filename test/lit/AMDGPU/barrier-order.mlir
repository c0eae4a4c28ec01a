// RUN: greta-translate %s --greta-to-amdgcn --target=gfx1100 -o - | FileCheck %s

// Lanes of two waves exchange numbers through memory. LLVM may not move accesses over a barrier that orders them: it once sank the load, whose
// result only one wave uses, over the second barrier, and dropped one of two fences in front of the first.

// CHECK-LABEL: exchange:
// CHECK: global_store_b32
// CHECK: s_waitcnt_vscnt null, 0x0
// CHECK: s_barrier
// CHECK: buffer_gl0_inv
// CHECK: global_load_b32
// CHECK: s_waitcnt vmcnt(0)
// CHECK: s_barrier
// CHECK: global_store_b32
// CHECK: s_endpgm
greta_tile.func @exchange(%y: !greta_tile.ptr<i32>) attributes {waves = 4 : i32} {
  %i = greta_tile.iota 0 : tensor<64xi32>
  %p = greta_tile.ptr_add %y, %i : !greta_tile.ptr<i32>, tensor<64xi32>
  greta_tile.store_scattered %i, %p : tensor<64xi32> -> tensor<64x!greta_tile.ptr<i32>>
  %mask = arith.constant dense<41> : tensor<64xi32>
  %other = arith.xori %i, %mask : tensor<64xi32>
  %q = greta_tile.ptr_add %y, %other : !greta_tile.ptr<i32>, tensor<64xi32>
  %v = greta_tile.load_scattered %q : tensor<64x!greta_tile.ptr<i32>> -> tensor<64xi32>
  %last = arith.constant dense<63> : tensor<64xi32>
  %turned = arith.subi %last, %i : tensor<64xi32>
  %r = greta_tile.ptr_add %y, %turned : !greta_tile.ptr<i32>, tensor<64xi32>
  greta_tile.store_scattered %v, %r : tensor<64xi32> -> tensor<64x!greta_tile.ptr<i32>>
  greta_tile.return
}
func.func @f(%y: tensor<64xi32>) -> tensor<64xi32> {
  %0 = greta_tile.launch @exchange grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%y) tied [0] shapes [] : (tensor<64xi32>) -> tensor<64xi32>
  return %0 : tensor<64xi32>
}
