// Grouped GEMMs on the H200: docs/benchmarks/grouped_gemm_gpu.py runs these. 128 experts, hidden 2048, ffn 768; 8 rows for each of 1, 64, 4096 tokens, and any number of rows; q4_k_interleaved is q4_k in the order in which greta-llm keeps it.
// `plain`: a GEMM of one row that reads the weights of 8 experts.
func.func @f16_1(%a: tensor<8x2048xf16>, %b: tensor<128x768x2048xf16>, %o: tensor<129xi32>) -> tensor<8x768xf16> {
  %y = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<8x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<8x768xf16>
  return %y : tensor<8x768xf16>
}
func.func @f16_64(%a: tensor<512x2048xf16>, %b: tensor<128x768x2048xf16>, %o: tensor<129xi32>) -> tensor<512x768xf16> {
  %y = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<512x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<512x768xf16>
  return %y : tensor<512x768xf16>
}
func.func @f16_4096(%a: tensor<32768x2048xf16>, %b: tensor<128x768x2048xf16>, %o: tensor<129xi32>) -> tensor<32768x768xf16> {
  %y = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<32768x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<32768x768xf16>
  return %y : tensor<32768x768xf16>
}
func.func @f16_any(%a: tensor<?x2048xf16>, %b: tensor<128x768x2048xf16>, %o: tensor<129xi32>) -> tensor<?x768xf16> {
  %y = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<?x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<?x768xf16>
  return %y : tensor<?x768xf16>
}
func.func @q4_k_1(%a: tensor<8x2048xf16>, %q: tensor<98304x256xi32>, %s: tensor<98304x64xf16>, %z: tensor<98304x64xf16>, %o: tensor<129xi32>) -> tensor<8x768xf16> {
  %w = greta.dequant %q, %s, %z {format = "q4_k", group = 32} : tensor<98304x256xi32>, tensor<98304x64xf16>, tensor<98304x64xf16> -> tensor<98304x2048xf16>
  %b = tensor.expand_shape %w [[0, 1], [2]] output_shape [128, 768, 2048] : tensor<98304x2048xf16> into tensor<128x768x2048xf16>
  %y = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<8x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<8x768xf16>
  return %y : tensor<8x768xf16>
}
func.func @q4_k_64(%a: tensor<512x2048xf16>, %q: tensor<98304x256xi32>, %s: tensor<98304x64xf16>, %z: tensor<98304x64xf16>, %o: tensor<129xi32>) -> tensor<512x768xf16> {
  %w = greta.dequant %q, %s, %z {format = "q4_k", group = 32} : tensor<98304x256xi32>, tensor<98304x64xf16>, tensor<98304x64xf16> -> tensor<98304x2048xf16>
  %b = tensor.expand_shape %w [[0, 1], [2]] output_shape [128, 768, 2048] : tensor<98304x2048xf16> into tensor<128x768x2048xf16>
  %y = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<512x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<512x768xf16>
  return %y : tensor<512x768xf16>
}
func.func @q4_k_4096(%a: tensor<32768x2048xf16>, %q: tensor<98304x256xi32>, %s: tensor<98304x64xf16>, %z: tensor<98304x64xf16>, %o: tensor<129xi32>) -> tensor<32768x768xf16> {
  %w = greta.dequant %q, %s, %z {format = "q4_k", group = 32} : tensor<98304x256xi32>, tensor<98304x64xf16>, tensor<98304x64xf16> -> tensor<98304x2048xf16>
  %b = tensor.expand_shape %w [[0, 1], [2]] output_shape [128, 768, 2048] : tensor<98304x2048xf16> into tensor<128x768x2048xf16>
  %y = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<32768x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<32768x768xf16>
  return %y : tensor<32768x768xf16>
}
func.func @q4_k_any(%a: tensor<?x2048xf16>, %q: tensor<98304x256xi32>, %s: tensor<98304x64xf16>, %z: tensor<98304x64xf16>, %o: tensor<129xi32>) -> tensor<?x768xf16> {
  %w = greta.dequant %q, %s, %z {format = "q4_k", group = 32} : tensor<98304x256xi32>, tensor<98304x64xf16>, tensor<98304x64xf16> -> tensor<98304x2048xf16>
  %b = tensor.expand_shape %w [[0, 1], [2]] output_shape [128, 768, 2048] : tensor<98304x2048xf16> into tensor<128x768x2048xf16>
  %y = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<?x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<?x768xf16>
  return %y : tensor<?x768xf16>
}
func.func @f16_plain(%a: tensor<1x2048xf16>, %b: tensor<6144x2048xf16>) -> tensor<1x6144xf16> {
  %y = greta.matmul %a, %b {transpose_b} : tensor<1x2048xf16>, tensor<6144x2048xf16> -> tensor<1x6144xf16>
  return %y : tensor<1x6144xf16>
}
func.func @q4_k_plain(%a: tensor<1x2048xf16>, %q: tensor<6144x256xi32>, %s: tensor<6144x64xf16>, %z: tensor<6144x64xf16>) -> tensor<1x6144xf16> {
  %w = greta.dequant %q, %s, %z {format = "q4_k", group = 32} : tensor<6144x256xi32>, tensor<6144x64xf16>, tensor<6144x64xf16> -> tensor<6144x2048xf16>
  %y = greta.matmul %a, %w {transpose_b} : tensor<1x2048xf16>, tensor<6144x2048xf16> -> tensor<1x6144xf16>
  return %y : tensor<1x6144xf16>
}
func.func @q4_k_interleaved_1(%a: tensor<8x2048xf16>, %q: tensor<98304x256xi32>, %s: tensor<98304x64xf16>, %z: tensor<98304x64xf16>, %o: tensor<129xi32>) -> tensor<8x768xf16> {
  %w = greta.dequant %q, %s, %z {format = "q4_k_interleaved", group = 32} : tensor<98304x256xi32>, tensor<98304x64xf16>, tensor<98304x64xf16> -> tensor<98304x2048xf16>
  %b = tensor.expand_shape %w [[0, 1], [2]] output_shape [128, 768, 2048] : tensor<98304x2048xf16> into tensor<128x768x2048xf16>
  %y = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<8x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<8x768xf16>
  return %y : tensor<8x768xf16>
}
func.func @q4_k_interleaved_64(%a: tensor<512x2048xf16>, %q: tensor<98304x256xi32>, %s: tensor<98304x64xf16>, %z: tensor<98304x64xf16>, %o: tensor<129xi32>) -> tensor<512x768xf16> {
  %w = greta.dequant %q, %s, %z {format = "q4_k_interleaved", group = 32} : tensor<98304x256xi32>, tensor<98304x64xf16>, tensor<98304x64xf16> -> tensor<98304x2048xf16>
  %b = tensor.expand_shape %w [[0, 1], [2]] output_shape [128, 768, 2048] : tensor<98304x2048xf16> into tensor<128x768x2048xf16>
  %y = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<512x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<512x768xf16>
  return %y : tensor<512x768xf16>
}
func.func @q4_k_interleaved_4096(%a: tensor<32768x2048xf16>, %q: tensor<98304x256xi32>, %s: tensor<98304x64xf16>, %z: tensor<98304x64xf16>, %o: tensor<129xi32>) -> tensor<32768x768xf16> {
  %w = greta.dequant %q, %s, %z {format = "q4_k_interleaved", group = 32} : tensor<98304x256xi32>, tensor<98304x64xf16>, tensor<98304x64xf16> -> tensor<98304x2048xf16>
  %b = tensor.expand_shape %w [[0, 1], [2]] output_shape [128, 768, 2048] : tensor<98304x2048xf16> into tensor<128x768x2048xf16>
  %y = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<32768x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<32768x768xf16>
  return %y : tensor<32768x768xf16>
}
func.func @q4_k_interleaved_any(%a: tensor<?x2048xf16>, %q: tensor<98304x256xi32>, %s: tensor<98304x64xf16>, %z: tensor<98304x64xf16>, %o: tensor<129xi32>) -> tensor<?x768xf16> {
  %w = greta.dequant %q, %s, %z {format = "q4_k_interleaved", group = 32} : tensor<98304x256xi32>, tensor<98304x64xf16>, tensor<98304x64xf16> -> tensor<98304x2048xf16>
  %b = tensor.expand_shape %w [[0, 1], [2]] output_shape [128, 768, 2048] : tensor<98304x2048xf16> into tensor<128x768x2048xf16>
  %y = greta.grouped_matmul %a, %b, %o {transpose_b} : tensor<?x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<?x768xf16>
  return %y : tensor<?x768xf16>
}
func.func @q4_k_interleaved_plain(%a: tensor<1x2048xf16>, %q: tensor<6144x256xi32>, %s: tensor<6144x64xf16>, %z: tensor<6144x64xf16>) -> tensor<1x6144xf16> {
  %w = greta.dequant %q, %s, %z {format = "q4_k_interleaved", group = 32} : tensor<6144x256xi32>, tensor<6144x64xf16>, tensor<6144x64xf16> -> tensor<6144x2048xf16>
  %y = greta.matmul %a, %w {transpose_b} : tensor<1x2048xf16>, tensor<6144x2048xf16> -> tensor<1x6144xf16>
  return %y : tensor<1x6144xf16>
}
