//===- MatrixFp8Test.cpp - conversions of 8, 6 and 4-bit floats -----------===//
//
// Values come from the formats' definitions (MatrixBench.h); narrowing is
// checked against a search for the nearest code.
//
//===----------------------------------------------------------------------===//
#include "Isa/Float.h"
#include "MatrixBench.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace greta::sim::test;
using greta::sim::MaxLanes;

namespace {

uint32_t magnitudes(const Format &f) { return 1u << (f.bits - 1); }
uint32_t largest(const Format &f) {
  uint32_t c = magnitudes(f) - 1;
  while (!f.finite(c))
    --c;
  return c;
}

/// The code nearest to x, ties to the even one. `up`: instead the code above
/// |x| when the random fraction in [0, 256) carries.
uint32_t nearest(const Format &f, double x, bool saturate, int random = -1) {
  uint32_t last = largest(f), sign = std::signbit(x) ? magnitudes(f) : 0;
  uint32_t infinity = f.kind == 'x'   ? last
                      : f.kind == 'z' ? magnitudes(f)
                      : f.kind == 'n' ? magnitudes(f) - 1
                                      : last + 1;
  if (std::isnan(x))
    return f.kind == 'x'   ? sign | last
           : f.kind == 'z' ? magnitudes(f)
                           : sign | (magnitudes(f) - 1);
  double a = std::fabs(x), step = f.value(last) - f.value(last - 1);
  auto value = [&](uint32_t c) {
    return c > last ? f.value(last) + step : f.value(c);
  };
  uint32_t c = 0;
  while (c < last && f.value(c + 1) <= a)
    ++c;
  if (a >= value(last + 1)) {
    c = last + 1;
  } else {
    double part = (a - value(c)) / (value(c + 1) - value(c));
    if (random >= 0)
      c += part * 256 + random >= 256;
    else if (part > .5 || (part == .5 && c % 2))
      ++c;
  }
  if (c > last) {
    if (saturate || f.kind == 'x')
      return sign | last;
    return f.kind == 'z' ? infinity : sign | infinity;
  }
  return c == 0 && f.kind == 'z' ? 0 : sign | c;
}

/// Inputs around every code: the value, the middle to the next, and neighbours.
std::vector<float> interesting(const Format &f) {
  std::vector<float> v = {0.f,    -0.f,    INFINITY, -INFINITY, NAN,
                          1e-45f, -1e-40f, 3e38f,    -3e38f};
  for (uint32_t c = 0; c <= largest(f); ++c) {
    double a = f.value(c),
           b = c < largest(f) ? f.value(c + 1) : 2 * a - f.value(c - 1);
    for (double x : {a, (a + b) / 2, b})
      for (float y : {float(x), std::nextafter(float(x), 0.f),
                      std::nextafter(float(x), 1e30f)}) {
        v.push_back(y);
        v.push_back(-y);
      }
  }
  std::mt19937 rng(4);
  for (unsigned n = 0; n < 4000; ++n)
    v.push_back(
        std::ldexp(float(int(rng() % 20001) - 10000), int(rng() % 40) - 30));
  while (v.size() % 64)
    v.push_back(1);
  return v;
}

struct Chip {
  const char *name;
  bool wave32, fnuz;
  const Format *fp8, *bf8;
};
const Chip chips[] = {{"gfx942", false, true, &E4M3Z, &E5M2Z},
                      {"gfx950", false, false, &E4M3, &E5M2},
                      {"gfx1200", true, false, &E4M3, &E5M2},
                      {"gfx1201", false, false, &E4M3, &E5M2}};
bool rdna(const Chip &c) {
  return std::string(c.name) >= "gfx11" && c.name[3] == '1';
}

/// The same number, and for zeros the same sign.
bool same(float got, double want) {
  if (std::isnan(want))
    return std::isnan(got);
  return got == want && std::signbit(got) == std::signbit(want);
}

TEST(MatrixFp8, WidenEveryCode) {
  for (const Chip &chip : chips) {
    std::vector<std::string> lines;
    for (const char *t : {"fp8", "bf8"}) {
      for (unsigned byte = 0; byte < 4; ++byte) {
        std::string n = std::to_string(byte),
                    op = std::string("v_cvt_f32_") + t;
        lines.push_back(rdna(chip) ? op + "_e64 v8, v4 byte_sel:" + n
                                   : op + "_sdwa v8, v4 src0_sel:BYTE_" + n);
      }
      for (unsigned half = 0; half < 2; ++half) {
        std::string n = std::to_string(half),
                    op = std::string("v_cvt_pk_f32_") + t;
        lines.push_back(rdna(chip)
                            ? op + "_e64 v[8:9], v4 op_sel:[" + n + ",0]"
                            : op + "_sdwa v[8:9], v4 src0_sel:WORD_" + n);
      }
      lines.push_back(std::string("v_cvt_f32_") + t + "_e32 v8, v4");
    }
    Bench bench(chip.name, chip.wave32, lines);
    ASSERT_FALSE(HasFailure());
    for (unsigned n = 0; n < lines.size(); ++n) {
      SCOPED_TRACE(lines[n] + " on " + chip.name);
      const Format &f = n < 7 ? *chip.fp8 : *chip.bf8;
      unsigned form = n % 7, at = form < 4   ? form
                                  : form < 6 ? 2 * (form - 4)
                                             : 0;
      bool pair = form == 4 || form == 5;
      for (uint32_t first = 0; first < 256; first += bench.lanes) {
        bench.fill(n);
        for (unsigned l = 0; l < bench.lanes; ++l) {
          bench.put(4, l, at, 8, first + l);
          if (pair)
            bench.put(4, l, at + 1, 8, 255 - first - l);
        }
        bench.run(n);
        for (unsigned l = 0; l < bench.lanes; ++l) {
          ASSERT_TRUE(same(bench.f32(8, l), f.value(first + l)))
              << "code " << first + l << ": " << bench.f32(8, l);
          if (pair)
            ASSERT_TRUE(same(bench.f32(9, l), f.value(255 - first - l)));
        }
      }
    }
  }
}

TEST(MatrixFp8, NarrowNearestAndSaturate) {
  for (const Chip &chip : chips) {
    std::vector<std::string> lines;
    for (const char *t : {"fp8", "bf8"})
      for (const char *sel : {"", " op_sel:[0,0,1]"})
        lines.push_back(std::string("v_cvt_pk_") + t + "_f32 v8, v4, -v5" +
                        sel);
    Bench bench(chip.name, chip.wave32, lines);
    ASSERT_FALSE(HasFailure());
    for (unsigned n = 0; n < lines.size(); ++n)
      for (bool saturate : {false, true}) {
        SCOPED_TRACE(lines[n] + " on " + chip.name +
                     (saturate ? ", FP16_OVFL" : ""));
        bench.wave.mode = saturate ? 1u << 23 : 0;
        const Format &f = n < 2 ? *chip.fp8 : *chip.bf8;
        std::vector<float> in = interesting(f);
        for (unsigned at = 0; at < in.size(); at += bench.lanes) {
          bench.fill(at);
          for (unsigned l = 0; l < bench.lanes; ++l) {
            bench.row(4)[l] = llvm::bit_cast<uint32_t>(in[at + l]);
            bench.row(5)[l] =
                llvm::bit_cast<uint32_t>(in[in.size() - 1 - at - l]);
          }
          std::vector<uint32_t> old(bench.row(8), bench.row(8) + 64);
          bench.wave.setExec(bench.wave.fullMask & ~2ull); // lane 1 stays
          bench.run(n);
          for (unsigned l = 0; l < bench.lanes; ++l) {
            uint32_t want = nearest(f, in[at + l], saturate) |
                            nearest(f, -in[in.size() - 1 - at - l], saturate)
                                << 8;
            want = n % 2 ? (old[l] & 0xffff) | want << 16
                         : (old[l] & 0xffff0000) | want;
            ASSERT_EQ(bench.row(8)[l], l == 1 ? old[l] : want)
                << "from " << in[at + l] << " and "
                << -in[in.size() - 1 - at - l];
          }
        }
      }
  }
}

TEST(MatrixFp8, NarrowStochastically) {
  for (const Chip &chip : chips) {
    std::vector<std::string> lines;
    for (const char *t : {"fp8", "bf8"})
      for (unsigned byte = 0; byte < 4; ++byte)
        lines.push_back(std::string("v_cvt_sr_") + t + "_f32 v8, v4, v5" +
                        (rdna(chip)
                             ? " byte_sel:" + std::to_string(byte)
                             : " op_sel:[0,0," + std::to_string(byte & 1) +
                                   "," + std::to_string(byte >> 1) + "]"));
    Bench bench(chip.name, chip.wave32, lines);
    ASSERT_FALSE(HasFailure());
    std::mt19937 rng(6);
    for (unsigned n = 0; n < lines.size(); ++n) {
      SCOPED_TRACE(lines[n] + " on " + chip.name);
      const Format &f = n < 4 ? *chip.fp8 : *chip.bf8;
      for (unsigned round = 0; round < 64; ++round) {
        bench.fill(round);
        std::vector<uint32_t> want, old(bench.row(8), bench.row(8) + 64);
        for (unsigned l = 0; l < bench.lanes; ++l) {
          uint32_t c = rng() % largest(f);
          double a = f.value(c),
                 x = a + (f.value(c + 1) - a) * (rng() % 256) / 256;
          uint32_t random = rng();
          bench.row(4)[l] = llvm::bit_cast<uint32_t>(float(rng() % 2 ? -x : x));
          bench.row(5)[l] = random;
          want.push_back(nearest(f, bench.f32(4, l), false, int(random >> 24)));
        }
        bench.run(n);
        for (unsigned l = 0; l < bench.lanes; ++l) {
          uint32_t mask = 0xffu << (8 * (n % 4));
          ASSERT_EQ(bench.row(8)[l],
                    (old[l] & ~mask) | want[l] << (8 * (n % 4)))
              << "from " << bench.f32(4, l) << ", random " << bench.row(5)[l];
        }
      }
    }
  }
}

/// gfx950's conversions with a scale.
struct ScaledCase {
  std::string name;
  const Format *small, *wide;
  unsigned count;
  bool narrow, stochastic, interleaved;
};
std::vector<ScaledCase> scaledCases() {
  struct Named {
    const char *name;
    const Format *f;
  };
  const Named wide[] = {{"f32", &F32}, {"f16", &F16}, {"bf16", &BF16}};
  std::vector<ScaledCase> c;
  for (Named w : wide) {
    for (Named s : {Named{"fp8", &E4M3}, Named{"bf8", &E5M2}}) {
      std::string wn = w.name, sn = s.name;
      c.push_back({"pk_" + sn + "_" + wn, s.f, w.f, 2, true, false, false});
      c.push_back({"sr_" + sn + "_" + wn, s.f, w.f, 1, true, true, false});
      c.push_back({"pk_" + wn + "_" + sn, s.f, w.f, 2, false, false, false});
      if (w.f != &BF16)
        c.push_back({wn + "_" + sn, s.f, w.f, 1, false, false, false});
    }
    std::string wn = w.name;
    c.push_back({"pk_fp4_" + wn, &E2M1, w.f, 2, true, false, false});
    c.push_back({"sr_pk_fp4_" + wn, &E2M1, w.f, 2, true, true, false});
    c.push_back({"pk_" + wn + "_fp4", &E2M1, w.f, 2, false, false, false});
    for (Named s : {Named{"fp6", &E2M3}, Named{"bf6", &E3M2}}) {
      std::string sn = s.name;
      bool f32 = w.f == &F32;
      c.push_back({(f32 ? "2xpk16_" : "pk32_") + sn + "_" + wn, s.f, w.f, 32,
                   true, false, f32});
      c.push_back(
          {"sr_pk32_" + sn + "_" + wn, s.f, w.f, 32, true, true, false});
      c.push_back({"pk32_" + wn + "_" + sn, s.f, w.f, 32, false, false, false});
    }
  }
  return c;
}

TEST(MatrixFp8, Scaled) {
  constexpr unsigned Dst = 8, Src = 64, Src1 = 80, Seed = 4, Scale = 5;
  std::vector<ScaledCase> cases = scaledCases();
  struct Run {
    const ScaledCase *c;
    unsigned select; ///< byte or half of the small operand
    unsigned high;   ///< half of a 16-bit result
  };
  std::vector<std::string> lines;
  std::vector<Run> runs;
  for (const ScaledCase &c : cases) {
    unsigned smallBits = c.count * c.small->bits;
    unsigned wideRegs = (c.count * c.wide->bits + 31) / 32;
    unsigned smallRegs = (smallBits + 31) / 32;
    bool two = c.narrow && c.count == 2 && c.wide == &F32 && !c.stochastic;
    for (unsigned sel = 0; sel < (smallBits == 8    ? 4u
                                  : smallBits == 16 ? 2u
                                                    : 1u);
         ++sel) {
      unsigned high =
          !c.narrow && c.count == 1 && c.wide->bits == 16 ? sel & 1 : 0;
      std::string s = "v_cvt_scalef32_" + c.name + " ";
      if (c.narrow) {
        s += registers(Dst, smallRegs) + ", ";
        if (c.interleaved)
          s += registers(Src, 16) + ", " + registers(Src1, 16);
        else if (two)
          s += registers(Src, 1) + ", " + registers(Src + 1, 1);
        else
          s += registers(Src, wideRegs);
        if (c.stochastic)
          s += ", " + registers(Seed, 1);
      } else {
        s += registers(Dst, wideRegs) + ", " + registers(Src, smallRegs);
      }
      s += ", " + registers(Scale, 1);
      std::string lo = std::to_string(sel & 1), hi = std::to_string(sel >> 1);
      if (smallBits == 8 && c.narrow && sel)
        s += " op_sel:[0,0," + lo + "," + hi + "]";
      else if (smallBits == 16 && c.narrow && sel)
        s += two ? " op_sel:[0,0,0,1]" : " op_sel:[0,0,1]";
      else if (!c.narrow && sel)
        s += " op_sel:[" + lo + "," + hi + "," + std::to_string(high) + "]";
      lines.push_back(s);
      runs.push_back({&c, sel, high});
    }
  }
  Bench bench("gfx950", false, lines);
  ASSERT_FALSE(HasFailure());
  std::mt19937 rng(8);
  for (unsigned n = 0; n < lines.size(); ++n) {
    SCOPED_TRACE(lines[n]);
    const ScaledCase &c = *runs[n].c;
    unsigned at = runs[n].select; // in units of the operand's width
    for (unsigned round = 0; round < 16; ++round) {
      bench.fill(round);
      std::vector<uint32_t> want = bench.registers;
      auto expect = [&](unsigned lane, unsigned e, unsigned bits, uint32_t x) {
        putBits(want.data(), Dst, lane, e, bits, x);
      };
      for (unsigned l = 0; l < 64; ++l) {
        int scale = int(rng() % 7) - 3;
        // The mantissa of the scale does not count.
        bench.row(Scale)[l] = uint32_t(127 + scale) << 23 | (rng() & 0x7fffff);
        uint32_t seed = bench.row(Seed)[l];
        for (unsigned e = 0; e < c.count; ++e) {
          unsigned place = at * c.count + e;
          if (!c.narrow) {
            uint32_t code = rng() & ((1u << c.small->bits) - 1);
            while (!c.small->finite(code) || code == magnitudes(*c.small))
              code = rng() & ((1u << c.small->bits) - 1);
            bench.put(Src, l, place, c.small->bits, code);
            // bf8 may leave f16's range; stay inside.
            double x = std::ldexp(c.small->value(code), scale);
            if (c.wide == &F16 && std::fabs(x) > 60000) {
              bench.put(Src, l, place, c.small->bits, 0);
              x = 0;
            }
            expect(l, c.count == 1 ? runs[n].high : e, c.wide->bits,
                   c.wide->bits == 16 && x != 0 && std::fabs(x) < 0x1p-14 &&
                           c.wide == &F16
                       ? uint32_t(greta::sim::floatToHalf(float(x)))
                       : c.wide->code(x));
            continue;
          }
          // Eight bits of fraction between two neighbouring codes.
          uint32_t k = rng() % largest(*c.small);
          double a = c.small->value(k), step = c.small->value(k + 1) - a,
                 x = a + step * (rng() % 8) / 8;
          x = std::ldexp(rng() % 2 ? -x : x, scale) + 0.; // no -0
          if (c.wide == &F16 &&
              (std::fabs(x) > 60000 || std::fabs(x) < 0x1p-10))
            x = 1;
          bool second = (c.interleaved ||
                         (c.count == 2 && c.wide == &F32 && !c.stochastic)) &&
                        e % 2;
          unsigned reg = c.interleaved ? (second ? Src1 : Src)
                         : second      ? Src + 1
                                       : Src;
          unsigned index = c.interleaved ? e / 2 : second ? 0 : e;
          bench.put(reg, l, index, c.wide->bits, c.wide->code(x));
          expect(l, place, c.small->bits,
                 nearest(*c.small, std::ldexp(x, -scale), false,
                         c.stochastic ? int(seed >> 24) : -1));
        }
      }
      bench.run(n);
      unsigned regs = c.narrow ? (c.count * c.small->bits + 31) / 32
                               : (c.count * c.wide->bits + 31) / 32;
      for (unsigned r = Dst; r < Dst + regs; ++r)
        for (unsigned l = 0; l < 64; ++l)
          ASSERT_EQ(bench.row(r)[l], want[r * MaxLanes + l])
              << "register " << r << ", lane " << l;
    }
  }
}

TEST(MatrixFp8, StochasticHalvesAndPrng) {
  std::vector<std::string> lines = {
      "v_cvt_sr_f16_f32 v8, v4, v5",
      "v_cvt_sr_f16_f32 v8, v4, v5 op_sel:[0,0,1]",
      "v_cvt_sr_bf16_f32 v8, v4, v5",
      "v_cvt_sr_bf16_f32 v8, v4, v5 op_sel:[0,0,1]", "v_prng_b32 v8, v4"};
  Bench bench("gfx950", false, lines);
  ASSERT_FALSE(HasFailure());
  std::mt19937 rng(2);
  for (unsigned n = 0; n < 4; ++n) {
    SCOPED_TRACE(lines[n]);
    const Format &f = n < 2 ? F16 : BF16;
    bench.fill(n);
    std::vector<uint32_t> old(bench.row(8), bench.row(8) + 64), want;
    for (unsigned l = 0; l < 64; ++l) {
      uint32_t code = rng() % largest(f), random = bench.row(5)[l];
      unsigned part = rng() % 256;
      double a = f.value(code), x = a + (f.value(code + 1) - a) * part / 256;
      if (l < 4) { // specials
        static const double special[] = {INFINITY, 3e38, 0, 1};
        x = special[l];
        bool overflows = l == 0 || (l == 1 && n < 2);
        code = overflows ? largest(f) + 1 : l == 1 ? 0x7e00 : f.code(x);
        x = overflows ? x : f.value(code);
        part = 0;
      }
      bench.row(4)[l] = llvm::bit_cast<uint32_t>(float(x));
      want.push_back(code + (part + (random >> 24) >= 256));
    }
    bench.run(n);
    for (unsigned l = 0; l < 64; ++l)
      ASSERT_EQ(bench.row(8)[l], n % 2 ? (old[l] & 0xffff) | want[l] << 16
                                       : (old[l] & 0xffff0000) | want[l])
          << "lane " << l << " from " << bench.f32(4, l);
  }
  bench.row(4)[0] = 0x80000001;
  bench.row(4)[1] = 0x40000001;
  bench.run(4);
  EXPECT_EQ(bench.row(8)[0], 2u ^ 197u);
  EXPECT_EQ(bench.row(8)[1], 0x80000002u);
}

} // namespace
