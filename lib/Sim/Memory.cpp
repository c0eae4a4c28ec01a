//===- Memory.cpp - the allocations a kernel may touch --------------------===//
#include "Memory.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace greta::sim;

static constexpr uint64_t Guard = 4096;

static auto lowerBound(std::vector<Region> &regions, uint64_t base) {
  return std::lower_bound(
      regions.begin(), regions.end(), base,
      [](const Region &r, uint64_t b) { return r.base < b; });
}

MemoryMap::~MemoryMap() {
  for (const Region &r : regions) {
    std::free(r.block);
    std::free(r.defined);
  }
}

void *MemoryMap::allocate(uint64_t bytes, bool code, bool isFresh) {
  if (bytes > (uint64_t(1) << 46))
    return nullptr;
  uint64_t total = (bytes + 2 * Guard + Guard - 1) / Guard * Guard;
  void *block = std::aligned_alloc(Guard, total);
  if (!block)
    return nullptr;
  Region r;
  r.block = block;
  r.base = reinterpret_cast<uint64_t>(block) + Guard;
  r.size = bytes;
  r.code = code;
  if (isFresh)
    r.defined = static_cast<uint8_t *>(std::calloc(bytes + 1, 1));
  regions.insert(lowerBound(regions, r.base), r);
  return reinterpret_cast<void *>(r.base);
}

bool MemoryMap::release(void *p) {
  auto it = lowerBound(regions, reinterpret_cast<uint64_t>(p));
  if (it == regions.end() || it->base != reinterpret_cast<uint64_t>(p) ||
      !it->block)
    return false;
  std::free(it->block);
  std::free(it->defined);
  regions.erase(it);
  return true;
}

bool MemoryMap::add(void *p, uint64_t bytes) {
  Region r;
  r.base = reinterpret_cast<uint64_t>(p);
  r.size = bytes;
  auto it = lowerBound(regions, r.base);
  if (it != regions.end() && it->base < r.base + bytes)
    return false;
  if (it != regions.begin() &&
      std::prev(it)->base + std::prev(it)->size > r.base)
    return false;
  regions.insert(it, r);
  return true;
}

bool MemoryMap::remove(void *p) {
  auto it = lowerBound(regions, reinterpret_cast<uint64_t>(p));
  if (it == regions.end() || it->base != reinterpret_cast<uint64_t>(p) ||
      it->block)
    return false;
  regions.erase(it);
  return true;
}

const Region *MemoryMap::find(uint64_t address) const {
  auto it =
      std::upper_bound(regions.begin(), regions.end(), address,
                       [](uint64_t a, const Region &r) { return a < r.base; });
  if (it == regions.begin())
    return nullptr;
  --it;
  return address - it->base < it->size || (!it->size && address == it->base)
             ? &*it
             : nullptr;
}

const Region *MemoryMap::nearest(uint64_t address) const {
  auto it =
      std::upper_bound(regions.begin(), regions.end(), address,
                       [](uint64_t a, const Region &r) { return a < r.base; });
  const Region *above = it == regions.end() ? nullptr : &*it;
  const Region *below = it == regions.begin() ? nullptr : &*std::prev(it);
  if (!above || !below)
    return above ? above : below;
  return above->base - address < address - (below->base + below->size) ? above
                                                                       : below;
}
