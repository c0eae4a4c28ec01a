// Coopmat.h: cooperative-matrix requirements of a variant against what the
// device lists and what was probed.
#ifndef GRETA_RUNTIME_VULKAN_COOPMAT_H
#define GRETA_RUNTIME_VULKAN_COOPMAT_H

#include "Device.h"

namespace greta::rt::vulkan {

// Returns the layouts, probed once per device and driver and then cached.
const std::vector<ProbedLayout> &probedLayouts(const CoreRef &C);

// Returns why shapes or layouts that `R` names are missing; "" if none is.
std::string whyNotCoopmat(const CoreRef &C, const Requirements &R);
void describeLayouts(const CoreRef &C, nlohmann::json &Out);

} // namespace greta::rt::vulkan
#endif
