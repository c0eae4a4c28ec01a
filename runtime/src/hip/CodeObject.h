// CodeObject.h: whether the bytes of a `hip` variant are an AMD code object
// that a driver may see: an ELF file whose headers, symbols, notes and kernel
// descriptor lie inside it and say what the manifest says. The instructions are
// not looked at.
#ifndef GRETA_RUNTIME_HIP_CODEOBJECT_H
#define GRETA_RUNTIME_HIP_CODEOBJECT_H

#include "Package.h"

namespace greta::rt::hip {

// Throws Error(GRETA_ERROR_BAD_PACKAGE), which names the file and what is wrong
// with it, when the object is not one of kernel `K` for the chip `Arch`.
void checkCodeObject(const std::vector<uint8_t> &Object, const KernelDecl &K,
                     const std::string &Arch);

} // namespace greta::rt::hip
#endif
