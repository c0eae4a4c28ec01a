//===- DispatchTest.cpp - compute dispatches of the virtual Radeon --------===//
//
// In: machine code in memory, compute registers, dispatch packets. Out: the
// words that work items have written, or the report that loses the context.
//
//===----------------------------------------------------------------------===//
#include "../sim/Assembler.h"
#include "Card.h"

using namespace greta::radeon;
using namespace greta::radeon::test;
using Words = std::vector<uint32_t>;

namespace {

constexpr unsigned Columns = 16, Rows = 8;

/// Work items of workgroups of 4x2 store `value` at their places in a table.
std::string marking(unsigned value) {
  return " v_and_b32 v1, 0x3ff, v0\n v_bfe_u32 v4, v0, 10, 10\n"
         " v_lshl_add_u32 v5, s3, 1, v4\n v_lshl_add_u32 v2, s2, 2, v1\n"
         " v_lshl_add_u32 v2, v5, 4, v2\n v_lshlrev_b32 v2, 2, v2\n"
         " v_mov_b32 v3, " +
         std::to_string(value) +
         "\n global_store_b32 v2, v3, s[0:1]\n s_endpgm\n";
}

struct Dispatch : Card {
  Memory table = allocate(Columns * Rows * 4), code = allocate(4096);

  void put(const std::string &source) {
    std::vector<uint8_t> bytes = greta::sim::test::assemble(
        "gfx1103", /*wave32=*/true,
        source + " s_code_end\n s_code_end\n s_code_end\n s_code_end\n");
    ASSERT_LE(bytes.size(), code.bytes);
    std::memcpy(code.as(), bytes.data(), bytes.size());
  }
  static void set(Words &to, unsigned address, const Words &values) {
    Words body = {(address - 0xb000) / 4};
    body.insert(body.end(), values.begin(), values.end());
    add(to, 0x76, body);
  }
  Words registers(uint32_t x = 4, uint32_t y = 2) {
    Words words;
    set(words, 0xb830, {low(code.address >> 8), low(code.address >> 40)});
    set(words, 0xb848, {0x000c0000, 2 << 1 | 3 << 7 | 1 << 11});
    set(words, 0xb81c, {x, y, 1});
    set(words, 0xb900, {low(table.address), high(table.address)});
    return words;
  }
  /// `#` where a work item was, a line each row.
  std::string picture(uint32_t value = 1) {
    std::string text;
    for (unsigned r = 0; r < Rows; ++r) {
      std::string line;
      for (unsigned c = 0; c < Columns; ++c)
        line += table.as()[r * Columns + c] == value ? '#' : '.';
      text += line + "\n";
    }
    return text;
  }
  static std::string rectangle(unsigned left, unsigned top, unsigned right,
                               unsigned bottom) {
    std::string text;
    for (unsigned r = 0; r < Rows; ++r) {
      for (unsigned c = 0; c < Columns; ++c)
        text += r >= top && r < bottom && c >= left && c < right ? '#' : '.';
      text += "\n";
    }
    return text;
  }
};
constexpr uint32_t Enable = 1, Partial = 2, AtZero = 4, Threads = 32,
                   Wave32 = 1 << 15;

TEST_F(Dispatch, WholeWorkgroups) {
  put(marking(1));
  Words words = registers();
  add(words, 0x15, {3, 2, 1, Enable | AtZero | Wave32});
  uint64_t before = machine->clock();
  EXPECT_EQ("", run(words));
  EXPECT_EQ(rectangle(0, 0, 12, 4), picture());
  EXPECT_LT(before, machine->clock());
}

TEST_F(Dispatch, Wave64) {
  put(marking(1));
  Words words = registers();
  add(words, 0x15, {3, 2, 1, Enable | AtZero});
  // The text was assembled for waves of 32, and uses nothing of them.
  EXPECT_EQ("", run(words));
  EXPECT_EQ(rectangle(0, 0, 12, 4), picture());
}

TEST_F(Dispatch, NotEnabledAndEmpty) {
  put(marking(1));
  Words words = registers();
  add(words, 0x15, {3, 2, 1, AtZero | Wave32});
  add(words, 0x15, {3, 0, 1, Enable | AtZero | Wave32});
  EXPECT_EQ("", run(words));
  EXPECT_EQ(rectangle(0, 0, 0, 0), picture());
}

TEST_F(Dispatch, StartsBehindTheFirst) {
  put(marking(1));
  Words words = registers();
  set(words, 0xb810, {1, 2, 0});
  add(words, 0x15, {3, 3, 1, Enable | Wave32});
  EXPECT_EQ("", run(words));
  EXPECT_EQ(rectangle(4, 4, 12, 6), picture());
}

TEST_F(Dispatch, PartialWorkgroups) {
  put(marking(1));
  Words words = registers(4 | 3 << 16, 2 | 1 << 16);
  add(words, 0x15, {3, 3, 1, Enable | AtZero | Partial | Wave32});
  EXPECT_EQ("", run(words));
  EXPECT_EQ(rectangle(0, 0, 11, 5), picture());
}

TEST_F(Dispatch, SizesInWorkItems) {
  put(marking(1));
  Words words = registers();
  add(words, 0x15, {13, 3, 1, Enable | AtZero | Threads | Wave32});
  EXPECT_EQ("", run(words));
  EXPECT_EQ(rectangle(0, 0, 13, 3), picture());
}

TEST_F(Dispatch, Indirect) {
  put(marking(1));
  Memory size = allocate(64);
  size.as()[4] = 2;
  size.as()[5] = 3;
  size.as()[6] = 1;
  Words words = registers();
  add(words, 0x11, {1, low(size.address), high(size.address)});
  add(words, 0x16, {16, Enable | AtZero | Wave32});
  EXPECT_EQ("", run(words));
  EXPECT_EQ(rectangle(0, 0, 8, 6), picture());
  size.as()[4] = 4;
  words = registers();
  add(words, 0x16,
      {low(size.address + 16), high(size.address), Enable | AtZero | Wave32});
  EXPECT_EQ("", run(words));
  EXPECT_EQ(rectangle(0, 0, 16, 6), picture());
}

TEST_F(Dispatch, RegistersInPairsAndFromMemory) {
  put(marking(1));
  Memory values = allocate(64);
  values.as()[0] = low(table.address);
  values.as()[1] = high(table.address);
  Words words = registers();
  set(words, 0xb900, {1, 1});
  add(words, 0xba, {(0xb81c - 0xb000) / 4, 3, (0xb820 - 0xb000) / 4, 1});
  add(words, 0xbb,
      {2, (0xb81c - 0xb000) / 4 | (0xb820 - 0xb000) / 4 << 16, 2, 2});
  add(words, 0x63,
      {low(values.address), high(values.address), (0xb900 - 0xb000) / 4, 2});
  add(words, 0x15, {1, 1, 1, Enable | AtZero | Wave32});
  EXPECT_EQ("", run(words));
  EXPECT_EQ(rectangle(0, 0, 2, 2), picture());
}

TEST_F(Dispatch, CodeThatChanges) {
  for (unsigned value : {1, 2}) {
    put(marking(value));
    Words words = registers();
    add(words, 0x15, {1, 1, 1, Enable | AtZero | Wave32});
    EXPECT_EQ("", run(words));
    EXPECT_EQ(rectangle(0, 0, 4, 2), picture(value));
  }
}

TEST_F(Dispatch, ReportsOfTheSimulator) {
  put(marking(1));
  Words words = registers();
  set(words, 0xb900, {low(table.address + 4096), high(table.address)});
  add(words, 0x15, {1, 1, 1, Enable | AtZero | Wave32});
  std::string report = run(words);
  EXPECT_NE(std::string::npos, report.find("kernel 'compute shader at 0x30"))
      << report;
  EXPECT_NE(std::string::npos, report.find("'global_store_b32 v2, v3, s[0:1]'"))
      << report;
}

TEST_F(Dispatch, EndlessLoops) {
  put("again:\n s_branch again\n");
  Words words = registers();
  add(words, 0x15, {1, 1, 1, Enable | AtZero | Wave32});
  machine->waveBudget = 1000000;
  std::string report = run(words);
  machine->waveBudget = 200000000;
  EXPECT_NE(std::string::npos, report.find("used up its instruction budget"))
      << report;
}

TEST_F(Dispatch, NoWorkItems) {
  put(marking(1));
  Words words = registers(0, 2);
  add(words, 0x15, {1, 1, 1, Enable | AtZero | Wave32});
  std::string report = run(words);
  EXPECT_NE(std::string::npos,
            report.find("a dispatch of workgroups without work items"))
      << report;
}

TEST_F(Dispatch, NoCode) {
  Words words = registers();
  set(words, 0xb830, {0, 0});
  add(words, 0x15, {1, 1, 1, Enable | AtZero | Wave32});
  std::string report = run(words);
  EXPECT_NE(std::string::npos, report.find("a compute shader: 4 bytes at 0x0"))
      << report;
}

TEST_F(Dispatch, NothingButPadding) {
  put("");
  Words words = registers();
  add(words, 0x15, {1, 1, 1, Enable | AtZero | Wave32});
  std::string report = run(words);
  EXPECT_NE(std::string::npos,
            report.find("machine code: there is none at its entry"))
      << report;
}

} // namespace
