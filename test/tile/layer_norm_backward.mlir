// Gradients of layer norm over rows of 200: of x row by row, of weight and bias in two stages. Each of as many programs as the caller likes goes over
// its rows and adds up what they say of weight and bias; then these sums are added up.
greta_tile.func @layer_norm_backward_kernel(%x: !greta_tile.ptr<f32>, %weight: !greta_tile.ptr<f32>, %grad: !greta_tile.ptr<f32>, %dx: !greta_tile.ptr<f32>,
                                            %dweights: !greta_tile.ptr<f32>, %dbiases: !greta_tile.ptr<f32>, %rows: i32) attributes {waves = 2 : i32} {
  %zero = arith.constant 0 : i32
  %columns = arith.constant 200 : i32
  %id = greta_tile.program_id 0
  %programs = greta_tile.num_programs 0
  %w = greta_tile.load %weight[%zero] strides [1] bounds [0] (%columns) : !greta_tile.ptr<f32> -> tensor<256xf32>
  %at = greta_tile.iota 0 : tensor<256xi32>
  %ends = greta_tile.splat %columns : tensor<256xi32>
  %inside = arith.cmpi slt, %at, %ends : tensor<256xi32>
  %none = arith.constant dense<0.0> : tensor<256xf32>
  %share = arith.constant 0.005 : f32
  %eps = arith.constant 1.0e-5 : f32
  %dw, %db = scf.for %row = %id to %rows step %programs iter_args(%dw_sum = %none, %db_sum = %none) -> (tensor<256xf32>, tensor<256xf32>) : i32 {
    %v1 = greta_tile.load %x[%row, %zero] strides [200, 1] bounds [1] (%columns) : !greta_tile.ptr<f32> -> tensor<1x256xf32>
    %v = greta_tile.reshape %v1 : tensor<1x256xf32> -> tensor<256xf32>
    %g1 = greta_tile.load %grad[%row, %zero] strides [200, 1] bounds [1] (%columns) : !greta_tile.ptr<f32> -> tensor<1x256xf32>
    %g = greta_tile.reshape %g1 : tensor<1x256xf32> -> tensor<256xf32>
    %sum = greta_tile.reduce {arith.addf} %v axis 0 : tensor<256xf32> -> f32
    %mean = arith.mulf %sum, %share : f32
    %means = greta_tile.splat %mean : tensor<256xf32>
    %off = arith.subf %v, %means : tensor<256xf32>
    %centred = arith.select %inside, %off, %none : tensor<256xi1>, tensor<256xf32>
    %square = arith.mulf %centred, %centred : tensor<256xf32>
    %squares = greta_tile.reduce {arith.addf} %square axis 0 : tensor<256xf32> -> f32
    %variance = arith.mulf %squares, %share : f32
    %safe = arith.addf %variance, %eps : f32
    %scale = math.rsqrt %safe : f32
    %scales = greta_tile.splat %scale : tensor<256xf32>
    %normal = arith.mulf %centred, %scales : tensor<256xf32>
    %gw = arith.mulf %g, %w : tensor<256xf32>
    %gn = arith.mulf %gw, %normal : tensor<256xf32>
    %along, %level = greta_tile.reduce %gn, %gw axis 0 : tensor<256xf32>, tensor<256xf32> -> (f32, f32) {
    ^bb0(%a0: f32, %b0: f32, %a1: f32, %b1: f32):
      %a = arith.addf %a0, %a1 : f32
      %b = arith.addf %b0, %b1 : f32
      greta_tile.yield %a, %b : f32, f32
    }
    %along_mean = arith.mulf %along, %share : f32
    %level_mean = arith.mulf %level, %share : f32
    %alongs = greta_tile.splat %along_mean : tensor<256xf32>
    %levels = greta_tile.splat %level_mean : tensor<256xf32>
    %turned = arith.mulf %normal, %alongs : tensor<256xf32>
    %d0 = arith.subf %gw, %turned : tensor<256xf32>
    %d1 = arith.subf %d0, %levels : tensor<256xf32>
    %d = arith.mulf %d1, %scales : tensor<256xf32>
    %d2 = greta_tile.reshape %d : tensor<256xf32> -> tensor<1x256xf32>
    greta_tile.store %d2, %dx[%row, %zero] strides [200, 1] bounds [1] (%columns) : tensor<1x256xf32> -> !greta_tile.ptr<f32>
    %part = arith.mulf %g, %normal : tensor<256xf32>
    %dw_next = arith.addf %dw_sum, %part : tensor<256xf32>
    %db_next = arith.addf %db_sum, %g : tensor<256xf32>
    scf.yield %dw_next, %db_next : tensor<256xf32>, tensor<256xf32>
  }
  %dw1 = greta_tile.reshape %dw : tensor<256xf32> -> tensor<1x256xf32>
  %db1 = greta_tile.reshape %db : tensor<256xf32> -> tensor<1x256xf32>
  greta_tile.store %dw1, %dweights[%id, %zero] strides [200, 1] bounds [1] (%columns) : tensor<1x256xf32> -> !greta_tile.ptr<f32>
  greta_tile.store %db1, %dbiases[%id, %zero] strides [200, 1] bounds [1] (%columns) : tensor<1x256xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

greta_tile.func @sum_parts_kernel(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %parts: i32) attributes {waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %columns = arith.constant 200 : i32
  %id = greta_tile.program_id 0
  %column = arith.muli %id, %c64 : i32
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %sum = scf.for %i = %zero to %parts step %c8 iter_args(%s = %none) -> (tensor<64xf32>) : i32 {
    %v = greta_tile.load %x[%i, %column] strides [200, 1] bounds [0, 1] (%parts, %columns) : !greta_tile.ptr<f32> -> tensor<8x64xf32>
    %part = greta_tile.reduce {arith.addf} %v axis 0 : tensor<8x64xf32> -> tensor<64xf32>
    %next = arith.addf %s, %part : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  greta_tile.store %sum, %y[%column] strides [1] bounds [0] (%columns) : tensor<64xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

#rows = affine_map<()[rows, parts] -> (rows, 200)>
#parts = affine_map<()[rows, parts] -> (parts, 200)>
#programs = affine_map<()[rows, parts] -> (parts)>
func.func @layer_norm_backward(%x: tensor<?x200xf32>, %weight: tensor<200xf32>, %grad: tensor<?x200xf32> {greta.shape = #rows}, %programs: i32)
    -> (tensor<?x200xf32>, tensor<200xf32>, tensor<200xf32>) {
  %dx, %dw, %db = greta_tile.launch @layer_norm_backward_kernel grid #programs scalars affine_map<()[rows, parts] -> (rows)> (%x, %weight, %grad)
       shapes [#rows, #parts, #parts] : (tensor<?x200xf32>, tensor<200xf32>, tensor<?x200xf32>) -> (tensor<?x200xf32>, tensor<?x200xf32>, tensor<?x200xf32>)
  %weights = greta_tile.launch @sum_parts_kernel grid affine_map<()[rows, parts] -> (4)> scalars #programs (%dw) shapes [affine_map<()[rows, parts] -> (200)>]
       : (tensor<?x200xf32>) -> tensor<200xf32>
  %biases = greta_tile.launch @sum_parts_kernel grid affine_map<()[rows, parts] -> (4)> scalars #programs (%db) shapes [affine_map<()[rows, parts] -> (200)>]
       : (tensor<?x200xf32>) -> tensor<200xf32>
  return %dx, %weights, %biases : tensor<?x200xf32>, tensor<200xf32>, tensor<200xf32>
}
