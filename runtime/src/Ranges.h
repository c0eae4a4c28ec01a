// Ranges.h: which parts of a block of memory are taken. In: sizes and
// alignments. Out: offsets; the smallest free part that is enough is taken, and
// free neighbours are one part.
#ifndef GRETA_RUNTIME_RANGES_H
#define GRETA_RUNTIME_RANGES_H

#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace greta::rt {

class Ranges {
public:
  explicit Ranges(uint64_t Size) { addFree(0, Size); }

  // Returns none if no free part is large enough. Size 0 takes one byte.
  std::optional<uint64_t> take(uint64_t Size, uint64_t Alignment);
  // Frees an offset that was taken.
  void give(uint64_t Offset);

  bool empty() const { return Taken.empty(); }
  uint64_t largestFree() const {
    return BySize.empty() ? 0 : BySize.rbegin()->first;
  }

private:
  void addFree(uint64_t Offset, uint64_t Size);
  void dropFree(std::map<uint64_t, uint64_t>::iterator Part);

  std::map<uint64_t, uint64_t> Free, Taken;       // offset to size
  std::set<std::pair<uint64_t, uint64_t>> BySize; // of free parts
};

} // namespace greta::rt
#endif
