//===- Launch.h - a kernel over its grid ------------------------*- C++ -*-===//
//
// Launch.cpp runs workgroups; InitialState.cpp sets up what they begin with.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_LAUNCH_H
#define GRETA_SIM_LAUNCH_H

#include "Checks/Programs.h"
#include "Code/Program.h"
#include "Timing/Timing.h"
#include "Workgroup.h"
#include "greta/Sim/Simulator.h"
#include <atomic>
#include <map>
#include <mutex>

namespace greta::sim {

class Launch {
public:
  Launch(Device &d, const Kernel &k, const LaunchConfig &c)
      : device(d), kernel(k), config(c), info(k.info()),
        chip(*findChip(k.module().chip())), wave32(info.waveSize == 32) {}
  llvm::Error run();

private:
  struct Place;
  uint64_t mostResident(uint64_t lds) const;
  llvm::Error validate();
  void fillArguments();
  void fillHidden(const KernelArgument &a, uint8_t *p);
  bool prepare(Place &place);
  void begin(Place &place, uint64_t at, unsigned number);
  void end(Place &place);
  void collect(Place &place);
  void work(unsigned worker);
  void workTogether();
  void setWorkItems(Wave &w);
  void setScalars(Wave &w, const Workgroup &g, unsigned worker, unsigned index,
                  uint8_t *memory);
  void startWave(Workgroup &g, unsigned worker, unsigned index,
                 uint8_t *scratch);
  uint32_t workgroupInfo(unsigned wave) const;
  void chooseSample();
  void estimate();

  Device &device;
  const Kernel &kernel;
  const LaunchConfig &config;
  const KernelInfo &info;
  const Chip &chip;
  bool wave32;
  uint32_t entryIndex = 0;
  uint32_t ldsBytes = 0;
  unsigned wavesPerGroup = 1;
  uint8_t *arguments = nullptr, *packet = nullptr;
  std::vector<uint8_t *> scratch; ///< per worker, or resident workgroup
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> failed{~uint64_t(0)}; ///< first workgroup to fail
  std::unique_ptr<ProgramChecker> programs;   ///< with CheckPrograms
  std::mutex errorLock;
  std::string error;
  std::map<uint32_t, std::string> warnings; ///< by address
  LaunchStats total;
  Residency where;
  std::vector<uint64_t> sample; ///< workgroups that are recorded
  std::atomic<uint64_t> executed{
      0};                    ///< instructions of all workgroups that ran
  bool isFirstExtra = false; ///< the first is there for the footprint alone
  std::vector<GroupTrace> traces;
};
} // namespace greta::sim

#endif
