//===- IsaScalarTest.cpp - scalar instructions ----------------------------===//
//
// Integers on all chips, floats where there are scalar ones (gfx11.5, gfx12),
// results and SCC. Types as in IsaRows.h; results m and n are EXEC and its low
// word, which the saveexec instructions combine with a source, M and N those of
// the wrexec instructions; k is a 16-bit constant in the instruction, K a float
// constant behind it.
//
//===----------------------------------------------------------------------===//
#include "EveryChip.h"
#include "IsaRows.h"
#include "MatrixBench.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>

using namespace greta::sim::test;
using llvm::StringRef;
namespace slot = greta::sim::slot;

namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i32 = int32_t;
using i64 = int64_t;

/// The result of an instruction from its sources, the destination before, and
/// SCC.
struct Effect {
  u64 result = 0;
  bool scc;
};
struct Row {
  const char *names, *types; ///< a result of '.' is none
  Effect (*apply)(const Sources &, bool);
  bool near = false; ///< two units in the last place
};

// a, b and A, B: 32 bits; l, m: 64; d: the destination; scc.
#define R(e)                                                                   \
  [](const Sources &x, bool scc) -> Effect {                                   \
    [[maybe_unused]] u32 a = x.u(0), b = x.u(1), d = u32(x.old);               \
    [[maybe_unused]] i32 A = x.i(0), B = x.i(1);                               \
    [[maybe_unused]] u64 l = x.v[0], m = x.v[1], dl = x.old;                   \
    return e;                                                                  \
  }
Effect keep(u64 r, bool scc) { return {r, scc}; }
Effect any(u64 r) { return {r, r != 0}; }
Effect any32(u32 r) { return {r, r != 0}; }
Effect sum(u64 a, u64 b, u64 c) {
  return {u32(a + b + c), (a + b + c) >> 32 != 0};
}
Effect difference(u64 a, u64 b, u64 c) { return {u32(a - b - c), a < b + c}; }
Effect overflow(i64 r) { return {u32(r), r != i32(r)}; }
template <class T> Effect field(T x, u32 where, bool sign) {
  unsigned bits = sizeof(T) * 8, offset = where & (bits - 1),
           width = std::min<unsigned>(where >> 16 & 127, bits - offset);
  T r = 0;
  for (unsigned k = 0; k < width; ++k)
    r |= T(x >> (offset + k) & 1) << k;
  if (sign && width && r >> (width - 1) & 1)
    for (unsigned k = width; k < bits; ++k)
      r |= T(1) << k;
  return any(r);
}
template <class T> T grouped(T x, bool quads) {
  T r = 0;
  for (unsigned k = 0; k < sizeof(T) * 8; k += 4)
    if (x >> k & 15)
      r |= quads ? T(1) << k / 4 : T(15) << k;
  return r;
}
template <class T> T turned(T x) {
  T r = 0;
  for (unsigned k = 0; k < sizeof(T) * 8; ++k)
    r |= T(x >> k & 1) << (sizeof(T) * 8 - 1 - k);
  return r;
}
template <class T> u32 first(T x) {
  for (unsigned k = 0; k < sizeof(T) * 8; ++k)
    if (x >> k & 1)
      return k;
  return ~0u;
}
template <class T> u32 signBits(T x) {
  unsigned top = sizeof(T) * 8 - 1;
  for (unsigned k = 1; k <= top; ++k)
    if ((x >> (top - k) & 1) != (x >> top & 1))
      return k;
  return ~0u;
}
u64 doubled(u32 x) {
  u64 r = 0;
  for (unsigned k = 0; k < 64; ++k)
    r |= u64(x >> k / 2 & 1) << k;
  return r;
}

#define BOTH(name, types32, types64, e32, e64)                                 \
  {name "_b32", types32, R(e32)}, { name "_b64", types64, R(e64) }
#define LOGIC(names32, names64, op32, op64)                                    \
  {names32, "u=uu", R(any32(op32))}, { names64, "l=ll", R(any(op64)) }
#define COMPARE(suffix, x, y)                                                  \
  {"s_cmp_eq_" suffix, ".=uu", R(keep(0, x == y))},                            \
      {"s_cmp_lg_" suffix, ".=uu", R(keep(0, x != y))},                        \
      {"s_cmp_gt_" suffix, ".=uu", R(keep(0, x > y))},                         \
      {"s_cmp_ge_" suffix, ".=uu", R(keep(0, x >= y))},                        \
      {"s_cmp_lt_" suffix, ".=uu", R(keep(0, x < y))}, {                       \
    "s_cmp_le_" suffix, ".=uu", R(keep(0, x <= y))                             \
  }
#define COMPARE_CONSTANT(suffix, x, y)                                         \
  {"s_cmpk_eq_" suffix, ".=uk", R(keep(0, x == y))},                           \
      {"s_cmpk_lg_" suffix, ".=uk", R(keep(0, x != y))},                       \
      {"s_cmpk_gt_" suffix, ".=uk", R(keep(0, x > y))},                        \
      {"s_cmpk_ge_" suffix, ".=uk", R(keep(0, x >= y))},                       \
      {"s_cmpk_lt_" suffix, ".=uk", R(keep(0, x < y))}, {                      \
    "s_cmpk_le_" suffix, ".=uk", R(keep(0, x <= y))                            \
  }
#define SAVEEXEC(op, e)                                                        \
  {"s_" op "_saveexec_b64", "m=l", R(any(e))}, {                               \
    "s_" op "_saveexec_b32", "n=l", R(any32(u32(e)))                           \
  }
#define WREXEC(op, e)                                                          \
  {"s_" op "_wrexec_b64", "M=l", R(any(e))}, {                                 \
    "s_" op "_wrexec_b32", "N=l", R(any32(u32(e)))                             \
  }
const Row integers[] = {
    {"s_add_u32|s_add_co_u32", "u=uu", R(sum(a, b, 0))},
    {"s_addc_u32|s_add_co_ci_u32", "u=uu", R(sum(a, b, scc))},
    {"s_sub_u32|s_sub_co_u32", "u=uu", R(difference(a, b, 0))},
    {"s_subb_u32|s_sub_co_ci_u32", "u=uu", R(difference(a, b, scc))},
    {"s_add_i32|s_add_co_i32", "u=uu", R(overflow(i64(A) + B))},
    {"s_sub_i32|s_sub_co_i32", "u=uu", R(overflow(i64(A) - B))},
    {"s_add_nc_u64", "l=ll", R(keep(l + m, scc))},
    {"s_sub_nc_u64", "l=ll", R(keep(l - m, scc))},
    {"s_mul_u64", "l=ll", R(keep(l * m, scc))},
    {"s_min_i32", "u=uu", R(keep(u32(std::min(A, B)), A < B))},
    {"s_min_u32", "u=uu", R(keep(std::min(a, b), a < b))},
    {"s_max_i32", "u=uu", R(keep(u32(std::max(A, B)), A > B))},
    {"s_max_u32", "u=uu", R(keep(std::max(a, b), a > b))},
    LOGIC("s_and_b32", "s_and_b64", a &b, l &m),
    LOGIC("s_or_b32", "s_or_b64", a | b, l | m),
    LOGIC("s_xor_b32", "s_xor_b64", a ^ b, l ^ m),
    LOGIC("s_andn2_b32|s_and_not1_b32", "s_andn2_b64|s_and_not1_b64", a & ~b,
          l & ~m),
    LOGIC("s_orn2_b32|s_or_not1_b32", "s_orn2_b64|s_or_not1_b64", a | ~b,
          l | ~m),
    LOGIC("s_nand_b32", "s_nand_b64", ~(a &b), ~(l &m)),
    LOGIC("s_nor_b32", "s_nor_b64", ~(a | b), ~(l | m)),
    LOGIC("s_xnor_b32", "s_xnor_b64", ~(a ^ b), ~(l ^ m)),
    BOTH("s_lshl", "u=uu", "l=lu", any32(a << (b & 31)),
         any(l << (x.u(1) & 63))),
    BOTH("s_lshr", "u=uu", "l=lu", any32(a >> (b & 31)),
         any(l >> (x.u(1) & 63))),
    {"s_ashr_i32", "u=uu", R(any32(u32(A >> (b & 31))))},
    {"s_ashr_i64", "l=lu", R(any(u64(i64(l) >> (b & 63))))},
    {"s_lshl1_add_u32", "u=uu", R(sum(u64(a) << 1, b, 0))},
    {"s_lshl2_add_u32", "u=uu", R(sum(u64(a) << 2, b, 0))},
    {"s_lshl3_add_u32", "u=uu", R(sum(u64(a) << 3, b, 0))},
    {"s_lshl4_add_u32", "u=uu", R(sum(u64(a) << 4, b, 0))},
    {"s_bfm_b32", "u=uu",
     R(keep(u32(((1u << (a & 31)) - 1) << (b & 31)), scc))},
    {"s_bfm_b64", "l=uu", R(keep(((u64(1) << (a & 63)) - 1) << (b & 63), scc))},
    {"s_bfe_u32", "u=uu", R(field<u32>(a, b, false))},
    {"s_bfe_i32", "u=uu", R(field<u32>(a, b, true))},
    {"s_bfe_u64", "l=lu", R(field<u64>(l, b, false))},
    {"s_bfe_i64", "l=lu", R(field<u64>(l, b, true))},
    {"s_mul_i32", "u=uu", R(keep(u32(a * b), scc))},
    {"s_mul_hi_u32", "u=uu", R(keep(u64(a) * b >> 32, scc))},
    {"s_mul_hi_i32", "u=uu", R(keep(u32(i64(A) * B >> 32), scc))},
    {"s_absdiff_i32", "u=uu",
     R(any32(u32(A > B ? u32(a - b) : u32(b - a)) == 0x80000000u
                 ? 0x80000000u
                 : u32(std::abs(i32(a - b)))))},
    BOTH("s_cselect", "u=uu", "l=ll", keep(scc ? a : b, scc),
         keep(scc ? l : m, scc)),
    {"s_pack_ll_b32_b16", "u=uu", R(keep((a & 0xffff) | b << 16, scc))},
    {"s_pack_lh_b32_b16", "u=uu", R(keep((a & 0xffff) | (b >> 16 << 16), scc))},
    {"s_pack_hh_b32_b16", "u=uu", R(keep(a >> 16 | (b >> 16 << 16), scc))},
    {"s_pack_hl_b32_b16", "u=uu", R(keep(a >> 16 | b << 16, scc))},
    BOTH("s_mov", "u=u", "l=l", keep(a, scc), keep(l, scc)),
    BOTH("s_not", "u=u", "l=l", any32(~a), any(~l)),
    {"s_abs_i32", "u=u", R(any32(A < 0 ? u32(-i64(A)) : a))},
    BOTH("s_brev", "u=u", "l=l", keep(turned(a), scc), keep(turned(l), scc)),
    BOTH("s_wqm", "u=u", "l=l", any(grouped(a, false)), any(grouped(l, false))),
    BOTH("s_quadmask", "u=u", "l=l", any(grouped(a, true)),
         any(grouped(l, true))),
    {"s_bitreplicate_b64_b32", "l=u", R(keep(doubled(a), scc))},
    {"s_bcnt1_i32_b32", "u=u", R(any(u64(llvm::popcount(a))))},
    {"s_bcnt1_i32_b64", "u=l", R(any(u64(llvm::popcount(l))))},
    {"s_bcnt0_i32_b32", "u=u", R(any(u64(llvm::popcount(u32(~a)))))},
    {"s_bcnt0_i32_b64", "u=l", R(any(u64(llvm::popcount(~l))))},
    {"s_ff1_i32_b32|s_ctz_i32_b32", "u=u", R(keep(first(a), scc))},
    {"s_ff1_i32_b64|s_ctz_i32_b64", "u=l", R(keep(first(l), scc))},
    {"s_ff0_i32_b32", "u=u", R(keep(first(u32(~a)), scc))},
    {"s_ff0_i32_b64", "u=l", R(keep(first(u64(~l)), scc))},
    {"s_flbit_i32_b32|s_clz_i32_u32", "u=u", R(keep(first(turned(a)), scc))},
    {"s_flbit_i32_b64|s_clz_i32_u64", "u=l", R(keep(first(turned(l)), scc))},
    {"s_flbit_i32|s_cls_i32", "u=u", R(keep(signBits(a), scc))},
    {"s_flbit_i32_i64|s_cls_i32_i64", "u=l", R(keep(signBits(l), scc))},
    {"s_sext_i32_i8", "u=u", R(keep(u32(i32(int8_t(a))), scc))},
    {"s_sext_i32_i16", "u=u", R(keep(u32(i32(int16_t(a))), scc))},
    COMPARE("i32", A, B),
    COMPARE("u32", a, b),
    {"s_cmp_eq_u64", ".=ll", R(keep(0, l == m))},
    {"s_cmp_lg_u64", ".=ll", R(keep(0, l != m))},
    {"s_bitcmp0_b32", ".=uu", R(keep(0, !(a >> (b & 31) & 1)))},
    {"s_bitcmp1_b32", ".=uu", R(keep(0, a >> (b & 31) & 1))},
    {"s_bitcmp0_b64", ".=lu", R(keep(0, !(l >> (b & 63) & 1)))},
    {"s_bitcmp1_b64", ".=lu", R(keep(0, l >> (b & 63) & 1))},
    {"s_bitset0_b32", "u=u", R(keep(d & ~(1u << (a & 31)), scc))},
    {"s_bitset1_b32", "u=u", R(keep(d | 1u << (a & 31), scc))},
    {"s_bitset0_b64", "l=u", R(keep(dl & ~(u64(1) << (a & 63)), scc))},
    {"s_bitset1_b64", "l=u", R(keep(dl | u64(1) << (a & 63), scc))},
    BOTH("s_cmov", "u=u", "l=l", keep(scc ? a : d, scc),
         keep(scc ? l : dl, scc)),
    {"s_movk_i32", "u=k", R(keep(a, scc))},
    {"s_cmovk_i32", "u=k", R(keep(scc ? a : d, scc))},
    {"s_addk_i32|s_addk_co_i32", "u=k", R(overflow(i64(i32(d)) + A))},
    {"s_mulk_i32", "u=k", R(keep(u32(d * a), scc))},
    // EXEC is the second source and the result; the destination gets the old.
    SAVEEXEC("and", l &m),
    SAVEEXEC("or", l | m),
    SAVEEXEC("xor", l ^ m),
    SAVEEXEC("nand", ~(l &m)),
    SAVEEXEC("nor", ~(l | m)),
    SAVEEXEC("xnor", ~(l ^ m)),
    SAVEEXEC("andn2", l & ~m),
    SAVEEXEC("and_not1", l & ~m),
    SAVEEXEC("orn2", l | ~m),
    SAVEEXEC("or_not1", l | ~m),
    SAVEEXEC("andn1", ~l &m),
    SAVEEXEC("and_not0", ~l &m),
    SAVEEXEC("orn1", ~l | m),
    SAVEEXEC("or_not0", ~l | m),
    // The destination gets the new EXEC as well.
    WREXEC("andn1", ~l &m),
    WREXEC("and_not0", ~l &m),
    WREXEC("andn2", l & ~m),
    WREXEC("and_not1", l & ~m),
    COMPARE_CONSTANT("i32", A, B),
    COMPARE_CONSTANT("u32", a, (b & 0xffff)),
};

#define R32(e)                                                                 \
  [](const Sources &s, bool scc) -> Effect {                                   \
    [[maybe_unused]] float x = F(s.v[0]), y = F(s.v[1]), z = F(s.old);         \
    return {bits(float(e)), scc};                                              \
  }
#define R16(e)                                                                 \
  [](const Sources &s, bool scc) -> Effect {                                   \
    [[maybe_unused]] double x = H(s.v[0]), y = H(s.v[1]), z = H(s.old);        \
    return {halfBits(e), scc};                                                 \
  }
#define C32(e)                                                                 \
  [](const Sources &s, bool) -> Effect {                                       \
    float x = F(s.v[0]), y = F(s.v[1]);                                        \
    return {0, bool(e)};                                                       \
  }
#define C16(e)                                                                 \
  [](const Sources &s, bool) -> Effect {                                       \
    double x = H(s.v[0]), y = H(s.v[1]);                                       \
    return {0, bool(e)};                                                       \
  }
#define FLOATS(name, e)                                                        \
  {name "_f32", "f=ff", R32(e)}, { name "_f16", "h=hh", R16(e) }
#define FLOAT(name, e)                                                         \
  {name "_f32", "f=f", R32(e)}, { name "_f16", "h=h", R16(e) }
#define TEST2(name, e)                                                         \
  {"s_cmp_" name "_f32", ".=ff", C32(e)}, {                                    \
    "s_cmp_" name "_f16", ".=hh", C16(e)                                       \
  }
template <class T> u32 integer(float x) {
  double low = double(std::numeric_limits<T>::min()),
         high = double(std::numeric_limits<T>::max());
  return x != x ? 0 : u32(T(std::clamp(std::trunc(double(x)), low, high)));
}
const Row floats[] = {
    FLOATS("s_add", x + y),
    FLOATS("s_sub", x - y),
    FLOATS("s_mul", x *y),
    {"s_min_f32|s_min_num_f32", "f=ff", R32(least(x, y))},
    {"s_max_f32|s_max_num_f32", "f=ff", R32(most(x, y))},
    {"s_min_f16|s_min_num_f16", "h=hh", R16(least(x, y))},
    {"s_max_f16|s_max_num_f16", "h=hh", R16(most(x, y))},
    FLOATS("s_minimum", lower(x, y)),
    FLOATS("s_maximum", upper(x, y)),
    {"s_fmac_f32", "f=ff", R32(std::fma(x, y, z))},
    {"s_fmac_f16", "h=hh", R16(x * y + z)},
    {"s_fmaak_f32", "f=ffK", R32(std::fma(x, y, F(s.v[2])))},
    {"s_fmamk_f32", "f=fKf", R32(std::fma(x, y, F(s.v[2])))},
    {"s_cvt_f32_i32", "f=u",
     [](const Sources &s, bool c) { return Effect{bits(float(s.i(0))), c}; }},
    {"s_cvt_f32_u32", "f=u",
     [](const Sources &s, bool c) { return Effect{bits(float(s.u(0))), c}; }},
    {"s_cvt_i32_f32", "u=f",
     [](const Sources &s, bool c) {
       return Effect{integer<i32>(F(s.v[0])), c};
     }},
    {"s_cvt_u32_f32", "u=f",
     [](const Sources &s, bool c) {
       return Effect{integer<u32>(F(s.v[0])), c};
     }},
    {"s_cvt_f16_f32", "h=f",
     [](const Sources &s, bool c) { return Effect{halfBits(F(s.v[0])), c}; }},
    {"s_cvt_f32_f16", "f=h",
     [](const Sources &s, bool c) {
       return Effect{bits(float(H(s.v[0]))), c};
     }},
    {"s_cvt_hi_f32_f16", "f=u",
     [](const Sources &s, bool c) {
       return Effect{bits(float(H(s.v[0] >> 16))), c};
     }},
    {"s_cvt_pk_rtz_f16_f32", "p=ff",
     [](const Sources &s, bool c) {
       return Effect{truncatedHalf(F(s.v[0])) | truncatedHalf(F(s.v[1])) << 16,
                     c};
     }},
    FLOAT("s_ceil", std::ceil(x)),
    FLOAT("s_floor", std::floor(x)),
    FLOAT("s_trunc", std::trunc(x)),
    FLOAT("s_rndne", std::nearbyint(x)),
    {"v_s_exp_f32", "f=f",
     R32(noDenormal(float(std::exp2(double(noDenormal(x)))))), true},
    {"v_s_log_f32", "f=f", R32(std::log2(double(noDenormal(x)))), true},
    {"v_s_rcp_f32", "f=f", R32(noDenormal(1 / noDenormal(x))), true},
    {"v_s_rsq_f32", "f=f", R32(1 / std::sqrt(double(noDenormal(x)))), true},
    {"v_s_sqrt_f32", "f=f", R32(std::sqrt(noDenormal(x))), true},
    {"v_s_exp_f16", "h=h", R16(std::exp2(x)), true},
    {"v_s_log_f16", "h=h", R16(std::log2(x)), true},
    {"v_s_rcp_f16", "h=h", R16(1 / x), true},
    {"v_s_rsq_f16", "h=h", R16(1 / std::sqrt(x)), true},
    {"v_s_sqrt_f16", "h=h", R16(std::sqrt(x)), true},
    TEST2("lt", x < y),
    TEST2("eq", x == y),
    TEST2("le", x <= y),
    TEST2("gt", x > y),
    TEST2("lg", x<y || x> y),
    TEST2("ge", x >= y),
    TEST2("o", x == x && y == y),
    TEST2("u", x != x || y != y),
    TEST2("nge", !(x >= y)),
    TEST2("nlg", !(x < y || x > y)),
    TEST2("ngt", !(x > y)),
    TEST2("nle", !(x <= y)),
    TEST2("neq", !(x == y)),
    TEST2("nlt", !(x < y)),
};

u64 draw(std::mt19937 &random, char type) {
  static const float specials[] = {0.f,   -0.f,  1.f,      -1.f, 2.5f,
                                   -3.5f, .5f,   INFINITY, NAN,  7e4f,
                                   3e9f,  -3e9f, -7e4f};
  u64 any = u64(random()) << 32 | random();
  float v = random() % 2 ? specials[random() % std::size(specials)]
                         : float(int(random() % 2001) - 1000) * .13f;
  switch (type) {
  case 'f':
    return bits(v);
  case 'h':
    return halfBits(v);
  case 'l':
    return random() % 3 ? any : random() % 3;
  default:
    return random() % 3   ? u32(any)
           : random() % 2 ? u32(random() % 70)
                          : u32(random() % 70) << 16 | random() % 40;
  }
}

bool sameResult(u64 got, u64 want, const Row &r) {
  char type = r.types[0];
  if (got == want || type == '.')
    return true;
  if (type != 'f' && type != 'h' && type != 'p')
    return false;
  if (type == 'p') {
    Row half{"", "h=", nullptr};
    return sameResult(got & 0xffff, want & 0xffff, half) &&
           sameResult(got >> 16, want >> 16, half);
  }
  double g = type == 'f' ? F(got) : H(got), w = type == 'f' ? F(want) : H(want);
  if (g != g || w != w)
    return g != g && w != w;
  return r.near && std::llabs(i64(got) - i64(want)) <= 2;
}

bool isWide(char type) { return type == 'l' || type == 'm' || type == 'M'; }
bool usesExec(const Row &r) { return StringRef("mnMN").contains(r.types[0]); }

class Scalar : public testing::TestWithParam<const char *> {};

/// The scalar forms of transcendental instructions scale and clamp their
/// results like the vector forms.
TEST(ScalarFloat, OutputModifiers) {
  const std::pair<const char *, float> cases[] = {
      {"v_s_rcp_f32 s8, s12", .25f},
      {"v_s_rcp_f32 s8, s12 mul:2", .5f},
      {"v_s_rcp_f32 s8, s12 mul:4", 1.f},
      {"v_s_rcp_f32 s8, s12 div:2", .125f},
      {"v_s_rcp_f32 s8, -s12 clamp", 0.f},
      {"v_s_sqrt_f32 s8, s12 clamp", 1.f},
      {"v_s_sqrt_f32 s8, |s12| mul:4", 8.f},
  };
  std::vector<std::string> lines;
  for (auto [line, want] : cases)
    lines.push_back(line);
  Bench b("gfx1201", true, lines);
  b.wave.mode = 0; // scaled results have no denormals
  for (unsigned k = 0; k < lines.size(); ++k) {
    b.wave.s[12] = u32(bits(4.f));
    b.run(k);
    EXPECT_EQ(b.wave.s[8], u32(bits(cases[k].second))) << lines[k];
  }
}

TEST_P(Scalar, EveryInstruction) {
  bool gfx9 = GetParam()[3] == '9';
  std::vector<std::string> names = mnemonics(GetParam()), lines;
  std::vector<const Row *> rows;
  for (llvm::ArrayRef<Row> table :
       {llvm::ArrayRef<Row>(integers), llvm::ArrayRef<Row>(floats)})
    for (const Row &r : table) {
      llvm::SmallVector<StringRef, 4> alternatives;
      StringRef(r.names).split(alternatives, '|');
      for (StringRef name : alternatives) {
        if (!std::binary_search(names.begin(), names.end(), name.str()))
          continue;
        bool half = name.ends_with("exec_b32");
        auto operand = [&](char type, unsigned reg) {
          if (type == 'k' || type == 'K')
            return std::string(type == 'k' ? "0x9abc" : "0x3fc45678");
          std::string r = std::to_string(reg);
          return isWide(type) && !half
                     ? "s[" + r + ":" + std::to_string(reg + 1) + "]"
                     : "s" + r;
        };
        std::string text = name.str() + " ";
        if (r.types[0] != '.')
          text += operand(r.types[0], 8) + ", ";
        StringRef sources = StringRef(r.types).drop_front(2);
        for (unsigned k = 0; k < sources.size(); ++k)
          text += (k ? ", " : "") + operand(sources[k], 12 + 2 * k);
        lines.push_back(text);
        rows.push_back(&r);
      }
    }
  EXPECT_GT(lines.size(), gfx9 ? 100u : 90u);
  Bench b(GetParam(), false, lines);
  std::mt19937 random(2);
  for (unsigned k = 0; k < lines.size(); ++k) {
    SCOPED_TRACE(lines[k]);
    const Row &r = *rows[k];
    StringRef sources = StringRef(r.types).drop_front(2);
    for (unsigned round = 0; round < 200; ++round) {
      Sources in = {};
      in.old = draw(random, r.types[0]);
      u64 exec = draw(random, 'l');
      bool scc = random() % 2;
      for (unsigned s = 0; s < sources.size(); ++s) {
        u64 x = in.v[s] = draw(random, sources[s]);
        if (sources[s] == 'k') {
          in.v[s] = 0xffff9abc;
          if (s && random() % 4 == 0) // about equal to it
            in.v[0] = b.wave.s[12] =
                (random() % 2 ? 0x9abc : 0xffff9abc) + random() % 3 - 1;
        }
        if (sources[s] == 'K')
          in.v[s] = 0x3fc45678;
        b.wave.s[12 + 2 * s] = u32(x);
        b.wave.s[13 + 2 * s] = u32(x >> 32);
      }
      if (usesExec(r))
        in.v[1] = exec;
      b.wave.s[8] = u32(in.old);
      b.wave.s[9] = u32(in.old >> 32);
      b.wave.setExec(exec);
      b.wave.s[slot::Scc] = scc;
      Effect want = r.apply(in, scc);
      b.run(k);
      u64 got = b.wave.s[8] | (isWide(r.types[0]) ? u64(b.wave.s[9]) << 32 : 0);
      if (r.types[0] == 'h') // the other half is zero
        ASSERT_EQ(got >> 16, 0u);
      if (usesExec(r)) {
        bool low = r.types[0] == 'n' || r.types[0] == 'N';
        u64 part = low ? 0xffffffff : ~u64(0);
        ASSERT_EQ(b.wave.exec & ~part, exec & ~part);
        ASSERT_EQ(got, (std::islower(r.types[0]) ? exec : b.wave.exec) & part);
        got = b.wave.exec & part;
      }
      ASSERT_TRUE(sameResult(got, want.result, r))
          << std::hex << in.v[0] << ", " << in.v[1] << ", scc " << scc
          << " gives " << got << ", not " << want.result;
      ASSERT_EQ(b.wave.scc(), want.scc)
          << std::hex << in.v[0] << ", " << in.v[1] << " gives " << got;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, Scalar, testing::ValuesIn(everyChip()),
                         [](const auto &info) { return info.param; });

} // namespace
