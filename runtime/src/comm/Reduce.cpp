// Reduce.cpp: see Reduce.h.
#include "comm/Reduce.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <system_error>

namespace greta::rt::comm {
namespace {

#define GRETA_INLINE inline __attribute__((always_inline))

struct F32 {
  using Stored = float;
  using Sum = float;
  static GRETA_INLINE float load(float V) { return V; }
  static GRETA_INLINE float store(float V) { return V; }
};

struct F16 {
  using Stored = uint16_t;
  using Sum = float;
  static GRETA_INLINE float load(uint16_t V) {
    _Float16 H;
    memcpy(&H, &V, sizeof(H));
    return static_cast<float>(H);
  }
  static GRETA_INLINE uint16_t store(float V) {
    auto H = static_cast<_Float16>(V);
    uint16_t Bits;
    memcpy(&Bits, &H, sizeof(H));
    return Bits;
  }
};

struct BF16 {
  using Stored = uint16_t;
  using Sum = float;
  static GRETA_INLINE float load(uint16_t V) {
    uint32_t Bits = uint32_t(V) << 16;
    float F;
    memcpy(&F, &Bits, sizeof(F));
    return F;
  }
  static GRETA_INLINE uint16_t store(float V) {
    uint32_t Bits;
    memcpy(&Bits, &V, sizeof(V));
    // To the nearest, ties to even; a NaN stays one.
    uint32_t Rounded = (Bits + 0x7fff + (Bits >> 16 & 1)) >> 16;
    return static_cast<uint16_t>(V == V ? Rounded : (Bits >> 16 | 64));
  }
};

// Sums wrap, as NumPy's do.
struct I32 {
  using Stored = uint32_t;
  using Sum = uint32_t;
  static GRETA_INLINE uint32_t load(uint32_t V) { return V; }
  static GRETA_INLINE uint32_t store(uint32_t V) { return V; }
};

GRETA_INLINE float larger(float A, float B) { return A > B || A != A ? A : B; }
GRETA_INLINE uint32_t larger(uint32_t A, uint32_t B) {
  return static_cast<int32_t>(A) > static_cast<int32_t>(B) ? A : B;
}

// In blocks whose sums stay in the first cache.
constexpr size_t blockElements = 1024;

template <typename T, bool Max>
GRETA_INLINE void reduceAll(const char *const *Parts, size_t Ranks, char *To,
                            size_t Count) {
  using Stored = typename T::Stored;
  std::array<typename T::Sum, blockElements> Sum;
  for (size_t At = 0; At < Count; At += blockElements) {
    size_t N = std::min(blockElements, Count - At);
    for (size_t R = 0; R < Ranks; ++R) {
      auto *From = reinterpret_cast<const Stored *>(Parts[R]) + At;
      if (R == 0)
        for (size_t I = 0; I < N; ++I)
          Sum[I] = T::load(From[I]);
      else if (Max)
        for (size_t I = 0; I < N; ++I)
          Sum[I] = larger(Sum[I], T::load(From[I]));
      else
        for (size_t I = 0; I < N; ++I)
          Sum[I] += T::load(From[I]);
    }
    auto *Out = reinterpret_cast<Stored *>(To) + At;
    for (size_t I = 0; I < N; ++I)
      Out[I] = T::store(Sum[I]);
  }
}

template <bool Max>
GRETA_INLINE void reduceAny(Element Type, const char *const *Parts,
                            size_t Ranks, char *To, size_t Count) {
  switch (Type) {
  case Element::F32:
    return reduceAll<F32, Max>(Parts, Ranks, To, Count);
  case Element::F16:
    return reduceAll<F16, Max>(Parts, Ranks, To, Count);
  case Element::BF16:
    return reduceAll<BF16, Max>(Parts, Ranks, To, Count);
  case Element::I32:
    return reduceAll<I32, Max>(Parts, Ranks, To, Count);
  case Element::Byte:
    return;
  }
}

void reducePlain(Element Type, Reduction Op, const char *const *Parts,
                 size_t Ranks, char *To, size_t Count) {
  if (Op == Reduction::Max)
    reduceAny<true>(Type, Parts, Ranks, To, Count);
  else
    reduceAny<false>(Type, Parts, Ranks, To, Count);
}

#if defined(__x86_64__)
// The same, with vectors of eight and conversions of halves in hardware.
__attribute__((target("avx2,f16c"))) void reduceAvx2(Element Type, Reduction Op,
                                                     const char *const *Parts,
                                                     size_t Ranks, char *To,
                                                     size_t Count) {
  if (Op == Reduction::Max)
    reduceAny<true>(Type, Parts, Ranks, To, Count);
  else
    reduceAny<false>(Type, Parts, Ranks, To, Count);
}
#endif

} // namespace

void reduce(Element Type, Reduction Op, const char *const *Parts, size_t Ranks,
            char *To, size_t Count) {
#if defined(__x86_64__)
  static const bool HasAvx2 = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  }();
  if (HasAvx2)
    return reduceAvx2(Type, Op, Parts, Ranks, To, Count);
#endif
  reducePlain(Type, Op, Parts, Ranks, To, Count);
}

Helpers::Helpers(unsigned Count) {
  Threads.reserve(Count);
  try {
    for (unsigned I = 0; I < Count; ++I)
      Threads.emplace_back([this, I] { work(I + 1); });
  } catch (const std::system_error &) {
    // The threads that could start do it.
  }
}

Helpers::~Helpers() {
  {
    std::lock_guard<std::mutex> Guard(Lock);
    Ends = true;
  }
  Changed.notify_all();
  for (std::thread &T : Threads)
    T.join();
}

void Helpers::run(const std::function<void(unsigned, unsigned)> &F) {
  if (!Threads.empty()) {
    std::lock_guard<std::mutex> Guard(Lock);
    Job = &F;
    Busy = static_cast<unsigned>(Threads.size());
    ++Round;
  }
  Changed.notify_all();
  F(0, parts());
  while (Busy)
    std::this_thread::yield();
}

// Between the steps of one collective a helper stays awake.
void Helpers::work(unsigned Part) {
  for (uint64_t Seen = 0;;) {
    auto Begin = std::chrono::steady_clock::now();
    while (Round == Seen && !Ends &&
           std::chrono::steady_clock::now() - Begin <
               std::chrono::microseconds(200))
      std::this_thread::yield();
    {
      std::unique_lock<std::mutex> Guard(Lock);
      Changed.wait(Guard, [&] { return Ends || Round != Seen; });
      if (Ends)
        return;
      Seen = Round;
    }
    (*Job)(Part, parts());
    --Busy;
  }
}

} // namespace greta::rt::comm
