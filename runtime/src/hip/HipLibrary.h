// HipLibrary.h: libamdhip64.so, or GRETA's simulator that exports the same API,
// through dlopen.
//
// The simulator is libgreta_hip_sim.so: $GRETA_HIP_SIM, else beside this
// library, else on the loader's path. It adds
//   int greta_hip_sim_set_chip(const char *chip)
//     chooses the chip before any other call; 0 if it knows the gfx name
// and, all optional,
//   const char *greta_hip_sim_last_error(void)   says what a kernel did wrong
//   const char *greta_hip_sim_chips(void)        lists the names that it knows
//   int greta_hip_sim_wants_arguments(void)      1 if it checks programs
//   void greta_hip_sim_set_arguments(..)         describes the arguments of the
//                                                thread's next launch
#ifndef GRETA_RUNTIME_HIP_LIBRARY_H
#define GRETA_RUNTIME_HIP_LIBRARY_H

#include "Backend.h"
#include "hip/HipApi.h"

#include <memory>
#include <string>
#include <vector>

namespace greta::rt::hip {

class Library {
public:
  // Throws NotFound, which says what was tried. Loaded once per process.
  static std::shared_ptr<Library> real();
  // Sets the chip; there is one simulated chip at a time, as the simulator is
  // one machine. Without a chip it only lists chips, also while one is open.
  static std::shared_ptr<Library> simulator(const std::string &Chip);

  // Throws unless Result is success; the pieces of `What`, joined, say what was
  // tried.
  template <typename... Parts>
  void check(hipError_t Result, const Parts &...What) const {
    if (Result != hipSuccess)
      failed(Result, concat(What...));
  }
  // Returns whether it is the simulator, unknown to other libraries of AMD's.
  bool isSimulator() const { return SetChip; }
  // Returns whether the device takes no work after this error.
  bool isLoss(hipError_t Result) const;
  // Makes a lost device as good as new, without its memory; returns whether it
  // succeeded.
  bool reset(int Device) const;
  // Returns the simulator's chips; none if it does not say.
  std::vector<std::string> chips() const;
  // Returns whether setArguments comes before each launch, to check programs.
  bool wantsArguments() const { return WantsArguments && WantsArguments(); }
  void setArguments(Span<Extent> Extents) const;
  // Returns at least one; throws NotFound with what the library says.
  int deviceCount() const;
  // Returns "gfx942" of "gfx942:sramecc+:xnack-".
  std::string arch(int Device) const;
  std::string marketingName(int Device) const;
  uint32_t computeUnits(int Device) const; // 0: not known
  // Returns whether all workgroups of a launch can be asked to run at a time;
  // the launch fails if they do not fit.
  bool launchesTogether(int Device) const;
  std::string uuid(int Device) const; // 32 hexadecimal digits

#define X(Result, Name, ...) Result (*Name)(__VA_ARGS__) = nullptr;
  GRETA_HIP_FUNCTIONS(X)
  GRETA_HIP_OPTIONAL_FUNCTIONS(X) // null where the library has none
#undef X
  std::string Path; // as opened
  // ROCm has this from 5.5 on.
  hipError_t (*LaunchTogether)(hipFunction_t, unsigned, unsigned, unsigned,
                               unsigned, unsigned, unsigned, unsigned,
                               hipStream_t, void **) = nullptr;

private:
  explicit Library(void *Handle, std::string Path);
  [[noreturn]] void failed(hipError_t Result, const std::string &What) const;
  void readProperties(int Device, char *Bytes) const;

  // Takes a hipDeviceProp_t *, whose layout differs between releases.
  hipError_t (*Properties)(void *, int) = nullptr;
  hipError_t (*DeviceReset)() = nullptr;
  hipError_t (*Attribute)(int *, int, int) = nullptr;
  const char *(*LastError)() = nullptr;
  int (*SetChip)(const char *) = nullptr;
  const char *(*Chips)() = nullptr;
  int (*WantsArguments)() = nullptr;
  struct Argument { // as the simulator takes it
    uint64_t Address, Bytes, ElementBytes;
    const char *Name;
  };
  void (*SetArguments)(const Argument *, size_t) = nullptr;
};

} // namespace greta::rt::hip
#endif
