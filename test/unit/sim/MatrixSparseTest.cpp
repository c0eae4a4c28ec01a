//===- MatrixSparseTest.cpp - SMFMAC and SWMMAC against dense products ----===//
#include "MatrixBench.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>

using namespace greta::sim::test;
using greta::sim::MaxLanes;

namespace {

struct Case {
  const char *name;
  unsigned m, k;
  const Format *a, *b;
  char acc; ///< f, i, h (f16) or y (bf16)
  std::vector<const char *> chips;
};

const std::vector<Case> &cases() {
  static const std::vector<const char *> cdna{"gfx942", "gfx950"},
      cdna4{"gfx950"}, rdna4{"gfx1200", "gfx1201"};
  static const std::vector<Case> c = {
      {"v_smfmac_f32_16x16x32_f16", 16, 32, &F16, &F16, 'f', cdna},
      {"v_smfmac_f32_32x32x16_f16", 32, 16, &F16, &F16, 'f', cdna},
      {"v_smfmac_f32_16x16x32_bf16", 16, 32, &BF16, &BF16, 'f', cdna},
      {"v_smfmac_f32_32x32x16_bf16", 32, 16, &BF16, &BF16, 'f', cdna},
      {"v_smfmac_i32_16x16x64_i8", 16, 64, &S8, &S8, 'i', cdna},
      {"v_smfmac_i32_32x32x32_i8", 32, 32, &S8, &S8, 'i', cdna},
      {"v_smfmac_f32_16x16x64_fp8_fp8", 16, 64, &E4M3, &E4M3, 'f', cdna},
      {"v_smfmac_f32_16x16x64_fp8_bf8", 16, 64, &E4M3, &E5M2, 'f', cdna},
      {"v_smfmac_f32_16x16x64_bf8_fp8", 16, 64, &E5M2, &E4M3, 'f', cdna},
      {"v_smfmac_f32_16x16x64_bf8_bf8", 16, 64, &E5M2, &E5M2, 'f', cdna},
      {"v_smfmac_f32_32x32x32_fp8_fp8", 32, 32, &E4M3, &E4M3, 'f', cdna},
      {"v_smfmac_f32_32x32x32_fp8_bf8", 32, 32, &E4M3, &E5M2, 'f', cdna},
      {"v_smfmac_f32_32x32x32_bf8_fp8", 32, 32, &E5M2, &E4M3, 'f', cdna},
      {"v_smfmac_f32_32x32x32_bf8_bf8", 32, 32, &E5M2, &E5M2, 'f', cdna},
      {"v_smfmac_f32_16x16x64_f16", 16, 64, &F16, &F16, 'f', cdna4},
      {"v_smfmac_f32_32x32x32_f16", 32, 32, &F16, &F16, 'f', cdna4},
      {"v_smfmac_f32_16x16x64_bf16", 16, 64, &BF16, &BF16, 'f', cdna4},
      {"v_smfmac_f32_32x32x32_bf16", 32, 32, &BF16, &BF16, 'f', cdna4},
      {"v_smfmac_i32_16x16x128_i8", 16, 128, &S8, &S8, 'i', cdna4},
      {"v_smfmac_i32_32x32x64_i8", 32, 64, &S8, &S8, 'i', cdna4},
      {"v_smfmac_f32_16x16x128_fp8_fp8", 16, 128, &E4M3, &E4M3, 'f', cdna4},
      {"v_smfmac_f32_16x16x128_fp8_bf8", 16, 128, &E4M3, &E5M2, 'f', cdna4},
      {"v_smfmac_f32_16x16x128_bf8_fp8", 16, 128, &E5M2, &E4M3, 'f', cdna4},
      {"v_smfmac_f32_16x16x128_bf8_bf8", 16, 128, &E5M2, &E5M2, 'f', cdna4},
      {"v_smfmac_f32_32x32x64_fp8_fp8", 32, 64, &E4M3, &E4M3, 'f', cdna4},
      {"v_smfmac_f32_32x32x64_fp8_bf8", 32, 64, &E4M3, &E5M2, 'f', cdna4},
      {"v_smfmac_f32_32x32x64_bf8_fp8", 32, 64, &E5M2, &E4M3, 'f', cdna4},
      {"v_smfmac_f32_32x32x64_bf8_bf8", 32, 64, &E5M2, &E5M2, 'f', cdna4},
      {"v_swmmac_f32_16x16x32_f16", 16, 32, &F16, &F16, 'f', rdna4},
      {"v_swmmac_f32_16x16x32_bf16", 16, 32, &BF16, &BF16, 'f', rdna4},
      {"v_swmmac_f16_16x16x32_f16", 16, 32, &F16, &F16, 'h', rdna4},
      {"v_swmmac_bf16_16x16x32_bf16", 16, 32, &BF16, &BF16, 'y', rdna4},
      {"v_swmmac_i32_16x16x32_iu8", 16, 32, &S8, &S8, 'i', rdna4},
      {"v_swmmac_i32_16x16x32_iu4", 16, 32, &S4, &S4, 'i', rdna4},
      {"v_swmmac_i32_16x16x64_iu4", 16, 64, &S4, &S4, 'i', rdna4},
      {"v_swmmac_f32_16x16x32_fp8_fp8", 16, 32, &E4M3, &E4M3, 'f', rdna4},
      {"v_swmmac_f32_16x16x32_fp8_bf8", 16, 32, &E4M3, &E5M2, 'f', rdna4},
      {"v_swmmac_f32_16x16x32_bf8_fp8", 16, 32, &E5M2, &E4M3, 'f', rdna4},
      {"v_swmmac_f32_16x16x32_bf8_bf8", 16, 32, &E5M2, &E5M2, 'f', rdna4},
  };
  return c;
}

constexpr unsigned RegD = 16, RegA = 64, RegB = 80, RegIndex = 100;

struct Layout {
  const Case &x;
  bool rdna, wave32;
  unsigned lanes() const { return wave32 ? 32 : 64; }
  unsigned itemsB() const { return x.k * x.m / lanes(); }
  /// A fills whole registers: iu4 of K=32 in wave64 uses half the lanes.
  unsigned keptA() const { return std::max(itemsB() / 2, 32 / x.a->bits); }
  bool lowLanesA() const { return keptA() > itemsB() / 2; }
  unsigned sets() const { return 16 / keptA(); }

  unsigned kOfB(unsigned lane, unsigned e) const {
    unsigned g = lane / x.m;
    if (!rdna)
      return itemsB() * g + e;
    if (x.b->bits == 16)
      return wave32 ? 16 * (e / 8) + 8 * g + e % 8 : 8 * g + e;
    return wave32 ? x.k / 2 * g + e : x.k / 2 * (g % 2) + x.k / 4 * (g / 2) + e;
  }
  /// First k of the four that A's element e of a lane is chosen from.
  unsigned kOfA(unsigned lane, unsigned e) const {
    unsigned g = lane / x.m, quad = 4 * (e / 2);
    if (!rdna)
      return itemsB() * g + quad;
    if (x.a->bits == 16)
      return wave32 ? 16 * (e / 4) + 8 * g + quad % 8 : 8 * g + quad;
    if (wave32 || lowLanesA())
      return x.k / 2 * g + quad;
    return x.k / 2 * (g % 2) + x.k / 4 * (g / 2) + quad;
  }
  unsigned accBits() const { return x.acc == 'h' || x.acc == 'y' ? 16 : 32; }
  unsigned accRegs() const { return x.m * x.m / lanes() * accBits() / 32; }
  /// fn(register, shift, lane, row, column)
  template <class Fn> void eachOutput(Fn fn) const {
    for (unsigned r = 0; r < x.m * x.m / lanes(); ++r)
      for (unsigned l = 0; l < lanes(); ++l) {
        unsigned row;
        if (!rdna)
          row =
              x.m == 32 ? 8 * (r / 4) + 4 * (l / 32) + r % 4 : 4 * (l / 16) + r;
        else
          row = wave32 ? 8 * (l / 16) + r : 8 * (l / 16 % 2) + 4 * (l / 32) + r;
        bool half = accBits() == 16;
        fn(half ? r / 2 : r, half ? r % 2 * 16 : 0, l, row, l % x.m);
      }
  }
};

void check(Bench &bench, unsigned line, const Layout &s, const Format *fa,
           const Format *fb, unsigned set, std::mt19937 &rng) {
  const Case &x = s.x;
  std::vector<double> a(x.m * x.k), b(x.k * x.m), c(x.m * x.m);
  auto draw = [&](const Format *f) {
    if (f->bits > 8)
      return double(int(rng() % 31) - 15) / 4;
    uint32_t code;
    do
      code = rng() & ((1u << f->bits) - 1);
    while (!f->finite(code));
    return f->value(code) + 0.;
  };
  bench.fill(rng());
  for (unsigned l = 0; l < s.lanes(); ++l) {
    for (unsigned e = 0; e < s.itemsB(); ++e) {
      double v = b[s.kOfB(l, e) * x.m + l % x.m] = draw(fb);
      bench.put(RegB, l, e, fb->bits, fb->code(v));
    }
    if (s.lowLanesA() && l >= s.lanes() / 2)
      continue;
    for (unsigned e = 0; e < s.keptA(); e += 2) {
      unsigned first = rng() % 3, second = first + 1 + rng() % (3 - first);
      for (unsigned which : {first, second}) {
        unsigned at = e + (which == second);
        double v = a[l % x.m * x.k + s.kOfA(l, e) + which] = draw(fa);
        bench.put(RegA, l, at, fa->bits, fa->code(v));
        bench.put(RegIndex, l, set * s.keptA() + at, 2, which);
      }
    }
  }
  const Format &acc = x.acc == 'h' ? F16 : x.acc == 'y' ? BF16 : F32;
  s.eachOutput(
      [&](unsigned r, unsigned shift, unsigned l, unsigned i, unsigned j) {
        double v = c[i * x.m + j] =
            double(int(rng() % 129) - 64) / (x.acc == 'i' ? 1 : 8);
        uint32_t code = x.acc == 'i' ? uint32_t(int32_t(v)) : acc.code(v);
        bench.put(RegD + r, l, shift / 16, s.accBits(), code);
      });
  bench.run(line);
  double slack = x.acc == 'i'   ? 0
                 : x.acc == 'f' ? x.k * 0x1p-24
                 : x.acc == 'h' ? 0x1.01p-11
                                : 0x1.01p-8;
  unsigned wrong = 0;
  s.eachOutput(
      [&](unsigned r, unsigned shift, unsigned l, unsigned i, unsigned j) {
        double want = c[i * x.m + j], size = std::fabs(want);
        for (unsigned k = 0; k < x.k; ++k) {
          double p = a[i * x.k + k] * b[k * x.m + j];
          want += p;
          size += std::fabs(p);
        }
        uint32_t w = bench.row(RegD + r)[l];
        double got = x.acc == 'i'        ? int32_t(w)
                     : s.accBits() == 16 ? acc.value(w >> shift & 0xffff)
                                         : acc.value(w);
        if (!(std::fabs(got - want) <= slack * size) && !wrong++)
          ADD_FAILURE() << "(" << i << ", " << j << "): got " << got
                        << ", want " << want;
      });
}

void runChip(const char *chip, bool rdna, bool wave32) {
  std::vector<std::string> lines;
  std::vector<std::pair<Layout, unsigned>> runs;
  for (const Case &x : cases()) {
    if (std::none_of(x.chips.begin(), x.chips.end(),
                     [&](const char *c) { return std::string(c) == chip; }))
      continue;
    Layout s{x, rdna, wave32};
    for (unsigned set = 0; set < s.sets(); ++set) {
      std::string line = std::string(x.name) + " " +
                         registers(RegD, s.accRegs()) + ", " +
                         registers(RegA, s.keptA() * x.a->bits / 32) + ", " +
                         registers(RegB, s.itemsB() * x.b->bits / 32) + ", " +
                         registers(RegIndex, 1);
      std::string choice;
      if (set)
        choice = (rdna ? " index_key:" : " abid:") + std::to_string(set);
      std::string signs = rdna && x.acc == 'i' ? " neg_lo:[1,1,0]" : "";
      lines.push_back(line + choice + signs);
      runs.push_back({s, set});
      if (rdna || !set)
        continue;
      lines.push_back(line + " cbsz:1" + choice); // then ABID is ignored
      runs.push_back({s, 0});
    }
  }
  Bench bench(chip, wave32, lines);
  ASSERT_FALSE(testing::Test::HasFailure());
  std::mt19937 rng(17);
  bool fnuz = std::string(chip) == "gfx942";
  auto own = [&](const Format *f) {
    return !fnuz ? f : f == &E4M3 ? &E4M3Z : f == &E5M2 ? &E5M2Z : f;
  };
  for (unsigned n = 0; n < lines.size(); ++n) {
    SCOPED_TRACE(lines[n] + " on " + chip);
    const Layout &s = runs[n].first;
    for (unsigned round = 0; round < 8; ++round)
      check(bench, n, s, own(s.x.a), own(s.x.b), runs[n].second, rng);
    if (testing::Test::HasFailure())
      return;
  }
}

TEST(MatrixSparse, Gfx942) { runChip("gfx942", false, false); }
TEST(MatrixSparse, Gfx950) { runChip("gfx950", false, false); }
TEST(MatrixSparse, Gfx12Wave32) {
  runChip("gfx1200", true, true);
  runChip("gfx1201", true, true);
}
TEST(MatrixSparse, Gfx12Wave64) { runChip("gfx1200", true, false); }

} // namespace
