// Flash attention for the H200: one workgroup of eight waves has 128 queries of a head and goes over the keys 64 at a time, as test/tile/flash_attention.mlir does for
// any number of them; here queries are a multiple of 128 and keys of 64. Heads have 128 elements. docs/benchmarks/flash_attention.py runs it.
#kv = affine_map<()[heads, queries, keys] -> (heads, keys, 128)>
#sizes = affine_map<()[heads, queries, keys] -> (queries, keys)>
greta_tile.func @flash_attention_kernel(%q: !greta_tile.ptr<f16>, %k: !greta_tile.ptr<f16>, %v: !greta_tile.ptr<f16>, %o: !greta_tile.ptr<f16>, %queries: i32, %keys: i32)
    attributes {waves = 8 : i32} {
  %zero = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %x = greta_tile.program_id 0
  %head = greta_tile.program_id 1
  %row = arith.muli %x, %c128 : i32
  %query_size = arith.muli %queries, %c128 : i32
  %key_size = arith.muli %keys, %c128 : i32
  %q_first = arith.muli %head, %query_size : i32
  %k_first = arith.muli %head, %key_size : i32
  %q_offset = arith.extsi %q_first : i32 to i64
  %k_offset = arith.extsi %k_first : i32 to i64
  %qs = greta_tile.ptr_add %q, %q_offset : !greta_tile.ptr<f16>, i64
  %ks = greta_tile.ptr_add %k, %k_offset : !greta_tile.ptr<f16>, i64
  %vs = greta_tile.ptr_add %v, %k_offset : !greta_tile.ptr<f16>, i64
  %os = greta_tile.ptr_add %o, %q_offset : !greta_tile.ptr<f16>, i64
  %query = greta_tile.load %qs[%row, %zero] strides [128, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<128x128xf16>
  %none = arith.constant dense<0.0> : tensor<128x64xf32>
  %scale = arith.constant dense<0.12751743> : tensor<128x64xf32>
  %row_scale = arith.constant dense<0.12751743> : tensor<128xf32>
  %max0 = arith.constant dense<-1.0e30> : tensor<128xf32>
  %sum0 = arith.constant dense<0.0> : tensor<128xf32>
  %acc0 = arith.constant dense<0.0> : tensor<128x128xf32>
  %max, %sum, %acc = scf.for %j = %zero to %keys step %c64 iter_args(%m = %max0, %l = %sum0, %a = %acc0) -> (tensor<128xf32>, tensor<128xf32>, tensor<128x128xf32>) : i32 {
    %key = greta_tile.load %ks[%zero, %j] strides [1, 128] bounds [] : !greta_tile.ptr<f16> -> tensor<128x64xf16>
    %value = greta_tile.load %vs[%j, %zero] strides [128, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<64x128xf16>
    %product = greta_tile.dot %query, %key, %none : tensor<128x128xf16>, tensor<128x64xf16> -> tensor<128x64xf32>
    %block_max = greta_tile.reduce {arith.maxnumf {fastmath = #arith.fastmath<nnan>}} %product axis 1 : tensor<128x64xf32> -> tensor<128xf32>
    %block_scaled = arith.mulf %block_max, %row_scale : tensor<128xf32>
    %m_next = arith.maxnumf %m, %block_scaled fastmath<nnan> : tensor<128xf32>
    %m_column = greta_tile.reshape %m_next : tensor<128xf32> -> tensor<128x1xf32>
    %ms = greta_tile.broadcast %m_column : tensor<128x1xf32> -> tensor<128x64xf32>
    %scaled = arith.mulf %product, %scale : tensor<128x64xf32>
    %off = arith.subf %scaled, %ms : tensor<128x64xf32>
    %weight = math.exp2 %off : tensor<128x64xf32>
    %fall = arith.subf %m, %m_next : tensor<128xf32>
    %alpha = math.exp2 %fall : tensor<128xf32>
    %block_sum = greta_tile.reduce {arith.addf} %weight axis 1 : tensor<128x64xf32> -> tensor<128xf32>
    %l_scaled = arith.mulf %l, %alpha : tensor<128xf32>
    %l_next = arith.addf %l_scaled, %block_sum : tensor<128xf32>
    %alpha_column = greta_tile.reshape %alpha : tensor<128xf32> -> tensor<128x1xf32>
    %alphas = greta_tile.broadcast %alpha_column : tensor<128x1xf32> -> tensor<128x128xf32>
    %a_scaled = arith.mulf %a, %alphas : tensor<128x128xf32>
    %p = arith.truncf %weight : tensor<128x64xf32> to tensor<128x64xf16>
    %a_next = greta_tile.dot %p, %value, %a_scaled : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %m_next, %l_next, %a_next : tensor<128xf32>, tensor<128xf32>, tensor<128x128xf32>
  }
  %sum_column = greta_tile.reshape %sum : tensor<128xf32> -> tensor<128x1xf32>
  %sums = greta_tile.broadcast %sum_column : tensor<128x1xf32> -> tensor<128x128xf32>
  %mean = arith.divf %acc, %sums : tensor<128x128xf32>
  %result = arith.truncf %mean : tensor<128x128xf32> to tensor<128x128xf16>
  greta_tile.store %result, %os[%row, %zero] strides [128, 1] bounds [] : tensor<128x128xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
}
func.func @flash_attention(%q: tensor<?x?x128xf16>, %k: tensor<?x?x128xf16> {greta.shape = #kv}, %v: tensor<?x?x128xf16> {greta.shape = #kv}) -> tensor<?x?x128xf16> {
  %0 = greta_tile.launch @flash_attention_kernel grid affine_map<()[heads, queries, keys] -> (queries ceildiv 128, heads)> scalars #sizes (%q, %k, %v)
       shapes [affine_map<()[heads, queries, keys] -> (heads, queries, 128)>] : (tensor<?x?x128xf16>, tensor<?x?x128xf16>, tensor<?x?x128xf16>) -> tensor<?x?x128xf16>
  return %0 : tensor<?x?x128xf16>
}
