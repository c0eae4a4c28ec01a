//===- Ds.cpp - LDS instructions ------------------------------------------===//
#include "Checks/Checks.h"
#include "Isa/Atomic.h"
#include "Timing/Stats.h"
#include "Wave.h"

using namespace greta::sim;

uint8_t *Wave::lds(const Inst &i, uint64_t address, unsigned bytes, int lane) {
  if (LLVM_LIKELY(address + bytes <= wg->ldsBytes))
    return wg->lds.data() + address;
  fault(i,
        "LDS access of " + llvm::Twine(bytes) + " bytes at address " +
            llvm::Twine(address) + " is outside the workgroup's " +
            llvm::Twine(wg->ldsBytes) + " bytes",
        lane);
  return nullptr;
}

// Loads and stores may have any address: amdhsa runs waves in the unaligned
// access mode, and LLVM merges accesses accordingly. Atomics are checked.
namespace {

using u32 = uint32_t;

void note(Wave &w, const Inst &i, unsigned lane, uint64_t a, unsigned bytes,
          Access access) {
  if (LLVM_UNLIKELY(w.checker != nullptr))
    w.checker->lds(w, i, lane, u32(a), bytes, access);
}

/// Writes one lane's value to its place `p`.
void put(Wave &w, const Inst &i, unsigned lane, uint64_t a, uint8_t *p,
         const u32 *value, unsigned bytes) {
  Access access =
      LLVM_UNLIKELY(w.checker != nullptr) && !std::memcmp(p, value, bytes)
          ? Access::Rewrite
          : Access::Write;
  std::memcpy(p, value, bytes);
  note(w, i, lane, a, bytes, access);
}

enum Extend : u32 { Zero = 0, Sign = 0x100, KeepLow = 0x200, KeepHigh = 0x400 };

/// Widens a narrow value. `param` has its bytes and how it fills the register.
u32 widen(u32 x, u32 param, u32 old) {
  unsigned bytes = param & 0xff;
  if (param & Sign)
    x = bytes == 1 ? u32(int32_t(int8_t(x))) : u32(int32_t(int16_t(x)));
  if (param & KeepHigh) // d16 keeps the other half
    return (old & 0xffff0000) | (x & 0xffff);
  if (param & KeepLow)
    return (old & 0xffff) | x << 16;
  return x;
}

void read(Wave &w, const Inst &i) {
  alignas(32) u32 t[MaxLanes];
  const u32 *a = w.rows(i.src[0], 1, t);
  unsigned bytes = i.param & 0xff;
  u32(*d)[MaxLanes] = &w.v[i.dst[0].index];
  if (w.stats)
    countLds(w, i, a, bytes, u32(i.imm));
  u32 address[MaxLanes]; // the destination may be the address register
  std::memcpy(address, a, sizeof(address));
  for (uint64_t m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    uint64_t x = u32(address[l] + u32(i.imm));
    const uint8_t *p = w.lds(i, x, bytes, int(l));
    if (!p)
      return;
    if (bytes >= 4) {
      for (unsigned k = 0; k < bytes / 4; ++k)
        std::memcpy(&d[k][l], p + 4 * k, 4);
    } else {
      u32 v = 0;
      std::memcpy(&v, p, bytes);
      d[0][l] = widen(v, i.param, d[0][l]);
    }
    note(w, i, l, x, bytes, Access::Read);
  }
}
void write(Wave &w, const Inst &i) {
  alignas(32) u32 t[5][MaxLanes];
  const u32 *a = w.rows(i.src[0], 1, t[0]);
  unsigned bytes = i.param & 0xff;
  const u32 *data = w.rows(i.src[1], bytes < 4 ? 1 : bytes / 4, t[1]);
  if (w.stats)
    countLds(w, i, a, bytes, u32(i.imm));
  for (uint64_t m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    uint64_t x = u32(a[l] + u32(i.imm));
    uint8_t *p = w.lds(i, x, bytes, int(l));
    if (!p)
      return;
    u32 value[4] = {i.param & KeepLow ? data[l] >> 16 : data[l]};
    for (unsigned k = 1; k < bytes / 4; ++k)
      value[k] = data[k * MaxLanes + l];
    put(w, i, l, x, p, value, bytes);
  }
}
/// Reads from two addresses; offsets count elements (times 64 in st64 forms).
void read2(Wave &w, const Inst &i) {
  alignas(32) u32 t[MaxLanes];
  const u32 *a = w.rows(i.src[0], 1, t);
  unsigned bytes = i.param & 0xff, scale = bytes * (i.param & 0x100 ? 64 : 1);
  u32(*d)[MaxLanes] = &w.v[i.dst[0].index];
  u32 address[MaxLanes];
  std::memcpy(address, a, sizeof(address));
  if (w.stats) {
    countLds(w, i, address, bytes, u32(i.imm) * scale);
    countLds(w, i, address, bytes, u32(i.imm2) * scale);
  }
  for (uint64_t m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    for (unsigned part = 0; part < 2; ++part) {
      uint64_t x = u32(address[l] + u32(part ? i.imm2 : i.imm) * scale);
      const uint8_t *p = w.lds(i, x, bytes, int(l));
      if (!p)
        return;
      for (unsigned k = 0; k < bytes / 4; ++k)
        std::memcpy(&d[part * bytes / 4 + k][l], p + 4 * k, 4);
      note(w, i, l, x, bytes, Access::Read);
    }
  }
}
void write2(Wave &w, const Inst &i) {
  alignas(32) u32 t[5][MaxLanes];
  const u32 *a = w.rows(i.src[0], 1, t[0]);
  unsigned bytes = i.param & 0xff, scale = bytes * (i.param & 0x100 ? 64 : 1);
  const u32 *data[2] = {w.rows(i.src[1], bytes / 4, t[1]),
                        w.rows(i.src[2], bytes / 4, t[3])};
  if (w.stats) {
    countLds(w, i, a, bytes, u32(i.imm) * scale);
    countLds(w, i, a, bytes, u32(i.imm2) * scale);
  }
  for (uint64_t m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    for (unsigned part = 0; part < 2; ++part) {
      uint64_t x = u32(a[l] + u32(part ? i.imm2 : i.imm) * scale);
      uint8_t *p = w.lds(i, x, bytes, int(l));
      if (!p)
        return;
      u32 value[2];
      for (unsigned k = 0; k < bytes / 4; ++k)
        value[k] = data[part][k * MaxLanes + l];
      put(w, i, l, x, p, value, bytes);
    }
  }
}
/// Takes address, data [, data2]; the rtn forms have a destination.
template <class T> void atomicT(Wave &w, const Inst &i) {
  constexpr unsigned words = sizeof(T) / 4;
  alignas(32) u32 t[5][MaxLanes];
  const u32 *a = w.rows(i.src[0], 1, t[0]);
  const u32 *x = w.rows(i.src[1], words, t[1]);
  bool hasTwo = i.src[2].kind != Operand::None;
  const u32 *y = hasTwo ? w.rows(i.src[2], words, t[3]) : x;
  auto get = [](const u32 *p, unsigned l) {
    T r = p[l];
    if constexpr (words == 2)
      r |= T(p[MaxLanes + l]) << 32;
    return r;
  };
  u32 op = i.param & AtomicOpMask;
  for (uint64_t m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    uint64_t address = u32(a[l] + u32(i.imm));
    uint8_t *p = w.lds(i, address, sizeof(T), int(l));
    if (!p)
      return;
    if (address % sizeof(T))
      return w.fault(i,
                     "misaligned LDS atomic at address " + llvm::Twine(address),
                     int(l));
    T first = get(x, l), second = get(y, l);
    // gfx9 and gfx10 have the compare value first, then the new one; gfx11 and
    // gfx12 have them the other way round.
    bool compares = isCompareSwap(op);
    bool newFirst = w.chip->isGfx11Plus() && compares;
    T value = compares && !newFirst ? second : first;
    T cmp = compares && !newFirst ? first : second;
    T old;
    std::memcpy(&old, p, sizeof(T));
    T result = atomicApply<T>(op, old, value, cmp);
    std::memcpy(p, &result, sizeof(T));
    if (i.dst[0]) {
      u32 *d = w.v[i.dst[0].index];
      d[l] = u32(old);
      if constexpr (words == 2)
        d[MaxLanes + l] = u32(uint64_t(old) >> 32);
    }
    note(w, i, l, address, sizeof(T), Access::Atomic);
  }
}
void atomic(Wave &w, const Inst &i) {
  if (i.param & Atomic64)
    atomicT<uint64_t>(w, i);
  else
    atomicT<u32>(w, i);
}

/// Exchanges two values, with offsets as in the reads above.
template <class T> void exchange2(Wave &w, const Inst &i) {
  constexpr unsigned bytes = sizeof(T), words = bytes / 4;
  alignas(32) u32 t[5][MaxLanes];
  const u32 *a = w.rows(i.src[0], 1, t[0]);
  const u32 *data[2] = {w.rows(i.src[1], words, t[1]),
                        w.rows(i.src[2], words, t[3])};
  unsigned scale = bytes * (i.param & 0x100 ? 64 : 1);
  u32(*d)[MaxLanes] = &w.v[i.dst[0].index];
  for (uint64_t m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    // The destination may hold sources.
    u32 address = a[l], in[2][words], out[2][words];
    for (unsigned part = 0; part < 2; ++part)
      for (unsigned k = 0; k < words; ++k)
        in[part][k] = data[part][k * MaxLanes + l];
    for (unsigned part = 0; part < 2; ++part) {
      uint64_t x = u32(address + u32(part ? i.imm2 : i.imm) * scale);
      uint8_t *p = w.lds(i, x, bytes, int(l));
      if (!p)
        return;
      std::memcpy(out[part], p, bytes);
      std::memcpy(p, in[part], bytes);
      note(w, i, l, x, bytes, Access::Atomic);
    }
    for (unsigned k = 0; k < 2 * words; ++k)
      d[k][l] = out[k / words][k % words];
  }
}
/// Replaces each word whose operand has its top bit set, by the other bits.
void conditionalExchange(Wave &w, const Inst &i) {
  alignas(32) u32 t[3][MaxLanes];
  const u32 *a = w.rows(i.src[0], 1, t[0]), *x = w.rows(i.src[1], 2, t[1]);
  u32(*d)[MaxLanes] = &w.v[i.dst[0].index];
  for (uint64_t m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    uint64_t address = u32(a[l] + u32(i.imm));
    uint8_t *p = w.lds(i, address, 8, int(l));
    if (!p)
      return;
    u32 old[2], in[2] = {x[l], x[MaxLanes + l]};
    std::memcpy(old, p, 8);
    for (unsigned k = 0; k < 2; ++k) {
      u32 now = in[k] >> 31 ? in[k] & 0x7fffffff : old[k];
      std::memcpy(p + 4 * k, &now, 4);
      d[k][l] = old[k];
    }
    note(w, i, l, address, 8, Access::Atomic);
  }
}
/// Moves a counter at M0 + offset by the number of active lanes, which all get
/// its old value.
template <bool Append> void count(Wave &w, const Inst &i) {
  u32 address = (w.s[slot::M0] & 0xffff) + u32(i.imm), old;
  if (!w.exec)
    return;
  unsigned first = unsigned(llvm::countr_zero(w.exec)),
           lanes = unsigned(llvm::popcount(w.exec));
  uint8_t *p = w.lds(i, address, 4, int(first));
  if (!p)
    return;
  std::memcpy(&old, p, 4);
  u32 now = Append ? old + lanes : old - lanes;
  std::memcpy(p, &now, 4);
  note(w, i, first, address, 4, Access::Atomic);
  uint32_t *d = w.v[i.dst[0].index];
  forLanes(w, [&](unsigned l) { d[l] = old; });
}
/// Reads or writes lane l's word at M0 + offset + 4 * l.
template <bool Write> void addTid(Wave &w, const Inst &i) {
  alignas(32) u32 t[MaxLanes];
  u32 base = (w.s[slot::M0] & 0xffff) + u32(i.imm);
  const u32 *data = Write ? w.rows(i.src[0], 1, t) : nullptr;
  for (uint64_t m = w.exec; m; m &= m - 1) {
    unsigned l = unsigned(llvm::countr_zero(m));
    uint8_t *p = w.lds(i, base + 4 * l, 4, int(l));
    if (!p)
      return;
    if (Write)
      std::memcpy(p, &data[l], 4);
    else
      std::memcpy(&w.v[i.dst[0].index][l], p, 4);
    note(w, i, l, base + 4 * l, 4, Write ? Access::Write : Access::Read);
  }
}

void nothing(Wave &, const Inst &) {}

#define R(name, param) {name, read, "r=i", param, 0, Unit::Lds}
#define W(name, param) {name, write, "=ir", param, 0, Unit::Lds}
#define R2(name, param) {name, read2, "r=i", param, 0, Unit::Lds}
#define W2(name, param) {name, write2, "=irr", param, 0, Unit::Lds}
#define A(name, op) {"ds_" name, atomic, "=ir", op, 0, Unit::Lds}
#define AR(name, op) {"ds_" name, atomic, "r=ir", op, 0, Unit::Lds}
#define ALL(name, suffix32, suffix64, op)                                      \
  A(name "_" suffix32, op), AR(name "_rtn_" suffix32, op),                     \
      A(name "_" suffix64, op | Atomic64),                                     \
      AR(name "_rtn_" suffix64, op | Atomic64)
#define TWO(name, op)                                                          \
  {"ds_" name "_b32", atomic, "=irr", op, 0, Unit::Lds},                       \
      {"ds_" name "_rtn_b32", atomic, "r=irr", op, 0, Unit::Lds},              \
      {"ds_" name "_b64", atomic, "=irr", op | Atomic64, 0, Unit::Lds}, {      \
    "ds_" name "_rtn_b64", atomic, "r=irr", op | Atomic64, 0, Unit::Lds        \
  }

#define FLOATS(name)                                                           \
  {"ds_" name "_f32", atomic, "=irr", AtomicCmpSwapF, 0, Unit::Lds},           \
      {"ds_" name "_rtn_f32", atomic, "r=irr", AtomicCmpSwapF, 0, Unit::Lds},  \
      {"ds_" name "_f64",         atomic, "=irr",                              \
       AtomicCmpSwapF | Atomic64, 0,      Unit::Lds},                          \
  {                                                                            \
    "ds_" name "_rtn_f64", atomic, "r=irr", AtomicCmpSwapF | Atomic64, 0,      \
        Unit::Lds                                                              \
  }
#define X2(name, stride64)                                                     \
  {"ds_" name "_b32", exchange2<u32>, "r=irr", 0, 0, Unit::Lds},               \
      {"ds_" name "_b64", exchange2<uint64_t>, "r=irr", 0, 0, Unit::Lds},      \
      {"ds_" stride64 "_b32", exchange2<u32>, "r=irr", 0x100, 0, Unit::Lds}, { \
    "ds_" stride64 "_b64", exchange2<uint64_t>, "r=irr", 0x100, 0, Unit::Lds   \
  }

const OpInfo table[] = {
    R("ds_read_u8", 1),
    R("ds_read_i8", 1 | Sign),
    R("ds_read_u16", 2),
    R("ds_read_i16", 2 | Sign),
    R("ds_read_u8_d16", 1 | KeepHigh),
    R("ds_read_u8_d16_hi", 1 | KeepLow),
    R("ds_read_i8_d16", 1 | Sign | KeepHigh),
    R("ds_read_i8_d16_hi", 1 | Sign | KeepLow),
    R("ds_read_u16_d16", 2 | KeepHigh),
    R("ds_read_u16_d16_hi", 2 | KeepLow),
    R("ds_read_b32", 4),
    R("ds_read_b64", 8),
    R("ds_read_b96", 12),
    R("ds_read_b128", 16),
    R("ds_load_u8", 1),
    R("ds_load_i8", 1 | Sign),
    R("ds_load_u16", 2),
    R("ds_load_i16", 2 | Sign),
    R("ds_load_u8_d16", 1 | KeepHigh),
    R("ds_load_u8_d16_hi", 1 | KeepLow),
    R("ds_load_i8_d16", 1 | Sign | KeepHigh),
    R("ds_load_i8_d16_hi", 1 | Sign | KeepLow),
    R("ds_load_u16_d16", 2 | KeepHigh),
    R("ds_load_u16_d16_hi", 2 | KeepLow),
    R("ds_load_b32", 4),
    R("ds_load_b64", 8),
    R("ds_load_b96", 12),
    R("ds_load_b128", 16),
    W("ds_write_b8", 1),
    W("ds_write_b16", 2),
    W("ds_write_b8_d16_hi", 1 | KeepLow),
    W("ds_write_b16_d16_hi", 2 | KeepLow),
    W("ds_write_b32", 4),
    W("ds_write_b64", 8),
    W("ds_write_b96", 12),
    W("ds_write_b128", 16),
    W("ds_store_b8", 1),
    W("ds_store_b16", 2),
    W("ds_store_b8_d16_hi", 1 | KeepLow),
    W("ds_store_b16_d16_hi", 2 | KeepLow),
    W("ds_store_b32", 4),
    W("ds_store_b64", 8),
    W("ds_store_b96", 12),
    W("ds_store_b128", 16),
    R2("ds_read2_b32", 4),
    R2("ds_read2_b64", 8),
    R2("ds_read2st64_b32", 4 | 0x100),
    R2("ds_read2st64_b64", 8 | 0x100),
    R2("ds_load_2addr_b32", 4),
    R2("ds_load_2addr_b64", 8),
    R2("ds_load_2addr_stride64_b32", 4 | 0x100),
    R2("ds_load_2addr_stride64_b64", 8 | 0x100),
    W2("ds_write2_b32", 4),
    W2("ds_write2_b64", 8),
    W2("ds_write2st64_b32", 4 | 0x100),
    W2("ds_write2st64_b64", 8 | 0x100),
    W2("ds_store_2addr_b32", 4),
    W2("ds_store_2addr_b64", 8),
    W2("ds_store_2addr_stride64_b32", 4 | 0x100),
    W2("ds_store_2addr_stride64_b64", 8 | 0x100),
    ALL("add", "u32", "u64", AtomicAdd),
    ALL("sub", "u32", "u64", AtomicSub),
    ALL("rsub", "u32", "u64", AtomicRsub),
    ALL("inc", "u32", "u64", AtomicInc),
    ALL("dec", "u32", "u64", AtomicDec),
    ALL("min", "i32", "i64", AtomicSmin),
    ALL("max", "i32", "i64", AtomicSmax),
    ALL("min", "u32", "u64", AtomicUmin),
    ALL("max", "u32", "u64", AtomicUmax),
    ALL("and", "b32", "b64", AtomicAnd),
    ALL("or", "b32", "b64", AtomicOr),
    ALL("xor", "b32", "b64", AtomicXor),
    ALL("add", "f32", "f64", AtomicAddF),
    ALL("min", "f32", "f64", AtomicMinF),
    ALL("max", "f32", "f64", AtomicMaxF),
    ALL("min_num", "f32", "f64", AtomicMinF),
    ALL("max_num", "f32", "f64", AtomicMaxF),
    A("pk_add_f16", AtomicPkAddF16),
    AR("pk_add_rtn_f16", AtomicPkAddF16),
    A("pk_add_bf16", AtomicPkAddBf16),
    AR("pk_add_rtn_bf16", AtomicPkAddBf16),
    AR("wrxchg_rtn_b32", AtomicSwap),
    AR("wrxchg_rtn_b64", AtomicSwap | Atomic64),
    AR("storexchg_rtn_b32", AtomicSwap),
    AR("storexchg_rtn_b64", AtomicSwap | Atomic64),
    TWO("cmpst", AtomicCmpSwap),
    TWO("cmpstore", AtomicCmpSwap),
    TWO("mskor", AtomicMskor),
    FLOATS("cmpst"),
    FLOATS("cmpstore"),
    A("sub_clamp_u32", AtomicSubClamp),
    AR("sub_clamp_rtn_u32", AtomicSubClamp),
    A("cond_sub_u32", AtomicCondSub),
    AR("cond_sub_rtn_u32", AtomicCondSub),
    {"ds_wrap_rtn_b32", atomic, "r=irr", AtomicWrap, 0, Unit::Lds},
    X2("wrxchg2_rtn", "wrxchg2st64_rtn"),
    X2("storexchg_2addr_rtn", "storexchg_2addr_stride64_rtn"),
    {"ds_condxchg32_rtn_b64", conditionalExchange, "r=ir", 0, 0, Unit::Lds},
    {"ds_append", count<true>, "i=", 0, 0, Unit::Lds},
    {"ds_consume", count<false>, "i=", 0, 0, Unit::Lds},
    {"ds_read_addtid_b32", addTid<false>, "i=", 0, 0, Unit::Lds},
    {"ds_load_addtid_b32", addTid<false>, "i=", 0, 0, Unit::Lds},
    {"ds_write_addtid_b32", addTid<true>, "=i", 0, 0, Unit::Lds},
    {"ds_store_addtid_b32", addTid<true>, "=i", 0, 0, Unit::Lds},
    {"ds_nop", nothing, "=", 0, 0, Unit::Lds},
};

} // namespace

OpTable greta::sim::dsOps() { return table; }
