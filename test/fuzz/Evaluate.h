// Evaluate.h: what the fuzzers of packages and manifests do with what was
// accepted: every expression is evaluated, every index looked up.
#ifndef GRETA_TEST_FUZZ_EVALUATE_H
#define GRETA_TEST_FUZZ_EVALUATE_H

#include "Error.h"
#include "Package.h"

namespace greta_fuzz {
using namespace greta::rt;

inline void evaluate(const std::vector<Expr> &All,
                     const std::vector<int64_t> &Values) {
  for (const Expr &E : All) {
    try {
      if (E.evaluate(Values) < 0)
        __builtin_trap();
    } catch (const Error &) {
    }
  }
}

inline void evaluate(const FunctionDecl &F, const Variant &V,
                     const std::vector<int64_t> &Values) {
  for (const TensorDecl &T : V.Temps)
    evaluate(T.Shape, Values);
  for (const KernelDecl &K : V.Kernels) {
    evaluate(K.Grid, Values);
    for (const KernelArg &A : K.Args) {
      bool OfFunction =
          A.Which == KernelArg::Arg || A.Which == KernelArg::Scalar;
      size_t Limit = OfFunction                     ? F.Args.size()
                     : A.Which == KernelArg::Result ? F.Results.size()
                                                    : V.Temps.size();
      if (A.Which == KernelArg::I32 || A.Which == KernelArg::I64)
        evaluate({A.Value}, Values);
      else if (A.Index >= Limit)
        __builtin_trap();
    }
  }
  for (const Range &R : V.Ranges) {
    for (const Range::Condition &C : R.When) {
      evaluate({C.Value}, Values);
      if (C.Least < 0 || C.Most < C.Least)
        __builtin_trap();
    }
    if (R.When.empty() || !R.What.Ranges.empty() ||
        R.What.Backend != V.Backend || V.Backend == "host")
      __builtin_trap();
    evaluate(F, R.What, Values);
  }
}

inline void evaluate(const FunctionDecl &F) {
  for (int64_t Value : {int64_t(0), int64_t(7), INT64_MAX}) {
    std::vector<int64_t> Values(F.Symbols.size(), Value);
    for (const std::vector<TensorDecl> *List : {&F.Args, &F.Results})
      for (const TensorDecl &T : *List)
        evaluate(T.Shape, Values);
    for (const Variant &V : F.Variants)
      evaluate(F, V, Values);
  }
}

// Runs `Read`, which must end well or in an Error with one line of text.
template <typename Body> void expectOneDiagnostic(Body Read) {
  try {
    Read();
  } catch (const Error &E) {
    std::string Text = E.what();
    if (Text.empty() || Text.find('\n') != std::string::npos)
      __builtin_trap();
  }
}

} // namespace greta_fuzz
#endif
