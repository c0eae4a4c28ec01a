//===- InstructionRows.h - OpenCL C expressions and references --*- C++ -*-===//
//
// The table of InstructionsTest.cpp: what each expression of a work item's
// words gives.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TEST_SIM_INSTRUCTIONROWS_H
#define GRETA_TEST_SIM_INSTRUCTIONROWS_H

#include "InstructionsPrelude.h"
#include "llvm/ADT/bit.h"
#include <algorithm>
#include <cmath>

namespace greta::sim::test {

/// The words of all work items, and this one's index.
struct In {
  const u32 *A, *B, *C;
  int i;
  int wave; ///< lanes of a wave
  u32 a() const { return A[i]; }
  u32 b() const { return B[i]; }
  u32 c() const { return C[i]; }
  /// Another lane of the same wave.
  u32 at(int lane) const { return A[i / wave * wave + lane]; }
  int lane() const { return i % wave; }
};

enum Kind { Int, Float, HalfBits };
struct Row {
  const char *name;
  const char *expression; ///< of uint a, b, c; float x, y, z; half h, g, k; i
  u32 (*reference)(const In &);
  Kind kind = Int;
  float ulps = 0;            ///< tolerance of Float
  const char *chips = "gfx"; ///< prefix
};

inline u32 refBitreverse(const In &in) {
  u32 r = 0;
  for (int k = 0; k < 32; ++k)
    r |= (in.a() >> k & 1) << (31 - k);
  return r;
}
inline u32 refSad(const In &in) {
  u32 s = in.c();
  for (int k = 0; k < 32; k += 8)
    s += u32(std::abs(int(in.a() >> k & 255) - int(in.b() >> k & 255)));
  return s;
}
inline u32 refMed3(const In &in) {
  float x = F(in.a());
  return B(x != x ? -1.f : std::fmax(-1.f, std::fmin(x, 1.f)));
}
inline u32 refRcp(const In &in) {
  float x = F(in.a()),
        r = 1 / (std::fabs(x) < 0x1p-126f ? std::copysign(0.f, x) : x);
  return B(std::fabs(r) < 0x1p-126f ? std::copysign(0.f, r) : r);
}
inline u32 refRsq(const In &in) {
  float x = std::fabs(F(in.a()));
  return B(float(1 / std::sqrt(x < 0x1p-126f ? 0. : double(x))));
}
inline u32 refExp2(const In &in) {
  float x = F(in.a()), r = std::exp2(std::fabs(x) < 0x1p-126f ? 0.f : x);
  return B(r < 0x1p-126f ? 0.f : r);
}
inline u32 refLog2(const In &in) {
  float x = std::fabs(F(in.a()));
  return B(std::log2(x < 0x1p-126f ? 0.f : x));
}
inline u32 refFrexp(const In &in) {
  float x = F(in.a());
  int e = 0;
  if (!std::isfinite(x))
    return B(x);
  float m = std::frexp(x, &e);
  return B(m + float(e));
}
inline u32 refCompare(const In &in) {
  float x = F(in.a()), y = F(in.b()), z = F(in.c());
  return u32((x < y) | (x == y) << 1 | (x >= z) << 2 | (x != y) << 3 |
             !(x <= z) << 4);
}
inline u32 refF2i(const In &in) {
  float v = F(in.a()) * .001f;
  return v != v          ? 0
         : v >= 0x1p31f  ? INT32_MAX
         : v <= -0x1p31f ? u32(INT32_MIN)
                         : u32(i32(v));
}
inline u32 refPkrtz(const In &in) {
  float z = float(in.c() >> 8) * 0x1p-24f;
  u32 r = HB(z);
  if (H(r) > z)
    --r;
  return r | r << 16;
}
inline u32 refHfma(const In &in) {
  double r = double(H(in.a())) * H(in.b()) + H(in.c());
  return llvm::bit_cast<uint16_t>(_Float16(r));
}
inline u32 refPkHadd(const In &in) {
  u32 a = in.a() & 0xbbffbbff, b = in.b() & 0xbbffbbff;
  return HB(H(a) + H(b)) | HB(H(a >> 16) + H(b >> 16)) << 16;
}
inline u32 refPkHfmaSwap(const In &in) {
  u32 a = in.a() & 0xbbffbbff, b = in.b() & 0xbbffbbff, c = in.c() & 0xbbffbbff;
  auto one = [](u32 x, u32 y, u32 z) {
    return u32(llvm::bit_cast<uint16_t>(_Float16(double(H(x)) * H(y) + H(z))));
  };
  return one(a >> 16, b, c) | one(a, b >> 16, c) << 16;
}
inline u32 refDot4(const In &in) {
  i32 s = i32(in.c());
  for (int k = 0; k < 32; k += 8)
    s = i32(u32(s) + u32(int8_t(in.a() >> k) * int8_t(in.b() >> k)));
  return u32(s);
}
inline u32 refDppMasks(const In &in) {
  bool on = (5 >> (in.lane() / 16) & 1) && (6 >> (in.lane() / 4 % 4) & 1);
  return on ? in.at(in.lane() ^ 3) : in.b();
}
inline u32 refBallot(const In &in) {
  u32 m = 0;
  for (int l = 0; l < 32; ++l)
    m |= (in.at(l) & 1) << l;
  return m;
}
inline u32 refMbcnt(const In &in) {
  int l = in.lane();
  return 7 + u32(llvm::popcount(in.a() & (l >= 32 ? ~0u : (1u << l) - 1)));
}
inline u32 refBranches(const In &in) {
  u32 r = in.a();
  for (u32 k = 0; k < (in.b() & 15); ++k)
    r = r & 1 ? r * 3 + in.c() : r >> 1;
  return r;
}

#define REF(...) [](const In &in) -> u32 { return __VA_ARGS__; }
const Row rows[] = {
    // Integers.
    {"add", "a + b", REF(in.a() + in.b())},
    {"sub", "a - b", REF(in.a() - in.b())},
    {"add64", "(uint)(((ulong)a << 32 | b) + ((ulong)c << 32 | a) >> 32)",
     REF(u32(((u64(in.a()) << 32 | in.b()) + (u64(in.c()) << 32 | in.a())) >>
             32))},
    {"sub64", "(uint)(((ulong)a << 32 | b) - ((ulong)c << 32 | a) >> 32)",
     REF(u32(((u64(in.a()) << 32 | in.b()) - (u64(in.c()) << 32 | in.a())) >>
             32))},
    {"mul_lo", "a * b", REF(in.a() * in.b())},
    {"mul_hi_u", "(uint)((ulong)a * b >> 32)",
     REF(u32(u64(in.a()) * in.b() >> 32))},
    {"mul_hi_i", "(uint)((long)(int)a * (int)b >> 32)",
     REF(u32(int64_t(i32(in.a())) * i32(in.b()) >> 32))},
    {"mul24", "(a & 0xffffff) * (b & 0xffffff)",
     REF((in.a() & 0xffffff) * (in.b() & 0xffffff))},
    {"mad24_signed", "((int)(a << 8) >> 8) * ((int)(b << 8) >> 8) + c",
     REF(u32(i32(in.a() << 8) >> 8) * u32(i32(in.b() << 8) >> 8) + in.c())},
    {"mad64", "(uint)((ulong)a * b + ((ulong)c << 32 | a) >> 32)",
     REF(u32((u64(in.a()) * in.b() + (u64(in.c()) << 32 | in.a())) >> 32))},
    {"udiv", "a / (b | 1)", REF(in.a() / (in.b() | 1))},
    {"urem", "a % (b | 1)", REF(in.a() % (in.b() | 1))},
    {"idiv", "(uint)((int)(a & 0x7fffffff) / (int)(b | 1))",
     REF(u32(i32(in.a() & 0x7fffffff) / i32(in.b() | 1)))},
    {"udiv64", "(uint)(((ulong)a << 32 | b) / ((ulong)(c & 0xffff) << 20 | 1))",
     REF(u32((u64(in.a()) << 32 | in.b()) / (u64(in.c() & 0xffff) << 20 | 1)))},
    {"and_or", "(a & b) | c", REF((in.a() & in.b()) | in.c())},
    {"bitop", "(a ^ b) & ~(c | (a & 0x0f0f0f0f))",
     REF((in.a() ^ in.b()) & ~(in.c() | (in.a() & 0x0f0f0f0f)))},
    {"bfi", "(a & b) | (~a & c)", REF((in.a() & in.b()) | (~in.a() & in.c()))},
    {"xor3", "a ^ b ^ c", REF(in.a() ^ in.b() ^ in.c())},
    {"add3", "a + b + c", REF(in.a() + in.b() + in.c())},
    {"lshl_add", "(a << (b & 31)) + c",
     REF((in.a() << (in.b() & 31)) + in.c())},
    {"shifts", "(a << (b & 31)) ^ (a >> (c & 31)) ^ (uint)((int)b >> (c & 31))",
     REF((in.a() << (in.b() & 31)) ^ (in.a() >> (in.c() & 31)) ^
         u32(i32(in.b()) >> (in.c() & 31)))},
    {"shift64", "(uint)(((ulong)a << 32 | b) >> (c & 63))",
     REF(u32((u64(in.a()) << 32 | in.b()) >> (in.c() & 63)))},
    {"ashr64", "(uint)((long)((ulong)a << 32 | b) >> (c & 63))",
     REF(u32(int64_t(u64(in.a()) << 32 | in.b()) >> (in.c() & 63)))},
    {"bfe_u", "a >> 5 & 0x7f", REF(in.a() >> 5 & 0x7f)},
    {"bfe_i", "(uint)((int)(a << 9) >> 20)", REF(u32(i32(in.a() << 9) >> 20))},
    {"bfe_var", "__builtin_amdgcn_ubfe(a, b & 31, c & 15)",
     REF((in.a() >> (in.b() & 31)) & ((1u << (in.c() & 15)) - 1))},
    {"min_max_u", "max(min(a, b), c)",
     REF(std::max(std::min(in.a(), in.b()), in.c()))},
    {"min_max_i", "(uint)max(min((int)a, (int)b), (int)c)",
     REF(u32(std::max(std::min(i32(in.a()), i32(in.b())), i32(in.c()))))},
    {"clz", "clz(a | 1)", REF(u32(llvm::countl_zero(in.a() | 1)))},
    {"ctz", "ctz(a | 0x80000000u)",
     REF(u32(llvm::countr_zero(in.a() | 0x80000000u)))},
    {"popcount", "__builtin_popcount(a) + b",
     REF(u32(llvm::popcount(in.a())) + in.b())},
    {"bitreverse", "__builtin_bitreverse32(a)", refBitreverse},
    {"perm", "__builtin_amdgcn_perm(a, b, 0x0c070305u)",
     REF((in.a() >> 24) << 16 | (in.b() >> 24) << 8 | (in.a() >> 8 & 0xff))},
    {"alignbit", "__builtin_amdgcn_alignbit(a, b, c & 31)",
     REF(u32((u64(in.a()) << 32 | in.b()) >> (in.c() & 31)))},
    {"sad", "__builtin_amdgcn_sad_u8(a, b, c)", refSad},
    {"select", "a < b ? c : a", REF(in.a() < in.b() ? in.c() : in.a())},
    {"add_sat", "__builtin_elementwise_add_sat(a, b)",
     REF(in.a() + in.b() < in.a() ? ~0u : in.a() + in.b())},
    {"i16",
     "(ushort)((short)a * (short)b + (short)c) | (uint)(ushort)((ushort)a >> "
     "(b "
     "& 15)) << 16",
     REF(uint16_t(in.a() * in.b() + in.c()) |
         u32(uint16_t(uint16_t(in.a()) >> (in.b() & 15))) << 16)},
    {"pk_u16", "AS_UINT(AS_US2(a) * AS_US2(b) + AS_US2(c))",
     REF(uint16_t(in.a() * in.b() + in.c()) |
         u32(uint16_t((in.a() >> 16) * (in.b() >> 16) + (in.c() >> 16)))
             << 16)},
    {"pk_min_i16", "AS_UINT(__builtin_elementwise_min(AS_S2(a), AS_S2(b)))",
     REF(u32(uint16_t(std::min(int16_t(in.a()), int16_t(in.b())))) |
         u32(uint16_t(std::min(int16_t(in.a() >> 16), int16_t(in.b() >> 16))))
             << 16)},
    {"bytes", "(uint)(uchar)(a + (b >> 8)) << 8 | (uchar)((char)a >> 3)",
     REF((in.a() + (in.b() >> 8) & 0xff) << 8 | uint8_t(int8_t(in.a()) >> 3))},
    // f32.
    {"fadd", "x + y", REF(B(F(in.a()) + F(in.b()))), Float},
    {"fsub_neg", "-x - y", REF(B(-F(in.a()) - F(in.b()))), Float},
    {"fmul_abs", "__builtin_fabsf(x) * -y",
     REF(B(std::fabs(F(in.a())) * -F(in.b()))), Float},
    {"fma", "__builtin_fmaf(x, -y, z)",
     REF(B(std::fma(F(in.a()), -F(in.b()), F(in.c())))), Float},
    {"fma_literal", "__builtin_fmaf(x, 1.2345f, y)",
     REF(B(std::fma(F(in.a()), 1.2345f, F(in.b())))), Float},
    {"fmin_fmax", "__builtin_fmaxf(__builtin_fminf(x, y), z)",
     REF(B(std::fmax(std::fmin(F(in.a()), F(in.b())), F(in.c())))), Float},
    {"med3", "__builtin_amdgcn_fmed3f(x, -1.0f, 1.0f)", refMed3, Float},
    {"clamp", "__builtin_fminf(__builtin_fmaxf(x * y, 0.0f), 1.0f)",
     REF(B(std::fmin(std::fmax(F(in.a()) * F(in.b()), 0.f), 1.f))), Float},
    {"fdiv", "x / y", REF(B(F(in.a()) / F(in.b()))), Float, 3},
    {"fdiv_ieee", "DIV_IEEE(x, y)", REF(B(F(in.a()) / F(in.b()))), Float, 0},
    {"fsqrt", "__builtin_sqrtf(x)", REF(B(std::sqrt(F(in.a())))), Float, 3},
    {"rcp", "__builtin_amdgcn_rcpf(x)", refRcp, Float, 1},
    {"rsq", "__builtin_amdgcn_rsqf(__builtin_fabsf(x))", refRsq, Float, 1},
    {"exp2", "__builtin_amdgcn_exp2f(x)", refExp2, Float, 2},
    {"log2", "__builtin_amdgcn_logf(__builtin_fabsf(x))", refLog2, Float, 2},
    {"rounding",
     "__builtin_floorf(x) + __builtin_ceilf(y) - __builtin_truncf(z) + "
     "__builtin_rintf(x)",
     REF(B(std::floor(F(in.a())) + std::ceil(F(in.b())) -
           std::trunc(F(in.c())) + std::rint(F(in.a())))),
     Float},
    {"ldexp", "__builtin_amdgcn_ldexpf(x, (int)(b & 63) - 32)",
     REF(B(std::ldexp(F(in.a()), int(in.b() & 63) - 32))), Float},
    {"frexp",
     "__builtin_amdgcn_frexp_mantf(x) + __builtin_amdgcn_frexp_expf(x)",
     refFrexp, Float},
    {"compare",
     "(x < y) | (x == y) << 1 | (x >= z) << 2 | (x != y) << 3 | !(x <= z) << 4",
     refCompare},
    {"class", "(uint)__builtin_amdgcn_classf(x, 0x204)",
     REF(u32(std::isinf(F(in.a()))))},
    // Conversions.
    {"f2i", "(uint)(int)(x * 0.001f)", refF2i},
    {"i2f", "AS_UINT((float)(int)a)", REF(B(float(i32(in.a()))))},
    {"u2f", "AS_UINT((float)a)", REF(B(float(in.a())))},
    {"ubyte",
     "AS_UINT((float)(a & 255) + (float)(a >> 8 & 255) * 256.0f + (float)(a >> "
     "24))",
     REF(B(float(in.a() & 255) + float(in.a() >> 8 & 255) * 256.f +
           float(in.a() >> 24)))},
    {"f2h", "(uint)AS_USHORT((half)x)", REF(HB(F(in.a()))), HalfBits},
    {"h2f", "(float)h", REF(B(H(in.a()))), Float},
    {"pkrtz", "AS_UINT(__builtin_amdgcn_cvt_pkrtz(z01, -z01)) & 0x7fff7fff",
     refPkrtz},
    {"f64", "(float)((double)x * (double)y + (double)z)",
     REF(B(float(
         std::fma(double(F(in.a())), double(F(in.b())), double(F(in.c())))))),
     Float, 1},
    {"f64_int", "(uint)(int)((double)(int)a * 0.5)",
     REF(u32(i32(double(i32(in.a())) * .5)))},
    {"f64_div", "(float)((double)(int)a / (double)(int)(b | 1))",
     REF(B(float(double(i32(in.a())) / double(i32(in.b() | 1))))), Float},
    // f16.
    {"hadd", "(uint)AS_USHORT(h + g)", REF(HB(H(in.a()) + H(in.b()))),
     HalfBits},
    {"hmul", "(uint)AS_USHORT(h * -g)", REF(HB(H(in.a()) * -H(in.b()))),
     HalfBits},
    {"hfma", "(uint)AS_USHORT(__builtin_elementwise_fma(h, g, k))", refHfma,
     HalfBits},
    {"hmax", "(uint)AS_USHORT(__builtin_elementwise_max(h, g))",
     REF(HB(std::fmax(H(in.a()), H(in.b())))), HalfBits},
    {"pk_hadd", "AS_UINT(AS_H2(a & FINITE16) + AS_H2(b & FINITE16))",
     refPkHadd},
    {"pk_hfma_swap",
     "AS_UINT(__builtin_elementwise_fma(AS_H2(a & FINITE16).yx, AS_H2(b & "
     "FINITE16), AS_H2(c & FINITE16).xx))",
     refPkHfmaSwap},
    {"mix", "__builtin_fmaf((float)h01, y, (float)g01)",
     REF(B(std::fma(H(in.a() & 0xbbff), F(in.b()), H(in.b() & 0xbbff)))),
     Float},
    {"hcompare", "(uint)(h < g) | (uint)(h == g) << 1",
     REF(u32(H(in.a()) < H(in.b())) | u32(H(in.a()) == H(in.b())) << 1)},
    {"pk_f32", "PK_F32(x, y, z)",
     REF(B(std::fma(F(in.a()), F(in.b()), F(in.c())) +
           std::fma(F(in.b()), F(in.c()), F(in.a())))),
     Float},
    // Dots.
    {"dot4", "DOT4(a, b, c)", refDot4},
    // Across lanes.
    {"readfirstlane", "__builtin_amdgcn_readfirstlane(a)", REF(in.at(0))},
    {"readlane", "__builtin_amdgcn_readlane(a, 5)", REF(in.at(5))},
    {"bpermute", "__builtin_amdgcn_ds_bpermute((int)(b & 31) * 4, a)",
     REF(in.at(int(in.b() & 31)))},
    {"swizzle_xor", "__builtin_amdgcn_ds_swizzle(a, 0x101f)",
     REF(in.at(in.lane() ^ 4))},
    {"dpp_quad", "__builtin_amdgcn_mov_dpp(a, 0x1b, 15, 15, 1)",
     REF(in.at(in.lane() ^ 3))},
    {"dpp_shr", "__builtin_amdgcn_update_dpp(b, a, 0x113, 15, 15, 0)",
     REF(in.lane() % 16 >= 3 ? in.at(in.lane() - 3) : in.b())},
    {"dpp_shr_zero", "__builtin_amdgcn_update_dpp(b, a, 0x111, 15, 15, 1) + a",
     REF((in.lane() % 16 >= 1 ? in.at(in.lane() - 1) : 0) + in.a())},
    {"dpp_ror", "__builtin_amdgcn_mov_dpp(a, 0x124, 15, 15, 1)",
     REF(in.at(in.lane() / 16 * 16 + (in.lane() % 16 + 12) % 16))},
    {"dpp_mirror", "__builtin_amdgcn_mov_dpp(a, 0x140, 15, 15, 1)",
     REF(in.at(in.lane() ^ 15))},
    {"dpp_half_mirror", "__builtin_amdgcn_mov_dpp(a, 0x141, 15, 15, 1)",
     REF(in.at(in.lane() ^ 7))},
    {"dpp_masks", "__builtin_amdgcn_update_dpp(b, a, 0x1b, 5, 6, 0)",
     refDppMasks},
    {"ballot", "(uint)BALLOT(a & 1)", refBallot},
    {"mbcnt", "__builtin_amdgcn_mbcnt_lo(a, 7)", refMbcnt},
    {"row_bcast", "__builtin_amdgcn_update_dpp(b, a, 0x142, 15, 15, 0)",
     REF(in.lane() >= 16 ? in.at(in.lane() / 16 * 16 - 1) : in.b()), Int, 0,
     "gfx9"},
    {"row_share", "__builtin_amdgcn_mov_dpp(a, 0x153, 15, 15, 1)",
     REF(in.at(in.lane() / 16 * 16 + 3)), Int, 0, "gfx1"},
    {"row_xmask", "__builtin_amdgcn_mov_dpp(a, 0x165, 15, 15, 1)",
     REF(in.at(in.lane() ^ 5)), Int, 0, "gfx1"},
    {"dpp8", "__builtin_amdgcn_mov_dpp8(a, 0x053977)",
     REF(in.at(in.lane() / 8 * 8 +
               int(0x053977u >> (3 * (in.lane() % 8)) & 7))),
     Int, 0, "gfx1"},
    {"permlanex16",
     "__builtin_amdgcn_permlanex16(a, a, 0x76543210, 0xfedcba98, 1, 0)",
     REF(in.at(in.lane() ^ 16)), Int, 0, "gfx1"},
    {"registers", "registers(a, b, c)",
     REF((in.at(0) & 15) == (in.at(0) >> 4 & 15)
             ? in.c()
             : in.b() + (in.at(0) >> 4 & 15) * 7)},
    // Divergence.
    {"branches", "ifs(a, b, c)", refBranches},
    {"scratch", "indexed(a, b)",
     REF(((in.b() & 15) * 7) ^ in.a() ^ ((in.b() >> 4 & 15) * 7))},
};
#undef REF

} // namespace greta::sim::test

#endif
