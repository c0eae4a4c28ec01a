// Function.h: a package function on a device: the chosen variant, its loaded
// kernels, and launches.
#ifndef GRETA_RUNTIME_FUNCTION_H
#define GRETA_RUNTIME_FUNCTION_H

#include "Backend.h"

#include <atomic>
#include <deque>
#include <mutex>

namespace greta::rt {

// Returns the variant that `D` runs: docs/internals/package.md, "Choice". A
// non-empty `Forced` names it. Throws the reason of every variant if none can
// be run.
const Variant &chooseVariant(const std::shared_ptr<Device> &D, const Package &P,
                             const FunctionDecl &F, const std::string &Forced,
                             bool NativeCode);

// Returns why `D` cannot or may not run the variant; "" when it does.
// `NativeCode`: the caller allows variants for the host.
std::string whyNot(const std::shared_ptr<Device> &D, const Package &P,
                   const FunctionDecl &F, const Variant &V, bool NativeCode);

struct LoadOptions {
  bool CaptureStatistics = false, NativeCode = false, Lazily = false;
};

struct TensorArg {
  uint64_t Value = 0;                // a scalar's bytes, and no more
  const MemoryRef *Buffer = nullptr; // null if only shapes are asked
  size_t Offset = 0;
  Span<int64_t> Shape;
  bool HasShape = true;
  uint64_t Bytes = 0; // of its shape; prepare() sets it
};

// A call. It is given arguments and results, and queues copies, then launches.
// It is filled again and again without an allocation.
struct Call {
  std::vector<TensorArg> Args, Results;

  struct Copy {
    const TensorArg *To, *From;
  };
  std::vector<Copy> Copies; // arguments to results tied to them
  std::vector<Launch> Launches;
  // The number of the sums that each launch waits for.
  std::vector<size_t> Needs;
  // A sum over ranks, or a part of one, behind so many of the launches.
  struct Sum {
    size_t After;
    const std::string *DType;
    uint64_t Count; // number of elements
    Use From, To;
  };
  std::vector<Sum> Sums;
  // The number of the stream's last collective before them and behind each.
  std::vector<uint64_t> Ends;
  std::vector<LogRef> Logs; // of the launches that print or assert

  // The pointers above point into these.
  std::vector<int64_t> Symbols, PartSymbols;
  std::vector<uint8_t> Blocks;
  std::vector<Use> Uses;
  std::vector<Extent> Extents; // if the device checks them
  struct Place {
    uint64_t Offset, Bytes;
  };
  std::vector<Place> Temps;  // in Scratch or Zeroed
  MemoryRef Scratch, Zeroed; // for a launch that a graph records
};

// A sum over ranks has at most so many parts.
inline constexpr int64_t mostParts = 32;

// Streams of several threads share a function. Only its kernels change: they
// are loaded with it or, if it is lazy, when a launch needs them.
class Function {
public:
  Function(std::shared_ptr<Device> D, std::shared_ptr<const Package> P,
           const std::string &Name, const std::string &Variant,
           const LoadOptions &Options);

  const FunctionDecl &decl() const { return *Decl; }
  const Variant &variant() const { return *Chosen; }
  // Returns the kernels of the variant, then of its ranges; loads missing ones.
  std::vector<KernelRef> kernels() const;
  // Returns whether a launch waits for kernels, because of what they print.
  bool waits() const;
  // Returns whether a launch sums over ranks.
  bool hasSums() const;

  // Sets the values of the symbols, and checks every shape against the
  // declaration.
  void bindSymbols(const std::vector<TensorArg> &Args,
                   std::vector<int64_t> &Symbols) const;
  std::vector<int64_t> resultShape(size_t Index,
                                   const std::vector<int64_t> &Symbols) const;
  // Makes the operations that one call on `S` queues, in order, from C's
  // arguments and results. All is built before the first is queued, so a bad
  // value leaves nothing half done. `Shares`: the temporaries lie in memory
  // that is shared with the library that sums.
  void prepare(Stream &S, Call &C, bool Shares = false) const;

private:
  // The first and the last kernel that touch a temporary.
  struct Life {
    size_t First = SIZE_MAX, Last = 0;
  };
  // The kernels of one choice.
  struct Loaded {
    Loaded(const Variant &From, const Range *Of);

    const Variant &From; // the variant, or a range's own
    const Range *Of;     // the range, or null
    std::vector<Life> Lives;
    // The kernels are loaded when they are first needed; a failure is tried
    // again. (ThreadSanitizer waits for ever in a std::call_once behind one
    // that threw.)
    mutable std::mutex Loading;
    mutable std::atomic<bool> IsLoaded{false};
    mutable std::vector<KernelRef> Kernels;
  };

  // Loads the kernels of `L`, unless they are loaded.
  const Loaded &load(const Loaded &L) const;
  // Returns the choice for these values: that of the first range that holds
  // them, else the variant's own.
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
  // Queues the sum, and the kernels that are launched in its parts.
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
