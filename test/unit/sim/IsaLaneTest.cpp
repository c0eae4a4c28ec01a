//===- IsaLaneTest.cpp - DPP, SDWA, VOPD and lane instructions ------------===//
//
// Lanes and parts of registers that reach other lanes and parts: every pattern
// of each kind, with masks, bound control and inactive lanes.
//
//===----------------------------------------------------------------------===//
#include "EveryChip.h"
#include "MatrixBench.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace greta::sim::test;

namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i32 = int32_t;

class Lanes : public testing::TestWithParam<const char *> {
protected:
  bool gfx9 = GetParam()[3] == '9';
  bool gfx10 = std::string(GetParam()).rfind("gfx10", 0) == 0;
  bool gfx12 = std::string(GetParam()).rfind("gfx12", 0) == 0;
  std::vector<std::string> names = mnemonics(GetParam());
  bool has(const std::string &name) const {
    return std::binary_search(names.begin(), names.end(), name);
  }
};

struct Pattern {
  std::string text;
  /// The lane that lane l reads, or -1.
  std::function<int(int)> source;
  bool masks = true; ///< takes row_mask, bank_mask, bound_ctrl
};

std::vector<Pattern> patternsOf(bool gfx9, int lanes) {
  std::vector<Pattern> p;
  for (int n : {0x1b, 0x4e, 0x00, 0xe4, 0x39}) {
    std::string list;
    for (int k = 0; k < 4; ++k)
      list += (k ? "," : "") + std::to_string(n >> 2 * k & 3);
    p.push_back({"quad_perm:[" + list + "]",
                 [n](int l) { return l / 4 * 4 + (n >> 2 * (l % 4) & 3); }});
  }
  for (int n = 1; n < 16; ++n) {
    std::string s = std::to_string(n);
    p.push_back(
        {"row_shl:" + s, [n](int l) { return l % 16 + n < 16 ? l + n : -1; }});
    p.push_back(
        {"row_shr:" + s, [n](int l) { return l % 16 < n ? -1 : l - n; }});
    p.push_back({"row_ror:" + s,
                 [n](int l) { return l / 16 * 16 + (l + 16 - n) % 16; }});
  }
  p.push_back({"row_mirror", [](int l) { return l ^ 15; }});
  p.push_back({"row_half_mirror", [](int l) { return l ^ 7; }});
  if (gfx9) {
    p.push_back(
        {"wave_shl:1", [=](int l) { return l + 1 < lanes ? l + 1 : -1; }});
    p.push_back({"wave_rol:1", [=](int l) { return (l + 1) % lanes; }});
    p.push_back({"wave_shr:1", [](int l) { return l - 1; }});
    p.push_back({"wave_ror:1", [=](int l) { return (l + lanes - 1) % lanes; }});
    p.push_back(
        {"row_bcast:15", [](int l) { return l < 16 ? -1 : l / 16 * 16 - 1; }});
    p.push_back({"row_bcast:31", [](int l) { return l < 32 ? -1 : 31; }});
    for (int n : {0, 7, 15})
      p.push_back({"row_newbcast:" + std::to_string(n),
                   [n](int l) { return l / 16 * 16 + n; }});
    return p;
  }
  for (int n = 0; n < 16; ++n) {
    p.push_back({"row_share:" + std::to_string(n),
                 [n](int l) { return l / 16 * 16 + n; }});
    p.push_back(
        {"row_xmask:" + std::to_string(n), [n](int l) { return l ^ n; }});
  }
  for (u32 n : {0x053977u, 0xfac688u, 0u}) {
    std::string list;
    for (int k = 0; k < 8; ++k)
      list += (k ? "," : "") + std::to_string(n >> 3 * k & 7);
    p.push_back({"dpp8:[" + list + "]",
                 [n](int l) { return l / 8 * 8 + int(n >> 3 * (l % 8) & 7); },
                 false});
  }
  return p;
}

TEST_P(Lanes, DataParallelPrimitives) {
  for (bool wave32 : {false, true}) {
    if (wave32 && gfx9)
      continue;
    int lanes = wave32 ? 32 : 64;
    std::vector<Pattern> patterns = patternsOf(gfx9, lanes);
    struct Form {
      unsigned pattern;
      bool add, bound, inactive;
      unsigned rows, banks;
    };
    std::vector<Form> forms;
    std::vector<std::string> lines;
    for (unsigned k = 0; k < patterns.size(); ++k)
      for (unsigned variant = 0; variant < 8; ++variant) {
        bool add = variant & 1, bound = variant & 2, fetch = variant & 4;
        if (fetch && gfx9)
          continue;
        Form f{k, add, bound, fetch, 15, 15};
        if (variant == 2)
          f.rows = 5, f.banks = 6;
        std::string text = add ? gfx9 ? "v_add_u32_dpp v8, v12, v16 "
                                      : "v_add_nc_u32_dpp v8, v12, v16 "
                               : "v_mov_b32_dpp v8, v12 ";
        text += patterns[k].text;
        if (patterns[k].masks) {
          char masks[60];
          std::snprintf(masks, sizeof(masks), " row_mask:0x%x bank_mask:0x%x",
                        f.rows, f.banks);
          text += masks;
          if (bound)
            text += " bound_ctrl:1";
        } else {
          f.rows = f.banks = 15;
          f.bound = true;
        }
        lines.push_back(text + (fetch ? " fi:1" : ""));
        forms.push_back(f);
      }
    Bench b(GetParam(), wave32, lines);
    for (unsigned k = 0; k < lines.size(); ++k) {
      SCOPED_TRACE(lines[k] + (wave32 ? " wave32" : " wave64"));
      const Form &f = forms[k];
      const Pattern &p = patterns[f.pattern];
      b.fill(k);
      u64 exec = 0xfffeffff7ffff7f5ull & b.wave.fullMask;
      b.wave.setExec(exec);
      std::vector<u32> x(b.row(12), b.row(13)), y(b.row(16), b.row(17)),
          want(b.row(8), b.row(9));
      for (int l = 0; l < lanes; ++l) {
        if (!(exec >> l & 1) || !(f.rows >> l / 16 & 1) ||
            !(f.banks >> l / 4 % 4 & 1))
          continue;
        int from = p.source(l);
        bool there = from >= 0 && ((exec >> from & 1) || f.inactive);
        if (!there && !f.bound)
          continue;
        u32 v = there ? x[unsigned(from)] : 0;
        want[unsigned(l)] = f.add ? v + y[unsigned(l)] : v;
      }
      b.run(k);
      ASSERT_EQ(std::vector<u32>(b.row(8), b.row(8) + lanes),
                std::vector<u32>(want.begin(), want.begin() + lanes));
      ASSERT_EQ(b.wave.exec, exec);
    }
  }
}

// LLVM prints these of RDNA 3 and 4 without a suffix, and has none of RDNA 2.
TEST_P(Lanes, ComparisonsOfPermutedLanes) {
  if (gfx9)
    GTEST_SKIP() << "no such form: comparisons with DPP";
  u32 lessF32 = gfx10 ? 0x01 : 0x11, greaterI32 = gfx10 ? 0x84 : 0x44;
  struct Form {
    u32 control;
    std::function<int(int)> source;
    u32 encoding = 0xfa;
  };
  // DPP8 takes 24 bits of the dword, from the eighth on, and no signs.
  constexpr u32 Reversed = 0x053977;
  std::vector<Form> forms = {
      {Reversed, [](int l) { return l ^ 7; }, 0xea},
      {0xb1, [](int l) { return l ^ 1; }},
      {0x4e, [](int l) { return l ^ 2; }},
      {0x128, [](int l) { return l ^ 8; }},
      {0x103, [](int l) { return l % 16 < 13 ? l + 3 : -1; }},
      {0x112, [](int l) { return l % 16 < 2 ? -1 : l - 2; }},
      {0x140, [](int l) { return l ^ 15; }},
      {0x141, [](int l) { return l ^ 7; }},
      {0x155, [](int l) { return l / 16 * 16 + 5; }},
      {0x164, [](int l) { return l ^ 4; }},
  };
  for (bool wave32 : {false, true}) {
    std::vector<std::string> lines;
    for (const Form &f : forms)
      for (bool isInt : {false, true}) {
        // v12, of other lanes, against v12: bound_ctrl and fi, -|x| for floats.
        u32 word = 0x7c000000 | f.encoding |
                   (isInt ? greaterI32 : lessF32) << 17 | 12 << 9;
        u32 dpp = f.encoding == 0xfa ? 0xff0c000c | (isInt ? 0 : 3u << 20) : 12;
        dpp |= f.control << 8;
        lines.push_back(".long " + std::to_string(word) + ", " +
                        std::to_string(dpp));
      }
    Bench b(GetParam(), wave32, lines);
    for (unsigned k = 0; k < lines.size(); ++k) {
      SCOPED_TRACE(lines[k] + (wave32 ? " wave32" : " wave64"));
      b.fill(k);
      int lanes = wave32 ? 32 : 64;
      for (int l = 0; l < lanes; ++l) {
        u32 x = u32(37 * l + 5) & 63;
        float value = float(x);
        std::memcpy(&b.row(12)[l], k % 2 ? static_cast<void *>(&x) : &value, 4);
      }
      u64 exec = 0xfffeffff7ffff7f5ull & b.wave.fullMask, want = 0;
      b.wave.setExec(exec);
      for (int l = 0; l < lanes; ++l) {
        int from = forms[k / 2].source(l);
        int own = (37 * l + 5) & 63,
            other = from < 0 ? 0 : (37 * from + 5) & 63;
        bool isNegated = forms[k / 2].encoding == 0xfa;
        bool holds = k % 2 ? other > own : (isNegated ? -other : other) < own;
        if (exec >> l & 1)
          want |= u64(holds) << l;
      }
      b.run(k);
      u64 got = b.wave.s[greta::sim::slot::VCC];
      if (!wave32)
        got |= u64(b.wave.s[greta::sim::slot::VCC + 1]) << 32;
      ASSERT_EQ(got, want);
    }
  }
}

TEST_P(Lanes, SubDwordAddressing) {
  if (!gfx9 && !gfx10)
    GTEST_SKIP() << "no such form: SDWA";
  static const char *const selections[] = {
      "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"};
  static const char *const unused[] = {"UNUSED_PAD", "UNUSED_SEXT",
                                       "UNUSED_PRESERVE"};
  struct Form {
    unsigned to, rest, a, b;
    bool signA, signB;
  };
  std::vector<Form> forms;
  std::vector<std::string> lines;
  for (unsigned to = 0; to < 7; ++to)
    for (unsigned rest = 0; rest < 3; ++rest)
      for (unsigned x = 0; x < 7; ++x)
        for (unsigned y : {0u, 3u, 5u, 6u}) {
          Form f{to, rest, x, y, (to + x) % 2 == 0, (rest + y) % 2 == 0};
          lines.push_back(
              std::string(gfx9 ? "v_add_u32_sdwa" : "v_add_nc_u32_sdwa") +
              " v8, " + (f.signA ? "sext(v12)" : "v12") + ", " +
              (f.signB ? "sext(v16)" : "v16") + " dst_sel:" + selections[to] +
              " dst_unused:" + unused[rest] + " src0_sel:" + selections[x] +
              " src1_sel:" + selections[y]);
          forms.push_back(f);
        }
  Bench b(GetParam(), false, lines);
  auto part = [](u32 x, unsigned s, bool sign) {
    if (s == 6)
      return x;
    if (s < 4)
      return sign ? u32(i32(int8_t(x >> 8 * s))) : u32(uint8_t(x >> 8 * s));
    return sign ? u32(i32(int16_t(x >> 16 * (s - 4))))
                : u32(uint16_t(x >> 16 * (s - 4)));
  };
  for (unsigned k = 0; k < lines.size(); ++k) {
    const Form &f = forms[k];
    b.fill(k);
    b.wave.setExec(0xffffffff0fffffffull);
    std::vector<u32> want(b.row(8), b.row(9));
    for (unsigned l = 0; l < 64; ++l) {
      if (!(b.wave.exec >> l & 1))
        continue;
      u32 r =
          part(b.row(12)[l], f.a, f.signA) + part(b.row(16)[l], f.b, f.signB);
      if (f.to == 6) {
        want[l] = r;
        continue;
      }
      unsigned width = f.to < 4 ? 8 : 16,
               at = f.to < 4 ? 8 * f.to : 16 * (f.to - 4);
      u32 mask = ((1u << width) - 1) << at, old = want[l];
      want[l] = r << at & mask;
      if (f.rest == 2)
        want[l] |= old & ~mask;
      else if (f.rest == 1 && r >> (width - 1) & 1)
        want[l] |= ~(mask | (mask & -mask) - 1);
    }
    b.run(k);
    ASSERT_EQ(std::vector<u32>(b.row(8), b.row(9)), want) << lines[k];
  }
}

TEST_P(Lanes, TwoAtOnce) {
  if (gfx9 || gfx10)
    GTEST_SKIP() << "no such form: VOPD";
  struct Op {
    const char *name;
    bool second; ///< only as the second of the two
    u32 (*apply)(u32 a, u32 b, u32 old, bool vcc);
  };
  auto f = [](u32 x) {
    float r;
    std::memcpy(&r, &x, 4);
    return r;
  };
  static auto F = f;
  static auto U = [](float x) {
    u32 r;
    std::memcpy(&r, &x, 4);
    return r;
  };
  const Op ops[] = {
      {"mov_b32", false, [](u32 a, u32, u32, bool) { return a; }},
      {"add_f32", false,
       [](u32 a, u32 b, u32, bool) { return U(F(a) + F(b)); }},
      {"sub_f32", false,
       [](u32 a, u32 b, u32, bool) { return U(F(a) - F(b)); }},
      {"subrev_f32", false,
       [](u32 a, u32 b, u32, bool) { return U(F(b) - F(a)); }},
      {"mul_f32", false,
       [](u32 a, u32 b, u32, bool) { return U(F(a) * F(b)); }},
      {"fmac_f32", false,
       [](u32 a, u32 b, u32 d, bool) {
         return U(__builtin_fmaf(F(a), F(b), F(d)));
       }},
      {"mul_dx9_zero_f32", false,
       [](u32 a, u32 b, u32, bool) {
         return F(a) == 0 || F(b) == 0 ? 0 : U(F(a) * F(b));
       }},
      {gfx12 ? "max_num_f32" : "max_f32", false,
       [](u32 a, u32 b, u32, bool) { return U(std::max(F(a), F(b))); }},
      {gfx12 ? "min_num_f32" : "min_f32", false,
       [](u32 a, u32 b, u32, bool) { return U(std::min(F(a), F(b))); }},
      {"cndmask_b32", false,
       [](u32 a, u32 b, u32, bool vcc) { return vcc ? b : a; }},
      {"add_nc_u32", true, [](u32 a, u32 b, u32, bool) { return a + b; }},
      {"lshlrev_b32", true,
       [](u32 a, u32 b, u32, bool) { return b << (a & 31); }},
      {"and_b32", true, [](u32 a, u32 b, u32, bool) { return a & b; }},
  };
  struct Pair {
    const Op *x, *y;
  };
  std::vector<Pair> pairs;
  std::vector<std::string> lines;
  // The second reads what the first writes: both read first.
  auto half = [](const Op &o, const char *to, const char *a, const char *b) {
    return std::string("v_dual_") + o.name + " " + to + ", " + a +
           (std::string(o.name) == "mov_b32" ? "" : std::string(", ") + b);
  };
  for (const Op &x : ops)
    for (const Op &y : ops) {
      if (x.second)
        continue;
      lines.push_back(half(x, "v8", "v12", "v17") +
                      " :: " + half(y, "v9", "v13", "v8"));
      pairs.push_back({&x, &y});
    }
  Bench b(GetParam(), true, lines);
  for (unsigned k = 0; k < lines.size(); ++k) {
    b.fill(k);
    for (unsigned r : {8u, 9u, 12u, 13u, 17u})
      for (unsigned l = 0; l < 32; ++l)
        b.row(r)[l] = U(float(i32(b.row(r)[l])) * 1e-6f);
    u32 vcc = 0x12345678, exec = 0xfff7ffef;
    b.wave.s[greta::sim::slot::VCC] = vcc;
    b.wave.setExec(exec);
    std::vector<u32> x(b.row(8), b.row(9)), y(b.row(9), b.row(10));
    for (unsigned l = 0; l < 32; ++l)
      if (exec >> l & 1) {
        bool m = vcc >> l & 1;
        u32 first = pairs[k].x->apply(b.row(12)[l], b.row(17)[l], x[l], m);
        y[l] = pairs[k].y->apply(b.row(13)[l], x[l], y[l], m);
        x[l] = first;
      }
    b.run(k);
    ASSERT_EQ(std::vector<u32>(b.row(8), b.row(9)), x) << lines[k];
    ASSERT_EQ(std::vector<u32>(b.row(9), b.row(10)), y) << lines[k];
  }
}

TEST_P(Lanes, AcrossTheWave) {
  std::vector<std::string> lines = {
      "v_readlane_b32 s8, v12, s10",     "v_readfirstlane_b32 s8, v12",
      "v_writelane_b32 v8, 33, s10",     "v_mbcnt_lo_u32_b32 v8, v12, v16",
      "v_mbcnt_hi_u32_b32 v8, v12, v16", "v_swap_b32 v8, v12"};
  enum { Read, First, Write, Low, High, Swap, Rest };
  if (has("v_permlane16_b32")) {
    lines.push_back("v_permlane16_b32 v8, v12, s8, s9");
    lines.push_back("v_permlanex16_b32 v8, v12, s8, s9 op_sel:[1,0]");
  }
  if (has("v_permlane64_b32"))
    lines.push_back("v_permlane64_b32 v8, v12");
  if (has("v_permlane16_var_b32")) {
    lines.push_back("v_permlane16_var_b32 v8, v12, v16");
    lines.push_back("v_permlanex16_var_b32 v8, v12, v16");
  }
  if (has("v_permlane16_swap_b32")) {
    lines.push_back("v_permlane16_swap_b32 v8, v12");
    lines.push_back("v_permlane32_swap_b32 v8, v12");
  }
  Bench b(GetParam(), false, lines);
  for (unsigned k = 0; k < lines.size(); ++k)
    for (unsigned round = 0; round < 8; ++round) {
      SCOPED_TRACE(lines[k]);
      b.fill(k * 8 + round);
      bool swaps = lines[k].find("_swap_b") != std::string::npos && k > Swap;
      u64 exec = swaps ? ~u64(0) : 0xfffffffcf0ffff08ull;
      b.wave.setExec(exec);
      b.wave.s[8] = 0x76543210 ^ round * 0x11111111;
      b.wave.s[9] = 0x89abcdef;
      b.wave.s[10] = round * 9 + 64;
      u64 select = u64(b.wave.s[9]) << 32 | b.wave.s[8];
      std::vector<u32> x(b.row(12), b.row(13)), y(b.row(16), b.row(17)),
          d(b.row(8), b.row(9)), other = x;
      unsigned lane = round * 9 % 64;
      for (unsigned l = 0; l < 64; ++l) {
        bool on = exec >> l & 1;
        if (k == Write)
          d[l] = l == lane ? 33 : d[l];
        if (!on)
          continue;
        u32 bits = x[l], n = 0;
        for (unsigned e = 0; e < 32; ++e)
          n += (bits >> e & 1) && (k == Low ? e : e + 32) < l;
        if (k == Low || k == High)
          d[l] = n + y[l];
        if (k == Swap)
          std::swap(d[l], other[l]);
        if (k < Rest)
          continue;
        bool var = lines[k].find("_var") != std::string::npos,
             far = lines[k].find("lanex") != std::string::npos;
        if (lines[k].find("lane64") != std::string::npos) {
          d[l] = x[l ^ 32];
        } else if (!swaps) {
          unsigned in = var ? y[l] & 15 : unsigned(select >> 4 * (l % 16) & 15);
          unsigned from = (l / 16 * 16 ^ (far ? 16 : 0)) + in;
          // op_sel[0] fetches from inactive lanes, else those leave D as it is.
          if ((exec >> from & 1) || (far && !var))
            d[l] = x[from];
        }
      }
      if (swaps) {
        unsigned size = lines[k].find("lane16") != std::string::npos ? 16 : 32;
        for (unsigned l = 0; l < 64; ++l)
          if (!(l & size))
            std::swap(d[l + size], other[l]);
      }
      b.run(k);
      if (k == Read)
        ASSERT_EQ(b.wave.s[8], x[lane]);
      else if (k == First)
        ASSERT_EQ(b.wave.s[8], x[3]);
      else
        ASSERT_EQ(std::vector<u32>(b.row(8), b.row(9)), d);
      if (k == Swap || swaps)
        ASSERT_EQ(std::vector<u32>(b.row(12), b.row(13)), other);
    }
}

INSTANTIATE_TEST_SUITE_P(Chips, Lanes, testing::ValuesIn(everyChip()),
                         [](const auto &info) { return info.param; });

} // namespace
