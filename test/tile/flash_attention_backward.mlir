// Gradients of attention, 16 queries by 16 keys at a time, heads of 32. First of every query the logarithm of its softmax's sum and how its result goes along
// with the gradient; then the gradients of keys and values, which go over the queries, and that of the queries, which goes over the keys. Weights are
// computed anew in each and never stored.
greta_tile.func @attention_rows_kernel(%q: !greta_tile.ptr<f16>, %k: !greta_tile.ptr<f16>, %v: !greta_tile.ptr<f16>, %grad: !greta_tile.ptr<f16>,
                                       %logs: !greta_tile.ptr<f32>, %alongs: !greta_tile.ptr<f32>, %queries: i32, %keys: i32) attributes {waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %x = greta_tile.program_id 0
  %head = greta_tile.program_id 1
  %row = arith.muli %x, %c16 : i32
  %first_query = arith.muli %head, %queries : i32
  %first_key = arith.muli %head, %keys : i32
  %q_first = arith.muli %first_query, %c32 : i32
  %k_first = arith.muli %first_key, %c32 : i32
  %qs = greta_tile.ptr_add %q, %q_first : !greta_tile.ptr<f16>, i32
  %gs = greta_tile.ptr_add %grad, %q_first : !greta_tile.ptr<f16>, i32
  %ks = greta_tile.ptr_add %k, %k_first : !greta_tile.ptr<f16>, i32
  %vs = greta_tile.ptr_add %v, %k_first : !greta_tile.ptr<f16>, i32
  %query = greta_tile.load %qs[%row, %zero] strides [32, 1] bounds [0] (%queries) : !greta_tile.ptr<f16> -> tensor<16x32xf16>
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %scale = arith.constant dense<0.255034860> : tensor<16x16xf32> // log2(e) / sqrt(32)
  %never = arith.constant dense<0xFF800000> : tensor<16x16xf32>
  %max0 = arith.constant dense<-1.0e30> : tensor<16xf32>
  %sum0 = arith.constant dense<0.0> : tensor<16xf32>
  %acc0 = arith.constant dense<0.0> : tensor<16x32xf32>
  %max, %sum, %acc = scf.for %j = %zero to %keys step %c16 iter_args(%m = %max0, %l = %sum0, %a = %acc0) -> (tensor<16xf32>, tensor<16xf32>, tensor<16x32xf32>) : i32 {
    %key = greta_tile.load %ks[%zero, %j] strides [1, 32] bounds [1] (%keys) : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %value = greta_tile.load %vs[%j, %zero] strides [32, 1] bounds [0] (%keys) : !greta_tile.ptr<f16> -> tensor<16x32xf16>
    %product = greta_tile.dot %query, %key, %none : tensor<16x32xf16>, tensor<32x16xf16> -> tensor<16x16xf32>
    %scaled = arith.mulf %product, %scale : tensor<16x16xf32>
    %left = arith.subi %keys, %j : i32
    %ends = greta_tile.splat %left : tensor<16x16xi32>
    %at = greta_tile.iota 1 : tensor<16x16xi32>
    %inside = arith.cmpi slt, %at, %ends : tensor<16x16xi32>
    %logit = arith.select %inside, %scaled, %never : tensor<16x16xi1>, tensor<16x16xf32>
    %block_max = greta_tile.reduce {arith.maximumf} %logit axis 1 : tensor<16x16xf32> -> tensor<16xf32>
    %m_next = arith.maximumf %m, %block_max : tensor<16xf32>
    %m_column = greta_tile.reshape %m_next : tensor<16xf32> -> tensor<16x1xf32>
    %ms = greta_tile.broadcast %m_column : tensor<16x1xf32> -> tensor<16x16xf32>
    %off = arith.subf %logit, %ms : tensor<16x16xf32>
    %weight = math.exp2 %off : tensor<16x16xf32>
    %fall = arith.subf %m, %m_next : tensor<16xf32>
    %alpha = math.exp2 %fall : tensor<16xf32>
    %block_sum = greta_tile.reduce {arith.addf} %weight axis 1 : tensor<16x16xf32> -> tensor<16xf32>
    %l_scaled = arith.mulf %l, %alpha : tensor<16xf32>
    %l_next = arith.addf %l_scaled, %block_sum : tensor<16xf32>
    %alpha_column = greta_tile.reshape %alpha : tensor<16xf32> -> tensor<16x1xf32>
    %alphas = greta_tile.broadcast %alpha_column : tensor<16x1xf32> -> tensor<16x32xf32>
    %a_scaled = arith.mulf %a, %alphas : tensor<16x32xf32>
    %p = arith.truncf %weight : tensor<16x16xf32> to tensor<16x16xf16>
    %a_next = greta_tile.dot %p, %value, %a_scaled : tensor<16x16xf16>, tensor<16x32xf16> -> tensor<16x32xf32>
    scf.yield %m_next, %l_next, %a_next : tensor<16xf32>, tensor<16xf32>, tensor<16x32xf32>
  }
  %log = math.log2 %sum : tensor<16xf32>
  %whole = arith.addf %max, %log : tensor<16xf32>
  %g = greta_tile.load %gs[%row, %zero] strides [32, 1] bounds [0] (%queries) : !greta_tile.ptr<f16> -> tensor<16x32xf16>
  %g32 = arith.extf %g : tensor<16x32xf16> to tensor<16x32xf32>
  %product = arith.mulf %acc, %g32 : tensor<16x32xf32>
  %unscaled = greta_tile.reduce {arith.addf} %product axis 1 : tensor<16x32xf32> -> tensor<16xf32>
  %along = arith.divf %unscaled, %sum : tensor<16xf32>
  %logs_of_head = greta_tile.ptr_add %logs, %first_query : !greta_tile.ptr<f32>, i32
  %alongs_of_head = greta_tile.ptr_add %alongs, %first_query : !greta_tile.ptr<f32>, i32
  greta_tile.store %whole, %logs_of_head[%row] strides [1] bounds [0] (%queries) : tensor<16xf32> -> !greta_tile.ptr<f32>
  greta_tile.store %along, %alongs_of_head[%row] strides [1] bounds [0] (%queries) : tensor<16xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}

// The weights of 16 queries and 16 keys, 0 behind the last key, and the gradient of their logits.
func.func private @weights(%query: tensor<16x32xf16>, %key: tensor<32x16xf16>, %g: tensor<16x32xf16>, %value: tensor<32x16xf16>, %log: tensor<16xf32>,
                           %along: tensor<16xf32>, %left: i32) -> (tensor<16x16xf16>, tensor<16x16xf16>) {
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %scale = arith.constant dense<0.255034860> : tensor<16x16xf32>
  %unit = arith.constant dense<0.176776695> : tensor<16x16xf32>
  %product = greta_tile.dot %query, %key, %none : tensor<16x32xf16>, tensor<32x16xf16> -> tensor<16x16xf32>
  %scaled = arith.mulf %product, %scale : tensor<16x16xf32>
  %log1 = greta_tile.reshape %log : tensor<16xf32> -> tensor<16x1xf32>
  %logs = greta_tile.broadcast %log1 : tensor<16x1xf32> -> tensor<16x16xf32>
  %off = arith.subf %scaled, %logs : tensor<16x16xf32>
  %exp = math.exp2 %off : tensor<16x16xf32>
  %ends = greta_tile.splat %left : tensor<16x16xi32>
  %at = greta_tile.iota 1 : tensor<16x16xi32>
  %inside = arith.cmpi slt, %at, %ends : tensor<16x16xi32>
  %p = arith.select %inside, %exp, %none : tensor<16x16xi1>, tensor<16x16xf32>
  %dp = greta_tile.dot %g, %value, %none : tensor<16x32xf16>, tensor<32x16xf16> -> tensor<16x16xf32>
  %along1 = greta_tile.reshape %along : tensor<16xf32> -> tensor<16x1xf32>
  %alongs = greta_tile.broadcast %along1 : tensor<16x1xf32> -> tensor<16x16xf32>
  %rest = arith.subf %dp, %alongs : tensor<16x16xf32>
  %ds = arith.mulf %p, %rest : tensor<16x16xf32>
  %ds_scaled = arith.mulf %ds, %unit : tensor<16x16xf32>
  %p16 = arith.truncf %p : tensor<16x16xf32> to tensor<16x16xf16>
  %ds16 = arith.truncf %ds_scaled : tensor<16x16xf32> to tensor<16x16xf16>
  return %p16, %ds16 : tensor<16x16xf16>, tensor<16x16xf16>
}

greta_tile.func @attention_keys_kernel(%q: !greta_tile.ptr<f16>, %k: !greta_tile.ptr<f16>, %v: !greta_tile.ptr<f16>, %grad: !greta_tile.ptr<f16>,
                                       %logs: !greta_tile.ptr<f32>, %alongs: !greta_tile.ptr<f32>, %dk: !greta_tile.ptr<f16>, %dv: !greta_tile.ptr<f16>,
                                       %queries: i32, %keys: i32) attributes {waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %x = greta_tile.program_id 0
  %head = greta_tile.program_id 1
  %column = arith.muli %x, %c16 : i32
  %first_query = arith.muli %head, %queries : i32
  %first_key = arith.muli %head, %keys : i32
  %q_first = arith.muli %first_query, %c32 : i32
  %k_first = arith.muli %first_key, %c32 : i32
  %qs = greta_tile.ptr_add %q, %q_first : !greta_tile.ptr<f16>, i32
  %gs = greta_tile.ptr_add %grad, %q_first : !greta_tile.ptr<f16>, i32
  %ks = greta_tile.ptr_add %k, %k_first : !greta_tile.ptr<f16>, i32
  %vs = greta_tile.ptr_add %v, %k_first : !greta_tile.ptr<f16>, i32
  %dks = greta_tile.ptr_add %dk, %k_first : !greta_tile.ptr<f16>, i32
  %dvs = greta_tile.ptr_add %dv, %k_first : !greta_tile.ptr<f16>, i32
  %logs_of_head = greta_tile.ptr_add %logs, %first_query : !greta_tile.ptr<f32>, i32
  %alongs_of_head = greta_tile.ptr_add %alongs, %first_query : !greta_tile.ptr<f32>, i32
  %key = greta_tile.load %ks[%zero, %column] strides [1, 32] bounds [1] (%keys) : !greta_tile.ptr<f16> -> tensor<32x16xf16>
  %value = greta_tile.load %vs[%zero, %column] strides [1, 32] bounds [1] (%keys) : !greta_tile.ptr<f16> -> tensor<32x16xf16>
  %left = arith.subi %keys, %column : i32
  %none = arith.constant dense<0.0> : tensor<16x32xf32>
  %dk_sum, %dv_sum = scf.for %i = %zero to %queries step %c16 iter_args(%a = %none, %b = %none) -> (tensor<16x32xf32>, tensor<16x32xf32>) : i32 {
    %query = greta_tile.load %qs[%i, %zero] strides [32, 1] bounds [0] (%queries) : !greta_tile.ptr<f16> -> tensor<16x32xf16>
    %g = greta_tile.load %gs[%i, %zero] strides [32, 1] bounds [0] (%queries) : !greta_tile.ptr<f16> -> tensor<16x32xf16>
    %log = greta_tile.load %logs_of_head[%i] strides [1] bounds [0] (%queries) : !greta_tile.ptr<f32> -> tensor<16xf32>
    %along = greta_tile.load %alongs_of_head[%i] strides [1] bounds [0] (%queries) : !greta_tile.ptr<f32> -> tensor<16xf32>
    %p, %ds = func.call @weights(%query, %key, %g, %value, %log, %along, %left)
        : (tensor<16x32xf16>, tensor<32x16xf16>, tensor<16x32xf16>, tensor<32x16xf16>, tensor<16xf32>, tensor<16xf32>, i32) -> (tensor<16x16xf16>, tensor<16x16xf16>)
    %p_t = greta_tile.trans %p [1, 0] : tensor<16x16xf16> -> tensor<16x16xf16>
    %ds_t = greta_tile.trans %ds [1, 0] : tensor<16x16xf16> -> tensor<16x16xf16>
    %b_next = greta_tile.dot %p_t, %g, %b : tensor<16x16xf16>, tensor<16x32xf16> -> tensor<16x32xf32>
    %a_next = greta_tile.dot %ds_t, %query, %a : tensor<16x16xf16>, tensor<16x32xf16> -> tensor<16x32xf32>
    scf.yield %a_next, %b_next : tensor<16x32xf32>, tensor<16x32xf32>
  }
  %dk16 = arith.truncf %dk_sum : tensor<16x32xf32> to tensor<16x32xf16>
  %dv16 = arith.truncf %dv_sum : tensor<16x32xf32> to tensor<16x32xf16>
  greta_tile.store %dk16, %dks[%column, %zero] strides [32, 1] bounds [0] (%keys) : tensor<16x32xf16> -> !greta_tile.ptr<f16>
  greta_tile.store %dv16, %dvs[%column, %zero] strides [32, 1] bounds [0] (%keys) : tensor<16x32xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

greta_tile.func @attention_queries_kernel(%q: !greta_tile.ptr<f16>, %k: !greta_tile.ptr<f16>, %v: !greta_tile.ptr<f16>, %grad: !greta_tile.ptr<f16>,
                                          %logs: !greta_tile.ptr<f32>, %alongs: !greta_tile.ptr<f32>, %dq: !greta_tile.ptr<f16>, %queries: i32, %keys: i32)
    attributes {waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %x = greta_tile.program_id 0
  %head = greta_tile.program_id 1
  %row = arith.muli %x, %c16 : i32
  %first_query = arith.muli %head, %queries : i32
  %first_key = arith.muli %head, %keys : i32
  %q_first = arith.muli %first_query, %c32 : i32
  %k_first = arith.muli %first_key, %c32 : i32
  %qs = greta_tile.ptr_add %q, %q_first : !greta_tile.ptr<f16>, i32
  %gs = greta_tile.ptr_add %grad, %q_first : !greta_tile.ptr<f16>, i32
  %ks = greta_tile.ptr_add %k, %k_first : !greta_tile.ptr<f16>, i32
  %vs = greta_tile.ptr_add %v, %k_first : !greta_tile.ptr<f16>, i32
  %dqs = greta_tile.ptr_add %dq, %q_first : !greta_tile.ptr<f16>, i32
  %logs_of_head = greta_tile.ptr_add %logs, %first_query : !greta_tile.ptr<f32>, i32
  %alongs_of_head = greta_tile.ptr_add %alongs, %first_query : !greta_tile.ptr<f32>, i32
  %query = greta_tile.load %qs[%row, %zero] strides [32, 1] bounds [0] (%queries) : !greta_tile.ptr<f16> -> tensor<16x32xf16>
  %g = greta_tile.load %gs[%row, %zero] strides [32, 1] bounds [0] (%queries) : !greta_tile.ptr<f16> -> tensor<16x32xf16>
  %log = greta_tile.load %logs_of_head[%row] strides [1] bounds [0] (%queries) : !greta_tile.ptr<f32> -> tensor<16xf32>
  %along = greta_tile.load %alongs_of_head[%row] strides [1] bounds [0] (%queries) : !greta_tile.ptr<f32> -> tensor<16xf32>
  %none = arith.constant dense<0.0> : tensor<16x32xf32>
  %dq_sum = scf.for %j = %zero to %keys step %c16 iter_args(%a = %none) -> (tensor<16x32xf32>) : i32 {
    %key = greta_tile.load %ks[%zero, %j] strides [1, 32] bounds [1] (%keys) : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %value = greta_tile.load %vs[%zero, %j] strides [1, 32] bounds [1] (%keys) : !greta_tile.ptr<f16> -> tensor<32x16xf16>
    %left = arith.subi %keys, %j : i32
    %p, %ds = func.call @weights(%query, %key, %g, %value, %log, %along, %left)
        : (tensor<16x32xf16>, tensor<32x16xf16>, tensor<16x32xf16>, tensor<32x16xf16>, tensor<16xf32>, tensor<16xf32>, i32) -> (tensor<16x16xf16>, tensor<16x16xf16>)
    %key_t = greta_tile.trans %key [1, 0] : tensor<32x16xf16> -> tensor<16x32xf16>
    %next = greta_tile.dot %ds, %key_t, %a : tensor<16x16xf16>, tensor<16x32xf16> -> tensor<16x32xf32>
    scf.yield %next : tensor<16x32xf32>
  }
  %dq16 = arith.truncf %dq_sum : tensor<16x32xf32> to tensor<16x32xf16>
  greta_tile.store %dq16, %dqs[%row, %zero] strides [32, 1] bounds [0] (%queries) : tensor<16x32xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

#grad_q = affine_map<()[heads, queries, keys] -> (heads, queries, 32)>
#grad_kv = affine_map<()[heads, queries, keys] -> (heads, keys, 32)>
#grad_row = affine_map<()[heads, queries, keys] -> (heads, queries)>
#of_queries = affine_map<()[heads, queries, keys] -> (queries ceildiv 16, heads)>
#of_keys = affine_map<()[heads, queries, keys] -> (keys ceildiv 16, heads)>
#grad_sizes = affine_map<()[heads, queries, keys] -> (queries, keys)>
func.func @flash_attention_backward(%q: tensor<?x?x32xf16>, %k: tensor<?x?x32xf16> {greta.shape = #grad_kv}, %v: tensor<?x?x32xf16> {greta.shape = #grad_kv},
    %grad: tensor<?x?x32xf16> {greta.shape = #grad_q}) -> (tensor<?x?x32xf16>, tensor<?x?x32xf16>, tensor<?x?x32xf16>) {
  %logs, %alongs = greta_tile.launch @attention_rows_kernel grid #of_queries scalars #grad_sizes (%q, %k, %v, %grad) shapes [#grad_row, #grad_row]
       : (tensor<?x?x32xf16>, tensor<?x?x32xf16>, tensor<?x?x32xf16>, tensor<?x?x32xf16>) -> (tensor<?x?xf32>, tensor<?x?xf32>)
  %dk, %dv = greta_tile.launch @attention_keys_kernel grid #of_keys scalars #grad_sizes (%q, %k, %v, %grad, %logs, %alongs) shapes [#grad_kv, #grad_kv]
       : (tensor<?x?x32xf16>, tensor<?x?x32xf16>, tensor<?x?x32xf16>, tensor<?x?x32xf16>, tensor<?x?xf32>, tensor<?x?xf32>) -> (tensor<?x?x32xf16>, tensor<?x?x32xf16>)
  %dq = greta_tile.launch @attention_queries_kernel grid #of_queries scalars #grad_sizes (%q, %k, %v, %grad, %logs, %alongs) shapes [#grad_q]
       : (tensor<?x?x32xf16>, tensor<?x?x32xf16>, tensor<?x?x32xf16>, tensor<?x?x32xf16>, tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?x32xf16>
  return %dq, %dk, %dv : tensor<?x?x32xf16>, tensor<?x?x32xf16>, tensor<?x?x32xf16>
}
