//===- EstimateJson.cpp - an estimate as JSON -----------------------------===//
//
// Comes in: a CycleEstimate. Goes out: the members that greta-sim --json and
// the virtual Radeon's record have in common.
//
//===----------------------------------------------------------------------===//
#include "greta/Sim/EstimateJson.h"

using namespace greta::sim;

void greta::sim::writeEstimate(llvm::json::OStream &out,
                               const CycleEstimate &e) {
  out.attribute("bound", e.bound);
  out.attribute("cycles", e.cycles);
  out.attribute("launch_cycles", e.launchCycles);
  out.attribute("memory_cycles", e.memoryCycles);
  out.attribute("microseconds", e.microseconds);
  out.attribute("workgroups", e.workgroups);
  out.attribute("occupancy_limit", e.occupancyLimit);
  out.attribute("waves_per_simd", e.wavesPerSimd);
  out.attribute("truncated", e.truncated);
  out.attributeObject("busy", [&] {
    out.attribute("matrix", e.matrixShare);
    out.attribute("valu", e.valuShare);
    out.attribute("salu", e.saluShare);
    out.attribute("lds", e.ldsShare);
    out.attribute("vmem", e.vmemShare);
  });
  out.attributeObject("wait", [&] {
    out.attribute("global", e.waitGlobal);
    out.attribute("lds", e.waitLds);
    out.attribute("scalar", e.waitScalar);
    out.attribute("barrier", e.waitBarrier);
    out.attribute("dependency", e.waitDependency);
    out.attribute("unit", e.waitUnit);
  });
  if (e.loopIterations)
    out.attributeObject("loop", [&] {
      out.attribute("begin", e.loopBegin);
      out.attribute("end", e.loopEnd);
      out.attribute("iterations", e.loopIterations);
      out.attribute("cycles", e.loopCyclesPerIteration);
      out.attribute("matrix_cycles", e.loopMatrixPerIteration);
      out.attribute("matrix_busy", e.loopMatrixShare);
    });
}
