// Function.h: a package function on a device: the chosen variant, its loaded
// kernels, and launches.
#ifndef GRETA_RUNTIME_FUNCTION_H
#define GRETA_RUNTIME_FUNCTION_H

#include "Log.h"

#include <atomic>
#include <deque>
#include <mutex>

namespace greta::rt {

// The variant that `D` runs: docs/internals/package.md, "Choice". A non-empty
// `Forced` names the one to take. Throws with the reason of every variant when
// none can be run.
const Variant &chooseVariant(const std::shared_ptr<Device> &D,
                             const FunctionDecl &F, const std::string &Forced,
                             bool NativeCode);

// Why `D` cannot or may not run the variant; "" when it does. `NativeCode`: the
// caller allows variants for the host.
std::string whyNot(const std::shared_ptr<Device> &D, const FunctionDecl &F,
                   const Variant &V, bool NativeCode);

struct LoadOptions {
  bool CaptureStatistics = false, NativeCode = false, Lazily = false;
};

struct TensorArg {
  uint64_t Value = 0;                // the bytes of a scalar, which is all
  const MemoryRef *Buffer = nullptr; // may be null when only shapes are asked
  size_t Offset = 0;
  Span<int64_t> Shape;
  bool HasShape = true;
  uint64_t Bytes = 0; // by its shape, which prepare() computes
};

// A call: in what it is given, out what it queues, copies, then launches. It is
// filled again and again without an allocation.
struct Call {
  std::vector<TensorArg> Args, Results;

  struct Copy {
    const TensorArg *To, *From;
  };
  std::vector<Copy> Copies; // of arguments to results that are tied to them
  std::vector<Launch> Launches;
  // How many of the sums each launch waits for.
  std::vector<size_t> Needs;
  // A sum over ranks, or a part of one, behind so many of the launches.
  struct Sum {
    size_t After;
    const std::string *DType;
    uint64_t Count; // of elements
    Use From, To;
  };
  std::vector<Sum> Sums;
  // The number of the stream's last collective before them and behind each.
  std::vector<uint64_t> Ends;
  std::vector<LogOfLaunch> Logs; // of the launches that print or assert

  // The storage that the pointers above point into.
  std::vector<int64_t> Symbols, PartSymbols;
  std::vector<uint8_t> Blocks;
  std::vector<Use> Uses;
  std::vector<Extent> Extents; // where the device checks them
  struct Place {
    uint64_t Offset, Bytes;
  };
  std::vector<Place> Temps;  // in Scratch or Zeroed
  MemoryRef Scratch, Zeroed; // of a launch that a graph records
};

// A sum over ranks has at most so many parts.
inline constexpr int64_t mostParts = 32;

// Streams of several threads share it. Kernels are loaded with it or, where it
// is loaded lazily, by the first launch that needs them; nothing else changes.
class Function {
public:
  Function(std::shared_ptr<Device> D, std::shared_ptr<const Package> P,
           const std::string &Name, const std::string &Variant,
           const LoadOptions &Options);

  const FunctionDecl &decl() const { return *Decl; }
  const Variant &variant() const { return *Chosen; }
  // The kernels of the variant, then those of its ranges; loads what is not.
  std::vector<KernelRef> kernels() const;
  // Whether kernels print or assert.
  bool hasLog() const;
  // Whether a launch sums over ranks.
  bool hasSums() const;

  // Sets the values of the symbols; every shape is checked against the
  // declaration.
  void bindSymbols(const std::vector<TensorArg> &Args,
                   std::vector<int64_t> &Symbols) const;
  std::vector<int64_t> resultShape(size_t Index,
                                   const std::vector<int64_t> &Symbols) const;
  // The operations that one call on `S` queues, in order, from C's arguments
  // and results. All is built before the first is queued, so that a bad value
  // leaves nothing half done. `Shares`: the temporaries lie in memory that is
  // shared with the library that sums.
  void prepare(Stream &S, Call &C, bool Shares = false) const;

private:
  // The first and the last kernel that touches a temporary.
  struct Life {
    size_t First = SIZE_MAX, Last = 0;
  };
  // The kernels of one choice.
  struct Loaded {
    Loaded(const Variant &From, const Range *Of);

    const Variant &From; // the variant, or what a range has in its place
    const Range *Of;     // that range
    std::vector<Life> Lives;
    // The kernels are loaded when they are first needed; what fails is tried
    // again. (ThreadSanitizer waits for ever in a std::call_once behind one
    // that threw.)
    mutable std::mutex Loading;
    mutable std::atomic<bool> IsLoaded{false};
    mutable std::vector<KernelRef> Kernels;
  };

  // Loads the kernels of `L`, unless they are loaded.
  const Loaded &load(const Loaded &L) const;
  // The choice for these values: that of the first range that holds them, else
  // the variant's own.
  const Loaded &choiceFor(const std::vector<int64_t> &Symbols) const;
  void checkResult(Call &C, size_t Index) const;
  void copyTied(Call &C, size_t Index) const;
  void checkOverlaps(const Call &C) const;
  // Some of the rows that a symbol counts.
  struct Part {
    size_t Symbol;
    int64_t First, Count, Of;
  };
  static std::vector<Part> partsOf(const SumDecl &D,
                                   const std::vector<int64_t> &Symbols);
  // Launches the kernel on the rows of `P`, or on all, behind the first `Needs`
  // sums.
  void addKernel(Stream &S, Call &C, const Loaded &L, size_t Index,
                 size_t Needs, const Part *P = nullptr) const;
  void addSum(Stream &S, Call &C, const Loaded &L, const SumDecl &D,
              const Part *P = nullptr) const;
  // The sum, and the kernels that are launched in its parts.
  void addGroup(Stream &S, Call &C, const Loaded &L, const SumDecl &D) const;
  Use useOf(Stream &S, const Call &C, const Loaded &L,
            const KernelArg &A) const;
  Extent extentOf(const Loaded &L, const KernelArg &A, const Use &U) const;
  void placeTemporaries(Stream &S, Call &C, const Loaded &L, bool Shares) const;
  void clear(const MemoryRef &Memory) const;

  std::shared_ptr<Device> Dev;
  std::shared_ptr<const Package> Pkg; // owns Decl and Chosen
  const FunctionDecl *Decl;
  const Variant *Chosen;
  bool CaptureStatistics;
  std::deque<Loaded> All; // the variant's own, then those of its ranges
};

} // namespace greta::rt
#endif
