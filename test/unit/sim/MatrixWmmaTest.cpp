//===- MatrixWmmaTest.cpp - WMMA against plain matrix products ------------===//
#include "Checks/Checks.h"
#include "MatrixBench.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace greta::sim::test;
using greta::sim::MaxLanes;

namespace {

enum Acc { AccF32, AccI32, AccF16, AccBF16 };

struct Case {
  const char *name;
  unsigned k;
  const Format *a, *b;
  Acc acc;
  bool gfx11, gfx12;
};
const Case cases[] = {
    {"v_wmma_f32_16x16x16_f16", 16, &F16, &F16, AccF32, true, true},
    {"v_wmma_f32_16x16x16_bf16", 16, &BF16, &BF16, AccF32, true, true},
    {"v_wmma_f16_16x16x16_f16", 16, &F16, &F16, AccF16, true, true},
    {"v_wmma_bf16_16x16x16_bf16", 16, &BF16, &BF16, AccBF16, true, true},
    {"v_wmma_i32_16x16x16_iu8", 16, &S8, &S8, AccI32, true, true},
    {"v_wmma_i32_16x16x16_iu4", 16, &S4, &S4, AccI32, true, true},
    {"v_wmma_i32_16x16x32_iu4", 32, &S4, &S4, AccI32, false, true},
    {"v_wmma_f32_16x16x16_fp8_fp8", 16, &E4M3, &E4M3, AccF32, false, true},
    {"v_wmma_f32_16x16x16_fp8_bf8", 16, &E4M3, &E5M2, AccF32, false, true},
    {"v_wmma_f32_16x16x16_bf8_fp8", 16, &E5M2, &E4M3, AccF32, false, true},
    {"v_wmma_f32_16x16x16_bf8_bf8", 16, &E5M2, &E5M2, AccF32, false, true},
};

constexpr unsigned RegA = 64, RegB = 80, RegC = 96, RegD = 112;

/// One instruction on one kind of chip: where its elements are.
struct Layout {
  const Case &x;
  bool gfx12, wave32;
  unsigned half = 0; ///< gfx11, 16-bit accumulators: op_sel[2]

  unsigned lanes() const { return wave32 ? 32 : 64; }
  /// Elements of A or B a lane holds.
  unsigned items() const {
    if (!gfx12)
      return x.k;
    return std::max(x.k * 16 / lanes(), 32 / x.a->bits);
  }
  unsigned inputRegs() const { return items() * x.a->bits / 32; }
  /// fn(lane, e, row, k) for every input element; lanes that do not count are
  /// left out.
  template <class Fn> void eachInput(Fn fn) const {
    for (unsigned l = 0; l < lanes(); ++l)
      for (unsigned e = 0; e < items(); ++e) {
        unsigned g = l / 16, k;
        if (!gfx12)
          k = e;
        else if (x.a->bits == 16)
          k = wave32 ? 8 * (e / 4) + 4 * g + e % 4 : 4 * g + e;
        else if (wave32)
          k = x.k / 2 * g + e;
        else if (x.a->bits == 4 && x.k == 16) {
          if (g > 1)
            continue;
          k = 8 * g + e;
        } else
          k = x.k / 2 * (g % 2) + x.k / 4 * (g / 2) + e;
        fn(l, e, l % 16, k);
      }
  }
  bool half16() const { return x.acc >= AccF16; }
  unsigned accRegs() const {
    return (wave32 ? 8u : 4u) / (half16() && gfx12 ? 2 : 1);
  }
  /// fn(register, shift, lane, row, column) for every accumulator element.
  template <class Fn> void eachOutput(Fn fn) const {
    for (unsigned r = 0; r < (wave32 ? 8u : 4u); ++r)
      for (unsigned l = 0; l < lanes(); ++l) {
        unsigned row;
        if (!gfx12)
          row = (wave32 ? 2 : 4) * r + l / 16;
        else if (wave32)
          row = 8 * (l / 16) + r;
        else
          row = 8 * (l / 16 % 2) + 4 * (l / 32) + r;
        bool packed = half16() && gfx12;
        fn(packed ? r / 2 : r, half16() ? 16 * (packed ? r % 2 : half) : 0, l,
           row, l % 16);
      }
  }
};

struct Data {
  std::vector<double> a, b, c;
  unsigned k;
  explicit Data(unsigned k) : a(16 * k), b(16 * k), c(256), k(k) {}
  double &A(unsigned i, unsigned q) { return a[i * k + q]; }
  double &B(unsigned q, unsigned j) { return b[q * 16 + j]; }
  double &C(unsigned i, unsigned j) { return c[i * 16 + j]; }
};

const Format &accFormat(Acc a) {
  return a == AccF16 ? F16 : a == AccBF16 ? BF16 : F32;
}

class Runner {
public:
  Bench &bench;
  Layout s;
  const Format *fa, *fb;

  void storeInputs(Data &t) {
    s.eachInput([&](unsigned l, unsigned e, unsigned row, unsigned k) {
      bench.put(RegA, l, e, fa->bits, fa->code(t.A(row, k)));
      bench.put(RegB, l, e, fb->bits, fb->code(t.B(k, row)));
    });
  }
  void storeC(Data &t) {
    s.eachOutput(
        [&](unsigned r, unsigned shift, unsigned l, unsigned i, unsigned j) {
          uint32_t &w = bench.row(RegC + r)[l];
          if (!s.half16())
            w = s.x.acc == AccI32 ? uint32_t(int32_t(t.C(i, j)))
                                  : F32.code(t.C(i, j));
          else
            w = (w & ~(0xffffu << shift)) | accFormat(s.x.acc).code(t.C(i, j))
                                                << shift;
        });
  }
  double result(unsigned r, unsigned shift, unsigned l) {
    uint32_t w = bench.row(RegD + r)[l];
    if (s.x.acc == AccI32)
      return int32_t(w);
    const Format &f = accFormat(s.x.acc);
    return f.value(s.half16() ? w >> shift & 0xffff : w);
  }
  /// Runs line k and compares with c + a*b; everything else must stay.
  void check(unsigned line, Data &t, double slack, bool clamp = false) {
    std::vector<uint32_t> want = bench.registers;
    bench.run(line);
    unsigned wrong = 0;
    s.eachOutput(
        [&](unsigned r, unsigned shift, unsigned l, unsigned i, unsigned j) {
          double x = t.C(i, j), size = std::fabs(x);
          for (unsigned k = 0; k < t.k; ++k) {
            x += t.A(i, k) * t.B(k, j);
            size += std::fabs(t.A(i, k) * t.B(k, j));
          }
          if (clamp)
            x = std::max(-2147483648., std::min(2147483647., x));
          else if (s.x.acc == AccI32)
            x = int32_t(uint32_t(int64_t(x)));
          double got = result(r, shift, l);
          if (!(std::fabs(got - x) <= slack * size) && !wrong++)
            ADD_FAILURE() << "(" << i << ", " << j << "): got " << got
                          << ", want " << x;
          uint32_t mask = s.half16() ? 0xffffu << shift : ~0u;
          uint32_t &w = want[(RegD + r) * MaxLanes + l];
          w = (w & ~mask) | (bench.row(RegD + r)[l] & mask);
        });
    EXPECT_EQ(wrong, 0u);
    EXPECT_TRUE(want == bench.registers) << "other registers changed";
  }
  double slack() const {
    switch (s.x.acc) {
    case AccI32:
      return 0;
    case AccF32:
      return 16 * 0x1p-24;
    case AccF16:
      return 0x1p-11 + 16 * 0x1p-24;
    case AccBF16:
      return 0x1p-8 + 16 * 0x1p-24;
    }
    return 0;
  }
};

void randomInputs(Data &t, const Runner &r, std::mt19937 &rng) {
  auto draw = [&](const Format *f) {
    if (f->bits > 8)
      return double(int(rng() % 31) - 15) / 4;
    uint32_t c;
    do
      c = rng() & ((1u << f->bits) - 1);
    while (!f->finite(c));
    return f->value(c) + 0.; // never the negative zero
  };
  for (double &v : t.a)
    v = draw(r.fa);
  for (double &v : t.b)
    v = draw(r.fb);
  for (double &v : t.c)
    v = r.s.x.acc == AccI32 ? double(int(rng() % 20001) - 10000)
                            : double(int(rng() % 129) - 64) / 8;
}

void oneHot(Runner &r, unsigned line, std::mt19937 &rng) {
  for (bool side : {false, true}) {
    Data t(r.s.x.k);
    randomInputs(t, r, rng);
    std::fill(t.c.begin(), t.c.end(), 0.);
    std::fill((side ? t.b : t.a).begin(), (side ? t.b : t.a).end(), 0.);
    r.storeInputs(t);
    r.storeC(t);
    const Format &f = side ? *r.fb : *r.fa;
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned k = 0; k < t.k; ++k) {
        auto set = [&](uint32_t code) {
          r.s.eachInput([&](unsigned l, unsigned e, unsigned i, unsigned q) {
            if (i == row && q == k)
              r.bench.put(side ? RegB : RegA, l, e, f.bits, code);
          });
        };
        set(f.code(1));
        r.bench.run(line);
        set(0);
        unsigned wrong = 0;
        r.s.eachOutput([&](unsigned reg, unsigned shift, unsigned l, unsigned i,
                           unsigned j) {
          double want = 0;
          if (!side && i == row)
            want = t.B(k, j);
          if (side && j == row)
            want = t.A(i, k);
          wrong += r.result(reg, shift, l) !=
                   accFormat(r.s.x.acc).value(
                       r.s.half16() ? accFormat(r.s.x.acc).code(want)
                                    : F32.code(want));
        });
        ASSERT_EQ(wrong, 0u)
            << (side ? "B" : "A") << " one at " << row << ", k " << k;
      }
  }
}

std::string lineOf(const Layout &s, const std::string &c, const char *suffix) {
  return std::string(s.x.name) + " " + registers(RegD, s.accRegs()) + ", " +
         registers(RegA, s.inputRegs()) + ", " +
         registers(RegB, s.inputRegs()) + ", " + c + suffix;
}

struct ChipCase {
  const char *name;
  bool gfx12;
};
const ChipCase chipCases[] = {{"gfx1100", false},
                              {"gfx1103", false},
                              {"gfx1151", false},
                              {"gfx1200", true},
                              {"gfx1201", true}};

void runChip(const ChipCase &chip, bool wave32) {
  std::vector<Layout> layouts;
  std::vector<std::string> lines;
  for (const Case &x : cases) {
    if (!(chip.gfx12 ? x.gfx12 : x.gfx11))
      continue;
    for (unsigned half = 0; half < (chip.gfx12 || x.acc < AccF16 ? 1 : 2);
         ++half) {
      Layout s{x, chip.gfx12, wave32, half};
      layouts.push_back(s);
      std::string signs = x.acc == AccI32 ? " neg_lo:[1,1,0]" : "";
      if (half)
        signs = " op_sel:[0,0,1]";
      lines.push_back(lineOf(s, registers(RegC, s.accRegs()), signs.c_str()));
      lines.push_back(lineOf(s, x.acc == AccI32 ? "7" : "2.0", signs.c_str()));
    }
  }
  Bench bench(chip.name, wave32, lines);
  ASSERT_FALSE(testing::Test::HasFailure());
  std::mt19937 rng(11);
  for (unsigned n = 0; n < layouts.size(); ++n) {
    SCOPED_TRACE(lines[2 * n] + " on " + chip.name +
                 (wave32 ? " wave32" : " wave64"));
    bench.fill(n);
    Runner r{bench, layouts[n], layouts[n].x.a, layouts[n].x.b};
    oneHot(r, 2 * n, rng);
    for (unsigned round = 0; round < 4; ++round) {
      Data t(r.s.x.k);
      randomInputs(t, r, rng);
      r.storeInputs(t);
      r.storeC(t);
      r.check(2 * n, t, r.slack());
      std::fill(t.c.begin(), t.c.end(), r.s.x.acc == AccI32 ? 7. : 2.);
      r.check(2 * n + 1, t, r.slack());
    }
    if (testing::Test::HasFailure())
      return;
  }
}

TEST(MatrixWmma, Wave32) {
  for (const ChipCase &c : chipCases)
    runChip(c, true);
}
TEST(MatrixWmma, Wave64) {
  for (const ChipCase &c : chipCases)
    runChip(c, false);
}

/// neg_lo and neg_hi: signs of even and odd elements, of C, and |C|.
TEST(MatrixWmma, FloatModifiers) {
  for (bool gfx12 : {false, true}) {
    Layout s{cases[0], gfx12, true};
    std::vector<std::string> lines;
    for (unsigned lo = 0; lo < 8; ++lo)
      for (unsigned hi = 0; hi < 8; ++hi) {
        auto list = [](unsigned m) {
          return "[" + std::to_string(m & 1) + "," +
                 std::to_string(m >> 1 & 1) + "," + std::to_string(m >> 2) +
                 "]";
        };
        lines.push_back(lineOf(s, registers(RegC, 8), "") +
                        " neg_lo:" + list(lo) + " neg_hi:" + list(hi));
      }
    Bench bench(gfx12 ? "gfx1200" : "gfx1100", true, lines);
    std::mt19937 rng(3);
    for (unsigned n = 0; n < 64; ++n) {
      SCOPED_TRACE(lines[n]);
      unsigned lo = n / 8, hi = n % 8;
      Runner r{bench, s, &F16, &F16};
      Data t(16);
      randomInputs(t, r, rng);
      bench.fill(n);
      r.storeInputs(t);
      r.storeC(t);
      // Even and odd is the position in the register, which is k's parity.
      for (unsigned i = 0; i < 16; ++i)
        for (unsigned k = 0; k < 16; ++k) {
          unsigned m = k % 2 ? hi : lo;
          t.A(i, k) *= m & 1 ? -1 : 1;
          t.B(k, i) *= m & 2 ? -1 : 1;
        }
      for (double &c : t.c) {
        c = hi & 4 ? std::fabs(c) : c;
        c = lo & 4 ? -c : c;
      }
      r.check(n, t, r.slack());
      if (HasFailure())
        return;
    }
  }
}

TEST(MatrixWmma, IntegerSignsAndClamp) {
  for (bool gfx12 : {false, true})
    for (const Case *x : {&cases[4], &cases[5]}) {
      Layout s{*x, gfx12, true};
      std::vector<std::string> lines;
      for (const char *signs :
           {"", " neg_lo:[1,0,0]", " neg_lo:[0,1,0]", " neg_lo:[1,1,0]"})
        for (const char *clamp : {"", " clamp"})
          lines.push_back(lineOf(s, registers(RegC, 8),
                                 (std::string(signs) + clamp).c_str()));
      Bench bench(gfx12 ? "gfx1201" : "gfx1102", true, lines);
      std::mt19937 rng(5);
      bool byte = x->a == &S8;
      for (unsigned n = 0; n < lines.size(); ++n) {
        SCOPED_TRACE(lines[n]);
        const Format *unsignedFormat = byte ? &U8 : &U4;
        Runner r{bench, s, n / 2 & 1 ? x->a : unsignedFormat,
                 n / 4 ? x->b : unsignedFormat};
        Data t(16);
        randomInputs(t, r, rng);
        for (unsigned i = 0; i < 16; ++i) // near both ends of i32
          for (unsigned j = 0; j < 16; ++j)
            t.C(i, j) = j % 2 ? 2147483647. - i : -2147483648. + i;
        bench.fill(n);
        r.storeInputs(t);
        r.storeC(t);
        r.check(n, t, 0, n % 2);
        if (HasFailure())
          return;
      }
    }
}

/// gfx11 reads A and B from all groups of 16 lanes; a checked launch wants them
/// equal.
TEST(MatrixWmma, UnreplicatedOperandIsReported) {
  Layout s{cases[0], false, true};
  Bench bench("gfx1100", true, {lineOf(s, registers(RegC, 8), "")});
  greta::sim::Checker checker(bench.group, 1);
  bench.wave.checker = &checker;
  bench.fill(1);
  for (unsigned r = RegA; r < RegC; ++r)
    std::copy_n(bench.row(r), 16, bench.row(r) + 16);
  EXPECT_EQ(bench.fault(0), "");
  bench.row(RegB)[31] ^= 1;
  std::string report = bench.fault(0);
  EXPECT_NE(report.find("do not repeat lanes 0 to 15 of the B operand"),
            std::string::npos)
      << report;
}

} // namespace
