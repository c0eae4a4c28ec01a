// Reduce.h: reductions on the host. In: the same elements of several ranks.
// Out: for each element its reduction in the order of the ranks, f16 and bf16
// in f32 and rounded once, so that it is the same for every division of the
// work.
#ifndef GRETA_RUNTIME_COMM_REDUCE_H
#define GRETA_RUNTIME_COMM_REDUCE_H

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace greta::rt::comm {

// U8 stands for bytes that only move.
enum class Element : uint8_t { U8, I8, I32, I64, F16, BF16, F32, F64 };
struct ElementInfo {
  const char *Name;
  size_t Bytes;
};
constexpr std::array<ElementInfo, 8> elements = {{{"u8", 1},
                                                  {"i8", 1},
                                                  {"i32", 4},
                                                  {"i64", 8},
                                                  {"f16", 2},
                                                  {"bf16", 2},
                                                  {"f32", 4},
                                                  {"f64", 8}}};
constexpr size_t bytesOf(Element E) {
  return elements[static_cast<size_t>(E)].Bytes;
}

// This has the numbers of greta_comm_reduction.
enum class Reduction : uint8_t { Sum, Max, Min, Product, Average };
constexpr size_t reductionCount = 5;

// `To` does not overlap any part.
void reduce(Element Type, Reduction Op, const char *const *Parts, size_t Ranks,
            char *To, size_t Count);

// Threads that share the work of a loop with their caller.
class Helpers {
public:
  explicit Helpers(unsigned Count);
  ~Helpers();
  // Calls F(part, parts) once for every part, and returns when all have.
  void run(const std::function<void(unsigned, unsigned)> &F);
  unsigned parts() const { return static_cast<unsigned>(Threads.size()) + 1; }

private:
  void work(unsigned Part);
  std::mutex Lock;
  std::condition_variable Changed;
  std::atomic<uint64_t> Round{0};
  std::atomic<unsigned> Busy{0};
  std::atomic<bool> Ends{false};
  const std::function<void(unsigned, unsigned)> *Job = nullptr;
  std::vector<std::thread> Threads;
};

} // namespace greta::rt::comm
#endif
