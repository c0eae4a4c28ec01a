//===- IsaGfx9Test.cpp - memory instructions that only gfx9 has -----------===//
//
// Scalar stores and atomics, which AMD's own assembly uses, and loads from
// global memory to LDS, against the bytes that lie there.
//
//===----------------------------------------------------------------------===//
#include "MatrixBench.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cstring>

using namespace greta::sim::test;

namespace {

using u32 = uint32_t;
using u64 = uint64_t;

/// New value of an atomic; `c` is what cmpswap compares with.
using Operation = u64 (*)(u64 old, u64 x, u64 c);
const std::pair<const char *, Operation> atomics[] = {
    {"swap", [](u64, u64 x, u64) { return x; }},
    {"cmpswap", [](u64 old, u64 x, u64 c) { return old == c ? x : old; }},
    {"add", [](u64 old, u64 x, u64) { return old + x; }},
    {"sub", [](u64 old, u64 x, u64) { return old - x; }},
    {"umin", [](u64 old, u64 x, u64) { return std::min(old, x); }},
    {"umax", [](u64 old, u64 x, u64) { return std::max(old, x); }},
    // The values are positive.
    {"smin", [](u64 old, u64 x, u64) { return std::min(old, x); }},
    {"smax", [](u64 old, u64 x, u64) { return std::max(old, x); }},
    {"and", [](u64 old, u64 x, u64) { return old & x; }},
    {"or", [](u64 old, u64 x, u64) { return old | x; }},
    {"xor", [](u64 old, u64 x, u64) { return old ^ x; }},
    {"inc", [](u64 old, u64 x, u64) { return old >= x ? 0 : old + 1; }},
    {"dec", [](u64 old, u64 x, u64) { return !old || old > x ? x : old - 1; }},
};

class Gfx9 : public testing::TestWithParam<const char *> {};

/// The data begin at s16, the address is s[4:5] or the resource s[8:11] and s6
/// and 8.
std::string scalar(bool buffer, const std::string &name, unsigned words,
                   bool returns = false) {
  return (buffer ? "s_buffer_" : "s_") + name + " s" +
         (words == 1 ? "16" : "[16:" + std::to_string(15 + words) + "]") +
         (buffer ? ", s[8:11]" : ", s[4:5]") + ", s6 offset:0x8" +
         (returns ? " glc" : "");
}
void address(Bench &b, uint8_t *memory, u32 records, u32 start) {
  u64 at = u64(uintptr_t(memory));
  for (unsigned s : {4, 8}) {
    b.wave.s[s] = u32(at);
    b.wave.s[s + 1] = u32(at >> 32);
  }
  b.wave.s[6] = start;
  b.wave.s[10] = records;
  b.wave.s[11] = 0;
}

TEST_P(Gfx9, ScalarStores) {
  constexpr u32 size = 64, records = 40;
  std::vector<std::string> lines;
  for (bool buffer : {false, true}) {
    lines.push_back(scalar(buffer, "store_dword", 1));
    lines.push_back(scalar(buffer, "store_dwordx2", 2));
    lines.push_back(scalar(buffer, "store_dwordx4", 4));
  }
  Bench b(GetParam(), false, lines);
  uint8_t *memory = b.allocate(size);
  for (unsigned k = 0; k < lines.size(); ++k)
    for (u32 start : {0u, 16u, 28u, 40u}) { // 28: the end lies inside
      SCOPED_TRACE(lines[k] + " at " + std::to_string(start));
      unsigned words = 1u << k % 3;
      std::fill(memory, memory + size, uint8_t(0xee));
      std::vector<uint8_t> want(memory, memory + size);
      address(b, memory, records, start);
      for (unsigned w = 0; w < words; ++w) {
        b.wave.s[16 + w] = 1000 * k + w;
        u32 at = start + 8 + 4 * w;
        if (k < 3 || at + 4 <= records)
          std::memcpy(&want[at], &b.wave.s[16 + w], 4);
      }
      b.run(k);
      EXPECT_EQ(std::vector<uint8_t>(memory, memory + size), want);
    }
}

TEST_P(Gfx9, ScalarAtomics) {
  constexpr u32 size = 64, records = 40, start = 16, outside = 32;
  struct Case {
    Operation apply;
    unsigned bytes;
    bool buffer, returns;
  };
  std::vector<Case> cases;
  std::vector<std::string> lines;
  for (bool buffer : {false, true})
    for (auto [name, apply] : atomics)
      for (unsigned words : {1u, 2u})
        for (bool returns : {false, true}) {
          std::string full =
              std::string("atomic_") + name + (words == 2 ? "_x2" : "");
          bool compares = name == std::string("cmpswap");
          lines.push_back(
              scalar(buffer, full, compares ? 2 * words : words, returns));
          cases.push_back({apply, 4 * words, buffer, returns});
        }
  Bench b(GetParam(), false, lines);
  uint8_t *memory = b.allocate(size);
  for (unsigned k = 0; k < lines.size(); ++k)
    // Below, equal to and above the old value; out of the buffer's range.
    for (u64 x : {u64(5), u64(9), u64(0x70000000)})
      for (u32 from : {start, outside}) {
        const Case &c = cases[k];
        SCOPED_TRACE(lines[k] + " with " + std::to_string(x));
        u64 old = 9, compared = x == 5 ? 9 : 8;
        bool inside = !c.buffer || from == start;
        std::fill(memory, memory + size, uint8_t(0xee));
        std::memcpy(memory + from + 8, &old, 8);
        std::vector<uint8_t> want(memory, memory + size);
        address(b, memory, records, from);
        std::memcpy(&b.wave.s[16], &x, c.bytes);
        std::memcpy(&b.wave.s[16 + c.bytes / 4], &compared, c.bytes);
        std::vector<u32> data(&b.wave.s[16], &b.wave.s[20]);
        u64 result = inside ? c.apply(old, x, compared) : old;
        std::memcpy(&want[from + 8], &result, c.bytes);
        u64 seen = inside ? old : 0;
        if (c.returns)
          std::memcpy(data.data(), &seen, c.bytes);
        b.run(k);
        EXPECT_EQ(std::vector<uint8_t>(memory, memory + size), want);
        EXPECT_EQ(std::vector<u32>(&b.wave.s[16], &b.wave.s[20]), data);
      }
}

/// gfx90a spells them as loads with the modifier `lds`. Lane l's data go to M0,
/// the offset and l words; no register changes.
TEST_P(Gfx9, GlobalLoadsToLds) {
  bool modifier = GetParam() == std::string("gfx90a");
  constexpr unsigned size = 1024, offset = 8, m0 = 64;
  const std::pair<const char *, u32 (*)(const uint8_t *)> kinds[] = {
      {"ubyte", [](const uint8_t *p) { return u32(p[0]); }},
      {"sbyte", [](const uint8_t *p) { return u32(int8_t(p[0])); }},
      {"ushort", [](const uint8_t *p) { return u32(p[0] | p[1] << 8); }},
      {"sshort",
       [](const uint8_t *p) { return u32(int16_t(p[0] | p[1] << 8)); }},
      {"dword", [](const uint8_t *p) {
         u32 x;
         std::memcpy(&x, p, 4);
         return x;
       }}};
  std::vector<std::string> lines;
  for (auto [name, value] : kinds)
    lines.push_back((modifier ? "global_load_" : "global_load_lds_") +
                    std::string(name) + " v[2:3], off offset:" +
                    std::to_string(offset) + (modifier ? " lds" : ""));
  Bench b(GetParam(), false, lines);
  b.setLds(size);
  uint8_t *memory = b.allocate(size);
  for (unsigned k = 0; k < lines.size(); ++k) {
    SCOPED_TRACE(lines[k]);
    for (unsigned at = 0; at < size; ++at)
      memory[at] = uint8_t(at * 31 + k);
    std::fill(b.group.lds.begin(), b.group.lds.end(), uint8_t(0xee));
    b.fill(k);
    b.wave.setExec(0xfffffffffffff0f7ull);
    b.wave.s[greta::sim::slot::M0] = m0;
    std::vector<uint8_t> want(b.group.lds);
    for (unsigned l = 0; l < b.lanes; ++l) {
      u64 at = u64(uintptr_t(memory)) + 11 * l;
      b.row(2)[l] = u32(at);
      b.row(3)[l] = u32(at >> 32);
      u32 x = kinds[k].second(memory + 11 * l + offset);
      if (b.wave.exec >> l & 1)
        std::memcpy(&want[m0 + offset + 4 * l], &x, 4);
    }
    std::vector<u32> before(b.row(0), b.row(8));
    b.run(k);
    EXPECT_EQ(b.group.lds, want);
    EXPECT_EQ(std::vector<u32>(b.row(0), b.row(8)), before);
  }
}

// The source's bit that the second operand names becomes the bit of MODE; what
// it does to a program is in ChecksMoreTest.cpp.
TEST_P(Gfx9, VectorSkip) {
  Bench b(GetParam(), false,
          {"s_setvskip s4, 2", "s_setvskip s4, s6", "s_setvskip s4, 0"});
  b.wave.s[4] = 0x24; // bits 2 and 5
  b.wave.s[6] = 37;   // five bits count
  const uint32_t before = b.wave.mode & ~(1u << 28);
  for (unsigned line : {0u, 1u}) {
    b.wave.mode = before;
    b.run(line);
    EXPECT_EQ(b.wave.mode, before | 1u << 28) << line;
  }
  b.run(2);
  EXPECT_EQ(b.wave.mode, before);
}

INSTANTIATE_TEST_SUITE_P(Chips, Gfx9,
                         testing::Values("gfx90a", "gfx942", "gfx950"),
                         [](const auto &info) { return info.param; });

} // namespace
