//===- Smem.cpp - scalar memory -------------------------------------------===//
//
// Loads, gfx9's stores and atomics, and prefetches, from plain addresses and
// from buffer resources. Stores are visible at once: that they need s_dcache_wb
// before others see them is not modelled.
//
//===----------------------------------------------------------------------===//
#include "Checks/Checks.h"
#include "Isa/Atomic.h"
#include "Wave.h"
#include <tuple>

using namespace greta::sim;

namespace {

/// Returns the offset: immediate, SGPR or both. Source `k` is the SGPR.
uint64_t offset(const Wave &w, const Inst &i, unsigned k = 1) {
  int64_t o = i.imm;
  const Operand &s = i.src[k];
  if (s.kind == Operand::Const)
    // Signed offsets of 21 bits (gfx9) and 24 bits are printed in full.
    o += int64_t(int32_t(uint32_t(s.value)));
  else if (s.kind == Operand::Sgpr && s.index != slot::Null)
    o += w.s[s.index];
  return uint64_t(o);
}

/// Refuses misaligned addresses, whose low bits scalar memory ignores.
bool aligned(Wave &w, const Inst &i, uint64_t address, unsigned bytes) {
  if (LLVM_LIKELY(address % bytes == 0) || !w.checker)
    return true;
  w.fault(i, llvm::Twine("misaligned scalar ") + (i.dst[0] ? "load" : "store") +
                 " at 0x" + llvm::Twine::utohexstr(address) +
                 ": the hardware ignores the low bits");
  return false;
}

/// Returns the host's address of the bytes. The access is no single lane's.
uint8_t *locate(Wave &w, const Inst &i, uint64_t address, unsigned bytes,
                Access access = Access::Read) {
  uint8_t *p = w.global(i, address, bytes, -1, access != Access::Read);
  if (p && LLVM_UNLIKELY(w.checker != nullptr))
    w.checker->global(w, i, ~0u, address, bytes, access);
  return p;
}

void loadWords(Wave &w, const Inst &i, uint64_t address, unsigned words) {
  if (!aligned(w, i, address, 4))
    return;
  address &= ~uint64_t(3);
  uint8_t *p = locate(w, i, address, 4 * words);
  if (!p)
    return;
  std::memcpy(&w.s[i.dst[0].index], p, 4 * words);
  if (i.has(WritesExec))
    w.refreshExec();
}
void load(Wave &w, const Inst &i) {
  loadWords(w, i, w.scalar64(i.src[0]) + offset(w, i), i.param);
}
/// Returns a resource's base and its size in bytes.
std::pair<uint64_t, uint64_t> buffer(const Wave &w, const Operand &resource) {
  const uint32_t *r = &w.s[resource.index];
  uint64_t stride = r[1] >> 16 & 0x3fff, records = r[2];
  return {uint64_t(r[1] & 0xffff) << 32 | r[0],
          stride ? stride * records : records};
}

/// Loads and extends bytes and halves; outside the resource they are zero.
template <bool Buffer> void loadNarrow(Wave &w, const Inst &i) {
  uint64_t base = 0, limit = ~uint64_t(0), o = offset(w, i);
  if (Buffer)
    std::tie(base, limit) = buffer(w, i.src[0]);
  else
    base = w.scalar64(i.src[0]);
  unsigned bytes = i.param & 3;
  if (!aligned(w, i, base + o, bytes))
    return;
  o -= (base + o) & (bytes - 1);
  uint32_t x = 0;
  if (!Buffer || o + bytes <= limit) {
    uint8_t *p = locate(w, i, base + o, bytes);
    if (!p)
      return;
    std::memcpy(&x, p, bytes);
  }
  if (i.param & 4)
    x = bytes == 1 ? uint32_t(int32_t(int8_t(x)))
                   : uint32_t(int32_t(int16_t(x)));
  w.s[i.dst[0].index] = x;
}
/// Loads from raw and structured buffers; words out of range read as zero.
void bufferLoad(Wave &w, const Inst &i) {
  auto [base, limit] = buffer(w, i.src[0]);
  uint64_t o = offset(w, i);
  if (!aligned(w, i, base + o, 4))
    return;
  o &= ~uint64_t(3);
  uint32_t out[16];
  for (unsigned k = 0; k < i.param; ++k) {
    out[k] = 0;
    if (o + 4 * k + 4 > limit)
      continue;
    uint8_t *p = locate(w, i, base + o + 4 * k, 4);
    if (!p)
      return;
    std::memcpy(&out[k], p, 4);
  }
  std::memcpy(&w.s[i.dst[0].index], out, 4 * i.param);
}

/// Returns the destination of a store or an atomic. Sources: data, base or
/// resource, offset.
template <bool Buffer>
std::pair<uint64_t, uint64_t> target(const Wave &w, const Inst &i,
                                     unsigned bytes) {
  uint64_t base = 0, limit = ~uint64_t(0), o = offset(w, i, 2);
  if (Buffer)
    std::tie(base, limit) = buffer(w, i.src[1]);
  else
    base = w.scalar64(i.src[1]);
  return {base + o, o < limit ? std::min<uint64_t>(limit - o, bytes) : 0};
}

/// Stores the words that lie inside a resource.
template <bool Buffer> void store(Wave &w, const Inst &i) {
  auto [address, bytes] = target<Buffer>(w, i, 4 * i.param);
  bytes &= ~uint64_t(3);
  if (!bytes || !aligned(w, i, address, 4))
    return;
  if (uint8_t *p =
          locate(w, i, address & ~uint64_t(3), unsigned(bytes), Access::Write))
    std::memcpy(p, &w.s[i.src[0].index], bytes);
}

/// Replaces the data by the old value if it is asked for; it is zero outside a
/// resource. The value to compare with follows the new one.
template <class T, bool Buffer> void atomic(Wave &w, const Inst &i) {
  auto [address, bytes] = target<Buffer>(w, i, sizeof(T));
  T data[2] = {}, old = 0;
  bool compares = isCompareSwap(i.param);
  std::memcpy(data, &w.s[i.src[0].index], (compares ? 2 : 1) * sizeof(T));
  if (bytes == sizeof(T)) {
    if (address % sizeof(T))
      return w.fault(i, "misaligned scalar atomic at 0x" +
                            llvm::Twine::utohexstr(address));
    uint8_t *p = locate(w, i, address, sizeof(T), Access::Atomic);
    if (!p)
      return;
    old = atomicRun<T>(i.param, p, data[0], data[1]);
  }
  if (i.has(Return))
    std::memcpy(&w.s[i.src[0].index], &old, sizeof(T));
}

#define LOAD(name, words)                                                      \
  {"s_load_" name, load, "r=ri", words, 0, Unit::Smem}, {                      \
    "s_buffer_load_" name, bufferLoad, "r=ri", words, 0, Unit::Smem            \
  }
#define NARROW(name, param)                                                    \
  {"s_load_" name, loadNarrow<false>, "i=ri", param, 0, Unit::Smem}, {         \
    "s_buffer_load_" name, loadNarrow<true>, "i=ri", param, 0, Unit::Smem      \
  }

#define STORE(name, words)                                                     \
  {"s_store_" name, store<false>, "=rri", words, 0, Unit::Smem}, {             \
    "s_buffer_store_" name, store<true>, "=rri", words, 0, Unit::Smem          \
  }
#define ATOMIC_OF(prefix, isBuffer, name, op)                                  \
  {prefix name, atomic<uint32_t, isBuffer>, "=rri", op, Returns, Unit::Smem},  \
  {                                                                            \
    prefix name "_x2", atomic<uint64_t, isBuffer>, "=rri", op, Returns,        \
        Unit::Smem                                                             \
  }
#define ATOMIC(name, op)                                                       \
  ATOMIC_OF("s_atomic_", false, name, op),                                     \
      ATOMIC_OF("s_buffer_atomic_", true, name, op)

void nothing(Wave &, const Inst &) {}

const OpInfo table[] = {
    LOAD("dword", 1),
    LOAD("dwordx2", 2),
    LOAD("dwordx4", 4),
    LOAD("dwordx8", 8),
    LOAD("dwordx16", 16),
    LOAD("b32", 1),
    LOAD("b64", 2),
    LOAD("b96", 3),
    LOAD("b128", 4),
    LOAD("b256", 8),
    LOAD("b512", 16),
    NARROW("u8", 1),
    NARROW("i8", 5),
    NARROW("u16", 2),
    NARROW("i16", 6),
    STORE("dword", 1),
    STORE("dwordx2", 2),
    STORE("dwordx4", 4),
    ATOMIC("swap", AtomicSwap),
    ATOMIC("cmpswap", AtomicCmpSwap),
    ATOMIC("add", AtomicAdd),
    ATOMIC("sub", AtomicSub),
    ATOMIC("smin", AtomicSmin),
    ATOMIC("umin", AtomicUmin),
    ATOMIC("smax", AtomicSmax),
    ATOMIC("umax", AtomicUmax),
    ATOMIC("and", AtomicAnd),
    ATOMIC("or", AtomicOr),
    ATOMIC("xor", AtomicXor),
    ATOMIC("inc", AtomicInc),
    ATOMIC("dec", AtomicDec),
    {"s_prefetch_inst", nothing, "=lxxx", 0, Optional, Unit::Smem},
    {"s_prefetch_inst_pc_rel", nothing, "=xxx", 0, Optional, Unit::Smem},
    {"s_prefetch_data", nothing, "=lxxx", 0, Optional, Unit::Smem},
    {"s_prefetch_data_pc_rel", nothing, "=xxx", 0, Optional, Unit::Smem},
    {"s_buffer_prefetch_data", nothing, "=rxxx", 0, Optional, Unit::Smem},
};

} // namespace

OpTable greta::sim::smemOps() { return table; }
