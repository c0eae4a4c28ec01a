//===- ValuInt.cpp - vector integer instructions --------------------------===//
#include "Isa/Valu.h"

using namespace greta::sim;

namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u16 = uint16_t;
using i16 = int16_t;
using u64 = uint64_t;
using i64 = int64_t;

u32 mov(u32 a) { return a; }
u64 mov64(u64 a) { return a; }
u32 not_(u32 a) { return ~a; }
u32 brev(u32 a) { return llvm::reverseBits(a); }
u32 ffbh(u32 a) { return a ? u32(llvm::countl_zero(a)) : ~0u; }
u32 ffbl(u32 a) { return a ? u32(llvm::countr_zero(a)) : ~0u; }
u32 cls(u32 a) {
  u32 x = i32(a) < 0 ? ~a : a;
  return x ? u32(llvm::countl_zero(x)) : ~0u;
}
u32 add(u32 a, u32 b) { return a + b; }
u32 sub(u32 a, u32 b) { return a - b; }
u32 subrev(u32 a, u32 b) { return b - a; }
u64 lshlAdd64(u64 a, u32 b, u64 c) { return (a << (b & 7)) + c; }
u32 and_(u32 a, u32 b) { return a & b; }
u32 or_(u32 a, u32 b) { return a | b; }
u32 xor_(u32 a, u32 b) { return a ^ b; }
u32 xnor(u32 a, u32 b) { return ~(a ^ b); }
u32 lshlrev(u32 a, u32 b) { return b << (a & 31); }
u32 lshrrev(u32 a, u32 b) { return b >> (a & 31); }
i32 ashrrev(u32 a, i32 b) { return b >> (a & 31); }
u64 lshlrev64(u32 a, u64 b) { return b << (a & 63); }
u64 lshrrev64(u32 a, u64 b) { return b >> (a & 63); }
i64 ashrrev64(u32 a, i64 b) { return b >> (a & 63); }
u32 minU(u32 a, u32 b) { return a < b ? a : b; }
u32 maxU(u32 a, u32 b) { return a > b ? a : b; }
i32 minI(i32 a, i32 b) { return a < b ? a : b; }
i32 maxI(i32 a, i32 b) { return a > b ? a : b; }
u32 mulLo(u32 a, u32 b) { return a * b; }
u32 mulHiU(u32 a, u32 b) { return u32(u64(a) * b >> 32); }
u32 mulHiI(i32 a, i32 b) { return u32(u64(i64(a) * b) >> 32); }
i32 sext24(i32 a) { return i32(u32(a) << 8) >> 8; }
u32 mulU24(u32 a, u32 b) { return (a & 0xffffff) * (b & 0xffffff); }
u32 mulHiU24(u32 a, u32 b) {
  return u32(u64(a & 0xffffff) * (b & 0xffffff) >> 32);
}
u32 mulI24(i32 a, i32 b) { return u32(sext24(a)) * u32(sext24(b)); }
u32 mulHiI24(i32 a, i32 b) {
  return u32(u64(i64(sext24(a)) * sext24(b)) >> 32);
}
u32 madU24(u32 a, u32 b, u32 c) { return mulU24(a, b) + c; }
u32 madI24(i32 a, i32 b, u32 c) { return mulI24(a, b) + c; }
u32 bcnt(u32 a, u32 b) { return u32(llvm::popcount(a)) + b; }
u32 bfm(u32 a, u32 b) { return ((1u << (a & 31)) - 1) << (b & 31); }
u32 bfeU(u32 a, u32 b, u32 c) {
  u32 offset = b & 31, width = c & 31;
  return width ? (a >> offset) & ((1u << width) - 1) : 0;
}
i32 bfeI(i32 a, u32 b, u32 c) {
  u32 offset = b & 31, width = c & 31;
  if (!width)
    return 0;
  u32 take = width < 32 - offset ? width : 32 - offset;
  return i32(u32(a) << (32 - offset - take)) >> (32 - take);
}
u32 bfi(u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }
u32 add3(u32 a, u32 b, u32 c) { return a + b + c; }
u32 lshlAdd(u32 a, u32 b, u32 c) { return (a << (b & 31)) + c; }
u32 addLshl(u32 a, u32 b, u32 c) { return (a + b) << (c & 31); }
u32 lshlOr(u32 a, u32 b, u32 c) { return (a << (b & 31)) | c; }
u32 andOr(u32 a, u32 b, u32 c) { return (a & b) | c; }
u32 or3(u32 a, u32 b, u32 c) { return a | b | c; }
u32 xor3(u32 a, u32 b, u32 c) { return a ^ b ^ c; }
u32 xad(u32 a, u32 b, u32 c) { return (a ^ b) + c; }
u32 min3U(u32 a, u32 b, u32 c) { return minU(minU(a, b), c); }
u32 max3U(u32 a, u32 b, u32 c) { return maxU(maxU(a, b), c); }
i32 min3I(i32 a, i32 b, i32 c) { return minI(minI(a, b), c); }
i32 max3I(i32 a, i32 b, i32 c) { return maxI(maxI(a, b), c); }
u32 med3U(u32 a, u32 b, u32 c) { return maxU(minU(a, b), minU(maxU(a, b), c)); }
i32 med3I(i32 a, i32 b, i32 c) { return maxI(minI(a, b), minI(maxI(a, b), c)); }
u32 minmaxU(u32 a, u32 b, u32 c) { return maxU(minU(a, b), c); }
u32 maxminU(u32 a, u32 b, u32 c) { return minU(maxU(a, b), c); }
i32 minmaxI(i32 a, i32 b, i32 c) { return maxI(minI(a, b), c); }
i32 maxminI(i32 a, i32 b, i32 c) { return minI(maxI(a, b), c); }
u32 alignbit(u32 a, u32 b, u32 c) {
  return u32((u64(a) << 32 | b) >> (c & 31));
}
u32 alignbyte(u32 a, u32 b, u32 c) {
  return u32((u64(a) << 32 | b) >> (8 * (c & 3)));
}
u32 perm(u32 a, u32 b, u32 c) {
  u64 data = u64(a) << 32 | b;
  u32 r = 0;
  for (unsigned k = 0; k < 4; ++k) {
    u32 s = c >> (8 * k) & 0xff, x;
    if (s < 8)
      x = u32(data >> (8 * s)) & 0xff;
    else if (s < 12) // sign of byte 1, 3, 5, 7
      x = (data >> (16 * (s - 8) + 15) & 1) ? 0xff : 0;
    else
      x = s == 12 ? 0 : 0xff;
    r |= x << (8 * k);
  }
  return r;
}
u32 sad8(u32 a, u32 b, u32 c) {
  for (unsigned k = 0; k < 32; k += 8) {
    i32 d = i32(a >> k & 0xff) - i32(b >> k & 0xff);
    c += u32(d < 0 ? -d : d);
  }
  return c;
}
u32 sad32(u32 a, u32 b, u32 c) { return (a > b ? a - b : b - a) + c; }

// 16 bit.
u16 mov16(u16 a) { return a; }
u16 not16(u16 a) { return u16(~a); }
u16 add16(u16 a, u16 b) { return u16(a + b); }
u16 sub16(u16 a, u16 b) { return u16(a - b); }
u16 subrev16(u16 a, u16 b) { return u16(b - a); }
u16 mul16(u16 a, u16 b) { return u16(u32(a) * b); }
u16 mad16(u16 a, u16 b, u16 c) { return u16(u32(a) * b + c); }
u16 lshlrev16(u16 a, u16 b) { return u16(u32(b) << (a & 15)); }
u16 lshrrev16(u16 a, u16 b) { return u16(b >> (a & 15)); }
i16 ashrrev16(u16 a, i16 b) { return i16(b >> (a & 15)); }
u16 minU16(u16 a, u16 b) { return a < b ? a : b; }
u16 maxU16(u16 a, u16 b) { return a > b ? a : b; }
i16 minI16(i16 a, i16 b) { return a < b ? a : b; }
i16 maxI16(i16 a, i16 b) { return a > b ? a : b; }
u16 min3U16(u16 a, u16 b, u16 c) { return minU16(minU16(a, b), c); }
u16 max3U16(u16 a, u16 b, u16 c) { return maxU16(maxU16(a, b), c); }
i16 min3I16(i16 a, i16 b, i16 c) { return minI16(minI16(a, b), c); }
i16 max3I16(i16 a, i16 b, i16 c) { return maxI16(maxI16(a, b), c); }
u16 med3U16(u16 a, u16 b, u16 c) {
  return maxU16(minU16(a, b), minU16(maxU16(a, b), c));
}
i16 med3I16(i16 a, i16 b, i16 c) {
  return maxI16(minI16(a, b), minI16(maxI16(a, b), c));
}
u16 and16(u16 a, u16 b) { return a & b; }
u16 or16(u16 a, u16 b) { return a | b; }
u16 xor16(u16 a, u16 b) { return a ^ b; }
u32 lerp8(u32 a, u32 b, u32 c) {
  u32 r = 0;
  for (unsigned k = 0; k < 32; k += 8)
    r |= (((a >> k & 255) + (b >> k & 255) + (c >> k & 1)) >> 1) << k;
  return r;
}
u32 sadHi8(u32 a, u32 b, u32 c) { return (sad8(a, b, 0) << 16) + c; }
u32 distance(u32 a, u32 b) { return a > b ? a - b : b - a; }
u32 sad16(u32 a, u32 b, u32 c) {
  return distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16) + c;
}
/// Sums differences of the bytes at which b is not zero.
u32 msad8(u32 a, u32 b, u32 c) {
  for (unsigned k = 0; k < 32; k += 8)
    if (b >> k & 255)
      c += distance(a >> k & 255, b >> k & 255);
  return c;
}
template <i32 Low, i32 High> u16 twoBytes(i32 a, i32 b) {
  auto n = [](i32 x) {
    return u16((x < Low ? Low : x > High ? High : x) & 255);
  };
  return u16(n(a) | n(b) << 8);
}
template <i32 Low, i32 High> u16 ashrPk8(i32 a, i32 b, u32 s) {
  return twoBytes<Low, High>(a >> (s & 31), b >> (s & 31));
}
u16 satPkU8(u32 a) { return twoBytes<0, 255>(i16(a), i16(a >> 16)); }
u32 mad32U16(u16 a, u16 b, u32 c) { return u32(a) * b + c; }
u32 mad32I16(i16 a, i16 b, u32 c) { return u32(i32(a) * b) + c; }
u32 packB32(Half a, Half b) { return a.bits | u32(b.bits) << 16; }

/// Saturates if the instruction clamps, else wraps.
template <auto Wrap, auto Saturate> void saturating(Wave &w, const Inst &i) {
  if (i.has(Clamp))
    valu<Saturate>(w, i);
  else
    valu<Wrap>(w, i);
}
u32 addSat(u32 a, u32 b) { return a + b < a ? ~0u : a + b; }
u32 subSat(u32 a, u32 b) { return a < b ? 0 : a - b; }
u32 subrevSat(u32 a, u32 b) { return subSat(b, a); }
i32 addI(i32 a, i32 b) { return i32(u32(a) + u32(b)); }
i32 subI(i32 a, i32 b) { return i32(u32(a) - u32(b)); }
i32 clampI(i64 x) {
  return i32(x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x);
}
i32 addISat(i32 a, i32 b) { return clampI(i64(a) + b); }
i32 subISat(i32 a, i32 b) { return clampI(i64(a) - b); }
u16 add16Sat(u16 a, u16 b) { return u16(a + b > 65535 ? 65535 : a + b); }
u16 sub16Sat(u16 a, u16 b) { return u16(a < b ? 0 : a - b); }
u16 subrev16Sat(u16 a, u16 b) { return sub16Sat(b, a); }
i16 addI16(i16 a, i16 b) { return i16(a + b); }
i16 subI16(i16 a, i16 b) { return i16(a - b); }
i16 clampI16(i32 x) { return i16(x < -32768 ? -32768 : x > 32767 ? 32767 : x); }
i16 addI16Sat(i16 a, i16 b) { return clampI16(a + b); }
i16 subI16Sat(i16 a, i16 b) { return clampI16(a - b); }
#define SAT(name, wrap, sat, types)                                            \
  {name,                                                                       \
   saturating<wrap, sat>,                                                      \
   types,                                                                      \
   0,                                                                          \
   is16<decltype(wrap(0, 0))>() ? uint32_t(Result16) : 0u,                     \
   Unit::Valu}

/// Adds or subtracts with carry in and out. Kind: 0 add, 1 sub, 2 subrev.
template <unsigned Kind, bool In, bool Out> void carry(Wave &w, const Inst &i) {
  alignas(32) uint32_t t[2][MaxLanes];
  const uint32_t *a = w.rows(i.src[0], 1, t[0]), *b = w.rows(i.src[1], 1, t[1]);
  uint64_t in = In ? w.mask(i.src[2]) : 0, out = 0;
  uint32_t *d = w.v[i.dst[0].index];
  for (unsigned l = 0; l < w.lanes; ++l) {
    if (!(w.exec >> l & 1))
      continue;
    u64 x = Kind == 2 ? b[l] : a[l], y = Kind == 2 ? a[l] : b[l],
        c = in >> l & 1;
    u64 r = Kind == 0 ? x + y + c : x - y - c;
    bool carryOut = r >> 32;
    out |= u64(carryOut) << l;
    d[l] = i.has(Clamp) && carryOut ? (Kind == 0 ? ~0u : 0) : u32(r);
  }
  if (Out)
    w.setMask(i.dst[1], out);
}
#define CARRY(name, kind)                                                      \
  {name, carry<kind, false, true>, "im=ii", 0, 0, Unit::Valu}
#define CARRYIN(name, kind)                                                    \
  {name, carry<kind, true, true>, "im=iim", 0, 0, Unit::Valu}

template <class T> void mad64(Wave &w, const Inst &i) {
  alignas(32) uint32_t t[4][MaxLanes];
  const uint32_t *a = w.rows(i.src[0], 1, t[0]), *b = w.rows(i.src[1], 1, t[1]),
                 *c = w.rows(i.src[2], 2, t[2]);
  uint32_t *d = w.v[i.dst[0].index];
  uint64_t out = 0;
  forLanes(w, [&](unsigned l) {
    u64 p = std::is_signed_v<T> ? u64(i64(i32(a[l])) * i32(b[l]))
                                : u64(a[l]) * b[l];
    u64 x = u64(c[MaxLanes + l]) << 32 | c[l], r = p + x;
    bool o = std::is_signed_v<T>
                 ? (i64(p) < 0) == (i64(x) < 0) && (i64(r) < 0) != (i64(p) < 0)
                 : r < p;
    out |= u64(o) << l;
    d[l] = u32(r);
    d[MaxLanes + l] = u32(r >> 32);
  });
  w.setMask(i.dst[1], out);
}

/// Computes any function of three bits; the truth table has bit 4a + 2b + c.
template <bool Low> void bitop3(Wave &w, const Inst &i) {
  alignas(32) uint32_t t[3][MaxLanes], out[MaxLanes] = {};
  const uint32_t *p[3];
  for (unsigned k = 0; k < 3; ++k)
    p[k] = Low ? fetch<u16>(w, i.src[k], t[k]) : w.rows(i.src[k], 1, t[k]);
  for (unsigned entry = 0; entry < 8; ++entry)
    if (i.imm >> entry & 1)
      for (unsigned l = 0; l < MaxLanes; ++l)
        out[l] |= (entry & 4 ? p[0][l] : ~p[0][l]) &
                  (entry & 2 ? p[1][l] : ~p[1][l]) &
                  (entry & 1 ? p[2][l] : ~p[2][l]);
  uint32_t *d = w.v[i.dst[0].index];
  if (!Low)
    return writeRows(w, d, out, 1);
  for (uint32_t &x : out)
    x &= 0xffff;
  writeHalves(w, i, d, out);
}

const OpInfo table[] = {
    {"v_bitop3_b32", bitop3<false>, "i=iii", 0, Merge, Unit::Valu},
    {"v_bitop3_b16", bitop3<true>, "s=sss", 0, Merge | Result16, Unit::Valu},
    valuOp<mov>("v_mov_b32"),
    valuOp<mov>("v_accvgpr_read_b32"),
    valuOp<mov>("v_accvgpr_write_b32"),
    valuOp<mov>("v_accvgpr_mov_b32"),
    valuOp<mov64>("v_mov_b64"),
    valuOp<not_>("v_not_b32"),
    valuOp<brev>("v_bfrev_b32"),
    valuOp<ffbh>("v_ffbh_u32"),
    valuOp<ffbh>("v_clz_i32_u32"),
    valuOp<ffbl>("v_ffbl_b32"),
    valuOp<ffbl>("v_ctz_i32_b32"),
    valuOp<cls>("v_ffbh_i32"),
    valuOp<cls>("v_cls_i32"),
    SAT("v_add_u32", add, addSat, "i=ii"),
    SAT("v_add_nc_u32", add, addSat, "i=ii"),
    SAT("v_sub_u32", sub, subSat, "i=ii"),
    SAT("v_sub_nc_u32", sub, subSat, "i=ii"),
    SAT("v_subrev_u32", subrev, subrevSat, "i=ii"),
    SAT("v_subrev_nc_u32", subrev, subrevSat, "i=ii"),
    SAT("v_add_i32", addI, addISat, "i=ii"),
    SAT("v_add_nc_i32", addI, addISat, "i=ii"),
    SAT("v_sub_i32", subI, subISat, "i=ii"),
    SAT("v_sub_nc_i32", subI, subISat, "i=ii"),
    valuOp<lshlAdd64>("v_lshl_add_u64"),
    valuOp<and_>("v_and_b32", Merge),
    valuOp<or_>("v_or_b32", Merge),
    valuOp<xor_>("v_xor_b32", Merge),
    valuOp<xnor>("v_xnor_b32"),
    valuOp<lshlrev>("v_lshlrev_b32"),
    valuOp<lshrrev>("v_lshrrev_b32"),
    valuOp<ashrrev>("v_ashrrev_i32"),
    valuOp<lshlrev64>("v_lshlrev_b64"),
    valuOp<lshrrev64>("v_lshrrev_b64"),
    valuOp<ashrrev64>("v_ashrrev_i64"),
    valuOp<minU>("v_min_u32"),
    valuOp<maxU>("v_max_u32"),
    valuOp<minI>("v_min_i32"),
    valuOp<maxI>("v_max_i32"),
    valuOp<mulLo>("v_mul_lo_u32"),
    valuOp<mulHiU>("v_mul_hi_u32"),
    valuOp<mulHiI>("v_mul_hi_i32"),
    valuOp<mulU24>("v_mul_u32_u24"),
    valuOp<mulHiU24>("v_mul_hi_u32_u24"),
    valuOp<mulI24>("v_mul_i32_i24"),
    valuOp<mulHiI24>("v_mul_hi_i32_i24"),
    valuOp<madU24>("v_mad_u32_u24"),
    valuOp<madI24>("v_mad_i32_i24"),
    valuOp<bcnt>("v_bcnt_u32_b32"),
    valuOp<bfm>("v_bfm_b32"),
    valuOp<bfeU>("v_bfe_u32"),
    valuOp<bfeI>("v_bfe_i32"),
    valuOp<bfi>("v_bfi_b32", Merge),
    valuOp<add3>("v_add3_u32"),
    valuOp<lshlAdd>("v_lshl_add_u32"),
    valuOp<addLshl>("v_add_lshl_u32"),
    valuOp<lshlOr>("v_lshl_or_b32", Merge),
    valuOp<andOr>("v_and_or_b32", Merge),
    valuOp<or3>("v_or3_b32", Merge),
    valuOp<xor3>("v_xor3_b32"),
    valuOp<xad>("v_xad_u32"),
    valuOp<min3U>("v_min3_u32"),
    valuOp<max3U>("v_max3_u32"),
    valuOp<min3I>("v_min3_i32"),
    valuOp<max3I>("v_max3_i32"),
    valuOp<med3U>("v_med3_u32"),
    valuOp<med3I>("v_med3_i32"),
    valuOp<minmaxU>("v_minmax_u32"),
    valuOp<maxminU>("v_maxmin_u32"),
    valuOp<minmaxI>("v_minmax_i32"),
    valuOp<maxminI>("v_maxmin_i32"),
    valuOp<alignbit>("v_alignbit_b32", Merge),
    valuOp<alignbyte>("v_alignbyte_b32", Merge),
    valuOp<perm>("v_perm_b32", Merge),
    valuOp<sad8>("v_sad_u8"),
    valuOp<sad32>("v_sad_u32"),
    valuOp<sad16>("v_sad_u16"),
    valuOp<sadHi8>("v_sad_hi_u8"),
    valuOp<msad8>("v_msad_u8"),
    valuOp<lerp8>("v_lerp_u8"),
    valuOp<ashrPk8<-128, 127>>("v_ashr_pk_i8_i32"),
    valuOp<ashrPk8<0, 255>>("v_ashr_pk_u8_i32"),
    valuOp<satPkU8>("v_sat_pk_u8_i16"),
    valuOp<mov16>("v_mov_b16"),
    valuOp<not16>("v_not_b16"),
    SAT("v_add_u16", add16, add16Sat, "s=ss"),
    SAT("v_add_nc_u16", add16, add16Sat, "s=ss"),
    SAT("v_sub_u16", sub16, sub16Sat, "s=ss"),
    SAT("v_sub_nc_u16", sub16, sub16Sat, "s=ss"),
    SAT("v_subrev_u16", subrev16, subrev16Sat, "s=ss"),
    SAT("v_add_i16", addI16, addI16Sat, "s=ss"),
    SAT("v_add_nc_i16", addI16, addI16Sat, "s=ss"),
    SAT("v_sub_i16", subI16, subI16Sat, "s=ss"),
    SAT("v_sub_nc_i16", subI16, subI16Sat, "s=ss"),
    valuOp<mul16>("v_mul_lo_u16"),
    valuOp<mad16>("v_mad_u16"),
    valuOp<mad16>("v_mad_i16"),
    valuOp<mad16>("v_mad_legacy_u16"),
    valuOp<mad16>("v_mad_legacy_i16"),
    valuOp<lshlrev16>("v_lshlrev_b16"),
    valuOp<lshrrev16>("v_lshrrev_b16"),
    valuOp<ashrrev16>("v_ashrrev_i16"),
    valuOp<minU16>("v_min_u16"),
    valuOp<maxU16>("v_max_u16"),
    valuOp<minI16>("v_min_i16"),
    valuOp<maxI16>("v_max_i16"),
    valuOp<min3U16>("v_min3_u16"),
    valuOp<max3U16>("v_max3_u16"),
    valuOp<min3I16>("v_min3_i16"),
    valuOp<max3I16>("v_max3_i16"),
    valuOp<med3U16>("v_med3_u16"),
    valuOp<med3I16>("v_med3_i16"),
    valuOp<and16>("v_and_b16"),
    valuOp<or16>("v_or_b16"),
    valuOp<xor16>("v_xor_b16"),
    valuOp<mad32U16>("v_mad_u32_u16"),
    valuOp<mad32I16>("v_mad_i32_i16"),
    valuOp<packB32>("v_pack_b32_f16", Merge),
    CARRY("v_add_co_u32", 0),
    CARRY("v_sub_co_u32", 1),
    CARRY("v_subrev_co_u32", 2),
    CARRYIN("v_addc_co_u32", 0),
    CARRYIN("v_add_co_ci_u32", 0),
    CARRYIN("v_subb_co_u32", 1),
    CARRYIN("v_sub_co_ci_u32", 1),
    CARRYIN("v_subbrev_co_u32", 2),
    CARRYIN("v_subrev_co_ci_u32", 2),
    {"v_mad_u64_u32", mad64<u32>, "lm=iil", 0, 0, Unit::Valu},
    {"v_mad_i64_i32", mad64<i32>, "lm=iil", 0, 0, Unit::Valu},
    {"v_mad_co_u64_u32", mad64<u32>, "lm=iil", 0, 0, Unit::Valu},
    {"v_mad_co_i64_i32", mad64<i32>, "lm=iil", 0, 0, Unit::Valu},
};

} // namespace

OpTable greta::sim::valuIntOps() { return table; }
