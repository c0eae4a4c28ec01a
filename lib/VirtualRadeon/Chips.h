//===- Chips.h - what the virtual Radeons say about themselves --*- C++ -*-===//
#ifndef GRETA_VIRTUALRADEON_CHIPS_H
#define GRETA_VIRTUALRADEON_CHIPS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace greta::radeon {

/// A card, by what a driver asks the kernel for.
struct Chip {
  const char *name; ///< how it is chosen
  const char *gfx;  ///< the simulator's name
  uint32_t family, externalRevision, deviceId, pciRevision;
  uint32_t ip; ///< of the graphics core: major, minor, revision, a byte each
  bool isApu;
  uint8_t engines, arraysPerEngine, unitsPerArray;
  uint16_t units;
  uint8_t renderBackends, l2Slices;
  uint32_t l2KiB, l3MiB;
  uint32_t clockMHz, memoryMHz;
  uint32_t memoryType, memoryBits;
  uint32_t addressConfig; ///< GB_ADDR_CONFIG
  uint64_t vramBytes;
};

llvm::ArrayRef<Chip> chips();
const Chip *findChip(llvm::StringRef name);

/// Counts 10 ns each: GPU clock counters of these chips run at 100 MHz.
constexpr uint32_t CounterKHz = 100000;
/// Version of the kernel driver that is played: 3.MINOR. Drivers turn features
/// on by it.
constexpr uint32_t DriverMinor = 61;

} // namespace greta::radeon

#endif
