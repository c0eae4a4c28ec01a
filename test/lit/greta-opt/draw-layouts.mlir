// RUN: rm -rf %t && greta-opt %s --greta-draw-layouts=directory=%t | FileCheck %s --check-prefix=SAME
// RUN: ls %t | FileCheck %s --check-prefix=FILES
// RUN: FileCheck %s --input-file=%t/layout0.svg --check-prefix=ROWS
// RUN: FileCheck %s --input-file=%t/layout1.svg --check-prefix=PART
// RUN: not greta-opt %s --greta-draw-layouts=directory=/dev/null/here 2>&1 | FileCheck %s --check-prefix=CANNOT

// The example of the layout's own documentation: two rows of four lanes with four elements each, twice along the row.
#rows = #greta_tile.layout<{reg = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0]], wave = [], rep = [1, 2]}>
// 128 columns are more than a picture shows.
#wide = #greta_tile.layout<{reg = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 16]], wave = [[0, 32], [0, 64]], rep = [1, 1]}>

// FILES: layout0.svg
// FILES-NEXT: layout1.svg
// FILES-NOT: svg

// SAME: func.func @kernel
// ROWS: <svg
// ROWS: func.func: 2x32, 8 registers, 8 lanes, 1 waves</text>
// ROWS: >{reg = {{\[\[}}0, 1], [0, 2]], lane
// ROWS: >w0 l0 r0<
// ROWS: >w0 l0 r1<
// Element (1, 21), in lane 5, register 5.
// ROWS-COUNT-50: >w0
// ROWS: >w0 l5 r5<
// ROWS: </svg>
// PART: func.func: 1x128, 2 registers, 16 lanes, 4 waves (a part)
// PART: >w1 l15 r1<
// PART-NOT: >w2
// CANNOT: error: cannot write '/dev/null/here': Not a directory
func.func @kernel(%x: tensor<2x32xf32, #rows>, %y: tensor<1x128xf32, #wide>) {
  %0 = arith.negf %x : tensor<2x32xf32, #rows>
  %1 = arith.negf %y : tensor<1x128xf32, #wide>
  return
}
