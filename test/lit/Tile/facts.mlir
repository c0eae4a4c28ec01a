// Each op gives facts about its integers and pointers. test/unit/facts compares random programs with numbers.
// RUN: greta-opt %s --greta-tile-print-facts --verify-diagnostics -o /dev/null
// REQUIRES: compiler

// expected-remark @+3 {{contiguity [1], divisibility [8], constancy [1]}}
// expected-remark @+2 {{contiguity [1], divisibility [64], constancy [1], range [-2147483648, 2147483647]}}
// expected-remark @+1 {{contiguity [1], divisibility [1], constancy [1], range [-2147483648, 2147483647]}}
greta_tile.func @sources(%x: !greta_tile.ptr<f16> {greta.divisibility = 16 : i64}, %n: i32 {greta.divisibility = 192 : i64}, %m: i32) attributes {waves = 1 : i32} {
  // expected-remark @+1 {{contiguity [1], divisibility [any], constancy [1], range [0, 0]}}
  %c0 = arith.constant 0 : i32
  // expected-remark @+1 {{contiguity [1], divisibility [32], constancy [1], range [96, 96]}}
  %c96 = arith.constant 96 : i32
  // expected-remark @+1 {{contiguity [1], divisibility [1], constancy [1], range [0, 2147483647]}}
  %pid = greta_tile.program_id 0
  // expected-remark @+1 {{contiguity [1], divisibility [32], constancy [1]}}
  %start = arith.muli %pid, %c96 : i32
  // expected-remark @+1 {{contiguity [96], divisibility [any], constancy [1], range [0, 95]}}
  %i = greta_tile.iota 0 : tensor<96xi32>
  // expected-remark @+1 {{contiguity [1], divisibility [32], constancy [96]}}
  %s = greta_tile.splat %start : tensor<96xi32>
  // expected-remark @+1 {{contiguity [96], divisibility [32], constancy [1]}}
  %at = arith.addi %s, %i : tensor<96xi32>
  // expected-remark @+1 {{contiguity [1], divisibility [64], constancy [96]}}
  %ns = greta_tile.splat %n : tensor<96xi32>
  // expected-remark @+1 {{contiguity [1], divisibility [1], constancy [32], range [-1, 0]}}
  %mask = arith.cmpi slt, %at, %ns : tensor<96xi32>
  // expected-remark @+1 {{contiguity [1], divisibility [1], constancy [96]}}
  %ms = greta_tile.splat %m : tensor<96xi32>
  // expected-remark @+1 {{contiguity [1], divisibility [1], constancy [1], range [-1, 0]}}
  %odd = arith.cmpi slt, %at, %ms : tensor<96xi32>
  greta_tile.return
}

// Loops: the counter, what is carried, and pointers that move.
// expected-remark @+2 {{contiguity [1], divisibility [4], constancy [1]}}
// expected-remark @+1 {{contiguity [1], divisibility [1], constancy [1]}}
greta_tile.func @loops(%x: !greta_tile.ptr<f32> {greta.divisibility = 16 : i64}, %k: i32) attributes {waves = 1 : i32} {
  %c0 = arith.constant 0 : i32 // expected-remark {{divisibility [any]}}
  %c24 = arith.constant 24 : i32 // expected-remark {{divisibility [8]}}
  // expected-remark @+2 {{contiguity [1], divisibility [2], constancy [1]}}
  // expected-remark @+1 {{contiguity [1], divisibility [8], constancy [1]}}
  %end = scf.for %i = %c0 to %k step %c24 iter_args(%p = %x) -> (!greta_tile.ptr<f32>) : i32 {
    %c6 = arith.constant 6 : i64 // expected-remark {{divisibility [2]}}
    // expected-remark @+1 {{contiguity [1], divisibility [2], constancy [1]}}
    %next = greta_tile.ptr_add %p, %c6 : !greta_tile.ptr<f32>, i64
    scf.yield %next : !greta_tile.ptr<f32>
  }
  greta_tile.return
}

// Blocks of two dimensions: rows and columns, and what masks of them are.
// expected-remark @+1 {{contiguity [1], divisibility [16], constancy [1]}}
greta_tile.func @blocks(%n: i32 {greta.divisibility = 16 : i64}) attributes {waves = 1 : i32} {
  %i = greta_tile.iota 0 : tensor<8xi32> // expected-remark {{contiguity [8]}}
  // expected-remark @+1 {{contiguity [8, 1], divisibility [any, 1], constancy [1, 1], range [0, 7]}}
  %r = greta_tile.reshape %i : tensor<8xi32> -> tensor<8x1xi32>
  // expected-remark @+1 {{contiguity [8, 1], divisibility [any, 1], constancy [1, 64], range [0, 7]}}
  %rows = greta_tile.broadcast %r : tensor<8x1xi32> -> tensor<8x64xi32>
  // expected-remark @+1 {{contiguity [1, 64], divisibility [1, any], constancy [8, 1], range [0, 63]}}
  %columns = greta_tile.iota 1 : tensor<8x64xi32>
  // expected-remark @+1 {{contiguity [1, 1], divisibility [16, 16], constancy [8, 64]}}
  %stride = greta_tile.splat %n : tensor<8x64xi32>
  // expected-remark @+1 {{contiguity [1, 1], divisibility [16, 16], constancy [1, 64]}}
  %begin = arith.muli %rows, %stride : tensor<8x64xi32>
  // expected-remark @+1 {{contiguity [1, 64], divisibility [1, 16], constancy [1, 1]}}
  %at = arith.addi %begin, %columns : tensor<8x64xi32>
  // expected-remark @+1 {{contiguity [1, 1], divisibility [1, 1], constancy [8, 16], range [-1, 0]}}
  %mask = arith.cmpi ult, %columns, %stride : tensor<8x64xi32>
  // expected-remark @+1 {{contiguity [64], divisibility [16], constancy [1]}}
  %flat = greta_tile.reshape %at : tensor<8x64xi32> -> tensor<512xi32>
  greta_tile.return
}

// Quotients and bits: swizzles, and weights that share what they are scaled by.
greta_tile.func @bits() attributes {waves = 1 : i32} {
  %i = greta_tile.iota 0 : tensor<64xi32> // expected-remark {{contiguity [64]}}
  %c8 = arith.constant dense<8> : tensor<64xi32> // expected-remark {{divisibility [8], constancy [64]}}
  // expected-remark @+1 {{contiguity [1], divisibility [1], constancy [8], range [0, 7]}}
  %group = arith.divsi %i, %c8 : tensor<64xi32>
  // expected-remark @+1 {{contiguity [8], divisibility [8], constancy [1], range [0, 7]}}
  %within = arith.remsi %i, %c8 : tensor<64xi32>
  // expected-remark @+1 {{contiguity [8], divisibility [8], constancy [1]}}
  %swizzled = arith.xori %i, %c8 : tensor<64xi32>
  greta_tile.return
}
