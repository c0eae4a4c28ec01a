// Function.cpp: loading, shape checks, and the argument block of each kernel.
#include "Function.h"
#include "DType.h"
#include "Error.h"
#include "Health.h"
#include "Trace.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace greta::rt {

Function::Function(std::shared_ptr<Device> D, std::shared_ptr<const Package> P,
                   const std::string &Name, const std::string &Variant,
                   const LoadOptions &Options)
    : Dev(std::move(D)), Pkg(std::move(P)), Decl(Pkg->find(Name)) {
  if (!Decl) {
    std::string Names;
    for (const FunctionDecl &F : Pkg->Functions)
      Names += (Names.empty() ? "" : ", ") + F.Name;
    fail(GRETA_ERROR_NOT_FOUND, "the package has no function '", Name,
         "'; it has ", Names);
  }
  Chosen = &chooseVariant(Dev, *Pkg, *Decl, Variant, Options.NativeCode);
  CaptureStatistics = Options.CaptureStatistics;
  All.emplace_back(*Chosen, nullptr);
  // The device may lack what a range needs.
  for (const Range &R : Chosen->Ranges)
    if (whyNot(Dev, *Pkg, *Decl, R.What, Options.NativeCode).empty())
      All.emplace_back(R.What, &R);
  if (!Options.Lazily)
    kernels();
}

Function::Loaded::Loaded(const Variant &From, const Range *Of)
    : From(From), Of(Of), Lives(From.Temps.size()) {
  for (size_t K = 0; K < From.Kernels.size(); ++K) {
    // A log is no part of the temporaries: launches append to it.
    const auto &Log = From.Kernels[K].Log;
    for (const KernelArg &A : From.Kernels[K].Args)
      if (A.Which == KernelArg::Temp && !(Log && A.Index == Log->Temp))
        Lives[A.Index] = {std::min(Lives[A.Index].First, K), K};
  }
  // A sum's tensors live with the kernels on both sides of it.
  for (const SumDecl &S : From.Sums)
    for (const KernelArg &A : {S.From, S.To})
      if (A.Which == KernelArg::Temp) {
        Life &Of = Lives[A.Index];
        size_t Before = S.After ? S.After - 1 : 0;
        Of = {std::min(Of.First, Before), std::max(Of.Last, S.After)};
      }
  for (size_t T = 0; T < Lives.size(); ++T)
    if (From.Temps[T].IsZeroed)
      Lives[T] = {0, SIZE_MAX};
}

const Function::Loaded &Function::load(const Loaded &L) const {
  if (L.IsLoaded.load(std::memory_order_acquire))
    return L;
  std::lock_guard<std::mutex> Guard(L.Loading);
  if (L.IsLoaded.load(std::memory_order_relaxed))
    return L;
  Trace::Call Traced("make kernels");
  std::vector<KernelRef> Kernels;
  for (const KernelDecl &K : L.From.Kernels) {
    Kernels.push_back(
        Dev->loadKernel(L.From, K, Pkg->Objects.at(K.File), CaptureStatistics));
    Kernels.back()->Name = K.Entry;
  }
  L.Kernels = std::move(Kernels);
  L.IsLoaded.store(true, std::memory_order_release);
  return L;
}

std::vector<KernelRef> Function::kernels() const {
  std::vector<KernelRef> Kernels;
  for (const Loaded &L : All) {
    load(L);
    Kernels.insert(Kernels.end(), L.Kernels.begin(), L.Kernels.end());
  }
  return Kernels;
}

bool Function::waits() const {
  auto Logs = [](const KernelDecl &K) { return K.Log && waitsForLog(*K.Log); };
  return std::any_of(All.begin(), All.end(), [&](const Loaded &L) {
    return std::any_of(L.From.Kernels.begin(), L.From.Kernels.end(), Logs);
  });
}

bool Function::hasSums() const {
  return std::any_of(All.begin(), All.end(), [](const Loaded &L) {
    return L.From.Requires.Communicator;
  });
}

const Function::Loaded &
Function::choiceFor(const std::vector<int64_t> &Symbols) const {
  auto Holds = [&](const Range::Condition &C) {
    int64_t Value = C.Value.evaluate(Symbols);
    return C.Least <= Value && Value <= C.Most;
  };
  for (const Loaded &L : All)
    if (L.Of && std::all_of(L.Of->When.begin(), L.Of->When.end(), Holds))
      return L;
  return All.front();
}

static int64_t integerOf(const TensorArg &Scalar, const TensorDecl &Decl) {
  return Decl.DType == "i1"    ? static_cast<int64_t>(Scalar.Value & 1)
         : Decl.DType == "i8"  ? static_cast<int8_t>(Scalar.Value)
         : Decl.DType == "i16" ? static_cast<int16_t>(Scalar.Value)
         : Decl.DType == "i32" ? static_cast<int32_t>(Scalar.Value)
                               : static_cast<int64_t>(Scalar.Value);
}

void Function::bindSymbols(const std::vector<TensorArg> &Args,
                           std::vector<int64_t> &Symbols) const {
  if (Args.size() != Decl->Args.size())
    fail(GRETA_ERROR_INVALID_ARGUMENT, "function '", Decl->Name, "' takes ",
         Decl->Args.size(), " arguments, ", Args.size(), " given");
  for (size_t I = 0; I < Args.size(); ++I)
    if (Args[I].Shape.Size != Decl->Args[I].Shape.size())
      fail(GRETA_ERROR_INVALID_ARGUMENT, "argument ", I, " '",
           Decl->Args[I].Name, "' has rank ", Args[I].Shape.Size, " (",
           shapeText(Args[I].Shape.Data, Args[I].Shape.Size),
           "), declared with rank ", Decl->Args[I].Shape.size());
  Symbols.clear();
  for (const FunctionDecl::Symbol &S : Decl->Symbols)
    Symbols.push_back(S.Dim ? Args[S.Arg].Shape.Data[*S.Dim]
                            : integerOf(Args[S.Arg], Decl->Args[S.Arg]));
  for (size_t I = 0; I < Args.size(); ++I)
    for (size_t D = 0; D < Args[I].Shape.Size; ++D) {
      int64_t Got = Args[I].Shape.Data[D];
      if (Got < 0)
        fail(GRETA_ERROR_INVALID_ARGUMENT, "argument ", I, " '",
             Decl->Args[I].Name, "': dim ", D, " is negative");
      int64_t Want = Decl->Args[I].Shape[D].evaluate(Symbols);
      if (Got != Want)
        fail(GRETA_ERROR_INVALID_ARGUMENT, "argument ", I, " '",
             Decl->Args[I].Name, "' has shape ",
             shapeText(Args[I].Shape.Data, Args[I].Shape.Size), ": dim ", D,
             " is ", Got, ", the function needs ", Want);
    }
}

std::vector<int64_t>
Function::resultShape(size_t Index, const std::vector<int64_t> &Symbols) const {
  if (Index >= Decl->Results.size())
    fail(GRETA_ERROR_INVALID_ARGUMENT, "function '", Decl->Name, "' has ",
         Decl->Results.size(), " results, number ", Index, " asked for");
  std::vector<int64_t> Shape;
  for (const Expr &E : Decl->Results[Index].Shape)
    Shape.push_back(E.evaluate(Symbols));
  return Shape;
}

namespace {
uint64_t bytesOf(const TensorDecl &Decl, const std::vector<int64_t> &Symbols) {
  std::array<int64_t, 16> Dims; // a manifest has no more
  for (size_t D = 0; D < Decl.Shape.size(); ++D)
    Dims[D] = Decl.Shape[D].evaluate(Symbols);
  return tensorBytes(Decl.Bits, Dims.data(), Decl.Shape.size());
}

void checkBuffer(const TensorArg &T, const TensorDecl &Decl, const char *What,
                 size_t I) {
  if (!T.Buffer)
    fail(GRETA_ERROR_INVALID_ARGUMENT, What, " ", I, " '", Decl.Name,
         "' has no buffer");
  if (T.Offset % Decl.Align != 0)
    fail(GRETA_ERROR_INVALID_ARGUMENT, What, " ", I, " '", Decl.Name,
         "': offset ", T.Offset, " is not a multiple of ", Decl.Align);
  if (T.Bytes > Decl.MaxBytes)
    fail(GRETA_ERROR_INVALID_ARGUMENT, What, " ", I, " '", Decl.Name, "' has ",
         T.Bytes, " bytes; its kernels reach at most ", Decl.MaxBytes);
  uint64_t Size = (*T.Buffer)->Size;
  if (T.Offset > Size || T.Bytes > Size - T.Offset)
    fail(GRETA_ERROR_INVALID_ARGUMENT, What, " ", I, " '", Decl.Name,
         "' needs ", T.Bytes, " bytes from offset ", T.Offset,
         ", its buffer has ", Size);
}

// Appends a value at its natural alignment.
template <typename T> void append(std::vector<uint8_t> &Block, T Value) {
  size_t At = (Block.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T);
  Block.resize(At + sizeof(T));
  memcpy(Block.data() + At, &Value, sizeof(T));
}
} // namespace

// Temporaries that no kernel needs at the same time share their bytes, except
// for those that hold zeros between launches.
void Function::placeTemporaries(Stream &S, Call &C, const Loaded &L,
                                bool Shares) const {
  const std::vector<TensorDecl> &Temps = L.From.Temps;
  const std::vector<Life> &Lives = L.Lives;
  constexpr uint64_t alignment = 256;
  C.Temps.clear();
  uint64_t Ends[2] = {0, 0};
  for (size_t I = 0; I < Lives.size(); ++I) {
    const TensorDecl &T = Temps[I];
    Call::Place P{0, 0};
    if (Lives[I].First == SIZE_MAX) { // a log, or in no use
      C.Temps.push_back(P);
      continue;
    }
    P.Bytes = bytesOf(T, C.Symbols);
    for (size_t J = 0; J < I;) {
      const Call::Place &Other = C.Temps[J];
      bool Clash = Temps[J].IsZeroed == T.IsZeroed &&
                   Lives[J].First <= Lives[I].Last &&
                   Lives[I].First <= Lives[J].Last &&
                   Other.Offset < P.Offset + P.Bytes &&
                   P.Offset < Other.Offset + Other.Bytes;
      if (Clash)
        P.Offset = (Other.Offset + Other.Bytes + alignment - 1) / alignment *
                   alignment;
      J = Clash ? 0 : J + 1;
    }
    C.Temps.push_back(P);
    Ends[T.IsZeroed] =
        std::max(Ends[T.IsZeroed], P.Offset + std::max<uint64_t>(P.Bytes, 1));
  }
  auto Grow = [&](MemoryRef &Memory, uint64_t Bytes, bool Shared) {
    if (!Bytes ||
        (Memory && Memory->Size >= Bytes && (!Shared || Memory->isShared())))
      return false;
    // Shared memory replaces any other: functions that sum and those that do
    // not take turns.
    if (Shared && Memory)
      Bytes = std::max<uint64_t>(Bytes, Memory->Size);
    Memory = Shared ? Dev->allocateShared(GRETA_FD_OPAQUE, Bytes)
                    : Dev->allocate(Bytes);
    return true;
  };
  if (S.Capturing)
    C.Scratch = C.Zeroed = nullptr;
  Grow(S.Capturing ? C.Scratch : S.Scratch, Ends[0], Shares);
  MemoryRef &Zeroed = S.Capturing ? C.Zeroed : S.Zeroed;
  if (!Grow(Zeroed, Ends[1], false))
    return;
  try {
    clear(Zeroed);
  } catch (...) {
    Zeroed = nullptr; // the next launch clears it
    throw;
  }
  if (S.Capturing)
    S.RecordedZeroed.push_back(Zeroed);
}

// Uses a stream of its own: in a capture it would be part of the graph.
void Function::clear(const MemoryRef &Memory) const {
  std::unique_ptr<Stream> S = Dev->createStream();
  S->fill(Memory, 0, Memory->Size / 4 * 4, 0);
  S->synchronize();
}

void Function::checkResult(Call &C, size_t Index) const {
  const TensorDecl &D = Decl->Results[Index];
  TensorArg &R = C.Results[Index];
  bool Same = R.Shape.Size == D.Shape.size();
  for (size_t I = 0; Same && I < R.Shape.Size; ++I)
    Same = R.Shape.Data[I] == D.Shape[I].evaluate(C.Symbols);
  if (R.HasShape && !Same)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "result ", Index, " '", D.Name,
         "' is given as ", shapeText(R.Shape.Data, R.Shape.Size),
         ", the function computes ", shapeText(resultShape(Index, C.Symbols)));
  R.Bytes = bytesOf(D, C.Symbols);
  checkBuffer(R, D, "result", Index);
}

// Whether two tensors share bytes. One that is empty or a scalar has none.
static bool overlap(const TensorArg &A, const TensorArg &B) {
  return A.Buffer && B.Buffer && *A.Buffer == *B.Buffer && A.Bytes && B.Bytes &&
         A.Offset < B.Offset + B.Bytes && B.Offset < A.Offset + A.Bytes;
}

// Gives a tied result the argument's memory, or memory of its own, which gets a
// copy of the argument.
void Function::copyTied(Call &C, size_t Index) const {
  const TensorDecl &Tied = Decl->Results[Index];
  const TensorArg &Result = C.Results[Index], &From = C.Args[*Tied.Tied];
  bool IsArgument = From.Buffer && *From.Buffer == *Result.Buffer &&
                    From.Offset == Result.Offset;
  if (Decl->InPlace && IsArgument)
    return;
  for (size_t I = 0; I < C.Args.size(); ++I) {
    const TensorArg &A = C.Args[I];
    if (overlap(A, Result) && (I != Tied.Tied || A.Offset != Result.Offset))
      fail(GRETA_ERROR_INVALID_ARGUMENT, "result ", Index, " '", Tied.Name,
           "' overlaps argument ", I, " '", Decl->Args[I].Name,
           "'; it is tied to argument ", *Tied.Tied, " '",
           Decl->Args[*Tied.Tied].Name,
           "': pass the memory of that one, or memory of its own");
  }
  if (Result.Bytes && !IsArgument)
    C.Copies.push_back({&Result, &From});
}

void Function::prepare(Stream &S, Call &C, bool Shares) const {
  bindSymbols(C.Args, C.Symbols);
  if (C.Results.size() != Decl->Results.size())
    fail(GRETA_ERROR_INVALID_ARGUMENT, "function '", Decl->Name, "' has ",
         Decl->Results.size(), " results, ", C.Results.size(), " given");
  C.Copies.clear();
  C.Launches.clear();
  C.Needs.clear();
  C.Sums.clear();
  C.Logs.clear();
  C.Blocks.clear();
  C.Uses.clear();
  C.Extents.clear();
  for (size_t I = 0; I < C.Args.size(); ++I) {
    TensorArg &A = C.Args[I];
    if (Decl->Args[I].IsScalar)
      continue;
    A.Bytes = tensorBytes(Decl->Args[I].Bits, A.Shape.Data, A.Shape.Size);
    checkBuffer(A, Decl->Args[I], "argument", I);
  }
  for (size_t I = 0; I < C.Results.size(); ++I) {
    checkResult(C, I);
    if (Decl->Results[I].Tied)
      copyTied(C, I);
  }
  checkOverlaps(C);
  const Loaded &What = load(choiceFor(C.Symbols));
  placeTemporaries(S, C, What, Shares);
  size_t Next = 0;
  auto AddKernels = [&](size_t End) {
    for (; Next < End; ++Next)
      addKernel(S, C, What, Next, C.Sums.size());
  };
  for (const SumDecl &Sum : What.From.Sums) {
    AddKernels(Sum.After - Sum.Before);
    addGroup(S, C, What, Sum);
    Next = Sum.After + Sum.Behind;
  }
  AddKernels(What.Kernels.size());
  // The lists are not moved from here on.
  const uint8_t *Block = C.Blocks.data();
  const Use *Uses = C.Uses.data();
  const Extent *Extents = C.Extents.data();
  for (Launch &L : C.Launches) {
    L.Block.Data = Block;
    L.Uses.Data = Uses;
    Block += (L.Block.Size + 7) / 8 * 8;
    Uses += L.Uses.Size;
    L.Extents.Data = Extents;
    Extents += L.Extents.Size;
  }
}

// Refuses results that share bytes with another tensor: kernels may read an
// argument after they wrote a result, and the compiler takes the two for
// different memory.
void Function::checkOverlaps(const Call &C) const {
  for (size_t I = 0; I < C.Results.size(); ++I) {
    auto Check = [&](const char *What, size_t J, const TensorArg &Other,
                     const TensorDecl &D) {
      const TensorArg &R = C.Results[I];
      if (overlap(R, Other))
        fail(GRETA_ERROR_INVALID_ARGUMENT, "result ", I, " '",
             Decl->Results[I].Name, "' overlaps ", What, " ", J, " '", D.Name,
             "'; pass other memory for it");
    };
    for (size_t J = 0; !Decl->Results[I].Tied && J < C.Args.size(); ++J)
      Check("argument", J, C.Args[J], Decl->Args[J]);
    for (size_t J = 0; !Decl->InPlace && J < I; ++J)
      Check("result", J, C.Results[J], Decl->Results[J]);
  }
}

void Function::addKernel(Stream &S, Call &C, const Loaded &From, size_t Index,
                         size_t Needs, const Part *P) const {
  const KernelDecl &K = From.From.Kernels[Index];
  if (P) {
    C.PartSymbols = C.Symbols;
    C.PartSymbols[P->Symbol] = P->Count;
  }
  const std::vector<int64_t> &Symbols = P ? C.PartSymbols : C.Symbols;
  Launch L{&From.Kernels[Index], {}, {}, {}, {}};
  bool Empty = false;
  for (int D = 0; D < 3; ++D) {
    int64_t Count = K.Grid[D].evaluate(Symbols);
    if (Count > Dev->maxGrid()[D])
      fail(GRETA_ERROR_UNSUPPORTED, "kernel '", K.Entry, "' needs ", Count,
           " workgroups in dim ", D, ", ", Dev->Spec, " allows ",
           Dev->maxGrid()[D]);
    L.Grid[D] = static_cast<uint32_t>(Count);
    Empty |= Count == 0;
  }
  if (Empty)
    return;
  // A workgroup that waits for one that does not run waits for ever.
  if (K.IsResident && (L.Grid[0] > From.From.Requires.Resident ||
                       L.Grid[1] != 1 || L.Grid[2] != 1))
    fail(GRETA_ERROR_BAD_PACKAGE, "kernel '", K.Entry,
         "' has more workgroups than its variant says run at a time");
  if (K.Log) {
    if (S.Capturing && prints(*K.Log))
      fail(GRETA_ERROR_UNSUPPORTED, "function '", Decl->Name,
           "' prints, which no graph records; launch it");
    C.Logs.push_back(S.Logs.of(*Dev, S, K, Pkg));
  }
  std::vector<uint8_t> &Block = C.Blocks;
  Block.resize((Block.size() + 7) / 8 * 8);
  size_t Begin = Block.size(), FirstUse = C.Uses.size();
  bool Checked = Dev->wantsExtents();
  for (const KernelArg &A : K.Args) {
    if (Checked)
      C.Extents.emplace_back();
    if (A.Which == KernelArg::I32) {
      int64_t Value = A.Value.evaluate(Symbols);
      if (Value > INT32_MAX)
        fail(GRETA_ERROR_INVALID_ARGUMENT, "kernel '", K.Entry, "': the value ",
             Value, " of an i32 argument is out of range");
      if (Value > A.Most)
        fail(GRETA_ERROR_UNSUPPORTED, "kernel '", K.Entry, "': rows are ",
             Value, " elements apart, of which its 32-bit offsets reach ",
             A.Most, "; compile the function with that extent static");
      append(Block, static_cast<int32_t>(Value));
    } else if (A.Which == KernelArg::I64) {
      append(Block, A.Value.evaluate(Symbols));
    } else if (A.Which == KernelArg::Scalar) {
      uint64_t Value = C.Args[A.Index].Value;
      if (A.ScalarBytes == 4)
        append(Block, static_cast<uint32_t>(Value));
      else
        append(Block, Value);
    } else {
      if (K.Log && A.Which == KernelArg::Temp && A.Index == K.Log->Temp)
        C.Uses.push_back(
            {&C.Logs.back()->Words, 0, K.Log->Words * sizeof(uint32_t), true});
      else
        C.Uses.push_back(useOf(S, C, From, A));
      if (P && A.ByRows && P->Of) {
        Use &U = C.Uses.back();
        uint64_t Row = (U.End - U.Begin) / P->Of;
        U.Begin += P->First * Row;
        U.End = U.Begin + P->Count * Row;
      }
      append(Block, (*C.Uses.back().Of)->Address + C.Uses.back().Begin);
      if (Checked)
        C.Extents.back() = extentOf(From, A, C.Uses.back());
      // A kernel may reach any part of memory that is no value.
      if (Decl->InPlace && A.Which != KernelArg::Temp) {
        C.Uses.back().Begin = 0;
        C.Uses.back().End = (*C.Uses.back().Of)->Size;
      }
    }
  }
  if (Chosen->Backend == "host")
    for (int64_t Value : C.Symbols)
      append(Block, Value);
  if (K.IsResident)
    C.Uses.push_back({&Dev->meeting(), 0, 4, true});
  L.Block.Size = Block.size() - Begin;
  L.Uses.Size = C.Uses.size() - FirstUse;
  L.Extents.Size = Checked ? K.Args.size() : 0;
  C.Launches.push_back(L);
  C.Needs.push_back(Needs);
}

Extent Function::extentOf(const Loaded &L, const KernelArg &A,
                          const Use &U) const {
  const TensorDecl &T = tensorOf(*Decl, L.From, A);
  return {(*U.Of)->Address + U.Begin, U.End - U.Begin,
          std::max<uint64_t>(T.Bits / 8, 1),
          T.Tied ? Decl->Args[*T.Tied].Name : T.Name};
}

// Returns the part of a memory that an argument of a kernel is.
Use Function::useOf(Stream &S, const Call &C, const Loaded &L,
                    const KernelArg &A) const {
  if (A.Which == KernelArg::Temp) {
    const Call::Place &P = C.Temps[A.Index];
    bool IsZeroed = L.From.Temps[A.Index].IsZeroed;
    const MemoryRef &Own = IsZeroed ? C.Zeroed : C.Scratch,
                    &Shared = IsZeroed ? S.Zeroed : S.Scratch;
    return {S.Capturing ? &Own : &Shared, P.Offset, P.Offset + P.Bytes, true};
  }
  const TensorArg &T =
      A.Which == KernelArg::Arg ? C.Args[A.Index] : C.Results[A.Index];
  bool IsRead =
      A.Which == KernelArg::Arg && Decl->Args[A.Index].Access == "read";
  return {T.Buffer, T.Offset, T.Offset + T.Bytes, !IsRead};
}

} // namespace greta::rt
