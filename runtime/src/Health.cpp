// Health.cpp: see Health.h. All data are small integers, which every type holds
// and whose sums and products are exact, so that a right result has no error.
#include "Health.h"
#include "Error.h"
#include "Files.h"
#include "Function.h"
#include "Process.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>

namespace greta::rt {
namespace {
using nlohmann::json;

constexpr int64_t rows = 33; // not a multiple of any tile

// Bits of exponent and mantissa are 0 for integers.
struct Format {
  const char *Name;
  int Exponent, Mantissa;
} const formats[] = {{"f32", 8, 23},     {"f16", 5, 10},   {"bf16", 8, 7},
                     {"f8e4m3fn", 4, 3}, {"f8e5m2", 5, 2}, {"i8", 0, 8},
                     {"i32", 0, 32}};

const Format &formatOf(const std::string &DType) {
  for (const Format &F : formats)
    if (DType == F.Name)
      return F;
  fail(GRETA_ERROR_BAD_PACKAGE, "no check computes with ", DType);
}

uint64_t encode(const Format &F, int Value) {
  if (!F.Exponent || !Value)
    return static_cast<uint64_t>(static_cast<int64_t>(Value));
  unsigned Size = static_cast<unsigned>(std::abs(Value));
  int Log = 31 - __builtin_clz(Size), Bias = (1 << (F.Exponent - 1)) - 1;
  uint64_t Sign = Value < 0;
  return Sign << (F.Exponent + F.Mantissa) |
         static_cast<uint64_t>(Log + Bias) << F.Mantissa |
         (uint64_t(Size) << F.Mantissa >> Log &
          ((uint64_t(1) << F.Mantissa) - 1));
}

// Decodes NaN and infinity to large numbers, which are as wrong.
double decode(const Format &F, uint64_t Bits) {
  if (!F.Exponent)
    return F.Mantissa == 8 ? static_cast<double>(static_cast<int8_t>(Bits))
                           : static_cast<double>(static_cast<int32_t>(Bits));
  uint64_t Fraction = Bits & ((uint64_t(1) << F.Mantissa) - 1);
  int Power =
      static_cast<int>(Bits >> F.Mantissa & ((uint64_t(1) << F.Exponent) - 1));
  double Size = std::ldexp(
      static_cast<double>(Fraction) + (Power ? std::ldexp(1, F.Mantissa) : 0),
      std::max(Power, 1) - ((1 << (F.Exponent - 1)) - 1) - F.Mantissa);
  return Bits >> (F.Exponent + F.Mantissa) & 1 ? -Size : Size;
}

// Holds a tensor as the function declares it, with `rows` for its symbol.
struct HostTensor {
  HostTensor(const TensorDecl &Decl, int Salt) : DType(formatOf(Decl.DType)) {
    for (int64_t Dim : Decl.StaticShape)
      Shape.push_back(Dim < 0 ? rows : Dim);
    int64_t Count = 1;
    for (int64_t Dim : Shape)
      Count *= Dim;
    for (int64_t I = 0; I < Count; ++I) // -2 to 2, without a short period
      Values.push_back(static_cast<int>((I * I / 7 + I * Salt + I / 64) % 5) -
                       2);
  }
  size_t bytes() const { return (DType.Exponent + DType.Mantissa + 7) / 8; }
  std::vector<uint8_t> data() const {
    std::vector<uint8_t> Bytes(Values.size() * bytes());
    for (size_t I = 0; I < Values.size(); ++I) {
      uint64_t Bits = encode(DType, Values[I]);
      memcpy(&Bytes[I * bytes()], &Bits, bytes());
    }
    return Bytes;
  }
  const Format &DType;
  std::vector<int64_t> Shape;
  std::vector<int> Values;
};

// Returns the result that the function of this name has to return.
std::vector<int> expected(const std::string &Name, HostTensor &X,
                          const HostTensor &Y) {
  std::vector<int> Z;
  auto Is = [&](const char *Kind) {
    return Name.compare(0, strlen(Kind), Kind) == 0;
  };
  if (Is("muladd_")) {
    for (size_t I = 0; I < X.Values.size(); ++I)
      Z.push_back(X.Values[I] * Y.Values[I] + X.Values[I]);
  } else if (Is("norm_")) { // rows have elements 1 and -1
    for (size_t I = 0; I < X.Values.size(); ++I) {
      X.Values[I] = X.Values[I] < 0 ? -1 : 1;
      Z.push_back(X.Values[I] * Y.Values[I % Y.Values.size()]);
    }
  } else if (Is("matmul_")) {
    size_t K = static_cast<size_t>(X.Shape[1]);
    for (size_t M = 0; M < X.Values.size(); M += K)
      for (size_t N = 0; N < Y.Values.size(); N += K) {
        int Sum = 0;
        for (size_t I = 0; I < K; ++I)
          Sum += X.Values[M + I] * Y.Values[N + I];
        Z.push_back(Sum);
      }
  } else {
    fail(GRETA_ERROR_BAD_PACKAGE, "no check computes '", Name, "'");
  }
  return Z;
}

// Runs one variant; returns what is wrong with its result, "" if nothing is.
std::string run(const std::shared_ptr<Device> &D,
                const std::shared_ptr<const Package> &P, const FunctionDecl &F,
                const std::string &Variant) {
  HostTensor X(F.Args[0], 3), Y(F.Args[1], 1), Z(F.Results[0], 0);
  std::vector<int> Want = expected(F.Name, X, Y);
  std::vector<uint8_t> Got(Want.size() * Z.bytes(), 0xa5);
  std::unique_ptr<Stream> S = D->createStream();
  MemoryRef Memories[3];
  for (size_t I = 0; I < 3; ++I) {
    std::vector<uint8_t> Bytes = I == 0 ? X.data() : I == 1 ? Y.data() : Got;
    Memories[I] = D->allocate(Bytes.size());
    S->write(Memories[I], 0, Bytes.data(), Bytes.size());
  }
  Call C;
  auto Argument = [](const MemoryRef &Of, const HostTensor &T) {
    TensorArg A;
    A.Buffer = &Of;
    A.Shape = {T.Shape.data(), T.Shape.size()};
    return A;
  };
  C.Args = {Argument(Memories[0], X), Argument(Memories[1], Y)};
  C.Results = {Argument(Memories[2], Z)};
  Function Loaded(D, P, F.Name, Variant, {});
  Loaded.prepare(*S, C);
  for (const Launch &L : C.Launches)
    S->launch(L);
  S->read(Memories[2], 0, Got.data(), Got.size());
  // A norm takes a square root, whose last bit is not specified.
  double Tolerance = F.Name[0] == 'n' ? 1.0 / 64 : 0;
  for (size_t I = 0; I < Want.size(); ++I) {
    uint64_t Bits = 0;
    memcpy(&Bits, &Got[I * Z.bytes()], Z.bytes());
    double Value = decode(Z.DType, Bits);
    if (std::abs(Value - Want[I]) > Tolerance * std::abs(Want[I]))
      return concat("element ", I, " is ", Value, ", not ", Want[I]);
  }
  return "";
}

bool needsLittle(const Variant &V) {
  return !V.Requires.SubgroupSize && V.Requires.Coopmat.empty();
}

// Blames the feature that sets a wrong variant apart from the right ones. If a
// variant without matrices and subgroups is wrong, an element type is, or
// everything.
void blame(const FunctionDecl &F, const Variant &V, const std::string &Why,
           bool PlainIsRight, Denials &Out) {
  const std::string &Type = F.Args[0].DType;
  for (const CoopShape &S : V.Requires.Coopmat)
    Out.emplace(keyOf(S), Why);
  if (needsLittle(V))
    Out.emplace(Type == "f32" || Type == "i32" ? "device" : Type, Why);
  else if (V.Requires.Coopmat.empty() && PlainIsRight)
    Out.emplace("subgroups", Why);
}
} // namespace

Profile profile() {
  const char *Value = environment("GRETA_PROFILE");
  std::string Name = Value ? Value : "";
  if (Name.empty() || Name == "default")
    return Profile::Default;
  if (Name == "ultrasafe")
    return Profile::UltraSafe;
  if (Name == "fast")
    return Profile::Fast;
  fail(GRETA_ERROR_INVALID_ARGUMENT, "GRETA_PROFILE=", printable(Name),
       ": one of ultrasafe, default, fast");
}

std::string keyOf(const CoopShape &S) {
  return concat(S.M, "x", S.N, "x", S.K, " ", S.A, " ", S.B, " ", S.C, " ",
                S.Result);
}

HealthReport checkHealth(const std::shared_ptr<Device> &D,
                         const std::shared_ptr<const Package> &P) {
  // Functions are loaded here although they may be denied.
  std::lock_guard<std::recursive_mutex> Guard(D->HealthLock);
  struct Believe {
    explicit Believe(Device &D) : D(D) { D.Believed = true; }
    ~Believe() { D.Believed = false; }
    Device &D;
  } Meanwhile(*D);
  struct Result {
    const FunctionDecl *F;
    const Variant *V;
    std::string Why;
  };
  std::vector<Result> All;
  for (const FunctionDecl &F : P->Functions)
    for (const Variant &V : F.Variants) {
      bool Tells =
          D->madeFor(V) || needsLittle(V) || !V.Requires.Coopmat.empty();
      if (!Tells || !D->whyNot(V).empty())
        continue;
      std::string Why;
      try {
        Why = run(D, P, F, V.Id);
      } catch (const Error &E) {
        // These failures say nothing about the variant's results.
        if (E.code() == GRETA_ERROR_OUT_OF_MEMORY ||
            E.code() == GRETA_ERROR_DEVICE_LOST)
          throw;
        Why = E.what();
      }
      if (!Why.empty())
        Why = concat(F.Name, " (", V.Id, "): ", Why);
      All.push_back({&F, &V, Why});
    }
  HealthReport Report;
  Report.Ran = static_cast<unsigned>(All.size());
  for (const Result &R : All) {
    if (R.Why.empty())
      continue;
    bool PlainIsRight =
        std::any_of(All.begin(), All.end(), [&](const Result &Other) {
          return Other.F == R.F && needsLittle(*Other.V) && Other.Why.empty();
        });
    blame(*R.F, *R.V, R.Why, PlainIsRight, Report.Denied);
  }
  return Report;
}

static std::vector<uint8_t> packageBeside() {
  std::vector<uint8_t> Bytes;
  if (!readFile(ownFolder() + "/greta_health.greta", Bytes))
    Bytes.clear();
  return Bytes;
}

HealthReport checkHealth(const std::shared_ptr<Device> &D) {
  std::vector<uint8_t> Bytes = packageBeside();
  if (Bytes.empty())
    return {};
  return checkHealth(
      D, readPackage(Bytes.data(), Bytes.size(), "greta_health.greta"));
}

// Takes the denials from the cache, else from a check, which is reported once.
static Denials findDenials(const std::shared_ptr<Device> &D, bool Again) {
  std::string Key = D->cacheKey();
  std::vector<uint8_t> Package = packageBeside(), Cached;
  if (Key.empty() || Package.empty())
    return {};
  std::string Name = "health-" + Key + "-" +
                     sha256(Package.data(), Package.size()).substr(0, 16);
  if (!Again && readCache(Name, Cached)) {
    json J = json::parse(Cached, nullptr, /*allow_exceptions=*/false);
    if (J.is_object())
      return J.get<Denials>();
  }
  // The check takes seconds.
  report(GRETA_LOG_INFO,
         concat("checking that ", D->Name,
                " computes right, once for each version of its driver"));
  HealthReport Report;
  try {
    Report = checkHealth(D);
  } catch (const Error &E) { // says nothing about its results
    report(GRETA_LOG_WARNING, concat(D->Name, " was not checked: ", E.what()));
    return {};
  }
  for (const auto &[Denied, Why] : Report.Denied)
    report(GRETA_LOG_WARNING,
           concat(D->Name, " computes wrong and is used without ",
                  Denied == "device" ? "anything" : Denied, ": ", Why,
                  ". GRETA_HEALTH=off uses it nevertheless"));
  std::string Text = json(Report.Denied).dump();
  writeCache(Name, {Text.begin(), Text.end()});
  return Report.Denied;
}

static const Denials &denialsOf(const std::shared_ptr<Device> &D) {
  std::lock_guard<std::recursive_mutex> Guard(D->HealthLock);
  if (D->Denied)
    return *D->Denied;
  const char *Value = environment("GRETA_HEALTH");
  std::string Wish = Value ? Value : "";
  if (Wish == "off" || profile() == Profile::Fast)
    return D->Denied.emplace();
  Denials Found = findDenials(D, Wish == "again");
  if (Wish != "again")
    for (size_t Begin = 0; Begin < Wish.size();) {
      size_t End = std::min(Wish.find(',', Begin), Wish.size());
      Found.emplace(Wish.substr(Begin, End - Begin), "GRETA_HEALTH names it");
      Begin = End + 1;
    }
  return D->Denied.emplace(std::move(Found));
}

std::string whyUnhealthy(const std::shared_ptr<Device> &D,
                         const FunctionDecl &F, const Variant &V) {
  const Requirements &R = V.Requires;
  {
    std::lock_guard<std::recursive_mutex> Guard(D->HealthLock);
    if (D->Believed) // this thread is checking it
      return "";
  }
  if (profile() == Profile::UltraSafe && (R.SubgroupSize || !R.Coopmat.empty()))
    return "GRETA_PROFILE=ultrasafe takes neither subgroup operations nor "
           "cooperative matrices";
  const Denials &Denied = denialsOf(D);
  auto Why = [&](const std::string &Key) -> std::string {
    auto Found = Denied.find(Key);
    return Found == Denied.end() ? ""
                                 : concat("the device is used without ",
                                          Key == "device" ? "anything" : Key,
                                          ": ", Found->second);
  };
  std::string Reason = Why("device");
  if (Reason.empty() && R.SubgroupSize)
    Reason = Why("subgroups");
  for (const CoopShape &S : R.Coopmat)
    if (Reason.empty())
      Reason = Why(keyOf(S));
  for (const auto *Tensors : {&F.Args, &F.Results, &V.Temps})
    for (const TensorDecl &T : *Tensors)
      if (Reason.empty())
        Reason = Why(T.DType);
  return Reason;
}

// Launches the kernel for a trial, in which its workgroups count themselves and
// do nothing else (lib/Lane/ExpandAtomics.cpp). Returns whether all ran at a
// time.
static bool tryTogether(Device &D, const Package &P, const Variant &V,
                        const KernelDecl &K) {
  // They touch their counter alone, so it stands for every tensor.
  MemoryRef Memory = D.allocate(64);
  std::unique_ptr<Stream> S = D.createStream();
  S->fill(Memory, 0, Memory->Size, 0);
  std::vector<uint32_t> Offsets = argumentOffsets(K.Args);
  std::vector<uint8_t> Block(Offsets.back());
  for (size_t I = 0; I < K.Args.size(); ++I)
    if (K.Args[I].Which <= KernelArg::Temp)
      memcpy(&Block[Offsets[I]], &Memory->Address, sizeof(Memory->Address));
  uint32_t One = 1, Arrived = 0,
           All = static_cast<uint32_t>(K.Grid[0].constant());
  memcpy(&Block[Offsets[*K.Trial]], &One, sizeof(One));
  KernelRef Code = D.loadKernel(V, K, P.Objects.at(K.File), false);
  Use Uses[] = {{&Memory, 0, Memory->Size, true}, {&D.meeting(), 0, 4, true}};
  S->launch({&Code, {All, 1, 1}, {Block.data(), Block.size()}, {Uses, 2}, {}});
  S->read(Memory, 0, &Arrived, sizeof(Arrived));
  return Arrived == All;
}

// Tries the variant's kernels that nobody tried before, on this driver.
static std::string tryTogether(const std::shared_ptr<Device> &D,
                               const Package &P, const Variant &V, bool Again) {
  // These make other pipelines, or other places, of the same kernels.
  std::string Hashes =
      concat(V.Requires.SubgroupSize, " ", D->computeUnits(), " ");
  int64_t Most = std::min(V.Requires.Resident, D->maxGrid()[0]);
  for (const KernelDecl &K : V.Kernels) {
    if (!K.IsResident)
      continue;
    if (!K.Trial || !K.Grid[0].isConstant() || K.Grid[0].constant() > Most)
      return concat("kernel '", K.Entry, "' has no trial");
    const std::vector<uint8_t> &Object = P.Objects.at(K.File);
    Hashes += concat(sha256(Object.data(), Object.size()), " ", K.Entry, " ",
                     K.Grid[0].constant(), " ");
  }
  std::string Name = concat("resident-", D->cacheKey(), "-",
                            sha256(Hashes.data(), Hashes.size()).substr(0, 16));
  // A process tries once, also where nothing can be cached.
  if (auto Found = D->Tried.find(Name); Found != D->Tried.end())
    return Found->second;
  std::vector<uint8_t> Cached;
  if (!Again && readCache(Name, Cached))
    return D->Tried[Name] = {Cached.begin(), Cached.end()};
  std::string Why;
  for (const KernelDecl &K : V.Kernels)
    if (Why.empty() && K.IsResident && !tryTogether(*D, P, V, K))
      Why = concat("not all of the ", K.Grid[0].constant(),
                   " workgroups of kernel '", K.Entry,
                   "', which wait for each other, ran at a time in a trial");
  if (!Why.empty())
    report(GRETA_LOG_INFO, concat(V.Id, " is not taken: ", Why));
  writeCache(Name, {Why.begin(), Why.end()});
  return D->Tried[Name] = Why;
}

std::string whyNotTogether(const std::shared_ptr<Device> &D, const Package &P,
                           const Variant &V) {
  if (!V.Requires.Resident || D->launchesTogether())
    return "";
  std::string Wait =
      concat(V.Requires.Resident, " workgroups wait for each other, and ");
  const char *Wish = environment("GRETA_HEALTH");
  std::string Health = Wish ? Wish : "";
  if (D->cacheKey().empty() || Health == "off" || profile() != Profile::Default)
    return Wait + "nobody promises or tries whether the device runs so many "
                  "at a time";
  std::lock_guard<std::recursive_mutex> Guard(D->HealthLock);
  const Denials &Denied = denialsOf(D);
  if (auto Found = Denied.find("resident"); Found != Denied.end())
    return Wait + Found->second;
  try {
    return tryTogether(D, P, V, Health == "again");
  } catch (const Error &E) {
    std::string Why = concat("kernels of ", V.Id,
                             ", whose workgroups wait for each other, were not "
                             "tried: ",
                             E.what());
    if (E.code() == GRETA_ERROR_OUT_OF_MEMORY ||
        E.code() == GRETA_ERROR_DEVICE_LOST)
      fail(E.code(), Why, ". GRETA_HEALTH=resident takes none of them");
    report(GRETA_LOG_WARNING, Why); // tells nothing about later trials
    return Why;
  }
}

} // namespace greta::rt
