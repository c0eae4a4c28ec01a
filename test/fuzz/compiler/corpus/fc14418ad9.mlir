func.func @broadcast(%w: tensor<64xf16>, %x: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf16>
  %0 = tensor.empty(%n) : tensor<?x64xf16>
  %1 = linalg.broadcast ins(%w : tensor<64xf16>) outs(%0 : tensor<?x64xf16>) dimensions = [0]
  return %1 : tensor<?x64xf16>
}
