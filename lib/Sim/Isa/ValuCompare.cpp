//===- ValuCompare.cpp - comparisons, classes, selection ------------------===//
#include "Isa/Valu.h"

using namespace greta::sim;

void greta::sim::writeCompare(Wave &w, const Inst &i, uint64_t m) {
  if (i.dst[0])
    w.setMask(i.dst[0], m);
  if (i.param) // v_cmpx
    w.setExec(m);
  else if (i.has(WritesExec))
    w.refreshExec();
}

namespace {

template <class T> auto key(T x) { return x; }
float key(Half x) { return halfToFloat(x.bits); }

enum Test {
  F,
  Lt,
  Eq,
  Le,
  Gt,
  Lg,
  Ge,
  O,
  U,
  Nge,
  Nlg,
  Ngt,
  Nle,
  Neq,
  Nlt,
  Tru
};
template <class T, Test K> bool test(T a, T b) {
  auto x = key(a), y = key(b);
  switch (K) {
  case F:
    return false;
  case Lt:
    return x < y;
  case Eq:
    return x == y;
  case Le:
    return x <= y;
  case Gt:
    return x > y;
  case Lg:
    return x < y || x > y;
  case Ge:
    return x >= y;
  case O:
    return x == x && y == y;
  case U:
    return x != x || y != y;
  case Nge:
    return !(x >= y);
  case Nlg:
    return !(x < y || x > y);
  case Ngt:
    return !(x > y);
  case Nle:
    return !(x <= y);
  case Neq:
    return x != y;
  case Nlt:
    return !(x < y);
  case Tru:
    return true;
  }
}

/// Returns the class: 1 sNaN 2 qNaN 4 -inf 8 -normal 16 -denormal 32 -0 64 +0
/// 128 +denormal 256 +normal 512 +inf
template <unsigned Bits, unsigned Mantissa>
bool classify(uint64_t x, uint32_t mask) {
  uint64_t m = x & ((uint64_t(1) << Mantissa) - 1);
  uint64_t top = (uint64_t(1) << (Bits - 1 - Mantissa)) - 1;
  uint64_t e = x >> Mantissa & top;
  bool negative = x >> (Bits - 1) & 1;
  unsigned bit;
  if (e == top)
    bit = m ? unsigned(m >> (Mantissa - 1) & 1) : negative ? 2 : 9;
  else if (e)
    bit = negative ? 3 : 8;
  else
    bit = m ? (negative ? 4 : 7) : (negative ? 5 : 6);
  return mask >> bit & 1;
}
bool class32(float a, uint32_t m) {
  return classify<32, 23>(llvm::bit_cast<uint32_t>(a), m);
}
bool class64(double a, uint32_t m) {
  return classify<64, 52>(llvm::bit_cast<uint64_t>(a), m);
}
bool class16(Half a, uint16_t m) { return classify<16, 10>(a.bits, m); }

template <auto Fn>
constexpr OpInfo cmp(const char *name, const char *types, bool x) {
  return {name, compare<Fn>, types, x, x ? uint32_t(NoDst) : 0u, Unit::Valu};
}
#define ONE(name, T, types, k)                                                 \
  cmp<test<T, k>>("v_cmp_" name, "m=" types, false),                           \
      cmp<test<T, k>>("v_cmpx_" name, "m=" types, true)
#define INTS(suffix, T, types)                                                 \
  ONE("f_" suffix, T, types, F), ONE("lt_" suffix, T, types, Lt),              \
      ONE("eq_" suffix, T, types, Eq), ONE("le_" suffix, T, types, Le),        \
      ONE("gt_" suffix, T, types, Gt), ONE("ne_" suffix, T, types, Neq),       \
      ONE("ge_" suffix, T, types, Ge), ONE("t_" suffix, T, types, Tru)
#define FLOATS(suffix, T, types)                                               \
  ONE("f_" suffix, T, types, F), ONE("lt_" suffix, T, types, Lt),              \
      ONE("eq_" suffix, T, types, Eq), ONE("le_" suffix, T, types, Le),        \
      ONE("gt_" suffix, T, types, Gt), ONE("lg_" suffix, T, types, Lg),        \
      ONE("ge_" suffix, T, types, Ge), ONE("o_" suffix, T, types, O),          \
      ONE("u_" suffix, T, types, U), ONE("nge_" suffix, T, types, Nge),        \
      ONE("nlg_" suffix, T, types, Nlg), ONE("ngt_" suffix, T, types, Ngt),    \
      ONE("nle_" suffix, T, types, Nle), ONE("neq_" suffix, T, types, Neq),    \
      ONE("nlt_" suffix, T, types, Nlt), ONE("tru_" suffix, T, types, Tru),    \
      ONE("t_" suffix, T, types, Tru)

void cndmask(Wave &w, const Inst &i) {
  alignas(32) uint32_t t[2][MaxLanes], out[MaxLanes];
  const uint32_t *a = fetch<uint32_t>(w, i.src[0], t[0]),
                 *b = fetch<uint32_t>(w, i.src[1], t[1]);
  uint64_t m = w.mask(i.src[2]);
  GRETA_LANES
  for (unsigned l = 0; l < MaxLanes; ++l)
    out[l] = (m >> l & 1) ? b[l] : a[l];
  writeRows(w, w.v[i.dst[0].index], out, 1);
}
void cndmask16(Wave &w, const Inst &i) {
  alignas(32) uint32_t t[2][MaxLanes], out[MaxLanes];
  const uint32_t *a = fetch<Half>(w, i.src[0], t[0]),
                 *b = fetch<Half>(w, i.src[1], t[1]);
  uint64_t m = w.mask(i.src[2]);
  GRETA_LANES
  for (unsigned l = 0; l < MaxLanes; ++l)
    out[l] = ((m >> l & 1) ? b[l] : a[l]) & 0xffff;
  writeHalves(w, i, w.v[i.dst[0].index], out);
}

const OpInfo table[] = {
    INTS("i16", int16_t, "ss"),
    INTS("u16", uint16_t, "ss"),
    INTS("i32", int32_t, "ii"),
    INTS("u32", uint32_t, "ii"),
    INTS("i64", int64_t, "ll"),
    INTS("u64", uint64_t, "ll"),
    FLOATS("f16", Half, "hh"),
    FLOATS("f32", float, "ff"),
    FLOATS("f64", double, "DD"),
    cmp<class32>("v_cmp_class_f32", "m=fi", false),
    cmp<class32>("v_cmpx_class_f32", "m=fi", true),
    cmp<class64>("v_cmp_class_f64", "m=Di", false),
    cmp<class64>("v_cmpx_class_f64", "m=Di", true),
    cmp<class16>("v_cmp_class_f16", "m=hs", false),
    cmp<class16>("v_cmpx_class_f16", "m=hs", true),
    {"v_cndmask_b32", cndmask, "i=iim", 0, ImplicitVcc | Select, Unit::Valu},
    {"v_cndmask_b16", cndmask16, "s=ssm", 0, ImplicitVcc | Result16 | Select,
     Unit::Valu},
};

} // namespace

OpTable greta::sim::valuCompareOps() { return table; }
