// A hand-scheduled MFMA GEMM for gfx90a and gfx942: C[M,N] f32 = A[M,K] B[N,K]^T in f16 on MFMA 32x32x8, 256x256 tiles, K steps of 32
// through two LDS buffers, 8 waves of 128x64. Operands of the next half step are read while this one's products run, the barrier stands
// between the halves, and sched_group_barrier tells LLVM the order. K is permuted alike for A and B, so that reads are 16 bytes.
// The issue model is compared with llvm-mca on its main loop (docs/benchmarks/issue_model.py). M, N are multiples of 256, KV = K / 8 of 8;
// loads run two steps past K: the buffers need that much slack.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef half half8_ __attribute__((ext_vector_type(8)));
typedef float float16_ __attribute__((ext_vector_type(16)));
typedef uint uint4_ __attribute__((ext_vector_type(4)));
#define BM 256
#define BN 256
#define CHUNKS 4 /* of 16 bytes per row and step: 32 halves */
#define MFMA(a, b, c) __builtin_amdgcn_mfma_f32_32x32x8f16(a, b, c, 0, 0, 0)
#define LO(v) __builtin_shufflevector(v, v, 0, 1, 2, 3)
#define HI(v) __builtin_shufflevector(v, v, 4, 5, 6, 7)
#define BUFFER(b) ((b) * (BM + BN) * CHUNKS)
#define READ_A(b, i, k) (*(local half8_ *)&lds[BUFFER(b) + fa + (i) * 32 * CHUNKS + (((k) * 2 + g) ^ x)])
#define READ_B(b, j, k) (*(local half8_ *)&lds[BUFFER(b) + fb + (j) * 32 * CHUNKS + (((k) * 2 + g) ^ x)])
#define READ(a, b, buffer, k)                                                                                                              \
  for (int i = 0; i < 4; i++) a[i] = READ_A(buffer, i, k);                                                                                 \
  for (int j = 0; j < 2; j++) b[j] = READ_B(buffer, j, k);
#define MULTIPLY(part, a, b)                                                                                                               \
  for (int i = 0; i < 4; i++)                                                                                                              \
    for (int j = 0; j < 2; j++) acc[i][j] = MFMA(part(a[i]), part(b[j]), acc[i][j]);
#define STORE(b)                                                                                                                           \
  lds[BUFFER(b) + at] = g0, lds[BUFFER(b) + at + 128 * CHUNKS] = g1, lds[BUFFER(b) + BM * CHUNKS + at] = g2,                               \
             lds[BUFFER(b) + BM * CHUNKS + at + 128 * CHUNKS] = g3;
#define LOAD() g0 = pa[0], g1 = pa[half_tile], g2 = pb[0], g3 = pb[half_tile], pa += CHUNKS, pb += CHUNKS;
#define BARRIER()                                                                                                                          \
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");                                                                          \
  __builtin_amdgcn_s_barrier();                                                                                                            \
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
// What the scheduler is told: groups of 0x8 matrix instructions, 0x100 LDS reads, 0x200 LDS writes, 0x20 global loads.
#define GROUP(mask, n) __builtin_amdgcn_sched_group_barrier(mask, n, 0);
#define WRITE_LOAD GROUP(0x8, 1) GROUP(0x200, 1) GROUP(0x8, 1) GROUP(0x20, 1)
#ifdef PLAIN
#define ORDER1
#define ORDER2
#else
#define ORDER1 GROUP(0x100, 6) WRITE_LOAD WRITE_LOAD WRITE_LOAD WRITE_LOAD GROUP(0x8, 8)
#define ORDER2 GROUP(0x100, 6) GROUP(0x8, 16)
#endif
#define STEP(b)                                                                                                                            \
  READ(a1, b1, b, 1)                                                                                                                       \
  MULTIPLY(LO, a0, b0)                                                                                                                     \
  STORE(1 - (b))                                                                                                                           \
  LOAD()                                                                                                                                   \
  MULTIPLY(HI, a0, b0)                                                                                                                     \
  ORDER1                                                                                                                                   \
  BARRIER()                                                                                                                                \
  READ(a0, b0, 1 - (b), 0)                                                                                                                 \
  MULTIPLY(LO, a1, b1)                                                                                                                     \
  MULTIPLY(HI, a1, b1)                                                                                                                     \
  ORDER2
__attribute__((reqd_work_group_size(512, 1, 1), amdgpu_waves_per_eu(2, 2)))
kernel void gemm(global const uint4_ *restrict A, global const uint4_ *restrict B, global float *restrict C, uint N, uint KV) {
  local uint4_ lds[2 * (BM + BN) * CHUNKS];
  uint t = __builtin_amdgcn_workitem_id_x(), lane = t & 63, wave = t >> 6, wm = wave & 1, wn = wave >> 1;
  uint bm = __builtin_amdgcn_workgroup_id_x(), bn = __builtin_amdgcn_workgroup_id_y();
  uint row = t >> 2, chunk = t & 3, half_tile = 128 * KV;
  global const uint4_ *pa = A + (size_t)(bm * BM + row) * KV + chunk, *pb = B + (size_t)(bn * BN + row) * KV + chunk;
  // Chunk c of row r lies at c ^ (r / 2 % 4), so that eight rows' reads of one chunk cover all banks.
  uint at = row * CHUNKS + (chunk ^ ((row >> 1) & 3));
  uint r = lane & 31, g = lane >> 5, x = (r >> 1) & 3;
  uint fa = (wm * 128 + r) * CHUNKS, fb = BM * CHUNKS + (wn * 64 + r) * CHUNKS;
  float16_ acc[4][2] = {};
  half8_ a0[4], b0[2], a1[4], b1[2];
  uint4_ g0, g1, g2, g3;
  LOAD() STORE(0) LOAD() BARRIER() READ(a0, b0, 0, 0)
  _Pragma("clang loop unroll(disable)") for (uint k = 0; k < KV; k += 2 * CHUNKS) { STEP(0) STEP(1) }
  uint cr = bm * BM + wm * 128 + 4 * g, cc = bn * BN + wn * 64 + r;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 2; j++)
      for (int e = 0; e < 16; e++) C[(size_t)(cr + i * 32 + 8 * (e >> 2) + (e & 3)) * N + cc + j * 32] = acc[i][j][e];
}
