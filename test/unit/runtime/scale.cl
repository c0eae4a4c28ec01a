// The AMD variant of the tests' function: y[i] = 2 * x[i] + 1 for i < n, 64 work-items a workgroup.
__attribute__((reqd_work_group_size(64, 1, 1))) __kernel void
scale(__global const float *x, __global float *y, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 +
          __builtin_amdgcn_workitem_id_x();
  if (i < n)
    y[i] = 2 * x[i] + 1;
}
