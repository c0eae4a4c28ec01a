// ApiFunction.cpp: the C API over packages and functions.
#include "Api.h"
#include "DType.h"
#include "Files.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

using namespace greta::rt;

namespace {

// Reads little-endian, as the device does.
uint64_t valueOf(const greta_tensor &T, const TensorDecl &Decl, size_t Index) {
  if (T.buffer || T.offset || T.shape || T.rank)
    fail(GRETA_ERROR_INVALID_ARGUMENT, "argument ", Index, " '", Decl.Name,
         "' is a scalar; it has a value and nothing else");
  uint64_t Value = 0;
  memcpy(&Value, &need(static_cast<const char *>(T.value), "a scalar's value"),
         std::max(Decl.Bits / 8, 1u));
  return Value;
}

void takeTensors(const greta_tensor *T, size_t Count,
                 const std::vector<TensorDecl> &Decls, const Device &D,
                 bool NeedBuffers, const char *What,
                 std::vector<TensorArg> &Out) {
  if (Count)
    need(T, What);
  Out.clear();
  for (size_t I = 0; I < Count; ++I) {
    TensorArg A;
    if (I < Decls.size() && Decls[I].IsScalar) {
      A.Value = valueOf(T[I], Decls[I], I);
      Out.push_back(A);
      continue;
    }
    if (T[I].value)
      fail(GRETA_ERROR_INVALID_ARGUMENT, What, " ", I,
           " is a tensor; it has no value");
    if (NeedBuffers) {
      greta_buffer &B = need(T[I].buffer, "a tensor's buffer");
      if (B.Device.get() != &D)
        fail(GRETA_ERROR_INVALID_ARGUMENT, What, " ", I, " lies on ",
             B.Device->Spec, ", the function runs on ", D.Spec);
      A.Buffer = &B.Impl;
    }
    A.Offset = T[I].offset;
    A.HasShape = T[I].shape || T[I].rank == 0;
    if (T[I].shape)
      A.Shape = {T[I].shape, T[I].rank};
    Out.push_back(A);
  }
}

// Returns whether the arguments have the function's static dims.
bool mayTake(const FunctionDecl &F, const greta_tensor *Args, size_t Count) {
  auto Fits = [](const TensorDecl &Decl, const greta_tensor &T) {
    if (Decl.IsScalar || T.rank != Decl.StaticShape.size() || !T.shape)
      return Decl.IsScalar || (!T.rank && Decl.StaticShape.empty());
    return std::equal(T.shape, T.shape + T.rank, Decl.StaticShape.begin(),
                      [](int64_t Is, int64_t Wanted) {
                        return Wanted == -1 || Is == Wanted;
                      });
  };
  return Count == F.Args.size() &&
         std::equal(F.Args.begin(), F.Args.end(), Args, Fits);
}

void describe(const TensorDecl &T, greta_tensor_info *Info) {
  give(Info,
       {0, T.Name.c_str(), T.DType.c_str(), T.Access.c_str(),
        static_cast<uint32_t>(T.StaticShape.size()), T.StaticShape.data(),
        T.IsScalar, T.Tied ? static_cast<int32_t>(*T.Tied) : -1},
       "info");
}

const TensorDecl &indexed(const std::vector<TensorDecl> &List, size_t Index,
                          const char *What) {
  if (Index >= List.size())
    fail(GRETA_ERROR_INVALID_ARGUMENT, "there are ", List.size(), " ", What,
         ", number ", Index, " asked for");
  return List[Index];
}

} // namespace

namespace {

comm::Collective collectiveOf(const Call::Sum &Sum) {
  comm::Collective Made;
  Made.What = comm::Kind::AllReduce;
  Made.Type = elementOf(Sum.DType->c_str());
  Made.Count = Sum.Count;
  Made.From = *Sum.From.Of;
  Made.FromOffset = Sum.From.Begin;
  Made.To = *Sum.To.Of;
  Made.ToOffset = Sum.To.Begin;
  return Made;
}

// A single rank's sum is the tensor itself.
void queueSum(greta_stream &S, const std::shared_ptr<comm::Comm> &By,
              const Call::Sum &Sum) {
  if (By->Size > 1)
    return queueCollective(By, S, collectiveOf(Sum));
  if (*Sum.From.Of != *Sum.To.Of || Sum.From.Begin != Sum.To.Begin)
    S.Impl->copy(*Sum.To.Of, Sum.To.Begin, *Sum.From.Of, Sum.From.Begin,
                 Sum.To.End - Sum.To.Begin);
}

void queuePrepared(greta_stream &S, const std::shared_ptr<comm::Comm> &By) {
  Call &C = S.Prepared;
  auto Sum = C.Sums.begin();
  C.Ends.assign(1, S.collectives());
  auto QueueSums = [&](size_t After) {
    for (; Sum != C.Sums.end() && Sum->After == After; ++Sum) {
      queueSum(S, By, *Sum);
      C.Ends.push_back(S.collectives());
    }
  };
  S.Impl->Logs.add(*S.Impl, C.Logs);
  for (const Call::Copy &Tied : C.Copies)
    S.Impl->copy(*Tied.To->Buffer, Tied.To->Offset, *Tied.From->Buffer,
                 Tied.From->Offset, Tied.To->Bytes);
  for (const Launch &L : C.Launches) {
    size_t Number = static_cast<size_t>(&L - C.Launches.data());
    QueueSums(Number);
    S.settle(C.Ends[C.Needs[Number]]);
    const std::string &Name = (*L.Code)->Name;
    if (!S.Profiling) {
      S.Traced.launch(*S.Device, *S.Impl, Name, [&] { S.Impl->launch(L); });
      continue;
    }
    greta_stream::Timed T{*L.Code, S.Device->createEvent(),
                          S.Device->createEvent()};
    S.Impl->record(*T.Start);
    S.Impl->launch(L);
    S.Impl->record(*T.End);
    S.Times.push_back(std::move(T));
  }
  QueueSums(C.Launches.size());
  S.Impl->kick();
  auto Waits = [](const LogRef &Log) { return waitsForLog(Log->decl()); };
  if (!S.Impl->Capturing && std::any_of(C.Logs.begin(), C.Logs.end(), Waits))
    S.Impl->Logs.wait(*S.Impl);
}
} // namespace

void greta::rt::queueCall(greta_stream &S, const Function &F,
                          const std::shared_ptr<comm::Comm> &By) {
  F.prepare(*S.Impl, S.Prepared, F.hasSums() && By->wantsSharedMemory());
  try {
    queuePrepared(S, By);
  } catch (...) {
    MemoryRef &Zeroed = S.Impl->Zeroed;
    if (Zeroed && !S.Impl->Capturing && !S.Impl->restoreZeros(Zeroed))
      Zeroed = nullptr;
    throw;
  }
}

void greta::rt::queueStep(greta_stream &S, const Step &What) {
  StepReader R(What);
  switch (R.word()) {
  case Step::Launch: {
    std::vector<MemoryRef> Memories;
    Memories.reserve(What.Objects.size()); // keeps pointers of arguments valid
    auto F = R.object<const Function>();
    R.tensors(S.Prepared.Args, Memories);
    R.tensors(S.Prepared.Results, Memories);
    return queueCall(S, *F, nullptr); // none of these sums
  }
  case Step::Copy: {
    auto To = R.object<Memory>();
    size_t ToOffset = R.word();
    auto From = R.object<Memory>();
    size_t FromOffset = R.word();
    return S.Impl->copy(To, ToOffset, From, FromOffset, R.word());
  }
  case Step::Fill: {
    auto To = R.object<Memory>();
    size_t Offset = R.word(), Bytes = R.word();
    return S.Impl->fill(To, Offset, Bytes, static_cast<uint32_t>(R.word()));
  }
  }
}

extern "C" {

greta_status greta_package_open(const char *Path, greta_package **Out) {
  return guarded([&] {
    need(Out, "package") = nullptr;
    *Out = new greta_package{openPackage(&need(Path, "path"))};
  });
}

greta_status greta_package_from_memory(const void *Data, size_t Bytes,
                                       greta_package **Out) {
  return guarded([&] {
    need(Out, "package") = nullptr;
    const char *D = &need(static_cast<const char *>(Data), "data");
    *Out = new greta_package{readPackage(D, Bytes, "package in memory")};
  });
}

greta_status greta_package_open_shipped(greta_package **Out) {
  return guarded([&] {
    need(Out, "package") = nullptr;
    *Out = new greta_package{openPackage(ownFolder() + "/greta_compute.greta")};
  });
}

void greta_package_destroy(greta_package *P) { delete P; }

size_t greta_package_function_count(const greta_package *P) {
  return P ? P->Impl->Functions.size() : 0;
}

const char *greta_package_function_name(const greta_package *P, size_t Index) {
  return P && Index < P->Impl->Functions.size()
             ? P->Impl->Functions[Index].Name.c_str()
             : nullptr;
}

greta_status greta_package_find(const greta_package *P, const char *Name,
                                const greta_tensor *Args, size_t ArgCount,
                                const char **Out) {
  return guarded([&] {
    need(Out, "function") = nullptr;
    if (ArgCount)
      need(Args, "arguments");
    const Package &Impl = *need(P, "package").Impl;
    std::string Prefix = &need(Name, "name");
    const FunctionDecl *Found = Impl.find(Prefix);
    for (const FunctionDecl &F : Impl.Functions)
      if (!Found && F.Name.compare(0, Prefix.size() + 1, Prefix + "_") == 0 &&
          mayTake(F, Args, ArgCount))
        Found = &F;
    if (!Found)
      fail(GRETA_ERROR_NOT_FOUND, "the package has no function '", Prefix,
           "', and none whose name begins with it for these shapes");
    *Out = Found->Name.c_str();
  });
}

const char *greta_package_manifest(const greta_package *P) {
  return P ? P->Impl->ManifestText.c_str() : nullptr;
}

greta_status greta_function_load(greta_device *D, const greta_package *P,
                                 const char *Name, const char *Variant,
                                 uint32_t Flags, greta_function **Out) {
  Trace::Call Traced("greta_function_load");
  return guarded([&] {
    need(Out, "function") = nullptr;
    if (Flags & ~uint32_t(GRETA_LOAD_CAPTURE_STATISTICS |
                          GRETA_LOAD_NATIVE_CODE | GRETA_LOAD_LAZILY))
      fail(GRETA_ERROR_INVALID_ARGUMENT, "unknown load flags ", Flags);
    LoadOptions Options;
    Options.CaptureStatistics = Flags & GRETA_LOAD_CAPTURE_STATISTICS;
    Options.Lazily = Flags & GRETA_LOAD_LAZILY;
    Options.NativeCode =
        need(D, "device").AllowsNative || (Flags & GRETA_LOAD_NATIVE_CODE);
    *Out = new greta_function{
        D->Impl,
        std::make_shared<Function>(D->Impl, need(P, "package").Impl,
                                   &need(Name, "name"), Variant ? Variant : "",
                                   Options),
        nullptr};
  });
}

greta_status greta_function_set_comm(greta_function *F, greta_comm *C) {
  return guarded([&] {
    need(F, "function");
    if (C)
      checkSameDevice(C->Impl->On, F->Device);
    F->Comm = C ? C->Impl : nullptr;
  });
}

int greta_function_sums(const greta_function *F) {
  return F && F->Impl->hasSums();
}

void greta_function_destroy(greta_function *F) {
  guarded([&] { delete F; });
}

const char *greta_function_variant(const greta_function *F) {
  return F ? F->Impl->variant().Id.c_str() : nullptr;
}

size_t greta_function_argument_count(const greta_function *F) {
  return F ? F->Impl->decl().Args.size() : 0;
}

size_t greta_function_result_count(const greta_function *F) {
  return F ? F->Impl->decl().Results.size() : 0;
}

greta_status greta_function_argument(const greta_function *F, size_t Index,
                                     greta_tensor_info *Info) {
  return guarded([&] {
    describe(indexed(need(F, "function").Impl->decl().Args, Index, "arguments"),
             Info);
  });
}

greta_status greta_function_result(const greta_function *F, size_t Index,
                                   greta_tensor_info *Info) {
  return guarded([&] {
    describe(
        indexed(need(F, "function").Impl->decl().Results, Index, "results"),
        Info);
  });
}

greta_status greta_function_result_shape(const greta_function *F,
                                         const greta_tensor *Args, size_t Count,
                                         size_t Index, int64_t *Shape,
                                         size_t *Bytes) {
  return guarded([&] {
    const Function &Impl = *need(F, "function").Impl;
    std::vector<TensorArg> Taken;
    std::vector<int64_t> Symbols;
    takeTensors(Args, Count, Impl.decl().Args, *F->Device, false, "argument",
                Taken);
    Impl.bindSymbols(Taken, Symbols);
    std::vector<int64_t> Result = Impl.resultShape(Index, Symbols);
    if (!Result.empty())
      std::copy(Result.begin(), Result.end(), &need(Shape, "shape"));
    if (Bytes)
      *Bytes = tensorBytes(Impl.decl().Results[Index].DType, Result);
  });
}

greta_status greta_function_launch(const greta_function *F, greta_stream *S,
                                   const greta_tensor *Args, size_t ArgCount,
                                   const greta_tensor *Results,
                                   size_t ResultCount) {
  Trace::Call Traced("greta_function_launch");
  return guarded([&] {
    const Function &Impl = *need(F, "function").Impl;
    if (need(S, "stream").Device != F->Device)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "the stream is of ", S->Device->Spec,
           ", the function was loaded for ", F->Device->Spec);
    if (Impl.hasSums() && !F->Comm)
      fail(GRETA_ERROR_INVALID_ARGUMENT, "function '", Impl.decl().Name,
           "' sums over ranks; give it a communicator with "
           "greta_function_set_comm");
    S->settle();
    Call &C = S->Prepared;
    takeTensors(Args, ArgCount, Impl.decl().Args, *F->Device, true, "argument",
                C.Args);
    takeTensors(Results, ResultCount, Impl.decl().Results, *F->Device, true,
                "result", C.Results);
    if (S->Profiling && S->Impl->Capturing)
      fail(GRETA_ERROR_INVALID_ARGUMENT,
           "a graph cannot be profiled while it is recorded");
    if (S->Repeats && !S->Impl->Capturing) {
      if (S->Profiling || Impl.waits() || Impl.hasSums()) {
        S->Repeats->end();
      } else {
        S->Next.clear();
        S->Next.Words.push_back(Step::Launch);
        S->Next.object(F->Impl);
        S->Next.tensors(C.Args);
        S->Next.tensors(C.Results);
        if (S->Repeats->takes(S->Next))
          return;
      }
      // Calls that were held back have meanwhile been queued, or recorded, with
      // arguments of their own.
      takeTensors(Args, ArgCount, Impl.decl().Args, *F->Device, true,
                  "argument", C.Args);
      takeTensors(Results, ResultCount, Impl.decl().Results, *F->Device, true,
                  "result", C.Results);
    }
    queueCall(*S, Impl, F->Comm);
  });
}

greta_status greta_function_statistics(greta_function *F, char **Json) {
  return guarded([&] {
    nlohmann::json J = nlohmann::json::array();
    for (const KernelRef &K : need(F, "function").Impl->kernels()) {
      nlohmann::json Entry = {{"kernel", K->Name}};
      K->statistics(Entry["executables"]);
      J.push_back(std::move(Entry));
    }
    need(Json, "json") = copyString(J.dump(2));
  });
}

greta_status greta_function_variants(greta_device *D, const greta_package *P,
                                     const char *Name, char **Json) {
  return guarded([&] {
    const auto &Dev = need(D, "device").Impl;
    const Package &All = *need(P, "package").Impl;
    const FunctionDecl *F = All.find(&need(Name, "name"));
    if (!F)
      fail(GRETA_ERROR_NOT_FOUND, "the package has no function '", Name, "'");
    nlohmann::json J = nlohmann::json::array();
    for (const Variant &V : F->Variants) {
      std::string Why = whyNot(Dev, All, *F, V, D->AllowsNative);
      J.push_back({{"id", V.Id}, {"runnable", Why.empty()}, {"reason", Why}});
    }
    need(Json, "json") = copyString(J.dump(2));
  });
}

} // extern "C"
