// ModuleCheck.h: whether a SPIR-V module is one that a driver may see. Drivers
// trust what they are given: a module that is not valid ends the process in
// some of them.
//
// Only the part of SPIR-V that GRETA's compiler writes is allowed
// (ModuleGrammar.cpp); anything else is refused by its number. Allowed
// instructions are checked one by one: word counts, ids, types, sizes and the
// order of the module (ModuleCheck.cpp, ModuleTypes.cpp, ModuleRules.cpp), then
// the structure of its control flow (ModuleFlow.cpp).
#ifndef GRETA_RUNTIME_VULKAN_MODULECHECK_H
#define GRETA_RUNTIME_VULKAN_MODULECHECK_H

#include "Package.h"

namespace greta::rt::vulkan {

// Returns the words of the module. Throws Error(GRETA_ERROR_BAD_PACKAGE), which
// names the file and the word, if it is no module of kernel `K`, or needs more
// than `Requires` names. The device has what `Requires` names, or the variant
// is not its.
std::vector<uint32_t> checkModule(const std::vector<uint8_t> &Object,
                                  const KernelDecl &K,
                                  const Requirements &Requires);

} // namespace greta::rt::vulkan
#endif
