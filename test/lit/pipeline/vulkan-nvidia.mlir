// NVIDIA's driver makes more of two forms: memory that a kernel only reads is declared so, and exponents of packed weights come from registers.
// REQUIRES: compiler
// RUN: greta-translate --greta-to-spirv --target=vulkan:nvidia %s -o %t.spv && spirv-dis %t.spv | FileCheck %s
// RUN: greta-translate --greta-to-spirv --target=vulkan:rdna3 %s -o %t.any.spv && spirv-dis %t.any.spv | FileCheck %s --check-prefix=ANY --implicit-check-not=NonWritable

// CHECK-DAG: OpMemberDecorate %[[WORDS:.*]] 0 NonWritable
// CHECK-DAG: OpMemberDecorate %[[SCALE:.*]] 0 NonWritable
// CHECK-DAG: %[[WORDS]] = OpTypeStruct %v{{[24]}}uint
// CHECK-DAG: %[[SCALE]] = OpTypeStruct %half
// CHECK-DAG: %[[EVEN:.*]] = OpIMul %uint %[[LANE:[0-9]+]] %
// CHECK-DAG: %[[ZERO:.*]] = OpBitwiseAnd %uint %[[EVEN]] %uint_1
// CHECK-DAG: %[[EIGHT:.*]] = OpISub %uint %uint_1207977984 %[[ZERO]]
// CHECK: OpBitwiseOr %uint %{{.*}} %[[EIGHT]]
// CHECK-NOT: OpBitwiseOr %uint %{{.*}} %uint_1207977984
// ANY: OpBitwiseOr %uint %{{.*}} %uint_1207977984
func.func @product(%x: tensor<1x4096xf16>, %q: tensor<4096x512xi32>, %s: tensor<4096x128xf16>) -> tensor<1x4096xf16> {
  %w = greta.dequant %q, %s {format = "q4_0", group = 32} : tensor<4096x512xi32>, tensor<4096x128xf16> -> tensor<4096x4096xf16>
  %y = greta.matmul %x, %w {transpose_b} : tensor<1x4096xf16>, tensor<4096x4096xf16> -> tensor<1x4096xf16>
  return %y : tensor<1x4096xf16>
}
