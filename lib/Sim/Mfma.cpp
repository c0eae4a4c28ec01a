//===- Mfma.cpp - matrix instructions of gfx9 -----------------------------===//
#include "Wave.h"
using namespace greta::sim;
OpTable greta::sim::mfmaOps() { return {}; }
OpTable greta::sim::wmmaOps() { return {}; }
