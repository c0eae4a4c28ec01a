//===- Salu.cpp - scalar integer instructions -----------------------------===//
#include "Wave.h"

using namespace greta::sim;
using llvm::countl_zero;
using llvm::countr_zero;
using llvm::popcount;

namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

void finish(Wave &w, const Inst &i) {
  if (i.has(WritesExec))
    w.refreshExec();
}

template <class T> T get(const Wave &w, const Operand &o) {
  if constexpr (sizeof(T) == 8)
    return T(w.scalar64(o));
  else
    return T(w.scalar(o));
}
template <class T> void put(Wave &w, const Operand &o, T x) {
  if constexpr (sizeof(T) == 8)
    w.setScalar64(o, u64(x));
  else
    w.setScalar(o, u32(x));
}
template <class T> constexpr char letter() {
  return sizeof(T) == 8 ? 'l' : 'i';
}

/// Operations are R f(A..., bool &scc); SCC goes in with its old value.
template <class F> struct Sig;
template <class R, class A> struct Sig<R (*)(A, bool &)> {
  static constexpr char types[] = {letter<R>(), '=', letter<A>(), 0};
  template <auto F> static void call(Wave &w, const Inst &i) {
    bool scc = w.scc();
    put<R>(w, i.dst[0], F(get<A>(w, i.src[0]), scc));
    w.setScc(scc);
    finish(w, i);
  }
};
template <class R, class A, class B> struct Sig<R (*)(A, B, bool &)> {
  static constexpr char types[] = {letter<R>(), '=', letter<A>(), letter<B>(),
                                   0};
  template <auto F> static void call(Wave &w, const Inst &i) {
    bool scc = w.scc();
    put<R>(w, i.dst[0], F(get<A>(w, i.src[0]), get<B>(w, i.src[1]), scc));
    w.setScc(scc);
    finish(w, i);
  }
};
template <auto F> constexpr OpInfo op(const char *name) {
  using S = Sig<decltype(F)>;
  return {name, S::template call<F>, S::types, 0, 0, Unit::Salu};
}

/// Handles compares: bool f(A, A).
template <auto F, class A>
void compareRun(Wave &w, const Inst &i, bool (*)(A, A)) {
  w.setScc(F(get<A>(w, i.src[0]), get<A>(w, i.src[1])));
}
template <auto F> void compare(Wave &w, const Inst &i) {
  compareRun<F>(w, i, F);
}
template <class A> constexpr const char *compareTypes(bool (*)(A, A)) {
  return sizeof(A) == 8 ? "=ll" : "=ii";
}
template <auto F> constexpr OpInfo cmp(const char *name) {
  return {name, compare<F>, compareTypes(F), 0, 0, Unit::Salu};
}

u32 addU(u32 a, u32 b, bool &c) {
  u64 r = u64(a) + b;
  c = r >> 32;
  return u32(r);
}
u32 addI(u32 a, u32 b, bool &c) {
  i64 r = i64(i32(a)) + i32(b);
  c = r != i32(r);
  return u32(r);
}
u32 addc(u32 a, u32 b, bool &c) {
  u64 r = u64(a) + b + c;
  c = r >> 32;
  return u32(r);
}
u32 subU(u32 a, u32 b, bool &c) {
  c = b > a;
  return a - b;
}
u32 subI(u32 a, u32 b, bool &c) {
  i64 r = i64(i32(a)) - i32(b);
  c = r != i32(r);
  return u32(r);
}
u32 subb(u32 a, u32 b, bool &c) {
  bool in = c;
  c = u64(b) + in > a;
  return a - b - in;
}
u64 add64(u64 a, u64 b, bool &) { return a + b; }
u64 sub64(u64 a, u64 b, bool &) { return a - b; }
u64 mul64(u64 a, u64 b, bool &) { return a * b; }
template <class T, bool Min> T minMax(T a, T b, bool &c) {
  c = Min ? a < b : a > b;
  return c ? a : b;
}
template <class T> T and_(T a, T b, bool &c) { return c = (a & b) != 0, a & b; }
template <class T> T or_(T a, T b, bool &c) { return c = (a | b) != 0, a | b; }
template <class T> T xor_(T a, T b, bool &c) { return c = (a ^ b) != 0, a ^ b; }
template <class T> T andn2(T a, T b, bool &c) {
  return c = (a & ~b) != 0, a & ~b;
}
template <class T> T orn2(T a, T b, bool &c) {
  return c = (a | ~b) != 0, a | ~b;
}
template <class T> T nand(T a, T b, bool &c) {
  return c = T(~(a & b)) != 0, ~(a & b);
}
template <class T> T nor(T a, T b, bool &c) {
  return c = T(~(a | b)) != 0, ~(a | b);
}
template <class T> T xnor(T a, T b, bool &c) {
  return c = T(~(a ^ b)) != 0, ~(a ^ b);
}
template <class T> T shl(T a, u32 b, bool &c) {
  T r = a << (b & (sizeof(T) * 8 - 1));
  return c = r != 0, r;
}
template <class T> T shr(T a, u32 b, bool &c) {
  T r = a >> (b & (sizeof(T) * 8 - 1));
  return c = r != 0, r;
}
template <unsigned N> u32 shlAdd(u32 a, u32 b, bool &c) {
  u64 r = (u64(a) << N) + b;
  c = r >> 32;
  return u32(r);
}
template <class T> T bfm(u32 a, u32 b, bool &) {
  unsigned m = sizeof(T) * 8 - 1;
  return ((T(1) << (a & m)) - 1) << (b & m);
}
template <class T> T bfe(T a, u32 b, bool &c) {
  unsigned bits = sizeof(T) * 8, offset = b & (bits - 1),
           width = b >> 16 & 0x7f;
  T r = 0;
  if (width) {
    unsigned take = std::min(width, bits - offset);
    if constexpr (std::is_signed_v<T>) {
      r = T(std::make_unsigned_t<T>(a) << (bits - offset - take)) >>
          (bits - take);
    } else {
      r = a >> offset;
      if (take < bits)
        r &= (T(1) << take) - 1;
    }
  }
  return c = r != 0, r;
}
u32 mul(u32 a, u32 b, bool &) { return a * b; }
u32 mulHiU(u32 a, u32 b, bool &) { return u32(u64(a) * b >> 32); }
u32 mulHiI(i32 a, i32 b, bool &) { return u32(u64(i64(a) * b) >> 32); }
u32 absdiff(i32 a, i32 b, bool &c) {
  u32 r = u32(a) - u32(b);
  if (i32(r) < 0)
    r = 0u - r;
  return c = r != 0, r;
}
template <class T> T cselect(T a, T b, bool &c) { return c ? a : b; }
u32 packLL(u32 a, u32 b, bool &) { return (a & 0xffff) | b << 16; }
u32 packLH(u32 a, u32 b, bool &) { return (a & 0xffff) | (b & 0xffff0000); }
u32 packHH(u32 a, u32 b, bool &) { return a >> 16 | (b & 0xffff0000); }
u32 packHL(u32 a, u32 b, bool &) { return a >> 16 | b << 16; }

template <class T> T mov(T a, bool &) { return a; }
template <class T> T not_(T a, bool &c) { return c = T(~a) != 0, ~a; }
u32 abs_(u32 a, bool &c) {
  u32 r = i32(a) < 0 ? 0u - a : a;
  return c = r != 0, r;
}
template <class T> T brev(T a, bool &) {
  return llvm::reverseBits(std::make_unsigned_t<T>(a));
}
template <class T> T wqm(T a, bool &c) {
  T r = 0;
  for (unsigned k = 0; k < sizeof(T) * 8; k += 4)
    if (a >> k & 15)
      r |= T(15) << k;
  return c = r != 0, r;
}
/// Sets one bit for each four.
template <class T> T quadmask(T a, bool &c) {
  T r = 0;
  for (unsigned k = 0; k < sizeof(T) * 2; ++k)
    if (a >> (4 * k) & 15)
      r |= T(1) << k;
  return c = r != 0, r;
}
u64 bitreplicate(u32 a, bool &) {
  u64 r = 0;
  for (unsigned k = 0; k < 32; ++k)
    if (a >> k & 1)
      r |= u64(3) << (2 * k);
  return r;
}
template <class T> u32 bcnt1(T a, bool &c) {
  u32 r = u32(popcount(a));
  return c = r != 0, r;
}
template <class T> u32 bcnt0(T a, bool &c) {
  u32 r = u32(popcount(T(~a)));
  return c = r != 0, r;
}
template <class T> u32 ff1(T a, bool &) {
  return a ? u32(countr_zero(a)) : ~0u;
}
template <class T> u32 ff0(T a, bool &) {
  return T(~a) ? u32(countr_zero(T(~a))) : ~0u;
}
template <class T> u32 flbit(T a, bool &) {
  return a ? u32(countl_zero(a)) : ~0u;
}
template <class T> u32 cls(T a, bool &) {
  T x = (a >> (sizeof(T) * 8 - 1)) & 1 ? T(~a) : a;
  return x ? u32(countl_zero(x)) : ~0u;
}
u32 sext8(u32 a, bool &) { return u32(i32(int8_t(a))); }
u32 sext16(u32 a, bool &) { return u32(i32(int16_t(a))); }

template <class T> bool eq(T a, T b) { return a == b; }
template <class T> bool ne(T a, T b) { return a != b; }
template <class T> bool gt(T a, T b) { return a > b; }
template <class T> bool ge(T a, T b) { return a >= b; }
template <class T> bool lt(T a, T b) { return a < b; }
template <class T> bool le(T a, T b) { return a <= b; }
template <class T, bool One> void bitcmp(Wave &w, const Inst &i) {
  unsigned b = w.scalar(i.src[1]) & (sizeof(T) * 8 - 1);
  w.setScc((get<T>(w, i.src[0]) >> b & 1) == T(One));
}

/// Handles saveexec: D = EXEC, EXEC = op(S, EXEC).
template <class T, auto F, bool Wr> void saveexec(Wave &w, const Inst &i) {
  T e = T(w.exec), s = get<T>(w, i.src[0]);
  bool c = false;
  T r = F(s, e, c);
  put<T>(w, i.dst[0], Wr ? r : e);
  w.setScc(c);
  w.setExec(sizeof(T) == 8 ? u64(r) : (w.exec & ~0xffffffffull) | u64(r));
}
template <class T> T andn1(T a, T b, bool &c) { return andn2<T>(b, a, c); }
template <class T> T orn1(T a, T b, bool &c) { return orn2<T>(b, a, c); }

template <class T, bool One> void bitset(Wave &w, const Inst &i) {
  T bit = T(1) << (w.scalar(i.src[0]) & (sizeof(T) * 8 - 1));
  T d = get<T>(w, i.dst[0]);
  put<T>(w, i.dst[0], One ? d | bit : d & ~bit);
  finish(w, i);
}
void cmov32(Wave &w, const Inst &i) {
  if (w.scc())
    w.setScalar(i.dst[0], w.scalar(i.src[0]));
  finish(w, i);
}
void cmov64(Wave &w, const Inst &i) {
  if (w.scc())
    w.setScalar64(i.dst[0], w.scalar64(i.src[0]));
  finish(w, i);
}
void movk(Wave &w, const Inst &i) {
  w.setScalar(i.dst[0], u32(i32(int16_t(i.imm))));
  finish(w, i);
}
void cmovk(Wave &w, const Inst &i) {
  if (w.scc())
    movk(w, i);
}
void addk(Wave &w, const Inst &i) {
  bool c;
  w.setScalar(i.dst[0], addI(w.s[i.dst[0].index], u32(i32(int16_t(i.imm))), c));
  w.setScc(c);
}
void mulk(Wave &w, const Inst &i) {
  w.setScalar(i.dst[0], w.s[i.dst[0].index] * u32(i32(int16_t(i.imm))));
}
template <auto F, class A>
void cmpkRun(Wave &w, const Inst &i, bool (*)(A, A)) {
  A k = std::is_signed_v<A> ? A(int16_t(i.imm)) : A(uint16_t(i.imm));
  w.setScc(F(A(w.scalar(i.src[0])), k));
}
template <auto F> void cmpk(Wave &w, const Inst &i) { cmpkRun<F>(w, i, F); }

/// Moves the register that M0 picks, relative to the one named.
template <unsigned Words, bool Dst> void movrel(Wave &w, const Inst &i) {
  unsigned from = i.src[0].index + (Dst ? 0 : w.s[slot::M0]);
  unsigned to = i.dst[0].index + (Dst ? w.s[slot::M0] : 0);
  if (from + Words > 106 || to + Words > 106)
    return w.fault(i, "M0 points outside the scalar registers");
  for (unsigned k = 0; k < Words; ++k)
    w.s[to + k] = w.s[from + k];
}

/// Moves relative to M0[9:0] for the source and M0[25:16] for the destination.
void movrelsd2(Wave &w, const Inst &i) {
  unsigned from = i.src[0].index + (w.s[slot::M0] & 0x3ff),
           to = i.dst[0].index + (w.s[slot::M0] >> 16 & 0x3ff);
  if (i.src[0].kind != Operand::Sgpr || from >= 106 || to >= 106)
    return w.fault(i, "M0 points outside the scalar registers");
  w.s[to] = w.s[from];
}

#define SREG(name, fn, types) {name, fn, types, 0, 0, Unit::Salu}
#define CMPS(suffix, T)                                                        \
  cmp<eq<T>>("s_cmp_eq_" suffix), cmp<ne<T>>("s_cmp_lg_" suffix),              \
      cmp<gt<T>>("s_cmp_gt_" suffix), cmp<ge<T>>("s_cmp_ge_" suffix),          \
      cmp<lt<T>>("s_cmp_lt_" suffix), cmp<le<T>>("s_cmp_le_" suffix)
#define CMPK(suffix, T)                                                        \
  SREG("s_cmpk_eq_" suffix, cmpk<eq<T>>, "=ik"),                               \
      SREG("s_cmpk_lg_" suffix, cmpk<ne<T>>, "=ik"),                           \
      SREG("s_cmpk_gt_" suffix, cmpk<gt<T>>, "=ik"),                           \
      SREG("s_cmpk_ge_" suffix, cmpk<ge<T>>, "=ik"),                           \
      SREG("s_cmpk_lt_" suffix, cmpk<lt<T>>, "=ik"),                           \
      SREG("s_cmpk_le_" suffix, cmpk<le<T>>, "=ik")
#define BOTH(name, f) op<f<u32>>(name "_b32"), op<f<u64>>(name "_b64")
#define SAVEEXEC(name, f)                                                      \
  SREG(name "_saveexec_b32", (saveexec<u32, f<u32>, false>), "i=i"),           \
      SREG(name "_saveexec_b64", (saveexec<u64, f<u64>, false>), "l=l")
#define WREXEC(name, f)                                                        \
  SREG(name "_wrexec_b32", (saveexec<u32, f<u32>, true>), "i=i"),              \
      SREG(name "_wrexec_b64", (saveexec<u64, f<u64>, true>), "l=l")

const OpInfo table[] = {
    op<addU>("s_add_u32"),
    op<addU>("s_add_co_u32"),
    op<addI>("s_add_i32"),
    op<addI>("s_add_co_i32"),
    op<addc>("s_addc_u32"),
    op<addc>("s_add_co_ci_u32"),
    op<subU>("s_sub_u32"),
    op<subU>("s_sub_co_u32"),
    op<subI>("s_sub_i32"),
    op<subI>("s_sub_co_i32"),
    op<subb>("s_subb_u32"),
    op<subb>("s_sub_co_ci_u32"),
    op<add64>("s_add_nc_u64"),
    op<sub64>("s_sub_nc_u64"),
    op<mul64>("s_mul_u64"),
    op<minMax<i32, true>>("s_min_i32"),
    op<minMax<u32, true>>("s_min_u32"),
    op<minMax<i32, false>>("s_max_i32"),
    op<minMax<u32, false>>("s_max_u32"),
    BOTH("s_and", and_),
    BOTH("s_or", or_),
    BOTH("s_xor", xor_),
    BOTH("s_andn2", andn2),
    BOTH("s_and_not1", andn2),
    BOTH("s_orn2", orn2),
    BOTH("s_or_not1", orn2),
    BOTH("s_nand", nand),
    BOTH("s_nor", nor),
    BOTH("s_xnor", xnor),
    BOTH("s_lshl", shl),
    BOTH("s_lshr", shr),
    op<shr<i32>>("s_ashr_i32"),
    op<shr<i64>>("s_ashr_i64"),
    op<shlAdd<1>>("s_lshl1_add_u32"),
    op<shlAdd<2>>("s_lshl2_add_u32"),
    op<shlAdd<3>>("s_lshl3_add_u32"),
    op<shlAdd<4>>("s_lshl4_add_u32"),
    BOTH("s_bfm", bfm),
    op<bfe<u32>>("s_bfe_u32"),
    op<bfe<i32>>("s_bfe_i32"),
    op<bfe<u64>>("s_bfe_u64"),
    op<bfe<i64>>("s_bfe_i64"),
    op<mul>("s_mul_i32"),
    op<mulHiU>("s_mul_hi_u32"),
    op<mulHiI>("s_mul_hi_i32"),
    op<absdiff>("s_absdiff_i32"),
    BOTH("s_cselect", cselect),
    op<packLL>("s_pack_ll_b32_b16"),
    op<packLH>("s_pack_lh_b32_b16"),
    op<packHH>("s_pack_hh_b32_b16"),
    op<packHL>("s_pack_hl_b32_b16"),
    BOTH("s_mov", mov),
    BOTH("s_not", not_),
    op<abs_>("s_abs_i32"),
    BOTH("s_brev", brev),
    BOTH("s_wqm", wqm),
    BOTH("s_quadmask", quadmask),
    op<bitreplicate>("s_bitreplicate_b64_b32"),
    op<bcnt1<u32>>("s_bcnt1_i32_b32"),
    op<bcnt1<u64>>("s_bcnt1_i32_b64"),
    op<bcnt0<u32>>("s_bcnt0_i32_b32"),
    op<bcnt0<u64>>("s_bcnt0_i32_b64"),
    op<ff1<u32>>("s_ff1_i32_b32"),
    op<ff1<u64>>("s_ff1_i32_b64"),
    op<ff1<u32>>("s_ctz_i32_b32"),
    op<ff1<u64>>("s_ctz_i32_b64"),
    op<ff0<u32>>("s_ff0_i32_b32"),
    op<ff0<u64>>("s_ff0_i32_b64"),
    op<flbit<u32>>("s_flbit_i32_b32"),
    op<flbit<u64>>("s_flbit_i32_b64"),
    op<flbit<u32>>("s_clz_i32_u32"),
    op<flbit<u64>>("s_clz_i32_u64"),
    op<cls<u32>>("s_flbit_i32"),
    op<cls<u64>>("s_flbit_i32_i64"),
    op<cls<u32>>("s_cls_i32"),
    op<cls<u64>>("s_cls_i32_i64"),
    op<sext8>("s_sext_i32_i8"),
    op<sext16>("s_sext_i32_i16"),
    CMPS("i32", i32),
    CMPS("u32", u32),
    cmp<eq<u64>>("s_cmp_eq_u64"),
    cmp<ne<u64>>("s_cmp_lg_u64"),
    CMPK("i32", i32),
    CMPK("u32", u32),
    SREG("s_bitcmp0_b32", (bitcmp<u32, false>), "=ii"),
    SREG("s_bitcmp1_b32", (bitcmp<u32, true>), "=ii"),
    SREG("s_bitcmp0_b64", (bitcmp<u64, false>), "=li"),
    SREG("s_bitcmp1_b64", (bitcmp<u64, true>), "=li"),
    SREG("s_bitset0_b32", (bitset<u32, false>), "i=i"),
    SREG("s_bitset1_b32", (bitset<u32, true>), "i=i"),
    SREG("s_bitset0_b64", (bitset<u64, false>), "l=i"),
    SREG("s_bitset1_b64", (bitset<u64, true>), "l=i"),
    SREG("s_cmov_b32", cmov32, "i=i"),
    SREG("s_cmov_b64", cmov64, "l=l"),
    SREG("s_movk_i32", movk, "i=k"),
    SREG("s_cmovk_i32", cmovk, "i=k"),
    SREG("s_addk_i32", addk, "i=k"),
    SREG("s_addk_co_i32", addk, "i=k"),
    SREG("s_mulk_i32", mulk, "i=k"),
    SREG("s_movrels_b32", (movrel<1, false>), "i=i"),
    SREG("s_movrels_b64", (movrel<2, false>), "l=l"),
    SREG("s_movreld_b32", (movrel<1, true>), "i=i"),
    SREG("s_movreld_b64", (movrel<2, true>), "l=l"),
    SREG("s_movrelsd_2_b32", movrelsd2, "i=i"),
    SAVEEXEC("s_and", and_),
    SAVEEXEC("s_or", or_),
    SAVEEXEC("s_xor", xor_),
    SAVEEXEC("s_andn2", andn2),
    SAVEEXEC("s_and_not1", andn2),
    SAVEEXEC("s_orn2", orn2),
    SAVEEXEC("s_or_not1", orn2),
    SAVEEXEC("s_nand", nand),
    SAVEEXEC("s_nor", nor),
    SAVEEXEC("s_xnor", xnor),
    SAVEEXEC("s_andn1", andn1),
    SAVEEXEC("s_and_not0", andn1),
    SAVEEXEC("s_orn1", orn1),
    SAVEEXEC("s_or_not0", orn1),
    WREXEC("s_andn1", andn1),
    WREXEC("s_and_not0", andn1),
    WREXEC("s_andn2", andn2),
    WREXEC("s_and_not1", andn2),
};

} // namespace

OpTable greta::sim::saluOps() { return table; }
