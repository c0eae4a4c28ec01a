// Libraries.cpp: see Libraries.h.
#include "Libraries.h"
#include "Process.h"

namespace greta::rt {

void *openLibrary(const std::vector<std::string> &Candidates,
                  std::string &Opened) {
  std::string Reasons;
  for (const std::string &Path : Candidates) {
    if (void *Handle = dlopen(Path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      Opened = Path;
      return Handle;
    }
    Reasons += concat(Reasons.empty() ? "" : "; ", dlerror());
  }
  fail(GRETA_ERROR_NOT_FOUND, Reasons);
}

void *openLibrary(const char *Variable,
                  const std::vector<std::string> &Candidates) {
  const char *Named = environment(Variable);
  std::string Opened;
  return openLibrary(
      Named && *Named ? std::vector<std::string>{Named} : Candidates, Opened);
}

} // namespace greta::rt
