// Libraries.h: libraries that are opened with dlopen. In: their names. Out:
// handles and functions. They are never closed, as they keep threads.
#ifndef GRETA_RUNTIME_LIBRARIES_H
#define GRETA_RUNTIME_LIBRARIES_H

#include "Error.h"

#include <dlfcn.h>
#include <string>
#include <vector>

namespace greta::rt {

// Opens the first library that loads, and says which one it was; throws the
// reasons if none does.
void *openLibrary(const std::vector<std::string> &Candidates,
                  std::string &Opened);
// Opens only the library that $Variable names, if it is set.
void *openLibrary(const char *Variable,
                  const std::vector<std::string> &Candidates);

// Sets `To` to a function of the library; throws if it has none of this name.
template <typename F>
void bindFunction(F &To, void *Handle, const char *Name,
                  const std::string &Library) {
  To = reinterpret_cast<F>(dlsym(Handle, Name));
  if (!To)
    fail(GRETA_ERROR_NOT_FOUND, Library, " has no ", Name);
}

} // namespace greta::rt
#endif
