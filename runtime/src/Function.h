// Function.h: a package function on a device: the chosen variant, its loaded
// kernels, and launches.
#ifndef GRETA_RUNTIME_FUNCTION_H
#define GRETA_RUNTIME_FUNCTION_H

#include "Log.h"

namespace greta::rt {

// The variant that `D` runs: docs/package.md, "Choice". A non-empty `Forced`
// names the one to take. Throws with the reason of every variant when none can
// be run.
const Variant &chooseVariant(Device &D, const FunctionDecl &F,
                             const std::string &Forced, bool NativeCode);

// Why `D` cannot or may not run the variant; "" when it does. `NativeCode`: the
// caller allows variants for the host.
std::string whyNot(Device &D, const Variant &V, bool NativeCode);

struct LoadOptions {
  bool CaptureStatistics = false, NativeCode = false;
};

struct TensorArg {
  uint64_t Value = 0; // the bytes of a scalar, which has nothing else
  MemoryRef Buffer;   // may be null when only shapes are asked for
  size_t Offset = 0;
  std::vector<int64_t> Shape;
  bool HasShape = true;
};

// What a call queues: copies, then launches.
struct Call {
  struct Copy {
    const TensorArg *To, *From;
    size_t Bytes;
  };
  std::vector<Copy> Copies; // of arguments to results that are tied to them
  std::vector<Launch> Launches;
  std::vector<LogOfLaunch> Logs; // of the launches that print or assert
};

// Loaded once, it does not change: streams of several threads share it.
class Function {
public:
  Function(std::shared_ptr<Device> D, std::shared_ptr<const Package> P,
           const std::string &Name, const std::string &Variant,
           const LoadOptions &Options);

  const FunctionDecl &decl() const { return *Decl; }
  const Variant &variant() const { return *Chosen; }
  const std::vector<KernelRef> &kernels() const { return Kernels; }

  // The values of the symbols; every shape is checked against the declaration.
  std::vector<int64_t> bindSymbols(const std::vector<TensorArg> &Args) const;
  std::vector<int64_t> resultShape(size_t Index,
                                   const std::vector<int64_t> &Symbols) const;
  // What one call on `S` queues, in order. All is built before the first is
  // queued, so that a bad value leaves nothing half done.
  Call prepare(Stream &S, const std::vector<TensorArg> &Args,
               const std::vector<TensorArg> &Results) const;

private:
  void copyTied(Call &C, size_t Index, const std::vector<TensorArg> &Args,
                const TensorArg &Result, size_t Bytes) const;
  std::vector<MemoryRef> temporaries(Stream &S,
                                     const std::vector<int64_t> &Symbols) const;
  void clear(const MemoryRef &Memory) const;

  std::shared_ptr<Device> Dev;
  std::shared_ptr<const Package> Pkg; // owns Decl and Chosen
  const FunctionDecl *Decl;
  const Variant *Chosen;
  std::vector<KernelRef> Kernels;
};

} // namespace greta::rt
#endif
