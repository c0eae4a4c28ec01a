// Small functions whose right results are known exactly: the runtime runs every variant of them that a device can run before it trusts the device
// (runtime/src/Health.cpp, which computes the same on the host). The name says what is computed and in which type.

func.func @muladd_f32(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = arith.mulf %x, %y : tensor<?x64xf32>
  %1 = arith.addf %0, %x : tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}
func.func @muladd_f16(%x: tensor<?x64xf16>, %y: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %0 = arith.mulf %x, %y : tensor<?x64xf16>
  %1 = arith.addf %0, %x : tensor<?x64xf16>
  return %1 : tensor<?x64xf16>
}
func.func @muladd_bf16(%x: tensor<?x64xbf16>, %y: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  %0 = arith.mulf %x, %y : tensor<?x64xbf16>
  %1 = arith.addf %0, %x : tensor<?x64xbf16>
  return %1 : tensor<?x64xbf16>
}
func.func @muladd_i8(%x: tensor<?x64xi8>, %y: tensor<?x64xi8>) -> tensor<?x64xi8> {
  %0 = arith.muli %x, %y : tensor<?x64xi8>
  %1 = arith.addi %0, %x : tensor<?x64xi8>
  return %1 : tensor<?x64xi8>
}
func.func @muladd_i32(%x: tensor<?x64xi32>, %y: tensor<?x64xi32>) -> tensor<?x64xi32> {
  %0 = arith.muli %x, %y : tensor<?x64xi32>
  %1 = arith.addi %0, %x : tensor<?x64xi32>
  return %1 : tensor<?x64xi32>
}
func.func @norm_f32(%x: tensor<?x512xf32>, %w: tensor<512xf32>) -> tensor<?x512xf32> {
  %0 = greta.rms_norm %x, %w {eps = 0.0 : f32} : tensor<?x512xf32>, tensor<512xf32> -> tensor<?x512xf32>
  return %0 : tensor<?x512xf32>
}
func.func @norm_f16(%x: tensor<?x512xf16>, %w: tensor<512xf16>) -> tensor<?x512xf16> {
  %0 = greta.rms_norm %x, %w {eps = 0.0 : f32} : tensor<?x512xf16>, tensor<512xf16> -> tensor<?x512xf16>
  return %0 : tensor<?x512xf16>
}
func.func @norm_bf16(%x: tensor<?x512xbf16>, %w: tensor<512xbf16>) -> tensor<?x512xbf16> {
  %0 = greta.rms_norm %x, %w {eps = 0.0 : f32} : tensor<?x512xbf16>, tensor<512xbf16> -> tensor<?x512xbf16>
  return %0 : tensor<?x512xbf16>
}
func.func @matmul_f32_f32(%a: tensor<?x128xf32>, %b: tensor<64x128xf32>) -> tensor<?x64xf32> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x128xf32>, tensor<64x128xf32> -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
func.func @matmul_f16_f32(%a: tensor<?x128xf16>, %b: tensor<64x128xf16>) -> tensor<?x64xf32> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x128xf16>, tensor<64x128xf16> -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
func.func @matmul_f16_f16(%a: tensor<?x128xf16>, %b: tensor<64x128xf16>) -> tensor<?x64xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x128xf16>, tensor<64x128xf16> -> tensor<?x64xf16>
  return %0 : tensor<?x64xf16>
}
func.func @matmul_bf16_f32(%a: tensor<?x128xbf16>, %b: tensor<64x128xbf16>) -> tensor<?x64xf32> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x128xbf16>, tensor<64x128xbf16> -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
func.func @matmul_bf16_bf16(%a: tensor<?x128xbf16>, %b: tensor<64x128xbf16>) -> tensor<?x64xbf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x128xbf16>, tensor<64x128xbf16> -> tensor<?x64xbf16>
  return %0 : tensor<?x64xbf16>
}
func.func @matmul_i8_i32(%a: tensor<?x128xi8>, %b: tensor<64x128xi8>) -> tensor<?x64xi32> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x128xi8>, tensor<64x128xi8> -> tensor<?x64xi32>
  return %0 : tensor<?x64xi32>
}
func.func @matmul_f8e4m3fn_f32(%a: tensor<?x128xf8E4M3FN>, %b: tensor<64x128xf8E4M3FN>) -> tensor<?x64xf32> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x128xf8E4M3FN>, tensor<64x128xf8E4M3FN> -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
func.func @matmul_f8e5m2_f32(%a: tensor<?x128xf8E5M2>, %b: tensor<64x128xf8E5M2>) -> tensor<?x64xf32> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x128xf8E5M2>, tensor<64x128xf8E5M2> -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
