// Diagnose.cpp: what a user may install or change so that GRETA finds more, or
// faster, devices. In: what the runtime probed, and the GPUs' device files.
// Out: one sentence for each thing that is missing.
#include "Describe.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace greta_run {
namespace {
using nlohmann::json;

enum class Node { Missing, Closed, Open };

Node nodeOf(const std::string &Path) {
  if (access(Path.c_str(), F_OK))
    return Node::Missing;
  return access(Path.c_str(), R_OK | W_OK) ? Node::Closed : Node::Open;
}

// The first render node of any GPU.
std::string renderNode() {
  std::error_code Ignored;
  for (const auto &Entry :
       std::filesystem::directory_iterator("/dev/dri", Ignored))
    if (Entry.path().filename().string().rfind("renderD", 0) == 0)
      return Entry.path();
  return "/dev/dri/renderD128";
}

bool mentions(const json &Device, const char *What) {
  return Device.value("reason", "").find(What) != std::string::npos;
}

constexpr const char *toGroups =
    " cannot be opened: add yourself to the groups render and video";
constexpr const char *noLibrary = "cannot open shared object";

std::string adviceForHip(const json &Device) {
  std::string Kfd = "/dev/kfd";
  switch (nodeOf(Kfd)) {
  case Node::Missing:
    return "hip: this machine has no driver of an AMD GPU (" + Kfd +
           "); sim:<gfx> runs AMD code objects on the CPU";
  case Node::Closed:
    return "hip: " + Kfd + toGroups;
  case Node::Open:
    break;
  }
  if (mentions(Device, noLibrary))
    return "hip: install ROCm's runtime, libamdhip64, or name it in "
           "GRETA_HIP_LIBRARY";
  return "hip: the driver is there, and the runtime says: " +
         Device.value("reason", "");
}

std::string adviceForVulkan(const json &Device) {
  std::string Spec = Device["spec"];
  if (mentions(Device, "denied"))
    return Spec + ": unset GRETA_VULKAN_DENY to use it";
  if (!Device["available"].get<bool>())
    return Spec + (mentions(Device, noLibrary)
                       ? ": install the Vulkan loader, libvulkan1, and a "
                         "driver, mesa-vulkan-drivers or your vendor's"
                       : ": " + Device.value("reason", ""));
  std::string Family = Device.value("family", "");
  if (Family == "vulkan:lavapipe") {
    std::string Render = renderNode();
    switch (nodeOf(Render)) {
    case Node::Missing:
      return Spec + ": is the CPU; this machine has no GPU (" + Render + ")";
    case Node::Closed:
      return Spec + ": is the CPU; the GPU's " + Render + toGroups;
    case Node::Open:
      return Spec + ": is the CPU; install the Vulkan driver of the GPU that " +
             Render + " belongs to";
    }
  }
  if (!Device.contains("coopmat"))
    return Spec + ": its driver has no cooperative matrices, with which GEMMs "
                  "are several times faster: a newer one may";
  return "";
}
} // namespace

std::vector<std::string> diagnose(const std::string &Devices) {
  std::vector<std::string> Advice;
  for (const json &Device : json::parse(Devices)) {
    std::string Spec = Device["spec"], Text;
    bool IsAvailable = Device["available"];
    if (Spec.rfind("hip", 0) == 0 && !IsAvailable)
      Text = adviceForHip(Device);
    else if (Spec.rfind("vulkan", 0) == 0)
      Text = adviceForVulkan(Device);
    else if (Spec.rfind("sim", 0) == 0 && !IsAvailable)
      Text = "sim:<gfx>: install libgreta_hip_sim.so beside the runtime, or "
             "name it in GRETA_HIP_SIM";
    if (!Text.empty())
      Advice.push_back(Text);
  }
  return Advice;
}

} // namespace greta_run
