//===- IsaIntegerRows.cpp - vector integer instructions -------------------===//
#include "IsaRows.h"
#include "llvm/ADT/bit.h"
#include <algorithm>

using namespace greta::sim::test;
using u8 = uint8_t;
using u16 = uint16_t;
using i16 = int16_t;
using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

// a, b, c: unsigned words; A, B, C: signed; l, m, n: 64 bits; p, q, r and
// P, Q, R: 16 bits.
#define R(e)                                                                   \
  [](const Sources &x) -> u64 {                                                \
    [[maybe_unused]] u32 a = x.u(0), b = x.u(1), c = x.u(2);                   \
    [[maybe_unused]] i32 A = x.i(0), B = x.i(1), C = x.i(2);                   \
    [[maybe_unused]] u64 l = x.v[0], m = x.v[1], n = x.v[2];                   \
    [[maybe_unused]] u16 p = x.s(0), q = x.s(1), r = x.s(2);                   \
    [[maybe_unused]] i16 P = x.t(0), Q = x.t(1), S = x.t(2);                   \
    return u64(e);                                                             \
  }

static i32 i24(u32 x) { return i32(x << 8) >> 8; }
template <class T> static T median(T a, T b, T c) {
  T v[] = {a, b, c};
  std::sort(v, v + 3);
  return v[1];
}
static u32 field(u32 x, u32 offset, u32 width) {
  u32 r = 0;
  for (u32 k = 0; k < (width & 31); ++k)
    if ((offset & 31) + k < 32)
      r |= (x >> ((offset & 31) + k) & 1) << k;
  return r;
}
static u32 signedField(u32 x, u32 offset, u32 width) {
  u32 w = std::min(width & 31, 32 - (offset & 31)), r = field(x, offset, width);
  return w && r >> (w - 1) & 1 ? r | (w < 32 ? ~0u << w : 0) : r;
}
static u32 difference(u32 a, u32 b) { return a > b ? a - b : b - a; }
static u32 sad(u32 a, u32 b, u32 c, unsigned width, bool masked = false) {
  u32 mask = width == 32 ? ~0u : (1u << width) - 1;
  for (unsigned k = 0; k < 32; k += width)
    if (!masked || (b >> k & mask))
      c += difference(a >> k & mask, b >> k & mask);
  return c;
}
static u32 lerp(u32 a, u32 b, u32 c) {
  u32 r = 0;
  for (unsigned k = 0; k < 32; k += 8)
    r |= (((a >> k & 255) + (b >> k & 255) + (c >> k & 1)) / 2) << k;
  return r;
}
/// Bytes of b are 0 to 3, of a 4 to 7; 8 to 11 are signs, 12 zero, above ones.
static u32 perm(u32 a, u32 b, u32 select) {
  u64 both = u64(a) << 32 | b;
  u32 r = 0;
  for (unsigned k = 0; k < 4; ++k) {
    u32 s = select >> (8 * k) & 255, byte;
    if (s < 8)
      byte = u32(both >> (8 * s)) & 255;
    else if (s < 12)
      byte = both >> (16 * (s - 8) + 15) & 1 ? 255 : 0;
    else
      byte = s == 12 ? 0 : 255;
    r |= byte << (8 * k);
  }
  return r;
}
static u32 signBits(i32 x) {
  u32 n = 0;
  while (n < 31 && (x >> 31 & 1) == (x >> (30 - n) & 1))
    ++n;
  return n == 31 ? ~0u : n + 1;
}
static u16 bytes(i32 a, i32 b, i32 low, i32 high) {
  return u16(u8(std::clamp(a, low, high)) | u8(std::clamp(b, low, high)) << 8);
}

static const IsaRow rows[] = {
    {"v_mov_b32", "u=u", R(a)},
    {"v_not_b32", "u=u", R(~a)},
    {"v_bfrev_b32", "u=u", R([](u32 x) {
       u32 y = 0;
       for (unsigned k = 0; k < 32; ++k)
         y |= (x >> k & 1) << (31 - k);
       return y;
     }(a))},
    {"v_ffbh_u32|v_clz_i32_u32", "u=u", R(a ? u32(llvm::countl_zero(a)) : ~0u)},
    {"v_ffbl_b32|v_ctz_i32_b32", "u=u", R(a ? u32(llvm::countr_zero(a)) : ~0u)},
    {"v_ffbh_i32|v_cls_i32", "u=u", R(signBits(A))},
    {"v_add_u32|v_add_nc_u32", "u=uu", R(u32(a + b))},
    {"v_sub_u32|v_sub_nc_u32", "u=uu", R(u32(a - b))},
    {"v_subrev_u32|v_subrev_nc_u32", "u=uu", R(u32(b - a))},
    {"v_add_i32|v_add_nc_i32", "u=uu", R(u32(a + b))},
    {"v_sub_i32|v_sub_nc_i32", "u=uu", R(u32(a - b))},
    {"v_and_b32", "u=uu", R(a & b)},
    {"v_or_b32", "u=uu", R(a | b)},
    {"v_xor_b32", "u=uu", R(a ^ b)},
    {"v_xnor_b32", "u=uu", R(u32(~(a ^ b)))},
    {"v_lshlrev_b32", "u=uu", R(u32(b << (a & 31)))},
    {"v_lshrrev_b32", "u=uu", R(b >> (a & 31))},
    {"v_ashrrev_i32", "u=uu", R(u32(B >> (a & 31)))},
    {"v_min_u32", "u=uu", R(std::min(a, b))},
    {"v_max_u32", "u=uu", R(std::max(a, b))},
    {"v_min_i32", "u=uu", R(u32(std::min(A, B)))},
    {"v_max_i32", "u=uu", R(u32(std::max(A, B)))},
    {"v_mul_lo_u32", "u=uu", R(u32(a * b))},
    {"v_mul_hi_u32", "u=uu", R(u64(a) * b >> 32)},
    {"v_mul_hi_i32", "u=uu", R(u32(i64(A) * B >> 32))},
    {"v_mul_u32_u24", "u=uu", R(u32((a & 0xffffff) * (b & 0xffffff)))},
    {"v_mul_hi_u32_u24", "u=uu", R(u64(a & 0xffffff) * (b & 0xffffff) >> 32)},
    {"v_mul_i32_i24", "u=uu", R(u32(i64(i24(a)) * i24(b)))},
    {"v_mul_hi_i32_i24", "u=uu", R(u32(i64(i24(a)) * i24(b) >> 32))},
    {"v_mad_u32_u24", "u=uuu", R(u32((a & 0xffffff) * (b & 0xffffff) + c))},
    {"v_mad_i32_i24", "u=uuu", R(u32(i64(i24(a)) * i24(b) + C))},
    {"v_bcnt_u32_b32", "u=uu", R(u32(llvm::popcount(a)) + b)},
    {"v_bfm_b32", "u=uu", R(u32(((1u << (a & 31)) - 1) << (b & 31)))},
    {"v_bfe_u32", "u=uuu", R(field(a, b, c))},
    {"v_bfe_i32", "u=uuu", R(signedField(a, b, c))},
    {"v_bfi_b32", "u=uuu", R((a & b) | (~a & c))},
    {"v_add3_u32", "u=uuu", R(u32(a + b + c))},
    {"v_lshl_add_u32", "u=uuu", R(u32((a << (b & 31)) + c))},
    {"v_add_lshl_u32", "u=uuu", R(u32((a + b) << (c & 31)))},
    {"v_lshl_or_b32", "u=uuu", R(a << (b & 31) | c)},
    {"v_and_or_b32", "u=uuu", R((a & b) | c)},
    {"v_or3_b32", "u=uuu", R(a | b | c)},
    {"v_xor3_b32", "u=uuu", R(a ^ b ^ c)},
    {"v_xad_u32", "u=uuu", R(u32((a ^ b) + c))},
    {"v_min3_u32", "u=uuu", R(std::min({a, b, c}))},
    {"v_max3_u32", "u=uuu", R(std::max({a, b, c}))},
    {"v_min3_i32", "u=uuu", R(u32(std::min({A, B, C})))},
    {"v_max3_i32", "u=uuu", R(u32(std::max({A, B, C})))},
    {"v_med3_u32", "u=uuu", R(median(a, b, c))},
    {"v_med3_i32", "u=uuu", R(u32(median(A, B, C)))},
    {"v_minmax_u32", "u=uuu", R(std::max(std::min(a, b), c))},
    {"v_maxmin_u32", "u=uuu", R(std::min(std::max(a, b), c))},
    {"v_minmax_i32", "u=uuu", R(u32(std::max(std::min(A, B), C)))},
    {"v_maxmin_i32", "u=uuu", R(u32(std::min(std::max(A, B), C)))},
    {"v_alignbit_b32", "u=uuu", R(u32((u64(a) << 32 | b) >> (c & 31)))},
    {"v_alignbyte_b32", "u=uuu", R(u32((u64(a) << 32 | b) >> 8 * (c & 3)))},
    {"v_perm_b32", "u=uuu", R(perm(a, b, c))},
    {"v_sad_u8", "u=uuu", R(sad(a, b, c, 8))},
    {"v_sad_hi_u8", "u=uuu", R(u32((sad(a, b, 0, 8) << 16) + c))},
    {"v_sad_u16", "u=uuu", R(sad(a, b, c, 16))},
    {"v_sad_u32", "u=uuu", R(sad(a, b, c, 32))},
    {"v_msad_u8", "u=uuu", R(sad(a, b, c, 8, true))},
    {"v_lerp_u8", "u=uuu", R(lerp(a, b, c))},
    {"v_cvt_pk_u16_u32", "u=uu",
     R(std::min(a, 65535u) | std::min(b, 65535u) << 16)},
    {"v_cvt_pk_i16_i32", "u=uu",
     R(u16(std::clamp(A, -32768, 32767)) |
       u32(u16(std::clamp(B, -32768, 32767))) << 16)},
    {"v_mad_u32_u16", "u=ssu", R(u32(u32(p) * q + c))},
    {"v_mad_i32_i16", "u=ssu", R(u32(i64(P) * Q + C))},
    {"v_pack_b32_f16", "u=ss", R(p | u32(q) << 16)},
    {"v_cvt_f32_ubyte0", "u=u", R(bits(float(a & 255)))},
    {"v_cvt_f32_ubyte1", "u=u", R(bits(float(a >> 8 & 255)))},
    {"v_cvt_f32_ubyte2", "u=u", R(bits(float(a >> 16 & 255)))},
    {"v_cvt_f32_ubyte3", "u=u", R(bits(float(a >> 24)))},
    {"v_cvt_f32_i32", "u=u", R(bits(float(A)))},
    {"v_cvt_f32_u32", "u=u", R(bits(float(a)))},
    {"v_cvt_f64_i32", "l=u", R(bits(double(A)))},
    {"v_cvt_f64_u32", "l=u", R(bits(double(a)))},
    {"v_cvt_f16_i16", "s=s", R(halfBits(P))},
    {"v_cvt_f16_u16", "s=s", R(halfBits(p))},
    {"v_cvt_i32_i16", "u=s", R(u32(i32(P)))},
    {"v_cvt_u32_u16", "u=s", R(p)},
    {"v_lshlrev_b64", "l=ul", R(m << (a & 63))},
    {"v_lshrrev_b64", "l=ul", R(m >> (a & 63))},
    {"v_ashrrev_i64", "l=ul", R(i64(m) >> (a & 63))},
    {"v_mov_b64", "l=l", R(l)},
    {"v_lshl_add_u64", "l=lul", R((l << (b & 7)) + n)},
    {"v_add_u16|v_add_nc_u16", "s=ss", R(u16(p + q))},
    {"v_sub_u16|v_sub_nc_u16", "s=ss", R(u16(p - q))},
    {"v_subrev_u16", "s=ss", R(u16(q - p))},
    {"v_add_i16|v_add_nc_i16", "s=ss", R(u16(p + q))},
    {"v_sub_i16|v_sub_nc_i16", "s=ss", R(u16(p - q))},
    {"v_mul_lo_u16", "s=ss", R(u16(u32(p) * q))},
    {"v_mad_u16|v_mad_legacy_u16", "s=sss", R(u16(u32(p) * q + r))},
    {"v_mad_i16|v_mad_legacy_i16", "s=sss", R(u16(i32(P) * Q + S))},
    {"v_lshlrev_b16", "s=ss", R(u16(q << (p & 15)))},
    {"v_lshrrev_b16", "s=ss", R(q >> (p & 15))},
    {"v_ashrrev_i16", "s=ss", R(u16(Q >> (p & 15)))},
    {"v_min_u16", "s=ss", R(std::min(p, q))},
    {"v_max_u16", "s=ss", R(std::max(p, q))},
    {"v_min_i16", "s=ss", R(u16(std::min(P, Q)))},
    {"v_max_i16", "s=ss", R(u16(std::max(P, Q)))},
    {"v_min3_u16", "s=sss", R(std::min({p, q, r}))},
    {"v_max3_u16", "s=sss", R(std::max({p, q, r}))},
    {"v_min3_i16", "s=sss", R(u16(std::min({P, Q, S})))},
    {"v_max3_i16", "s=sss", R(u16(std::max({P, Q, S})))},
    {"v_med3_u16", "s=sss", R(median(p, q, r))},
    {"v_med3_i16", "s=sss", R(u16(median(P, Q, S)))},
    {"v_mov_b16", "s=s", R(p)},
    {"v_not_b16", "s=s", R(u16(~p))},
    {"v_and_b16", "s=ss", R(p & q)},
    {"v_or_b16", "s=ss", R(p | q)},
    {"v_xor_b16", "s=ss", R(p ^ q)},
    {"v_sat_pk_u8_i16", "s=u", R(bytes(i16(a), i16(a >> 16), 0, 255))},
    {"v_ashr_pk_i8_i32", "s=uuu",
     R(bytes(A >> (c & 31), B >> (c & 31), -128, 127))},
    {"v_ashr_pk_u8_i32", "s=uuu",
     R(bytes(A >> (c & 31), B >> (c & 31), 0, 255))},
};

llvm::ArrayRef<IsaRow> greta::sim::test::integerRows() { return rows; }
