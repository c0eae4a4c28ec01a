// Health.h: what of a device computes wrong. In: a device and the package of
// small functions that lies beside the library (runtime/health.mlir). Out: the
// matrix shapes, element types or subgroup operations without which every
// function is right; no variant that needs them is taken.
//
// Kernels whose workgroups wait for each other are tried one by one: how many
// workgroups run at a time depends on a kernel's registers.
//
// Keys are shapes (keyOf), element types ("f16"), "subgroups", "resident" for
// kernels whose workgroups wait, and "device" for all of it. The functions run
// at the first load of any function; the answer is kept in the cache folder, by
// device and driver version. GRETA_HEALTH: `off` believes the device, `again`
// runs them once more, anything else is a list of keys, with commas between,
// that are denied as well.
#ifndef GRETA_RUNTIME_HEALTH_H
#define GRETA_RUNTIME_HEALTH_H

#include "Backend.h"

namespace greta::rt {

// GRETA_PROFILE says how much is risked.
enum class Profile {
  UltraSafe, // neither subgroup operations nor cooperative matrices, and small
             // submits: for drivers that reset the device when one takes long
  Default,
  Fast // large submits; devices are believed
};
Profile profile();

// Returns "16x16x16 f16 f16 f32 f32": the types are of A, B, C and result.
std::string keyOf(const CoopShape &Shape);

struct HealthReport {
  unsigned Ran = 0; // number of variants
  Denials Denied;
};

// Runs every variant of the package's functions that tells something about the
// device: those for it, those with matrix shapes, those that need least.
HealthReport checkHealth(const std::shared_ptr<Device> &D,
                         const std::shared_ptr<const Package> &P);

// Does the same with the package beside the library; without one it runs
// nothing.
HealthReport checkHealth(const std::shared_ptr<Device> &D);

// Returns why the profile or the check refuses the variant on this device; ""
// if they do not. Runs the check if it has to.
std::string whyUnhealthy(const std::shared_ptr<Device> &D,
                         const FunctionDecl &F, const Variant &V);

// Returns why a variant is not taken whose workgroups wait for each other:
// nobody promises that all of them run at a time, and in a trial of its kernels
// they did not; "" for every other variant. The outcome of a trial is kept in
// the cache folder, by device, driver version and kernels.
std::string whyNotTogether(const std::shared_ptr<Device> &D, const Package &P,
                           const Variant &V);

} // namespace greta::rt
#endif
