// A layer of Llama 3 8B with a KV cache in pages, for a token of each of eight sequences and for new tokens of one: six and seven launches.
func.func @decode(%x: tensor<8x4096xf16>,
    %w_norm: tensor<4096xf16>,
    %w_qkv: tensor<6144x4096xf16>,
    %cos: tensor<8x64xf32>,
    %sin: tensor<8x64xf32>,
    %k_cache: tensor<?x16x8x128xf16>,
    %v_cache: tensor<?x16x8x128xf16>,
    %slots: tensor<8xi32>,
    %table: tensor<8x?xi32>,
    %lengths: tensor<8xi32>,
    %w_out: tensor<4096x4096xf16>,
    %w_mlp_norm: tensor<4096xf16>,
    %w_gate_up: tensor<28672x4096xf16>,
    %w_down: tensor<4096x14336xf16>)
    -> (tensor<8x4096xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>) {
  %normed = greta.rms_norm %x, %w_norm {eps = 1.0e-5 : f32} : tensor<8x4096xf16>, tensor<4096xf16> -> tensor<8x4096xf16>
  %qkv = greta.matmul %normed, %w_qkv {transpose_b} : tensor<8x4096xf16>, tensor<6144x4096xf16> -> tensor<8x6144xf16>
  %q_columns = tensor.extract_slice %qkv[0, 0] [8, 4096] [1, 1] : tensor<8x6144xf16> to tensor<8x4096xf16>
  %k_columns = tensor.extract_slice %qkv[0, 4096] [8, 1024] [1, 1] : tensor<8x6144xf16> to tensor<8x1024xf16>
  %v_columns = tensor.extract_slice %qkv[0, 5120] [8, 1024] [1, 1] : tensor<8x6144xf16> to tensor<8x1024xf16>
  %q_heads = tensor.expand_shape %q_columns [[0], [1, 2]] output_shape [8, 32, 128] : tensor<8x4096xf16> into tensor<8x32x128xf16>
  %k_heads = tensor.expand_shape %k_columns [[0], [1, 2]] output_shape [8, 8, 128] : tensor<8x1024xf16> into tensor<8x8x128xf16>
  %v_new = tensor.expand_shape %v_columns [[0], [1, 2]] output_shape [8, 8, 128] : tensor<8x1024xf16> into tensor<8x8x128xf16>
  %q = greta.rope %q_heads, %cos, %sin {style = "neox"} : tensor<8x32x128xf16>, tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x32x128xf16>
  %k_new = greta.rope %k_heads, %cos, %sin {style = "neox"} : tensor<8x8x128xf16>, tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x8x128xf16>
  %keys = greta.paged_kv_update %k_cache, %k_new, %slots : tensor<?x16x8x128xf16>, tensor<8x8x128xf16>, tensor<8xi32> -> tensor<?x16x8x128xf16>
  %values = greta.paged_kv_update %v_cache, %v_new, %slots : tensor<?x16x8x128xf16>, tensor<8x8x128xf16>, tensor<8xi32> -> tensor<?x16x8x128xf16>
  %queries = tensor.expand_shape %q [[0, 1], [2], [3]] output_shape [8, 1, 32, 128] : tensor<8x32x128xf16> into tensor<8x1x32x128xf16>
  %attended = greta.paged_attention %queries, %keys, %values, %table, %lengths {tokens_first} : tensor<8x1x32x128xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>, tensor<8x?xi32>, tensor<8xi32> -> tensor<8x1x32x128xf16>
  %joined = tensor.collapse_shape %attended [[0, 1], [2, 3]] : tensor<8x1x32x128xf16> into tensor<8x4096xf16>
  %projected = greta.matmul %joined, %w_out {transpose_b} : tensor<8x4096xf16>, tensor<4096x4096xf16> -> tensor<8x4096xf16>
  %middle = arith.addf %x, %projected : tensor<8x4096xf16>
  %mlp_normed = greta.rms_norm %middle, %w_mlp_norm {eps = 1.0e-5 : f32} : tensor<8x4096xf16>, tensor<4096xf16> -> tensor<8x4096xf16>
  %gate_up = greta.matmul %mlp_normed, %w_gate_up {transpose_b} : tensor<8x4096xf16>, tensor<28672x4096xf16> -> tensor<8x28672xf16>
  %gate = tensor.extract_slice %gate_up[0, 0] [8, 14336] [1, 1] : tensor<8x28672xf16> to tensor<8x14336xf16>
  %up = tensor.extract_slice %gate_up[0, 14336] [8, 14336] [1, 1] : tensor<8x28672xf16> to tensor<8x14336xf16>
  %active = greta.swiglu %gate, %up : tensor<8x14336xf16>, tensor<8x14336xf16> -> tensor<8x14336xf16>
  %down = greta.matmul %active, %w_down {transpose_b} : tensor<8x14336xf16>, tensor<4096x14336xf16> -> tensor<8x4096xf16>
  %y = arith.addf %middle, %down : tensor<8x4096xf16>
  return %y, %keys, %values : tensor<8x4096xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>
}

func.func @prefill(%x: tensor<?x4096xf16>,
    %w_norm: tensor<4096xf16>,
    %w_qkv: tensor<6144x4096xf16>,
    %cos: tensor<?x64xf32>,
    %sin: tensor<?x64xf32>,
    %k_cache: tensor<?x16x8x128xf16>,
    %v_cache: tensor<?x16x8x128xf16>,
    %slots: tensor<?xi32>,
    %table: tensor<1x?xi32>,
    %lengths: tensor<1xi32>,
    %w_out: tensor<4096x4096xf16>,
    %w_mlp_norm: tensor<4096xf16>,
    %w_gate_up: tensor<28672x4096xf16>,
    %w_down: tensor<4096x14336xf16>)
    -> (tensor<?x4096xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>) {
  %zero = arith.constant 0 : index
  %tokens = tensor.dim %x, %zero : tensor<?x4096xf16>
  %normed = greta.rms_norm %x, %w_norm {eps = 1.0e-5 : f32} : tensor<?x4096xf16>, tensor<4096xf16> -> tensor<?x4096xf16>
  %qkv = greta.matmul %normed, %w_qkv {transpose_b} : tensor<?x4096xf16>, tensor<6144x4096xf16> -> tensor<?x6144xf16>
  %q_columns = tensor.extract_slice %qkv[0, 0] [%tokens, 4096] [1, 1] : tensor<?x6144xf16> to tensor<?x4096xf16>
  %k_columns = tensor.extract_slice %qkv[0, 4096] [%tokens, 1024] [1, 1] : tensor<?x6144xf16> to tensor<?x1024xf16>
  %v_columns = tensor.extract_slice %qkv[0, 5120] [%tokens, 1024] [1, 1] : tensor<?x6144xf16> to tensor<?x1024xf16>
  %q_heads = tensor.expand_shape %q_columns [[0], [1, 2]] output_shape [%tokens, 32, 128] : tensor<?x4096xf16> into tensor<?x32x128xf16>
  %k_heads = tensor.expand_shape %k_columns [[0], [1, 2]] output_shape [%tokens, 8, 128] : tensor<?x1024xf16> into tensor<?x8x128xf16>
  %v_new = tensor.expand_shape %v_columns [[0], [1, 2]] output_shape [%tokens, 8, 128] : tensor<?x1024xf16> into tensor<?x8x128xf16>
  %q = greta.rope %q_heads, %cos, %sin {style = "neox"} : tensor<?x32x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x32x128xf16>
  %k_new = greta.rope %k_heads, %cos, %sin {style = "neox"} : tensor<?x8x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x8x128xf16>
  %keys = greta.paged_kv_update %k_cache, %k_new, %slots : tensor<?x16x8x128xf16>, tensor<?x8x128xf16>, tensor<?xi32> -> tensor<?x16x8x128xf16>
  %values = greta.paged_kv_update %v_cache, %v_new, %slots : tensor<?x16x8x128xf16>, tensor<?x8x128xf16>, tensor<?xi32> -> tensor<?x16x8x128xf16>
  %queries = tensor.expand_shape %q [[0, 1], [2], [3]] output_shape [1, %tokens, 32, 128] : tensor<?x32x128xf16> into tensor<1x?x32x128xf16>
  %attended = greta.paged_attention %queries, %keys, %values, %table, %lengths {tokens_first} : tensor<1x?x32x128xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>, tensor<1x?xi32>, tensor<1xi32> -> tensor<1x?x32x128xf16>
  %joined = tensor.collapse_shape %attended [[0, 1], [2, 3]] : tensor<1x?x32x128xf16> into tensor<?x4096xf16>
  %projected = greta.matmul %joined, %w_out {transpose_b} : tensor<?x4096xf16>, tensor<4096x4096xf16> -> tensor<?x4096xf16>
  %middle = arith.addf %x, %projected : tensor<?x4096xf16>
  %mlp_normed = greta.rms_norm %middle, %w_mlp_norm {eps = 1.0e-5 : f32} : tensor<?x4096xf16>, tensor<4096xf16> -> tensor<?x4096xf16>
  %gate_up = greta.matmul %mlp_normed, %w_gate_up {transpose_b} : tensor<?x4096xf16>, tensor<28672x4096xf16> -> tensor<?x28672xf16>
  %gate = tensor.extract_slice %gate_up[0, 0] [%tokens, 14336] [1, 1] : tensor<?x28672xf16> to tensor<?x14336xf16>
  %up = tensor.extract_slice %gate_up[0, 14336] [%tokens, 14336] [1, 1] : tensor<?x28672xf16> to tensor<?x14336xf16>
  %active = greta.swiglu %gate, %up : tensor<?x14336xf16>, tensor<?x14336xf16> -> tensor<?x14336xf16>
  %down = greta.matmul %active, %w_down {transpose_b} : tensor<?x14336xf16>, tensor<4096x14336xf16> -> tensor<?x4096xf16>
  %y = arith.addf %middle, %down : tensor<?x4096xf16>
  return %y, %keys, %values : tensor<?x4096xf16>, tensor<?x16x8x128xf16>, tensor<?x16x8x128xf16>
}
