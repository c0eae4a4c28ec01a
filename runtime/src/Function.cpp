// Function.cpp: variant choice, shape checks, and the argument block of each
// kernel.
#include "Function.h"
#include "DType.h"
#include "Error.h"

#include <cstring>

namespace greta::rt {

std::string whyNot(Device &D, const Variant &V, bool NativeCode) {
  std::string Why = D.whyNot(V);
  if (!Why.empty() || V.Backend != "host")
    return Why;
  if (nativeCodeIsRefused())
    return "it is native code, which this process refuses";
  return NativeCode ? ""
                    : "it is native code; ask for the device by its name, "
                      "host, if you trust the package";
}

const Variant &chooseVariant(Device &D, const FunctionDecl &F,
                             const std::string &Forced, bool NativeCode) {
  if (!Forced.empty()) {
    std::string Ids;
    for (const Variant &V : F.Variants) {
      Ids += (Ids.empty() ? "" : ", ") + V.Id;
      if (V.Id != Forced)
        continue;
      std::string Why = whyNot(D, V, NativeCode);
      if (!Why.empty())
        fail(GRETA_ERROR_UNSUPPORTED, "variant '", V.Id, "' of '", F.Name,
             "' does not run on ", D.Spec, " (", D.Name, "): ", Why);
      return V;
    }
    fail(GRETA_ERROR_NOT_FOUND, "function '", F.Name, "' has no variant '",
         Forced, "'; it has ", Ids);
  }
  // Variants come best first. One made for this family of devices is preferred,
  // then a subgroup size that the driver takes by itself, but neither over a
  // better kind of variant: one with cooperative matrices stays ahead of one
  // without.
  const Variant *Best = nullptr;
  auto Rank = [&](const Variant &V) {
    return (D.madeFor(V) ? 2 : 0) +
           (V.Requires.SubgroupSize == D.defaultSubgroupSize() ? 1 : 0);
  };
  std::string Reasons;
  for (const Variant &V : F.Variants) {
    std::string Why = whyNot(D, V, NativeCode);
    if (!Why.empty())
      Reasons += concat(Reasons.empty() ? "" : "; ", V.Id, ": ", Why);
    else if (!Best ||
             (V.Requires.Coopmat.empty() == Best->Requires.Coopmat.empty() &&
              Rank(V) > Rank(*Best)))
      Best = &V;
  }
  if (Best)
    return *Best;
  fail(GRETA_ERROR_UNSUPPORTED, "no variant of '", F.Name, "' runs on ", D.Spec,
       " (", D.Name, "): ", Reasons);
}

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
  Chosen = &chooseVariant(*Dev, *Decl, Variant, Options.NativeCode);
  for (const KernelDecl &K : Chosen->Kernels) {
    Kernels.push_back(Dev->loadKernel(*Chosen, K, Pkg->Objects.at(K.File),
                                      Options.CaptureStatistics));
    Kernels.back()->Name = K.Entry;
  }
}

static int64_t integerOf(const TensorArg &Scalar, const TensorDecl &Decl) {
  return Decl.DType == "i1"    ? static_cast<int64_t>(Scalar.Value & 1)
         : Decl.DType == "i8"  ? static_cast<int8_t>(Scalar.Value)
         : Decl.DType == "i16" ? static_cast<int16_t>(Scalar.Value)
         : Decl.DType == "i32" ? static_cast<int32_t>(Scalar.Value)
                               : static_cast<int64_t>(Scalar.Value);
}

std::vector<int64_t>
Function::bindSymbols(const std::vector<TensorArg> &Args) const {
  if (Args.size() != Decl->Args.size())
    fail(GRETA_ERROR_INVALID_ARGUMENT, "function '", Decl->Name, "' takes ",
         Decl->Args.size(), " arguments, ", Args.size(), " given");
  for (size_t I = 0; I < Args.size(); ++I)
    if (Args[I].Shape.size() != Decl->Args[I].Shape.size())
      fail(GRETA_ERROR_INVALID_ARGUMENT, "argument ", I, " '",
           Decl->Args[I].Name, "' has rank ", Args[I].Shape.size(), " (",
           shapeText(Args[I].Shape), "), declared with rank ",
           Decl->Args[I].Shape.size());
  std::vector<int64_t> Symbols;
  for (const FunctionDecl::Symbol &S : Decl->Symbols)
    Symbols.push_back(S.Dim ? Args[S.Arg].Shape[*S.Dim]
                            : integerOf(Args[S.Arg], Decl->Args[S.Arg]));
  for (size_t I = 0; I < Args.size(); ++I)
    for (size_t D = 0; D < Args[I].Shape.size(); ++D) {
      int64_t Got = Args[I].Shape[D];
      if (Got < 0)
        fail(GRETA_ERROR_INVALID_ARGUMENT, "argument ", I, " '",
             Decl->Args[I].Name, "': dim ", D, " is negative");
      int64_t Want = Decl->Args[I].Shape[D].evaluate(Symbols);
      if (Got != Want)
        fail(GRETA_ERROR_INVALID_ARGUMENT, "argument ", I, " '",
             Decl->Args[I].Name, "' has shape ", shapeText(Args[I].Shape),
             ": dim ", D, " is ", Got, ", the function needs ", Want);
    }
  return Symbols;
}

static std::vector<int64_t> evaluate(const std::vector<Expr> &Shape,
                                     const std::vector<int64_t> &Symbols) {
  std::vector<int64_t> Result;
  for (const Expr &E : Shape)
    Result.push_back(E.evaluate(Symbols));
  return Result;
}

std::vector<int64_t>
Function::resultShape(size_t Index, const std::vector<int64_t> &Symbols) const {
  if (Index >= Decl->Results.size())
    fail(GRETA_ERROR_INVALID_ARGUMENT, "function '", Decl->Name, "' has ",
         Decl->Results.size(), " results, number ", Index, " asked for");
  return evaluate(Decl->Results[Index].Shape, Symbols);
}

std::vector<MemoryRef>
Function::temporaries(Stream &S, const std::vector<int64_t> &Symbols) const {
  std::vector<MemoryRef> Temps(Chosen->Temps.size());
  for (size_t I = 0; I < Temps.size(); ++I) {
    const TensorDecl &T = Chosen->Temps[I];
    std::vector<MemoryRef> &Pool = T.IsZeroed ? S.Zeroed : S.Scratch;
    if (!S.Capturing && I < Pool.size())
      Temps[I] = Pool[I];
    size_t Bytes = tensorBytes(T.DType, evaluate(T.Shape, Symbols));
    if (Temps[I] && Temps[I]->Size >= Bytes)
      continue;
    Temps[I] = Dev->allocate(Bytes);
    if (T.IsZeroed)
      clear(Temps[I]);
    if (S.Capturing)
      continue;
    Pool.resize(std::max(Pool.size(), I + 1));
    Pool[I] = Temps[I];
  }
  return Temps;
}

// On a stream of its own: in a capture it would be part of the graph.
void Function::clear(const MemoryRef &Memory) const {
  if (!Memory->Size)
    return;
  std::unique_ptr<Stream> S = Dev->createStream();
  S->fill(Memory, 0, Memory->Size / 4 * 4, 0);
  S->synchronize();
}

namespace {
void checkBuffer(const TensorArg &T, const TensorDecl &Decl,
                 const std::vector<int64_t> &Shape, const char *What,
                 size_t I) {
  size_t Bytes = tensorBytes(Decl.DType, Shape);
  if (!T.Buffer)
    fail(GRETA_ERROR_INVALID_ARGUMENT, What, " ", I, " '", Decl.Name,
         "' has no buffer");
  if (T.Offset % Decl.Align != 0)
    fail(GRETA_ERROR_INVALID_ARGUMENT, What, " ", I, " '", Decl.Name,
         "': offset ", T.Offset, " is not a multiple of ", Decl.Align);
  if (T.Offset > T.Buffer->Size || Bytes > T.Buffer->Size - T.Offset)
    fail(GRETA_ERROR_INVALID_ARGUMENT, What, " ", I, " '", Decl.Name,
         "' needs ", Bytes, " bytes from offset ", T.Offset,
         ", its buffer has ", T.Buffer->Size);
}

// Appends at the value's natural alignment.
template <typename T> void append(std::vector<uint8_t> &Block, T Value) {
  Block.resize((Block.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
  Block.resize(Block.size() + sizeof(T));
  memcpy(Block.data() + Block.size() - sizeof(T), &Value, sizeof(T));
}
} // namespace

// A result that is tied to an argument is that memory, or memory of its own,
// which gets a copy of the argument.
void Function::copyTied(Call &C, size_t Index,
                        const std::vector<TensorArg> &Args,
                        const TensorArg &Result, size_t Bytes) const {
  const TensorDecl &Tied = Decl->Results[Index];
  if (Decl->InPlace && Args[*Tied.Tied].Buffer == Result.Buffer &&
      Args[*Tied.Tied].Offset == Result.Offset)
    return;
  for (size_t I = 0; Bytes && I < Args.size(); ++I) {
    const TensorArg &A = Args[I];
    if (A.Buffer != Result.Buffer)
      continue;
    size_t Length = tensorBytes(Decl->Args[I].DType, A.Shape);
    bool Overlaps =
        A.Offset < Result.Offset + Bytes && Result.Offset < A.Offset + Length;
    if (Overlaps && (I != Tied.Tied || A.Offset != Result.Offset))
      fail(GRETA_ERROR_INVALID_ARGUMENT, "result ", Index, " '", Tied.Name,
           "' overlaps argument ", I, " '", Decl->Args[I].Name,
           "'; it is tied to argument ", *Tied.Tied, " '",
           Decl->Args[*Tied.Tied].Name,
           "': pass the memory of that one, or memory of its own");
  }
  const TensorArg &From = Args[*Tied.Tied];
  if (Bytes && (From.Buffer != Result.Buffer || From.Offset != Result.Offset))
    C.Copies.push_back({&Result, &From, Bytes});
}

Call Function::prepare(Stream &S, const std::vector<TensorArg> &Args,
                       const std::vector<TensorArg> &Results) const {
  std::vector<int64_t> Symbols = bindSymbols(Args);
  if (Results.size() != Decl->Results.size())
    fail(GRETA_ERROR_INVALID_ARGUMENT, "function '", Decl->Name, "' has ",
         Decl->Results.size(), " results, ", Results.size(), " given");
  Call C;
  KeepList Keep;
  for (size_t I = 0; I < Args.size(); ++I) {
    if (Decl->Args[I].IsScalar)
      continue;
    checkBuffer(Args[I], Decl->Args[I], Args[I].Shape, "argument", I);
    Keep.push_back(Args[I].Buffer);
  }
  for (size_t I = 0; I < Results.size(); ++I) {
    std::vector<int64_t> Shape = resultShape(I, Symbols);
    if (Results[I].HasShape && Results[I].Shape != Shape)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "result ", I, " '",
           Decl->Results[I].Name, "' is given as ", shapeText(Results[I].Shape),
           ", the function computes ", shapeText(Shape));
    checkBuffer(Results[I], Decl->Results[I], Shape, "result", I);
    Keep.push_back(Results[I].Buffer);
    if (Decl->Results[I].Tied)
      copyTied(C, I, Args, Results[I],
               tensorBytes(Decl->Results[I].DType, Shape));
  }
  std::vector<MemoryRef> Temps = temporaries(S, Symbols);
  Keep.insert(Keep.end(), Temps.begin(), Temps.end());

  for (size_t I = 0; I < Kernels.size(); ++I) {
    const KernelDecl &K = Chosen->Kernels[I];
    Launch L{Kernels[I], {}, {}, Keep, {}};
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
    for (const KernelArg &A : K.Args) {
      if (A.Which == KernelArg::I32) {
        int64_t Value = A.Value.evaluate(Symbols);
        if (Value > INT32_MAX)
          fail(GRETA_ERROR_INVALID_ARGUMENT, "kernel '", K.Entry,
               "': the value ", Value, " of an i32 argument is out of range");
        append(L.Block, static_cast<int32_t>(Value));
        continue;
      }
      if (A.Which == KernelArg::I64) {
        append(L.Block, A.Value.evaluate(Symbols));
        continue;
      }
      if (A.Which == KernelArg::Scalar) {
        uint64_t Value = Args[A.Index].Value;
        if (A.ScalarBytes == 4)
          append(L.Block, static_cast<uint32_t>(Value));
        else
          append(L.Block, Value);
        continue;
      }
      const TensorArg *T = A.Which == KernelArg::Temp  ? nullptr
                           : A.Which == KernelArg::Arg ? &Args[A.Index]
                                                       : &Results[A.Index];
      const Memory &M = T ? *T->Buffer : *Temps[A.Index];
      append(L.Block, M.Address + (T ? T->Offset : 0));
      bool IsRead =
          A.Which == KernelArg::Arg && Decl->Args[A.Index].Access == "read";
      (IsRead ? L.Touches.Reads : L.Touches.Writes).push_back(&M);
    }
    if (Chosen->Backend == "host")
      for (int64_t Value : Symbols)
        append(L.Block, Value);
    if (Empty)
      continue;
    C.Launches.push_back(std::move(L));
    if (!K.Log)
      continue;
    if (S.Capturing)
      fail(GRETA_ERROR_UNSUPPORTED, "function '", Decl->Name,
           "' prints or asserts, which no graph records; launch it");
    C.Logs.push_back({Temps[K.Log->Temp], &K});
  }
  return C;
}

} // namespace greta::rt
