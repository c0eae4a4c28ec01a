//===- InstructionsTest.cpp - instruction groups against references -------===//
//
// A table of OpenCL C expressions over three words a, b, c of a work item, each
// with its reference on the host. One code object per chip has a kernel for
// each row; which instructions they become is clang's choice, per chip.
//
//===----------------------------------------------------------------------===//
#include "InstructionsPrelude.h"
#include "SimTest.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <random>

using namespace greta::sim;
using namespace greta::sim::test;

namespace {

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

#define REF [](const In &in)->u32
const Row rows[] = {
    // Integers.
    {"add", "a + b", REF{return in.a() + in.b();
} // namespace
}
, {"sub", "a - b", REF{return in.a() - in.b();
}
}
, {"add64", "(uint)(((ulong)a << 32 | b) + ((ulong)c << 32 | a) >> 32)",
   REF{return u32(
       ((u64(in.a()) << 32 | in.b()) + (u64(in.c()) << 32 | in.a())) >> 32);
}
}
, {"sub64", "(uint)(((ulong)a << 32 | b) - ((ulong)c << 32 | a) >> 32)",
   REF{return u32(
       ((u64(in.a()) << 32 | in.b()) - (u64(in.c()) << 32 | in.a())) >> 32);
}
}
, {"mul_lo", "a * b", REF{return in.a() * in.b();
}
}
, {"mul_hi_u", "(uint)((ulong)a * b >> 32)",
   REF{return u32(u64(in.a()) * in.b() >> 32);
}
}
, {"mul_hi_i", "(uint)((long)(int)a * (int)b >> 32)",
   REF{return u32(int64_t(i32(in.a())) * i32(in.b()) >> 32);
}
}
, {"mul24", "(a & 0xffffff) * (b & 0xffffff)",
   REF{return (in.a() & 0xffffff) * (in.b() & 0xffffff);
}
}
, {"mad24_signed", "((int)(a << 8) >> 8) * ((int)(b << 8) >> 8) + c",
   REF{return u32(i32(in.a() << 8) >> 8) * u32(i32(in.b() << 8) >> 8) + in.c();
}
}
, {"mad64", "(uint)((ulong)a * b + ((ulong)c << 32 | a) >> 32)",
   REF{return u32((u64(in.a()) * in.b() + (u64(in.c()) << 32 | in.a())) >> 32);
}
}
, {"udiv", "a / (b | 1)", REF{return in.a() / (in.b() | 1);
}
}
, {"urem", "a % (b | 1)", REF{return in.a() % (in.b() | 1);
}
}
, {"idiv", "(uint)((int)(a & 0x7fffffff) / (int)(b | 1))",
   REF{return u32(i32(in.a() & 0x7fffffff) / i32(in.b() | 1));
}
}
, {"udiv64", "(uint)(((ulong)a << 32 | b) / ((ulong)(c & 0xffff) << 20 | 1))",
   REF{return u32((u64(in.a()) << 32 | in.b()) /
                  (u64(in.c() & 0xffff) << 20 | 1));
}
}
, {"and_or", "(a & b) | c", REF{return (in.a() & in.b()) | in.c();
}
}
, {"bitop", "(a ^ b) & ~(c | (a & 0x0f0f0f0f))",
   REF{return (in.a() ^ in.b()) & ~(in.c() | (in.a() & 0x0f0f0f0f));
}
}
, {"bfi", "(a & b) | (~a & c)",
   REF{return (in.a() & in.b()) | (~in.a() & in.c());
}
}
, {"xor3", "a ^ b ^ c", REF{return in.a() ^ in.b() ^ in.c();
}
}
, {"add3", "a + b + c", REF{return in.a() + in.b() + in.c();
}
}
, {"lshl_add", "(a << (b & 31)) + c",
   REF{return (in.a() << (in.b() & 31)) + in.c();
}
}
, {"shifts", "(a << (b & 31)) ^ (a >> (c & 31)) ^ (uint)((int)b >> (c & 31))",
   REF{return (in.a() << (in.b() & 31)) ^ (in.a() >> (in.c() & 31)) ^
              u32(i32(in.b()) >> (in.c() & 31));
}
}
, {"shift64", "(uint)(((ulong)a << 32 | b) >> (c & 63))",
   REF{return u32((u64(in.a()) << 32 | in.b()) >> (in.c() & 63));
}
}
, {"ashr64", "(uint)((long)((ulong)a << 32 | b) >> (c & 63))",
   REF{return u32(int64_t(u64(in.a()) << 32 | in.b()) >> (in.c() & 63));
}
}
, {"bfe_u", "a >> 5 & 0x7f", REF{return in.a() >> 5 & 0x7f;
}
}
, {"bfe_i", "(uint)((int)(a << 9) >> 20)",
   REF{return u32(i32(in.a() << 9) >> 20);
}
}
, {"bfe_var", "__builtin_amdgcn_ubfe(a, b & 31, c & 15)",
   REF{return (in.a() >> (in.b() & 31)) & ((1u << (in.c() & 15)) - 1);
}
}
, {"min_max_u", "max(min(a, b), c)",
   REF{return std::max(std::min(in.a(), in.b()), in.c());
}
}
, {"min_max_i", "(uint)max(min((int)a, (int)b), (int)c)",
   REF{return u32(std::max(std::min(i32(in.a()), i32(in.b())), i32(in.c())));
}
}
, {"clz", "clz(a | 1)", REF{return u32(llvm::countl_zero(in.a() | 1));
}
}
, {"ctz", "ctz(a | 0x80000000u)",
   REF{return u32(llvm::countr_zero(in.a() | 0x80000000u));
}
}
, {"popcount", "__builtin_popcount(a) + b",
   REF{return u32(llvm::popcount(in.a())) + in.b();
}
}
, {"bitreverse", "__builtin_bitreverse32(a)", REF{u32 r = 0;
for (int k = 0; k < 32; ++k)
  r |= (in.a() >> k & 1) << (31 - k);
return r;
}
}
, {"perm", "__builtin_amdgcn_perm(a, b, 0x0c070305u)",
   REF{return (in.a() >> 24) << 16 | (in.b() >> 24) << 8 | (in.a() >> 8 & 0xff);
}
}
, {"alignbit", "__builtin_amdgcn_alignbit(a, b, c & 31)",
   REF{return u32((u64(in.a()) << 32 | in.b()) >> (in.c() & 31));
}
}
, {"sad", "__builtin_amdgcn_sad_u8(a, b, c)", REF{u32 s = in.c();
for (int k = 0; k < 32; k += 8)
  s += u32(std::abs(int(in.a() >> k & 255) - int(in.b() >> k & 255)));
return s;
}
}
, {"select", "a < b ? c : a", REF{return in.a() < in.b() ? in.c() : in.a();
}
}
, {"add_sat", "__builtin_elementwise_add_sat(a, b)",
   REF{return in.a() + in.b() < in.a() ? ~0u : in.a() + in.b();
}
}
, {"i16",
   "(ushort)((short)a * (short)b + (short)c) | (uint)(ushort)((ushort)a >> (b "
   "& 15)) << 16",
   REF{return uint16_t(in.a() * in.b() + in.c()) |
              u32(uint16_t(uint16_t(in.a()) >> (in.b() & 15))) << 16;
}
}
, {"pk_u16", "AS_UINT(AS_US2(a) * AS_US2(b) + AS_US2(c))",
   REF{return uint16_t(in.a() * in.b() + in.c()) |
              u32(uint16_t((in.a() >> 16) * (in.b() >> 16) + (in.c() >> 16)))
                  << 16;
}
}
, {"pk_min_i16", "AS_UINT(__builtin_elementwise_min(AS_S2(a), AS_S2(b)))",
   REF{return u32(uint16_t(std::min(int16_t(in.a()), int16_t(in.b())))) |
              u32(uint16_t(
                  std::min(int16_t(in.a() >> 16), int16_t(in.b() >> 16))))
                  << 16;
}
}
, {"bytes", "(uint)(uchar)(a + (b >> 8)) << 8 | (uchar)((char)a >> 3)",
   REF{return (in.a() + (in.b() >> 8) & 0xff) << 8 |
              uint8_t(int8_t(in.a()) >> 3);
}
}
,
    // f32.
    {"fadd", "x + y", REF{return B(F(in.a()) + F(in.b()));
}
, Float
}
, {"fsub_neg", "-x - y", REF{return B(-F(in.a()) - F(in.b()));
}
, Float
}
, {"fmul_abs", "__builtin_fabsf(x) * -y",
   REF{return B(std::fabs(F(in.a())) * -F(in.b()));
}
, Float
}
, {"fma", "__builtin_fmaf(x, -y, z)",
   REF{return B(std::fma(F(in.a()), -F(in.b()), F(in.c())));
}
, Float
}
, {"fma_literal", "__builtin_fmaf(x, 1.2345f, y)",
   REF{return B(std::fma(F(in.a()), 1.2345f, F(in.b())));
}
, Float
}
, {"fmin_fmax", "__builtin_fmaxf(__builtin_fminf(x, y), z)",
   REF{return B(std::fmax(std::fmin(F(in.a()), F(in.b())), F(in.c())));
}
, Float
}
, {"med3", "__builtin_amdgcn_fmed3f(x, -1.0f, 1.0f)", REF{float x = F(in.a());
return B(x != x ? -1.f : std::fmax(-1.f, std::fmin(x, 1.f)));
}
, Float
}
, {"clamp", "__builtin_fminf(__builtin_fmaxf(x * y, 0.0f), 1.0f)",
   REF{return B(std::fmin(std::fmax(F(in.a()) * F(in.b()), 0.f), 1.f));
}
, Float
}
, {"fdiv", "x / y", REF{return B(F(in.a()) / F(in.b()));
}
, Float, 3
}
, {"fdiv_ieee", "DIV_IEEE(x, y)", REF{return B(F(in.a()) / F(in.b()));
}
, Float, 0
}
, {"fsqrt", "__builtin_sqrtf(x)", REF{return B(std::sqrt(F(in.a())));
}
, Float, 3
}
, {"rcp", "__builtin_amdgcn_rcpf(x)",
   REF{float x = F(in.a()),
       r = 1 / (std::fabs(x) < 0x1p-126f ? std::copysign(0.f, x) : x);
return B(std::fabs(r) < 0x1p-126f ? std::copysign(0.f, r) : r);
}
, Float, 1
}
, {"rsq", "__builtin_amdgcn_rsqf(__builtin_fabsf(x))",
   REF{float x = std::fabs(F(in.a()));
return B(float(1 / std::sqrt(x < 0x1p-126f ? 0. : double(x))));
}
, Float, 1
}
, {"exp2", "__builtin_amdgcn_exp2f(x)",
   REF{float x = F(in.a()), r = std::exp2(std::fabs(x) < 0x1p-126f ? 0.f : x);
return B(r < 0x1p-126f ? 0.f : r);
}
, Float, 2
}
, {"log2", "__builtin_amdgcn_logf(__builtin_fabsf(x))",
   REF{float x = std::fabs(F(in.a()));
return B(std::log2(x < 0x1p-126f ? 0.f : x));
}
, Float, 2
}
, {"rounding",
   "__builtin_floorf(x) + __builtin_ceilf(y) - __builtin_truncf(z) + "
   "__builtin_rintf(x)",
   REF{return B(std::floor(F(in.a())) + std::ceil(F(in.b())) -
                std::trunc(F(in.c())) + std::rint(F(in.a())));
}
, Float
}
, {"ldexp", "__builtin_amdgcn_ldexpf(x, (int)(b & 63) - 32)",
   REF{return B(std::ldexp(F(in.a()), int(in.b() & 63) - 32));
}
, Float
}
, {"frexp", "__builtin_amdgcn_frexp_mantf(x) + __builtin_amdgcn_frexp_expf(x)",
   REF{float x = F(in.a());
int e = 0;
if (!std::isfinite(x))
  return B(x);
float m = std::frexp(x, &e);
return B(m + float(e));
}
, Float
}
, {"compare",
   "(x < y) | (x == y) << 1 | (x >= z) << 2 | (x != y) << 3 | !(x <= z) << 4",
   REF{float x = F(in.a()), y = F(in.b()), z = F(in.c());
return u32((x < y) | (x == y) << 1 | (x >= z) << 2 | (x != y) << 3 |
           !(x <= z) << 4);
}
}
, {"class", "(uint)__builtin_amdgcn_classf(x, 0x204)",
   REF{return u32(std::isinf(F(in.a())));
}
}
,
    // Conversions.
    {"f2i", "(uint)(int)(x * 0.001f)", REF{float v = F(in.a()) * .001f;
return v != v          ? 0
       : v >= 0x1p31f  ? INT32_MAX
       : v <= -0x1p31f ? u32(INT32_MIN)
                       : u32(i32(v));
}
}
, {"i2f", "AS_UINT((float)(int)a)", REF{return B(float(i32(in.a())));
}
}
, {"u2f", "AS_UINT((float)a)", REF{return B(float(in.a()));
}
}
, {"ubyte",
   "AS_UINT((float)(a & 255) + (float)(a >> 8 & 255) * 256.0f + (float)(a >> "
   "24))",
   REF{return B(float(in.a() & 255) + float(in.a() >> 8 & 255) * 256.f +
                float(in.a() >> 24));
}
}
, {"f2h", "(uint)AS_USHORT((half)x)", REF{return HB(F(in.a()));
}
, HalfBits
}
, {"h2f", "(float)h", REF{return B(H(in.a()));
}
, Float
}
, {"pkrtz", "AS_UINT(__builtin_amdgcn_cvt_pkrtz(z01, -z01)) & 0x7fff7fff",
   REF{float z = float(in.c() >> 8) * 0x1p-24f;
u32 r = HB(z);
if (H(r) > z)
  --r;
return r | r << 16;
}
}
, {"f64", "(float)((double)x * (double)y + (double)z)",
   REF{return B(float(
       std::fma(double(F(in.a())), double(F(in.b())), double(F(in.c())))));
}
, Float, 1
}
, {"f64_int", "(uint)(int)((double)(int)a * 0.5)",
   REF{return u32(i32(double(i32(in.a())) * .5));
}
}
, {"f64_div", "(float)((double)(int)a / (double)(int)(b | 1))",
   REF{return B(float(double(i32(in.a())) / double(i32(in.b() | 1))));
}
, Float
}
,
    // f16.
    {"hadd", "(uint)AS_USHORT(h + g)", REF{return HB(H(in.a()) + H(in.b()));
}
, HalfBits
}
, {"hmul", "(uint)AS_USHORT(h * -g)", REF{return HB(H(in.a()) * -H(in.b()));
}
, HalfBits
}
, {"hfma", "(uint)AS_USHORT(__builtin_elementwise_fma(h, g, k))",
   REF{double r = double(H(in.a())) * H(in.b()) + H(in.c());
return llvm::bit_cast<uint16_t>(_Float16(r));
}
, HalfBits
}
, {"hmax", "(uint)AS_USHORT(__builtin_elementwise_max(h, g))",
   REF{return HB(std::fmax(H(in.a()), H(in.b())));
}
, HalfBits
}
, {"pk_hadd", "AS_UINT(AS_H2(a & FINITE16) + AS_H2(b & FINITE16))",
   REF{u32 a = in.a() & 0xbbffbbff, b = in.b() & 0xbbffbbff;
return HB(H(a) + H(b)) | HB(H(a >> 16) + H(b >> 16)) << 16;
}
}
, {"pk_hfma_swap",
   "AS_UINT(__builtin_elementwise_fma(AS_H2(a & FINITE16).yx, AS_H2(b & "
   "FINITE16), AS_H2(c & FINITE16).xx))",
   REF{u32 a = in.a() & 0xbbffbbff, b = in.b() & 0xbbffbbff,
       c = in.c() & 0xbbffbbff;
auto one = [](u32 x, u32 y, u32 z) {
  return u32(llvm::bit_cast<uint16_t>(_Float16(double(H(x)) * H(y) + H(z))));
};
return one(a >> 16, b, c) | one(a, b >> 16, c) << 16;
}
}
, {"mix", "__builtin_fmaf((float)h01, y, (float)g01)",
   REF{return B(std::fma(H(in.a() & 0xbbff), F(in.b()), H(in.b() & 0xbbff)));
}
, Float
}
, {"hcompare", "(uint)(h < g) | (uint)(h == g) << 1",
   REF{return u32(H(in.a()) < H(in.b())) | u32(H(in.a()) == H(in.b())) << 1;
}
}
, {"pk_f32", "PK_F32(x, y, z)",
   REF{return B(std::fma(F(in.a()), F(in.b()), F(in.c())) +
                std::fma(F(in.b()), F(in.c()), F(in.a())));
}
, Float
}
,
    // Dots.
    {"dot4", "DOT4(a, b, c)", REF{i32 s = i32(in.c());
for (int k = 0; k < 32; k += 8)
  s = i32(u32(s) + u32(int8_t(in.a() >> k) * int8_t(in.b() >> k)));
return u32(s);
}
}
,
    // Across lanes.
    {"readfirstlane", "__builtin_amdgcn_readfirstlane(a)", REF{return in.at(0);
}
}
, {"readlane", "__builtin_amdgcn_readlane(a, 5)", REF{return in.at(5);
}
}
, {"bpermute", "__builtin_amdgcn_ds_bpermute((int)(b & 31) * 4, a)",
   REF{return in.at(int(in.b() & 31));
}
}
, {"swizzle_xor", "__builtin_amdgcn_ds_swizzle(a, 0x101f)",
   REF{return in.at(in.lane() ^ 4);
}
}
, {"dpp_quad", "__builtin_amdgcn_mov_dpp(a, 0x1b, 15, 15, 1)",
   REF{return in.at(in.lane() ^ 3);
}
}
, {"dpp_shr", "__builtin_amdgcn_update_dpp(b, a, 0x113, 15, 15, 0)",
   REF{return in.lane() % 16 >= 3 ? in.at(in.lane() - 3) : in.b();
}
}
, {"dpp_shr_zero", "__builtin_amdgcn_update_dpp(b, a, 0x111, 15, 15, 1) + a",
   REF{return (in.lane() % 16 >= 1 ? in.at(in.lane() - 1) : 0) + in.a();
}
}
, {"dpp_ror", "__builtin_amdgcn_mov_dpp(a, 0x124, 15, 15, 1)",
   REF{return in.at(in.lane() / 16 * 16 + (in.lane() % 16 + 12) % 16);
}
}
, {"dpp_mirror", "__builtin_amdgcn_mov_dpp(a, 0x140, 15, 15, 1)",
   REF{return in.at(in.lane() ^ 15);
}
}
, {"dpp_half_mirror", "__builtin_amdgcn_mov_dpp(a, 0x141, 15, 15, 1)",
   REF{return in.at(in.lane() ^ 7);
}
}
, {"dpp_masks", "__builtin_amdgcn_update_dpp(b, a, 0x1b, 5, 6, 0)",
   REF{bool on = (5 >> (in.lane() / 16) & 1) && (6 >> (in.lane() / 4 % 4) & 1);
return on ? in.at(in.lane() ^ 3) : in.b();
}
}
, {"ballot", "(uint)BALLOT(a & 1)", REF{u32 m = 0;
for (int l = 0; l < 32; ++l)
  m |= (in.at(l) & 1) << l;
return m;
}
}
, {"mbcnt", "__builtin_amdgcn_mbcnt_lo(a, 7)", REF{int l = in.lane();
return 7 + u32(llvm::popcount(in.a() & (l >= 32 ? ~0u : (1u << l) - 1)));
}
}
, {"row_bcast", "__builtin_amdgcn_update_dpp(b, a, 0x142, 15, 15, 0)",
   REF{return in.lane() >= 16 ? in.at(in.lane() / 16 * 16 - 1) : in.b();
}
, Int, 0, "gfx9"
}
, {"row_share", "__builtin_amdgcn_mov_dpp(a, 0x153, 15, 15, 1)",
   REF{return in.at(in.lane() / 16 * 16 + 3);
}
, Int, 0, "gfx1"
}
, {"row_xmask", "__builtin_amdgcn_mov_dpp(a, 0x165, 15, 15, 1)",
   REF{return in.at(in.lane() ^ 5);
}
, Int, 0, "gfx1"
}
, {"dpp8", "__builtin_amdgcn_mov_dpp8(a, 0x053977)",
   REF{return in.at(in.lane() / 8 * 8 +
                    int(0x053977u >> (3 * (in.lane() % 8)) & 7));
}
, Int, 0, "gfx1"
}
, {"permlanex16",
   "__builtin_amdgcn_permlanex16(a, a, 0x76543210, 0xfedcba98, 1, 0)",
   REF{return in.at(in.lane() ^ 16);
}
, Int, 0, "gfx1"
}
,
    // Divergence.
    {"branches", "ifs(a, b, c)", REF{u32 r = in.a();
for (u32 k = 0; k < (in.b() & 15); ++k)
  r = r & 1 ? r * 3 + in.c() : r >> 1;
return r;
}
}
, {"scratch", "indexed(a, b)",
   REF{return ((in.b() & 15) * 7) ^ in.a() ^ ((in.b() >> 4 & 15) * 7);
}
}
,
}
;

bool runsOn(const Row &r, const std::string &chip) {
  return chip.rfind(r.chips, 0) == 0;
}

constexpr int count = 1024;
struct Chip {
  std::unique_ptr<Device> device;
  std::shared_ptr<Module> module;
  u32 *in[3], *out;
};

/// Compiled once per chip: the process keeps it.
Chip &chip(const std::string &name) {
  static std::map<std::string, Chip> chips;
  Chip &c = chips[name];
  if (c.device)
    return c;
  std::string source = prelude;
  for (const Row &r : rows)
    if (runsOn(r, name))
      source += std::string("KERNEL(k_") + r.name + ", " +
                (r.kind == Float ? "float" : "uint") + ", (" + r.expression +
                "))\n";
  auto code = compileKernel(name, source, "cl",
                            "-O2 -ffp-contract=off -fdenormal-fp-math=ieee");
  c.device = llvm::cantFail(Device::create(name));
  auto m = c.device->load(code);
  EXPECT_TRUE(bool(m)) << llvm::toString(m.takeError());
  if (m)
    c.module = std::move(*m);
  static const u32 special[] = {
      0,          1,          2,          3,          0x80000000, 0x7fffffff,
      ~0u,        0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000,
      0x00800000, 0x007fffff, 0x80000001, 0x3c00,     0x7c00,     0x7bff,
      0x0400,     0x03ff,     0x40490fdb, 0x7f7fffff};
  std::mt19937 random(7);
  for (u32 *&p : c.in) {
    p = static_cast<u32 *>(c.device->allocate(count * 4));
    for (int k = 0; k < count; ++k) {
      unsigned how = random() % 4;
      p[k] = how == 0   ? special[random() % std::size(special)]
             : how == 1 ? random()
             : how == 2 ? B(float(i32(random())) * 0x1p-24f)
                        : random() % 64;
    }
  }
  c.out = static_cast<u32 *>(c.device->allocate(count * 4));
  return c;
}

class Instructions
    : public testing::TestWithParam<std::tuple<const char *, int>> {};

TEST_P(Instructions, MatchReference) {
  auto [name, index] = GetParam();
  const Row &r = rows[index];
  Chip &c = chip(name);
  ASSERT_TRUE(c.module);
  const Kernel *k = c.module->find(std::string("k_") + r.name);
  ASSERT_TRUE(k);
  void *args[] = {c.out, c.in[0], c.in[1], c.in[2]};
  LaunchConfig config;
  config.grid = {count / 64, 1, 1};
  config.block = {64, 1, 1};
  config.kernarg =
      llvm::ArrayRef<uint8_t>(reinterpret_cast<uint8_t *>(args), sizeof(args));
  if (llvm::Error e = c.device->launch(*k, config))
    FAIL() << llvm::toString(std::move(e));
  int shown = 0;
  for (int i = 0; i < count && shown < 5; ++i) {
    In in{c.in[0], c.in[1], c.in[2], i, isWave64(name) ? 64 : 32};
    u32 want = r.reference(in), got = c.out[i];
    bool same = got == want;
    if (r.kind == HalfBits)
      same |= (got & 0x7fff) > 0x7c00 && (want & 0x7fff) > 0x7c00;
    if (r.kind == Float) {
      float g = F(got), w = F(want);
      same |= (g != g && w != w) || g == w;
      if (r.ulps && std::isfinite(g) && std::isfinite(w))
        same |= std::fabs(double(g) - w) <=
                r.ulps * std::ldexp(1., std::max(std::ilogb(w), -126) - 23);
    }
    if (!same) {
      ++shown;
      ADD_FAILURE() << r.name << "[" << i << "] a=" << std::hex << in.a()
                    << " b=" << in.b() << " c=" << in.c() << ": got " << got
                    << ", want " << want;
    }
  }
}

std::vector<std::tuple<const char *, int>> cases() {
  std::vector<std::tuple<const char *, int>> all;
  for (const char *name :
       {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1150", "gfx1201"})
    for (int k = 0; k < int(std::size(rows)); ++k)
      if (runsOn(rows[k], name))
        all.push_back({name, k});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Chips, Instructions, testing::ValuesIn(cases()),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  rows[std::get<1>(info.param)].name;
                         });

} // namespace
