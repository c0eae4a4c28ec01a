//===- Sparse.cpp - sparse tensors of torch's device ----------------------===//
//
// In: calls of aten's operators on sparse tensors of a device rdna. Out:
// tensors whose indices and values are tensors of the device, their parts, and
// copies. All other operators run on the CPU and count, as those of
// Operators.cpp that have no kernel.
//
//===----------------------------------------------------------------------===//

#include "Tensors.h"

#include <ATen/Functions.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/ccol_indices_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/col_indices_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/crow_indices_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/empty_like_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/permute_native.h>
#include <ATen/ops/resize_as_sparse_native.h>
#include <ATen/ops/row_indices_native.h>
#include <ATen/ops/select_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/sparse_resize_and_clear_native.h>
#include <ATen/ops/sparse_resize_native.h>
#include <ATen/ops/unsqueeze_native.h>
#include <ATen/ops/values_native.h>
#include <torch/library.h>

using namespace greta::torch_device;
using c10::DispatchKey;

/// `cpu` is the CPU's key of the same layout.
template <DispatchKey cpu>
static void runSparseOnCpu(const c10::OperatorHandle &op,
                           torch::jit::Stack *stack) {
  countFallback(toString(op.operator_name()));
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true, cpu);
}

/// Copies results that an operator of the CPU wrote into the device's tensor.
static at::Tensor copySparseAndResize(const at::Tensor &from,
                                      const at::Tensor &to) {
  if (from.layout() == at::kSparse)
    return to.copy_(from);
  return to.resize_as_sparse_(from).copy_(from);
}

/// Registers the CPU's kernels. A fallback would not do: torch's kernels for
/// all devices go before it, and some do not know the layout.
template <DispatchKey key, DispatchKey cpu>
static void runOthersOnCpu(torch::Library &m) {
  for (const c10::OperatorName &name :
       c10::Dispatcher::singleton().getAllOpNames()) {
    auto op = c10::Dispatcher::singleton().findOp(name);
    if (op && name.getNamespace() == "aten" &&
        op->hasKernelForDispatchKey(cpu) && !op->hasKernelForDispatchKey(key))
      m.impl(toString(name).c_str(),
             torch::CppFunction::makeFromBoxedFunction<&runSparseOnCpu<cpu>>());
  }
}

// Coordinates are indices [dims, n] and values [n, ...].
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("empty.memory_format", at::native::empty_sparse_symint);
  m.impl("empty_like", at::native::empty_like_sparse_coo);
  m.impl("_sparse_coo_tensor_with_dims", at::native::new_with_dims_sparse);
  m.impl("_sparse_coo_tensor_with_dims_and_tensors",
         at::native::new_with_dims_and_tensor_sparse_symint);
  m.impl("_indices", at::native::_indices_sparse);
  m.impl("indices", at::native::indices_sparse);
  m.impl("_values", at::native::_values_sparse);
  m.impl("values", at::native::values_sparse);
  m.impl("_nnz", at::native::_nnz_sparse);
  m.impl("sparse_dim", at::native::sparse_dim_sparse);
  m.impl("dense_dim", at::native::dense_dim_sparse);
  m.impl("is_coalesced", at::native::is_coalesced_sparse);
  m.impl("_coalesced_", at::native::_coalesced_sparse_);
  m.impl("sparse_resize_", at::native::sparse_resize_);
  m.impl("sparse_resize_and_clear_", at::native::sparse_resize_and_clear_);
  m.impl("resize_as_sparse_", at::native::resize_as_sparse_);
  m.impl("unsqueeze", at::native::unsqueeze_sparse);
  m.impl("permute", at::native::permute_sparse_coo);
  m.impl("clone", at::native::clone_sparse);
  m.impl("copy_", at::native::copy_sparse_wrapper_);
  m.impl("copy_sparse_to_sparse_", at::native::copy_sparse_);
  m.impl("_copy_from_and_resize", copySparseAndResize);
  runOthersOnCpu<DispatchKey::SparsePrivateUse1, DispatchKey::SparseCPU>(m);
}

// These compress rows or columns, of elements or of blocks.
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("empty.memory_format", at::native::empty_sparse_compressed_symint);
  m.impl("empty_like", at::native::empty_like_sparse_csr);
  m.impl("crow_indices", at::native::crow_indices_sparse_csr);
  m.impl("col_indices", at::native::col_indices_sparse_csr);
  m.impl("ccol_indices", at::native::ccol_indices_sparse_csr);
  m.impl("row_indices", at::native::row_indices_sparse_csr);
  m.impl("values", at::native::values_sparse_csr);
  m.impl("_nnz", at::native::_nnz_sparse_csr);
  m.impl("sparse_dim", at::native::sparse_dim_sparse_csr);
  m.impl("dense_dim", at::native::dense_dim_sparse_csr);
  m.impl("resize_as_sparse_", at::native::resize_as_sparse_compressed_);
  m.impl("select.int", at::native::select_sparse_csr);
  m.impl("clone", at::native::clone_sparse_compressed);
  m.impl("copy_", at::native::copy_sparse_compressed_);
  m.impl("_copy_from_and_resize", copySparseAndResize);
  runOthersOnCpu<DispatchKey::SparseCsrPrivateUse1, DispatchKey::SparseCsrCPU>(
      m);
}
