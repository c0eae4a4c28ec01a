//===- TimingOps.h - what the issue model needs of an instruction -*- C++ -*-//
#ifndef GRETA_SIM_TIMINGOPS_H
#define GRETA_SIM_TIMINGOPS_H

#include "Timing/Timing.h"
#include "llvm/ADT/SmallVector.h"

namespace greta::sim {

enum Port : uint8_t { Valu, Trans, Matrix, Salu, Smem, Lds, Vmem, Jump, Ports };
constexpr uint8_t Internal = Ports; ///< handled by the instruction buffer
enum List : uint8_t { Loads, Stores, Shared, Scalars, Lists };
constexpr unsigned ScalarBase = row::Temp;

struct Op {
  bool known = false;
  uint8_t port = Internal;
  bool wait = false, signal = false, barrierWait = false, end = false;
  bool store = false, toLds = false, flat = false;
  uint16_t busy = 0;    ///< cycles that its unit is taken
  uint16_t latency = 0; ///< cycles until others see the result
  uint16_t forward = 0; ///< cycles until a matrix instruction accumulates on it
  uint16_t bytes = 0;   ///< memory bytes of a lane
  uint32_t pause = 0;   ///< cycles before the wave's next instruction
  int8_t priority = -1;
  uint8_t limit[Lists] = {255, 255, 255, 255};
  uint16_t acc = 0, accWords = 0; ///< registers that accumulate in place
  llvm::SmallVector<uint16_t, 24> reads, writes;
};

Op timedOp(const Chip &chip, const TimingRow &row, bool wave32, const Inst &i);

} // namespace greta::sim

#endif
