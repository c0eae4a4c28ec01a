func.func @add(%x: tensor<?x8xf16>, %y: tensor<?x8xf16>) -> tensor<?x8xf16> {
  %0 = arith.addf %x, %y : tensor<?x8xf16>
  return %0 : tensor<?x8xf16>
}
