// Sums over linked lists: a node is 64 words, of which the last says where the next node is, 0 behind the last. A while loop that carries a pointer and
// a block, and whose iterations are done before the condition.
greta_tile.func @list_sum_kernel(%nodes: !greta_tile.ptr<i32>, %heads: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>) attributes {waves = 1 : i32} {
  %zero = arith.constant 0 : i32
  %words = arith.constant 64 : i32
  %last = arith.constant 63 : i32
  %none = arith.constant dense<0> : tensor<1x64xi32>
  %id = greta_tile.program_id 0
  %place = greta_tile.ptr_add %heads, %id : !greta_tile.ptr<i32>, i32
  %head = greta_tile.load_scattered %place : !greta_tile.ptr<i32> -> i32
  %start = arith.muli %head, %words : i32
  %first = greta_tile.ptr_add %nodes, %start : !greta_tile.ptr<i32>, i32
  %r:2 = scf.while (%node = %first, %sum = %none) : (!greta_tile.ptr<i32>, tensor<1x64xi32>) -> (i32, tensor<1x64xi32>) {
    %v = greta_tile.load %node[%zero, %zero] strides [64, 1] bounds [] : !greta_tile.ptr<i32> -> tensor<1x64xi32>
    %all = arith.addi %sum, %v : tensor<1x64xi32>
    %link = greta_tile.ptr_add %node, %last : !greta_tile.ptr<i32>, i32
    %next = greta_tile.load_scattered %link : !greta_tile.ptr<i32> -> i32
    %more = arith.cmpi ne, %next, %zero : i32
    scf.condition(%more) %next, %all : i32, tensor<1x64xi32>
  } do {
  ^bb0(%next: i32, %sum: tensor<1x64xi32>):
    %offset = arith.muli %next, %words : i32
    %node = greta_tile.ptr_add %nodes, %offset : !greta_tile.ptr<i32>, i32
    scf.yield %node, %sum : !greta_tile.ptr<i32>, tensor<1x64xi32>
  }
  greta_tile.store %r#1, %y[%id, %zero] strides [64, 1] bounds [] : tensor<1x64xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}

func.func @list_sum(%nodes: tensor<?x64xi32>, %heads: tensor<?xi32>) -> tensor<?x64xi32> {
  %0 = greta_tile.launch @list_sum_kernel grid affine_map<()[n, m] -> (m)> scalars affine_map<()[n, m] -> ()> (%nodes, %heads)
       shapes [affine_map<()[n, m] -> (m, 64)>] : (tensor<?x64xi32>, tensor<?xi32>) -> tensor<?x64xi32>
  return %0 : tensor<?x64xi32>
}
