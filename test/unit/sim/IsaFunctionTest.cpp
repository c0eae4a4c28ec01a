//===- IsaFunctionTest.cpp - vector instructions with tests of their own --===//
//
// Sines, the digits of 2/pi, division as compilers write it, classes of
// floats, constants behind the instruction, truth tables: what one row of a
// table cannot say.
//
//===----------------------------------------------------------------------===//
#include "EveryChip.h"
#include "IsaRows.h"
#include "MatrixBench.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>

using namespace greta::sim::test;

namespace {

using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

class Function : public testing::TestWithParam<const char *> {
protected:
  bool gfx9 = GetParam()[3] == '9';
  std::mt19937 random{11};
  /// Returns the lines that this chip has.
  std::vector<std::string> here(const std::vector<std::string> &lines) {
    return assembling(GetParam(), !gfx9, lines);
  }
  u64 draw64() { return u64(random()) << 32 | random(); }
};

u64 wide(Bench &b, unsigned row, unsigned lane) {
  return u64(b.row(row + 1)[lane]) << 32 | b.row(row)[lane];
}
void setWide(Bench &b, unsigned row, unsigned lane, u64 x) {
  b.row(row)[lane] = u32(x);
  b.row(row + 1)[lane] = u32(x >> 32);
}

/// In turns; the fraction of a turn is exact.
TEST_P(Function, SinesAndCosines) {
  Bench b(GetParam(), !gfx9,
          {"v_sin_f32 v8, v12", "v_cos_f32 v8, v12", "v_sin_f16 v8, v12",
           "v_cos_f16 v8, v12"});
  static const float specials[] = {0.f,   -0.f,   .25f,     -.5f,      .75f,
                                   256.f, -256.f, INFINITY, -INFINITY, NAN};
  for (unsigned k = 0; k < 4; ++k)
    for (unsigned round = 0; round < 20; ++round) {
      bool half = k >= 2, cosine = k % 2;
      float largest = half ? 65504.f : 0x1.fffffep127f;
      std::vector<double> in(b.lanes);
      for (unsigned l = 0; l < b.lanes; ++l) {
        float x = l < std::size(specials) ? specials[l]
                  : l < 12                ? l % 2 ? largest : -largest
                                          : (int(random() % 200001) - 100000) *
                                                (round % 2 ? .00256f : .00001f);
        b.row(12)[l] = u32(half ? halfBits(x) : bits(x));
        in[l] = half ? H(b.row(12)[l]) : x;
      }
      b.run(k);
      for (unsigned l = 0; l < b.lanes; ++l) {
        double turn = in[l] - std::nearbyint(in[l]), angle = 2 * M_PI * turn;
        double want = cosine ? std::cos(angle) : std::sin(angle),
               got = half ? H(b.row(8)[l]) : F(b.row(8)[l]);
        if (want != want) {
          EXPECT_TRUE(got != got) << k << ": " << in[l] << " gives " << got;
          continue;
        }
        double ulp = half ? 0x1p-11 : 0x1p-24;
        ASSERT_NEAR(got, want, 2 * ulp * std::fabs(want) + 1e-9)
            << k << ": " << in[l];
        if (in[l] == 0 && !cosine)
          ASSERT_EQ(std::signbit(got), std::signbit(in[l]));
      }
    }
}

/// Fixed-point numbers: one word before the point, then fraction words.
struct Fixed {
  std::vector<u32> words = std::vector<u32>(42);
  explicit Fixed(u32 whole) { words[0] = whole; }
  Fixed &operator*=(u32 n) {
    u64 carry = 0;
    for (size_t k = words.size(); k--; carry >>= 32)
      words[k] = u32(carry += u64(words[k]) * n);
    return *this;
  }
  Fixed &operator/=(u32 n) {
    u64 rest = 0;
    for (u32 &w : words) {
      rest = rest << 32 | w;
      w = u32(rest / n);
      rest %= n;
    }
    return *this;
  }
  Fixed &add(const Fixed &x, bool negative) {
    int64_t carry = 0;
    for (size_t k = words.size(); k--; carry >>= 32) {
      carry += int64_t(words[k]) +
               (negative ? -int64_t(x.words[k]) : int64_t(x.words[k]));
      words[k] = u32(carry);
    }
    return *this;
  }
  bool operator>=(const Fixed &x) const { return words >= x.words; }
};
/// The arc tangent of 1/n by its series.
Fixed arcTangent(u32 n) {
  Fixed power(1), sum(0);
  power /= n;
  for (u32 k = 1; k < 1400; k += 2, power /= n, power /= n) {
    Fixed term = power;
    sum.add(term /= k, k % 4 == 3);
  }
  return sum;
}
/// The first 1201 bits of 2/pi, which is all of them that the hardware has.
std::vector<bool> twoOverPi() {
  Fixed pi = arcTangent(5); // Machin: pi/4 = 4 atan 1/5 - atan 1/239
  pi *= 4;
  pi.add(arcTangent(239), true);
  pi *= 4;
  std::vector<bool> digits;
  for (Fixed rest(2); digits.size() < 1201;) {
    rest *= 2;
    digits.push_back(rest >= pi);
    if (digits.back())
      rest.add(pi, true);
  }
  return digits;
}

TEST_P(Function, DigitsOfTwoOverPi) {
  Bench b(GetParam(), !gfx9, {"v_trig_preop_f64 v[8:9], v[12:13], v16"});
  static const std::vector<bool> digits = twoOverPi();
  for (unsigned round = 0; round < 60; ++round) {
    for (unsigned l = 0; l < b.lanes; ++l) {
      setWide(b, 12, l, draw64());
      b.row(16)[l] = random();
    }
    b.run(0);
    for (unsigned l = 0; l < b.lanes; ++l) {
      int exponent = int(wide(b, 12, l) >> 52 & 2047);
      int first = int(b.row(16)[l] % 32) * 53 + std::max(0, exponent - 1077);
      double want = 0;
      for (int k = first; k < first + 53; ++k)
        want = 2 * want + (k < 1201 && digits[size_t(k)]);
      want = std::ldexp(want, -53 - first + (exponent >= 1968 ? 128 : 0));
      ASSERT_EQ(D(wide(b, 8, l)), want)
          << "exponent " << exponent << ", segment " << b.row(16)[l] % 32;
    }
  }
}

/// Numbers of all exponents, the special ones often.
u64 anyFloat(std::mt19937 &random, bool isDouble) {
  static const double specials[] = {0., -0., INFINITY, -INFINITY, NAN, 1.};
  double s = specials[random() % std::size(specials)];
  u64 x = u64(random()) << 32 | random();
  switch (random() % 6) {
  case 0:
    return isDouble ? bits(s) : bits(float(s));
  case 1: // denormal
    return isDouble ? x & 0x800fffffffffffff : x & 0x807fffff;
  default:
    return isDouble ? x : u32(x);
  }
}

/// The sequences compilers emit for a correctly rounded quotient: v12 by v16.
TEST_P(Function, Division) {
  std::string flag = gfx9 ? "s[8:9], " : "s8, ",
              vcc = gfx9 ? "vcc, " : "vcc_lo, ";
  std::vector<std::string>
      single = {"v_div_scale_f32 v20, " + flag + "v16, v16, v12",
                "v_div_scale_f32 v24, " + vcc + "v12, v16, v12",
                "v_rcp_f32 v28, v20",
                "v_fma_f32 v32, -v20, v28, 1.0",
                "v_fma_f32 v28, v32, v28, v28",
                "v_mul_f32 v32, v24, v28",
                "v_fma_f32 v36, -v20, v32, v24",
                "v_fma_f32 v32, v36, v28, v32",
                "v_fma_f32 v36, -v20, v32, v24",
                "v_div_fmas_f32 v36, v36, v28, v32",
                "v_div_fixup_f32 v8, v36, v16, v12"},
      twice = {
          "v_div_scale_f64 v[20:21], " + flag + "v[16:17], v[16:17], v[12:13]",
          "v_rcp_f64 v[28:29], v[20:21]",
          "v_fma_f64 v[32:33], -v[20:21], v[28:29], 1.0",
          "v_fma_f64 v[28:29], v[28:29], v[32:33], v[28:29]",
          "v_fma_f64 v[32:33], -v[20:21], v[28:29], 1.0",
          "v_div_scale_f64 v[24:25], " + vcc + "v[12:13], v[16:17], v[12:13]",
          "v_fma_f64 v[28:29], v[28:29], v[32:33], v[28:29]",
          "v_mul_f64 v[32:33], v[24:25], v[28:29]",
          "v_fma_f64 v[36:37], -v[20:21], v[32:33], v[24:25]",
          "v_div_fmas_f64 v[36:37], v[36:37], v[28:29], v[32:33]",
          "v_div_fixup_f64 v[8:9], v[36:37], v[16:17], v[12:13]"};
  for (bool isDouble : {false, true}) {
    Bench b(GetParam(), !gfx9, isDouble ? twice : single);
    for (unsigned round = 0; round < 60; ++round) {
      for (unsigned l = 0; l < b.lanes; ++l)
        for (unsigned r : {12u, 16u})
          setWide(b, r, l, anyFloat(random, isDouble));
      for (unsigned k = 0; k < single.size(); ++k)
        b.run(k);
      for (unsigned l = 0; l < b.lanes; ++l) {
        double x = isDouble ? D(wide(b, 12, l)) : F(b.row(12)[l]),
               y = isDouble ? D(wide(b, 16, l)) : F(b.row(16)[l]),
               want = isDouble ? x / y : double(float(x / y)),
               got = isDouble ? D(wide(b, 8, l)) : F(b.row(8)[l]);
        // v_div_fmas scales what it has rounded already: denormal quotients are
        // rounded twice.
        double smallest = isDouble ? 0x1p-1022 : 0x1p-126,
               unit = isDouble ? 0x1p-1074 : 0x1p-149;
        bool near = std::fabs(want) < smallest && std::fabs(got - want) <= unit;
        ASSERT_TRUE(
            (got != got && want != want) ||
            ((got == want || near) && std::signbit(got) == std::signbit(want)))
            << (isDouble ? "f64: " : "f32: ") << x << " / " << y << " gives "
            << got << ", not " << want;
      }
    }
  }
}

/// Signs, infinities, zeros and NaN of a quotient of halves: v12 by v16, the
/// quotient's magnitude in v20.
TEST_P(Function, DivisionOfHalves) {
  std::vector<std::string> lines =
      here({"v_div_fixup_f16 v8, v20, v16, v12",
            "v_div_fixup_legacy_f16 v8, v20, v16, v12",
            "v_div_fixup_f16 v8.l, v20.l, v16.l, v12.l"});
  ASSERT_FALSE(lines.empty());
  Bench b(GetParam(), !gfx9, lines);
  static const u16 specials[] = {0, 0x8000, 0x7c00, 0xfc00, 0x7e00, 0x3c00};
  for (unsigned k = 0; k < lines.size(); ++k)
    for (unsigned round = 0; round < 40; ++round) {
      for (unsigned l = 0; l < b.lanes; ++l) {
        for (unsigned r : {12u, 16u})
          b.row(r)[l] = random() % 3 ? random() & 0xffff
                                     : specials[random() % std::size(specials)];
        double q = H(b.row(12)[l]) / H(b.row(16)[l]);
        // The instruction has to know special quotients.
        b.row(20)[l] = q != q || q == 0 || std::isinf(q)
                           ? random() & 0xffff
                           : u32(halfBits(q)) ^ (random() % 2 ? 0x8000 : 0);
      }
      b.run(k);
      for (unsigned l = 0; l < b.lanes; ++l) {
        u64 want = halfBits(H(b.row(12)[l]) / H(b.row(16)[l])),
            got = b.row(8)[l] & 0xffff;
        ASSERT_TRUE(got == want || (H(got) != H(got) && H(want) != H(want)))
            << lines[k] << std::hex << ": " << b.row(12)[l] << " / "
            << b.row(16)[l] << " gives " << got << ", not " << want;
      }
    }
}

/// Bit of a number's class: signalling and quiet NaN, then from -infinity over
/// the zeros to +infinity.
unsigned classOf(u64 x, unsigned exponentBits, unsigned mantissaBits) {
  u64 mantissa = x & ((u64(1) << mantissaBits) - 1);
  u64 largest = (u64(1) << exponentBits) - 1;
  u64 exponent = x >> mantissaBits & largest;
  bool negative = x >> (exponentBits + mantissaBits) & 1;
  if (exponent == largest && mantissa)
    return mantissa >> (mantissaBits - 1) & 1;
  unsigned distance = exponent == largest ? 3 : exponent ? 2 : mantissa ? 1 : 0;
  return negative ? 5 - distance : 6 + distance;
}

TEST_P(Function, Classes) {
  struct Type {
    const char *name;
    unsigned exponent, mantissa;
  };
  const Type types[] = {{"f16", 5, 10}, {"f32", 8, 23}, {"f64", 11, 52}};
  for (const Type &t : types)
    for (bool execute : {false, true}) {
      bool isWide = t.mantissa == 52;
      std::string to = execute && !gfx9 ? " " : gfx9 ? " s[8:9], " : " s8, ";
      std::string name =
          std::string(execute ? "v_cmpx_class_" : "v_cmp_class_") + t.name + to;
      std::vector<std::string> lines =
          here({name + registers(12, isWide ? 2 : 1) + ", v16",
                name + "v12.l, v16.l"});
      ASSERT_FALSE(lines.empty());
      Bench b(GetParam(), !gfx9, {lines.front()});
      for (unsigned round = 0; round < 60; ++round) {
        u64 exec = draw64() & b.wave.fullMask, want = 0;
        b.wave.setExec(exec);
        for (unsigned l = 0; l < b.lanes; ++l) {
          u64 x = draw64(), mantissa = (u64(1) << t.mantissa) - 1;
          u64 exponent = ((u64(1) << t.exponent) - 1) << t.mantissa;
          x = random() % 2 ? x : random() % 2 ? x | exponent : x & ~exponent;
          x = random() % 3 ? x : x & ~mantissa;
          setWide(b, 12, l, x);
          b.row(16)[l] = random();
          unsigned c = classOf(x, t.exponent, t.mantissa);
          want |= u64(b.row(16)[l] >> c & 1) << l;
        }
        b.wave.s[8] = b.wave.s[9] = 0x5a5a5a5a;
        b.run(0);
        u64 got = b.wave.s[8] | (gfx9 ? u64(b.wave.s[9]) << 32 : 0);
        if (execute)
          ASSERT_EQ(b.wave.exec, want & exec) << lines[0];
        if (!execute || gfx9)
          ASSERT_EQ(got, want & exec) << lines[0];
      }
    }
}

/// A constant behind the instruction as factor (mk) or summand (ak).
TEST_P(Function, ConstantsBehind) {
  std::vector<std::string> lines = here(
      {"v_fmamk_f32 v8, v12, 0x3fc45678, v16",
       "v_fmaak_f32 v8, v12, v16, 0x3fc45678",
       "v_madmk_f32 v8, v12, 0x3fc45678, v16",
       "v_madak_f32 v8, v12, v16, 0x3fc45678",
       "v_fmamk_f16 v8, v12, 0x3e45, v16", "v_fmaak_f16 v8, v12, v16, 0x3e45",
       "v_fmamk_f16 v8.l, v12.l, 0x3e45, v16.l",
       "v_fmaak_f16 v8.l, v12.l, v16.l, 0x3e45",
       "v_madmk_f16 v8, v12, 0x3e45, v16", "v_madak_f16 v8, v12, v16, 0x3e45"});
  ASSERT_GE(lines.size(), 4u);
  Bench b(GetParam(), !gfx9, lines);
  for (unsigned k = 0; k < lines.size(); ++k) {
    auto says = [&](const char *part) {
      return lines[k].find(part) != std::string::npos;
    };
    bool half = says("f16"), factor = says("mk_"), fused = says("v_fma");
    for (unsigned l = 0; l < b.lanes; ++l)
      for (unsigned r : {12u, 16u}) {
        double x = (int(random() % 2001) - 1000) * .37;
        b.row(r)[l] = u32(half ? halfBits(x) : bits(float(x)));
      }
    b.run(k);
    for (unsigned l = 0; l < b.lanes; ++l) {
      auto value = [&](unsigned r) {
        return half ? H(b.row(r)[l]) : double(F(b.row(r)[l]));
      };
      double c = half ? H(0x3e45) : double(F(0x3fc45678)), x = value(12),
             y = factor ? c : value(16), z = factor ? value(16) : c;
      // Exact in double, but for the sum of floats.
      double product = fused  ? x * y
                       : half ? H(halfBits(x * y))
                              : double(float(x * y));
      u64 want = half    ? halfBits(product + z)
                 : fused ? bits(std::fma(float(x), float(y), float(z)))
                         : bits(float(product) + float(z));
      ASSERT_EQ(b.row(8)[l] & (half ? 0xffff : ~0u), want) << lines[k];
    }
  }
}

/// Bit 4a + 2b + c of the table is the result of bits a, b and c.
TEST_P(Function, TruthTables) {
  std::vector<std::string> lines;
  for (unsigned table = 0; table < 256; table += 5)
    for (const char *type : {"b32", "b16"})
      lines.push_back(std::string("v_bitop3_") + type +
                      " v8, v12, v16, v20 bitop3:" + std::to_string(table));
  if (here({lines[2]}).empty())
    GTEST_SKIP() << "no such form: bitop3";
  Bench b(GetParam(), false, lines);
  for (unsigned k = 0; k < lines.size(); ++k) {
    b.fill(k);
    b.run(k);
    unsigned table = k / 2 * 5, width = k % 2 ? 16 : 32;
    for (unsigned l = 0; l < b.lanes; ++l)
      for (unsigned bit = 0; bit < width; ++bit) {
        unsigned entry = (b.row(12)[l] >> bit & 1) * 4 +
                         (b.row(16)[l] >> bit & 1) * 2 +
                         (b.row(20)[l] >> bit & 1);
        ASSERT_EQ(b.row(8)[l] >> bit & 1, table >> entry & 1) << lines[k];
      }
  }
}

/// Halves of registers exchanged and chosen by a lane mask.
TEST_P(Function, HalvesOfRegisters) {
  std::vector<std::string> lines = {"v_swap_b16 v8.l, v12.h",
                                    "v_cndmask_b16 v8.h, v12.l, v16.h, s10"};
  if (here(lines).size() < lines.size())
    GTEST_SKIP() << "no such form: halves of registers";
  Bench b(GetParam(), true, lines);
  b.fill(3);
  std::vector<u32> x(b.row(8), b.row(9)), y(b.row(12), b.row(13));
  b.run(0);
  for (unsigned l = 0; l < b.lanes; ++l) {
    ASSERT_EQ(b.row(8)[l], (x[l] & 0xffff0000) | y[l] >> 16);
    ASSERT_EQ(b.row(12)[l], (y[l] & 0xffff) | x[l] << 16);
  }
  b.fill(4);
  b.wave.s[10] = 0x3c5a9618;
  x.assign(b.row(8), b.row(9));
  b.run(1);
  for (unsigned l = 0; l < b.lanes; ++l) {
    u32 part = b.wave.s[10] >> l & 1 ? b.row(16)[l] >> 16 : b.row(12)[l];
    ASSERT_EQ(b.row(8)[l], (x[l] & 0xffff) | part << 16);
  }
}

/// Names have the halves of vector registers; op_sel has those of scalar ones.
TEST_P(Function, HalvesOfScalarRegisters) {
  std::vector<std::string> lines;
  for (unsigned part : {0, 1})
    for (const char *op : {"v_add_nc_u16_e64", "v_mul_f16_e64"})
      lines.push_back(std::string(op) + " v8.h, s10, v12.l op_sel:[" +
                      std::to_string(part) + ",0,1]");
  if (here(lines).size() < lines.size())
    GTEST_SKIP() << "no such form: halves of registers";
  Bench b(GetParam(), true, lines);
  for (unsigned k = 0; k < lines.size(); ++k) {
    b.fill(k);
    b.wave.s[10] = 0x4200c100; // 3.0 and -2.5
    u32 part = k < 2 ? 0xc100 : 0x4200;
    for (unsigned l = 0; l < b.lanes; ++l)
      b.row(12)[l] = halfBits(float(l)) | 0x5a5a0000;
    std::vector<u32> x(b.row(8), b.row(9));
    b.run(k);
    for (unsigned l = 0; l < b.lanes; ++l) {
      u32 want = k % 2 ? halfBits(float(l) * (k < 2 ? -2.5f : 3.f))
                       : (halfBits(float(l)) + part) & 0xffff;
      ASSERT_EQ(b.row(8)[l], (x[l] & 0xffff) | want << 16) << lines[k];
    }
  }
}

/// Between the two register files.
TEST_P(Function, Accumulators) {
  if (!gfx9)
    GTEST_SKIP() << "no such form: accumulator registers";
  Bench b(GetParam(), false,
          {"v_accvgpr_write_b32 a8, v12", "v_accvgpr_mov_b32 a9, a8",
           "v_accvgpr_read_b32 v9, a9", "v_accvgpr_write_b32 a10, 7"});
  b.fill(9);
  b.wave.setExec(0xfffffffffffffff0);
  u32 *to[] = {b.row(256 + 8), b.row(256 + 9), b.row(9), b.row(256 + 10)};
  for (unsigned k = 0; k < 4; ++k) {
    std::vector<u32> old(to[k], to[k] + b.lanes);
    b.run(k);
    for (unsigned l = 0; l < b.lanes; ++l)
      ASSERT_EQ(to[k][l], l < 4 ? old[l] : k < 3 ? b.row(12)[l] : 7) << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, Function, testing::ValuesIn(everyChip()),
                         [](const auto &info) { return info.param; });

} // namespace
