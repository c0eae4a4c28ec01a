// Dropout: of x what Philox4x32-10 keeps, scaled. Its counter is the element's index, its key the seed; the state is four blocks of words that a loop carries.
greta_tile.func @dropout_kernel(%x: !greta_tile.ptr<f32>, %p: f32, %seed: i64, %y: !greta_tile.ptr<f32>, %n: i32) attributes {waves = 2 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ten = arith.constant 10 : i32
  %c128 = arith.constant 128 : i32
  %c32 = arith.constant 32 : i64
  %id = greta_tile.program_id 0
  %at = arith.muli %id, %c128 : i32
  %first = greta_tile.splat %at : tensor<128xi32>
  %iota = greta_tile.iota 0 : tensor<128xi32>
  %index = arith.addi %first, %iota : tensor<128xi32>
  %none = arith.constant dense<0> : tensor<128xi32>
  %a = arith.constant dense<0xD2511F53> : tensor<128xi32>
  %b = arith.constant dense<0xCD9E8D57> : tensor<128xi32>
  %weyl0 = arith.constant 0x9E3779B9 : i32
  %weyl1 = arith.constant 0xBB67AE85 : i32
  %key0 = arith.trunci %seed : i64 to i32
  %high = arith.shrui %seed, %c32 : i64
  %key1 = arith.trunci %high : i64 to i32
  %r:6 = scf.for %round = %zero to %ten step %one iter_args(%c0 = %index, %c1 = %none, %c2 = %none, %c3 = %none, %k0 = %key0, %k1 = %key1)
      -> (tensor<128xi32>, tensor<128xi32>, tensor<128xi32>, tensor<128xi32>, i32, i32) : i32 {
    %even_low, %even_high = arith.mului_extended %c0, %a : tensor<128xi32>
    %odd_low, %odd_high = arith.mului_extended %c2, %b : tensor<128xi32>
    %keys0 = greta_tile.splat %k0 : tensor<128xi32>
    %keys1 = greta_tile.splat %k1 : tensor<128xi32>
    %m0 = arith.xori %odd_high, %c1 : tensor<128xi32>
    %n0 = arith.xori %m0, %keys0 : tensor<128xi32>
    %m2 = arith.xori %even_high, %c3 : tensor<128xi32>
    %n2 = arith.xori %m2, %keys1 : tensor<128xi32>
    %next0 = arith.addi %k0, %weyl0 : i32
    %next1 = arith.addi %k1, %weyl1 : i32
    scf.yield %n0, %odd_low, %n2, %even_low, %next0, %next1 : tensor<128xi32>, tensor<128xi32>, tensor<128xi32>, tensor<128xi32>, i32, i32
  }
  // 24 bits of the first word as a number from 0 to 1.
  %eight = arith.constant dense<8> : tensor<128xi32>
  %bits = arith.shrui %r#0, %eight : tensor<128xi32>
  %whole = arith.uitofp %bits : tensor<128xi32> to tensor<128xf32>
  %scale = arith.constant dense<5.9604644775390625e-8> : tensor<128xf32>
  %drawn = arith.mulf %whole, %scale : tensor<128xf32>
  %ps = greta_tile.splat %p : tensor<128xf32>
  %keeps = arith.cmpf oge, %drawn, %ps : tensor<128xf32>
  %f1 = arith.constant 1.0 : f32
  %rest = arith.subf %f1, %p : f32
  %rests = greta_tile.splat %rest : tensor<128xf32>
  %v = greta_tile.load %x[%at] strides [1] bounds [0] (%n) : !greta_tile.ptr<f32> -> tensor<128xf32>
  %scaled = arith.divf %v, %rests : tensor<128xf32>
  %off = arith.constant dense<0.0> : tensor<128xf32>
  %kept = arith.select %keeps, %scaled, %off : tensor<128xi1>, tensor<128xf32>
  greta_tile.store %kept, %y[%at] strides [1] bounds [0] (%n) : tensor<128xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

func.func @dropout(%x: tensor<?xf32>, %p: f32, %seed: i64) -> tensor<?xf32> {
  %0 = greta_tile.launch @dropout_kernel grid affine_map<()[n, seed] -> (n ceildiv 128)> scalars affine_map<()[n, seed] -> (n)> (%x, %p, %seed)
       shapes [affine_map<()[n, seed] -> (n)>] : (tensor<?xf32>, f32, i64) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
