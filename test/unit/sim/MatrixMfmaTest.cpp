//===- MatrixMfmaTest.cpp - MFMA and SMFMAC against plain matrix products -===//
#include "MatrixBench.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace greta::sim::test;
using greta::sim::MaxLanes;
namespace row = greta::sim::row;

namespace {

enum { C90 = 1, C942 = 2, C950 = 4 };
struct ChipCase {
  const char *name;
  unsigned bit;
};
const ChipCase chipCases[] = {
    {"gfx90a", C90}, {"gfx942", C942}, {"gfx950", C950}};

struct Case {
  const char *name;
  unsigned m, k, blocks;
  const Format *a, *b;
  unsigned chips;
  bool integer = false, sparse = false, halves = false;
  const char *suffix = "";
  bool scaled = false;
};

/// fp8 stands for the chip's own kind of it.
const Format *on(const Format *f, unsigned chip) {
  if (chip == C950)
    return f;
  return f == &E4M3 ? &E4M3Z : f == &E5M2 ? &E5M2Z : f;
}

std::vector<Case> denseCases() {
  const unsigned old = C90, late = C942 | C950;
  std::vector<Case> c = {
      {"v_mfma_f32_32x32x1f32", 32, 1, 2, &F32, &F32, old},
      {"v_mfma_f32_16x16x1f32", 16, 1, 4, &F32, &F32, old},
      {"v_mfma_f32_4x4x1f32", 4, 1, 16, &F32, &F32, old},
      {"v_mfma_f32_32x32x2f32", 32, 2, 1, &F32, &F32, old},
      {"v_mfma_f32_16x16x4f32", 16, 4, 1, &F32, &F32, old},
      {"v_mfma_f32_32x32x4f16", 32, 4, 2, &F16, &F16, old},
      {"v_mfma_f32_16x16x4f16", 16, 4, 4, &F16, &F16, old},
      {"v_mfma_f32_4x4x4f16", 4, 4, 16, &F16, &F16, old},
      {"v_mfma_f32_32x32x8f16", 32, 8, 1, &F16, &F16, old},
      {"v_mfma_f32_16x16x16f16", 16, 16, 1, &F16, &F16, old},
      {"v_mfma_f32_32x32x2bf16", 32, 2, 2, &BF16, &BF16, old},
      {"v_mfma_f32_16x16x2bf16", 16, 2, 4, &BF16, &BF16, old},
      {"v_mfma_f32_4x4x2bf16", 4, 2, 16, &BF16, &BF16, old},
      {"v_mfma_f32_32x32x4bf16", 32, 4, 1, &BF16, &BF16, old},
      {"v_mfma_f32_16x16x8bf16", 16, 8, 1, &BF16, &BF16, old},
      {"v_mfma_f32_32x32x4bf16_1k", 32, 4, 2, &BF16, &BF16, old},
      {"v_mfma_f32_16x16x4bf16_1k", 16, 4, 4, &BF16, &BF16, old},
      {"v_mfma_f32_4x4x4bf16_1k", 4, 4, 16, &BF16, &BF16, old},
      {"v_mfma_f32_32x32x8bf16_1k", 32, 8, 1, &BF16, &BF16, old},
      {"v_mfma_f32_16x16x16bf16_1k", 16, 16, 1, &BF16, &BF16, old},
      {"v_mfma_i32_32x32x4i8", 32, 4, 2, &S8, &S8, old, true},
      {"v_mfma_i32_16x16x4i8", 16, 4, 4, &S8, &S8, old, true},
      {"v_mfma_i32_4x4x4i8", 4, 4, 16, &S8, &S8, old, true},
      {"v_mfma_i32_32x32x8i8", 32, 8, 1, &S8, &S8, old, true},
      {"v_mfma_i32_16x16x16i8", 16, 16, 1, &S8, &S8, old, true},
      {"v_mfma_f32_32x32x1_2b_f32", 32, 1, 2, &F32, &F32, late},
      {"v_mfma_f32_16x16x1_4b_f32", 16, 1, 4, &F32, &F32, late},
      {"v_mfma_f32_4x4x1_16b_f32", 4, 1, 16, &F32, &F32, late},
      {"v_mfma_f32_32x32x2_f32", 32, 2, 1, &F32, &F32, late},
      {"v_mfma_f32_16x16x4_f32", 16, 4, 1, &F32, &F32, late},
      {"v_mfma_f32_32x32x4_xf32", 32, 4, 1, &F32, &F32, C942},
      {"v_mfma_f32_16x16x8_xf32", 16, 8, 1, &F32, &F32, C942},
      {"v_mfma_f32_32x32x4_2b_f16", 32, 4, 2, &F16, &F16, late},
      {"v_mfma_f32_16x16x4_4b_f16", 16, 4, 4, &F16, &F16, late},
      {"v_mfma_f32_4x4x4_16b_f16", 4, 4, 16, &F16, &F16, late},
      {"v_mfma_f32_32x32x8_f16", 32, 8, 1, &F16, &F16, late},
      {"v_mfma_f32_16x16x16_f16", 16, 16, 1, &F16, &F16, late},
      {"v_mfma_f32_32x32x4_2b_bf16", 32, 4, 2, &BF16, &BF16, late},
      {"v_mfma_f32_16x16x4_4b_bf16", 16, 4, 4, &BF16, &BF16, late},
      {"v_mfma_f32_4x4x4_16b_bf16", 4, 4, 16, &BF16, &BF16, late},
      {"v_mfma_f32_32x32x8_bf16", 32, 8, 1, &BF16, &BF16, late},
      {"v_mfma_f32_16x16x16_bf16", 16, 16, 1, &BF16, &BF16, late},
      {"v_mfma_i32_32x32x4_2b_i8", 32, 4, 2, &S8, &S8, late, true},
      {"v_mfma_i32_16x16x4_4b_i8", 16, 4, 4, &S8, &S8, late, true},
      {"v_mfma_i32_4x4x4_16b_i8", 4, 4, 16, &S8, &S8, late, true},
      {"v_mfma_i32_32x32x16_i8", 32, 16, 1, &S8, &S8, late, true},
      {"v_mfma_i32_16x16x32_i8", 16, 32, 1, &S8, &S8, late, true},
      {"v_mfma_f32_16x16x32_fp8_fp8", 16, 32, 1, &E4M3, &E4M3, late},
      {"v_mfma_f32_16x16x32_fp8_bf8", 16, 32, 1, &E4M3, &E5M2, late},
      {"v_mfma_f32_16x16x32_bf8_fp8", 16, 32, 1, &E5M2, &E4M3, late},
      {"v_mfma_f32_16x16x32_bf8_bf8", 16, 32, 1, &E5M2, &E5M2, late},
      {"v_mfma_f32_32x32x16_fp8_fp8", 32, 16, 1, &E4M3, &E4M3, late},
      {"v_mfma_f32_32x32x16_fp8_bf8", 32, 16, 1, &E4M3, &E5M2, late},
      {"v_mfma_f32_32x32x16_bf8_fp8", 32, 16, 1, &E5M2, &E4M3, late},
      {"v_mfma_f32_32x32x16_bf8_bf8", 32, 16, 1, &E5M2, &E5M2, late},
      {"v_mfma_f32_16x16x32_f16", 16, 32, 1, &F16, &F16, C950},
      {"v_mfma_f32_32x32x16_f16", 32, 16, 1, &F16, &F16, C950},
      {"v_mfma_f32_16x16x32_bf16", 16, 32, 1, &BF16, &BF16, C950},
      {"v_mfma_f32_32x32x16_bf16", 32, 16, 1, &BF16, &BF16, C950},
      {"v_mfma_i32_16x16x64_i8", 16, 64, 1, &S8, &S8, C950, true},
      {"v_mfma_i32_32x32x32_i8", 32, 32, 1, &S8, &S8, C950, true},
  };
  return c;
}

const Format *const mixedFormats[] = {&E4M3, &E5M2, &E2M3, &E3M2, &E2M1};

std::vector<Case> mixedCases(bool scaled) {
  static std::vector<std::string> suffixes;
  if (suffixes.empty())
    for (unsigned a = 0; a < 5; ++a)
      for (unsigned b = 0; b < 5; ++b)
        suffixes.push_back((a ? " cbsz:" + std::to_string(a) : "") +
                           (b ? " blgp:" + std::to_string(b) : ""));
  std::vector<Case> c;
  for (unsigned a = 0; a < 5; ++a)
    for (unsigned b = 0; b < 5; ++b)
      for (unsigned m : {16u, 32u}) {
        Case x{m == 16 ? (scaled ? "v_mfma_scale_f32_16x16x128_f8f6f4"
                                 : "v_mfma_f32_16x16x128_f8f6f4")
                       : (scaled ? "v_mfma_scale_f32_32x32x64_f8f6f4"
                                 : "v_mfma_f32_32x32x64_f8f6f4"),
               m,
               m == 16 ? 128u : 64u,
               1,
               mixedFormats[a],
               mixedFormats[b],
               C950};
        x.halves = true;
        x.scaled = scaled;
        x.suffix = suffixes[a * 5 + b].c_str();
        c.push_back(x);
      }
  return c;
}

// The registers in which the test keeps the operands.
constexpr unsigned RegA = 64, RegB = 96, RegC = 128, RegD = 160;

struct Matrices {
  std::vector<double> a, b, c, d;
  unsigned m, k, blocks;
  explicit Matrices(const Case &x)
      : a(x.blocks * x.m * x.k), b(a), c(x.blocks * x.m * x.m), d(c), m(x.m),
        k(x.k), blocks(x.blocks) {}
  double &A(unsigned block, unsigned i, unsigned q) {
    return a[(block * m + i) * k + q];
  }
  double &B(unsigned block, unsigned q, unsigned j) {
    return b[(block * k + q) * m + j];
  }
  double &C(unsigned block, unsigned i, unsigned j) {
    return c[(block * m + i) * m + j];
  }
  double &D(unsigned block, unsigned i, unsigned j) {
    return d[(block * m + i) * m + j];
  }
};

/// Calls fn(lane, e, block, row, k) for every element of an input operand.
template <class Fn>
void eachInput(unsigned m, unsigned k, unsigned blocks, bool halves, Fn fn) {
  unsigned groups = 64 / (m * blocks), items = k / groups;
  for (unsigned lane = 0; lane < 64; ++lane)
    for (unsigned e = 0; e < items; ++e) {
      unsigned group = lane / (m * blocks);
      unsigned q = halves ? (e < 16 ? 0 : k / 2) + 16 * group + e % 16
                          : group * items + e;
      fn(lane, e, lane / m % blocks, lane % m, q);
    }
}

/// Calls fn(register, lane, block, row, column) for every accumulator element.
template <class Fn> void eachOutput(unsigned m, unsigned blocks, Fn fn) {
  for (unsigned r = 0; r < m * m * blocks / 64; ++r)
    for (unsigned l = 0; l < 64; ++l) {
      if (m == 32)
        fn(r, l, r / 16, 8 * (r % 16 / 4) + 4 * (l / 32) + r % 4, l % 32);
      else if (m == 16)
        fn(r, l, r / 4, 4 * (l / 16) + r % 4, l % 16);
      else
        fn(r, l, l / 4, r, l % 4);
    }
}

struct Runner {
  Bench &bench;
  const Case &x;
  const Format *fa, *fb;
  unsigned line;
  unsigned regA = RegA, regB = RegB, regC = RegC, regD = RegD;
  bool constantC = false;

  void store(Matrices &t) {
    eachInput(x.m, x.k, x.blocks, x.halves && fa->bits == 8,
              [&](unsigned l, unsigned e, unsigned b, unsigned i, unsigned q) {
                bench.put(regA, l, e, fa->bits, fa->code(t.A(b, i, q)));
              });
    eachInput(x.m, x.k, x.blocks, x.halves && fb->bits == 8,
              [&](unsigned l, unsigned e, unsigned b, unsigned j, unsigned q) {
                bench.put(regB, l, e, fb->bits, fb->code(t.B(b, q, j)));
              });
    if (constantC)
      return;
    eachOutput(x.m, x.blocks,
               [&](unsigned r, unsigned l, unsigned b, unsigned i, unsigned j) {
                 bench.row(regC + r)[l] = x.integer
                                              ? uint32_t(int32_t(t.C(b, i, j)))
                                              : F32.code(t.C(b, i, j));
               });
  }
  /// Runs and compares; `slack` per unit of sum |a||b| + |c|.
  void check(Matrices &t, double slack) {
    std::vector<uint32_t> before = bench.registers;
    bench.run(line);
    unsigned words = x.m * x.m * x.blocks / 64, wrong = 0;
    eachOutput(x.m, x.blocks,
               [&](unsigned r, unsigned l, unsigned b, unsigned i, unsigned j) {
                 double want = t.C(b, i, j), size = std::fabs(want);
                 for (unsigned q = 0; q < x.k; ++q) {
                   double p = t.A(b, i, q) * t.B(b, q, j);
                   want += p;
                   size += std::fabs(p);
                 }
                 double got = x.integer ? int32_t(bench.row(regD + r)[l])
                                        : bench.f32(regD + r, l);
                 if (!(std::fabs(got - want) <= slack * size) && !wrong++)
                   ADD_FAILURE() << "block " << b << " (" << i << ", " << j
                                 << "): got " << got << ", want " << want;
               });
    EXPECT_EQ(wrong, 0u);
    // Nothing else changed.
    for (unsigned r = 0; r < row::Temp; ++r)
      if (r < regD || r >= regD + words)
        for (unsigned l = 0; l < 64; ++l)
          if (bench.row(r)[l] != before[r * MaxLanes + l]) {
            ADD_FAILURE() << "register " << r << " changed";
            return;
          }
  }
};

/// Values every format here has, all exact in products and sums.
void randomInputs(Matrices &t, const Case &x, const Format *fa,
                  const Format *fb, std::mt19937 &rng) {
  auto draw = [&](const Format *f) {
    if (f->bits > 8) // 4 significant bits
      return double(int(rng() % 31) - 15) / 4;
    uint32_t c;
    do
      c = rng() & ((1u << f->bits) - 1);
    while (!f->finite(c) || c == 1u << (f->bits - 1));
    return f->value(c);
  };
  for (double &v : t.a)
    v = draw(fa);
  for (double &v : t.b)
    v = draw(fb);
  for (double &v : t.c)
    v = x.integer ? double(int(rng() % 20001) - 10000)
                  : double(int(rng() % 2001) - 1000) / 8;
}

std::string lineOf(const Case &x, const Format *fa, const Format *fb,
                   unsigned a, unsigned b, const std::string &c, unsigned d) {
  unsigned perLane = x.m * x.k * x.blocks / 64;
  std::string s = std::string(x.name) + " " +
                  registers(d, x.m * x.m * x.blocks / 64) + ", " +
                  registers(a, perLane * fa->bits / 32) + ", " +
                  registers(b, perLane * fb->bits / 32) + ", " + c;
  if (x.scaled)
    s += ", v4, v5 op_sel:[1,0,0] op_sel_hi:[0,1,0]";
  return s + x.suffix;
}

double slackOf(const Case &x) { return x.integer ? 0 : x.k * 0x1p-24; }

/// One operand has a single one, the other is full: row i of D is row k of B,
/// or column j of D is column k of A, and the rest is zero.
void oneHot(Runner &r, std::mt19937 &rng) {
  const Case &x = r.x;
  for (bool side : {false, true}) {
    Matrices t(x);
    randomInputs(t, x, r.fa, r.fb, rng);
    std::fill(t.c.begin(), t.c.end(), 0.);
    std::vector<double> &sparse = side ? t.b : t.a;
    std::fill(sparse.begin(), sparse.end(), 0.);
    r.store(t);
    const Format &f = side ? *r.fb : *r.fa;
    unsigned reg = side ? r.regB : r.regA, wrong = 0;
    auto probe = [&](unsigned lane, unsigned e, unsigned block, unsigned i,
                     unsigned q) {
      if (wrong)
        return;
      r.bench.put(reg, lane, e, f.bits, f.code(1));
      r.bench.run(r.line);
      r.bench.put(reg, lane, e, f.bits, 0);
      eachOutput(x.m, x.blocks,
                 [&](unsigned o, unsigned l, unsigned b, unsigned row,
                     unsigned column) {
                   double want = 0;
                   if (b == block && !side && row == i)
                     want = t.B(b, q, column);
                   if (b == block && side && column == i)
                     want = t.A(b, row, q);
                   double got = x.integer ? int32_t(r.bench.row(r.regD + o)[l])
                                          : r.bench.f32(r.regD + o, l);
                   if (got != want && !wrong++)
                     ADD_FAILURE() << (side ? "B" : "A") << " one at lane "
                                   << lane << " element " << e << ": D(" << row
                                   << ", " << column << ") of block " << b
                                   << " is " << got << ", not " << want;
                 });
    };
    eachInput(x.m, x.k, x.blocks, x.halves && f.bits == 8, probe);
  }
}

void runCases(const std::vector<Case> &cases, const ChipCase &chip) {
  std::vector<std::string> lines;
  std::vector<const Case *> used;
  for (const Case &x : cases) {
    if (!(x.chips & chip.bit))
      continue;
    used.push_back(&x);
    const Format *fa = on(x.a, chip.bit), *fb = on(x.b, chip.bit);
    unsigned words = x.m * x.m * x.blocks / 64;
    unsigned agpr = row::Agpr;
    lines.push_back(
        lineOf(x, fa, fb, RegA, RegB, registers(RegC, words), RegD));
    lines.push_back(lineOf(x, fa, fb, agpr + RegA, RegB,
                           registers(agpr + RegC, words), agpr + RegC));
    lines.push_back(
        lineOf(x, fa, fb, RegA, agpr + RegB, x.integer ? "5" : "-4.0", RegD));
  }
  Bench bench(chip.name, false, lines);
  ASSERT_FALSE(testing::Test::HasFailure());
  std::mt19937 rng(7);
  for (unsigned n = 0; n < used.size(); ++n) {
    const Case &x = *used[n];
    SCOPED_TRACE(lines[3 * n] + " on " + chip.name);
    bench.fill(n);
    for (unsigned l = 0; l < 64; ++l)
      bench.row(4)[l] = bench.row(5)[l] = 0x7f7f7f7f; // scales of one
    Runner r{bench, x, on(x.a, chip.bit), on(x.b, chip.bit), 3 * n};
    // The equal pairs and 8 of 4 bits, of the 25 mixed ones, show every layout.
    bool fourEight = x.a->bits + x.b->bits == 12;
    if (!x.halves || x.a == x.b || (fourEight && !x.scaled))
      oneHot(r, rng);
    if (testing::Test::HasFailure())
      return;
    for (unsigned form = 0; form < 3; ++form) {
      r.line = 3 * n + form;
      r.regA = RegA + (form == 1 ? row::Agpr : 0);
      r.regB = RegB + (form == 2 ? row::Agpr : 0);
      r.regC = RegC + (form == 1 ? row::Agpr : 0);
      r.regD = form == 1 ? r.regC : RegD;
      r.constantC = form == 2;
      for (unsigned round = 0; round < 4; ++round) {
        Matrices t(x);
        randomInputs(t, x, r.fa, r.fb, rng);
        if (form == 2)
          std::fill(t.c.begin(), t.c.end(), x.integer ? 5. : -4.);
        r.store(t);
        r.check(t, slackOf(x));
      }
    }
    if (testing::Test::HasFailure())
      return;
  }
}

TEST(MatrixMfma, Gfx90a) { runCases(denseCases(), chipCases[0]); }
TEST(MatrixMfma, Gfx942) { runCases(denseCases(), chipCases[1]); }
TEST(MatrixMfma, Gfx950) { runCases(denseCases(), chipCases[2]); }
TEST(MatrixMfma, MixedFormats) { runCases(mixedCases(false), chipCases[2]); }
TEST(MatrixMfma, ScaledByOne) { runCases(mixedCases(true), chipCases[2]); }

} // namespace
