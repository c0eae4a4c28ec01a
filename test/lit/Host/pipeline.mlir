// The host's pipeline: results are written in place, buffers in between are freed, half precision is spelled out in f32.
// RUN: greta-opt %s --pass-pipeline="builtin.module(func.func(greta-annotate-shapes),greta-to-host)" | FileCheck %s --implicit-check-not="fmul {{.*}} : bf16" --implicit-check-not="fptrunc {{.*}} to bf16"
// RUN: greta-opt %s --pass-pipeline="builtin.module(func.func(greta-annotate-shapes),greta-to-host)" | FileCheck %s --check-prefix=FREE
// RUN: not greta-opt %s --greta-to-host 2>&1 | FileCheck %s --check-prefix=SHAPES

// One pointer per tensor, then the symbol; nothing is allocated for one loop.
// CHECK-LABEL: llvm.func @add(
// CHECK-SAME: %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: i64)
// CHECK-NOT: @malloc
// CHECK: llvm.fpext %{{.*}} : f16 to f32
// CHECK: llvm.fadd %{{.*}}, %{{.*}} : f32
// CHECK: llvm.fptrunc %{{.*}} : f32 to f16
// CHECK: llvm.return
func.func @add(%x: tensor<?x8xf16>, %y: tensor<?x8xf16>) -> tensor<?x8xf16> {
  %0 = arith.addf %x, %y : tensor<?x8xf16>
  return %0 : tensor<?x8xf16>
}

// A value that is rounded between two operations stays rounded: the conversions may not be contracted.
// CHECK-LABEL: llvm.func @twice(
// CHECK: llvm.fptrunc %{{[0-9]+}} : f32 to f16
// CHECK: llvm.fpext %{{[0-9]+}} : f16 to f32
// CHECK: llvm.fptrunc %{{[0-9]+}} : f32 to f16
// CHECK: llvm.return
func.func @twice(%x: tensor<8xf16>, %y: tensor<8xf16>) -> tensor<8xf16> {
  %0 = arith.addf %x, %y : tensor<8xf16>
  %1 = arith.addf %0, %y : tensor<8xf16>
  return %1 : tensor<8xf16>
}

// bf16 is rounded with integers.
// CHECK-LABEL: llvm.func @half(
// CHECK: llvm.shl
// CHECK: llvm.fmul %{{.*}}, %{{.*}} : f32
// CHECK: llvm.lshr
// CHECK: llvm.return
func.func @half(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  %c = arith.constant dense<0.5> : tensor<8xbf16>
  %0 = arith.mulf %x, %c : tensor<8xbf16>
  return %0 : tensor<8xbf16>
}

// A result whose type says less of its extents than its operands' types do: its shape is read off the operands, once.
// CHECK-LABEL: llvm.func @known_extent(
// CHECK: llvm.return
func.func @known_extent(%a: tensor<?x320xf16>, %b: tensor<448x320xf16>, %c: tensor<?x448xf16>) -> tensor<?x448xf16> {
  %0 = greta.matmul %a, %b {transpose_a, transpose_b} : tensor<?x320xf16>, tensor<448x320xf16> -> tensor<?x448xf16>
  %1 = arith.addf %0, %c : tensor<?x448xf16>
  return %1 : tensor<?x448xf16>
}

// FREE-LABEL: llvm.func @softmax(
// FREE-COUNT-3: llvm.call @malloc
// FREE-NOT: llvm.call @malloc
// FREE-COUNT-3: llvm.call @free
// SHAPES: error: 'func.func' op has no greta.symbols; run greta-annotate-shapes first
func.func @softmax(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = greta.softmax %x : tensor<?x8xf32> -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
