// Attention on the H200, as a model's layers call it: docs/benchmarks/attention.py runs these and says what the shapes are. A function whose name goes on with
// __TAG is the one before it with a configuration of its own.
func.func @full(%q: tensor<?x32x?x128xf16>, %k: tensor<?x32x?x128xf16>, %v: tensor<?x32x?x128xf16>) -> tensor<?x32x?x128xf16> {
  %0 = greta.attention %q, %k, %v : tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16> -> tensor<?x32x?x128xf16>
  return %0 : tensor<?x32x?x128xf16>
}
func.func @causal(%q: tensor<?x32x?x128xf16>, %k: tensor<?x32x?x128xf16>, %v: tensor<?x32x?x128xf16>) -> tensor<?x32x?x128xf16> {
  %0 = greta.attention %q, %k, %v {causal} : tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16> -> tensor<?x32x?x128xf16>
  return %0 : tensor<?x32x?x128xf16>
}
func.func @full_64(%q: tensor<?x32x?x64xf16>, %k: tensor<?x32x?x64xf16>, %v: tensor<?x32x?x64xf16>) -> tensor<?x32x?x64xf16> {
  %0 = greta.attention %q, %k, %v : tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16>, tensor<?x32x?x64xf16> -> tensor<?x32x?x64xf16>
  return %0 : tensor<?x32x?x64xf16>
}
func.func @full_bf16(%q: tensor<?x32x?x128xbf16>, %k: tensor<?x32x?x128xbf16>, %v: tensor<?x32x?x128xbf16>) -> tensor<?x32x?x128xbf16> {
  %0 = greta.attention %q, %k, %v : tensor<?x32x?x128xbf16>, tensor<?x32x?x128xbf16>, tensor<?x32x?x128xbf16> -> tensor<?x32x?x128xbf16>
  return %0 : tensor<?x32x?x128xbf16>
}
func.func @full_f32(%q: tensor<?x32x?x128xf32>, %k: tensor<?x32x?x128xf32>, %v: tensor<?x32x?x128xf32>) -> tensor<?x32x?x128xf32> {
  %0 = greta.attention %q, %k, %v : tensor<?x32x?x128xf32>, tensor<?x32x?x128xf32>, tensor<?x32x?x128xf32> -> tensor<?x32x?x128xf32>
  return %0 : tensor<?x32x?x128xf32>
}
func.func @gated(%q: tensor<?x32x?x128xf16>, %k: tensor<?x32x?x128xf16>, %v: tensor<?x32x?x128xf16>, %gate: tensor<?x32x?x128xf16>) -> tensor<?x32x?x128xf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1.0 : f32
  %n0 = tensor.dim %q, %c0 : tensor<?x32x?x128xf16>
  %n2 = tensor.dim %q, %c2 : tensor<?x32x?x128xf16>
  %o = greta.attention %q, %k, %v : tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16>, tensor<?x32x?x128xf16> -> tensor<?x32x?x128xf16>
  %init = tensor.empty(%n0, %n2) : tensor<?x32x?x128xf32>
  %ones = linalg.fill ins(%one : f32) outs(%init : tensor<?x32x?x128xf32>) -> tensor<?x32x?x128xf32>
  %wide = arith.extf %o : tensor<?x32x?x128xf16> to tensor<?x32x?x128xf32>
  %g = arith.extf %gate : tensor<?x32x?x128xf16> to tensor<?x32x?x128xf32>
  %minus = arith.negf %g : tensor<?x32x?x128xf32>
  %power = math.exp %minus : tensor<?x32x?x128xf32>
  %more = arith.addf %power, %ones : tensor<?x32x?x128xf32>
  %sigmoid = arith.divf %ones, %more : tensor<?x32x?x128xf32>
  %y = arith.mulf %wide, %sigmoid : tensor<?x32x?x128xf32>
  %0 = arith.truncf %y : tensor<?x32x?x128xf32> to tensor<?x32x?x128xf16>
  return %0 : tensor<?x32x?x128xf16>
}
func.func @grouped(%q: tensor<?x32x?x128xf16>, %k: tensor<?x8x?x128xf16>, %v: tensor<?x8x?x128xf16>) -> tensor<?x32x?x128xf16> {
  %0 = greta.attention %q, %k, %v : tensor<?x32x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16> -> tensor<?x32x?x128xf16>
  return %0 : tensor<?x32x?x128xf16>
}
func.func @chunk(%q: tensor<?x32x?x128xf16>, %k: tensor<?x8x?x128xf16>, %v: tensor<?x8x?x128xf16>) -> tensor<?x32x?x128xf16> {
  %0 = greta.attention %q, %k, %v {causal} : tensor<?x32x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16> -> tensor<?x32x?x128xf16>
  return %0 : tensor<?x32x?x128xf16>
}
func.func @decode(%q: tensor<?x32x1x128xf16>, %k: tensor<?x8x?x128xf16>, %v: tensor<?x8x?x128xf16>, %lengths: tensor<?xi32>) -> tensor<?x32x1x128xf16> {
  %0 = greta.attention %q, %k, %v lengths(%lengths) {causal} : tensor<?x32x1x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?xi32> -> tensor<?x32x1x128xf16>
  return %0 : tensor<?x32x1x128xf16>
}
func.func @paged(%q: tensor<?x32x1x128xf16>, %k: tensor<?x16x8x128xf16>, %v: tensor<?x16x8x128xf16>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x32x1x128xf16> {
  %0 = greta.paged_attention %q, %k, %v, %table, %lengths : tensor<?x32x1x128xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>, tensor<?x?xi32>, tensor<?xi32> -> tensor<?x32x1x128xf16>
  return %0 : tensor<?x32x1x128xf16>
}
func.func @paged_chunk(%q: tensor<?x32x?x128xf16>, %k: tensor<?x16x8x128xf16>, %v: tensor<?x16x8x128xf16>, %table: tensor<?x?xi32>, %lengths: tensor<?xi32>) -> tensor<?x32x?x128xf16> {
  %0 = greta.paged_attention %q, %k, %v, %table, %lengths : tensor<?x32x?x128xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>, tensor<?x?xi32>, tensor<?xi32> -> tensor<?x32x?x128xf16>
  return %0 : tensor<?x32x?x128xf16>
}
func.func @decode_e4m3(%q: tensor<?x32x1x128xf16>, %k: tensor<?x8x?x128xf8E4M3FN>, %v: tensor<?x8x?x128xf8E4M3FN>, %lengths: tensor<?xi32>, %ks: tensor<1x8x1xf32>, %vs: tensor<1x8x1xf32>) -> tensor<?x32x1x128xf16> {
  %0 = greta.attention %q, %k, %v lengths(%lengths) scales(%ks, %vs) {causal} : tensor<?x32x1x128xf16>, tensor<?x8x?x128xf8E4M3FN>, tensor<?x8x?x128xf8E4M3FN>, tensor<?xi32>, tensor<1x8x1xf32>, tensor<1x8x1xf32> -> tensor<?x32x1x128xf16>
  return %0 : tensor<?x32x1x128xf16>
}
func.func @decode_i8(%q: tensor<?x32x1x128xf16>, %k: tensor<?x8x?x128xi8>, %v: tensor<?x8x?x128xi8>, %lengths: tensor<?xi32>, %ks: tensor<?x8x?xf32>, %vs: tensor<?x8x?xf32>) -> tensor<?x32x1x128xf16> {
  %0 = greta.attention %q, %k, %v lengths(%lengths) scales(%ks, %vs) {causal} : tensor<?x32x1x128xf16>, tensor<?x8x?x128xi8>, tensor<?x8x?x128xi8>, tensor<?xi32>, tensor<?x8x?xf32>, tensor<?x8x?xf32> -> tensor<?x32x1x128xf16>
  return %0 : tensor<?x32x1x128xf16>
}
