//===- PacketsTest.cpp - packets of the virtual Radeon --------------------===//
//
// In: indirect buffers of single packets, right and wrong. Out: what memory
// holds behind them, or the report that loses the context.
//
//===----------------------------------------------------------------------===//
#include "Card.h"

using namespace greta::radeon;
using namespace greta::radeon::test;
using Words = std::vector<uint32_t>;

namespace {

struct Packets : Card {
  Memory data = allocate(4096);
  uint32_t lo(unsigned word = 0) { return low(data.address + 4 * word); }
  uint32_t hi() { return high(data.address); }
  std::string one(unsigned opcode, const Words &body) {
    Words words;
    add(words, opcode, body);
    return run(words);
  }
};
#define EXPECT_REPORT(report, text)                                            \
  EXPECT_NE(std::string::npos, report.find(text)) << report

TEST_F(Packets, PaddingAndStateGoBy) {
  Words words = {2u << 30, 0xffff1000};
  add(words, 0x10, {1, 2, 3});
  for (unsigned opcode :
       {0x12, 0x13, 0x26, 0x28, 0x2a, 0x2f, 0x42, 0x43, 0x58, 0x59, 0x5d, 0x68,
        0x69, 0x79, 0x7a, 0x95, 0xb8, 0xb9, 0xbe})
    add(words, opcode, {0, 0, 0});
  add(words, 0x46, {4 << 8 | 7}); // CS_PARTIAL_FLUSH
  EXPECT_EQ("", run(words));
}

TEST_F(Packets, WriteData) {
  Words words;
  add(words, 0x37, {5 << 8, lo(), hi(), 11, 12});
  add(words, 0x37, {5 << 8 | 1 << 16, lo(2), hi(), 13, 14});
  add(words, 0x37, {0, 0, 0, 15}); // a register
  EXPECT_EQ("", run(words));
  EXPECT_EQ(11u, data.as()[0]);
  EXPECT_EQ(12u, data.as()[1]);
  EXPECT_EQ(14u, data.as()[2]);
  EXPECT_REPORT(one(0x37, {3 << 8, lo(), hi(), 1}),
                "WRITE_DATA to destination 3 is not simulated");
}

TEST_F(Packets, OutsideEveryBuffer) {
  EXPECT_REPORT(one(0x37, {5 << 8, lo(1023), hi(), 11, 12}),
                "WRITE_DATA: 8 bytes at");
  Words none = {0};
  uint64_t number = 0;
  testing::internal::CaptureStderr();
  // The context is lost for good.
  EXPECT_EQ(ENODATA, submit(data, 1, number));
  EXPECT_EQ("", testing::internal::GetCapturedStderr());
}

TEST_F(Packets, IndirectBufferOutsideEveryBuffer) {
  testing::internal::CaptureStderr();
  uint64_t number = 0;
  EXPECT_EQ(0, submit(data, 1025, number));
  EXPECT_TRUE(wait(number));
  std::string report = testing::internal::GetCapturedStderr();
  EXPECT_REPORT(report, "indirect buffer: 4100 bytes at");
  EXPECT_REPORT(report, "are outside every buffer");
}

TEST_F(Packets, CopyData) {
  data.as()[0] = 21;
  data.as()[1] = 22;
  Words words;
  add(words, 0x40, {1 | 5 << 8, lo(), hi(), lo(8), hi()});
  add(words, 0x40, {2 | 2 << 8 | 1 << 16, lo(), hi(), lo(10), hi()});
  add(words, 0x40, {5 | 5 << 8 | 1 << 16, 7, 8, lo(12), hi()});
  add(words, 0x40, {9 | 5 << 8 | 1 << 16, 0, 0, lo(14), hi()});
  add(words, 0x40, {0 | 5 << 8, 0, 0, lo(), hi()}); // a register
  uint64_t before = machine->clock();
  machine->pass(5);
  EXPECT_EQ("", run(words));
  EXPECT_EQ(21u, data.as()[8]);
  EXPECT_EQ(0u, data.as()[9]);
  EXPECT_EQ(21u, data.as()[10]);
  EXPECT_EQ(22u, data.as()[11]);
  EXPECT_EQ(7u | 8ull << 32, *reinterpret_cast<uint64_t *>(data.as() + 12));
  EXPECT_EQ(before + 5, *reinterpret_cast<uint64_t *>(data.as() + 14));
  EXPECT_EQ(0u, data.as()[0]);
  EXPECT_REPORT(one(0x40, {3 | 5 << 8, 0, 0, lo(), hi()}),
                "COPY_DATA from source 3 is not simulated");
}

TEST_F(Packets, CopyDataToNowhere) {
  EXPECT_REPORT(one(0x40, {5 | 3 << 8, 0, 0, lo(), hi()}),
                "COPY_DATA to destination 3 is not simulated");
}

TEST_F(Packets, DmaData) {
  for (unsigned k = 0; k < 8; ++k)
    data.as()[k] = 100 + k;
  Words words;
  add(words, 0x50, {3 << 29 | 3 << 20, lo(), hi(), lo(16), hi(), 18});
  add(words, 0x50, {2 << 29 | 3 << 20, 0x01020304, 0, lo(32), hi(), 6});
  add(words, 0x50, {3 << 29 | 2 << 20, lo(), hi(), lo(), hi(), 64}); // prefetch
  uint64_t before = machine->clock();
  EXPECT_EQ("", run(words));
  EXPECT_EQ(103u, data.as()[19]);
  EXPECT_EQ(104u, data.as()[20]); // 18 bytes: half of it
  EXPECT_EQ(0u, data.as()[21]);
  EXPECT_EQ(0x01020304u, data.as()[32]);
  EXPECT_EQ(0x0304u, data.as()[33]);
  EXPECT_LT(before, machine->clock());
  EXPECT_REPORT(one(0x50, {1 << 29, 0, 0, lo(), hi(), 4}),
                "DMA_DATA has source 1 and target 0, which are not simulated");
}

TEST_F(Packets, DmaDataOutside) {
  EXPECT_REPORT(one(0x50, {3 << 29 | 3 << 20, lo(), hi(), 64, 0, 8}),
                "target of a copy: 8 bytes at 0x40");
}

TEST_F(Packets, ReleaseMem) {
  Words words;
  machine->pass(1);
  add(words, 0x49, {5 << 8, 1u << 29, lo(), hi(), 31, 32, 0});
  add(words, 0x49, {5 << 8, 2u << 29, lo(2), hi(), 33, 34, 0});
  add(words, 0x49, {5 << 8, 3u << 29, lo(4), hi(), 0, 0, 0});
  add(words, 0x49, {5 << 8, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ("", run(words));
  EXPECT_EQ(31u, data.as()[0]);
  EXPECT_EQ(0u, data.as()[1]);
  EXPECT_EQ(33u, data.as()[2]);
  EXPECT_EQ(34u, data.as()[3]);
  EXPECT_EQ(machine->clock(), *reinterpret_cast<uint64_t *>(data.as() + 4));
  EXPECT_REPORT(one(0x49, {0, 5u << 29, lo(), hi(), 0, 0, 0}),
                "RELEASE_MEM with data selection 5 is not simulated");
}

TEST_F(Packets, WaitRegMem) {
  data.as()[0] = 0x105;
  Words words;
  for (auto [function, value] :
       {std::pair(0, 9), {1, 6}, {2, 5}, {3, 5}, {4, 6}, {5, 5}, {6, 4}})
    add(words, 0x3c,
        {uint32_t(function) | 1 << 4, lo(), hi(), uint32_t(value), 0xff, 4});
  add(words, 0x3c, {3, 0, 0, 1, 1, 4}); // a register
  EXPECT_EQ("", run(words));
  machine->hangMilliseconds = 20;
  EXPECT_REPORT(one(0x3c, {3 | 1 << 4, lo(), hi(), 7, ~0u, 4}),
                "did not come in 20 ms");
  machine->hangMilliseconds = 10000;
}

TEST_F(Packets, AtomicMem) {
  for (unsigned k = 0; k < 8; ++k)
    data.as()[2 * k] = 12;
  Words words;
  unsigned at = 0;
  for (uint32_t operation : {7, 15, 16, 21, 22, 23, 72})
    add(words, 0x1e, {operation, lo(2 * at++), hi(), 10, 0, 12, 0, 0});
  add(words, 0x1e, {112, lo(14), hi(), 13, 0, 0, 0, 0}); // 64 bits
  EXPECT_EQ("", run(words));
  const uint32_t want[] = {10, 22, 2, 8, 14, 6, 10, ~0u};
  for (unsigned k = 0; k < 8; ++k)
    EXPECT_EQ(want[k], data.as()[2 * k]) << k;
  EXPECT_EQ(~0u, data.as()[15]);
  EXPECT_REPORT(one(0x1e, {3, lo(), hi(), 0, 0, 0, 0, 0}),
                "ATOMIC_MEM with operation 3 is not simulated");
}

TEST_F(Packets, ConditionsAndPredication) {
  data.as()[1] = 1;
  Words words;
  auto write = [&](unsigned word, bool predicate) {
    add(words, 0x37, {5 << 8, lo(word), hi(), 1}, predicate);
  };
  add(words, 0x22, {lo(0), hi(), 0, 5}); // COND_EXEC: leaves the next one out
  write(8, false);
  add(words, 0x22, {lo(1), hi(), 0, 5});
  write(9, false);
  add(words, 0x20, {4 << 16 | 1 << 8, lo(0), hi()}); // drawn if true: it isn't
  write(10, true);
  write(11, false);
  add(words, 0x20, {4 << 16, lo(0), hi()}); // drawn if false
  write(12, true);
  add(words, 0x20, {3 << 16 | 1 << 8, lo(0), hi()}); // 64 bits: true
  write(13, true);
  add(words, 0x20, {0, 0, 0});
  write(14, true);
  EXPECT_EQ("", run(words));
  const uint32_t want[] = {0, 1, 0, 1, 1, 1, 1};
  for (unsigned k = 0; k < 7; ++k)
    EXPECT_EQ(want[k], data.as()[8 + k]) << k;
  EXPECT_REPORT(one(0x20, {1 << 16, lo(), hi()}),
                "SET_PREDICATION with operation 1 is not simulated");
}

TEST_F(Packets, IndirectBuffersCallAndChain) {
  auto write = [&](unsigned word) {
    Words words;
    add(words, 0x37, {5 << 8, lo(word), hi(), 1});
    return words;
  };
  Memory called = packets(write(0)), chained = packets(write(1));
  Words words;
  add(words, 0x3f, {low(called.address), high(called.address), 5});
  add(words, 0x3f,
      {low(chained.address), high(chained.address), 5 | 1 << 20 | 1 << 23});
  Words never = write(2); // behind a chain
  words.insert(words.end(), never.begin(), never.end());
  EXPECT_EQ("", run(words));
  EXPECT_EQ(1u, data.as()[0]);
  EXPECT_EQ(1u, data.as()[1]);
  EXPECT_EQ(0u, data.as()[2]);
}

TEST_F(Packets, CallsThatCallThemselves) {
  Memory m = allocate(64);
  m.as()[0] = header(0x3f, 3);
  m.as()[1] = low(m.address);
  m.as()[2] = high(m.address);
  m.as()[3] = 4;
  EXPECT_REPORT(one(0x3f, {low(m.address), high(m.address), 4}),
                "call each other deeper than the hardware allows");
}

TEST_F(Packets, ChainsThatChainThemselves) {
  Memory m = allocate(64);
  m.as()[0] = header(0x3f, 3);
  m.as()[1] = low(m.address);
  m.as()[2] = high(m.address);
  m.as()[3] = 4 | 1 << 20;
  EXPECT_REPORT(one(0x3f, {low(m.address), high(m.address), 4 | 1 << 20}),
                "chain in a circle");
}

TEST_F(Packets, Unknown) {
  EXPECT_REPORT(one(0x99, {0}), "packet with opcode 0x99 is not simulated");
}
TEST_F(Packets, Drawing) {
  EXPECT_REPORT(one(0x2d, {3, 0}),
                "packet with opcode 0x2d is not simulated (drawing is not");
}
TEST_F(Packets, Counters) {
  EXPECT_REPORT(one(0x46, {0x15 | 1 << 8, lo(), hi()}),
                "EVENT_WRITE of counters (occlusion");
}
TEST_F(Packets, TooShort) {
  EXPECT_REPORT(one(0x49, {0, 0}),
                "opcode 0x49: the packet is too short, 2 dwords and not 6");
}
TEST_F(Packets, CutOff) {
  EXPECT_REPORT(run({header(0x37, 5), 0}), "is none of type 3, or is cut off");
}
TEST_F(Packets, TypeZero) {
  EXPECT_REPORT(run({0x00001234, 0}), "packet 0x00001234 at 0x30");
}

} // namespace
