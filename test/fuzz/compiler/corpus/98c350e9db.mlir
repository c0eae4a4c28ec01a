func.func @half(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  %c = arith.constant dense<0.5> : tensor<8xbf16>
  %0 = arith.mulf %x, %c : tensor<8xbf16>
  return %0 : tensor<8xbf16>
}
