// The kernels of a step that decodes one token of Llama 3 8B with weights of q4_0, one function each, so that docs/benchmarks/prefetch.py launches what it likes
// beside them. `product` has the bytes of a step's average kernel, 17.7 MB; `attention` stands for attention of few keys: one workgroup that reads next to nothing.
func.func @product(%x: tensor<1x4096xf16>, %q: tensor<7680x512xi32>, %s: tensor<7680x128xf16>) -> tensor<1x7680xf16> {
  %w = greta.dequant %q, %s {format = "q4_0", group = 32} : tensor<7680x512xi32>, tensor<7680x128xf16> -> tensor<7680x4096xf16>
  %y = greta.matmul %x, %w {transpose_b} : tensor<1x4096xf16>, tensor<7680x4096xf16> -> tensor<1x7680xf16>
  return %y : tensor<1x7680xf16>
}
func.func @norm(%x: tensor<1x4096xf32>, %w: tensor<4096xf32>) -> tensor<1x4096xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<1x4096xf32>, tensor<4096xf32> -> tensor<1x4096xf32>
  %1 = arith.truncf %0 : tensor<1x4096xf32> to tensor<1x4096xf16>
  return %1 : tensor<1x4096xf16>
}
func.func @qkv(%x: tensor<1x4096xf16>, %q: tensor<6144x512xi32>, %s: tensor<6144x128xf16>) -> tensor<1x6144xf16> {
  %w = greta.dequant %q, %s {format = "q4_0", group = 32} : tensor<6144x512xi32>, tensor<6144x128xf16> -> tensor<6144x4096xf16>
  %y = greta.matmul %x, %w {transpose_b} : tensor<1x4096xf16>, tensor<6144x4096xf16> -> tensor<1x6144xf16>
  return %y : tensor<1x6144xf16>
}
func.func @attention(%x: tensor<1x4096xf16>, %w: tensor<4096xf16>) -> tensor<1x4096xf16> {
  %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<1x4096xf16>, tensor<4096xf16> -> tensor<1x4096xf16>
  return %0 : tensor<1x4096xf16>
}
func.func @out(%x: tensor<1x4096xf16>, %q: tensor<4096x512xi32>, %s: tensor<4096x128xf16>, %residual: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %w = greta.dequant %q, %s {format = "q4_0", group = 32} : tensor<4096x512xi32>, tensor<4096x128xf16> -> tensor<4096x4096xf16>
  %y = greta.matmul %x, %w {transpose_b} : tensor<1x4096xf16>, tensor<4096x4096xf16> -> tensor<1x4096xf16>
  %1 = arith.extf %y : tensor<1x4096xf16> to tensor<1x4096xf32>
  %2 = arith.addf %residual, %1 : tensor<1x4096xf32>
  return %2 : tensor<1x4096xf32>
}
func.func @gate_up(%x: tensor<1x4096xf16>, %gate: tensor<14336x512xi32>, %gate_s: tensor<14336x128xf16>, %up: tensor<14336x512xi32>, %up_s: tensor<14336x128xf16>) -> tensor<1x14336xf16> {
  %0 = greta.dequant %gate, %gate_s {format = "q4_0", group = 32} : tensor<14336x512xi32>, tensor<14336x128xf16> -> tensor<14336x4096xf16>
  %1 = greta.matmul %x, %0 {transpose_b} : tensor<1x4096xf16>, tensor<14336x4096xf16> -> tensor<1x14336xf16>
  %2 = greta.dequant %up, %up_s {format = "q4_0", group = 32} : tensor<14336x512xi32>, tensor<14336x128xf16> -> tensor<14336x4096xf16>
  %3 = greta.matmul %x, %2 {transpose_b} : tensor<1x4096xf16>, tensor<14336x4096xf16> -> tensor<1x14336xf16>
  %4 = greta.swiglu %1, %3 : tensor<1x14336xf16>, tensor<1x14336xf16> -> tensor<1x14336xf16>
  return %4 : tensor<1x14336xf16>
}
func.func @down(%x: tensor<1x14336xf16>, %q: tensor<4096x1792xi32>, %s: tensor<4096x448xf16>, %residual: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %w = greta.dequant %q, %s {format = "q4_0", group = 32} : tensor<4096x1792xi32>, tensor<4096x448xf16> -> tensor<4096x14336xf16>
  %y = greta.matmul %x, %w {transpose_b} : tensor<1x14336xf16>, tensor<4096x14336xf16> -> tensor<1x4096xf16>
  %1 = arith.extf %y : tensor<1x4096xf16> to tensor<1x4096xf32>
  %2 = arith.addf %residual, %1 : tensor<1x4096xf32>
  return %2 : tensor<1x4096xf32>
}
// The number that says how far a step has come.
func.func @bump(%number: tensor<1xi32>) -> tensor<1xi32> {
  %one = arith.constant dense<1> : tensor<1xi32>
  %0 = arith.addi %number, %one : tensor<1xi32>
  return %0 : tensor<1xi32>
}
