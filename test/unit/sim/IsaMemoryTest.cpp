//===- IsaMemoryTest.cpp - loads and stores of every width and memory -----===//
//
// Every load and store that a chip has, at unaligned addresses, from LDS,
// global memory, scratch and buffers, against the bytes that lie there.
//
//===----------------------------------------------------------------------===//
#include "EveryChip.h"
#include "MatrixBench.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cstring>

using namespace greta::sim::test;

namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using greta::sim::MaxLanes;

enum Part { Whole, Low, High }; ///< d16 forms fill one half
struct Row {
  const char *early, *late, *ds; ///< names after "load_"; of LDS from "ds_" on
  unsigned bytes;
  bool sign = false;
  Part part = Whole;
};
const Row loads[] = {
    {"ubyte", "u8", "u8", 1},
    {"sbyte", "i8", "i8", 1, true},
    {"ushort", "u16", "u16", 2},
    {"sshort", "i16", "i16", 2, true},
    {"ubyte_d16", "d16_u8", "u8_d16", 1, false, Low},
    {"ubyte_d16_hi", "d16_hi_u8", "u8_d16_hi", 1, false, High},
    {"sbyte_d16", "d16_i8", "i8_d16", 1, true, Low},
    {"sbyte_d16_hi", "d16_hi_i8", "i8_d16_hi", 1, true, High},
    {"short_d16", "d16_b16", "u16_d16", 2, false, Low},
    {"short_d16_hi", "d16_hi_b16", "u16_d16_hi", 2, false, High},
    {"dword", "b32", "b32", 4},
    {"dwordx2", "b64", "b64", 8},
    {"dwordx3", "b96", "b96", 12},
    {"dwordx4", "b128", "b128", 16},
};
const Row stores[] = {
    {"byte", "b8", "b8", 1},
    {"byte_d16_hi", "d16_hi_b8", "b8_d16_hi", 1, false, High},
    {"short", "b16", "b16", 2},
    {"short_d16_hi", "d16_hi_b16", "b16_d16_hi", 2, false, High},
    {"dword", "b32", "b32", 4},
    {"dwordx2", "b64", "b64", 8},
    {"dwordx3", "b96", "b96", 12},
    {"dwordx4", "b128", "b128", 16},
};

enum Space { Global, GlobalScalar, Flat, FlatLds, Buffer, Lds };
const char *const spaces[] = {"global_", "global_", "flat_",
                              "flat_",   "buffer_", "ds_"};

/// Lane l's address is 40 + 19 * l, its offset 5.
constexpr unsigned Start = 40, Step = 19, Offset = 5, Size = 2048;

struct Memory : testing::TestWithParam<const char *> {
  std::string chip = GetParam();
  bool gfx9 = chip[3] == '9', gfx10 = chip.rfind("gfx10", 0) == 0,
       gfx12 = chip.rfind("gfx12", 0) == 0;
  bool early = gfx9 || gfx10; ///< names before gfx11 gave all a type
  std::vector<std::string> names = mnemonics(GetParam());
  bool has(const std::string &name) const {
    return std::binary_search(names.begin(), names.end(), name);
  }
  std::string nullOffset() const { return gfx12 ? "null" : "0"; }

  /// A name and the text around the data registers.
  std::string line(Space s, const Row &r, bool store, std::string &name) {
    std::string what = store ? early && s == Lds ? "write_" : "store_"
                       : early && s == Lds ? "read_"
                                           : "load_";
    name = spaces[s] + what + (s == Lds ? r.ds : early ? r.early : r.late);
    std::string data = registers(4, (r.bytes + 3) / 4),
                address = s == Lds || s == GlobalScalar ? "v1" : "v[2:3]",
                offset = " offset:" + std::to_string(Offset);
    if (s == Buffer)
      return name + " " + data + ", v1, s[8:11], " + nullOffset() + " offen" +
             offset;
    std::string base = s == Global         ? ", off"
                       : s == GlobalScalar ? ", s[4:5]"
                                           : "";
    return name + " " +
           (store ? address + ", " + data : data + ", " + address) + base +
           offset;
  }
  void addresses(Space s, Bench &b, uint8_t *memory) {
    u64 flat =
        s == FlatLds ? greta::sim::SharedAperture : u64(uintptr_t(memory));
    for (unsigned l = 0; l < b.lanes; ++l) {
      unsigned at = Start + l * Step;
      b.row(1)[l] = at;
      b.row(2)[l] = u32(flat + at);
      b.row(3)[l] = u32((flat + at) >> 32);
    }
    b.wave.s[4] = u32(flat);
    b.wave.s[5] = u32(flat >> 32);
    resource(b, 8, memory, 0, Size, gfx9 ? 0 : 3u << 28);
  }
  void resource(Bench &b, unsigned sgpr, uint8_t *base, u32 high, u32 records,
                u32 flags) {
    u64 at = u64(uintptr_t(base));
    b.wave.s[sgpr] = u32(at);
    b.wave.s[sgpr + 1] = u32(at >> 32) | high;
    b.wave.s[sgpr + 2] = records;
    b.wave.s[sgpr + 3] = flags;
  }
};

/// The value that a load leaves in word w of its registers.
u32 loaded(const Row &r, const uint8_t *p, unsigned w, u32 before) {
  u32 x = 0;
  std::memcpy(&x, p + 4 * w, std::min(4u, r.bytes));
  if (r.sign && (x >> (8 * r.bytes - 1) & 1))
    x |= ~0u << 8 * r.bytes;
  if (r.part == Low)
    return (before & 0xffff0000) | (x & 0xffff);
  return r.part == High ? (before & 0xffff) | x << 16 : x;
}

TEST_P(Memory, LoadsAndStores) {
  struct Case {
    Space space;
    const Row *row;
    bool store;
  };
  std::vector<Case> cases;
  std::vector<std::string> lines;
  for (Space s : {Global, GlobalScalar, Flat, FlatLds, Buffer, Lds})
    for (bool store : {false, true})
      for (const Row &r :
           store ? llvm::ArrayRef<Row>(stores) : llvm::ArrayRef<Row>(loads)) {
        std::string name, text = line(s, r, store, name);
        ASSERT_TRUE(has(name)) << name;
        cases.push_back({s, &r, store});
        lines.push_back(text);
      }
  Bench b(GetParam(), !gfx9, lines);
  b.setLds(Size);
  uint8_t *memory = b.allocate(Size);
  for (unsigned k = 0; k < lines.size(); ++k) {
    SCOPED_TRACE(lines[k]);
    auto [space, row, store] = cases[k];
    bool lds = space == Lds || space == FlatLds;
    uint8_t *base = lds ? b.group.lds.data() : memory;
    std::mt19937 random(k);
    for (unsigned at = 0; at < Size; ++at)
      base[at] = uint8_t(random());
    b.fill(k);
    b.wave.setExec(0xfffffffffffff0f7ull);
    addresses(space, b, memory);
    std::vector<u32> before(b.row(4), b.row(8));
    std::vector<uint8_t> want(base, base + Size);
    b.run(k);
    for (unsigned l = 0; l < b.lanes; ++l) {
      bool on = b.wave.exec >> l & 1;
      unsigned at = Start + Offset + l * Step;
      for (unsigned w = 0; w < (row->bytes + 3) / 4; ++w) {
        u32 old = before[w * MaxLanes + l];
        if (!store) {
          ASSERT_EQ(b.row(4 + w)[l], on ? loaded(*row, &want[at], w, old) : old)
              << "lane " << l << " word " << w;
        } else if (on) {
          u32 x = row->part == High ? old >> 16 : old;
          std::memcpy(&want[at + 4 * w], &x, std::min(4u, row->bytes));
        }
      }
    }
    ASSERT_EQ(std::vector<uint8_t>(base, base + Size), want);
  }
}

TEST_P(Memory, TwoAddresses) {
  std::vector<std::string> lines;
  struct Case {
    unsigned bytes, scale;
    int kind; ///< 0 load, 1 store, 2 exchange
  };
  std::vector<Case> cases;
  for (unsigned bytes : {4u, 8u})
    for (bool far : {false, true})
      for (int kind : {0, 1, 2}) {
        const char *old[] = {"ds_read2", "ds_write2", "ds_wrxchg2"};
        const char *typed[] = {"ds_load_2addr", "ds_store_2addr",
                               "ds_storexchg_2addr"};
        unsigned words = bytes / 4;
        std::string name = early ? old[kind] : typed[kind];
        name += far ? early ? "st64" : "_stride64" : "";
        name += kind == 2 ? "_rtn" : "";
        name += "_b" + std::to_string(8 * bytes);
        std::string to = registers(12, 2 * words), x = registers(4, words),
                    y = registers(8, words);
        lines.push_back(name + " " + (kind == 1 ? "" : to + ", ") + "v1" +
                        (kind ? ", " + x + ", " + y : "") +
                        " offset0:1 offset1:3");
        cases.push_back({bytes, bytes * (far ? 64 : 1), kind});
      }
  Bench b(GetParam(), !gfx9, lines);
  b.setLds(8192);
  for (unsigned k = 0; k < lines.size(); ++k) {
    SCOPED_TRACE(lines[k]);
    Case c = cases[k];
    std::mt19937 random(k);
    for (uint8_t &x : b.group.lds)
      x = uint8_t(random());
    b.fill(k);
    b.wave.setExec(0xffffffff3fffffffull);
    for (unsigned l = 0; l < b.lanes; ++l)
      b.row(1)[l] = 64 + 32 * l;
    std::vector<uint8_t> want(b.group.lds);
    std::vector<u32> was(b.row(4), b.row(12));
    b.run(k);
    for (unsigned l = 0; l < b.lanes; ++l)
      for (unsigned part = 0; part < 2; ++part)
        for (unsigned w = 0; w < c.bytes / 4; ++w) {
          if (!(b.wave.exec >> l & 1))
            continue;
          uint8_t *p = &want[64 + 32 * l + (part ? 3 : 1) * c.scale + 4 * w];
          u32 old;
          std::memcpy(&old, p, 4);
          if (c.kind != 1)
            ASSERT_EQ(b.row(12 + part * c.bytes / 4 + w)[l], old)
                << "lane " << l;
          if (c.kind)
            std::memcpy(p, &was[(part * 4 + w) * MaxLanes + l], 4);
        }
    ASSERT_EQ(b.group.lds, want);
  }
}

TEST_P(Memory, OddLdsInstructions) {
  std::vector<std::string> lines = {"ds_append v4 offset:8",
                                    "ds_consume v4 offset:8",
                                    early ? "ds_read_addtid_b32 v4 offset:4"
                                          : "ds_load_addtid_b32 v4 offset:4",
                                    early ? "ds_write_addtid_b32 v4 offset:4"
                                          : "ds_store_addtid_b32 v4 offset:4",
                                    "ds_condxchg32_rtn_b64 v[4:5], v1, v[2:3]"};
  Bench b(GetParam(), !gfx9, lines);
  b.setLds(1024);
  u64 exec = 0xf0f0000000ffff0full & b.wave.fullMask;
  auto word = [&](unsigned at) {
    u32 x;
    std::memcpy(&x, &b.group.lds[at], 4);
    return x;
  };
  b.wave.s[greta::sim::slot::M0] = 32;
  b.wave.setExec(exec);
  u32 lanes = u32(llvm::popcount(exec)), counter = 100;
  for (unsigned k : {0u, 1u}) {
    b.fill(k);
    std::memcpy(&b.group.lds[40], &counter, 4);
    std::vector<u32> before(b.row(4), b.row(5));
    b.run(k);
    EXPECT_EQ(word(40), k ? counter - lanes : counter + lanes);
    for (unsigned l = 0; l < b.lanes; ++l)
      EXPECT_EQ(b.row(4)[l], exec >> l & 1 ? counter : before[l]);
  }
  b.fill(9);
  std::vector<u32> data(b.row(4), b.row(5));
  b.run(3);
  for (unsigned l = 0; l < b.lanes; ++l)
    if (exec >> l & 1)
      EXPECT_EQ(word(36 + 4 * l), data[l]);
  b.fill(10);
  b.run(2);
  for (unsigned l = 0; l < b.lanes; ++l)
    if (exec >> l & 1)
      EXPECT_EQ(b.row(4)[l], data[l]);
  for (unsigned l = 0; l < b.lanes; ++l) {
    b.row(1)[l] = 8 * l;
    b.row(2)[l] = l | (l & 1 ? 0x80000000 : 0);
    b.row(3)[l] = ~l;
    u32 old[2] = {1000 + l, 2000 + l};
    std::memcpy(&b.group.lds[8 * l], old, 8);
  }
  b.run(4);
  for (unsigned l = 0; l < b.lanes; ++l) {
    bool on = exec >> l & 1;
    EXPECT_EQ(word(8 * l), on && l & 1 ? l : 1000 + l);
    EXPECT_EQ(word(8 * l + 4), on ? ~l & 0x7fffffff : 2000 + l);
    if (on)
      EXPECT_TRUE(b.row(4)[l] == 1000 + l && b.row(5)[l] == 2000 + l);
  }
}

TEST_P(Memory, Scratch) {
  std::vector<std::string> lines;
  std::vector<const Row *> rows;
  for (bool store : {true, false})
    for (const Row &r :
         store ? llvm::ArrayRef<Row>(stores) : llvm::ArrayRef<Row>(loads)) {
      std::string name = std::string("scratch_") +
                         (store ? "store_" : "load_") +
                         (early ? r.early : r.late);
      std::string data = registers(4, (r.bytes + 3) / 4);
      lines.push_back(name + " " + (store ? "v1, " + data : data + ", v1") +
                      ", off offset:" + std::to_string(Offset));
      rows.push_back(&r);
    }
  Bench b(GetParam(), !gfx9, lines);
  constexpr unsigned bytes = 64;
  std::vector<uint8_t> memory(bytes * MaxLanes);
  b.wave.scratch = memory.data();
  b.group.scratchBytes = bytes;
  std::vector<std::vector<uint8_t>> want(MaxLanes, std::vector<uint8_t>(bytes));
  std::mt19937 random(3);
  for (unsigned round = 0; round < 20 * lines.size(); ++round) {
    unsigned k = random() % unsigned(lines.size());
    bool store = k < std::size(stores);
    const Row &r = *rows[k];
    SCOPED_TRACE(lines[k]);
    b.fill(round);
    for (unsigned l = 0; l < b.lanes; ++l)
      b.row(1)[l] = random() % (bytes - Offset - r.bytes);
    std::vector<u32> before(b.row(4), b.row(8));
    b.run(k);
    for (unsigned l = 0; l < b.lanes; ++l)
      for (unsigned w = 0; w < (r.bytes + 3) / 4; ++w) {
        uint8_t *p = &want[l][b.row(1)[l] + Offset];
        u32 old = before[w * MaxLanes + l];
        u32 x = r.part == High ? old >> 16 : old;
        if (store)
          std::memcpy(p + 4 * w, &x, std::min(4u, r.bytes));
        else
          ASSERT_EQ(b.row(4 + w)[l], loaded(r, p, w, old)) << "lane " << l;
      }
  }
}

TEST_P(Memory, ScalarLoads) {
  std::vector<std::string> lines;
  struct Case {
    unsigned words, narrow;
    bool buffer, sign;
  };
  std::vector<Case> cases;
  auto add = [&](const std::string &name, unsigned words, unsigned narrow,
                 bool sign, bool buffer) {
    if (!has(name))
      return;
    std::string to =
        words == 1 ? "s16" : "s[16:" + std::to_string(15 + words) + "]";
    lines.push_back(name + " " + to + (buffer ? ", s[8:11], " : ", s[4:5], ") +
                    "s6 offset:0x8");
    cases.push_back({words, narrow, buffer, sign});
  };
  for (bool buffer : {false, true}) {
    std::string prefix = buffer ? "s_buffer_load_" : "s_load_";
    const char *dwords[] = {"dword", "dwordx2", "dwordx4", "dwordx8",
                            "dwordx16"};
    unsigned count[] = {1, 2, 4, 8, 16};
    for (unsigned k = 0; k < 5; ++k)
      add(prefix + (early ? std::string(dwords[k])
                          : "b" + std::to_string(32 * count[k])),
          count[k], 0, false, buffer);
    add(prefix + "b96", 3, 0, false, buffer);
    for (unsigned narrow : {1u, 2u})
      for (bool sign : {false, true})
        add(prefix + (sign ? "i" : "u") + std::to_string(8 * narrow), 1, narrow,
            sign, buffer);
  }
  EXPECT_EQ(lines.size(), gfx12 ? 20u : 10u);
  Bench b(GetParam(), !gfx9, lines);
  uint8_t *memory = b.allocate(256);
  for (unsigned k = 0; k < 256; ++k)
    memory[k] = uint8_t(k * 37 + 129);
  for (unsigned k = 0; k < lines.size(); ++k) {
    SCOPED_TRACE(lines[k]);
    Case c = cases[k];
    u64 at = u64(uintptr_t(memory));
    b.wave.s[4] = u32(at);
    b.wave.s[5] = u32(at >> 32);
    b.wave.s[6] = 16;
    // The last words of the longest load are outside.
    resource(b, 8, memory, 0, 80, 0);
    std::fill_n(b.wave.s + 16, 16, 0x5a5a5a5a);
    b.run(k);
    for (unsigned w = 0; w < c.words; ++w) {
      u32 want = 0;
      unsigned from = 24 + 4 * w;
      if (!c.buffer || from + 4 <= 80)
        std::memcpy(&want, memory + from, c.narrow ? c.narrow : 4);
      if (c.sign && want >> (8 * c.narrow - 1) & 1)
        want |= ~0u << 8 * c.narrow;
      EXPECT_EQ(b.wave.s[16 + w], want) << "word " << w;
    }
  }
}

/// Addresses and ranges of buffers as the manuals state them, per word.
TEST_P(Memory, BufferAddresses) {
  std::string load = early ? "buffer_load_dwordx2" : "buffer_load_b64";
  std::string soffset = "s3";
  std::vector<std::string> lines = {
      load + " v[8:9], v[4:5], s[8:11], s3 idxen offen offset:4",
      load + " v[8:9], v4, s[8:11], s3 idxen offset:4",
      load + " v[8:9], v5, s[8:11], s3 offen offset:4",
      load + " v[8:9], off, s[8:11], s3 offset:4"};
  Bench b(GetParam(), !gfx9, lines);
  constexpr unsigned size = 1 << 15;
  uint8_t *memory = b.allocate(size);
  for (unsigned k = 0; k < size / 4; ++k)
    std::memcpy(memory + 4 * k, &(const u32 &)(k + 7), 4);
  std::mt19937 random(5);
  for (unsigned round = 0; round < 400; ++round) {
    unsigned form = round % 4;
    bool idxen = form < 2, offen = form % 2 == 0;
    bool tid = random() % 4 == 0, swizzle = random() % 2;
    u32 stride = random() % 3 ? 16 * (random() % 4) : 0;
    u32 elementCode = gfx9 ? 1 + random() % 3 : random() % 2 ? 1 : 3;
    u32 element = gfx9 ? 2u << elementCode : elementCode == 1 ? 4 : 16;
    if (gfx10) // has but one size, and says only whether
      element = 4;
    u32 strideCode = random() % 4, indexStride = 8u << strideCode;
    u32 select = random() % 4, records = random() % 64;
    if (select == 3 || (gfx9 && !stride))
      records = random() % 256;
    u32 scalar = 4 * (random() % 6);
    u32 flags = strideCode << 21 | u32(tid) << 23;
    u32 high = stride << 16;
    if (gfx9) {
      flags |= elementCode << 19;
      high |= u32(swizzle) << 31;
    } else {
      flags |= select << 28;
      high |= !swizzle ? 0 : gfx10 ? 1u << 31 : elementCode << 30;
    }
    resource(b, 8, memory, high, records, flags);
    b.wave.s[3] = scalar;
    b.fill(round);
    for (unsigned l = 0; l < b.lanes; ++l) {
      unsigned index = random() % 40, offset = 4 * (random() % 12);
      if (idxen)
        b.row(4)[l] = index;
      if (offen)
        b.row(5)[l] = offset;
    }
    std::vector<u32> indices(b.row(4), b.row(5)), offsets(b.row(5), b.row(6));
    b.run(form);
    for (unsigned l = 0; l < b.lanes; ++l)
      for (unsigned w = 0; w < 2; ++w) {
        u64 index = (idxen ? indices[l] : 0) + (tid ? l : 0);
        u64 offset = 4 + (offen ? offsets[l] : 0) + 4 * w, total = offset;
        u64 left = records > scalar ? records - scalar : 0;
        bool fits = offset + 4 <= stride;
        bool in;
        if (gfx9)
          in = stride && (idxen || tid) ? index < records && (!swizzle || fits)
                                        : offset + 4 <= left;
        else
          in = select == 0         ? index < records && fits
               : select == 1       ? index < records
               : select == 2       ? records != 0
               : swizzle && stride ? index < records && fits
                                   : offset + 4 <= left;
        u64 at = early ? scalar : 0;
        if (swizzle) {
          // An element holds both words; otherwise each has its own.
          u32 past = element >= 8 ? 4 * w : 0;
          total += (early ? 0 : scalar) - past;
          at += past;
          at += (index / indexStride * stride + total / element * element) *
                    indexStride +
                index % indexStride * element + total % element;
        } else {
          at = scalar + index * stride + offset;
        }
        ASSERT_EQ(b.row(8 + w)[l], in ? u32(at / 4 + 7) : 0)
            << lines[form] << " lane " << l << " word " << w << " stride "
            << stride << " swizzle " << swizzle << " element " << element
            << " index stride " << indexStride << " records " << records
            << " select " << select << " tid " << tid << " index " << index
            << " offset " << offset << " scalar " << scalar;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, Memory, testing::ValuesIn(everyChip()),
                         [](const auto &info) { return info.param; });

} // namespace
