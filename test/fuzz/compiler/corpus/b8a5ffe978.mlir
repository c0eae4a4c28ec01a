func.func @half(%x: tensor<8xf8E4M3FN>) -> tensor<8xf8E4M3FN> {
  %c = arith.constant dense<0.5> : tensor<8xf8E4M3FN>
  %0 = arith.mulf %x, %c : tensor<8xf8E4M3FN>
  return %0 : tensor<8xf8E4M3FN>
}
