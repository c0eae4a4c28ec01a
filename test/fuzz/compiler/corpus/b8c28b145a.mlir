func.func @neox(%x: tensor<?x4x8xf16>, %cos: tensor<?x4xf32>, %sin: tensor<?x4xf32>) -> tensor<?x4x8xf16> {
  %0 = greta.rope %x, %cos, %sin {style = "neox"} : tensor<?x4x8xf16>, tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4x8xf16>
  return %0 : tensor<?x4x8xf16>
}
