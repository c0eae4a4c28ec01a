// HipLibrary.cpp: see HipLibrary.h.
#include "HipLibrary.h"
#include "Files.h"
#include "Libraries.h"
#include "Process.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <sstream>
#include <vector>

namespace greta::rt::hip {
namespace {

constexpr size_t propertyBytes =
    8192;                         // more than any release's hipDeviceProp_t
constexpr size_t nameBytes = 256; // its first member
constexpr int computeUnitsAttribute =
    63;                               // hipDeviceAttributeMultiprocessorCount
constexpr int togetherAttribute = 10; // hipDeviceAttributeCooperativeLaunch

} // namespace

Library::Library(void *Handle, std::string Opened) : Path(std::move(Opened)) {
#define X(Result, Name, ...) bindFunction(Name, Handle, #Name, Path);
  GRETA_HIP_FUNCTIONS(X)
#undef X
#define X(Result, Name, ...)                                                   \
  Name = reinterpret_cast<decltype(Name)>(dlsym(Handle, #Name));
  GRETA_HIP_OPTIONAL_FUNCTIONS(X)
#undef X
  for (const char *Name :
       {"hipGetDevicePropertiesR0600", "hipGetDeviceProperties"})
    if (!Properties)
      Properties = reinterpret_cast<decltype(Properties)>(dlsym(Handle, Name));
  if (!Properties)
    fail(GRETA_ERROR_NOT_FOUND, Path, " has no hipGetDeviceProperties");
  LastError = reinterpret_cast<decltype(LastError)>(
      dlsym(Handle, "greta_hip_sim_last_error"));
  SetChip = reinterpret_cast<decltype(SetChip)>(
      dlsym(Handle, "greta_hip_sim_set_chip"));
  Chips =
      reinterpret_cast<decltype(Chips)>(dlsym(Handle, "greta_hip_sim_chips"));
  SetArguments = reinterpret_cast<decltype(SetArguments)>(
      dlsym(Handle, "greta_hip_sim_set_arguments"));
  DeviceReset =
      reinterpret_cast<decltype(DeviceReset)>(dlsym(Handle, "hipDeviceReset"));
  Attribute = reinterpret_cast<decltype(Attribute)>(
      dlsym(Handle, "hipDeviceGetAttribute"));
  LaunchTogether = reinterpret_cast<decltype(LaunchTogether)>(
      dlsym(Handle, "hipModuleLaunchCooperativeKernel"));
  if (SetArguments)
    WantsArguments = reinterpret_cast<decltype(WantsArguments)>(
        dlsym(Handle, "greta_hip_sim_wants_arguments"));
}

// HIP keeps threads and exit handlers, so neither library is ever closed.
std::shared_ptr<Library> Library::real() {
  static std::mutex Lock;
  static std::shared_ptr<Library> Loaded;
  std::lock_guard<std::mutex> Guard(Lock);
  if (!Loaded) {
    // GRETA_HIP_LIBRARY names another one, and then only that is tried.
    const char *Named = environment("GRETA_HIP_LIBRARY");
    std::vector<std::string> Candidates = {
        "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
        "libamdhip64.so"};
    if (Named && *Named)
      Candidates = {Named};
    std::string Path;
    void *Handle = openLibrary(Candidates, Path);
    Loaded.reset(new Library(Handle, Path));
  }
  return Loaded;
}

std::shared_ptr<Library> Library::simulator(const std::string &Chip) {
  static std::mutex Lock;
  static void *Handle = nullptr;
  static std::string Path, CurrentChip;
  static std::weak_ptr<Library> Current;
  std::lock_guard<std::mutex> Guard(Lock);
  std::shared_ptr<Library> L = Current.lock();
  if (L) {
    if (!Chip.empty() && CurrentChip != Chip)
      fail(GRETA_ERROR_UNSUPPORTED, "sim:", CurrentChip,
           " is open; one chip can be simulated at a time, close it first");
    return L;
  }
  if (!Handle) {
    std::vector<std::string> Candidates;
    const char *Named = environment("GRETA_HIP_SIM");
    if (Named && *Named)
      Candidates = {Named};
    else
      Candidates = {ownFolder() + "/libgreta_hip_sim.so",
                    "libgreta_hip_sim.so"};
    Handle = openLibrary(Candidates, Path);
  }
  L.reset(new Library(Handle, Path));
  if (!L->SetChip)
    fail(GRETA_ERROR_NOT_FOUND, Path,
         " has no greta_hip_sim_set_chip: it is not GRETA's simulator");
  if (!Chip.empty()) {
    int Count = 0;
    if (L->SetChip(Chip.c_str()) != 0 || L->hipInit(0) != hipSuccess ||
        L->hipGetDeviceCount(&Count) != hipSuccess || Count < 1 ||
        L->arch(0) != Chip)
      fail(GRETA_ERROR_NOT_FOUND, "the simulator does not open the chip '",
           Chip, "'", L->LastError && *L->LastError() ? ": " : "",
           L->LastError ? L->LastError() : "");
    Current = L;
    CurrentChip = Chip;
  }
  return L;
}

void Library::failed(hipError_t Result, const std::string &What) const {
  std::string Detail = LastError && LastError() ? LastError() : "";
  if (isLoss(Result))
    failLost(concat(What, ": ", hipGetErrorString(Result), " (",
                    static_cast<int>(Result), ")"));
  // The simulator itself says what a kernel did wrong.
  if (Result == hipErrorLaunchFailure && !Detail.empty())
    fail(GRETA_ERROR_DEVICE, What, ": ", Detail);
  fail(Result == hipErrorOutOfMemory ? GRETA_ERROR_OUT_OF_MEMORY
                                     : GRETA_ERROR_DEVICE,
       What, ": ", hipGetErrorString(Result), " (", static_cast<int>(Result),
       ")", Detail.empty() ? "" : ": ", Detail);
}

// Only the simulator goes on after a kernel's fault.
bool Library::isLoss(hipError_t Result) const {
  switch (Result) {
  case hipErrorECCNotCorrectable:
  case hipErrorIllegalAddress:
  case hipErrorLaunchTimeOut:
  case hipErrorContextIsDestroyed:
  case hipErrorAssert:
  case hipErrorLaunchFailure:
    return !SetChip;
  default:
    return false;
  }
}

bool Library::reset(int Device) const {
  return DeviceReset && hipSetDevice(Device) == hipSuccess &&
         DeviceReset() == hipSuccess;
}

void Library::setArguments(Span<Extent> Extents) const {
  std::vector<Argument> Arguments;
  for (const Extent &E : Extents)
    Arguments.push_back({E.Address, E.Bytes, E.ElementBytes, E.Name.c_str()});
  SetArguments(Arguments.data(), Arguments.size());
}

std::vector<std::string> Library::chips() const {
  std::vector<std::string> Names;
  std::istringstream Text(Chips ? Chips() : "");
  for (std::string Name; Text >> Name;)
    Names.push_back(Name);
  return Names;
}

int Library::deviceCount() const {
  int Count = 0;
  // Without a device some releases fail in hipInit already; the count's answer
  // is the one that says why.
  (void)hipInit(0);
  hipError_t Result = hipGetDeviceCount(&Count);
  if (Result != hipSuccess || Count < 1)
    fail(GRETA_ERROR_NOT_FOUND, Path,
         " was loaded and finds no device: ", hipGetErrorString(Result), " (",
         static_cast<int>(Result), ")");
  return Count;
}

// hipDeviceProp_t grew in HIP 6, and different releases export both layouts
// under different names. Its first member is the name. gcnArchName is the only
// other text in it, and is found by how it begins.
void Library::readProperties(int Device, char *Bytes) const {
  memset(Bytes, 0, propertyBytes);
  check(Properties(Bytes, Device), "properties of HIP device ", Device);
}

std::string Library::arch(int Device) const {
  std::vector<char> Bytes(propertyBytes);
  readProperties(Device, Bytes.data());
  for (size_t I = nameBytes; I + nameBytes < propertyBytes; I += 4)
    if (memcmp(&Bytes[I], "gfx", 3) == 0) {
      std::string Name(&Bytes[I], strnlen(&Bytes[I], nameBytes));
      return Name.substr(0, Name.find(':'));
    }
  fail(GRETA_ERROR_DEVICE, Path, ": HIP device ", Device,
       " does not name its architecture");
}

uint32_t Library::computeUnits(int Device) const {
  int Units = 0;
  bool Known = Attribute &&
               Attribute(&Units, computeUnitsAttribute, Device) == hipSuccess;
  return Known ? std::max(Units, 0) : 0;
}

bool Library::launchesTogether(int Device) const {
  int Can = 0;
  return LaunchTogether && Attribute &&
         Attribute(&Can, togetherAttribute, Device) == hipSuccess && Can;
}

std::string Library::uuid(int Device) const {
  hipUUID Uuid{};
  check(hipDeviceGetUuid(&Uuid, Device), "the UUID of HIP device ", Device);
  return hex(reinterpret_cast<const uint8_t *>(Uuid.bytes), sizeof(Uuid.bytes));
}

std::string Library::marketingName(int Device) const {
  std::vector<char> Bytes(propertyBytes);
  readProperties(Device, Bytes.data());
  return std::string(Bytes.data(), strnlen(Bytes.data(), nameBytes));
}

} // namespace greta::rt::hip
