//===- Compile.h - a candidate from its source, in a context of its own ---===//
#ifndef GRETA_TUNE_COMPILE_H
#define GRETA_TUNE_COMPILE_H

#include "Tune.h"
#include "greta/Configure/Tuning.h"
#include "greta/Target/Target.h"

namespace greta::tune {

struct Source {
  std::string path, text;
};

/// A function for some targets.
struct Compiled {
  std::string package;                                             // its bytes
  std::vector<std::pair<std::string, const TargetRow *>> variants; // by id
  std::vector<Launch> launches;    // of the first variant
  std::vector<std::string> inputs; // as greta-run takes them
  std::string problem; // nothing else is set: what the compiler said
};

/// Compiles one function; any thread may call it. A configuration of `tuning`
/// that does not fit is a problem. With `expected` they are the kernels of the
/// range of a dynamic M that ends there, and the sizes are such.
Compiled compile(const Source &source, llvm::StringRef function,
                 llvm::ArrayRef<const TargetRow *> rows,
                 const TuningDatabase *tuning, llvm::ArrayRef<int64_t> sizes,
                 int64_t expected = 0);

/// The functions of a source.
struct FunctionGemms {
  std::string name;
  /// By target, as given.
  std::vector<std::vector<TunableGemm>> gemms;
};

/// Reads a source and finds what there is to tune: for any M, then for each
/// range of a dynamic one. Failures are reported as the compiler does.
llvm::FailureOr<std::vector<FunctionGemms>>
findGemms(const Source &source, llvm::ArrayRef<const TargetRow *> rows,
          unsigned candidates);

} // namespace greta::tune

#endif
