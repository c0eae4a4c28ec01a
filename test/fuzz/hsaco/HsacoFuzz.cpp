// HsacoFuzz.cpp: libFuzzer over the check of AMD code objects, against the
// manifest of the seed (test/unit/runtime/scale.cl); and over the headers of
// host objects, which the same reader checks.
#include "Elf.h"
#include "Evaluate.h"
#include "hip/CodeObject.h"

using namespace greta_fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  std::vector<uint8_t> Object(Data, Data + Size);
  KernelDecl K;
  K.File = "objects/fuzz.hsaco";
  K.Entry = "scale";
  K.Block = {64, 1, 1};
  K.Args.resize(3);
  K.Args[2].Which = KernelArg::I32;
  expectOneDiagnostic([&] { hip::checkCodeObject(Object, K, "gfx942"); });
  expectOneDiagnostic([&] { ElfFile(Object, "fuzz"); });
  return 0;
}
