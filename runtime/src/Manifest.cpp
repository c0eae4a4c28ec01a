// Manifest.cpp: manifest.json as checked structures. Keys that schema 1 does
// not know are ignored, except under `requires`: an unknown requirement makes
// the variant one that this runtime cannot promise to run.
#include "DType.h"
#include "Error.h"
#include "ManifestReader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace greta::rt {
namespace {
using nlohmann::json;
using Reader = ManifestReader;

constexpr uint32_t maxArgumentBytes = 4096;
constexpr size_t maxNames = 256; // of a function, which are all looked up

std::string dtype(const Reader &R) {
  if (!bitsOf(R.string()))
    R.bad("unknown dtype '", printable(R.string()), "'");
  return R.string();
}

// Reads an argument that is a value.
TensorDecl scalar(const Reader &R) {
  TensorDecl T;
  T.IsScalar = true;
  T.Name = R.at("name").name();
  T.Access = "read";
  T.DType = R.at("dtype").oneOf(
      {"i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"});
  T.Bits = bitsOf(T.DType);
  return T;
}

TensorDecl tensor(const Reader &R, const std::vector<std::string> &Symbols,
                  bool Named) {
  TensorDecl T;
  if (Named) {
    T.Name = R.at("name").name();
    T.Access = R.at("access").oneOf({"read", "write", "readwrite"});
    if (R.has("align"))
      T.Align = R.at("align").integer(1, 16);
    if (R.has("max_bytes"))
      T.MaxBytes = R.at("max_bytes").integer(0, INT64_MAX);
  }
  T.DType = dtype(R.at("dtype"));
  T.Bits = bitsOf(T.DType);
  for (const Reader &Dim : R.at("shape").list(0, 16)) {
    T.Shape.push_back(Dim.expr(Symbols));
    const Expr &E = T.Shape.back();
    T.StaticShape.push_back(E.isConstant() ? E.constant() : -1);
  }
  // A shape without dynamic dims must be addressable; dynamic ones are checked
  // at each launch.
  bool Static = true;
  for (int64_t Dim : T.StaticShape)
    Static &= Dim >= 0;
  if (Static) {
    try {
      tensorBytes(T.DType, T.StaticShape);
    } catch (const Error &E) {
      R.bad(E.what());
    }
  }
  return T;
}

std::vector<std::array<uint32_t, 2>> bases(const Reader &R) {
  std::vector<std::array<uint32_t, 2>> Result;
  for (const Reader &Pair : R.list(0, 16)) {
    auto Two = Pair.list(2, 2);
    Result.push_back({static_cast<uint32_t>(Two[0].integer(0, 1024)),
                      static_cast<uint32_t>(Two[1].integer(0, 1024))});
  }
  return Result;
}

std::vector<std::string> names(const Reader &R, const char *Key) {
  std::vector<std::string> Result;
  for (const Reader &N : R.optionalList(Key))
    Result.push_back(N.name());
  return Result;
}

Requirements requirements(const Reader &R, const std::string &Backend) {
  Requirements Q;
  if (!R.value().is_object())
    R.bad("not an object");
  for (const auto &[Key, Value] : R.value().items()) {
    static const std::set<std::string> Vulkan = {
        "subgroup_size", "features", "subgroup_ops",
        "shared_bytes",  "coopmat",  "layouts"};
    bool OfGpu = (Key == "compute_units" || Key == "communicator" ||
                  Key == "resident") &&
                 Backend != "host";
    if (!OfGpu && (Backend == "vulkan" ? !Vulkan.count(Key) : Key != "arch"))
      Q.Unknown = printable(Key);
  }
  if (Backend != "host") {
    if (R.has("compute_units"))
      Q.ComputeUnits = R.at("compute_units").small(1 << 20);
    if (R.has("resident"))
      Q.Resident = R.at("resident").small(1 << 20);
    Q.Communicator = R.has("communicator") && R.at("communicator").boolean();
  }
  if (Backend != "vulkan") {
    Q.Arch = R.at("arch").name();
    return Q;
  }
  if (R.has("subgroup_size")) {
    Q.SubgroupSize = R.at("subgroup_size").small(128);
    if (Q.SubgroupSize & (Q.SubgroupSize - 1))
      R.at("subgroup_size").bad("not a power of two");
  }
  if (R.has("shared_bytes"))
    Q.SharedBytes = R.at("shared_bytes").integer(0, 1 << 20);
  Q.Features = names(R, "features");
  Q.SubgroupOps = names(R, "subgroup_ops");
  for (const Reader &S : R.optionalList("coopmat"))
    Q.Coopmat.push_back({S.at("m").small(1024), S.at("n").small(1024),
                         S.at("k").small(1024), S.at("a").name(),
                         S.at("b").name(), S.at("c").name(),
                         S.at("result").name()});
  for (const Reader &L : R.optionalList("layouts"))
    Q.Layouts.push_back({L.at("use").oneOf({"a", "b", "acc"}),
                         L.at("dtype").name(), L.at("rows").small(1024),
                         L.at("cols").small(1024), bases(L.at("lane")),
                         bases(L.at("element"))});
  if (!Q.Layouts.empty() && !Q.SubgroupSize)
    R.bad("'layouts' needs 'subgroup_size'");
  return Q;
}

KernelArg kernelArg(const Reader &R, const FunctionDecl &F, const Variant &V,
                    const std::vector<std::string> &Symbols) {
  KernelArg A{};
  const std::string &Kind =
      R.at("kind").oneOf({"arg", "result", "temp", "i32", "i64"});
  if (Kind == "i32" || Kind == "i64") {
    A.Which = Kind == "i32" ? KernelArg::I32 : KernelArg::I64;
    A.Value = R.at("value").expr(Symbols);
    if (Kind == "i32" && R.has("max"))
      A.Most = R.at("max").integer(0, INT32_MAX);
    return A;
  }
  A.Which = Kind == "arg"      ? KernelArg::Arg
            : Kind == "result" ? KernelArg::Result
                               : KernelArg::Temp;
  size_t Count = Kind == "arg"      ? F.Args.size()
                 : Kind == "result" ? F.Results.size()
                                    : V.Temps.size();
  A.Index = R.at("index").integer(0, maxList);
  if (A.Index >= Count)
    R.at("index").bad("there are ", Count, " of kind '", Kind, "'");
  if (Kind == "arg" && F.Args[A.Index].IsScalar) {
    A.Which = KernelArg::Scalar;
    A.ScalarBytes = bitsOf(F.Args[A.Index].DType) == 64 ? 8 : 4;
  }
  return A;
}

KernelDecl kernel(const Reader &R, const FunctionDecl &F, const Variant &V,
                  const std::vector<std::string> &Symbols,
                  std::map<std::string, std::string> &Hashes) {
  KernelDecl K;
  K.File = R.at("file").string();
  const std::string &Hash = R.at("sha256").string();
  if (Hash.size() != 64 ||
      Hash.find_first_not_of("0123456789abcdef") != std::string::npos)
    R.at("sha256").bad("not 64 lower-case hexadecimal digits");
  if (K.File.size() > 255 || K.File.compare(0, 8, "objects/") != 0 ||
      K.File.find('/', 8) != std::string::npos ||
      K.File.find('\0') != std::string::npos)
    R.at("file").bad("not of the form objects/<name>");
  auto [It, New] = Hashes.emplace(K.File, Hash);
  if (!New && It->second != Hash)
    R.at("sha256").bad("another kernel gives another hash for '", K.File, "'");
  K.Entry = R.at("entry").name();

  auto Block = R.at("block").list(3, 3);
  uint64_t Threads = 1;
  for (int I = 0; I < 3; ++I) {
    K.Block[I] = Block[I].small(1024);
    Threads *= K.Block[I];
  }
  if (Threads > 1024)
    R.at("block").bad(Threads, " threads, the limit is 1024");
  for (const Reader &G : R.at("grid").list(3, 3))
    K.Grid.push_back(G.expr(Symbols));
  if (R.has("lds_bytes"))
    K.LdsBytes = R.at("lds_bytes").integer(0, 1 << 20);
  K.IsResident = R.has("resident") && R.at("resident").boolean();
  if (K.IsResident && !V.Requires.Resident)
    R.at("resident").bad("'requires' does not say of how many workgroups");

  if (V.Backend == "host") {
    // The host's ABI is fixed: pointers of arguments and results, then symbols.
    for (const TensorDecl &T : F.Args)
      if (T.IsScalar)
        R.bad("a host variant takes tensors, '", T.Name, "' is a scalar");
    for (size_t I = 0; I < F.Args.size() + F.Results.size(); ++I) {
      bool IsArg = I < F.Args.size();
      KernelArg A{};
      A.Which = IsArg ? KernelArg::Arg : KernelArg::Result;
      A.Index = IsArg ? I : I - F.Args.size();
      K.Args.push_back(A);
    }
    return K;
  }
  for (const Reader &A : R.at("args").list())
    K.Args.push_back(kernelArg(A, F, V, Symbols));
  if (R.has("trial")) {
    K.Trial = R.at("trial").integer(0, maxList);
    // With another value launches would be trials, and compute nothing.
    auto IsZero = [](const KernelArg &A) {
      return A.Which == KernelArg::I32 && A.Value.isConstant() &&
             A.Value.constant() == 0;
    };
    if (*K.Trial >= K.Args.size() || !IsZero(K.Args[*K.Trial]))
      R.at("trial").bad("argument ", *K.Trial, " is no i32 of value 0");
  }
  uint32_t Bytes = argumentOffsets(K.Args).back();
  if (Bytes > maxArgumentBytes)
    R.at("args").bad("the argument block has ", Bytes, " bytes, ",
                     maxArgumentBytes, " is the most");
  if (R.has("log"))
    K.Log = readLog(R.at("log"), V);
  for (const Reader &Number : R.optionalList("by_rows")) {
    uint64_t I = Number.integer(0, maxList);
    if (I >= K.Args.size() || K.Args[I].Which > KernelArg::Temp)
      Number.bad("argument ", I, " is no tensor");
    K.Args[I].ByRows = true;
  }
  return K;
}

// Checks that the kernels beside a sum belong to it alone, and that none waits.
void parts(const Reader &R, SumDecl &S, const Variant &V,
           const std::vector<std::string> &Symbols) {
  S.PartRows = static_cast<int64_t>(R.at("rows").integer(1, 1 << 24));
  S.Rows = R.at("of").expr(Symbols);
  S.Before = R.at("before").boolean();
  S.Behind = R.at("behind").boolean();
  if (!S.Before && !S.Behind)
    return;
  if (S.Rows.symbol() < 0)
    R.at("of").bad("kernels are launched in parts of a symbol");
  size_t Taken = 0; // kernels of earlier sums
  for (const SumDecl &Other : V.Sums)
    Taken = std::max(Taken, Other.After + Other.Behind);
  if (!V.Sums.empty() && V.Sums.back().After == S.After)
    R.bad("another sum stands behind the same kernel");
  if (S.After < Taken + S.Before || S.After + S.Behind > V.Kernels.size())
    R.bad("there is no kernel beside the sum, or it belongs to another");
  for (size_t I = S.After - S.Before; I < S.After + S.Behind; ++I) {
    const KernelDecl &K = V.Kernels[I];
    bool HasRows = std::any_of(K.Args.begin(), K.Args.end(),
                               [](const KernelArg &A) { return A.ByRows; });
    if (!HasRows || K.IsResident || K.Log)
      R.bad("kernel ", I, " cannot be launched in parts");
  }
}

SumDecl sum(const Reader &R, const FunctionDecl &F, const Variant &V,
            const std::vector<std::string> &Symbols) {
  size_t Least = V.Sums.empty() ? 0 : V.Sums.back().After;
  SumDecl S{};
  S.After = R.at("after").integer(Least, V.Kernels.size());
  auto Place = [&](const char *Key) {
    KernelArg A = kernelArg(R.at(Key), F, V, Symbols);
    if (A.Which != KernelArg::Arg && A.Which != KernelArg::Result &&
        A.Which != KernelArg::Temp)
      R.at(Key).bad("not a tensor");
    const TensorDecl &T = tensorOf(F, V, A);
    if (T.DType != "f32" && T.DType != "f16" && T.DType != "bf16")
      R.at(Key).bad("sums are of f32, f16 or bf16, not of ", T.DType);
    if (T.IsZeroed)
      R.at(Key).bad("the temporary is to hold zeros");
    return A;
  };
  S.From = Place("from");
  S.To = Place("to");
  if (S.To.Which == KernelArg::Arg)
    R.at("to").bad("an argument is not written");
  if (tensorOf(F, V, S.From).DType != tensorOf(F, V, S.To).DType)
    R.bad("'from' and 'to' differ in their dtypes");
  if (!V.Sums.empty() && V.Sums.back().Behind && V.Sums.back().After == S.After)
    R.bad("another sum stands behind the same kernel");
  if (R.has("parts"))
    parts(R.at("parts"), S, V, Symbols);
  return S;
}

// Reads the members that a variant and each of its ranges have.
void code(const Reader &R, const FunctionDecl &F, Variant &V,
          const std::vector<std::string> &Symbols,
          std::map<std::string, std::string> &Hashes) {
  V.Requires = requirements(R.at("requires"), V.Backend);
  for (const Reader &T : R.optionalList("temps")) {
    V.Temps.push_back(tensor(T, Symbols, /*Named=*/false));
    V.Temps.back().IsZeroed = T.has("zeroed") && T.at("zeroed").boolean();
  }
  for (const Reader &K : R.at("kernels").list(R.has("sums") ? 0 : 1))
    V.Kernels.push_back(kernel(K, F, V, Symbols, Hashes));
  for (const Reader &S : R.optionalList("sums"))
    V.Sums.push_back(sum(S, F, V, Symbols));
  // A reader that knows no sums skips the variant because of what it requires.
  if (V.Requires.Communicator != !V.Sums.empty())
    R.bad("there are 'sums' if and only if 'communicator' is required");
  if (V.Kernels.empty() && V.Sums.empty())
    R.at("kernels").bad("it is empty, and there are no sums");
  if (V.Backend == "host" && V.Kernels.size() != 1)
    R.at("kernels").bad("a host variant has exactly one kernel");
}

Range range(const Reader &R, const FunctionDecl &F, const Variant &V,
            const std::vector<std::string> &Symbols,
            std::map<std::string, std::string> &Hashes) {
  Range Result;
  for (const Reader &C : R.at("when").list(1, 16)) {
    auto Three = C.list(3, 3);
    uint64_t Least = Three[1].integer(0, INT64_MAX),
             Most = Three[2].integer(0, INT64_MAX);
    if (Least > Most)
      C.bad("no value is from ", Least, " to ", Most);
    Result.When.push_back({Three[0].expr(Symbols), static_cast<int64_t>(Least),
                           static_cast<int64_t>(Most)});
  }
  Result.What.Id = V.Id;
  Result.What.Target = V.Target;
  Result.What.Backend = V.Backend;
  code(R, F, Result.What, Symbols, Hashes);
  return Result;
}

Variant variant(const Reader &R, const FunctionDecl &F,
                const std::vector<std::string> &Symbols,
                std::map<std::string, std::string> &Hashes) {
  Variant V;
  V.Id = R.at("id").name();
  V.Target = R.at("target").name("_.-$:");
  V.Backend = R.at("backend").oneOf({"hip", "vulkan", "host"});
  if (R.has("compute_units"))
    V.ComputeUnits = R.at("compute_units").small(1 << 20);
  code(R, F, V, Symbols, Hashes);
  if (V.Backend == "host" && R.has("ranges"))
    R.at("ranges").bad("a host variant has none");
  for (const Reader &Each : R.optionalList("ranges"))
    V.Ranges.push_back(range(Each, F, V, Symbols, Hashes));
  return V;
}

// Ties the last result to an argument like it, to which no other is tied.
void tie(const Reader &R, FunctionDecl &F) {
  TensorDecl &Result = F.Results.back();
  size_t Index = R.integer(0, maxList);
  if (Index >= F.Args.size())
    R.bad("there are ", F.Args.size(), " arguments");
  const TensorDecl &Arg = F.Args[Index];
  if (Arg.IsScalar || Arg.DType != Result.DType || !(Arg.Shape == Result.Shape))
    R.bad("argument ", Index, " is no tensor of the result's dtype and shape");
  for (const TensorDecl &Other : F.Results)
    if (Other.Tied == Index)
      R.bad("another result is tied to argument ", Index, ", too");
  Result.Tied = Index;
  Result.Align = Arg.Align;
}

FunctionDecl function(const Reader &R,
                      std::map<std::string, std::string> &Hashes) {
  FunctionDecl F;
  F.Name = R.at("name").name();
  F.InPlace = R.has("in_place") && R.at("in_place").boolean();
  std::vector<std::string> Symbols;
  std::vector<Reader> SymbolReaders;
  if (R.has("symbols"))
    SymbolReaders = R.at("symbols").list(0, maxNames);
  for (const Reader &S : SymbolReaders) {
    const std::string &Name = S.at("name").name();
    for (const std::string &Other : Symbols)
      if (Other == Name)
        S.bad("symbol '", Name, "' appears twice");
    Symbols.push_back(Name);
    F.Symbols.push_back({Name, S.at("arg").integer(0, maxList), std::nullopt});
    if (S.has("dim"))
      F.Symbols.back().Dim = S.at("dim").integer(0, 15);
  }
  for (const Reader &A : R.at("args").list()) {
    bool IsScalar =
        A.has("kind") && A.at("kind").oneOf({"tensor", "scalar"}) == "scalar";
    F.Args.push_back(IsScalar ? scalar(A) : tensor(A, Symbols, /*Named=*/true));
  }
  for (const Reader &A : R.at("results").list()) {
    F.Results.push_back(tensor(A, Symbols, /*Named=*/true));
    if (A.has("tied"))
      tie(A.at("tied"), F);
  }
  for (size_t I = 0; I < F.Symbols.size(); ++I) {
    const FunctionDecl::Symbol &S = F.Symbols[I];
    const Reader &Where = SymbolReaders[I];
    if (S.Arg >= F.Args.size())
      Where.bad("there is no argument ", S.Arg);
    const TensorDecl &A = F.Args[S.Arg];
    if (!S.Dim && (!A.IsScalar || A.DType[0] != 'i'))
      Where.bad("argument ", S.Arg,
                " is no integer; a symbol that is a "
                "tensor's has a 'dim'");
    if (S.Dim && (*S.Dim >= A.Shape.size() ||
                  A.Shape[*S.Dim].symbol() != static_cast<int>(I)))
      Where.bad("argument ", S.Arg, ", dim ", *S.Dim, " is not this symbol");
  }
  for (const Reader &V : R.at("variants").list(1)) {
    F.Variants.push_back(variant(V, F, Symbols, Hashes));
    for (size_t I = 0; I + 1 < F.Variants.size(); ++I)
      if (F.Variants[I].Id == F.Variants.back().Id)
        V.bad("variant '", F.Variants[I].Id, "' appears twice");
  }
  return F;
}

} // namespace

const TensorDecl &tensorOf(const FunctionDecl &F, const Variant &V,
                           const KernelArg &A) {
  return A.Which == KernelArg::Arg      ? F.Args[A.Index]
         : A.Which == KernelArg::Result ? F.Results[A.Index]
                                        : V.Temps[A.Index];
}

std::vector<uint32_t> argumentOffsets(const std::vector<KernelArg> &Args) {
  std::vector<uint32_t> Offsets;
  uint32_t End = 0;
  for (const KernelArg &A : Args) {
    uint32_t Size = A.bytes();
    Offsets.push_back((End + Size - 1) / Size * Size);
    End = Offsets.back() + Size;
  }
  Offsets.push_back(End);
  return Offsets;
}

std::vector<FunctionDecl>
parseManifest(const std::string &Text,
              std::map<std::string, std::string> &Hashes) {
  json J;
  // The parser recurses per nesting level, so deeper nesting is refused.
  constexpr int maxNesting = 64;
  bool TooDeep = false;
  try {
    J = json::parse(Text, [&](int Depth, json::parse_event_t, json &) {
      TooDeep |= Depth > maxNesting;
      return Depth <= maxNesting;
    });
  } catch (const json::exception &E) {
    fail(GRETA_ERROR_BAD_PACKAGE,
         "manifest.json is not valid JSON: ", E.what());
  }
  if (TooDeep)
    fail(GRETA_ERROR_BAD_PACKAGE, "manifest.json is nested too deeply");
  Reader R(J, "");
  const json *Schema =
      J.is_object() && J.contains("schema") ? &J["schema"] : nullptr;
  if (!Schema || !Schema->is_number_integer())
    fail(GRETA_ERROR_BAD_PACKAGE, "manifest.json has no schema version");
  if (*Schema != 1)
    fail(GRETA_ERROR_BAD_PACKAGE, "manifest schema ", Schema->dump(),
         " is not supported; this runtime reads schema 1");
  std::vector<FunctionDecl> Functions;
  std::set<std::string> Seen;
  for (const Reader &F : R.at("functions").list(1)) {
    Functions.push_back(function(F, Hashes));
    if (!Seen.insert(Functions.back().Name).second)
      F.bad("function '", Functions.back().Name, "' appears twice");
  }
  return Functions;
}

} // namespace greta::rt
