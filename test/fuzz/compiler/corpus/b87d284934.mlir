func.func @known_extent(%a: tensor<?x320xf16>, %b: tensor<448x320xf16>, %c: tensor<?x448xf16>) -> tensor<?x448xf16> {
  %0 = greta.matmul %a, %b {transpose_a, transpose_b} : tensor<?x320xf16>, tensor<448x320xf16> -> tensor<?x448xf16>
  %1 = arith.addf %0, %c : tensor<?x448xf16>
  return %1 : tensor<?x448xf16>
}
