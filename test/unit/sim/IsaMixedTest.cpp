//===- IsaMixedTest.cpp - packed floats and mixed precision ---------------===//
//
// Instructions on pairs of f32 registers, whose op_sel picks the register of
// each half, and multiply-adds whose sources are f16 or f32 each.
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

using u32 = uint32_t;

std::string bitList(const char *key, unsigned bits, unsigned count) {
  std::string s = std::string(" ") + key + ":[";
  for (unsigned k = 0; k < count; ++k)
    s += (k ? "," : "") + std::to_string(bits >> k & 1);
  return s + "]";
}

u32 drawFloat(std::mt19937 &random) {
  static const float specials[] = {0.f, -0.f, INFINITY, -INFINITY, NAN, 1e-40f};
  return u32(random() % 6 ? bits((int(random() % 2001) - 1000) * .37f)
                          : bits(specials[random() % std::size(specials)]));
}
bool sameFloat(u32 got, u32 want) {
  return got == want || (std::isnan(F(got)) && std::isnan(F(want)));
}

class Mixed : public testing::TestWithParam<const char *> {
protected:
  bool gfx9 = GetParam()[3] == '9';
  std::mt19937 random{5};
};

TEST_P(Mixed, PairsOfFloats) {
  if (!gfx9)
    GTEST_SKIP() << "no such form: instructions on pairs of f32";
  struct Form {
    unsigned op, low, high, negLow, negHigh;
  };
  static const char *const names[] = {"v_pk_add_f32", "v_pk_mul_f32",
                                      "v_pk_fma_f32", "v_pk_mov_b32"};
  std::vector<Form> forms;
  std::vector<std::string> lines;
  for (unsigned op = 0; op < 4; ++op)
    for (unsigned select = 0; select < 64; ++select) {
      unsigned count = op == 2 ? 3 : 2, mask = (1u << count) - 1;
      Form f{op, select & mask, select >> 3 & mask, select * 5 % 7 & mask,
             select * 3 % 5 & mask};
      std::string line = std::string(names[op]) + " v[8:9], v[12:13], v[16:17]";
      if (count == 3)
        line += ", v[20:21]";
      line +=
          bitList("op_sel", f.low, count) + bitList("op_sel_hi", f.high, count);
      if (op < 3)
        line += bitList("neg_lo", f.negLow, count) +
                bitList("neg_hi", f.negHigh, count);
      lines.push_back(line);
      forms.push_back(f);
    }
  Bench b(GetParam(), false, lines);
  b.wave.setExec(0xfffffffffffffffe);
  for (unsigned k = 0; k < lines.size(); ++k) {
    const Form &f = forms[k];
    for (unsigned r : {8u, 9u, 12u, 13u, 16u, 17u, 20u, 21u})
      for (unsigned l = 0; l < b.lanes; ++l)
        b.row(r)[l] = drawFloat(random);
    u32 inactive = b.row(8)[0];
    b.run(k);
    ASSERT_EQ(b.row(8)[0], inactive);
    for (unsigned l = 1; l < b.lanes; ++l)
      for (unsigned half : {0u, 1u}) {
        float in[3];
        for (unsigned s = 0; s < 3; ++s) {
          in[s] = F(b.row(12 + 4 * s + ((half ? f.high : f.low) >> s & 1))[l]);
          if ((half ? f.negHigh : f.negLow) >> s & 1)
            in[s] = -in[s];
        }
        // The move takes its low result from the first source, its high one
        // from the second, each chosen by op_sel.
        u32 want =
            u32(f.op == 0   ? bits(in[0] + in[1])
                : f.op == 1 ? bits(in[0] * in[1])
                : f.op == 2 ? bits(std::fma(in[0], in[1], in[2]))
                            : b.row(12 + 4 * half + (f.low >> half & 1))[l]);
        ASSERT_TRUE(sameFloat(b.row(8 + half)[l], want))
            << lines[k] << " half " << half << ": " << std::hex
            << b.row(8 + half)[l] << ", not " << want;
      }
  }
}

/// op_sel_hi says that a source is f16, op_sel which half it is.
TEST_P(Mixed, MultiplyAdds) {
  struct Form {
    unsigned to, select, isHalf;
  };
  static const char *const names[] = {"v_fma_mix_f32", "v_fma_mixlo_f16",
                                      "v_fma_mixhi_f16"};
  std::vector<Form> forms;
  std::vector<std::string> lines;
  for (unsigned to = 0; to < 3; ++to)
    for (unsigned select = 0; select < 64; ++select) {
      forms.push_back({to, select & 7, select >> 3});
      lines.push_back(std::string(names[to]) + " v8, -v12, |v16|, -|v20|" +
                      bitList("op_sel", select & 7, 3) +
                      bitList("op_sel_hi", select >> 3, 3));
    }
  Bench b(GetParam(), !gfx9, lines);
  for (unsigned k = 0; k < lines.size(); ++k) {
    const Form &f = forms[k];
    for (unsigned r : {8u, 12u, 16u, 20u})
      for (unsigned l = 0; l < b.lanes; ++l) {
        auto half = [&] {
          return halfBits((int(random() % 2001) - 1000) * .37);
        };
        bool isHalf = r > 8 && f.isHalf >> (r / 4 - 3) & 1;
        b.row(r)[l] = isHalf ? u32(half() | half() << 16) : drawFloat(random);
      }
    std::vector<u32> old(b.row(8), b.row(9));
    b.run(k);
    for (unsigned l = 0; l < b.lanes; ++l) {
      float in[3];
      for (unsigned s = 0; s < 3; ++s) {
        u32 x = b.row(12 + 4 * s)[l];
        in[s] = f.isHalf >> s & 1 ? float(H(f.select >> s & 1 ? x >> 16 : x))
                                  : F(x);
      }
      float r = std::fma(-in[0], std::fabs(in[1]), -std::fabs(in[2]));
      u32 got = b.row(8)[l];
      if (f.to == 0) {
        ASSERT_TRUE(sameFloat(got, u32(bits(r)))) << lines[k];
        continue;
      }
      unsigned shift = f.to == 1 ? 0 : 16;
      u32 want = u32(halfBits(r)), half = got >> shift & 0xffff;
      ASSERT_TRUE(half == want || (H(half) != H(half) && r != r)) << lines[k];
      ASSERT_EQ(got >> (16 - shift) & 0xffff, old[l] >> (16 - shift) & 0xffff)
          << lines[k] << ": the other half";
    }
  }
}

/// A literal constant has 32 bits, of which a float takes all and a half those
/// that op_sel says. LLVM's assembler refuses most of them, so they are encoded
/// here (RDNA ISA manuals, "VOP3P").
class MixedLiterals : public Mixed {};
TEST_P(MixedLiterals, AreWords) {
  struct Form {
    unsigned to, at, select, isHalf, absolute, negative;
    u32 literal;
  };
  // -log2(e); 10, and one whose low half is f16's 1: LLVM prints those as
  // lit(); a half that looks like a small negative integer.
  static const u32 literals[] = {0xbfb8aa3b, 0x41200000, 0xbfb83c00, 0x4120fff0,
                                 0x3c00c500};
  std::vector<Form> forms;
  std::vector<std::string> lines;
  for (unsigned to = 0; to < 3; ++to)
    for (unsigned at = 0; at < 3; ++at)
      for (u32 literal : literals)
        for (unsigned n = 0; n < 16; ++n) {
          Form f{to,
                 at,
                 (n & 1) << at,
                 (n >> 1 & 1) << at,
                 (n >> 2 & 1) << at,
                 (n >> 3 & 1) << at,
                 literal};
          u32 low = 0xcc200000 + (to << 16) | 8 | f.absolute << 8 |
                    f.select << 11 | (f.isHalf >> 2 & 1) << 14,
              high = (f.isHalf & 3) << 27 | f.negative << 29;
          for (unsigned s = 0; s < 3; ++s)
            high |= (s == at ? 0xff : 0x100 + 12 + 4 * s) << (9 * s);
          forms.push_back(f);
          lines.push_back(".long " + std::to_string(low) + ", " +
                          std::to_string(high) + ", " +
                          std::to_string(literal));
        }
  Bench b(GetParam(), true, lines);
  for (unsigned k = 0; k < lines.size(); ++k) {
    const Form &f = forms[k];
    for (unsigned r : {8u, 12u, 16u, 20u})
      for (unsigned l = 0; l < b.lanes; ++l)
        b.row(r)[l] = drawFloat(random);
    b.run(k);
    for (unsigned l = 0; l < b.lanes; ++l) {
      float in[3];
      for (unsigned s = 0; s < 3; ++s) {
        u32 x = s == f.at ? f.literal : b.row(12 + 4 * s)[l];
        in[s] = f.isHalf >> s & 1 ? float(H(f.select >> s & 1 ? x >> 16 : x))
                                  : F(x);
        if (f.absolute >> s & 1)
          in[s] = std::fabs(in[s]);
        if (f.negative >> s & 1)
          in[s] = -in[s];
      }
      float r = std::fma(in[0], in[1], in[2]);
      u32 got = b.row(8)[l];
      if (f.to == 0) {
        ASSERT_TRUE(sameFloat(got, u32(bits(r)))) << lines[k];
        continue;
      }
      u32 half = got >> (f.to == 1 ? 0 : 16) & 0xffff;
      ASSERT_TRUE(half == u32(halfBits(r)) || (H(half) != H(half) && r != r))
          << lines[k];
    }
  }
}

/// A half of a scalar register: LLVM prints no name for it, only op_sel. RADV
/// multiplies by what is the same in all lanes so. The opcode is RDNA 3's.
TEST(MixedHalves, OfScalarRegisters) {
  std::mt19937 random{7};
  const u32 high = 0x00022004; // s4, v16
  std::vector<std::string> lines;
  for (unsigned select = 0; select < 2; ++select)
    lines.push_back(".long " + std::to_string(0xd5350008 | select << 11) +
                    ", " + std::to_string(high));
  Bench b("gfx1100", true, lines);
  for (unsigned select = 0; select < 2; ++select) {
    b.wave.s[4] = 0x40003c00; // 2 and 1
    for (unsigned l = 0; l < b.lanes; ++l)
      b.row(16)[l] = halfBits(float(random() % 100));
    b.run(select);
    for (unsigned l = 0; l < b.lanes; ++l)
      EXPECT_EQ(float(H(b.row(8)[l] & 0xffff)),
                float(H(b.row(16)[l])) * (select ? 2 : 1));
  }
}

/// gfx9 has no literal constants there.
std::vector<const char *> chipsOfLiterals() {
  std::vector<const char *> chips;
  for (const char *chip : everyChip())
    if (chip[3] != '9')
      chips.push_back(chip);
  return chips;
}
INSTANTIATE_TEST_SUITE_P(Chips, MixedLiterals,
                         testing::ValuesIn(chipsOfLiterals()),
                         [](const auto &info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Chips, Mixed, testing::ValuesIn(everyChip()),
                         [](const auto &info) { return info.param; });

} // namespace
