// The host's code: one entry over bare pointers, loops that LLVM vectorised, no call but into libm and libc.
// RUN: greta-translate --greta-to-llvmir --target=host %s | FileCheck %s --implicit-check-not="__truncsfbf2" --implicit-check-not="memrefCopy"

// CHECK: define {{.*}}void @greta_norm(ptr {{.*}}%0, ptr {{.*}}%1)
// CHECK: fmul <{{8|16}} x float>
func.func @norm(%x: tensor<?x4096xbf16>, %w: tensor<4096xbf16>) -> tensor<?x4096xbf16> {
  %0 = arith.addf %x, %x : tensor<?x4096xbf16>
  %1 = greta.rms_norm %0, %w {eps = 1.0e-5 : f32} : tensor<?x4096xbf16>, tensor<4096xbf16> -> tensor<?x4096xbf16>
  return %1 : tensor<?x4096xbf16>
}

// CHECK: define {{.*}}void @greta_product(ptr
// CHECK: fmul {{.*}}<{{8|16}} x float>
func.func @product(%a: tensor<?x512xf16>, %b: tensor<1024x512xf16>) -> tensor<?x1024xf16> {
  %0 = greta.matmul %a, %b {transpose_b} : tensor<?x512xf16>, tensor<1024x512xf16> -> tensor<?x1024xf16>
  return %0 : tensor<?x1024xf16>
}

// A name of libm's is a function like any other.
// CHECK: define {{.*}}void @greta_expf(ptr
// CHECK: call {{.*}}float @llvm.exp.f32
func.func @expf(%x: tensor<?x7xf16>) -> tensor<?x7xf16> {
  %0 = math.exp %x : tensor<?x7xf16>
  return %0 : tensor<?x7xf16>
}
