func.func @swiglu(%gate: tensor<?x14336xf16>, %up: tensor<?x14336xf16>) -> tensor<?x14336xf16> {
  %0 = greta.swiglu %gate, %up : tensor<?x14336xf16>, tensor<?x14336xf16> -> tensor<?x14336xf16>
  return %0 : tensor<?x14336xf16>
}
