//===- MatrixModifierTest.cpp - what the dense layout tests leave out -----===//
//
// f64 products, broadcasts and swizzles, E8M0 scales, rounding and denormals,
// EXEC, accumulators that overlap.
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

void putDouble(Bench &b, unsigned reg, unsigned lane, double x) {
  uint64_t bits = llvm::bit_cast<uint64_t>(x);
  b.row(reg)[lane] = uint32_t(bits);
  b.row(reg + 1)[lane] = uint32_t(bits >> 32);
}
double getDouble(Bench &b, unsigned reg, unsigned lane) {
  return llvm::bit_cast<double>(uint64_t(b.row(reg + 1)[lane]) << 32 |
                                b.row(reg)[lane]);
}

/// Products of integers are exact: lane maps of the calculator, and negation.
TEST(MatrixModifiers, F64) {
  struct Chip {
    const char *name, *large, *small;
    bool neg;
  };
  for (Chip chip :
       {Chip{"gfx90a", "v_mfma_f64_16x16x4f64", "v_mfma_f64_4x4x4f64", false},
        Chip{"gfx942", "v_mfma_f64_16x16x4_f64", "v_mfma_f64_4x4x4_4b_f64",
             true},
        Chip{"gfx950", "v_mfma_f64_16x16x4_f64", "v_mfma_f64_4x4x4_4b_f64",
             true}}) {
    std::vector<std::string> lines;
    for (bool large : {true, false})
      for (unsigned neg = 0; neg < (chip.neg ? 8 : 1); ++neg)
        for (const char *c : {"v[16:23]", "-2.0"}) {
          std::string s = std::string(large ? chip.large : chip.small) +
                          (large ? " v[32:39]" : " v[32:33]") +
                          ", v[8:9], v[10:11], " +
                          (c[0] == 'v' && !large ? "v[16:17]" : c);
          if (neg)
            s += " neg:[" + std::to_string(neg & 1) + "," +
                 std::to_string(neg >> 1 & 1) + "," + std::to_string(neg >> 2) +
                 "]";
          lines.push_back(s);
        }
    Bench bench(chip.name, false, lines);
    ASSERT_FALSE(HasFailure());
    std::mt19937 rng(1);
    auto number = [&] { return double(int(rng() % 2001) - 1000) * 0x1p+10; };
    for (unsigned n = 0; n < lines.size(); ++n) {
      SCOPED_TRACE(lines[n] + " on " + chip.name);
      bool constant = n % 2, large = n < lines.size() / 2;
      unsigned neg = n / 2 % (chip.neg ? 8 : 1);
      unsigned m = large ? 16 : 4, blocks = large ? 1 : 4;
      std::vector<double> a(blocks * m * 4), b(a), c(blocks * m * m);
      bench.fill(n);
      for (unsigned l = 0; l < 64; ++l) {
        unsigned block = large ? 0 : l / 4 % 4, i = l % m, k = l / 16;
        putDouble(bench, 8, l, a[(block * m + i) * 4 + k] = number());
        putDouble(bench, 10, l, b[(block * m + i) * 4 + k] = number());
        for (unsigned r = 0; r < (large ? 4u : 1u); ++r) {
          double &x = c[(block * m + (large ? 4 * r : 0) + l / 16) * m + l % m];
          x = number();
          if (constant)
            x = -2;
          else
            putDouble(bench, 16 + 2 * r, l, x);
        }
      }
      bench.run(n);
      for (unsigned l = 0; l < 64; ++l)
        for (unsigned r = 0; r < (large ? 4u : 1u); ++r) {
          unsigned block = large ? 0 : l / 4 % 4, j = l % m,
                   i = (large ? 4 * r : 0) + l / 16;
          double want = c[(block * m + i) * m + j] * (neg & 4 ? -1 : 1);
          for (unsigned k = 0; k < 4; ++k)
            want += a[(block * m + i) * 4 + k] * b[(block * m + j) * 4 + k] *
                    ((neg & 1) != (neg >> 1 & 1) ? -1 : 1);
          ASSERT_EQ(getDouble(bench, 32 + 2 * r, l), want)
              << "register " << r << ", lane " << l;
        }
    }
  }
}

/// cbsz/abid: 2^cbsz neighbouring blocks read A of one of them. blgp: B's lanes
/// come from elsewhere. Compared with the plain instruction on moved operands.
TEST(MatrixModifiers, BroadcastAndSwizzle) {
  struct Kind {
    const char *name;
    unsigned m, blocks, words;
  };
  const Kind kinds[] = {{"v_mfma_f32_32x32x4_2b_f16", 32, 2, 2},
                        {"v_mfma_f32_16x16x4_4b_f16", 16, 4, 2},
                        {"v_mfma_f32_4x4x4_16b_f16", 4, 16, 2},
                        {"v_mfma_f32_32x32x1_2b_f32", 32, 2, 1},
                        {"v_mfma_i32_4x4x4_16b_i8", 4, 16, 1},
                        {"v_mfma_f32_32x32x8_f16", 32, 1, 2},
                        {"v_mfma_f32_16x16x16_bf16", 16, 1, 2}};
  for (const Kind &kind : kinds) {
    struct Form {
      unsigned cbsz, abid, blgp;
    };
    std::vector<Form> forms;
    std::vector<std::string> lines;
    std::string base = std::string(kind.name) + " " +
                       registers(32, kind.m * kind.m * kind.blocks / 64) +
                       ", " + registers(8, kind.words) + ", " +
                       registers(10, kind.words) + ", 0";
    for (unsigned cbsz = 0; 1u << cbsz <= kind.blocks && cbsz < 5; ++cbsz)
      for (unsigned abid = 0; abid < 1u << cbsz; ++abid)
        for (unsigned blgp = 0; blgp < 8; ++blgp) {
          forms.push_back({cbsz, abid, blgp});
          std::string s = base;
          if (cbsz)
            s += " cbsz:" + std::to_string(cbsz);
          if (abid)
            s += " abid:" + std::to_string(abid);
          if (blgp)
            s += " blgp:" + std::to_string(blgp);
          lines.push_back(s);
        }
    Bench bench("gfx942", false, lines);
    ASSERT_FALSE(HasFailure());
    for (unsigned n = 0; n < lines.size(); ++n) {
      SCOPED_TRACE(lines[n]);
      const Form &f = forms[n];
      bench.fill(n);
      for (unsigned w = 0; w < kind.words; ++w)
        for (unsigned l = 0; l < 64; ++l) {
          bench.row(8 + w)[l] &= 0x3fff3fff; // finite in every format
          bench.row(10 + w)[l] &= 0x3fff3fff;
        }
      std::vector<uint32_t> before = bench.registers;
      bench.run(n);
      std::vector<uint32_t> got = bench.registers;
      bench.registers = before;
      for (unsigned w = 0; w < kind.words; ++w) {
        uint32_t a[64], b[64];
        std::copy_n(bench.row(8 + w), 64, a);
        std::copy_n(bench.row(10 + w), 64, b);
        for (unsigned l = 0; l < 64; ++l) {
          unsigned block = l / kind.m % kind.blocks,
                   group = block / (1u << f.cbsz) * (1u << f.cbsz);
          bench.row(8 + w)[l] =
              a[l + kind.m * (group + f.abid) - kind.m * block];
          static const unsigned fixed[8][4] = {
              {0, 1, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}, {1, 2, 3, 0},
              {0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}};
          bench.row(10 + w)[l] = b[16 * fixed[f.blgp][l / 16] + l % 16];
        }
      }
      bench.run(0);
      unsigned words = kind.m * kind.m * kind.blocks / 64;
      for (unsigned r = 32; r < 32 + words; ++r)
        for (unsigned l = 0; l < 64; ++l)
          ASSERT_EQ(got[r * MaxLanes + l], bench.row(r)[l])
              << "register " << r << ", lane " << l;
    }
  }
}

/// Every scale byte and 32-element block of fp4 ones: exact powers of two.
TEST(MatrixModifiers, Scales) {
  for (unsigned m : {16u, 32u}) {
    unsigned k = m == 16 ? 128 : 64;
    std::vector<std::string> lines;
    for (unsigned a = 0; a < 4; ++a)
      for (unsigned b = 0; b < 4; ++b) {
        auto list = [](unsigned x, unsigned y) {
          return "[" + std::to_string(x) + "," + std::to_string(y) + ",0]";
        };
        lines.push_back(
            std::string(m == 16 ? "v_mfma_scale_f32_16x16x128_f8f6f4 v[32:35]"
                                : "v_mfma_scale_f32_32x32x64_f8f6f4 v[32:47]") +
            ", v[8:11], v[16:23], " + (m == 16 ? "v[64:67]" : "v[64:79]") +
            ", v4, v5 op_sel:" + list(a & 1, b & 1) +
            " op_sel_hi:" + list(a >> 1, b >> 1) + " cbsz:4");
      }
    Bench bench("gfx950", false, lines);
    ASSERT_FALSE(HasFailure());
    std::mt19937 rng(9);
    for (unsigned n = 0; n < 16; ++n) {
      SCOPED_TRACE(lines[n]);
      bench.fill(n);
      for (unsigned l = 0; l < 64; ++l) {
        for (unsigned r = 8; r < 12; ++r)
          bench.row(r)[l] = 0x22222222; // fp4 ones
        for (unsigned r = 16; r < 24; ++r)
          bench.row(r)[l] = 0x38383838; // fp8 ones
        for (unsigned byte = 0; byte < 4; ++byte) {
          bench.put(4, l, byte, 8, 124 + rng() % 7);
          bench.put(5, l, byte, 8, 124 + rng() % 7);
        }
      }
      bench.put(4, 3, n / 4, 8, 255); // a NaN for row 3
      bench.put(5, 1, n % 4, 8, 254); // 2^127 overflows column 1
      std::vector<double> c;
      for (unsigned r = 64; r < 64 + m * m / 64; ++r)
        for (unsigned l = 0; l < 64; ++l)
          bench.row(r)[l] = F32.code(double(int(rng() % 65) - 32));
      bench.run(n);
      for (unsigned r = 0; r < m * m / 64; ++r)
        for (unsigned l = 0; l < 64; ++l) {
          unsigned i =
              m == 32 ? 8 * (r / 4) + 4 * (l / 32) + r % 4 : 4 * (l / 16) + r;
          double want = bench.f32(64 + r, l);
          bool nan = false;
          for (unsigned block = 0; block < k / 32; ++block) {
            unsigned sa = bench.row(4)[i + m * block] >> (8 * (n / 4)) & 255,
                     sb =
                         bench.row(5)[l % m + m * block] >> (8 * (n % 4)) & 255;
            nan |= sa == 255 || sb == 255;
            want += std::ldexp(32., int(sa) + int(sb) - 254);
          }
          double got = bench.f32(32 + r, l);
          if (nan)
            ASSERT_TRUE(std::isnan(got)) << "row " << i;
          else
            ASSERT_EQ(got, float(want)) << "row " << i << ", lane " << l;
        }
    }
  }
}

/// Denormals stay, except those of f16 and bf16 MFMA on gfx90a; MODE and EXEC
/// do not matter.
TEST(MatrixModifiers, DenormalsModeAndExec) {
  struct Kind {
    const char *chip, *line;
    uint32_t small, one; ///< a denormal and one, twice in a word
    double product;      ///< what a dot product of 4 (2 for bf16) gives
    unsigned words;
  };
  const Kind kinds[] = {
      {"gfx90a", "v_mfma_f32_4x4x4f16 v[32:35], v[8:9], v[10:11], v[16:19]",
       0x00010001, 0x3c003c00, 0, 2},
      {"gfx90a", "v_mfma_f32_4x4x2bf16 v[32:35], v8, v10, v[16:19]", 0x00010001,
       0x3f803f80, 0, 1},
      {"gfx90a", "v_mfma_f32_4x4x1f32 v[32:35], v8, v10, v[16:19]", 1,
       0x3f800000, 0x1p-149, 1},
      {"gfx942",
       "v_mfma_f32_4x4x4_16b_f16 v[32:35], v[8:9], v[10:11], v[16:19]",
       0x00010001, 0x3c003c00, 4 * 0x1p-24, 2},
      {"gfx942",
       "v_mfma_f32_4x4x4_16b_bf16 v[32:35], v[8:9], v[10:11], v[16:19]",
       0x00010001, 0x3f803f80, 4 * 0x1p-133, 2},
      {"gfx942", "v_mfma_f32_4x4x1_16b_f32 v[32:35], v8, v10, v[16:19]", 1,
       0x3f800000, 0x1p-149, 1}};
  for (const Kind &kind : kinds) {
    SCOPED_TRACE(std::string(kind.line) + " on " + kind.chip);
    Bench bench(kind.chip, false, {kind.line});
    // Host control words of a kernel that flushes denormals and rounds up.
    bench.wave.csr32 = bench.wave.csr64 = greta::sim::hostControl(1, 0);
    bench.wave.setExec(0);
    for (double c : {0., 0x1p-140}) {
      bool flushes = kind.product == 0;
      for (unsigned l = 0; l < 64; ++l) {
        for (unsigned r = 8; r < 8 + kind.words; ++r) {
          bench.row(r)[l] = kind.small;
          bench.row(r + 2)[l] = kind.one;
        }
        for (unsigned r = 16; r < 20; ++r)
          bench.row(r)[l] = F32.code(c);
      }
      greta::sim::setControl(bench.wave.csr32);
      bench.run(0);
      uint32_t after = greta::sim::currentControl();
      greta::sim::setControl(greta::sim::hostControl(0, 3));
      // The sticky exception flags (low bits) may differ.
      EXPECT_EQ(after & ~0x3fu, bench.wave.csr32 & ~0x3fu);
      uint32_t want = F32.code(flushes ? 0 : double(float(kind.product + c)));
      for (unsigned l = 0; l < 64; ++l)
        for (unsigned r = 32; r < 36; ++r)
          ASSERT_EQ(bench.row(r)[l], want) << "lane " << l;
    }
  }
}

/// D may overlap A, B and, shifted, C.
TEST(MatrixModifiers, Overlap) {
  std::vector<std::string> lines = {
      "v_mfma_f32_16x16x16_f16 v[32:35], v[8:9], v[10:11], v[16:19]",
      "v_mfma_f32_16x16x16_f16 v[8:11], v[8:9], v[10:11], v[16:19]",
      "v_mfma_f32_16x16x16_f16 v[18:21], v[8:9], v[10:11], v[16:19]",
      "v_mfma_f32_16x16x16_f16 v[14:17], v[8:9], v[10:11], v[16:19]"};
  Bench bench("gfx942", false, lines);
  const unsigned where[] = {32, 8, 18, 14};
  std::vector<uint32_t> want;
  for (unsigned n = 0; n < 4; ++n) {
    SCOPED_TRACE(lines[n]);
    bench.fill(1);
    for (unsigned r = 8; r < 12; ++r)
      for (unsigned l = 0; l < 64; ++l)
        bench.row(r)[l] &= 0xbbffbbff; // finite
    for (unsigned r = 16; r < 20; ++r)
      for (unsigned l = 0; l < 64; ++l)
        bench.row(r)[l] = F32.code(r + l / 16.);
    bench.run(n);
    std::vector<uint32_t> got(bench.row(where[n]), bench.row(where[n] + 4));
    if (!n)
      want = got;
    EXPECT_EQ(got, want);
  }
}

} // namespace
