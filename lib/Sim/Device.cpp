//===- Device.cpp - a simulated device's memory and names -----------------===//
#include "Chip.h"
#include "Code/Program.h"
#include "Code/Source.h"
#include "Memory.h"
#include "greta/Sim/Simulator.h"
#include "llvm/ADT/StringSwitch.h"
#include <cstring>

using namespace greta::sim;
using namespace llvm;

std::vector<StringRef> greta::sim::simulatedChips() {
  std::vector<StringRef> names;
  for (const Chip &c : chips())
    names.push_back(c.name);
  return names;
}

Expected<unsigned> greta::sim::parseChecks(StringRef text) {
  unsigned checks = 0;
  SmallVector<StringRef, 8> parts;
  text.split(parts, ',');
  for (StringRef p : parts) {
    p = p.trim();
    int64_t one = StringSwitch<int64_t>(p)
                      .Case("all", CheckAll)
                      .Case("none", CheckNone)
                      .Case("bounds", CheckBounds)
                      .Case("uninit", CheckUninit)
                      .Case("races", CheckRaces)
                      .Case("waits", CheckWaits)
                      .Case("hazards", CheckHazards)
                      .Case("align", CheckAlign)
                      .Case("programs", CheckPrograms)
                      .Default(-1);
    if (one < 0)
      return createStringError("unknown check '" + p +
                               "' (all, none, or some of bounds, uninit, "
                               "races, waits, hazards, align, programs)");
    checks |= unsigned(one);
  }
  return checks;
}

Device::Device() : memory(std::make_unique<MemoryMap>()) {}
Device::~Device() = default;

Expected<std::unique_ptr<Device>> Device::create(StringRef chip) {
  if (!findChip(chip)) {
    std::string names;
    for (StringRef n : simulatedChips())
      names += (names.empty() ? "" : " ") + n.str();
    return createStringError("the simulator has no chip '" + chip +
                             "'; it has " + names);
  }
  std::unique_ptr<Device> d(new Device());
  d->chipName = chip.str();
  return std::move(d);
}

uint32_t Device::waveSize() const { return findChip(chipName)->waveSize; }
uint32_t Device::computeUnits() const {
  return findChip(chipName)->computeUnits;
}
uint32_t Device::ldsBytesPerWorkgroup() const {
  return findChip(chipName)->ldsBytes;
}

void *Device::allocate(uint64_t bytes, bool isFresh) {
  std::lock_guard<std::mutex> lock(memory->mutex());
  return memory->allocate(bytes, /*code=*/false, isFresh);
}
void Device::wrote(void *p, uint64_t bytes, const void *from) {
  std::lock_guard<std::mutex> lock(memory->mutex());
  auto flags = [&](const void *at) {
    uint64_t address = reinterpret_cast<uint64_t>(at);
    const Region *r = memory->find(address);
    return r && r->defined ? r->defined + (address - r->base) : nullptr;
  };
  uint8_t *to = flags(p);
  if (!to)
    return;
  if (const uint8_t *source = from ? flags(from) : nullptr)
    std::memmove(to, source, bytes);
  else
    std::memset(to, 1, bytes);
}
Error Device::free(void *p) {
  std::lock_guard<std::mutex> lock(memory->mutex());
  if (p && !memory->release(p))
    return createStringError("free of an address that was not allocated");
  return Error::success();
}
Error Device::registerHost(void *p, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(memory->mutex());
  if (!memory->add(p, bytes))
    return createStringError("the memory overlaps a registered allocation");
  return Error::success();
}
Error Device::unregisterHost(void *p) {
  std::lock_guard<std::mutex> lock(memory->mutex());
  if (!memory->remove(p))
    return createStringError("the memory was not registered");
  return Error::success();
}
std::pair<void *, uint64_t> Device::allocationOf(const void *p) const {
  std::lock_guard<std::mutex> lock(memory->mutex());
  const Region *r = memory->find(reinterpret_cast<uint64_t>(p));
  if (!r)
    return {nullptr, 0};
  return {reinterpret_cast<void *>(r->base), r->size};
}
