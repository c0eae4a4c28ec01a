//===- ExchangeTest.cpp - memory, shared memory and shuffles --------------===//

#include "Harness.h"

using namespace greta::test;

namespace {

/// Distinct bit patterns, as far as the type has them.
template <typename T> std::vector<T> patterns(size_t n) {
  std::vector<T> values(n);
  for (size_t i = 0; i < n; ++i)
    values[i] = static_cast<T>((i + 1) * 0x9e3779b97f4a7c15ull >> 8);
  return values;
}

/// %thread is the index of the lane in the workgroup.
const char *const prologue = R"(
  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %wave_size = arith.constant {{wave}} : i32
  %first = arith.muli %wave, %wave_size : i32
  %thread = arith.addi %first, %lane : i32
)";

class Exchange : public HsacoTest {
protected:
  template <typename T> void shuffleXor(const std::string &type) {
    SCOPED_TRACE(type);
    unsigned block = 2 * wave();
    std::string text = R"(
greta_tile.func @shuffle(%x: !greta_tile.ptr<{{type}}>, %y: !greta_tile.ptr<{{type}}>)
    attributes {wave_size = {{wave}} : i32, waves = 2 : i32} {)";
    text += prologue;
    text += "  %v = greta_tile.ptr_load %x[%thread] align {{align}} : "
            "!greta_tile.ptr<{{type}}> -> {{type}}\n";
    for (unsigned mask = 1; mask < wave(); ++mask) {
      std::string step = R"(
  %s{{m}} = greta_tile.shuffle_xor %v, {{m}} : {{type}}
  %o{{m}} = arith.constant {{offset}} : i32
  %a{{m}} = arith.addi %thread, %o{{m}} : i32
  greta_tile.ptr_store %s{{m}}, %y[%a{{m}}] align {{align}} : {{type}} -> !greta_tile.ptr<{{type}}>
)";
      step = replaced(step, "{{offset}}", std::to_string((mask - 1) * block));
      text += replaced(step, "{{m}}", std::to_string(mask));
    }
    text += "  greta_tile.return\n}\n";
    text = replaced(text, "{{type}}", type);
    text = replaced(text, "{{align}}", std::to_string(sizeof(T)));
    std::vector<T> values = patterns<T>(block);
    Bytes x = toBytes(values), y(x.size() * (wave() - 1));
    run(text, {&x, &y});
    std::vector<T> expected;
    for (unsigned mask = 1; mask < wave(); ++mask)
      for (unsigned thread = 0; thread < block; ++thread)
        expected.push_back(values[thread ^ mask]);
    EXPECT_EQ(fromBytes<T>(y), expected);
  }

  template <typename T> void shuffle(const std::string &type) {
    SCOPED_TRACE(type);
    std::string text = R"(
greta_tile.func @shuffle(%x: !greta_tile.ptr<{{type}}>, %y: !greta_tile.ptr<{{type}}>)
    attributes {wave_size = {{wave}} : i32, waves = 2 : i32} {)";
    text += prologue;
    text += R"(
  %v = greta_tile.ptr_load %x[%thread] align {{align}} : !greta_tile.ptr<{{type}}> -> {{type}}
  %c5 = arith.constant 5 : i32
  %c3 = arith.constant 3 : i32
  %last = arith.constant {{last}} : i32
  %scaled = arith.muli %lane, %c5 : i32
  %moved = arith.addi %scaled, %c3 : i32
  %source = arith.andi %moved, %last : i32
  %s = greta_tile.shuffle %v, %source : {{type}}
  greta_tile.ptr_store %s, %y[%thread] align {{align}} : {{type}} -> !greta_tile.ptr<{{type}}>
  greta_tile.return
})";
    text = replaced(text, "{{type}}", type);
    text = replaced(text, "{{align}}", std::to_string(sizeof(T)));
    text = replaced(text, "{{last}}", std::to_string(wave() - 1));
    std::vector<T> values = patterns<T>(2 * wave());
    Bytes x = toBytes(values), y(x.size());
    run(text, {&x, &y});
    std::vector<T> expected;
    for (unsigned thread = 0; thread < values.size(); ++thread) {
      unsigned lane = thread % wave();
      expected.push_back(values[thread - lane + (5 * lane + 3) % wave()]);
    }
    EXPECT_EQ(fromBytes<T>(y), expected);
  }
};

GRETA_ON_ALL_CHIPS(Exchange);

TEST_P(Exchange, ShuffleXorByEveryMask) {
  shuffleXor<uint8_t>("i8");
  shuffleXor<uint16_t>("f16");
  shuffleXor<uint16_t>("bf16");
  shuffleXor<uint32_t>("f32");
  shuffleXor<uint64_t>("i64");
}

TEST_P(Exchange, ShuffleFromAnyLane) {
  shuffle<uint16_t>("i16");
  shuffle<uint32_t>("i32");
  shuffle<uint64_t>("f64");
}

/// One access of every type and width per lane, in three workgroups.
TEST_P(Exchange, CopiesEveryWidth) {
  struct {
    const char *element;
    unsigned bytes;
  } elements[] = {{"i8", 1},  {"i16", 2}, {"f16", 2}, {"bf16", 2},
                  {"i32", 4}, {"f32", 4}, {"i64", 8}};
  for (auto [element, bytes] : elements)
    for (unsigned count = 1; count * bytes <= 16; count *= 2) {
      std::string type = element;
      if (count > 1)
        type = "vector<" + std::to_string(count) + "x" + element + ">";
      SCOPED_TRACE(type);
      std::string text = R"(
greta_tile.func @copy(%x: !greta_tile.ptr<{{element}}>, %y: !greta_tile.ptr<{{element}}>, %n: i32)
    attributes {wave_size = {{wave}} : i32, waves = {{waves128}} : i32} {)";
      text += prologue;
      text += R"(
  %group = greta_tile.program_id 0
  %group64 = arith.extsi %group : i32 to i64
  %step = arith.constant {{step}} : i64
  %start = arith.muli %group64, %step : i64
  %xg = greta_tile.ptr_add %x, %start : !greta_tile.ptr<{{element}}>
  %yg = greta_tile.ptr_add %y, %start : !greta_tile.ptr<{{element}}>
  %count = arith.constant {{count}} : i32
  %at = arith.muli %thread, %count : i32
  %v = greta_tile.ptr_load %xg[%at] align {{align}} : !greta_tile.ptr<{{element}}> -> {{type}}
  greta_tile.ptr_store %v, %yg[%at] align {{align}} : {{type}} -> !greta_tile.ptr<{{element}}>
  greta_tile.return
})";
      text = replaced(text, "{{element}}", element);
      text = replaced(text, "{{type}}", type);
      text = replaced(text, "{{count}}", std::to_string(count));
      text = replaced(text, "{{step}}", std::to_string(128 * count));
      text = replaced(text, "{{align}}", std::to_string(bytes * count));
      Bytes x = patterns<uint8_t>(3 * 128 * count * bytes), y(x.size());
      run(text, {&x, &y}, {7}, 3);
      EXPECT_EQ(x, y);
    }
}

/// The sum of 256 values: shuffles within waves, shared memory across them.
/// The simulator would report a race or an uninitialised read.
TEST_P(Exchange, ReducesThroughSharedMemory) {
  std::string text = R"(
greta_tile.func @reduce(%x: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>)
    attributes {wave_size = {{wave}} : i32, waves = {{waves256}} : i32} {
  %partial = greta_tile.shared_alloc : !greta_tile.shared<8 x i32>)";
  text += prologue;
  text += "  %v0 = greta_tile.ptr_load %x[%thread] align 4 : "
          "!greta_tile.ptr<i32> -> i32\n";
  unsigned step = 0;
  for (unsigned mask = 1; mask < wave(); mask *= 2, ++step) {
    std::string add = R"(
  %s{{i}} = greta_tile.shuffle_xor %v{{i}}, {{mask}} : i32
  %v{{next}} = arith.addi %v{{i}}, %s{{i}} : i32
)";
    add = replaced(add, "{{mask}}", std::to_string(mask));
    add = replaced(add, "{{next}}", std::to_string(step + 1));
    text += replaced(add, "{{i}}", std::to_string(step));
  }
  text += R"(
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %leader = arith.cmpi eq, %lane, %c0 : i32
  scf.if %leader {
    greta_tile.shared_store %v{{last}}, %partial[%wave] : !greta_tile.shared<8 x i32>
  }
  greta_tile.barrier
  %waves = arith.constant {{waves}} : i32
  %sum = scf.for %i = %c0 to %waves step %c1 iter_args(%acc = %c0) -> i32 : i32 {
    %p = greta_tile.shared_load %partial[%i] : !greta_tile.shared<8 x i32>
    %t = arith.addi %acc, %p : i32
    scf.yield %t : i32
  }
  %out = arith.addi %sum, %thread : i32
  greta_tile.ptr_store %out, %y[%thread] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.return
})";
  text = replaced(text, "{{last}}", std::to_string(step));
  text = replaced(text, "{{waves}}", std::to_string(256 / wave()));
  std::vector<uint32_t> values = patterns<uint32_t>(256), expected(256);
  uint32_t sum = 0;
  for (uint32_t value : values)
    sum += value;
  for (unsigned i = 0; i < 256; ++i)
    expected[i] = sum + i;
  Bytes x = toBytes(values), y(x.size());
  run(text, {&x, &y});
  EXPECT_EQ(fromBytes<uint32_t>(y), expected);
}

/// Vectors in shared memory, and a loop whose bound is an argument.
TEST_P(Exchange, TransposesThroughSharedMemory) {
  std::string text = R"(
greta_tile.func @reverse(%x: !greta_tile.ptr<f16>, %y: !greta_tile.ptr<f16>, %rounds: i32)
    attributes {wave_size = {{wave}} : i32, waves = {{waves128}} : i32} {
  %array = greta_tile.shared_alloc : !greta_tile.shared<128 x vector<8xf16>>)";
  text += prologue;
  text += R"(
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c127 = arith.constant 127 : i32
  %at = arith.muli %thread, %c8 : i32
  %other = arith.subi %c127, %thread : i32
  %v = greta_tile.ptr_load %x[%at] align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
  %r = scf.for %i = %c0 to %rounds step %c1 iter_args(%w = %v) -> vector<8xf16> : i32 {
    greta_tile.shared_store %w, %array[%thread] : !greta_tile.shared<128 x vector<8xf16>>
    greta_tile.barrier
    %n = greta_tile.shared_load %array[%other] : !greta_tile.shared<128 x vector<8xf16>>
    greta_tile.barrier
    scf.yield %n : vector<8xf16>
  }
  greta_tile.ptr_store %r, %y[%at] align 16 : vector<8xf16> -> !greta_tile.ptr<f16>
  greta_tile.return
})";
  std::vector<uint16_t> values = patterns<uint16_t>(1024), expected(1024);
  for (unsigned i = 0; i < 1024; ++i)
    expected[i] = values[(127 - i / 8) * 8 + i % 8];
  Bytes x = toBytes(values), y(x.size());
  run(text, {&x, &y}, {3});
  EXPECT_EQ(fromBytes<uint16_t>(y), expected);
  run(text, {&x, &y}, {2});
  EXPECT_EQ(x, y);
}

/// Lanes beyond a bound neither load nor store.
TEST_P(Exchange, MasksEdges) {
  std::string text = R"(
greta_tile.func @edge(%x: !greta_tile.ptr<f32>, %y: !greta_tile.ptr<f32>, %n: i32)
    attributes {wave_size = {{wave}} : i32, waves = {{waves128}} : i32} {)";
  text += prologue;
  text += R"(
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %inside = arith.cmpi slt, %thread, %n : i32
  %v = scf.if %inside -> f32 {
    %l = greta_tile.ptr_load %x[%thread] align 4 : !greta_tile.ptr<f32> -> f32
    scf.yield %l : f32
  } else {
    scf.yield %zero : f32
  }
  %w = arith.addf %v, %one : f32
  scf.if %inside {
    greta_tile.ptr_store %w, %y[%thread] align 4 : f32 -> !greta_tile.ptr<f32>
  }
  greta_tile.return
})";
  std::vector<float> values(77), expected(77);
  for (unsigned i = 0; i < 77; ++i) {
    values[i] = i * 0.5f;
    expected[i] = values[i] + 1;
  }
  Bytes x = toBytes(values), y(x.size());
  run(text, {&x, &y}, {77});
  EXPECT_EQ(fromBytes<float>(y), expected);
}

} // namespace
