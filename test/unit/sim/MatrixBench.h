//===- MatrixBench.h - runs single instructions on chosen registers -------===//
//
// Assembles lines for a chip, decodes and binds them as a launch would, and
// executes them on one wave whose registers the test fills. Formats and layouts
// are written out here a second time, from their definitions, not shared with
// the simulator.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TEST_SIM_MATRIXBENCH_H
#define GRETA_TEST_SIM_MATRIXBENCH_H

#include "Assembler.h"
#include "Code/Program.h"
#include "Memory.h"
#include "Wave.h"
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace greta::sim::test {

/// Number formats. `kind`: 'f' IEEE-like with infinities, 'n' only the all-ones
/// code is NaN, 'z' only the negative-zero code is NaN, 'x' finite, 's'/'u'
/// integer.
struct Format {
  const char *name;
  unsigned bits, exponent, mantissa;
  int bias;
  char kind;
  bool finite(uint32_t code) const;
  double value(uint32_t code) const;
  /// The code of a value that the format has exactly.
  uint32_t code(double v) const;
};
extern const Format F32, F16, BF16, E4M3, E5M2, E4M3Z, E5M2Z, E2M3, E3M2, E2M1,
    S16, U16, S8, U8, S4, U4;

/// Element e of a lane, packed from bit 0 of register `first` of a register
/// file.
void putBits(uint32_t *registers, unsigned first, unsigned lane, unsigned e,
             unsigned bits, uint32_t x);

class Bench {
public:
  Bench(const char *chip, bool wave32, const std::vector<std::string> &lines);
  /// Runs line k; fails the test when it is unknown.
  void run(unsigned k);
  /// The same where the instruction may end the wave: the report, or nothing.
  std::string fault(unsigned k);
  /// Memory of the device, and LDS, from address 0.
  uint8_t *allocate(size_t bytes);
  void setLds(size_t bytes);
  /// Register `r` of the vector file (256 on: AGPRs).
  uint32_t *row(unsigned r) { return wave.v[r]; }
  /// Fills all vector registers with a pattern.
  void fill(uint32_t seed);
  void put(unsigned first, unsigned lane, unsigned e, unsigned bits,
           uint32_t x) {
    putBits(registers.data(), first, lane, e, bits, x);
  }
  double f32(unsigned reg, unsigned lane);

  Wave wave;
  Workgroup group;
  unsigned lanes;
  std::vector<uint32_t> registers;

private:
  void execute(const Inst &i);
  MemoryMap memory;
  std::vector<uint8_t> text;
  std::unique_ptr<Program> program;
  std::vector<std::string> lines;
};

/// "v[8:11]", "a5": registers by row index.
std::string registers(unsigned first, unsigned count);

} // namespace greta::sim::test

#endif
