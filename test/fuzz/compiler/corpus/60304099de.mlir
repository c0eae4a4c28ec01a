func.func @softmax(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = greta.softmax %x : tensor<?x8xf32> -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
