// C[M,N] f32 = A[M,K] B[N,K]^T in f16 on MFMA 32x32x8: 4 waves of TILES x TILES tiles of 32x32 each, K steps of 32
// through LDS. M, N multiples of 64 * TILES, K of 32. The simulator's speed is measured with it (docs/benchmarks/simulator).
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef half half4_ __attribute__((ext_vector_type(4)));
typedef half half8_ __attribute__((ext_vector_type(8)));
typedef float float16_ __attribute__((ext_vector_type(16)));
#define PITCH 40
#ifndef TILES
#define TILES 2
#endif
#define BLOCK (64 * TILES)
__attribute__((reqd_work_group_size(256, 1, 1)))
kernel void gemm(global const half8_ *A, global const half8_ *B, global float *C, uint N, uint K) {
  local half la[BLOCK * PITCH], lb[BLOCK * PITCH];
  uint t = __builtin_amdgcn_workitem_id_x(), lane = t & 63, wave = t >> 6;
  uint bm = __builtin_amdgcn_workgroup_id_x() * BLOCK, bn = __builtin_amdgcn_workgroup_id_y() * BLOCK;
  uint wm = (wave & 1) * 32 * TILES, wn = (wave >> 1) * 32 * TILES, r = lane & 31, g = lane >> 5;
  float16_ acc[TILES][TILES] = {};
  for (uint k = 0; k < K; k += 32) {
    for (uint p = 0; p < TILES; ++p) {
      uint c = t + p * 256, row = c >> 2, chunk = c & 3;
      *(local half8_ *)&la[row * PITCH + chunk * 8] = A[((bm + row) * K + k) / 8 + chunk];
      *(local half8_ *)&lb[row * PITCH + chunk * 8] = B[((bn + row) * K + k) / 8 + chunk];
    }
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    for (uint s = 0; s < 32; s += 8) {
      half4_ a[TILES], b[TILES];
      for (uint i = 0; i < TILES; ++i) {
        a[i] = *(local half4_ *)&la[(wm + i * 32 + r) * PITCH + s + g * 4];
        b[i] = *(local half4_ *)&lb[(wn + i * 32 + r) * PITCH + s + g * 4];
      }
      for (uint i = 0; i < TILES; ++i)
        for (uint j = 0; j < TILES; ++j)
          acc[i][j] = __builtin_amdgcn_mfma_f32_32x32x8f16(a[i], b[j], acc[i][j], 0, 0, 0);
    }
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  }
  for (uint i = 0; i < TILES; ++i)
    for (uint j = 0; j < TILES; ++j)
      for (uint e = 0; e < 16; ++e)
        C[(bm + wm + i * 32 + 8 * (e >> 2) + 4 * g + (e & 3)) * N + bn + wn + j * 32 + r] = acc[i][j][e];
}
