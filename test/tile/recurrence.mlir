// s[i] = a[i] s[i - 1] + x[i] by a scan of two blocks, whose combiner is associative and does not commute: forward along 96 columns (no power of two,
// so that the layout repeats), and from the last of 16 rows back to the first.
greta_tile.func @recurrence_kernel(%a: !greta_tile.ptr<i32>, %x: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>) attributes {waves = 2 : i32} {
  %zero = arith.constant 0 : i32
  %id = greta_tile.program_id 0
  %p = greta_tile.load %a[%id, %zero, %zero] strides [1536, 96, 1] bounds [] : !greta_tile.ptr<i32> -> tensor<1x16x96xi32>
  %q = greta_tile.load %x[%id, %zero, %zero] strides [1536, 96, 1] bounds [] : !greta_tile.ptr<i32> -> tensor<1x16x96xi32>
  %f0, %s0 = greta_tile.scan %p, %q axis 2 : tensor<1x16x96xi32>, tensor<1x16x96xi32> {
  ^bb0(%a0: i32, %b0: i32, %a1: i32, %b1: i32):
    %f = arith.muli %a0, %a1 : i32
    %m = arith.muli %a1, %b0 : i32
    %s = arith.addi %m, %b1 : i32
    greta_tile.yield %f, %s : i32, i32
  }
  %f1, %s1 = greta_tile.scan %p, %s0 axis 1 reverse : tensor<1x16x96xi32>, tensor<1x16x96xi32> {
  ^bb0(%a0: i32, %b0: i32, %a1: i32, %b1: i32):
    %f = arith.muli %a0, %a1 : i32
    %m = arith.muli %a1, %b0 : i32
    %s = arith.addi %m, %b1 : i32
    greta_tile.yield %f, %s : i32, i32
  }
  greta_tile.store %s1, %y[%id, %zero, %zero] strides [1536, 96, 1] bounds [] : tensor<1x16x96xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}

func.func @recurrence(%a: tensor<?x16x96xi32>, %x: tensor<?x16x96xi32> {greta.shape = affine_map<()[n] -> (n, 16, 96)>}) -> tensor<?x16x96xi32> {
  %0 = greta_tile.launch @recurrence_kernel grid affine_map<()[n] -> (n)> scalars affine_map<()[n] -> ()> (%a, %x)
       shapes [affine_map<()[n] -> (n, 16, 96)>] : (tensor<?x16x96xi32>, tensor<?x16x96xi32>) -> tensor<?x16x96xi32>
  return %0 : tensor<?x16x96xi32>
}
