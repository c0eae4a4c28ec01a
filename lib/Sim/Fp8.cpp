//===- Fp8.cpp - conversions of the 8, 6 and 4-bit float formats ----------===//
#include "Fp8.h"
#include "Float.h"
#include <array>

using namespace greta::sim;

const float *greta::sim::fp8Values(bool bf8, bool fnuz) {
  static const auto tables = [] {
    std::array<std::array<float, 256>, 4> t;
    for (unsigned k = 0; k < 4; ++k)
      for (unsigned c = 0; c < 256; ++c)
        t[k][c] = fp8ToFloat(uint8_t(c), k & 1, k & 2);
    return t;
  }();
  return tables[bf8 + 2 * fnuz].data();
}

const float *greta::sim::fp6Values(bool e3m2) {
  static const auto tables = [] {
    std::array<std::array<float, 64>, 2> t;
    for (unsigned k = 0; k < 2; ++k)
      for (unsigned c = 0; c < 64; ++c)
        t[k][c] = fp6ToFloat(c, k);
    return t;
  }();
  return tables[e3m2].data();
}

const float *greta::sim::fp4Values() {
  static const auto table = [] {
    std::array<float, 16> t;
    for (unsigned c = 0; c < 16; ++c)
      t[c] = fp4ToFloat(c);
    return t;
  }();
  return table.data();
}
