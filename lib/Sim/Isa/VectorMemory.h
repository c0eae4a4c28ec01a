//===- VectorMemory.h - what buffer and global loads share ------*- C++ -*-===//
#ifndef GRETA_SIM_VECTORMEMORY_H
#define GRETA_SIM_VECTORMEMORY_H

#include "Checks/Checks.h"
#include <cstdint>
#include <cstring>

namespace greta::sim {

/// Returns Rewrite for a write of the bytes that are there already.
inline Access rewritten(Access access, const uint8_t *there, const void *stored,
                        unsigned bytes) {
  return stored && std::memcmp(there, stored, bytes) == 0 ? Access::Rewrite
                                                          : access;
}

/// Parameters of loads and stores: bytes, and how short values are extended.
enum : uint32_t {
  BytesMask = 0xff,
  Sign = 0x100,
  High = 0x200, ///< d16_hi: the high half
  Low = 0x400,  ///< d16: the low half, the other stays
};

/// Returns the register after a load of `x` over `old`.
inline uint32_t widen(uint32_t x, uint32_t param, uint32_t old) {
  if (param & Sign)
    x = (param & BytesMask) == 1 ? uint32_t(int32_t(int8_t(x)))
                                 : uint32_t(int32_t(int16_t(x)));
  if (param & Low)
    return (old & 0xffff0000) | (x & 0xffff);
  if (param & High)
    return (old & 0xffff) | x << 16;
  return x;
}

} // namespace greta::sim

#endif
