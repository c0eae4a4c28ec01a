// ManifestFuzz.cpp: libFuzzer over the text of a manifest.
#include "Evaluate.h"

using namespace greta_fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  expectOneDiagnostic([&] {
    std::map<std::string, std::string> Hashes;
    for (const FunctionDecl &F :
         parseManifest(std::string(Data, Data + Size), Hashes))
      evaluate(F);
  });
  return 0;
}
