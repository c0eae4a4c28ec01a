//===- MatrixBench.cpp - see the header -----------------------------------===//
#include "MatrixBench.h"
#include "Chip.h"
#include "Coverage.h"
#include "Isa/Float.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace llvm;
using namespace greta::sim;
using namespace greta::sim::test;

namespace greta::sim::test {
const Format F32{"f32", 32, 8, 23, 127, 'f'}, F16{"f16", 16, 5, 10, 15, 'f'},
    BF16{"bf16", 16, 8, 7, 127, 'f'}, E4M3{"e4m3", 8, 4, 3, 7, 'n'},
    E5M2{"e5m2", 8, 5, 2, 15, 'f'}, E4M3Z{"e4m3fnuz", 8, 4, 3, 8, 'z'},
    E5M2Z{"e5m2fnuz", 8, 5, 2, 16, 'z'}, E2M3{"e2m3", 6, 2, 3, 1, 'x'},
    E3M2{"e3m2", 6, 3, 2, 3, 'x'}, E2M1{"e2m1", 4, 2, 1, 1, 'x'},
    S16{"i16", 16, 0, 0, 0, 's'}, U16{"u16", 16, 0, 0, 0, 'u'},
    S8{"i8", 8, 0, 0, 0, 's'}, U8{"u8", 8, 0, 0, 0, 'u'},
    S4{"i4", 4, 0, 0, 0, 's'}, U4{"u4", 4, 0, 0, 0, 'u'};
} // namespace greta::sim::test

bool Format::finite(uint32_t c) const {
  uint32_t magnitude = c & ((1u << (bits - 1)) - 1);
  switch (kind) {
  case 'f':
    return magnitude >> mantissa != (1u << exponent) - 1;
  case 'n':
    return magnitude != (1u << (bits - 1)) - 1;
  case 'z':
    return c != 1u << (bits - 1);
  default:
    return true;
  }
}

double Format::value(uint32_t c) const {
  if (kind == 'u')
    return c;
  if (kind == 's')
    return c >> (bits - 1) & 1 ? double(c) - double(1u << bits) : double(c);
  uint32_t m = c & ((1u << mantissa) - 1);
  int e = int(c >> mantissa & ((1u << exponent) - 1));
  double sign = c >> (bits - 1) & 1 ? -1 : 1;
  if (!finite(c))
    return kind == 'f' && !m ? sign * INFINITY : NAN;
  double fraction = double(m) / double(1u << mantissa);
  return sign * (e ? std::ldexp(1 + fraction, e - bias)
                   : std::ldexp(fraction, 1 - bias));
}

uint32_t Format::code(double v) const {
  if (kind == 'u' || kind == 's')
    return uint32_t(int32_t(v)) & ((1ull << bits) - 1);
  if (v == 0)
    return 0;
  int e;
  double m = std::frexp(std::fabs(v), &e); // m in [1/2, 1)
  int biased = e - 1 + bias;
  uint32_t sign = v < 0 ? 1u << (bits - 1) : 0, c;
  if (biased <= 0)
    c = uint32_t(std::ldexp(m, e - 1 + bias + int(mantissa)));
  else
    c = uint32_t(biased) << mantissa |
        uint32_t(std::ldexp(2 * m - 1, int(mantissa)));
  EXPECT_EQ(value(sign | c), v) << name;
  return sign | c;
}

std::string test::registers(unsigned first, unsigned count) {
  char kind = first >= row::Agpr ? 'a' : 'v';
  first %= row::Agpr;
  std::string n = std::to_string(first);
  if (count == 1)
    return kind + n;
  return kind + ("[" + n + ":" + std::to_string(first + count - 1) + "]");
}

Bench::Bench(const char *chip, bool wave32, const std::vector<std::string> &l)
    : lanes(wave32 ? 32 : 64), registers(row::Count * MaxLanes), lines(l) {
  std::string source;
  for (const std::string &s : lines)
    source += s + "\n";
  text = assemble(chip, wave32, source);
  const Chip *c = findChip(chip);
  program = std::make_unique<Program>(*c, text, 0);
  cantFail(program->prepare(wave32));
  EXPECT_EQ(program->size(), lines.size() + 1) << chip;
  wave.v = reinterpret_cast<uint32_t (*)[MaxLanes]>(registers.data());
  wave.chip = c;
  wave.program = program.get();
  wave.wave32 = wave32;
  wave.lanes = uint8_t(lanes);
  wave.fullMask = wave32 ? 0xffffffffu : ~0ull;
  wave.setExec(wave.fullMask);
  wave.wg = &group;
  wave.state = RunState::Running;
  group.memory = &memory;
  wave.mode = 0x1f0; // round to nearest, denormals, NaN clamped to 0
  wave.csr32 = wave.csr64 = hostControl(0, 3);
}

/// With the host's floating-point mode as the instruction loop sets it.
void Bench::execute(const Inst &i) {
  if (!mayRun(i))
    return;
  uint32_t host = currentControl();
  setControl(wave.csr32);
  i.fn(wave, i);
  setControl(host);
}

void Bench::run(unsigned k) {
  const Inst &i = program->code()[k];
  ASSERT_NE(i.op, nullptr) << lines[k] << ": bound to nothing";
  execute(i);
  EXPECT_NE(wave.state, RunState::Fault) << lines[k] << ": " << group.error;
}

std::string Bench::fault(unsigned k) {
  const Inst &i = program->code()[k];
  execute(i);
  std::string report = wave.state == RunState::Fault ? group.error : "";
  wave.state = RunState::Running;
  group.error.clear();
  group.failed = false;
  return report;
}

uint8_t *Bench::allocate(size_t bytes) {
  return static_cast<uint8_t *>(memory.allocate(bytes));
}
void Bench::setLds(size_t bytes) {
  group.lds.assign(bytes, 0);
  group.ldsBytes = uint32_t(bytes);
}

void Bench::fill(uint32_t seed) {
  for (uint32_t &r : registers)
    r = seed = seed * 1664525u + 1013904223u;
}

void test::putBits(uint32_t *registers, unsigned first, unsigned lane,
                   unsigned e, unsigned bits, uint32_t x) {
  unsigned at = e * bits, shift = at % 32;
  uint64_t mask = ((uint64_t(1) << bits) - 1) << shift;
  uint64_t value = uint64_t(x) << shift;
  uint32_t *word = registers + (first + at / 32) * MaxLanes + lane;
  *word = uint32_t((*word & ~mask) | (value & mask));
  if (shift + bits > 32) {
    word += MaxLanes;
    *word = uint32_t((*word & ~(mask >> 32)) | value >> 32);
  }
}

double Bench::f32(unsigned reg, unsigned lane) {
  return bit_cast<float>(row(reg)[lane]);
}
