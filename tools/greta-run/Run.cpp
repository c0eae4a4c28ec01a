// Run.cpp: one launch with files in and out, expectations and the check against
// the host variant.
#include "Npy.h"
#include "Options.h"
#include "OutputFiles.h"
#include "Progress.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace greta_run {
namespace {

using nlohmann::json;

[[noreturn]] void bad(const std::string &What) {
  throw std::runtime_error(What);
}

void compareResult(const std::string &What, const std::string &Name,
                   const HostTensor &Got, const HostTensor &Want,
                   const Options &O, json &Report) {
  if (Got.Shape != Want.Shape)
    bad(What + ": result '" + Name + "' has shape " + shapeText(Got.Shape) +
        ", expected " + shapeText(Want.Shape));
  if (!bitsOf(Want.DType))
    bad(What + ": result '" + Name + "' is " + Got.DType + ", the file holds " +
        Want.DType + "; write --expect=" + Got.DType + ":FILE");
  Difference D = compare(Got, Want, O.Rtol, O.Atol);
  Report[Name] = {{"max_abs", D.MaxAbs},
                  {"row_euclidean", D.RowEuclidean},
                  {"row_maximum", D.RowMaximum},
                  {"limits", limitsOf(Got, O)}};
  std::string Why = disagreement(Got, Want, D, O);
  if (!Why.empty())
    bad(What + " failed: result '" + Name + "': " + Why);
}

std::string theFunction(const greta::Package &P, const Options &O) {
  if (!O.Function.empty())
    return O.Function;
  std::vector<std::string> Names = P.functions();
  if (Names.size() == 1)
    return Names[0];
  std::string All;
  for (const std::string &N : Names)
    All += (All.empty() ? "" : ", ") + N;
  bad("--function is needed; the package has " + All);
}

std::vector<HostTensor> onHost(const greta::Package &P,
                               const std::string &Function,
                               const std::vector<Input> &Inputs,
                               const std::vector<std::vector<uint8_t>> &Data) {
  greta::Runtime Host("host");
  Session S(Host, P, Function, "", Inputs);
  S.write(Data);
  S.launch();
  return S.read();
}

void print(const json &Report) {
  printf("%s on %s: variant %s, first launch %.2f ms\n",
         Report["function"].get<std::string>().c_str(),
         Report["device"].get<std::string>().c_str(),
         Report["variant"].get<std::string>().c_str(),
         Report["first_launch_ms"].get<double>());
  for (const json &R : Report["results"])
    printf("%s: %s of %s\n", R["name"].get<std::string>().c_str(),
           R["shape"].get<std::string>().c_str(),
           R["dtype"].get<std::string>().c_str());
  for (const char *What : {"check", "expect"})
    if (Report.contains(What))
      for (const auto &[Name, D] : Report[What].items())
        printf("%s %s: passed: max abs %.3g, worst row %.3g (Euclidean) %.3g "
               "(maximum); limit: %s\n",
               What, Name.c_str(), D["max_abs"].get<double>(),
               D["row_euclidean"].get<double>(), D["row_maximum"].get<double>(),
               D["limits"].get<std::string>().c_str());
  if (Report.contains("median_us"))
    printf("%.2f us a launch (median of %u; min %.2f, max %.2f), %.1f GB/s of "
           "arguments and results, %u buffer sets\n",
           Report["median_us"].get<double>(), Report["reps"].get<unsigned>(),
           Report["min_us"].get<double>(), Report["max_us"].get<double>(),
           Report["gb_per_s"].get<double>(),
           Report["buffer_sets"].get<unsigned>());
  if (Report.contains("kernels"))
    for (const json &K : Report["kernels"])
      printf("  %-32s %.2f us\n", K["kernel"].get<std::string>().c_str(),
             K["us"].get<double>());
  if (Report.contains("profile"))
    printProfile(Report["profile"]);
  if (Report.contains("host"))
    for (const char *What : {"launch", "record", "replay", "auto_graph"})
      printf("host: %s %.3f us (min %.3f)\n", What,
             Report["host"][What]["median_us"].get<double>(),
             Report["host"][What]["min_us"].get<double>());
  if (Report.contains("copy"))
    printf("copy: %.1f GB/s (read + written, %zu bytes)\n",
           Report["copy"]["gb_per_s"].get<double>(),
           Report["copy"]["bytes"].get<size_t>());
}

} // namespace

int run(const Options &O) {
  json Report;
  if (O.Package.empty()) {
    if (O.BenchCopy.empty())
      bad("no package given; see --help");
    greta::Runtime Runtime(O.Device);
    json Copy = benchCopy(Runtime, O);
    Runtime.close();
    if (O.Json)
      printf("%s\n", json{{"copy", Copy}}.dump(2).c_str());
    else
      printf("copy: %.1f GB/s (read + written)\n",
             Copy["gb_per_s"].get<double>());
    return 0;
  }
  greta::Package Package(O.Package);
  std::string Function = theFunction(Package, O);
  std::vector<Input> Inputs;
  for (const std::string &Text : O.Inputs)
    Inputs.push_back(parseInput(Text));
  Progress Busy;
  Busy.say("opening the device");
  greta::Runtime Runtime(O.Device);
  OutputFiles Files;
  {
    Busy.say("loading " + Function);
    Session S(Runtime, Package, Function, O.Variant, Inputs);
    std::vector<greta::TensorInfo> Results = S.Function.results();
    if (!O.Outputs.empty() && O.Outputs.size() != Results.size())
      bad("the function has " + std::to_string(Results.size()) + " results, " +
          std::to_string(O.Outputs.size()) + " --output given");
    if (!O.Expected.empty() && O.Expected.size() != Results.size())
      bad("the function has " + std::to_string(Results.size()) + " results, " +
          std::to_string(O.Expected.size()) + " --expect given");
    Busy.say("making the inputs");
    std::vector<std::vector<uint8_t>> Data;
    for (const Input &In : Inputs)
      Data.push_back(In.Make());
    S.write(Data);
    S.Stream.synchronize();
    Busy.say("running " + Function);
    auto Begin = std::chrono::steady_clock::now();
    S.launch();
    S.Stream.synchronize();
    std::chrono::duration<double, std::milli> First =
        std::chrono::steady_clock::now() - Begin;
    std::vector<HostTensor> Got = S.read();
    json Device = json::parse(Runtime.info());
    Report = {{"function", Function},
              {"variant", S.Function.variant()},
              {"device", Device["name"]},
              {"spec", Device["spec"]},
              {"first_launch_ms", First.count()},
              {"results", json::array()}};
    for (size_t I = 0; I < Got.size(); ++I)
      Report["results"].push_back({{"name", Results[I].name},
                                   {"shape", shapeText(Got[I].Shape)},
                                   {"dtype", Got[I].DType}});
    for (size_t I = 0; I < O.Expected.size(); ++I) {
      Input E = parseInput(O.Expected[I]);
      compareResult("--expect", Results[I].name, Got[I],
                    {E.DType, E.Shape, E.Make()}, O, Report["expect"]);
    }
    if (O.Check) {
      Busy.say("checking against the host variant");
      std::vector<HostTensor> Want = onHost(Package, Function, Inputs, Data);
      for (size_t I = 0; I < Want.size(); ++I)
        compareResult("--check", Results[I].name, Got[I], Want[I], O,
                      Report["check"]);
    }
    if (O.Bench || O.BenchHost || O.Profile || !O.BenchCopy.empty())
      Busy.say("measuring");
    if (O.Bench)
      Report.update(bench(S, Data, O));
    if (O.Profile)
      Report["profile"] = profile(S, Package, Data, O, Function);
    if (O.BenchHost)
      Report["host"] = benchHost(S, O);
    if (!O.BenchCopy.empty())
      Report["copy"] = benchCopy(Runtime, O);
    for (size_t I = 0; I < O.Outputs.size(); ++I)
      Files.add(O.Outputs[I], npyFile(Got[I]));
  }
  Busy.say("closing the device");
  Runtime.close();
  Files.commit();
  Busy.clear();
  if (O.Json)
    printf("%s\n", Report.dump(2).c_str());
  else
    print(Report);
  return 0;
}

} // namespace greta_run
