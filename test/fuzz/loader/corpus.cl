// The code objects of this folder's and the simulator's corpus, for each chip:
//   clang -target amdgcn-amd-amdhsa -mcpu=CHIP -x cl -cl-std=CL2.0 -nogpulib -O2 -Wl,-s -Wl,-z,max-page-size=256 corpus.cl
// The rest was found by the fuzzer.
constant int table[4] = {10, 20, 30, 40};
global int counter = 3;
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void k(global int *o, int n, local int *scratch) {
  local int t[64];
  uint i = __builtin_amdgcn_workitem_id_x();
  t[i] = i + counter;
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  int sum = 0;
  for (int j = 0; j < n; ++j)
    sum += t[(i + j) & 63] + table[j & 3];
  o[i] = sum;
}
kernel void second(global float *o) { o[__builtin_amdgcn_workitem_id_x()] = 1; }
