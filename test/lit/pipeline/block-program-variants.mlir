// A block program whose blocks fit only where matrix instructions leave them in registers has no variant without: the package says so.
// RUN: greta-translate --greta-to-package --targets=vulkan:nvidia %S/../../../docs/benchmarks/flash_attention.mlir -o %t.greta 2> %t.err
// RUN: FileCheck %s < %t.err
// RUN: greta-run %t.greta --inspect | FileCheck %s --check-prefix=VARIANTS
// CHECK: warning: 'flash_attention' needs cooperative matrices on vulkan:nvidia: {{.*}}needs {{[0-9]+}} bytes where a workgroup of vulkan:nvidia has 49152 of shared memory
// VARIANTS: vulkan-nvidia-coopmat:
// VARIANTS-NOT: vulkan-nvidia
