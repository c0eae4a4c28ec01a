func.func @swiglu(%gate: tensor<?x64xf16>, %up: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %0 = greta.swiglu %gate, %up : tensor<?x64xf16>, tensor<?x64xf16> -> tensor<?x64xf16>
  return %0 : tensor<?x64xf16>
}
