// Attention of one head a workgroup's column, 32 queries a workgroup and 32 keys at a time: the softmax is kept up to date while the keys pass, so that no
// row of weights is ever whole. Heads have 32 elements; nothing divides the numbers of queries and keys.
greta_tile.func @flash_attention_kernel(%q: !greta_tile.ptr<f16>, %k: !greta_tile.ptr<f16>, %v: !greta_tile.ptr<f16>, %o: !greta_tile.ptr<f16>, %queries: i32, %keys: i32)
    attributes {waves = 2 : i32} {
  %zero = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %x = greta_tile.program_id 0
  %head = greta_tile.program_id 1
  %row = arith.muli %x, %c32 : i32
  // The head begins here.
  %query_size = arith.muli %queries, %c32 : i32
  %key_size = arith.muli %keys, %c32 : i32
  %q_first = arith.muli %head, %query_size : i32
  %k_first = arith.muli %head, %key_size : i32
  %q_offset = arith.extsi %q_first : i32 to i64
  %k_offset = arith.extsi %k_first : i32 to i64
  %qs = greta_tile.ptr_add %q, %q_offset : !greta_tile.ptr<f16>, i64
  %ks = greta_tile.ptr_add %k, %k_offset : !greta_tile.ptr<f16>, i64
  %vs = greta_tile.ptr_add %v, %k_offset : !greta_tile.ptr<f16>, i64
  %os = greta_tile.ptr_add %o, %q_offset : !greta_tile.ptr<f16>, i64
  %query = greta_tile.load %qs[%row, %zero] strides [32, 1] bounds [0] (%queries) : !greta_tile.ptr<f16> -> tensor<32x32xf16>
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  // log2(e) / sqrt(32): weights are powers of two.
  %scale = arith.constant dense<0.255034860> : tensor<32x32xf32>
  %never = arith.constant dense<0xFF800000> : tensor<32x32xf32>
  %max0 = arith.constant dense<-1.0e30> : tensor<32xf32>
  %sum0 = arith.constant dense<0.0> : tensor<32xf32>
  %acc0 = arith.constant dense<0.0> : tensor<32x32xf32>
  %max, %sum, %acc = scf.for %j = %zero to %keys step %c32 iter_args(%m = %max0, %l = %sum0, %a = %acc0) -> (tensor<32xf32>, tensor<32xf32>, tensor<32x32xf32>) : i32 {
    %key = greta_tile.load %ks[%zero, %j] strides [1, 32] bounds [1] (%keys) : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %value = greta_tile.load %vs[%j, %zero] strides [32, 1] bounds [0] (%keys) : !greta_tile.ptr<f16> -> tensor<32x32xf16>
    %product = greta_tile.dot %query, %key, %none : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    %scaled = arith.mulf %product, %scale : tensor<32x32xf32>
    %left = arith.subi %keys, %j : i32
    %ends = greta_tile.splat %left : tensor<32x32xi32>
    %at = greta_tile.iota 1 : tensor<32x32xi32>
    %inside = arith.cmpi slt, %at, %ends : tensor<32x32xi32>
    %logit = arith.select %inside, %scaled, %never : tensor<32x32xi1>, tensor<32x32xf32>
    %block_max = greta_tile.reduce {arith.maximumf} %logit axis 1 : tensor<32x32xf32> -> tensor<32xf32>
    %m_next = arith.maximumf %m, %block_max : tensor<32xf32>
    %m_column = greta_tile.reshape %m_next : tensor<32xf32> -> tensor<32x1xf32>
    %ms = greta_tile.broadcast %m_column : tensor<32x1xf32> -> tensor<32x32xf32>
    %off = arith.subf %logit, %ms : tensor<32x32xf32>
    %weight = math.exp2 %off : tensor<32x32xf32>
    %fall = arith.subf %m, %m_next : tensor<32xf32>
    %alpha = math.exp2 %fall : tensor<32xf32>
    %block_sum = greta_tile.reduce {arith.addf} %weight axis 1 : tensor<32x32xf32> -> tensor<32xf32>
    %l_scaled = arith.mulf %l, %alpha : tensor<32xf32>
    %l_next = arith.addf %l_scaled, %block_sum : tensor<32xf32>
    %alpha_column = greta_tile.reshape %alpha : tensor<32xf32> -> tensor<32x1xf32>
    %alphas = greta_tile.broadcast %alpha_column : tensor<32x1xf32> -> tensor<32x32xf32>
    %a_scaled = arith.mulf %a, %alphas : tensor<32x32xf32>
    %p = arith.truncf %weight : tensor<32x32xf32> to tensor<32x32xf16>
    %a_next = greta_tile.dot %p, %value, %a_scaled : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
    scf.yield %m_next, %l_next, %a_next : tensor<32xf32>, tensor<32xf32>, tensor<32x32xf32>
  }
  %sum_column = greta_tile.reshape %sum : tensor<32xf32> -> tensor<32x1xf32>
  %sums = greta_tile.broadcast %sum_column : tensor<32x1xf32> -> tensor<32x32xf32>
  %mean = arith.divf %acc, %sums : tensor<32x32xf32>
  %result = arith.truncf %mean : tensor<32x32xf32> to tensor<32x32xf16>
  greta_tile.store %result, %os[%row, %zero] strides [32, 1] bounds [0] (%queries) : tensor<32x32xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}

#kv = affine_map<()[heads, queries, keys] -> (heads, keys, 32)>
#sizes = affine_map<()[heads, queries, keys] -> (queries, keys)>
func.func @flash_attention(%q: tensor<?x?x32xf16>, %k: tensor<?x?x32xf16> {greta.shape = #kv}, %v: tensor<?x?x32xf16> {greta.shape = #kv}) -> tensor<?x?x32xf16> {
  %0 = greta_tile.launch @flash_attention_kernel grid affine_map<()[heads, queries, keys] -> (queries ceildiv 32, heads)> scalars #sizes (%q, %k, %v)
       shapes [affine_map<()[heads, queries, keys] -> (heads, queries, 32)>] : (tensor<?x?x32xf16>, tensor<?x?x32xf16>, tensor<?x?x32xf16>) -> tensor<?x?x32xf16>
  return %0 : tensor<?x?x32xf16>
}
