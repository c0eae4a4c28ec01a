// RUN: greta-opt %s -greta-tile-explicit-arguments -verify-diagnostics

greta_tile.func @k(%x: !greta_tile.ptr<f64>) attributes {waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  %v = greta_tile.load %x[%zero, %zero] strides [512, 1] bounds [] : !greta_tile.ptr<f64> -> tensor<256x512xf64>
  // expected-error @below {{prints 262144 words at once; a launch prints up to 262139: print a part}}
  greta_tile.print " v " %v : tensor<256x512xf64>
  greta_tile.return
}
