func.func @unknown(%n: tensor<index>) -> tensor<?xf32> {
  %0 = tensor.extract %n[] : tensor<index>
  %1 = tensor.empty(%0) : tensor<?xf32>
  return %1 : tensor<?xf32>
}
