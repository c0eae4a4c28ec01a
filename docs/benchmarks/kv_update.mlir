// New rows of a KV cache on the H200, and the projection of a layer of Llama 3 8B that brings them there beside the product alone: docs/benchmarks/kv_update.py
// runs these.
func.func @rows(%cache: tensor<?x8x?x128xf16>, %new: tensor<?x8x?x128xf16>, %pos: tensor<?xi32>) -> tensor<?x8x?x128xf16> {
  %0 = greta.kv_update %cache, %new, %pos : tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?xi32> -> tensor<?x8x?x128xf16>
  return %0 : tensor<?x8x?x128xf16>
}
func.func @pages(%cache: tensor<?x16x8x128xf16>, %new: tensor<?x8x128xf16>, %slots: tensor<?xi32>) -> tensor<?x16x8x128xf16> {
  %0 = greta.paged_kv_update %cache, %new, %slots : tensor<?x16x8x128xf16>, tensor<?x8x128xf16>, tensor<?xi32> -> tensor<?x16x8x128xf16>
  return %0 : tensor<?x16x8x128xf16>
}
func.func @product_8(%x: tensor<8x4096xf16>, %w: tensor<6144x4096xf16>) -> tensor<8x6144xf16> {
  %0 = greta.matmul %x, %w {transpose_b} : tensor<8x4096xf16>, tensor<6144x4096xf16> -> tensor<8x6144xf16>
  return %0 : tensor<8x6144xf16>
}
func.func @fused_8(%x: tensor<8x4096xf16>, %w: tensor<6144x4096xf16>, %cos: tensor<8x64xf32>, %sin: tensor<8x64xf32>, %k_cache: tensor<?x16x8x128xf16>, %v_cache: tensor<?x16x8x128xf16>,
    %slots: tensor<8xi32>) -> (tensor<8x32x128xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>) {
  %y = greta.matmul %x, %w {transpose_b} : tensor<8x4096xf16>, tensor<6144x4096xf16> -> tensor<8x6144xf16>
  %q_columns = tensor.extract_slice %y[0, 0] [8, 4096] [1, 1] : tensor<8x6144xf16> to tensor<8x4096xf16>
  %k_columns = tensor.extract_slice %y[0, 4096] [8, 1024] [1, 1] : tensor<8x6144xf16> to tensor<8x1024xf16>
  %v_columns = tensor.extract_slice %y[0, 5120] [8, 1024] [1, 1] : tensor<8x6144xf16> to tensor<8x1024xf16>
  %q_heads = tensor.expand_shape %q_columns [[0], [1, 2]] output_shape [8, 32, 128] : tensor<8x4096xf16> into tensor<8x32x128xf16>
  %k_heads = tensor.expand_shape %k_columns [[0], [1, 2]] output_shape [8, 8, 128] : tensor<8x1024xf16> into tensor<8x8x128xf16>
  %v_new = tensor.expand_shape %v_columns [[0], [1, 2]] output_shape [8, 8, 128] : tensor<8x1024xf16> into tensor<8x8x128xf16>
  %q = greta.rope %q_heads, %cos, %sin {style = "neox"} : tensor<8x32x128xf16>, tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x32x128xf16>
  %k_new = greta.rope %k_heads, %cos, %sin {style = "neox"} : tensor<8x8x128xf16>, tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x8x128xf16>
  %keys = greta.paged_kv_update %k_cache, %k_new, %slots : tensor<?x16x8x128xf16>, tensor<8x8x128xf16>, tensor<8xi32> -> tensor<?x16x8x128xf16>
  %values = greta.paged_kv_update %v_cache, %v_new, %slots : tensor<?x16x8x128xf16>, tensor<8x8x128xf16>, tensor<8xi32> -> tensor<?x16x8x128xf16>
  return %q, %keys, %values : tensor<8x32x128xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>
}
func.func @product(%x: tensor<?x4096xf16>, %w: tensor<6144x4096xf16>) -> tensor<?x6144xf16> {
  %0 = greta.matmul %x, %w {transpose_b} : tensor<?x4096xf16>, tensor<6144x4096xf16> -> tensor<?x6144xf16>
  return %0 : tensor<?x6144xf16>
}
func.func @fused(%x: tensor<?x4096xf16>, %w: tensor<6144x4096xf16>, %cos: tensor<?x64xf32>, %sin: tensor<?x64xf32>, %k_cache: tensor<?x16x8x128xf16>, %v_cache: tensor<?x16x8x128xf16>,
    %slots: tensor<?xi32>) -> (tensor<?x32x128xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>) {
  %zero = arith.constant 0 : index
  %t = tensor.dim %x, %zero : tensor<?x4096xf16>
  %y = greta.matmul %x, %w {transpose_b} : tensor<?x4096xf16>, tensor<6144x4096xf16> -> tensor<?x6144xf16>
  %q_columns = tensor.extract_slice %y[0, 0] [%t, 4096] [1, 1] : tensor<?x6144xf16> to tensor<?x4096xf16>
  %k_columns = tensor.extract_slice %y[0, 4096] [%t, 1024] [1, 1] : tensor<?x6144xf16> to tensor<?x1024xf16>
  %v_columns = tensor.extract_slice %y[0, 5120] [%t, 1024] [1, 1] : tensor<?x6144xf16> to tensor<?x1024xf16>
  %q_heads = tensor.expand_shape %q_columns [[0], [1, 2]] output_shape [%t, 32, 128] : tensor<?x4096xf16> into tensor<?x32x128xf16>
  %k_heads = tensor.expand_shape %k_columns [[0], [1, 2]] output_shape [%t, 8, 128] : tensor<?x1024xf16> into tensor<?x8x128xf16>
  %v_new = tensor.expand_shape %v_columns [[0], [1, 2]] output_shape [%t, 8, 128] : tensor<?x1024xf16> into tensor<?x8x128xf16>
  %q = greta.rope %q_heads, %cos, %sin {style = "neox"} : tensor<?x32x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x32x128xf16>
  %k_new = greta.rope %k_heads, %cos, %sin {style = "neox"} : tensor<?x8x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x8x128xf16>
  %keys = greta.paged_kv_update %k_cache, %k_new, %slots : tensor<?x16x8x128xf16>, tensor<?x8x128xf16>, tensor<?xi32> -> tensor<?x16x8x128xf16>
  %values = greta.paged_kv_update %v_cache, %v_new, %slots : tensor<?x16x8x128xf16>, tensor<?x8x128xf16>, tensor<?xi32> -> tensor<?x16x8x128xf16>
  return %q, %keys, %values : tensor<?x32x128xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>
}
