//===- EstimateJson.h - an estimate as JSON ---------------------*- C++ -*-===//
#ifndef GRETA_SIM_ESTIMATEJSON_H
#define GRETA_SIM_ESTIMATEJSON_H

#include "greta/Sim/Simulator.h"
#include "llvm/Support/JSON.h"

namespace greta::sim {

/// Adds the members of an estimate to the object that `out` is writing.
/// Cycles are the compute unit's; shares are between 0 and 1.
void writeEstimate(llvm::json::OStream &out, const CycleEstimate &e);

} // namespace greta::sim

#endif
