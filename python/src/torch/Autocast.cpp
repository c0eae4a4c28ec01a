//===- Autocast.cpp - torch.autocast("rdna") ------------------------------===//
//
// The lists of operators are torch's own for devices: those that run in the
// lower precision, in f32, and in the widest type of their arguments.
//
//===----------------------------------------------------------------------===//

#include <ATen/autocast_mode.h>
#include <torch/library.h>

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

// clang-format off
#define GRETA_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define GRETA_F32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define GRETA_F32_RESULT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define GRETA_WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(GRETA_LOWER)
  AT_FORALL_FP32(GRETA_F32)
  AT_FORALL_FP32_SET_OPT_DTYPE(GRETA_F32_RESULT)
  AT_FORALL_PROMOTE(GRETA_WIDEST)
}
// clang-format on
