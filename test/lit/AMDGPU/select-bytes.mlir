// Bytes of a masked load are chosen as one integer. As vectors, LLVM 22 would
// choose for the vector of 8 that they become a part of, and gfx11's code was
// wrong for four of them, or could not be printed.
// RUN: greta-translate --greta-to-llvmir --target=gfx1100 %s | FileCheck %s --check-prefix=IR
// RUN: greta-translate --greta-to-amdgcn --target=gfx1100 %s | FileCheck %s

// IR-COUNT-4: select i1 %{{.*}}, i16 %{{.*}}, i16 0
// CHECK-COUNT-4: global_load{{.*}}16
// CHECK: global_store_b64
greta_tile.func @k(%p: !greta_tile.ptr<i8>, %o: !greta_tile.ptr<i8>) attributes {wave_size = 32 : i32, waves = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %bound = arith.constant 2 : i32
  %0 = greta_tile.load %p[%c0, %c0] strides [4, 1] bounds [0](%bound) {runs = array<i64: 1, 2>, run_strides = array<i64: 0, 8>} : <i8> -> tensor<8x32xi8>
  greta_tile.store %0, %o[%c0, %c0] strides [32, 1] bounds [] : tensor<8x32xi8> -> <i8>
  greta_tile.return
}
func.func @f(%x: tensor<4096xi8>) -> tensor<8x32xi8> attributes {greta.symbols = [], greta.shapes = [[4096], [8, 32]]} {
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()>(%x) shapes [affine_map<() -> (8, 32)>] : (tensor<4096xi8>) -> tensor<8x32xi8>
  return %0 : tensor<8x32xi8>
}
