//===- Report.cpp - the estimate of a finished replay --------------------===//
//
// In: a replay at its end. Out: cycles, the share of time that each unit was
// busy and waves waited, the main loop, and the limit.
//
//===----------------------------------------------------------------------===//
#include "Timing/Replay.h"

using namespace greta::sim;

void Replay::reportLoop(CycleEstimate &out) const {
  Loop first =
      llvm::find_if(waves, [](const Runner &w) { return bool(w.loop); })->loop;
  out.loopBegin = program.code()[first.begin].address;
  out.loopEnd = program.code()[first.end].address;
  out.loopCycles = loopCycles;
  out.loopIterations = loopIterations;
  out.loopMatrixShare =
      loopCycles
          ? double(loopMatrix) / (double(loopCycles) * double(simds.size()))
          : 0;
  out.loopCyclesPerIteration = double(loopWaveTime) / double(loopIterations);
  out.loopMatrixPerIteration = double(loopMatrix) / double(loopIterations);
}

/// Fills in how long units were busy and waves waited.
void Replay::report(CycleEstimate &out) const {
  uint64_t end = 1, total = 0;
  for (const Runner &w : waves) {
    end = std::max(end, w.ended);
    total += w.ended;
  }
  out.cycles = end;
  out.simds = unsigned(simds.size());
  double area = double(end) * double(simds.size());
  uint64_t valu = 0, matrixBusy = 0, salu = 0;
  unsigned used = 0;
  for (const Simd &s : simds) {
    valu += s.valuBusy;
    matrixBusy += s.matrixBusy;
    salu += s.saluBusy;
    used += !s.waves.empty();
  }
  unsigned pipes = simds.size() > chip.simds ? 2 : 1;
  out.wavesPerSimd = double(waves.size()) / std::max(1u, used);
  out.matrixCycles = matrixBusy;
  out.matrixShare = double(matrixBusy) / area;
  out.valuShare = double(valu) / area;
  out.saluShare = double(salu) / area;
  out.ldsShare = double(ldsBusy) / double(end) / pipes;
  out.vmemShare = double(std::max(vmemBusy, fillBusy)) / double(end) / pipes;
  auto part = [&](Reason r) {
    return total ? double(stalls[r]) / double(total) : 0;
  };
  out.waitGlobal = part(OnGlobal);
  out.waitLds = part(OnLds);
  out.waitScalar = part(OnScalar);
  out.waitBarrier = part(OnBarrier);
  out.waitDependency = part(OnDependency);
  out.waitUnit = part(OnUnit);
  if (loopIterations)
    reportLoop(out);
  // Only SIMDs that have waves count for the limit.
  double busyArea = double(end) * double(std::max(1u, used));
  std::pair<double, const char *> units[] = {
      {double(matrixBusy) / busyArea, "matrix units"},
      {double(valu) / busyArea, "vector ALU"},
      {out.ldsShare, "LDS"},
      {out.vmemShare, "vector memory unit"},
      {double(salu) / busyArea, "scalar ALU"}};
  std::pair<double, const char *> waits[] = {
      {out.waitGlobal, "waiting for global memory"},
      {out.waitLds, "waiting for LDS"},
      {out.waitScalar, "waiting for scalar loads"},
      {out.waitBarrier, "waiting at barriers"},
      {out.waitDependency, "dependent instructions"},
      {out.waitUnit, ""}};
  auto unit = *std::max_element(std::begin(units), std::end(units));
  auto wait = *std::max_element(std::begin(waits), std::end(waits));
  // A wave that waits for a unit waits for the busiest.
  bool busy =
      unit.first >= 0.6 || wait.first < 0.05 || wait.first == out.waitUnit;
  out.bound = busy ? unit.second : wait.second;
}
