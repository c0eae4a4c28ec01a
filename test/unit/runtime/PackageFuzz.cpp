// PackageFuzz.cpp: libFuzzer over the package reader. Bytes that begin like a
// ZIP are a package; anything else is the text of a manifest, since a random
// ZIP hardly ever has a matching CRC. Whatever is accepted is evaluated.
#include "Error.h"
#include "Package.h"

using namespace greta::rt;

static void evaluate(const std::vector<Expr> &All,
                     const std::vector<int64_t> &Values) {
  for (const Expr &E : All) {
    try {
      if (E.evaluate(Values) < 0)
        __builtin_trap();
    } catch (const Error &) {
    }
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *Data, size_t Size) {
  std::vector<FunctionDecl> Functions;
  try {
    if (Size >= 2 && Data[0] == 'P' && Data[1] == 'K') {
      Functions = readPackage(Data, Size, "fuzz")->Functions;
    } else {
      std::map<std::string, std::string> Hashes;
      Functions = parseManifest(std::string(Data, Data + Size), Hashes);
    }
  } catch (const Error &E) {
    if (!*E.what())
      __builtin_trap();
    return 0;
  }
  for (const FunctionDecl &F : Functions) {
    std::vector<int64_t> Values(F.Symbols.size(), 7);
    for (const Variant &V : F.Variants)
      for (const KernelDecl &K : V.Kernels) {
        evaluate(K.Grid, Values);
        for (const KernelArg &A : K.Args) {
          size_t Limit = A.Which == KernelArg::Arg      ? F.Args.size()
                         : A.Which == KernelArg::Result ? F.Results.size()
                                                        : V.Temps.size();
          if (A.Which == KernelArg::I32)
            evaluate({A.Value}, Values);
          else if (A.Index >= Limit)
            __builtin_trap();
        }
      }
  }
  return 0;
}
