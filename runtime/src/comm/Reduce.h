// Reduce.h: sums and maxima on the host. In: the same elements of several
// ranks. Out: for each element the sum or the maximum in the order of the
// ranks, floats in f32 and rounded once, so that it is the same for every
// division of the work.
#ifndef GRETA_RUNTIME_COMM_REDUCE_H
#define GRETA_RUNTIME_COMM_REDUCE_H

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace greta::rt::comm {

enum class Element : uint8_t { Byte, I32, F16, BF16, F32 };
enum class Reduction : uint8_t { Sum, Max };

constexpr size_t bytesOf(Element E) {
  return E == Element::Byte                        ? 1
         : E == Element::F16 || E == Element::BF16 ? 2
                                                   : 4;
}

// `To` may be none of the parts.
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
