// CommTest.h: what the tests of communicators have in common. Ranks are threads
// of the test; what a collective should give is computed here.
#ifndef GRETA_TEST_RUNTIME_COMMTEST_H
#define GRETA_TEST_RUNTIME_COMMTEST_H

#include "EveryDevice.h"
#include "TestPackage.h"
#include "greta_runtime.hpp"

#include <atomic>
#include <cstring>
#include <functional>
#include <netinet/in.h>
#include <random>
#include <spawn.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace greta_test {

constexpr uint64_t enough = 60000; // milliseconds, for the slowest sanitizer

// A rank on its device.
struct Rank {
  Rank(const std::string &Spec, greta_comm_options O)
      : R(Spec), S(R.stream()), C(R.comm(O)), Number(O.rank), Size(O.size) {}
  greta::Runtime R;
  greta::Stream S;
  greta::Comm C;
  uint32_t Number, Size;
};

inline greta_comm_options options(uint32_t Number, uint32_t Size,
                                  const greta_comm_id &Id) {
  greta_comm_options O{};
  O.id = &Id;
  O.rank = Number;
  O.size = Size;
  O.timeout_milliseconds = enough;
  O.staging_bytes = 1; // the least, for many steps
  return O;
}

// An address of this host that nobody else listens at. The system gives ports
// from 32768 on to who asks for any, as UCX does before rank 0 listens.
inline std::string freeAddress() {
  static std::mt19937 Random{std::random_device{}()};
  for (;;) {
    uint32_t Port = std::uniform_int_distribution<>(20000, 32000)(Random);
    int Fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in A{};
    A.sin_family = AF_INET;
    A.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    A.sin_port = htons(static_cast<uint16_t>(Port));
    bool IsFree = !bind(Fd, reinterpret_cast<sockaddr *>(&A), sizeof(A));
    close(Fd);
    if (IsFree)
      return "127.0.0.1:" + std::to_string(Port);
  }
}

inline std::string ranksName(const testing::TestParamInfo<const char *> &I) {
  return deviceName(I).substr(0, strcspn(I.param, "@")) +
         (strchr(I.param, '@') ? "_hosts" : "");
}

// Runs Body(number) in so many threads, and waits for them.
template <typename Body> void together(uint32_t Count, Body B) {
  std::vector<std::thread> Threads;
  for (uint32_t N = 0; N < Count; ++N)
    Threads.emplace_back([&, N] { B(N); });
  for (std::thread &T : Threads)
    T.join();
}

// Runs Body(rank) in a thread for each rank; on "device@hosts" the ranks are as
// if each was on a host of its own, on "device:" each has the device of its
// number.
template <typename Body>
void ranks(const std::string &Where, uint32_t Size, Body B,
           greta_comm_options Usual = {}) {
  const std::string Spec = Where.substr(0, Where.find('@'));
  const std::string Address = Spec == Where ? "" : freeAddress();
  greta_comm_id Id = greta::Comm::uniqueId();
  together(Size, [&](uint32_t N) {
    try {
      greta_comm_options O = options(N, Size, Id);
      O.ways = Usual.ways;
      if (Usual.staging_bytes)
        O.staging_bytes = Usual.staging_bytes;
      if (!Address.empty())
        O.address = Address.c_str();
      if (Usual.timeout_milliseconds)
        O.timeout_milliseconds = Usual.timeout_milliseconds;
      Rank Own(Spec.back() == ':' ? Spec + std::to_string(N) : Spec, O);
      B(Own);
    } catch (const std::exception &E) {
      ADD_FAILURE() << "rank " << N << ": " << E.what();
    }
  });
}

// Elements are small integers, so that sums are exact in every type.
inline int valueOf(uint32_t Rank, size_t I, uint32_t Seed) {
  return static_cast<int>((I * 7 + Rank * 5 + Seed * 3) % 17) - 8;
}

constexpr const char *everyType[] = {"f32", "f16", "bf16", "f64",
                                     "i8",  "u8",  "i32",  "i64"};

inline size_t sizeOf(const std::string &Type) {
  return Type.substr(1) == "8"             ? 1
         : Type == "f16" || Type == "bf16" ? 2
         : Type.substr(1) == "64"          ? 8
                                           : 4;
}

inline bool isInteger(const std::string &Type) {
  return Type[0] == 'i' || Type[0] == 'u';
}

// The value as an integer of the type holds it, which may have too few bits.
inline int wrapped(const std::string &Type, int Value) {
  return Type == "i8"   ? static_cast<int8_t>(Value)
         : Type == "u8" ? static_cast<uint8_t>(Value)
                        : Value;
}

inline void put(std::vector<char> &To, size_t I, const std::string &Type,
                double Value) {
  auto Store = [&](auto Number) {
    memcpy(&To[I * sizeof(Number)], &Number, sizeof(Number));
  };
  auto Number = static_cast<float>(Value);
  if (Type == "f64")
    return Store(Value);
  if (Type == "f32")
    return Store(Number);
  if (Type == "f16")
    return Store(static_cast<_Float16>(Number));
  if (Type == "bf16") { // the upper half of a float, to the nearest
    uint32_t Bits;
    memcpy(&Bits, &Number, 4);
    return Store(
        static_cast<uint16_t>((Bits + 0x7fff + (Bits >> 16 & 1)) >> 16));
  }
  auto Whole = static_cast<int64_t>(Value);
  if (Type == "i32")
    return Store(static_cast<int32_t>(Whole));
  if (Type == "i64")
    return Store(Whole);
  Store(static_cast<uint8_t>(Whole));
}

inline std::vector<char> filled(uint32_t Rank, size_t Begin, size_t Count,
                                const std::string &Type, uint32_t Seed) {
  std::vector<char> All(Count * sizeOf(Type));
  for (size_t I = 0; I < Count; ++I)
    put(All, I, Type, valueOf(Rank, Begin + I, Seed));
  return All;
}

inline std::vector<char> reduced(uint32_t Ranks, size_t Begin, size_t Count,
                                 const std::string &Type, uint32_t Seed,
                                 greta_comm_reduction Op) {
  std::vector<char> All(Count * sizeOf(Type));
  for (size_t I = 0; I < Count; ++I) {
    // A float: the product of nothing and a negative number has a sign.
    double Value = wrapped(Type, valueOf(0, Begin + I, Seed));
    for (uint32_t R = 1; R < Ranks; ++R) {
      double Next = wrapped(Type, valueOf(R, Begin + I, Seed));
      Value = Op == GRETA_COMM_MAX       ? std::max(Value, Next)
              : Op == GRETA_COMM_MIN     ? std::min(Value, Next)
              : Op == GRETA_COMM_PRODUCT ? Value * Next
                                         : Value + Next;
    }
    int Divisor = Op == GRETA_COMM_AVERAGE ? static_cast<int>(Ranks) : 1;
    put(All, I, Type,
        isInteger(Type) ? wrapped(Type, static_cast<int>(Value)) / Divisor
                        : Value / Divisor);
  }
  return All;
}

enum Which : uint32_t { Reduce, Scatter, Gather, Cast, All, Ring, Last };

// One collective on buffers of its own, or in place; true if it is right.
inline bool isRight(Rank &Own, Which What, size_t Count,
                    const std::string &Type, greta_comm_reduction Op,
                    uint32_t Root, uint32_t Seed, bool InPlace = false) {
  uint32_t Me = Own.Number, N = Own.Size;
  size_t E = sizeOf(Type), Part = Count * E;
  size_t Gives = Count * (What == Scatter || What == All ? N : 1);
  size_t Gets = Count * (What == Gather || What == All ? N : 1);
  bool Shares = InPlace && What != All && What != Ring;
  greta::Buffer From = Own.R.allocate(std::max(Gives, Gets) * E), Other;
  if (!Shares)
    Other = Own.R.allocate(Gets * E);
  greta::Buffer &To = Shares ? From : Other;
  // The smaller buffer is this rank's part of the larger.
  size_t FromAt = Shares && What == Gather ? Me * Part : 0;
  size_t ToAt = Shares && What == Scatter ? Me * Part : 0;
  std::vector<char> Data = filled(Me, 0, Gives, Type, Seed);
  Own.S.write(From, Data.data(), Data.size(), FromAt);
  greta_comm *C = Own.C.get();
  greta_stream *S = Own.S.get();
  uint32_t Next = (Me + 1) % N, Before = (Me + N - 1) % N;
  std::vector<char> Want;
  switch (What) {
  case Reduce:
    greta::check(greta_comm_all_reduce(C, S, To.get(), 0, From.get(), 0, Count,
                                       Type.c_str(), Op));
    Want = reduced(N, 0, Count, Type, Seed, Op);
    break;
  case Scatter:
    greta::check(greta_comm_reduce_scatter(C, S, To.get(), ToAt, From.get(), 0,
                                           Count, Type.c_str(), Op));
    Want = reduced(N, Me * Count, Count, Type, Seed, Op);
    break;
  case Gather:
    greta::check(
        greta_comm_all_gather(C, S, To.get(), 0, From.get(), FromAt, Part));
    for (uint32_t R = 0; R < N; ++R) {
      std::vector<char> Its = filled(R, 0, Count, Type, Seed);
      Want.insert(Want.end(), Its.begin(), Its.end());
    }
    break;
  case Cast:
    greta::check(greta_comm_broadcast(
        C, S, To.get(), 0, Me == Root ? From.get() : nullptr, 0, Part, Root));
    Want = filled(Root, 0, Count, Type, Seed);
    break;
  case All:
    Own.C.allToAll(Own.S, To, From, Part);
    for (uint32_t R = 0; R < N; ++R) {
      std::vector<char> Its = filled(R, Me * Count, Count, Type, Seed);
      Want.insert(Want.end(), Its.begin(), Its.end());
    }
    break;
  default:
    Own.C.exchange(Own.S, {{From.get(), 0, Part, Next, 0},
                           {To.get(), 0, Part, Before, 1}});
    Want = filled(Before, 0, Count, Type, Seed);
  }
  std::vector<char> Got(Gets * E);
  if (!Got.empty())
    Own.S.read(To, Got.data(), Got.size(), ToAt);
  return Got == Want;
}

// A process that runs a disabled test, in a group of its own.
inline pid_t startTest(const std::string &Name, std::string Variable) {
  std::vector<char *> Environment = {Variable.data()};
  for (char **E = environ; *E; ++E)
    Environment.push_back(*E);
  Environment.push_back(nullptr);
  std::string Filter = "--gtest_filter=" + Name;
  const char *Arguments[] = {"greta-runtime-test", Filter.c_str(),
                             "--gtest_also_run_disabled_tests", nullptr};
  pid_t Child = 0;
  posix_spawnattr_t Group;
  posix_spawnattr_init(&Group);
  posix_spawnattr_setflags(&Group, POSIX_SPAWN_SETPGROUP);
  EXPECT_EQ(posix_spawn(&Child, "/proc/self/exe", nullptr, &Group,
                        const_cast<char **>(Arguments), Environment.data()),
            0);
  posix_spawnattr_destroy(&Group);
  return Child;
}

inline std::string refusal(const std::function<void()> &F,
                           greta_status Status = GRETA_ERROR_INVALID_ARGUMENT) {
  try {
    F();
  } catch (const greta::Error &E) {
    EXPECT_EQ(E.status(), Status) << E.what();
    return E.what();
  }
  return "none";
}

#define EXPECT_REFUSED(Text, ...)                                              \
  EXPECT_NE(refusal([&] { __VA_ARGS__; }).find(Text), std::string::npos)

} // namespace greta_test
#endif
