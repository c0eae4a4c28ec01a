// A block of K with so many accesses that each with a group of its own takes LLVM seconds: groups of one kind that follow each other are one.
// Reads of shared memory have none if groups name more than 352 instructions.
// RUN: greta-translate --greta-to-llvmir --target=gfx1150 --function=merged %s | FileCheck %s --check-prefix=MERGED
// RUN: greta-translate --greta-to-llvmir --target=gfx1150 --function=without_reads %s 2>/dev/null | FileCheck %s --check-prefix=WITHOUT
// RUN: greta-translate --greta-to-llvmir --target=gfx1150 --function=few %s | FileCheck %s --check-prefix=FEW

// MERGED-COUNT-68: call void @llvm.amdgcn.sched.group.barrier
// MERGED-NOT: call void @llvm.amdgcn.sched.group.barrier
func.func @merged(%a: tensor<256x1000xf16>, %b: tensor<33x1000xf16>) -> tensor<256x33xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [32, 32, 256], waves = 4, slice = 16, stages = 2}} : tensor<256x1000xf16>, tensor<33x1000xf16> -> tensor<256x33xf16>
  return %0 : tensor<256x33xf16>
}

// WITHOUT-NOT: call void @llvm.amdgcn.sched.group.barrier(i32 256
// WITHOUT: call void @llvm.amdgcn.sched.group.barrier(i32 8, i32 {{[0-9]+}}
// WITHOUT-NOT: call void @llvm.amdgcn.sched.group.barrier(i32 256
func.func @without_reads(%a: tensor<256x1000xf16>, %b: tensor<33x1000xf16>) -> tensor<256x33xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [32, 32, 256], waves = 2, slice = 16, stages = 2}} : tensor<256x1000xf16>, tensor<33x1000xf16> -> tensor<256x33xf16>
  return %0 : tensor<256x33xf16>
}

// FEW: call void @llvm.amdgcn.sched.group.barrier(i32 256, i32 1, i32 0)
// FEW-NEXT: call void @llvm.amdgcn.sched.group.barrier(i32 256, i32 1, i32 0)
func.func @few(%a: tensor<256x1000xf16>, %b: tensor<33x1000xf16>) -> tensor<256x33xf16> {
  %0 = greta.matmul %a, %b {transpose_b, greta.config = {tile = [32, 32, 128], waves = 4, slice = 16, stages = 2}} : tensor<256x1000xf16>, tensor<33x1000xf16> -> tensor<256x33xf16>
  return %0 : tensor<256x33xf16>
}
