func.func @argmax(%x: tensor<?x100xf32>, %place: tensor<100xi32>) -> (tensor<?xf32>, tensor<?xi32>, tensor<?x100xf32>) {
%c0 = arith.constant 0 : index
%t = tensor.dim %x, %c0 : tensor<?x100xf32>
%eplaces = tensor.empty(%t) : tensor<?x100xi32>
%places = linalg.broadcast ins(%place : tensor<100xi32>) outs(%eplaces : tensor<?x100xi32>) dimensions = [0]
%cleast = arith.constant 0xFF800000 : f32
%eleast = tensor.empty(%t) : tensor<?xf32>
%least = linalg.fill ins(%cleast : f32) outs(%eleast : tensor<?xf32>) -> tensor<?xf32>
%cnone = arith.constant 2147483647 : i32
%enone = tensor.empty(%t) : tensor<?xi32>
%none = linalg.fill ins(%cnone : i32) outs(%enone : tensor<?xi32>) -> tensor<?xi32>
%m:2 = linalg.reduce ins(%x, %places : tensor<?x100xf32>, tensor<?x100xi32>) outs(%least, %none : tensor<?xf32>, tensor<?xi32>) dimensions = [1] (%a0: f32, %a1: i32, %b0: f32, %b1: i32) {
%greater = arith.cmpf ogt, %a0, %b0 : f32
%equal = arith.cmpf oeq, %a0, %b0 : f32
%before = arith.cmpi slt, %a1, %b1 : i32
%tie = arith.andi %equal, %before : i1
%isA = arith.ori %greater, %tie : i1
%r0 = arith.select %isA, %a0, %b0 : f32
%r1 = arith.select %isA, %a1, %b1 : i32
linalg.yield %r0, %r1 : f32, i32
}
%emost = tensor.empty(%t) : tensor<?x100xf32>
%most = linalg.broadcast ins(%m#0 : tensor<?xf32>) outs(%emost : tensor<?x100xf32>) dimensions = [1]
%d = arith.subf %most, %x : tensor<?x100xf32>
return %m#0, %m#1, %d : tensor<?xf32>, tensor<?xi32>, tensor<?x100xf32>
}
