//===- Footprint.cpp - how much memory a whole grid touches ---------------===//
//
// Comes in: the 128-byte lines that each workgroup of a sample touched, and the
// map of allocations. Goes out: bytes that the grid touches, each once.
//
// Lines that one workgroup of the sample touched stand for as many in the rest
// of the grid. Lines of several are shared operands, such as a vector that all
// multiply with, and count once. Operands may be shared by workgroups of which
// the sample has only one: no allocation has more lines than its size, nor than
// lie between the sample's first and last one there, which are those of the
// grid.
//
//===----------------------------------------------------------------------===//
#include "Timing/Footprint.h"
#include "llvm/ADT/MapVector.h"

using namespace greta::sim;
using namespace llvm;

namespace {
struct Touched {
  uint64_t single = 0, shared = 0, first = 0, last = 0; ///< lines
};
} // namespace

uint64_t greta::sim::footprint(ArrayRef<GroupTrace> sample, uint64_t groups,
                               const MemoryMap &memory) {
  std::vector<uint64_t> lines;
  for (const GroupTrace &t : sample)
    lines.insert(lines.end(), t.lines.begin(), t.lines.end());
  llvm::sort(lines);
  MapVector<const Region *, Touched> regions;
  const Region *region = nullptr;
  for (size_t k = 0; k < lines.size();) {
    uint64_t line = lines[k], end = line * 128 + 127;
    // The line may begin before its allocation or end behind it.
    if (!region || end - region->base >= region->size + 127)
      region = memory.find(end) ? memory.find(end) : memory.find(line * 128);
    size_t same = k;
    while (k < lines.size() && lines[k] == line)
      ++k;
    auto [at, isNew] = regions.try_emplace(region);
    Touched &t = at->second;
    (k - same > 1 ? t.shared : t.single) += 1;
    if (isNew)
      t.first = line;
    t.last = line;
  }
  double n = double(sample.size()), bytes = 0;
  for (const auto &[where, t] : regions) {
    double most = double(t.shared) + double(t.single) * double(groups) / n;
    most = 128 * std::min(most, double(t.last - t.first + 1));
    bytes += where ? std::min(most, double(where->size)) : most;
  }
  return uint64_t(bytes);
}
