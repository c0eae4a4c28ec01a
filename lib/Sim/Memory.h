//===- Memory.h - the allocations a kernel may touch ------------*- C++ -*-===//
#ifndef GRETA_SIM_MEMORY_H
#define GRETA_SIM_MEMORY_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace greta::sim {

struct Region {
  uint64_t base = 0, size = 0;
  void *block = nullptr; ///< the memory to free; null if the caller owns it
  bool code = false;     ///< it is a loaded code object
  /// Says for each byte whether it was ever written; null: all were.
  uint8_t *defined = nullptr;
};

/// Allocations sorted by address. Neighbours are at least a guard apart, so an
/// access past the end of one never lands in another.
class MemoryMap {
public:
  ~MemoryMap();
  void *allocate(uint64_t bytes, bool code = false, bool isFresh = false);
  bool release(void *p);
  bool add(void *p, uint64_t bytes);
  bool remove(void *p);
  /// Returns the region that holds the address, or null. The pointer stays
  /// valid until the next change; launches hold the lock of the device.
  const Region *find(uint64_t address) const;
  /// Returns the region that ends nearest below or starts nearest above.
  const Region *nearest(uint64_t address) const;
  std::mutex &mutex() const { return lock; }

private:
  mutable std::mutex lock;
  std::vector<Region> regions;
};

} // namespace greta::sim

#endif
