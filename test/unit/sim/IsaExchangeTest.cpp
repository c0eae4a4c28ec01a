//===- IsaExchangeTest.cpp - data that move across lanes and memories -----===//
//
// Transposed loads, loads that go to LDS, registers and addresses by lane,
// permutations through the LDS unit, VGPR indexing.
//
//===----------------------------------------------------------------------===//
#include "EveryChip.h"
#include "MatrixBench.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cstring>

using namespace greta::sim::test;
namespace slot = greta::sim::slot;

namespace {

using u32 = uint32_t;
using u64 = uint64_t;

bool isGfx10(const std::string &chip) { return chip.rfind("gfx10", 0) == 0; }
bool isGfx9(const std::string &chip) { return chip[3] == '9'; }
bool isGfx12(const std::string &chip) { return chip.rfind("gfx12", 0) == 0; }

/// Element e of `bits` bits of packed data.
u32 element(const uint8_t *p, unsigned e, unsigned bits) {
  u32 x = 0;
  for (unsigned k = 0; k < bits; ++k) {
    unsigned at = e * bits + k;
    x |= u32(p[at / 8] >> (at % 8) & 1) << k;
  }
  return x;
}

/// The matrix that 16 lanes read row by row, 16 elements in a row, comes out
/// with column l in lane l; the lanes' rows lie anywhere.
TEST(Transposed, LdsReadsOfGfx950) {
  struct Case {
    const char *line;
    unsigned bits, bytes;
  };
  const Case cases[] = {{"ds_read_b64_tr_b16 v[4:5], v1 offset:8", 16, 8},
                        {"ds_read_b64_tr_b8 v[4:5], v1 offset:8", 8, 8},
                        {"ds_read_b64_tr_b4 v[4:5], v1 offset:8", 4, 8},
                        {"ds_read_b96_tr_b6 v[4:6], v1 offset:8", 6, 12}};
  std::vector<std::string> lines;
  for (const Case &c : cases)
    lines.push_back(c.line);
  Bench b("gfx950", false, lines);
  b.setLds(4096);
  std::mt19937 random(1);
  for (uint8_t &x : b.group.lds)
    x = uint8_t(random());
  for (unsigned k = 0; k < lines.size(); ++k) {
    SCOPED_TRACE(lines[k]);
    const Case &c = cases[k];
    b.fill(k);
    std::vector<u32> at(64);
    for (unsigned l = 0; l < 64; ++l)
      b.row(1)[l] = at[l] = u32(16 * (random() % 200));
    b.run(k);
    unsigned count = c.bytes * 8 / c.bits;
    for (unsigned l = 0; l < 64; ++l) {
      uint8_t result[12];
      for (unsigned w = 0; w < c.bytes / 4; ++w)
        std::memcpy(result + 4 * w, &b.row(4 + w)[l], 4);
      for (unsigned e = 0; e < count; ++e) {
        // Row e of the matrix is spread over 16 / count lanes.
        unsigned lanes = 16 / count, column = l % 16;
        unsigned from = l / 16 * 16 + e * lanes + column / count;
        ASSERT_EQ(element(result, e, c.bits),
                  element(&b.group.lds[at[from] + 8], column % count, c.bits))
            << "lane " << l << " element " << e;
      }
    }
    b.wave.setExec(1);
    EXPECT_NE(b.fault(k).find("needs all lanes active"), std::string::npos);
    b.wave.setExec(b.wave.fullMask);
  }
}

/// With the addresses that make it one, the result is a 16x16 matrix's
/// transpose in the layout of WMMA's operands: lane l has row l % 16 and eight
/// consecutive k from 8 * (l / 16) on.
TEST(Transposed, GlobalLoadsOfGfx12) {
  for (const char *chip : {"gfx1200", "gfx1201"}) {
    Bench b(chip, true,
            {"global_load_tr_b128 v[4:7], v[2:3], off",
             "global_load_tr_b64 v[4:5], v[2:3], off",
             "global_load_tr_b128 v[4:7], v1, s[4:5] offset:32"});
    uint8_t *memory = b.allocate(1024);
    for (unsigned k : {0u, 1u, 2u}) {
      unsigned esize = k == 1 ? 1 : 2;
      // memory[k][n] = 16 k + n
      for (unsigned e = 0; e < 256; ++e) {
        uint16_t value = uint16_t(e * 3 + (esize == 2 ? 1000 : 0));
        std::memcpy(memory + (k == 2 ? 32 : 0) + e * esize, &value, esize);
      }
      u64 base = u64(uintptr_t(memory));
      b.wave.s[4] = u32(base);
      b.wave.s[5] = u32(base >> 32);
      for (unsigned l = 0; l < 32; ++l) {
        unsigned row, half;
        if (esize == 2) // as measured on gfx1201
          row = 8 * (l / 16) + l % 8, half = l / 8 % 2;
        else
          row = l / 8 * 4 + l % 4, half = l / 4 % 2;
        unsigned at = (row * 16 + half * 8) * esize;
        b.row(1)[l] = at;
        b.row(2)[l] = u32(base + at);
        b.row(3)[l] = u32((base + at) >> 32);
      }
      b.run(k);
      for (unsigned l = 0; l < 32; ++l)
        for (unsigned e = 0; e < 8; ++e) {
          u32 got = b.row(4 + e * esize / 4)[l] >> (e * esize % 4 * 8);
          unsigned kk = 8 * (l / 16) + e, n = l % 16;
          u32 want = (kk * 16 + n) * 3 + (esize == 2 ? 1000 : 0);
          ASSERT_EQ(got & (esize == 2 ? 0xffff : 0xff),
                    want & (esize == 2 ? 0xffff : 0xff))
              << chip << " line " << k << " lane " << l << " element " << e;
        }
    }
    Bench wide(chip, false, {"global_load_tr_b128 v[4:5], v[2:3], off"});
    EXPECT_NE(wide.fault(0).find("not documented"), std::string::npos);
  }
}

class Exchange : public testing::TestWithParam<const char *> {
protected:
  std::string chip = GetParam();
  bool gfx9 = isGfx9(chip), gfx12 = isGfx12(chip);
  std::vector<std::string> names = mnemonics(GetParam());
  bool has(const std::string &name) const {
    return std::binary_search(names.begin(), names.end(), name);
  }
};

TEST_P(Exchange, LoadsToLds) {
  struct Width {
    const char *name;
    unsigned bytes;
    bool sign;
  };
  const Width widths[] = {{"ubyte", 1, false},   {"sbyte", 1, true},
                          {"ushort", 2, false},  {"sshort", 2, true},
                          {"dword", 4, false},   {"dwordx3", 12, false},
                          {"dwordx4", 16, false}};
  std::vector<std::string> lines;
  std::vector<const Width *> cases;
  for (const Width &c : widths) {
    std::string name = std::string("load_lds_") + c.name;
    if (has("global_" + name)) {
      lines.push_back("global_" + name + " v[2:3], off offset:16");
      cases.push_back(&c);
      lines.push_back("global_" + name + " v1, s[4:5] offset:16");
      cases.push_back(&c);
    }
    if (has("scratch_" + name)) {
      lines.push_back("scratch_" + name + " v1, off offset:16");
      cases.push_back(&c);
    }
    std::string buffer = std::string("buffer_load_") + c.name +
                         " v1, s[8:11], 0 offen offset:16 lds";
    if (gfx9 && !assembling(GetParam(), false, {buffer}).empty()) {
      lines.push_back(buffer);
      cases.push_back(&c);
    }
  }
  // gfx90a has the buffer forms, gfx950 the wide ones.
  EXPECT_EQ(lines.size(), chip == "gfx90a"   ? 5u
                          : chip == "gfx942" ? 20u
                          : chip == "gfx950" ? 26u
                                             : 0u);
  if (lines.empty())
    GTEST_SKIP() << "no such form";
  Bench b(GetParam(), !gfx9, lines);
  b.setLds(4096);
  uint8_t *memory = b.allocate(4096);
  std::vector<uint8_t> scratch(64 * 256);
  b.wave.scratch = scratch.data();
  b.group.scratchBytes = 512;
  std::mt19937 random(4);
  for (unsigned k = 0; k < 4096; ++k)
    memory[k] = uint8_t(random());
  for (unsigned k = 0; k < lines.size(); ++k) {
    SCOPED_TRACE(lines[k]);
    unsigned bytes = cases[k]->bytes, pitch = std::max(4u, bytes);
    bool fromScratch = lines[k][0] == 's';
    b.fill(k);
    b.wave.setExec(0xfffffffffff0ff0full);
    u64 base = u64(uintptr_t(memory));
    std::vector<unsigned> at(64);
    for (unsigned l = 0; l < 64; ++l) {
      at[l] = unsigned(random() % (fromScratch ? 220 : 4000));
      b.row(1)[l] = at[l];
      b.row(2)[l] = u32(base + at[l]);
      b.row(3)[l] = u32((base + at[l]) >> 32);
      for (unsigned w = 0; w < 64; ++w) // the same bytes in each lane's scratch
        std::memcpy(&scratch[(w * 64 + l) * 4], memory + 4 * w, 4);
    }
    b.wave.s[4] = b.wave.s[8] = u32(base);
    b.wave.s[5] = b.wave.s[9] = u32(base >> 32);
    b.wave.s[10] = 4096;
    b.wave.s[11] = 0;
    b.wave.s[slot::M0] = 256;
    std::vector<uint8_t> want(4096, 0xaa);
    b.group.lds = want;
    for (unsigned l = 0; l < 64; ++l) {
      if (!(b.wave.exec >> l & 1))
        continue;
      u32 x[4] = {};
      std::memcpy(x, memory + at[l] + 16, bytes);
      if (cases[k]->sign && x[0] >> (8 * bytes - 1) & 1)
        x[0] |= ~0u << 8 * bytes;
      std::memcpy(&want[256 + 16 + l * pitch], x, pitch);
    }
    b.run(k);
    ASSERT_EQ(b.group.lds, want);
  }
}

TEST_P(Exchange, RegistersByThread) {
  if (gfx9)
    GTEST_SKIP() << "no such form: lanes' registers by thread";
  std::vector<std::string> lines = {
      "global_load_addtid_b32 v4, s[4:5] offset:8",
      "global_store_addtid_b32 v4, s[4:5]"};
  if (isGfx10(chip))
    lines = {"global_load_dword_addtid v4, s[4:5] offset:8",
             "global_store_dword_addtid v4, s[4:5]"};
  if (gfx12) {
    lines.push_back("global_load_block v[8:39], v[2:3], off");
    lines.push_back("global_store_block v[2:3], v[8:39], off");
    lines.push_back("scratch_store_block v1, v[8:39], off offset:4");
    lines.push_back("scratch_load_block v[40:71], v1, off");
  }
  Bench b(GetParam(), true, lines);
  uint8_t *memory = b.allocate(8192);
  auto word = [&](unsigned at) {
    u32 x;
    std::memcpy(&x, memory + at, 4);
    return x;
  };
  auto pattern = [&] {
    for (unsigned k = 0; k < 2048; ++k)
      std::memcpy(memory + 4 * k, &(const u32 &)(k * 2654435761u), 4);
  };
  pattern();
  u64 base = u64(uintptr_t(memory));
  b.wave.s[4] = u32(base);
  b.wave.s[5] = u32(base >> 32);
  b.run(0);
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(b.row(4)[l], word(8 + 4 * l));
  b.fill(1);
  b.run(1);
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(b.row(4)[l], word(4 * l));
  if (!gfx12)
    return;
  pattern();
  u32 mask = 0x80f0a5c3;
  b.wave.s[slot::M0] = mask;
  b.fill(2);
  for (unsigned l = 0; l < 32; ++l) {
    u64 at = base + 200 * l;
    b.row(2)[l] = u32(at);
    b.row(3)[l] = u32(at >> 32);
  }
  std::vector<u32> before(b.row(8), b.row(40));
  b.run(2);
  for (unsigned l = 0; l < 32; ++l)
    for (unsigned k = 0; k < 32; ++k)
      EXPECT_EQ(b.row(8 + k)[l],
                mask >> k & 1 ? word(200 * l + 4 * k) : before[k * 64 + l]);
  pattern();
  for (unsigned k = 0; k < 32; ++k)
    for (unsigned l = 0; l < 32; ++l)
      b.row(8 + k)[l] = 5000 * k + l;
  b.run(3);
  for (unsigned l = 0; l < 32; ++l)
    for (unsigned k = 0; k < 32; ++k)
      EXPECT_EQ(word(200 * l + 4 * k),
                mask >> k & 1 ? 5000 * k + l : (200 * l / 4 + k) * 2654435761u);
  std::vector<uint8_t> scratch(512 * greta::sim::MaxLanes);
  b.wave.scratch = scratch.data();
  b.group.scratchBytes = 512;
  for (unsigned l = 0; l < 32; ++l)
    b.row(1)[l] = 4 * l + 4;
  b.run(4);
  // The load begins a word below the store.
  b.wave.s[slot::M0] = ~mask;
  before.assign(b.row(40), b.row(72));
  b.run(5);
  for (unsigned l = 0; l < 32; ++l)
    for (unsigned k = 0; k < 32; ++k) {
      bool stored = k && mask >> (k - 1) & 1;
      EXPECT_EQ(b.row(40 + k)[l], mask >> k & 1 ? before[k * 64 + l]
                                  : stored      ? 5000 * (k - 1) + l
                                                : 0);
    }
}

/// Bits of a lane's number, reversed.
unsigned reversed(unsigned x) {
  unsigned r = 0;
  for (unsigned k = 0; k < 5; ++k)
    r |= (x >> k & 1) << (4 - k);
  return r;
}

TEST_P(Exchange, Permutations) {
  std::vector<std::string> lines = {"ds_permute_b32 v4, v1, v2 offset:8",
                                    "ds_bpermute_b32 v4, v1, v2 offset:8"};
  std::vector<unsigned> patterns;
  for (unsigned k = 0; k < 32; ++k) {
    patterns.push_back(0x1f | k << 10);                 // xor
    patterns.push_back(k | (31 & ~k) << 5);             // and, or
    patterns.push_back(0xe000 | k);                     // FFT
    patterns.push_back(0xc000 | k << 5);                // rotate left
    patterns.push_back(0xc400 | k << 5 | (k & 3) << 3); // right, parts kept
    patterns.push_back(0x8000 | (k * 37 & 255));        // quads
  }
  if (gfx12)
    lines.push_back("ds_bpermute_fi_b32 v4, v1, v2");
  unsigned first = unsigned(lines.size());
  for (unsigned p : patterns)
    lines.push_back("ds_swizzle_b32 v4, v2 offset:" + std::to_string(p));
  for (bool wave32 : {false, true}) {
    if (wave32 && gfx9)
      continue;
    Bench b(GetParam(), wave32, lines);
    std::mt19937 random(6);
    u64 exec = 0xfffff0ffffffff7full & b.wave.fullMask;
    b.wave.setExec(exec);
    auto on = [&](unsigned l) { return exec >> l & 1; };
    // RDNA permutes within 32 lanes.
    unsigned group = gfx9 ? 64 : 32;
    for (unsigned k = 0; k < lines.size(); ++k) {
      SCOPED_TRACE(lines[k] + (wave32 ? " wave32" : " wave64"));
      b.fill(k);
      for (unsigned l = 0; l < b.lanes; ++l)
        b.row(1)[l] = u32(random() % 64 * 4 + random() % 4);
      std::vector<u32> want(b.row(4), b.row(5)), data(b.row(2), b.row(3));
      auto target = [&](unsigned l, unsigned offset) {
        return l / group * group + (b.row(1)[l] + offset) / 4 % group;
      };
      if (k == 0) {
        for (unsigned l = 0; l < b.lanes; ++l)
          want[l] = on(l) ? 0 : want[l];
        for (unsigned l = 0; l < b.lanes; ++l)
          if (on(l) && on(target(l, 8)))
            want[target(l, 8)] = data[l];
      } else {
        for (unsigned l = 0; l < b.lanes; ++l) {
          unsigned from;
          if (k < first) {
            from = target(l, k == 1 ? 8 : 0);
          } else {
            unsigned p = patterns[k - first], in = l % 32, keep = p & 31, n;
            if (p >= 0xe000)
              n = reversed(in) >> llvm::popcount(keep) | (in & keep);
            else if (p >= 0xc000)
              n = (in & keep) |
                  ((p & 0x400 ? in - (p >> 5 & 31) : in + (p >> 5 & 31)) &
                   ~keep & 31);
            else if (p >= 0x8000)
              n = (in & ~3u) + (p >> 2 * (in & 3) & 3);
            else
              n = ((in & keep) | (p >> 5 & 31)) ^ (p >> 10 & 31);
            from = l / 32 * 32 + n;
          }
          bool always = k == 2 && gfx12;
          if (on(l))
            want[l] = on(from) || always ? data[from] : 0;
        }
      }
      b.run(k);
      ASSERT_EQ(std::vector<u32>(b.row(4), b.row(4) + b.lanes),
                std::vector<u32>(want.begin(), want.begin() + b.lanes));
    }
  }
}

TEST_P(Exchange, IndexedRegisters) {
  std::vector<std::string> lines;
  if (gfx9)
    lines = {"s_set_gpr_idx_on s4, gpr_idx(SRC0)",
             "v_mov_b32 v4, v8",
             "s_set_gpr_idx_off",
             "s_set_gpr_idx_on s4, gpr_idx(SRC1,DST)",
             "v_add_u32 v8, v2, v4",
             "s_set_gpr_idx_off",
             "v_add_u32 v8, v2, v4",
             "s_set_gpr_idx_on s4, gpr_idx(SRC0)",
             "s_set_gpr_idx_idx s5",
             "v_mov_b32 v4, v8",
             "s_set_gpr_idx_mode gpr_idx(DST)",
             "v_mov_b32 v4, v8",
             "s_set_gpr_idx_off"};
  else
    lines = {"v_movrels_b32 v4, v8", "v_movreld_b32 v8, v4",
             "v_movrelsd_b32 v8, v9", "v_movrelsd_2_b32 v8, v9",
             "v_swaprel_b32 v8, v9"};
  Bench b(GetParam(), !gfx9, lines);
  b.fill(1);
  auto rows = [&](unsigned r) {
    return std::vector<u32>(b.row(r), b.row(r) + b.lanes);
  };
  if (gfx9) {
    b.wave.s[4] = 0x105; // bits 0 to 7 count
    std::vector<u32> v13 = rows(13), v2 = rows(2), v9 = rows(9), v4 = rows(4);
    for (unsigned k : {0u, 1u, 2u})
      b.run(k);
    EXPECT_EQ(rows(4), v13);
    for (unsigned k : {3u, 4u, 5u, 6u})
      b.run(k);
    for (unsigned l = 0; l < 64; ++l) {
      EXPECT_EQ(b.row(13)[l], v2[l] + v9[l]);
      EXPECT_EQ(b.row(8)[l], v2[l] + v13[l]);
    }
    EXPECT_EQ(b.wave.s[slot::M0] & 0xff, 5u);
    // Another index, then another operand, without leaving the mode.
    b.wave.s[5] = 7;
    std::vector<u32> v15 = rows(15), v8 = rows(8);
    for (unsigned k : {7u, 8u, 9u})
      b.run(k);
    EXPECT_EQ(rows(4), v15);
    for (unsigned k : {10u, 11u, 12u})
      b.run(k);
    EXPECT_EQ(b.wave.gprIndexing, 0);
    EXPECT_EQ(rows(11), v8);
    EXPECT_EQ(rows(4), v15);
    return;
  }
  b.wave.s[slot::M0] = 5;
  std::vector<u32> v13 = rows(13);
  b.run(0);
  EXPECT_EQ(rows(4), v13);
  b.fill(2);
  std::vector<u32> v4 = rows(4), v14 = rows(14);
  b.run(1);
  EXPECT_EQ(rows(13), v4);
  b.run(2);
  EXPECT_EQ(rows(13), v14);
  b.wave.s[slot::M0] = 3 | 7 << 16;
  std::vector<u32> v12 = rows(12);
  b.run(3);
  EXPECT_EQ(rows(15), v12);
  b.fill(5);
  v12 = rows(12);
  std::vector<u32> v15 = rows(15);
  b.run(4);
  EXPECT_TRUE(rows(15) == v12 && rows(12) == v15);
}

INSTANTIATE_TEST_SUITE_P(Chips, Exchange, testing::ValuesIn(everyChip()),
                         [](const auto &info) { return info.param; });

} // namespace
