// Registry.cpp: device names ("vulkan:1", "sim:gfx942") to backends, and the
// list of what was probed.
#include "Backend.h"
#include "Error.h"

#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

namespace greta::rt {
namespace {

// Parses "vulkan" as 0, "vulkan:3" as 3.
bool indexed(const std::string &Spec, const std::string &Kind,
             unsigned &Index) {
  if (Spec == Kind) {
    Index = 0;
    return true;
  }
  if (Spec.compare(0, Kind.size() + 1, Kind + ":") != 0)
    return false;
  std::string Digits = Spec.substr(Kind.size() + 1);
  if (Digits.empty() || Digits.size() > 4 ||
      Digits.find_first_not_of("0123456789") != std::string::npos)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "device '", Spec, "': '", Digits,
         "' is not a device number");
  Index = static_cast<unsigned>(std::stoul(Digits));
  return true;
}

bool isUuid(const std::string &Text) {
  return Text.size() == 32 &&
         Text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Returns the open device of this name, or a new one, so that objects of a
// device that is opened twice may be mixed. A lost device is opened anew.
std::shared_ptr<Device>
shared(const std::string &Name,
       const std::function<std::shared_ptr<Device>()> &OpenNew) {
  static std::mutex Lock;
  static std::map<std::string, std::weak_ptr<Device>> All;
  std::lock_guard<std::mutex> Guard(Lock);
  auto Found = All.find(Name);
  std::shared_ptr<Device> D =
      Found == All.end() ? nullptr : Found->second.lock();
  if (!D || D->isLost()) {
    D = OpenNew();
    All[Name] = D;
  }
  return D;
}

} // namespace

void listDevices(nlohmann::json &Out) {
  Out = nlohmann::json::array();
  listHip(Out);
  listVulkan(Out);
  listSim(Out);
  listHost(Out);
}

std::shared_ptr<Device> openDevice(const std::string &Spec) {
  // This takes the first of hip, vulkan, host; simulators need a name.
  if (Spec.empty()) {
    for (const char *Kind : {"hip", "vulkan"}) {
      try {
        return openDevice(Kind);
      } catch (const Error &E) {
        if (E.code() != GRETA_ERROR_NOT_FOUND)
          throw;
      }
    }
    return openDevice("host");
  }
  unsigned Index = 0;
  if (Spec == "host")
    return shared(Spec, openHost);
  if (Spec.compare(0, 4, "hip:") == 0 && isUuid(Spec.substr(4)))
    return openDevice(concat("hip:", hipIndex(Spec.substr(4))));
  if (indexed(Spec, "hip", Index))
    return shared(concat("hip:", Index), [&] { return openHip(Index); });
  if (Spec.compare(0, 7, "vulkan:") == 0 && isUuid(Spec.substr(7)))
    return openDevice(concat("vulkan:", vulkanIndex(Spec.substr(7))));
  if (indexed(Spec, "vulkan", Index))
    return shared(concat("vulkan:", Index), [&] { return openVulkan(Index); });
  if (Spec.compare(0, 4, "sim:") == 0)
    return shared(Spec, [&] { return openSim(Spec.substr(4)); });
  fail(GRETA_ERROR_INVALID_ARGUMENT, "unknown device '", Spec,
       "'; one of hip[:N], vulkan[:N], sim:<gfx>, host");
}

} // namespace greta::rt
