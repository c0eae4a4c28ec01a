func.func @uninitialised(%e: tensor<4x0xf8E4M3FNUZ>) -> tensor<4x0xf8E4M3FNUZ> {

  %0 = arith.addf %e, %e : tensor<4x0xf8E4M3FNUZ>
  return %0 : tensor<4x0xf8E4M3FNUZ>
}
