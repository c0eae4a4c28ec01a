//===- InstructionsPrelude.h - what the test kernels start with -*- C++ -*-===//
//
// OpenCL C: names for bit casts and builtins that differ between chips, and the
// macro that makes a kernel of one expression (InstructionsTest.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TEST_SIM_INSTRUCTIONSPRELUDE_H
#define GRETA_TEST_SIM_INSTRUCTIONSPRELUDE_H

#include "llvm/ADT/bit.h"
#include <cstdint>

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;

inline float F(u32 x) { return llvm::bit_cast<float>(x); }
inline u32 B(float x) { return llvm::bit_cast<u32>(x); }
inline float H(u32 x) { return float(llvm::bit_cast<_Float16>(uint16_t(x))); }
inline u32 HB(float x) { return llvm::bit_cast<uint16_t>(_Float16(x)); }

const char prelude[] = R"(
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef half half2_ __attribute__((ext_vector_type(2)));
typedef ushort us2 __attribute__((ext_vector_type(2)));
typedef short s2 __attribute__((ext_vector_type(2)));
typedef float f2 __attribute__((ext_vector_type(2)));
#define AS_UINT(v) __builtin_astype(v, uint)
#define AS_USHORT(v) __builtin_astype(v, ushort)
#define AS_US2(v) __builtin_astype(v, us2)
#define AS_S2(v) __builtin_astype(v, s2)
#define AS_H2(v) __builtin_astype(v, half2_)
#define FINITE16 0xbbffbbffu
#define max(p, q) __builtin_elementwise_max(p, q)
#define min(p, q) __builtin_elementwise_min(p, q)
#define clz(p) __builtin_clz(p)
#define ctz(p) __builtin_ctz(p)
#ifdef __GFX9__
#define BALLOT(p) __builtin_amdgcn_ballot_w64(p)
#else
#define BALLOT(p) __builtin_amdgcn_ballot_w32(p)
#endif
#if defined(__GFX9__) || defined(__GFX10__)
#define DOT4(p, q, r) __builtin_amdgcn_sdot4(p, q, r, 0)
#else
#define DOT4(p, q, r) __builtin_amdgcn_sudot4(1, p, 1, q, r, 0)
#endif
float DIV_IEEE(float x, float y) {
  bool f; // what the compiler emits for a correctly rounded division
  float d = __builtin_amdgcn_div_scalef(x, y, 0, &f), r = __builtin_amdgcn_rcpf(d);
  float n = __builtin_amdgcn_div_scalef(x, y, 1, &f);
  r = __builtin_fmaf(__builtin_fmaf(-d, r, 1.0f), r, r);
  float q = n * r;
  q = __builtin_fmaf(__builtin_fmaf(-d, q, n), r, q);
  return __builtin_amdgcn_div_fixupf(__builtin_amdgcn_div_fmasf(__builtin_fmaf(-d, q, n), r, q, f), y, x);
}
float PK_F32(float x, float y, float z) {
  f2 p = {x, y}, q = {y, z}, r = {z, x};
  p = __builtin_elementwise_fma(p, q, r);
  return p.x + p.y;
}
uint ifs(uint a, uint b, uint c) {
  for (uint k = 0; k < (b & 15); ++k)
    if (a & 1) a = a * 3 + c; else a >>= 1;
  return a;
}
__attribute__((noinline)) uint indexed(uint a, uint b) {
  volatile uint t[16];
  for (uint k = 0; k < 16; ++k) t[k] = k * 7;
  return t[b & 15] ^ a ^ t[b >> 4 & 15];
}
typedef uint u16v __attribute__((ext_vector_type(16)));
uint registers(uint a, uint b, uint c) { // a vector by an index of the wave
  u16v v;
  for (uint k = 0; k < 16; ++k) v[k] = b + k * 7;
  uint n = __builtin_amdgcn_readfirstlane(a);
  v[n & 15] = c;
  return v[n >> 4 & 15];
}
#define KERNEL(name, type, e) kernel void name(global type *o, global const uint *A, global const uint *B, global const uint *C) { \
  uint i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x(), a = A[i], b = B[i], c = C[i]; \
  float x = __builtin_astype(a, float), y = __builtin_astype(b, float), z = __builtin_astype(c, float); \
  float z01 = (float)(c >> 8) * 0x1p-24f; \
  half h = __builtin_astype((ushort)a, half), g = __builtin_astype((ushort)b, half), k = __builtin_astype((ushort)c, half); \
  half h01 = __builtin_astype((ushort)(a & 0xbbff), half), g01 = __builtin_astype((ushort)(b & 0xbbff), half); \
  o[i] = e; }
)";

#endif
