// Profile.cpp: where a function's time goes. In: a session, its package and
// inputs. Out: of each kernel its time, the bytes of the tensors it touches,
// and its share of what a copy of this run moved; with --flop the function's
// rate.
#include "Options.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>

namespace greta_run {
namespace {
using nlohmann::json;

// An expression of the manifest (docs/internals/package.md), which the runtime
// checked.
int64_t evaluate(const json &E, const std::map<std::string, int64_t> &Symbols) {
  if (E.is_number())
    return E.get<int64_t>();
  if (E.is_string())
    return Symbols.at(E.get<std::string>());
  std::string Op = E[0].get<std::string>();
  int64_t A = evaluate(E[1], Symbols), B = evaluate(E[2], Symbols);
  return Op == "+"          ? A + B
         : Op == "*"        ? A * B
         : Op == "floordiv" ? A / B
         : Op == "ceildiv"  ? (A + B - 1) / B
                            : A % B;
}

const json &named(const json &List, const char *Key, std::string_view Name) {
  for (const json &Each : List)
    if (Each[Key] == Name)
      return Each;
  throw std::runtime_error("the manifest has no " + std::string(Name));
}

double median(std::vector<double> V) {
  std::sort(V.begin(), V.end());
  return V[V.size() / 2];
}

} // namespace

json profile(Session &S, const greta::Package &Package,
             const std::vector<std::vector<uint8_t>> &Data, const Options &O,
             const std::string &Name) {
  const json Manifest = json::parse(Package.manifest());
  const json &Function = named(Manifest["functions"], "name", Name);
  const json &Variant = named(Function["variants"], "id", S.Function.variant());
  std::map<std::string, int64_t> Symbols;
  for (const json &Symbol : Function.value("symbols", json::array())) {
    size_t Arg = Symbol["arg"];
    int64_t Value = 0;
    if (Symbol.contains("dim")) {
      Value = S.Arguments[Arg].shape[Symbol["dim"].get<size_t>()];
    } else { // a scalar of 32 or 64 bits
      memcpy(&Value, Data[Arg].data(), Data[Arg].size());
    }
    Symbols[Symbol["name"]] = Value;
  }
  auto BytesOf = [&](const std::string &Kind, size_t Index) -> uint64_t {
    if (Kind == "arg")
      return S.ArgumentBytes[Index];
    if (Kind == "result")
      return S.ResultBytes[Index];
    const json &Temp = Variant["temps"][Index];
    auto Bits = static_cast<int64_t>(bitsOf(Temp["dtype"]));
    for (const json &Dim : Temp["shape"])
      Bits *= evaluate(Dim, Symbols);
    return static_cast<uint64_t>(Bits + 7) / 8;
  };

  constexpr unsigned runs = 20;
  S.launch(); // what is slow once
  S.Stream.synchronize();
  S.Stream.profile(true);
  std::vector<std::vector<double>> Times;
  std::vector<std::string> Kernels;
  for (unsigned R = 0; R < runs; ++R) {
    S.launch();
    auto Timed = S.Stream.times();
    Times.resize(Timed.size());
    Kernels.resize(Timed.size());
    for (size_t K = 0; K < Timed.size(); ++K) {
      Kernels[K] = Timed[K].first;
      Times[K].push_back(Timed[K].second);
    }
  }
  S.Stream.profile(false);

  Options Copy = O;
  if (Copy.BenchCopy.empty())
    Copy.BenchCopy = "64M";
  double Limit = benchCopy(S.Runtime, Copy)["gb_per_s"], Sum = 0;
  json J = {{"copy_gb_per_s", Limit}, {"kernels", json::array()}};
  size_t Declared = 0; // kernels with no workgroups are not launched
  for (size_t K = 0; K < Kernels.size(); ++K, ++Declared) {
    while (Variant["kernels"][Declared]["entry"] != Kernels[K])
      ++Declared;
    std::map<std::pair<std::string, size_t>, uint64_t> Touched;
    for (const json &Arg : Variant["kernels"][Declared]["args"]) {
      std::string Kind = Arg["kind"];
      if (Kind == "arg" || Kind == "result" || Kind == "temp")
        Touched[{Kind, Arg["index"]}] = BytesOf(Kind, Arg["index"]);
    }
    uint64_t Bytes = 0;
    for (const auto &[Which, Size] : Touched)
      Bytes += Size;
    double Time = median(Times[K]);
    double Rate = static_cast<double>(Bytes) / std::max(Time, 1e-9) / 1e3;
    Sum += Time;
    J["kernels"].push_back({{"kernel", Kernels[K]},
                            {"us", Time},
                            {"bytes", Bytes},
                            {"gb_per_s", Rate},
                            {"of_copy", Rate / Limit}});
  }
  J["us"] = Sum;
  if (O.Flop > 0)
    J["tflop_per_s"] = O.Flop / std::max(Sum, 1e-9) / 1e6;
  return J;
}

void printProfile(const json &J) {
  printf("%-32s %10s %7s %12s %9s %12s\n", "kernel", "us", "share", "MB",
         "GB/s", "of the copy");
  for (const json &K : J["kernels"])
    printf("%-32s %10.2f %6.1f%% %12.3f %9.1f %11.1f%%\n",
           K["kernel"].get<std::string>().c_str(), K["us"].get<double>(),
           100 * K["us"].get<double>() / std::max(J["us"].get<double>(), 1e-9),
           K["bytes"].get<double>() / 1e6, K["gb_per_s"].get<double>(),
           100 * K["of_copy"].get<double>());
  printf("%-32s %10.2f; a copy moves %.1f GB/s%s\n", "together",
         J["us"].get<double>(), J["copy_gb_per_s"].get<double>(),
         J.contains("tflop_per_s") ? ";" : "");
  if (J.contains("tflop_per_s"))
    printf("%.3f TFLOP/s\n", J["tflop_per_s"].get<double>());
}

} // namespace greta_run
