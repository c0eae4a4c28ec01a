func.func @f(%x: f8E5M2) -> f16 {
  %0 = arith.extf %x : f8E5M2 to f16
  return %0 : f16
}
