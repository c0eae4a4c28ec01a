//===- IsaPackedTest.cpp - packed math, comparisons, carries, modes -------===//
#include "EveryChip.h"
#include "Isa/Float.h"
#include "IsaRows.h"
#include "MatrixBench.h"
#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>

using namespace greta::sim::test;
using llvm::StringRef;

namespace {

using u16 = uint16_t;
using i16 = int16_t;
using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

class Packed : public testing::TestWithParam<const char *> {
protected:
  bool gfx9 = GetParam()[3] == '9';
  std::vector<std::string> names = mnemonics(GetParam());
  bool has(StringRef name) const {
    return std::binary_search(names.begin(), names.end(), name.str());
  }
};

/// Pairs of f16: any numbers, denormals, infinities, quiet and signalling NaNs.
u32 halves(std::mt19937 &random) {
  static const u16 specials[] = {0,      0x8000, 0x7c00, 0xfc00,
                                 0x7e00, 0xfe01, 0x7c01, 0xfd00,
                                 0x0001, 0x83ff, 0x7bff, 0x3c00};
  auto one = [&]() -> u64 {
    if (random() % 4 == 0)
      return specials[random() % std::size(specials)];
    return halfBits((int(random() % 2001) - 1000) *
                    (random() % 2 ? .37 : 1e-6));
  };
  return u32(one() | one() << 16);
}

struct Pair {
  const char *names;
  unsigned count;
  bool isFloat;
  u16 (*apply)(u16, u16, u16);
  bool tied = false; ///< the third source is the destination
};
#define I(e)                                                                   \
  [](u16 a, u16 b, u16 c) -> u16 {                                             \
    [[maybe_unused]] i16 A = i16(a), B = i16(b), C = i16(c);                   \
    return u16(e);                                                             \
  }
#define HF(e)                                                                  \
  [](u16 a, u16 b, u16 c) -> u16 {                                             \
    [[maybe_unused]] double x = H(a), y = H(b), z = H(c);                      \
    return u16(halfBits(e));                                                   \
  }
const Pair pairs[] = {
    {"v_pk_add_u16", 2, false, I(a + b)},
    {"v_pk_sub_u16", 2, false, I(a - b)},
    {"v_pk_add_i16", 2, false, I(a + b)},
    {"v_pk_sub_i16", 2, false, I(a - b)},
    {"v_pk_mul_lo_u16", 2, false, I(u32(a) * b)},
    {"v_pk_mad_u16", 3, false, I(u32(a) * b + c)},
    {"v_pk_mad_i16", 3, false, I(A * B + C)},
    {"v_pk_min_u16", 2, false, I(std::min(a, b))},
    {"v_pk_max_u16", 2, false, I(std::max(a, b))},
    {"v_pk_min_i16", 2, false, I(std::min(A, B))},
    {"v_pk_max_i16", 2, false, I(std::max(A, B))},
    {"v_pk_lshlrev_b16", 2, false, I(b << (a & 15))},
    {"v_pk_lshrrev_b16", 2, false, I(b >> (a & 15))},
    {"v_pk_ashrrev_i16", 2, false, I(B >> (a & 15))},
    {"v_pk_add_f16", 2, true, HF(x + y)},
    {"v_pk_mul_f16", 2, true, HF(x * y)},
    {"v_pk_fma_f16", 3, true, HF(x * y + z)},
    {"v_pk_fmac_f16", 2, true, HF(x * y + z), true},
    {"v_pk_min_f16|v_pk_min_num_f16", 2, true, HF(least(x, y))},
    {"v_pk_max_f16|v_pk_max_num_f16", 2, true, HF(most(x, y))},
    {"v_pk_minimum_f16", 2, true, HF(lower(x, y))},
    {"v_pk_maximum_f16", 2, true, HF(upper(x, y))},
    {"v_pk_minimum3_f16", 3, true, HF(lower(lower(x, y), z))},
    {"v_pk_maximum3_f16", 3, true, HF(upper(upper(x, y), z))},
};

std::string bitList(unsigned bits, unsigned count) {
  std::string s = "[";
  for (unsigned k = 0; k < count; ++k)
    s += (k ? "," : "") + std::to_string(bits >> k & 1);
  return s + "]";
}

TEST_P(Packed, Halves) {
  struct Form {
    const Pair *pair;
    unsigned low, high, negLow, negHigh;
  };
  std::vector<Form> forms;
  std::vector<std::string> lines;
  for (const Pair &p : pairs) {
    llvm::SmallVector<StringRef, 2> alternatives;
    StringRef(p.names).split(alternatives, '|');
    for (StringRef name : alternatives) {
      if (!has(name))
        continue;
      if (p.tied) { // no modifiers
        lines.push_back(name.str() + " v8, v12, v16");
        forms.push_back({&p, 0, 7, 0, 0});
        continue;
      }
      for (unsigned select = 0; select < 64; ++select) {
        unsigned all = (1u << p.count) - 1, low = select & all,
                 high = select >> 3 & all, negLow = select * 5 % 7 & all,
                 negHigh = select * 3 % 5 & all;
        if (!p.isFloat)
          negLow = negHigh = 0;
        std::string line = name.str() + " v8, v12, v16";
        if (p.count == 3)
          line += ", v20";
        line += " op_sel:" + bitList(low, p.count) +
                " op_sel_hi:" + bitList(high, p.count);
        if (negLow | negHigh)
          line += " neg_lo:" + bitList(negLow, p.count) +
                  " neg_hi:" + bitList(negHigh, p.count);
        lines.push_back(line);
        forms.push_back({&p, low, high, negLow, negHigh});
      }
    }
  }
  ASSERT_GT(lines.size(), 1000u);
  Bench b(GetParam(), !gfx9, lines);
  std::mt19937 random(1);
  for (unsigned k = 0; k < lines.size(); ++k) {
    const Form &f = forms[k];
    for (unsigned r : {12u, 16u, 20u})
      for (unsigned l = 0; l < b.lanes; ++l)
        b.row(r)[l] = f.pair->isFloat ? halves(random) : u32(random());
    if (f.pair->tied)
      std::copy(b.row(20), b.row(21), b.row(8));
    b.run(k);
    for (unsigned l = 0; l < b.lanes; ++l)
      for (unsigned half : {0u, 1u}) {
        u16 in[3];
        for (unsigned s = 0; s < 3; ++s) {
          in[s] = u16(b.row(12 + 4 * s)[l] >>
                      ((half ? f.high : f.low) >> s & 1 ? 16 : 0));
          if ((half ? f.negHigh : f.negLow) >> s & 1)
            in[s] ^= 0x8000;
        }
        u16 want = f.pair->apply(in[0], in[1], in[2]),
            got = u16(b.row(8)[l] >> 16 * half);
        bool nans = f.pair->isFloat && H(got) != H(got) && H(want) != H(want);
        ASSERT_TRUE(got == want || nans)
            << lines[k] << std::hex << " half " << half << ": " << in[0] << ", "
            << in[1] << ", " << in[2] << " gives " << got << ", not " << want;
      }
  }
}

TEST_P(Packed, Comparisons) {
  static const char *const floatTests[] = {
      "f",   "lt",  "eq",  "le",  "gt",  "lg",  "ge",  "o", "u",
      "nge", "nlg", "ngt", "nle", "neq", "nlt", "tru", "t"};
  static const char *const integerTests[] = {"f",  "lt", "eq", "le",
                                             "gt", "ne", "ge", "t"};
  struct Form {
    std::string test, type;
    bool execute, modified;
  };
  std::vector<std::string> candidates;
  std::vector<Form> wanted;
  for (const char *type :
       {"i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"}) {
    bool isFloat = type[0] == 'f', wide = StringRef(type).ends_with("64");
    for (const char *test : isFloat
                                ? llvm::ArrayRef<const char *>(floatTests)
                                : llvm::ArrayRef<const char *>(integerTests))
      for (bool execute : {false, true})
        for (bool modified : {false, true})
          for (const char *half : {"", ".l"}) {
            std::string name =
                std::string(execute ? "v_cmpx_" : "v_cmp_") + test + "_" + type;
            if (!has(name) || (modified && !isFloat) ||
                (*half && !StringRef(type).ends_with("16")))
              continue;
            std::string x = registers(12, wide ? 2 : 1) + half,
                        y = registers(16, wide ? 2 : 1) + half;
            std::string to = execute && !gfx9 ? " "
                             : gfx9           ? " s[8:9], "
                                              : " s8, ";
            candidates.push_back(
                name + to +
                (modified ? "-" + x + ", |" + y + "|" : x + ", " + y));
            wanted.push_back({test, type, execute, modified});
          }
  }
  std::vector<std::string> lines = assembling(GetParam(), !gfx9, candidates);
  std::vector<Form> forms;
  for (size_t k = 0; k < candidates.size(); ++k)
    if (forms.size() < lines.size() && lines[forms.size()] == candidates[k])
      forms.push_back(wanted[k]);
  ASSERT_GT(lines.size(), 150u);
  Bench b(GetParam(), !gfx9, lines);
  std::mt19937 random(3);
  static const double values[] = {0., -0.,      1.,        -1.,
                                  2., INFINITY, -INFINITY, NAN};
  for (unsigned k = 0; k < lines.size(); ++k) {
    const Form &f = forms[k];
    bool isFloat = f.type[0] == 'f';
    u64 exec = 0xfffffff0ffff7fffull & b.wave.fullMask, want = 0;
    b.wave.setExec(exec);
    for (unsigned l = 0; l < b.lanes; ++l) {
      u64 in[2];
      bool yes;
      auto order = [&](auto x, auto y) {
        StringRef t = f.test;
        bool unordered = x != x || y != y;
        if (isFloat && t.size() > 1 && t[0] == 'n' && t != "ne")
          return t == "neq"   ? !(x == y)
                 : t == "nlg" ? !(x < y || x > y)
                 : t == "nge" ? !(x >= y)
                 : t == "ngt" ? !(x > y)
                 : t == "nle" ? !(x <= y)
                              : !(x < y);
        return t == "lt"   ? x < y
               : t == "eq" ? x == y
               : t == "le" ? x <= y
               : t == "gt" ? x > y
               : t == "ge" ? x >= y
               : t == "ne" ? x != y
               : t == "lg" ? x < y || x > y
               : t == "o"  ? !unordered
               : t == "u"  ? unordered
                           : t[0] == 't';
      };
      if (isFloat) {
        double v[2];
        for (unsigned s : {0u, 1u}) {
          v[s] = values[random() % 8];
          in[s] = f.type == "f16"   ? halfBits(v[s])
                  : f.type == "f32" ? bits(float(v[s]))
                                    : bits(v[s]);
        }
        yes = f.modified ? order(-v[0], std::fabs(v[1])) : order(v[0], v[1]);
      } else {
        for (u64 &x : in)
          x = u64(i64(random() % 5) - 2) ^
              (random() % 3 ? 0 : u64(1) << (random() % 64));
        bool narrow = StringRef(f.type).ends_with("16"),
             wide = StringRef(f.type).ends_with("64");
        if (f.type[0] == 'i')
          yes = narrow ? order(i16(in[0]), i16(in[1]))
                : wide ? order(i64(in[0]), i64(in[1]))
                       : order(i32(in[0]), i32(in[1]));
        else
          yes = narrow ? order(u16(in[0]), u16(in[1]))
                : wide ? order(in[0], in[1])
                       : order(u32(in[0]), u32(in[1]));
      }
      for (unsigned s : {0u, 1u}) {
        b.row(12 + 4 * s)[l] = u32(in[s]);
        b.row(13 + 4 * s)[l] = u32(in[s] >> 32);
      }
      want |= u64(yes && (exec >> l & 1)) << l;
    }
    b.wave.s[8] = b.wave.s[9] = 0x5a5a5a5a;
    b.run(k);
    u64 got = b.wave.s[8] | (gfx9 ? u64(b.wave.s[9]) << 32 : 0);
    if (f.execute) {
      ASSERT_EQ(b.wave.exec, want) << lines[k];
      if (!gfx9)
        got = want;
    }
    ASSERT_EQ(got, want) << lines[k];
  }
}

TEST_P(Packed, Carries) {
  struct Row {
    const char *names;
    bool in;
    int kind; ///< 0 a + b, 1 a - b, 2 b - a
  };
  const Row rows[] = {{"v_add_co_u32", false, 0},
                      {"v_sub_co_u32", false, 1},
                      {"v_subrev_co_u32", false, 2},
                      {"v_addc_co_u32|v_add_co_ci_u32", true, 0},
                      {"v_subb_co_u32|v_sub_co_ci_u32", true, 1},
                      {"v_subbrev_co_u32|v_subrev_co_ci_u32", true, 2}};
  std::string out = gfx9 ? "s[8:9]" : "s8", in = gfx9 ? "s[10:11]" : "s10";
  std::vector<std::string> lines;
  std::vector<Row> cases;
  for (const Row &r : rows) {
    llvm::SmallVector<StringRef, 2> alternatives;
    StringRef(r.names).split(alternatives, '|');
    for (StringRef name : alternatives)
      if (has(name)) {
        lines.push_back(name.str() + " v8, " + out + ", v12, v16" +
                        (r.in ? ", " + in : ""));
        cases.push_back(r);
      }
  }
  ASSERT_GE(lines.size(), 6u);
  size_t sums = lines.size();
  bool co = has("v_mad_co_u64_u32");
  for (bool sign : {false, true})
    lines.push_back(std::string(co ? "v_mad_co_" : "v_mad_") +
                    (sign ? "i64_i32" : "u64_u32") + " v[8:9], " + out +
                    ", v12, v16, v[20:21]");
  Bench b(GetParam(), !gfx9, lines);
  std::mt19937 random(2);
  for (unsigned k = 0; k < lines.size(); ++k)
    for (unsigned round = 0; round < 20; ++round) {
      SCOPED_TRACE(lines[k]);
      b.fill(k * 50 + round);
      u64 exec = 0xffffffffffff8fffull & b.wave.fullMask, carries = 0;
      b.wave.setExec(exec);
      u64 carry = u64(random()) << 32 | random();
      b.wave.s[10] = u32(carry);
      b.wave.s[11] = u32(carry >> 32);
      if (round % 2)
        for (unsigned l = 0; l < b.lanes; ++l)
          b.row(16)[l] = b.row(12)[l] + random() % 3 - 1;
      std::vector<u64> want(b.lanes);
      for (unsigned l = 0; l < b.lanes; ++l) {
        u32 x = b.row(12)[l], y = b.row(16)[l];
        bool over;
        if (k >= sums) {
          u64 add = u64(b.row(21)[l]) << 32 | b.row(20)[l];
          if (k == sums) {
            unsigned __int128 r = (unsigned __int128)x * y + add;
            want[l] = u64(r);
            over = u64(r >> 64);
          } else {
            __int128 r = __int128(i64(i32(x)) * i32(y)) + i64(add);
            want[l] = u64(r);
            over = r != i64(r);
          }
        } else {
          if (cases[k].kind == 2)
            std::swap(x, y);
          i64 c = cases[k].in ? carry >> l & 1 : 0;
          i64 r = cases[k].kind ? i64(x) - y - c : i64(x) + y + c;
          want[l] = u32(r);
          over = r < 0 || r > i64(UINT32_MAX);
        }
        carries |= u64(over && (exec >> l & 1)) << l;
      }
      b.run(k);
      for (unsigned l = 0; l < b.lanes; ++l)
        if (exec >> l & 1)
          ASSERT_EQ(b.row(8)[l] | (k >= sums ? u64(b.row(9)[l]) << 32 : 0),
                    want[l]);
      ASSERT_EQ(b.wave.s[8] | (gfx9 ? u64(b.wave.s[9]) << 32 : 0), carries);
    }
}

/// Rounding and denormals as MODE says, by LLVM's own arithmetic.
TEST_P(Packed, Modes) {
  using llvm::APFloat;
  struct Case {
    const char *line;
    char type;
    int op; ///< 0 add, 1 multiply, 2 fma
  };
  std::vector<Case> cases = {
      {"v_add_f32 v8, v12, v16", 'f', 0},
      {"v_mul_f32 v8, v12, v16", 'f', 1},
      {"v_fma_f32 v8, v12, v16, v20", 'f', 2},
      {"v_add_f64 v[8:9], v[12:13], v[16:17]", 'd', 0},
      {"v_mul_f64 v[8:9], v[12:13], v[16:17]", 'd', 1},
      {"v_fma_f64 v[8:9], v[12:13], v[16:17], v[20:21]", 'd', 2},
      {"v_pk_add_f16 v8, v12, v16", 'h', 0},
      {"v_pk_mul_f16 v8, v12, v16", 'h', 1},
      {"v_pk_fma_f16 v8, v12, v16, v20", 'h', 2}};
  std::vector<std::string> lines;
  for (const Case &c : cases)
    lines.push_back(c.line);
  Bench b(GetParam(), !gfx9, lines);
  std::mt19937 random(8);
  static const APFloat::roundingMode rounds[] = {
      APFloat::rmNearestTiesToEven, APFloat::rmTowardPositive,
      APFloat::rmTowardNegative, APFloat::rmTowardZero};
  uint32_t host = greta::sim::currentControl();
  for (unsigned mode = 0; mode < 16; ++mode)
    for (unsigned k = 0; k < lines.size(); ++k) {
      const Case &c = cases[k];
      unsigned round = mode & 3, denormals = mode >> 2;
      unsigned other = ~denormals & 3;
      // The other types' field says something else.
      b.wave.mode =
          c.type == 'f'
              ? round | (3 - round) << 2 | denormals << 4 | other << 6
              : (3 - round) | round << 2 | other << 4 | denormals << 6;
      b.wave.applyMode();
      const llvm::fltSemantics &s = c.type == 'f'   ? APFloat::IEEEsingle()
                                    : c.type == 'd' ? APFloat::IEEEdouble()
                                                    : APFloat::IEEEhalf();
      unsigned width = APFloat::getSizeInBits(s);
      int low = APFloat::semanticsMinExponent(s);
      std::vector<std::array<u64, 3>> in(b.lanes);
      for (unsigned l = 0; l < b.lanes; ++l)
        for (unsigned k2 = 0; k2 < 3; ++k2) {
          // Around one, or where products and sums become denormal.
          double v = (int(random() % 4001) - 2000) * .001;
          int e = random() % 2 ? 0 : c.op == 0 || k2 == 2 ? low : low / 2;
          APFloat f(v);
          bool loses;
          f.convert(s, rounds[0], &loses);
          f = scalbn(f, e, rounds[0]);
          in[l][k2] = f.bitcastToAPInt().getZExtValue();
          b.row(12 + 4 * k2)[l] =
              u32(in[l][k2]) | (width == 16 ? u32(in[l][k2]) << 16 : 0);
          b.row(13 + 4 * k2)[l] = u32(in[l][k2] >> 32);
        }
      b.run(k);
      greta::sim::setControl(host);
      for (unsigned l = 0; l < b.lanes; ++l) {
        auto number = [&](u64 x) {
          APFloat f(s, llvm::APInt(width, x));
          if (!(denormals & 1) && f.isDenormal())
            f = APFloat::getZero(s, f.isNegative());
          return f;
        };
        APFloat r = number(in[l][0]);
        if (c.op == 0)
          r.add(number(in[l][1]), rounds[round]);
        else if (c.op == 1)
          r.multiply(number(in[l][1]), rounds[round]);
        else
          r.fusedMultiplyAdd(number(in[l][1]), number(in[l][2]), rounds[round]);
        if (!(denormals & 2) && r.isDenormal())
          r = APFloat::getZero(s, r.isNegative());
        u64 got = b.row(8)[l] | (width == 64 ? u64(b.row(9)[l]) << 32 : 0);
        if (width == 16)
          got &= 0xffff;
        u64 want = r.bitcastToAPInt().getZExtValue();
        ASSERT_EQ(got, want) << lines[k] << " round " << round << " denormals "
                             << denormals << std::hex << ": " << in[l][0]
                             << ", " << in[l][1] << ", " << in[l][2];
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Chips, Packed, testing::ValuesIn(everyChip()),
                         [](const auto &info) { return info.param; });

} // namespace
