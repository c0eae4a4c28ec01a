// y = act(alpha x + bias) by as many programs as the caller likes, each of which takes every so many blocks; one of them does nothing. Scalars of many
// types, a helper function with branches, an early return.
func.func private @activate(%v: tensor<64xf32>, %shift: f32, %relu: i1) -> tensor<64xf32> {
  %s = greta_tile.splat %shift : tensor<64xf32>
  %moved = arith.addf %v, %s : tensor<64xf32>
  cf.cond_br %relu, ^clamped, ^plain
^clamped:
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %positive = arith.maximumf %moved, %zero : tensor<64xf32>
  return %positive : tensor<64xf32>
^plain:
  return %moved : tensor<64xf32>
}

greta_tile.func @grid_kernel(%alpha: f16, %x: !greta_tile.ptr<f32>, %bias: bf16, %first: i8, %idle: i16, %relu: i1, %y: !greta_tile.ptr<f32>, %n: i32)
    attributes {waves = 1 : i32} {
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %id = greta_tile.program_id 0
  %none = arith.extsi %idle : i16 to i32
  %skips = arith.cmpi eq, %id, %none : i32
  cf.cond_br %skips, ^done, ^work
^work:
  %programs = greta_tile.num_programs 0
  %rows = greta_tile.num_programs 1
  %step = arith.muli %programs, %rows : i32
  %from = arith.extsi %first : i8 to i32
  %begin = arith.addi %from, %id : i32
  %more = arith.addi %n, %c64 : i32
  %last = arith.subi %more, %c1 : i32
  %blocks = arith.divsi %last, %c64 : i32
  %a32 = arith.extf %alpha : f16 to f32
  %b32 = arith.extf %bias : bf16 to f32
  %as = greta_tile.splat %a32 : tensor<64xf32>
  scf.for %block = %begin to %blocks step %step : i32 {
    %at = arith.muli %block, %c64 : i32
    %v = greta_tile.load %x[%at] strides [1] bounds [0] (%n) : !greta_tile.ptr<f32> -> tensor<64xf32>
    %scaled = arith.mulf %v, %as : tensor<64xf32>
    %r = func.call @activate(%scaled, %b32, %relu) : (tensor<64xf32>, f32, i1) -> tensor<64xf32>
    greta_tile.store %r, %y[%at] strides [1] bounds [0] (%n) : tensor<64xf32> -> !greta_tile.ptr<f32>
  }
  cf.br ^done
^done:
  greta_tile.return
}

func.func @grid(%alpha: f16, %x: tensor<?xf32>, %bias: bf16, %first: i8, %idle: i16, %relu: i1, %programs: i32,
                %y: tensor<?xf32> {greta.shape = affine_map<()[n, first, idle, relu, programs] -> (n)>}) -> tensor<?xf32> {
  %0 = greta_tile.launch @grid_kernel grid affine_map<()[n, first, idle, relu, programs] -> (programs)>
       scalars affine_map<()[n, first, idle, relu, programs] -> (n)> (%alpha, %x, %bias, %first, %idle, %relu, %y) tied [6] shapes []
       : (f16, tensor<?xf32>, bf16, i8, i16, i1, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
