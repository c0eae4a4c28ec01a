// Each result is the number of steps of 3 n + 1 or n / 2 from n to 1: a while loop that carries two blocks and a scalar, and whose condition asks
// all lanes. The condition passes on other values than an iteration begins with.
greta_tile.func @collatz_kernel(%x: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>, %n: i32) attributes {waves = 2 : i32} {
  %zero = arith.constant 0 : i32
  %next = arith.constant 1 : i32
  %limit = arith.constant 400 : i32
  %none = arith.constant dense<0> : tensor<128xi32>
  %one = arith.constant dense<1> : tensor<128xi32>
  %three = arith.constant dense<3> : tensor<128xi32>
  %block = arith.constant 128 : i32
  %id = greta_tile.program_id 0
  %at = arith.muli %id, %block : i32
  %v = greta_tile.load %x[%at] strides [1] bounds [0] (%n) : !greta_tile.ptr<i32> -> tensor<128xi32>
  %r:4 = scf.while (%turn = %zero, %a = %v, %count = %none) : (i32, tensor<128xi32>, tensor<128xi32>) -> (tensor<128xi32>, tensor<128xi1>, i32, tensor<128xi32>) {
    %most = greta_tile.reduce {arith.maxsi} %a axis 0 : tensor<128xi32> -> i32
    %above = arith.cmpi sgt, %most, %next : i32
    %few = arith.cmpi slt, %turn, %limit : i32
    %more = arith.andi %above, %few : i1
    %away = arith.cmpi sgt, %a, %one : tensor<128xi32>
    scf.condition(%more) %count, %away, %turn, %a : tensor<128xi32>, tensor<128xi1>, i32, tensor<128xi32>
  } do {
  ^bb0(%count: tensor<128xi32>, %away: tensor<128xi1>, %turn: i32, %a: tensor<128xi32>):
    %odd = arith.andi %a, %one : tensor<128xi32>
    %is_odd = arith.cmpi eq, %odd, %one : tensor<128xi32>
    %tripled = arith.muli %a, %three : tensor<128xi32>
    %up = arith.addi %tripled, %one : tensor<128xi32>
    %down = arith.shrsi %a, %one : tensor<128xi32>
    %moved = arith.select %is_odd, %up, %down : tensor<128xi1>, tensor<128xi32>
    %b = arith.select %away, %moved, %a : tensor<128xi1>, tensor<128xi32>
    %step = arith.extui %away : tensor<128xi1> to tensor<128xi32>
    %sum = arith.addi %count, %step : tensor<128xi32>
    %on = arith.addi %turn, %next : i32
    scf.yield %on, %b, %sum : i32, tensor<128xi32>, tensor<128xi32>
  }
  greta_tile.store %r#0, %y[%at] strides [1] bounds [0] (%n) : tensor<128xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}

func.func @collatz(%x: tensor<?xi32>) -> tensor<?xi32> {
  %0 = greta_tile.launch @collatz_kernel grid affine_map<()[n] -> (n ceildiv 128)> scalars affine_map<()[n] -> (n)> (%x)
       shapes [affine_map<()[n] -> (n)>] : (tensor<?xi32>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}
