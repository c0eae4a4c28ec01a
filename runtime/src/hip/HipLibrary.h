// HipLibrary.h: libamdhip64.so, or GRETA's simulator that exports the same API,
// through dlopen.
//
// The simulator is libgreta_hip_sim.so: $GRETA_HIP_SIM, else beside this
// library, else on the loader's path. It adds
//   int greta_hip_sim_set_chip(const char *chip)   before any other call: the
//   gfx name to be (0 when it knows it)
//   const char *greta_hip_sim_last_error(void)     optional: what was wrong
//   with a kernel, one sentence const char *greta_hip_sim_chips(void) optional:
//   the names it knows, with a space behind each
//   int greta_hip_sim_wants_arguments(void)        optional: whether it checks
//   what programs do with their arguments
//   void greta_hip_sim_set_arguments(..)           optional: what those of the
//   thread's next launch are
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
  // Throws NotFound with what was tried. Loaded once per process.
  static std::shared_ptr<Library> real();
  // With the chip set; one simulated chip at a time, as the simulator is one
  // machine. Without a chip to ask what there is, while one is open, too.
  static std::shared_ptr<Library> simulator(const std::string &Chip);

  // Throws unless Result is success; the pieces of `What`, joined, say what was
  // tried.
  template <typename... Parts>
  void check(hipError_t Result, const Parts &...What) const {
    if (Result != hipSuccess)
      failed(Result, concat(What...));
  }
  // Other libraries of the vendor's do not know simulated devices.
  bool isSimulator() const { return SetChip; }
  // Whether the device takes no work after this error.
  bool isLoss(hipError_t Result) const;
  // Makes a lost device as good as new, with nothing of what it had; whether
  // it is.
  bool reset(int Device) const;
  // The simulator's; none where it does not say.
  std::vector<std::string> chips() const;
  // Before each launch of a simulator that checks programs.
  bool wantsArguments() const { return WantsArguments && WantsArguments(); }
  void setArguments(Span<Extent> Extents) const;
  // At least one; throws NotFound with what the library says.
  int deviceCount() const;
  // "gfx942" of "gfx942:sramecc+:xnack-".
  std::string arch(int Device) const;
  std::string marketingName(int Device) const;
  uint32_t computeUnits(int Device) const; // 0: not known
  // Whether all workgroups of a launch can be asked to run at a time; where
  // they do not fit the launch fails.
  bool launchesTogether(int Device) const;
  std::string uuid(int Device) const; // 32 hexadecimal digits

#define X(Result, Name, ...) Result (*Name)(__VA_ARGS__) = nullptr;
  GRETA_HIP_FUNCTIONS(X)
  GRETA_HIP_OPTIONAL_FUNCTIONS(X) // null where the library has none
#undef X
  std::string Path; // as opened
  // ROCm has it from 5.5 on.
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
