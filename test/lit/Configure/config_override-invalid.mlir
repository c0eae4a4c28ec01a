// RUN: greta-opt --split-input-file --verify-diagnostics --greta-fuse --greta-configure=target=gfx942 %s

func.func @two_extents(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' whose 'tile' is not three extents from 1 to 1024}}
  %0 = greta.matmul %a, %b {greta.config = {tile = [64, 64]}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @negative(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' whose 'tile' is not three extents from 1 to 1024}}
  %0 = greta.matmul %a, %b {greta.config = {tile = [64, -64, 64]}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @instruction(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' whose 'instruction' the target does not have for these operands}}
  %0 = greta.matmul %a, %b {greta.config = {instruction = [16, 16, 32]}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @three_waves(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{whose 'waves' is not a power of two}}
  %0 = greta.matmul %a, %b {greta.config = {waves = 3}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @three_stages(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{whose 'stages' is not from 0 to 3}}
  %0 = greta.matmul %a, %b {greta.config = {stages = 4}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @part_of_a_tile(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' that does not fit: its tile is not made of the instruction's 16x16x16}}
  %0 = greta.matmul %a, %b {greta.config = {instruction = [16, 16, 16], tile = [40, 64, 64], waves = 1}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @slices(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' that does not fit: its tile is not made of the instruction's 16x16x16}}
  %0 = greta.matmul %a, %b {greta.config = {instruction = [16, 16, 16], tile = [64, 64, 64], slice = 48, waves = 1}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @uneven_waves(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' that does not fit: 4 waves do not divide its tile evenly}}
  %0 = greta.matmul %a, %b {greta.config = {instruction = [16, 16, 16], tile = [48, 32, 32], waves = 4}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @many_waves(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' that does not fit: its waves are more than a workgroup takes}}
  %0 = greta.matmul %a, %b {greta.config = {instruction = [16, 16, 16], tile = [256, 256, 16], waves = 64}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @shared_memory(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' that does not fit: it needs 131072 bytes of shared memory, the target has 65536}}
  %0 = greta.matmul %a, %b {greta.config = {instruction = [16, 16, 16], tile = [128, 128, 128], waves = 4, stages = 2}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @registers(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error-re @+1 {{has a 'greta.config' that does not fit: it needs about {{[0-9]+}} registers a lane, the target has {{[0-9]+}}}}
  %0 = greta.matmul %a, %b {greta.config = {instruction = [16, 16, 16], tile = [256, 256, 16], waves = 1}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @no_dictionary(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' that is no dictionary}}
  %0 = greta.matmul %a, %b {greta.config = "fast"} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @value(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' whose 'direct' has a value; it stands alone}}
  %0 = greta.matmul %a, %b {greta.config = {tile = [64, 64, 64], direct = 16}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @unknown(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' with 'tiles', which a GEMM on matrix units cannot have; there are 'tile', 'group', 'slice', 'split', 'stages', 'waves', 'instruction', 'opaque', 'direct'}}
  %0 = greta.matmul %a, %b {greta.config = {tiles = [64, 64, 64]}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @fraction(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' whose 'waves' is not a power of two}}
  %0 = greta.matmul %a, %b {greta.config = {waves = 1.5}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @wide_integer(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' whose 'tile' is not three extents from 1 to 1024}}
  %0 = greta.matmul %a, %b {greta.config = {tile = [64, 64, 340282366920938463463374607431768211456 : i256]}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @no_target(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' with a dictionary for 'gfx8': unknown target 'gfx8'}}
  %0 = greta.matmul %a, %b {greta.config = {gfx8 = {waves = 2}}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @opaque(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' with 'opaque', which cooperative matrices may be}}
  %0 = greta.matmul %a, %b {greta.config = {opaque}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @deep(%a: tensor<64x3000000000xf16>, %b: tensor<64x3000000000xf16>) -> tensor<64x64xf16> {
  // expected-error@below {{has K = 3000000000; it may have up to 1073741823: split the GEMM}}
  %0 = greta.matmul %a, %b {transpose_b} : tensor<64x3000000000xf16>, tensor<64x3000000000xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @no_part(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' whose 'split' is not from 1 to 1024}}
  %0 = greta.matmul %a, %b {greta.config = {split = 0}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @parts_of_few_rows(%a: tensor<1x64xf16>, %b: tensor<64x64xf16>) -> tensor<1x64xf16> {
  // expected-error @+1 {{has a 'greta.config' whose 'split' is not from 1 to 1024}}
  %0 = greta.matmul %a, %b {greta.config = {split = 2000}} : tensor<1x64xf16>, tensor<64x64xf16> -> tensor<1x64xf16>
  return %0 : tensor<1x64xf16>
}

// -----

func.func @dynamic_depth(%a: tensor<64x?xf16>, %b: tensor<?x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' that does not fit: its 'split' needs K in the type}}
  %0 = greta.matmul %a, %b {greta.config = {split = 2}} : tensor<64x?xf16>, tensor<?x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @direct_one_stage(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' that does not fit: its 'direct' loads need two or three stages}}
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {instruction = [16, 16, 16], tile = [64, 64, 64], waves = 4, stages = 1, direct}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @direct_turned(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' that does not fit: its 'direct' loads need a target that has them, and operands as they are in memory, with aligned rows along K}}
  %0 = greta.matmul %a, %b {greta.config = {instruction = [16, 16, 16], tile = [64, 64, 64], waves = 4, stages = 2, slice = 32, direct}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @direct_odd(%a: tensor<64x65xf16>, %b: tensor<64x65xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' that does not fit: its 'direct' loads need a target that has them, and operands as they are in memory, with aligned rows along K}}
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {instruction = [16, 16, 16], tile = [64, 64, 64], waves = 4, stages = 2, slice = 32, direct}} : tensor<64x65xf16>, tensor<64x65xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @direct_turns(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' that does not fit: its 'direct' loads, 512 numbers at a time, are not whole blocks of whole rows}}
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {instruction = [16, 16, 16], tile = [80, 64, 16], waves = 4, stages = 2, slice = 16, direct}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @direct_far(%a: tensor<64x16777216xf16>, %b: tensor<64x16777216xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{has a 'greta.config' that does not fit: its 'direct' loads reach 2^30 bytes from the first row}}
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {instruction = [16, 16, 16], tile = [64, 64, 64], waves = 4, stages = 3, slice = 32, direct}} : tensor<64x16777216xf16>, tensor<64x16777216xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @registers_of_columns(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{that does not fit: without stages it needs rows along K, a stored A, with heads a stored B, no batch, and an instruction whose layouts are known}}
  %0 = greta.matmul %a, %b {greta.config = {instruction = [16, 16, 16], tile = [16, 64, 64], waves = 4, stages = 0, slice = 64}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}

// -----

func.func @part_of_a_block(%a: tensor<64x96xf16>, %b: tensor<64x96xf16>) -> tensor<64x64xf16> {
  // expected-error @+1 {{that does not fit: without stages its blocks must divide K, and its waves be shared out to slices}}
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {instruction = [16, 16, 16], tile = [16, 64, 64], waves = 4, stages = 0, slice = 64}} : tensor<64x96xf16>, tensor<64x96xf16> -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}
