func.func @dequant(%q: tensor<?x24xi32>, %s: tensor<?x3xf16>, %z: tensor<?x1xi32>) -> tensor<?x192xf16> {
  %0 = greta.dequant %q, %s, %z {group = 64} : tensor<?x24xi32>, tensor<?x3xf16>, tensor<?x1xi32> -> tensor<?x192xf16>
  return %0 : tensor<?x192xf16>
}
