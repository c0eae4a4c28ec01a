// Gradients of attention on the H200: docs/benchmarks/attention_backward.py runs these and says what the shapes are. forward_.. give the result and the log of the
// sums that the others take. A function whose name goes on with __TAG is the one before it with a configuration of its own.
func.func @forward_full(%q: tensor<?x32x?x128xf16>, %k: tensor<?x32x?x128xf16>, %v: tensor<?x32x?x128xf16>) -> (tensor<?x32x?x128xf16>, tensor<?x32x?xf32>) {
  %0, %1 = greta.attention %q, %k, %v : tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16> -> tensor<?x32x?x128xf16>, tensor<?x32x?xf32>
  return %0, %1 : tensor<?x32x?x128xf16>, tensor<?x32x?xf32>
}
func.func @full(%q: tensor<?x32x?x128xf16>, %k: tensor<?x32x?x128xf16>, %v: tensor<?x32x?x128xf16>, %o: tensor<?x32x?x128xf16>, %lse: tensor<?x32x?xf32>, %do: tensor<?x32x?x128xf16>) -> (tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>) {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %lse, %do : tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?xf32>, tensor<?x32x?x128xf16> -> tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>
  return %dq, %dk, %dv : tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>
}
func.func @forward_causal(%q: tensor<?x32x?x128xf16>, %k: tensor<?x32x?x128xf16>, %v: tensor<?x32x?x128xf16>) -> (tensor<?x32x?x128xf16>, tensor<?x32x?xf32>) {
  %0, %1 = greta.attention %q, %k, %v {causal} : tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16> -> tensor<?x32x?x128xf16>, tensor<?x32x?xf32>
  return %0, %1 : tensor<?x32x?x128xf16>, tensor<?x32x?xf32>
}
func.func @causal(%q: tensor<?x32x?x128xf16>, %k: tensor<?x32x?x128xf16>, %v: tensor<?x32x?x128xf16>, %o: tensor<?x32x?x128xf16>, %lse: tensor<?x32x?xf32>, %do: tensor<?x32x?x128xf16>) -> (tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>) {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %lse, %do {causal} : tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?xf32>, tensor<?x32x?x128xf16> -> tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>
  return %dq, %dk, %dv : tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>
}
func.func @forward_full_64(%q: tensor<?x32x?x64xf16>, %k: tensor<?x32x?x64xf16>, %v: tensor<?x32x?x64xf16>) -> (tensor<?x32x?x64xf16>, tensor<?x32x?xf32>) {
  %0, %1 = greta.attention %q, %k, %v : tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16> -> tensor<?x32x?x64xf16>, tensor<?x32x?xf32>
  return %0, %1 : tensor<?x32x?x64xf16>, tensor<?x32x?xf32>
}
func.func @full_64(%q: tensor<?x32x?x64xf16>, %k: tensor<?x32x?x64xf16>, %v: tensor<?x32x?x64xf16>, %o: tensor<?x32x?x64xf16>, %lse: tensor<?x32x?xf32>, %do: tensor<?x32x?x64xf16>) -> (tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16>) {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %lse, %do : tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16>, tensor<?x32x?xf32>, tensor<?x32x?x64xf16> -> tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16>
  return %dq, %dk, %dv : tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16>
}
func.func @forward_full_bf16(%q: tensor<?x32x?x128xbf16>, %k: tensor<?x32x?x128xbf16>, %v: tensor<?x32x?x128xbf16>) -> (tensor<?x32x?x128xbf16>, tensor<?x32x?xf32>) {
  %0, %1 = greta.attention %q, %k, %v : tensor<?x32x?x128xbf16>, tensor<?x32x?x128xbf16>, tensor<?x32x?x128xbf16> -> tensor<?x32x?x128xbf16>, tensor<?x32x?xf32>
  return %0, %1 : tensor<?x32x?x128xbf16>, tensor<?x32x?xf32>
}
func.func @full_bf16(%q: tensor<?x32x?x128xbf16>, %k: tensor<?x32x?x128xbf16>, %v: tensor<?x32x?x128xbf16>, %o: tensor<?x32x?x128xbf16>, %lse: tensor<?x32x?xf32>, %do: tensor<?x32x?x128xbf16>) -> (tensor<?x32x?x128xbf16>, tensor<?x32x?x128xbf16>, tensor<?x32x?x128xbf16>) {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %lse, %do : tensor<?x32x?x128xbf16>, tensor<?x32x?x128xbf16>, tensor<?x32x?x128xbf16>, tensor<?x32x?x128xbf16>, tensor<?x32x?xf32>, tensor<?x32x?x128xbf16> -> tensor<?x32x?x128xbf16>, tensor<?x32x?x128xbf16>, tensor<?x32x?x128xbf16>
  return %dq, %dk, %dv : tensor<?x32x?x128xbf16>, tensor<?x32x?x128xbf16>, tensor<?x32x?x128xbf16>
}
func.func @forward_grouped(%q: tensor<?x32x?x128xf16>, %k: tensor<?x8x?x128xf16>, %v: tensor<?x8x?x128xf16>) -> (tensor<?x32x?x128xf16>, tensor<?x32x?xf32>) {
  %0, %1 = greta.attention %q, %k, %v {causal} : tensor<?x32x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16> -> tensor<?x32x?x128xf16>, tensor<?x32x?xf32>
  return %0, %1 : tensor<?x32x?x128xf16>, tensor<?x32x?xf32>
}
func.func @grouped(%q: tensor<?x32x?x128xf16>, %k: tensor<?x8x?x128xf16>, %v: tensor<?x8x?x128xf16>, %o: tensor<?x32x?x128xf16>, %lse: tensor<?x32x?xf32>, %do: tensor<?x32x?x128xf16>) -> (tensor<?x32x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>) {
  %dq, %dk, %dv = greta.attention_backward %q, %k, %v, %o, %lse, %do {causal} : tensor<?x32x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?xf32>, tensor<?x32x?x128xf16> -> tensor<?x32x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>
  return %dq, %dk, %dv : tensor<?x32x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>
}
