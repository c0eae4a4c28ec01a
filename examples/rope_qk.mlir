// Rotary embedding of queries (32 heads) and keys (8 heads) of 128 columns.
func.func @rope_qk(%q: tensor<?x32x128xf16>, %k: tensor<?x8x128xf16>, %cos: tensor<?x64xf32>, %sin: tensor<?x64xf32>)
    -> (tensor<?x32x128xf16>, tensor<?x8x128xf16>) {
  %0 = greta.rope %q, %cos, %sin {style = "neox"}
      : tensor<?x32x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x32x128xf16>
  %1 = greta.rope %k, %cos, %sin {style = "neox"}
      : tensor<?x8x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x8x128xf16>
  return %0, %1 : tensor<?x32x128xf16>, tensor<?x8x128xf16>
}
