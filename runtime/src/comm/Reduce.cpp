// Reduce.cpp: see Reduce.h.
#include "comm/Reduce.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <system_error>
#include <type_traits>

namespace greta::rt::comm {
namespace {

#define GRETA_INLINE inline __attribute__((always_inline))

template <typename T> struct Exact {
  using Stored = T;
  using Wide = T;
  static GRETA_INLINE T load(T V) { return V; }
  static GRETA_INLINE T store(T V) { return V; }
};

struct F16 {
  using Stored = uint16_t;
  using Wide = float;
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
  using Wide = float;
  static GRETA_INLINE float load(uint16_t V) {
    uint32_t Bits = uint32_t(V) << 16;
    float F;
    memcpy(&F, &Bits, sizeof(F));
    return F;
  }
  static GRETA_INLINE uint16_t store(float V) {
    uint32_t Bits;
    memcpy(&Bits, &V, sizeof(V));
    // It rounds to nearest, ties to even; a NaN stays one.
    uint32_t Rounded = (Bits + 0x7fff + (Bits >> 16 & 1)) >> 16;
    return static_cast<uint16_t>(V == V ? Rounded : (Bits >> 16 | 64));
  }
};

// Unsigned integers wrap, as NumPy's sums and products do, without overflow.
template <typename W>
using Wrapping =
    typename std::conditional_t<std::is_integral_v<W>, std::make_unsigned<W>,
                                std::enable_if<true, W>>::type;

// A reduction joins two elements, and finishes the result of all ranks.
struct SumOf {
  template <typename W> static GRETA_INLINE W join(W A, W B) {
    return static_cast<W>(Wrapping<W>(A) + Wrapping<W>(B));
  }
  template <typename W> static GRETA_INLINE W end(W All, size_t) { return All; }
};
struct AverageOf : SumOf {
  template <typename W> static GRETA_INLINE W end(W All, size_t Ranks) {
    if constexpr (std::is_integral_v<W>)
      return static_cast<W>(int64_t(All) / static_cast<int64_t>(Ranks));
    else
      return All / static_cast<W>(Ranks);
  }
};
struct ProductOf : SumOf {
  template <typename W> static GRETA_INLINE W join(W A, W B) {
    return static_cast<W>(Wrapping<W>(A) * Wrapping<W>(B));
  }
};
struct MaxOf : SumOf {
  template <typename W> static GRETA_INLINE W join(W A, W B) {
    return A > B || A != A ? A : B;
  }
};
struct MinOf : SumOf {
  template <typename W> static GRETA_INLINE W join(W A, W B) {
    return A < B || A != A ? A : B;
  }
};

// Blocks are so small that their sums stay in the first cache.
constexpr size_t blockElements = 1024;

template <typename T, typename Op>
GRETA_INLINE void reduceAll(const char *const *Parts, size_t Ranks, char *To,
                            size_t Count) {
  using Stored = typename T::Stored;
  std::array<typename T::Wide, blockElements> All;
  for (size_t At = 0; At < Count; At += blockElements) {
    size_t N = std::min(blockElements, Count - At);
    for (size_t R = 0; R < Ranks; ++R) {
      auto *From = reinterpret_cast<const Stored *>(Parts[R]) + At;
      if (R == 0)
        for (size_t I = 0; I < N; ++I)
          All[I] = T::load(From[I]);
      else
        for (size_t I = 0; I < N; ++I)
          All[I] = Op::join(All[I], T::load(From[I]));
    }
    auto *Out = reinterpret_cast<Stored *>(To) + At;
    for (size_t I = 0; I < N; ++I)
      Out[I] = T::store(Op::end(All[I], Ranks));
  }
}

using Function = void (*)(const char *const *, size_t, char *, size_t);

template <typename T, typename Op>
void reducePlain(const char *const *Parts, size_t Ranks, char *To,
                 size_t Count) {
  reduceAll<T, Op>(Parts, Ranks, To, Count);
}

#if defined(__x86_64__)
// Does the same with vectors of eight and hardware conversions of halves.
template <typename T, typename Op>
__attribute__((target("avx2,f16c"))) void
reduceAvx2(const char *const *Parts, size_t Ranks, char *To, size_t Count) {
  reduceAll<T, Op>(Parts, Ranks, To, Count);
}
#endif

struct Entry {
  Function Plain, Avx2;
};
template <typename T, typename Op> constexpr Entry entry() {
#if defined(__x86_64__)
  return {&reducePlain<T, Op>, &reduceAvx2<T, Op>};
#else
  return {&reducePlain<T, Op>, &reducePlain<T, Op>};
#endif
}

// Lists reductions in the order of Reduction, types in that of Element.
using Row = std::array<Entry, reductionCount>;
template <typename T> constexpr Row row() {
  return {entry<T, SumOf>(), entry<T, MaxOf>(), entry<T, MinOf>(),
          entry<T, ProductOf>(), entry<T, AverageOf>()};
}
constexpr std::array<Row, elements.size()> table = {
    row<Exact<uint8_t>>(), row<Exact<int8_t>>(), row<Exact<int32_t>>(),
    row<Exact<int64_t>>(), row<F16>(),           row<BF16>(),
    row<Exact<float>>(),   row<Exact<double>>()};

bool hasAvx2() {
#if defined(__x86_64__)
  static const bool Has = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  }();
  return Has;
#else
  return false;
#endif
}

} // namespace

void reduce(Element Type, Reduction Op, const char *const *Parts, size_t Ranks,
            char *To, size_t Count) {
  const Entry &E = table[static_cast<size_t>(Type)][static_cast<size_t>(Op)];
  (hasAvx2() ? E.Avx2 : E.Plain)(Parts, Ranks, To, Count);
}

Helpers::Helpers(unsigned Count) {
  Threads.reserve(Count);
  try {
    for (unsigned I = 0; I < Count; ++I)
      Threads.emplace_back([this, I] { work(I + 1); });
  } catch (const std::system_error &) {
    // The threads that did start share the work.
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

// A helper stays awake between the steps of one collective.
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
