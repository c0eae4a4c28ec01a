//===- Waves.cpp - how waves share an accumulator -------------------------===//
#include "greta/Layout/Waves.h"

using namespace greta;
using llvm::SmallVector;

SmallVector<std::pair<unsigned, bool>> greta::waveBits(int64_t tileM,
                                                       int64_t tileN, int64_t m,
                                                       int64_t n,
                                                       int64_t waves) {
  SmallVector<std::pair<unsigned, bool>> bits;
  int64_t left[2] = {powerPart(m / tileM), powerPart(n / tileN)};
  int64_t extent[2] = {m, n};
  for (; waves > 1; waves /= 2) {
    unsigned dim = extent[0] >= extent[1] ? 0 : 1;
    if (left[dim] == 1)
      dim = 1 - dim;
    bits.push_back({dim, left[dim] > 1});
    left[dim] = std::max<int64_t>(1, left[dim] / 2);
    extent[dim] /= 2;
  }
  return bits;
}
